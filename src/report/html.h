/* Parts of the page. Each writes one section, or nothing when there is nothing to show. */
#ifndef PL_REPORT_HTML_H
#define PL_REPORT_HTML_H

#include "report/account.h"
#include "report/report.h"
#include "show/html.h"

/* ---- html_arena.c ---- */
void pl_html_arena(const pl_plan *, uint64_t budget_bytes, pl_str *); /* within a section */
/* ---- html_timeline.c: one pass through the nodes of the program that is trained ---- */
void pl_html_timeline(const pl_plan *, pl_str *);

#endif
