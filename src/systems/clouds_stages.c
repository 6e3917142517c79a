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

static bool pretrains(const pl_config *c) { return c->clouds.pretrain && c->clouds.pretrain_flight[0]; }
static bool makes_final(const pl_config *c) { return c->clouds.final && c->clouds.validation_flight[0]; }

bool pl_clouds_name_stage(const pl_config *c, uint32_t k, char name[PL_STAGE_NAME_BYTES])
{
    const uint32_t pretrain = pretrains(c), before = pretrain + makes_final(c);
    if (c->clouds.stage[0]) return false; /* it is one of them */
    if (k < before) {
        snprintf(name, PL_STAGE_NAME_BYTES, "%s", k < pretrain ? PL_CLOUDS_PRETRAIN : PL_CLOUDS_FINAL);
        return true;
    }
    if (!c->clouds.loo || k - before >= c->clouds.flights.count) return false;
    snprintf(name, PL_STAGE_NAME_BYTES, PL_CLOUDS_LOO "%s", c->clouds.flights.item[k - before].name);
    return true;
}

void pl_clouds_stage_of(const pl_config *c, char name[PL_STAGE_NAME_BYTES])
{
    name[0] = 0;
    if (c->clouds.stage[0])
        snprintf(name, PL_STAGE_NAME_BYTES, "%s", c->clouds.stage);
    else
        (void)pl_clouds_name_stage(c, 0, name);
}

/* ---- one of them ---- */

/* The final training begins with the weights of the pre-training. A fold begins with none: those weights have seen the
 * flight that it leaves out. */
static pl_status take_weights(pl_config *c, const char *out, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    if (!pretrains(c) || c->train.init_from[0]) return PL_OK;
    PL_TRY(pl_path_join(folder, sizeof folder, out, PL_CLOUDS_PRETRAIN, err));
    return pl_config_set(c, "train.init_from", folder, "the pre-training", err);
}

pl_status pl_clouds_take_stage(pl_config *c, uint32_t k, pl_error *err)
{
    char name[PL_STAGE_NAME_BYTES], out[PL_FILE_PATH_MAX];
    if (!pl_clouds_name_stage(c, k, name)) return pl_fail(err, PL_E_INTERNAL, "there is no training %u", k);
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    if (!c->clouds.cache[0]) PL_TRY(pl_config_set(c, "cache", out, "the folder of all trainings", err));
    if (strcmp(name, PL_CLOUDS_FINAL) == 0) PL_TRY(take_weights(c, out, err));
    return pl_config_set(c, "stage", name, "the training that is next", err);
}

/* ---- what they have brought ---- */

typedef struct results {
    pl_regression_row *row;
    pl_prediction **prediction; /* of each row */
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
    char name[PL_STAGE_NAME_BYTES];
    while (pl_clouds_name_stage(c, count, name)) count++;
    return count;
}

static pl_status read_results(const pl_config *c, const char *out, results *r, pl_error *err)
{
    const uint32_t stages = count_stages(c);
    char name[PL_STAGE_NAME_BYTES];
    r->row = pl_alloc(stages + 1, sizeof *r->row);
    r->prediction = pl_alloc(stages + 1, sizeof *r->prediction);
    r->name = pl_alloc(stages + 1, sizeof *r->name);
    r->held_out = pl_alloc(stages + 1, sizeof *r->held_out);
    if (!r->row || !r->prediction || !r->name || !r->held_out)
        return pl_fail(err, PL_E_NOMEM, "no memory for the table");
    for (uint32_t k = 0; pl_clouds_name_stage(c, k, name); k++) PL_TRY(read_row(out, name, r, err));
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
