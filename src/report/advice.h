/* What a plan advises on its work (plan/advice.h): in text a piece a heading, a section of a page, an object. */
#ifndef PL_REPORT_ADVICE_H
#define PL_REPORT_ADVICE_H

#include "base/json.h"
#include "base/str.h"
#include "plan/plan.h"

void pl_report_stages(const pl_advice *, const pl_words *, pl_str *out);
void pl_report_changes(const pl_plan *, pl_str *out); /* of a plan that has advice */
void pl_report_risks(const pl_advice *, pl_str *out);
void pl_report_advice_html(const pl_plan *, pl_str *out); /* likewise */
void pl_report_advice_json(const pl_advice *, pl_json *);

#endif
