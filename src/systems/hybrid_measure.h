/* What is read off the predictions of arch hybrid (base/told.h). */
#ifndef PL_SYSTEMS_HYBRID_MEASURE_H
#define PL_SYSTEMS_HYBRID_MEASURE_H

#include "base/predicted.h"
#include "plimsoll/run.h"
#include "show/chart.h"
#include "stream/data.h"

size_t pl_hybrid_measure(const pl_data *, const pl_predicted *, pl_loss_metric *);
/* A line for each page (data/pages/read_pages.h). */
pl_status pl_hybrid_keep_predictions(const pl_data *, const float *predictions, uint64_t count, const char *path,
                                     pl_error *);

/* hybrid_page_charts.c: its metrics as charts. */
extern const pl_metric_chart pl_hybrid_charts[];

#endif
