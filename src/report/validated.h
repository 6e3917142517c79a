/* What the validations of a run told of gates and of a planner's ways, as curves by step: read from the lines of its
 * metrics.jsonl, which has such numbers where the model has such parts. */
#ifndef PL_REPORT_VALIDATED_H
#define PL_REPORT_VALIDATED_H

#include "show/doc.h"

/* A chart each, nothing where no line has such a number. A line that is none is passed over (the last one
 * of a run that was killed may be torn). PL_E_NOMEM. */
pl_status pl_report_add_validated(const char *lines, size_t bytes, pl_doc *, pl_error *);

#endif
