/* What is read off predictions of cloud heights, and the file that keeps them. */
#ifndef PL_SYSTEMS_CLOUDS_MEASURE_H
#define PL_SYSTEMS_CLOUDS_MEASURE_H

#include "base/predicted.h"
#include "plimsoll/run.h"
#include "stream/data.h"

size_t pl_clouds_measure(const pl_data *, const pl_predicted *, pl_loss_metric *);
pl_status pl_clouds_keep_predictions(const pl_data *, const float *predictions, uint64_t count, const char *path,
                                     pl_error *);

#endif
