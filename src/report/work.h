/* All of the work that a plan's command does in groups: the plan of the largest one carries it. */
#ifndef PL_REPORT_WORK_H
#define PL_REPORT_WORK_H

#include "base/json.h"
#include "base/str.h"
#include "base/words.h"
#include "plan/work.h"

void pl_report_work(const pl_work *, const pl_words *, pl_str *out);
void pl_report_work_html(const pl_work *, const pl_words *, pl_str *out); /* a section of a page */
void pl_report_work_json(const pl_work *, pl_json *);

#endif
