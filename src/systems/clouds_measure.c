#include "systems/clouds_measure.h"

#include <stdio.h>

#include "data/clouds/clouds_data.h"
#include "data/clouds/predictions.h"
#include "data/clouds/scores.h"

/* Heights in km, as they were before they were scaled. */
typedef struct judged {
    const pl_clouds_data *data;
    const float *prediction;
} judged;

/* Rows behind the last sample are padding. */
static uint64_t count_of(const pl_clouds_data *d, uint64_t rows)
{
    const uint64_t samples = pl_clouds_data_count(d, PL_PART_VALIDATION);
    return rows < samples ? rows : samples;
}

static double predicted_km(const judged *j, uint64_t i)
{
    return pl_unscale(pl_clouds_data_heights(j->data), (double)j->prediction[i]);
}

static pl_scored pair_at(const void *context, uint64_t i)
{
    const judged *j = context;
    return (pl_scored){pl_clouds_data_seen(j->data, i).height_km, predicted_km(j, i)};
}

size_t pl_clouds_measure(const pl_data *data, const pl_predicted *predicted, pl_loss_metric *to)
{
    static const char *const quantile[PL_SCORE_QUANTILES][2] = {{"error_q25_km", "25 % of |e|"},
                                                                {"error_q50_km", "50 % of |e|"},
                                                                {"error_q75_km", "75 % of |e|"},
                                                                {"error_q90_km", "90 % of |e|"},
                                                                {"error_q95_km", "95 % of |e|"}};
    enum { FILE = PL_METRIC_IN_FILE, SHOWN = PL_METRIC_IN_FILE | PL_METRIC_VALIDATED };
    const judged j = {pl_clouds_data_of(data), predicted->row};
    const pl_scores s = pl_score(pair_at, &j, count_of(j.data, predicted->count));
    size_t n = 0;
    to[n++] = (pl_loss_metric){"mae_km", "MAE, km", "MAE km", 4, 3, SHOWN, s.mae};
    to[n++] = (pl_loss_metric){"rmse_km", "RMSE, km", "RMSE km", 4, 3, SHOWN, s.rmse};
    to[n++] = (pl_loss_metric){"mse_km2", "MSE, km2", "MSE km2", 4, 3, FILE, s.mse};
    to[n++] = (pl_loss_metric){"r2", "R2", "R2", 4, 3, SHOWN, s.r2};
    to[n++] = (pl_loss_metric){"mape", "MAPE", "MAPE", 4, 3, FILE, s.mape};
    to[n++] = (pl_loss_metric){"mean_error_km", "mean error", "mean error", 4, 3, FILE, s.mean_error};
    to[n++] = (pl_loss_metric){"std_error_km", "its std", "std", 4, 3, FILE, s.std_error};
    for (int k = 0; k < PL_SCORE_QUANTILES; k++)
        to[n++] = (pl_loss_metric){quantile[k][0], quantile[k][1], quantile[k][1], 4, 3, FILE, s.quantile[k]};
    to[n++] = (pl_loss_metric){"conformal_90_km", "conformal 90 %", "conformal", 4, 3, FILE, s.conformal};
    return n;
}

static void line_at(const void *context, uint64_t i, pl_prediction *p)
{
    const judged *j = context;
    const pl_clouds_seen seen = pl_clouds_data_seen(j->data, i);
    *p = (pl_prediction){.frame = seen.frame,
                         .seconds = seen.seconds,
                         .truth = seen.height_km,
                         .predicted = predicted_km(j, i),
                         .mean = pl_clouds_data_heights(j->data)->mean};
    snprintf(p->flight, sizeof p->flight, "%s", seen.flight);
}

pl_status pl_clouds_keep_predictions(const pl_data *data, const float *predictions, uint64_t count, const char *path,
                                     pl_error *err)
{
    const judged j = {pl_clouds_data_of(data), predictions};
    return pl_predictions_write(path, line_at, &j, count_of(j.data, count), err);
}
