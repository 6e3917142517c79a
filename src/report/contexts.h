/* A pretrained model in contexts of several lengths (plan/contexts.h). */
#ifndef PL_REPORT_CONTEXTS_H
#define PL_REPORT_CONTEXTS_H

#include "plan/plan.h"
#include "show/doc.h"

/* For a plan that has them: a section; to programs an object "contexts". */
void pl_report_add_contexts(const pl_plan *, pl_doc *);

#endif
