#include "systems/clouds_measure.h"

#include <stdio.h>

#include "data/clouds/predictions.h"
#include "data/clouds/scores.h"

/* In the unit of the labels, as they were before they were scaled. */
typedef struct judged {
    const pl_data *data;
    const float *prediction;
} judged;

static const pl_labels *labels_of(const judged *j) { return j->data->kind->labels; }

/* Rows after the last sample are padding. */
static uint64_t count_of(const judged *j, uint64_t rows)
{
    const uint64_t samples = labels_of(j)->count(j->data);
    return rows < samples ? rows : samples;
}

static double predicted_at(const judged *j, uint64_t i)
{
    return pl_unscale(labels_of(j)->scaler(j->data), (double)j->prediction[i]);
}

static pl_scored pair_at(const void *context, uint64_t i)
{
    const judged *j = context;
    return (pl_scored){labels_of(j)->at(j->data, i).truth, predicted_at(j, i)};
}

typedef struct metric {
    const char *key, *words, *brief;
    int uses;
} metric;

enum { FILE_ALONE = PL_METRIC_IN_FILE, SHOWN = PL_METRIC_IN_FILE | PL_METRIC_VALIDATED, OWN = 7 };
enum { METRICS = OWN + PL_SCORE_QUANTILES + 1 };

static const metric of_km[METRICS] = {{"mae_km", "MAE, km", "MAE km", SHOWN},
                                      {"rmse_km", "RMSE, km", "RMSE km", SHOWN},
                                      {"mse_km2", "MSE, km2", "MSE km2", FILE_ALONE},
                                      {"r2", "R2", "R2", SHOWN},
                                      {"mape", "MAPE", "MAPE", FILE_ALONE},
                                      {"mean_error_km", "mean error", "mean error", FILE_ALONE},
                                      {"std_error_km", "its std", "std", FILE_ALONE},
                                      {"error_q25_km", "25 % of |e|", "25 % of |e|", FILE_ALONE},
                                      {"error_q50_km", "50 % of |e|", "50 % of |e|", FILE_ALONE},
                                      {"error_q75_km", "75 % of |e|", "75 % of |e|", FILE_ALONE},
                                      {"error_q90_km", "90 % of |e|", "90 % of |e|", FILE_ALONE},
                                      {"error_q95_km", "95 % of |e|", "95 % of |e|", FILE_ALONE},
                                      {"conformal_90_km", "conformal 90 %", "conformal", FILE_ALONE}};
static const metric without_unit[METRICS] = {{"mae", "MAE", "MAE", SHOWN},
                                             {"rmse", "RMSE", "RMSE", SHOWN},
                                             {"mse", "MSE", "MSE", FILE_ALONE},
                                             {"r2", "R2", "R2", SHOWN},
                                             {"mape", "MAPE", "MAPE", FILE_ALONE},
                                             {"mean_error", "mean error", "mean error", FILE_ALONE},
                                             {"std_error", "its std", "std", FILE_ALONE},
                                             {"error_q25", "25 % of |e|", "25 % of |e|", FILE_ALONE},
                                             {"error_q50", "50 % of |e|", "50 % of |e|", FILE_ALONE},
                                             {"error_q75", "75 % of |e|", "75 % of |e|", FILE_ALONE},
                                             {"error_q90", "90 % of |e|", "90 % of |e|", FILE_ALONE},
                                             {"error_q95", "95 % of |e|", "95 % of |e|", FILE_ALONE},
                                             {"conformal_90", "conformal 90 %", "conformal", FILE_ALONE}};

size_t pl_clouds_measure(const pl_data *data, const pl_predicted *predicted, pl_loss_metric *to)
{
    const judged j = {data, predicted->row};
    const pl_scores s = pl_score(pair_at, &j, count_of(&j, predicted->count));
    const metric *m = labels_of(&j)->unit ? of_km : without_unit;
    double value[METRICS] = {s.mae, s.rmse, s.mse, s.r2, s.mape, s.mean_error, s.std_error};
    for (int k = 0; k < PL_SCORE_QUANTILES; k++) value[OWN + k] = s.quantile[k];
    value[METRICS - 1] = s.conformal;
    for (int k = 0; k < METRICS; k++)
        to[k] = (pl_loss_metric){m[k].key, m[k].words, m[k].brief, 4, 3, m[k].uses, value[k]};
    return METRICS;
}

static void line_at(const void *context, uint64_t i, pl_prediction *p)
{
    const judged *j = context;
    const pl_label l = labels_of(j)->at(j->data, i);
    *p = (pl_prediction){.frame = l.item,
                         .seconds = l.seconds,
                         .truth = l.truth,
                         .predicted = predicted_at(j, i),
                         .mean = labels_of(j)->scaler(j->data)->mean};
    snprintf(p->flight, sizeof p->flight, "%s", l.group ? l.group : "");
}

pl_status pl_clouds_keep_predictions(const pl_data *data, const float *predictions, uint64_t count, const char *path,
                                     pl_error *err)
{
    const judged j = {data, predictions};
    return pl_predictions_write(path, labels_of(&j)->unit != NULL, line_at, &j, count_of(&j, count), err);
}
