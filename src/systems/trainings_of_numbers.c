#include "systems/trainings_of_numbers.h"

#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "show/chart.h"
#include "systems/trainings.h"

enum { POINTS_MAX = 2000, TEXT = 96 };

/* ---- the table ---- */

typedef double number_of(const pl_regression_row *);
static double mae_of(const pl_regression_row *r) { return r->mae; }
static double mse_of(const pl_regression_row *r) { return r->mse; }
static double rmse_of(const pl_regression_row *r) { return r->rmse; }
static double r2_of(const pl_regression_row *r) { return r->r2; }
static double mean_mae_of(const pl_regression_row *r) { return r->mean_mae; }
static double share_of(const pl_regression_row *r) { return r->mean_mae > 0 ? r->mae / r->mean_mae : NAN; }

/* Those that programs are given a mean over the folds of; the last is theirs alone. */
static number_of *const numbers[] = {mae_of, rmse_of, r2_of, mean_mae_of, share_of, mse_of};
static const char *const keys[] = {"mae", "rmse", "r2", "mean_predictor_mae", "share", "mse"};
enum { NUMBERS = sizeof numbers / sizeof *numbers, NUMBERS_SHOWN = NUMBERS - 1 };

static const pl_doc_column columns[] = {{"training", "training"},
                                        {"held_out", "held out"},
                                        {"samples", "samples", PL_DOC_COUNT},
                                        {"mae", "MAE", PL_DOC_FIXED, 3},
                                        {"rmse", "RMSE", PL_DOC_FIXED, 3},
                                        {"r2", "R²", PL_DOC_FIXED, 3},
                                        {"mean_predictor_mae", "mean's MAE", PL_DOC_FIXED, 3},
                                        {"share", "share", PL_DOC_FIXED, 3},
                                        {NULL, "median |e|", PL_DOC_FIXED, 3, .is_extra = true},
                                        {NULL, "90 % of |e|", PL_DOC_FIXED, 3, .is_extra = true}};

static void add_row(const pl_regression_row *r, pl_doc *d)
{
    static const char *const quantiles[] = {"q25", "q50", "q75", "q90", "q95"};
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", r->name);
    pl_doc_words(d, "%s", r->held_out);
    pl_doc_key_bool(d, "fold", r->is_fold);
    pl_doc_count(d, r->count);
    for (int k = 0; k < NUMBERS_SHOWN; k++) pl_doc_real(d, numbers[k](r));
    pl_doc_real(d, r->quantile[1]);
    pl_doc_real(d, r->quantile[3]);
    pl_doc_key_real(d, "mse", r->mse);
    pl_doc_key_real(d, "mape", r->mape);
    pl_doc_key_real(d, "mean_error", r->mean_error);
    pl_doc_key_real(d, "std_error", r->std_error);
    pl_doc_object(d, "absolute_error");
    for (int k = 0; k < 5; k++) pl_doc_key_real(d, quantiles[k], r->quantile[k]);
    pl_doc_object_end(d);
    pl_doc_row_end(d);
}

/* ---- mean and population standard deviation over the folds ---- */

typedef struct spread {
    double mean, std;
    uint32_t folds;
} spread;

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

static void show_spread(const pl_regression_report *p, bool std, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_SHOWN | (std ? 0 : PL_DOC_TOTAL));
    pl_doc_words(d, std ? "± over the folds" : "mean of the folds");
    pl_doc_blank(d);
    pl_doc_blank(d);
    for (int k = 0; k < NUMBERS_SHOWN; k++) {
        const spread s = spread_of(p, numbers[k]);
        pl_doc_real(d, std ? s.std : s.mean);
    }
    pl_doc_row_end(d);
}

static void add_spread(const pl_regression_report *p, pl_doc *d)
{
    pl_doc_object(d, "folds");
    pl_doc_key_count(d, "count", spread_of(p, mae_of).folds);
    for (int k = 0; k < NUMBERS; k++) {
        const spread s = spread_of(p, numbers[k]);
        pl_doc_object(d, keys[k]);
        pl_doc_key_real(d, "mean", s.mean);
        pl_doc_key_real(d, "std", s.std);
        pl_doc_object_end(d);
    }
    pl_doc_object_end(d);
}

static void add_table(const pl_regression_report *p, pl_doc *d)
{
    pl_doc_section(d, "What was held out");
    pl_doc_table(d, "trainings", columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < p->rows; i++) add_row(&p->row[i], d);
    if (spread_of(p, mae_of).folds > 1) show_spread(p, false, d), show_spread(p, true, d);
    pl_doc_table_end(d);
    pl_doc_say(
        d, 0,
        "Each training is judged by samples that it never saw, in %s. share: MAE over that of who always says the "
        "mean of the labels trained on; below 1 the model has learnt something.",
        p->unit);
    pl_doc_section_end(d);
}

/* ---- predicted against true ---- */

typedef struct panel {
    const pl_regression_row *row;
    double low, range; /* one scale for all, so that panels can be compared */
} panel;

static panel find_range(const pl_regression_report *p)
{
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < p->rows; i++)
        for (uint64_t k = 0; k < p->row[i].count; k++) {
            const double both[] = {p->row[i].truth[k], p->row[i].predicted[k]};
            for (int n = 0; n < 2; n++)
                if (isfinite(both[n])) low = fmin(low, both[n]), high = fmax(high, both[n]);
        }
    return low < high ? (panel){NULL, low, high - low} : (panel){NULL, isfinite(low) ? low - 1 : 0, 2};
}

static pl_chart_point point_of(const void *of, uint64_t i)
{
    const panel *p = of;
    return (pl_chart_point){(p->row->truth[i] - p->low) / p->range, (p->row->predicted[i] - p->low) / p->range, 0};
}

static void draw_panels(const pl_regression_report *p, pl_str *out)
{
    static const char *const class_name[] = {"weight"};
    panel of = find_range(p);
    char name[TEXT], caption[TEXT];
    pl_print(caption, sizeof caption, "→ true, ↑ predicted: %.2f to %.2f %s", of.low, of.low + of.range, p->unit);
    pl_chart_panels_begin(out);
    for (uint32_t i = 0; i < p->rows; i++) {
        const pl_regression_row *r = of.row = &p->row[i];
        snprintf(name, sizeof name, "predicted against true, %.60s", r->name);
        pl_chart_draw_points(&(pl_chart_points){.name = name,
                                                .title = r->name,
                                                .caption = caption,
                                                .at = point_of,
                                                .of = &of,
                                                .count = r->count,
                                                .every = r->count / POINTS_MAX + 1,
                                                .class_name = class_name,
                                                .sets = 1,
                                                .diagonal = true},
                             out);
    }
    pl_chart_panels_end(out);
}

static void add_pictures(const pl_regression_report *p, pl_doc *d)
{
    pl_doc_section_drawn(d, "Predicted against true");
    pl_doc_say(d, 0, "A point for each sample; on the dashed line a prediction is right.");
    draw_panels(p, pl_doc_drawing(d));
    pl_doc_drawing_end(d);
    pl_doc_section_end(d);
}

/* ---- all of it ---- */

static void add_cards(const pl_regression_report *p, pl_doc *d)
{
    char number[TEXT];
    const spread mae = spread_of(p, mae_of), share = spread_of(p, share_of);
    if (!mae.folds) return;
    pl_print(number, sizeof number, "%.3f %s", mae.mean, p->unit);
    pl_doc_card(d, number, "MAE, mean of %u fold%s", mae.folds, pl_plural(mae.folds));
    pl_print(number, sizeof number, "%.2f", share.mean);
    pl_doc_card(d, number, "of the error of who always says the mean");
}

void pl_regression_add(const pl_regression_report *p, pl_doc *d)
{
    pl_doc_title(d, NULL, "results", p->title);
    pl_doc_key_words(d, "schema", "plimsoll.regression/1");
    pl_doc_key_words(d, "unit", p->unit);
    pl_trainings_add_done(d, p->rows, p->stages);
    add_cards(p, d);
    add_table(p, d);
    add_spread(p, d);
    add_pictures(p, d);
}
