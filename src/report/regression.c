#include "report/regression.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "report/table.h"

/* Mean and population standard deviation over the folds. */
typedef struct spread {
    double mean, std;
    uint32_t folds;
} spread;

typedef double number_of(const pl_regression_row *);
static double mae_of(const pl_regression_row *r) { return r->mae; }
static double mse_of(const pl_regression_row *r) { return r->mse; }
static double rmse_of(const pl_regression_row *r) { return r->rmse; }
static double r2_of(const pl_regression_row *r) { return r->r2; }
static double mean_mae_of(const pl_regression_row *r) { return r->mean_mae; }
static double share_of(const pl_regression_row *r) { return r->mean_mae > 0 ? r->mae / r->mean_mae : NAN; }

static spread spread_of(const pl_regression_report *p, number_of *number)
{
    spread s = {0};
    double squares = 0;
    for (uint32_t i = 0; i < p->rows; i++)
        if (p->row[i].is_fold) s.mean += number(&p->row[i]), s.folds++;
    s.mean /= s.folds;
    for (uint32_t i = 0; i < p->rows; i++)
        if (p->row[i].is_fold) squares += (number(&p->row[i]) - s.mean) * (number(&p->row[i]) - s.mean);
    s.std = sqrt(squares / s.folds);
    return s;
}

static const struct {
    const char *key, *words;
    number_of *number;
} columns[] = {{"mae", "MAE", mae_of},       {"rmse", "RMSE", rmse_of},
               {"r2", "R2", r2_of},          {"mean_predictor_mae", "mean's MAE", mean_mae_of},
               {"share", "share", share_of}, {"mse", NULL, mse_of}}; /* NULL: in JSON alone */
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- text ---- */

static void put_spread(const pl_regression_report *p, bool std, pl_table *t)
{
    pl_table_cell(t, std ? "± over the folds" : "mean of the folds");
    pl_table_cell(t, "%s", "");
    pl_table_cell(t, "%s", "");
    for (int k = 0; k < COLUMNS; k++) {
        const spread s = spread_of(p, columns[k].number);
        if (columns[k].words) pl_table_cell(t, "%.3f", std ? s.std : s.mean);
    }
    pl_table_end_row(t);
}

static void put_head(pl_table *t)
{
    pl_table_cell(t, "training");
    pl_table_cell(t, "held out");
    pl_table_cell(t, "samples");
    for (int k = 0; k < COLUMNS; k++)
        if (columns[k].words) pl_table_cell(t, "%s", columns[k].words);
    pl_table_end_row(t);
}

static void put_row(const pl_regression_row *r, pl_table *t)
{
    pl_table_cell(t, "%s", r->name);
    pl_table_cell(t, "%s", r->held_out);
    pl_table_count(t, r->count);
    for (int k = 0; k < COLUMNS; k++)
        if (columns[k].words) pl_table_cell(t, "%.3f", columns[k].number(r));
    pl_table_end_row(t);
}

void pl_regression_text(const pl_regression_report *p, pl_str *out)
{
    const spread folds = spread_of(p, mae_of);
    pl_str_printf(out, "%s, in %s\n\n", p->title, p->unit);
    for (pl_table t = pl_table_begin(out, "llrrrrrr"); pl_table_pass(&t);) {
        put_head(&t);
        for (uint32_t i = 0; i < p->rows; i++) put_row(&p->row[i], &t);
        if (folds.folds > 1) put_spread(p, false, &t), put_spread(p, true, &t);
    }
    pl_str_printf(out,
                  "\nshare: MAE over that of who always says the mean of the labels trained on; below 1 the model has "
                  "learnt something\n");
    if (p->rows < p->stages) pl_str_printf(out, "%u of %u trainings are done\n", p->rows, p->stages);
}

/* ---- JSON ---- */

static void put_json_row(const pl_regression_row *r, pl_json *j)
{
    static const char *const quantiles[] = {"q25", "q50", "q75", "q90", "q95"};
    pl_json_object(j);
    pl_json_kv_string(j, "training", r->name);
    pl_json_kv_string(j, "held_out", r->held_out);
    pl_json_kv_bool(j, "fold", r->is_fold);
    pl_json_kv_uint(j, "samples", r->count);
    for (int k = 0; k < COLUMNS; k++) pl_json_kv_double(j, columns[k].key, columns[k].number(r));
    pl_json_kv_double(j, "mape", r->mape);
    pl_json_kv_double(j, "mean_error", r->mean_error);
    pl_json_kv_double(j, "std_error", r->std_error);
    pl_json_key(j, "absolute_error");
    pl_json_object(j);
    for (int k = 0; k < 5; k++) pl_json_kv_double(j, quantiles[k], r->quantile[k]);
    pl_json_object_end(j);
    pl_json_object_end(j);
}

static void put_json_spread(const pl_regression_report *p, pl_json *j)
{
    pl_json_key(j, "folds");
    pl_json_object(j);
    pl_json_kv_uint(j, "count", spread_of(p, mae_of).folds);
    for (int k = 0; k < COLUMNS; k++) {
        const spread s = spread_of(p, columns[k].number);
        pl_json_key(j, columns[k].key);
        pl_json_object(j);
        pl_json_kv_double(j, "mean", s.mean);
        pl_json_kv_double(j, "std", s.std);
        pl_json_object_end(j);
    }
    pl_json_object_end(j);
}

void pl_regression_json(const pl_regression_report *p, pl_str *out)
{
    pl_json j = pl_json_document(out, false, "plimsoll.regression/1");
    pl_json_kv_string(&j, "unit", p->unit);
    pl_json_kv_uint(&j, "done", p->rows);
    pl_json_kv_uint(&j, "stages", p->stages);
    pl_json_key(&j, "trainings");
    pl_json_array(&j);
    for (uint32_t i = 0; i < p->rows; i++) put_json_row(&p->row[i], &j);
    pl_json_array_end(&j);
    put_json_spread(p, &j);
    pl_json_document_end(&j);
}
