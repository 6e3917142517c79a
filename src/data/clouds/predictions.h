/* The file of predictions: a line for each held-out sample, for people, spreadsheets and our own table.
 *
 *     flight,frame,seconds,true_km,predicted_km,mean_km
 *     12Feb25,118,1739379600.5,0.8125,0.79003,1.0417
 *
 * mean_km is the mean predictor's answer: the mean height of the labels that were trained on. Samples without a flight
 * have neither times nor a unit:
 *
 *     item,true,predicted,mean
 *     17,0.8125,0.79003,1.0417 */
#ifndef PL_DATA_PREDICTIONS_H
#define PL_DATA_PREDICTIONS_H

#include <stdbool.h>

#include "base/file.h"

enum { PL_PREDICTION_NAME_BYTES = 32 };

typedef struct pl_prediction {
    char flight[PL_PREDICTION_NAME_BYTES]; /* "": none, and frame is the sample's number */
    uint64_t frame;
    double seconds, truth, predicted, mean; /* since 1970; km */
} pl_prediction;

/* The caller supplies line i of `count`. The file is whole or not there. Asks for no memory. */
pl_status pl_predictions_write(const char *path, bool of_flights,
                               void (*at)(const void *context, uint64_t i, pl_prediction *), const void *context,
                               uint64_t count, pl_error *);
/* All lines of flights' samples, in a block for pl_free. PL_E_DATA naming a line that is not one. */
pl_status pl_predictions_read(const char *path, pl_prediction **, uint64_t *count, pl_error *);

#endif
