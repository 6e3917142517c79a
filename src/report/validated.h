/* The results of a run's validations, as curves by step, read from the lines of its metrics.jsonl. */
#ifndef PL_REPORT_VALIDATED_H
#define PL_REPORT_VALIDATED_H

#include "show/chart.h"
#include "show/doc.h"

/* Each chart (the last has no title; NULL: none) for whose first curve some line has a number. A line that cannot be
 * read is skipped: the last one of a killed run may be torn. PL_E_NOMEM. */
pl_status pl_report_add_validated(const char *lines, size_t bytes, const pl_metric_chart *, pl_doc *, pl_error *);

#endif
