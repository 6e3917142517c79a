/* All of the work that a plan's command does in groups: the plan of the largest one carries it. */
#ifndef PL_REPORT_WORK_H
#define PL_REPORT_WORK_H

#include "base/words.h"
#include "plan/work.h"
#include "show/doc.h"

/* A section; to programs an object "work". */
void pl_report_add_work(const pl_work *, const pl_words *, pl_doc *);

#endif
