/* What a plan advises on its work (plan/advice.h): what bounds it, what would change that, risks. */
#ifndef PL_REPORT_ADVICE_H
#define PL_REPORT_ADVICE_H

#include "plan/plan.h"
#include "show/doc.h"

/* For a plan that has advice: three sections; to programs an object "advice". */
void pl_report_add_advice(const pl_plan *, pl_doc *);

#endif
