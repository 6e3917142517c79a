#include "systems/clouds_stages.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/clouds/predictions.h"
#include "data/clouds/scores.h"
#include "systems/trainings_of_numbers.h"

/* ---- which there are ---- */

/* What training number k is: first those whose flight the config names, then a fold for each flight. */
static bool name_stage(const pl_config *c, uint32_t k, pl_stage_row *row)
{
    const pl_config_clouds *o = &c->clouds;
    const uint32_t pretrain = o->pretrain_flight[0] != 0, before = pretrain + (o->validation_flight[0] != 0);
    if (k >= before + o->flights.count) return false;
    if (k >= before)
        snprintf(row->name, sizeof row->name, PL_CLOUDS_LOO "%s", o->flights.item[k - before].name);
    else
        snprintf(row->name, sizeof row->name, "%s", k < pretrain ? PL_CLOUDS_PRETRAIN : PL_CLOUDS_FINAL);
    row->alone = k >= before ? !o->loo : k < pretrain ? !o->pretrain : !o->final;
    return true;
}

/* A fold begins with no weights: those of the pre-training have seen the flight that it leaves out. */
bool pl_clouds_stage(const pl_config *c, uint32_t k, pl_stage_row *row)
{
    const bool pretrains = c->clouds.pretrain && c->clouds.pretrain_flight[0];
    *row = (pl_stage_row){.what = "the training that is next", .begin_key = "train.init_from", .shared_key = "cache"};
    if (!name_stage(c, k, row)) return false;
    if (strcmp(row->name, PL_CLOUDS_FINAL) == 0 && pretrains && !c->train.init_from[0])
        snprintf(row->begins_with, sizeof row->begins_with, PL_CLOUDS_PRETRAIN);
    pl_stage_set(row, "stage", "%s", row->name);
    return true;
}

void pl_clouds_stage_of(const pl_config *c, char name[PL_STAGE_NAME_BYTES])
{
    pl_stage_row row = {.alone = true};
    name[0] = 0;
    if (c->clouds.stage[0]) {
        snprintf(name, PL_STAGE_NAME_BYTES, "%s", c->clouds.stage);
        return;
    }
    for (uint32_t k = 0; row.alone && name_stage(c, k, &row);) k++;
    if (!row.alone) memcpy(name, row.name, sizeof row.name);
}

/* ---- their results ---- */

typedef struct results {
    pl_regression_row *row;
    pl_prediction **prediction; /* each row's */
    char (*name)[PL_STAGE_NAME_BYTES], (*held_out)[PL_PREDICTION_NAME_BYTES];
    uint32_t rows;
} results;

static pl_scored truth_and_predicted(const void *context, uint64_t i)
{
    const pl_prediction *p = context;
    return (pl_scored){p[i].truth, p[i].predicted};
}

static pl_scored truth_and_mean(const void *context, uint64_t i)
{
    const pl_prediction *p = context;
    return (pl_scored){p[i].truth, p[i].mean};
}

static pl_status fill_row(results *r, uint32_t at, uint64_t count, pl_error *err)
{
    const pl_prediction *p = r->prediction[at];
    pl_regression_row *row = &r->row[at];
    const pl_scores s = pl_score(truth_and_predicted, p, count), mean = pl_score(truth_and_mean, p, count);
    double *numbers = pl_alloc(2 * count + 1, sizeof *numbers);
    if (!numbers) return pl_fail(err, PL_E_NOMEM, "no memory for the predictions");
    for (uint64_t i = 0; i < count; i++) numbers[i] = p[i].truth, numbers[count + i] = p[i].predicted;
    snprintf(r->held_out[at], sizeof r->held_out[at], "%s", count ? p[0].flight : "");
    *row = (pl_regression_row){.name = r->name[at],
                               .held_out = r->held_out[at],
                               .is_fold = strncmp(r->name[at], PL_CLOUDS_LOO, strlen(PL_CLOUDS_LOO)) == 0,
                               .count = count,
                               .mae = s.mae,
                               .mse = s.mse,
                               .rmse = s.rmse,
                               .mape = s.mape,
                               .r2 = s.r2,
                               .mean_error = s.mean_error,
                               .std_error = s.std_error,
                               .mean_mae = mean.mae,
                               .truth = numbers,
                               .predicted = numbers + count};
    memcpy(row->quantile, s.quantile, sizeof row->quantile);
    return PL_OK;
}

static pl_status read_row(const char *out, const char *name, results *r, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    uint64_t count;
    bool is_done;
    const uint32_t at = r->rows;
    PL_TRY(pl_system_find_predictions(out, name, path, &is_done, err));
    if (!is_done) return PL_OK;
    PL_TRY(pl_predictions_read(path, &r->prediction[at], &count, err));
    snprintf(r->name[at], sizeof r->name[at], "%s", name);
    PL_TRY(fill_row(r, at, count, err));
    r->rows++;
    return PL_OK;
}

static uint32_t count_stages(const pl_config *c)
{
    uint32_t count = 0;
    pl_stage_row row;
    while (pl_system_find_stage(c, count, &row)) count++;
    return count;
}

static pl_status read_results(const pl_config *c, const char *out, results *r, pl_error *err)
{
    const uint32_t stages = count_stages(c);
    pl_stage_row row;
    r->row = pl_alloc(stages + 1, sizeof *r->row);
    r->prediction = pl_alloc(stages + 1, sizeof *r->prediction);
    r->name = pl_alloc(stages + 1, sizeof *r->name);
    r->held_out = pl_alloc(stages + 1, sizeof *r->held_out);
    if (!r->row || !r->prediction || !r->name || !r->held_out)
        return pl_fail(err, PL_E_NOMEM, "no memory for the table");
    for (uint32_t k = 0; pl_system_find_stage(c, k, &row); k++) PL_TRY(read_row(out, row.name, r, err));
    return pl_system_require_done(out, r->rows, err);
}

static void free_results(const pl_config *c, results *r)
{
    const uint32_t stages = count_stages(c);
    for (uint32_t i = 0; i < stages && r->row && r->prediction; i++) {
        pl_free((void *)r->row[i].truth);
        pl_free(r->prediction[i]);
    }
    pl_free(r->row);
    pl_free(r->prediction);
    pl_free(r->name);
    pl_free(r->held_out);
}

pl_status pl_clouds_report_stages(const pl_config *c, const char *out, pl_doc *d, pl_error *err)
{
    results r = {0};
    pl_status status = read_results(c, out, &r, err);
    if (status == PL_OK)
        pl_regression_add(&(pl_regression_report){"Cloud base heights", "km", r.row, r.rows, count_stages(c)}, d);
    free_results(c, &r);
    return status;
}
