/* What a person and a program read about a plan and a run: text, JSON, and one HTML page.
 *
 *   before the run   pl_report_plan, pl_report_plan_json       every byte by category, component, program; the peak;
 *                                                              the map
 *   after it         pl_report_ledger, pl_report_ledger_json   planned and measured side by side, and the verdict
 *   either           pl_report_html                            the same as pictures, with the run's losses
 *
 * Nothing is sized here a second time: a report walks the plan's blocks and the ledger's rows. Every table adds up to
 * the byte: roles at the peak + alignment + placement gap + rounding = arena; arena + other rows = resident; resident +
 * page tables + kernel + writers' cache = charged (tests/unit/report). Predicted and measured never share a column. */
#ifndef PL_REPORT_REPORT_H
#define PL_REPORT_REPORT_H

#include "base/json.h"
#include "plan/plan.h"
#include "show/doc.h"
#include "show/html.h"

#define PL_REPORT_NO_BUDGET UINT64_MAX

typedef struct pl_report_options {
    const char *title;     /* of the HTML page and the JSON ("config.yaml"); NULL: none */
    unsigned width;        /* columns of a line of text; 0: 80, and no map */
    unsigned height;       /* rows of the arena map; 0: no map */
    unsigned scope_depth;  /* components are told apart down to so many parts of the scope path; at least 1 */
    unsigned values;       /* so many of the largest values at the peak are listed */
    uint64_t budget_bytes; /* a line in the HTML page, a row in the text; PL_REPORT_NO_BUDGET: none */
    bool color;            /* ANSI colours in text */
    bool is_short;         /* text: one screen */
} pl_report_options;

/* 80 columns, 24 rows, depth 1, 12 values, no budget, no colour. */
pl_report_options pl_report_options_default(void);

/* ---- plan.c, json.c: of a plan; options NULL: the defaults. PL_E_NOMEM when memory is refused. ---- */
pl_status pl_report_plan(const pl_plan *, const pl_report_options *, pl_str *out, pl_error *);
/* Schema "plimsoll.plan/1", docs/plan-json.md. */
pl_status pl_report_plan_json(const pl_plan *, const pl_report_options *, pl_str *out, pl_error *);

/* ---- ledger.c: planned against measured. No heap: may be called after "committed" with documents and strings of fixed
 * memory; so many bytes are enough for the fullest table there can be, of each; about 2 kB of stack. ---- */
enum {
    PL_REPORT_LEDGER_DOC_BYTES = 112 << 10,
    PL_REPORT_LEDGER_BYTES = 40 << 10,
    PL_REPORT_LEDGER_JSON_BYTES = 160 << 10
};

typedef struct pl_report_verdict {
    bool as_planned;                        /* |measured − planned| ≤ allowed */
    uint64_t planned_bytes, measured_bytes; /* resident; measured: all rows and what is unexplained */
    uint64_t allowed_bytes;                 /* the larger of 1 % of planned and 1 MB */
    uint64_t unexplained_bytes;             /* part of measured */
    int64_t difference_bytes;               /* measured − planned */
    bool peak_as_planned;                   /* VmHWM ≤ planned + allowed */
    /* The row that differs most (or what is unexplained: kind PL_MEMORY_OTHER); NULL name: none differs. */
    pl_memory_kind worst_kind;
    const char *worst_name; /* in planned or measured */
    int64_t worst_difference_bytes;
} pl_report_verdict;

pl_report_verdict pl_report_judge(const pl_process_planned *, const pl_memory_measured *);
/* Rows, what is unexplained, and the verdict. Schema "plimsoll.ledger/1", docs/plan-json.md. */
void pl_report_ledger(const pl_process_planned *, const pl_memory_measured *, pl_doc *);

/* ---- one self-contained page: no fonts, no links outwards; nothing on it needs its script (show/explore.js) ---- */
/* A run that has ended (or is under way). What is absent is NULL or 0 and gets no place on the page. */
typedef struct pl_report_run {
    const pl_memory_measured *measured;
    const pl_curve_point *training, *validation; /* losses, by step */
    size_t training_count, validation_count;
    uint64_t steps;
    double seconds;      /* of the steps, measured */
    const char *verdict; /* a sentence of the caller's, such as why it ended; NULL: none */
} pl_report_run;

/* run NULL: the plan alone. */
pl_status pl_report_html(const pl_plan *, const pl_report_run *run, const pl_report_options *, pl_str *out, pl_error *);

#endif
