/* The document about a plan: what text, JSON and page of it all show. */
#ifndef PL_REPORT_PLAN_H
#define PL_REPORT_PLAN_H

#include "report/account.h"
#include "report/report.h"
#include "show/doc.h"

typedef struct pl_report_page {
    const pl_plan *plan;
    const pl_report_run *run;         /* NULL: the plan alone */
    const pl_report_options *options; /* never NULL */
    pl_report_account account;        /* filled by pl_report_add_plan */
} pl_report_page;

/* All of it, and to programs the members of schema "plimsoll.plan/1" but for the graph. The page outlives the document:
 * pictures are drawn when it is rendered. */
pl_status pl_report_add_plan(pl_report_page *, pl_doc *, pl_error *);

/* ---- plan_tables.c: bytes and times by component, by program, by operator; the peak ---- */
pl_status pl_report_add_tables(const pl_report_page *, pl_doc *, pl_error *);

#endif
