/* Parts of the page. Each writes one section, or nothing when there is nothing to show. */
#ifndef PL_REPORT_HTML_H
#define PL_REPORT_HTML_H

#include "report/account.h"
#include "report/report.h"

extern const char pl_html_style[]; /* html_style.c */

/* ---- html.c ---- */
/* Escaped for text and attributes; bytes that are no UTF-8 and control characters become U+FFFD. */
void pl_html_text(pl_str *, const char *text);
void pl_html_text_bytes(pl_str *, const char *text, size_t bytes);
/* The next of 1, 2, 5 × 10^k that cuts the range into at most `ticks` + 1 pieces. */
double pl_html_tick(double range, int ticks);
const char *pl_html_role_class(pl_role);
const char *pl_html_group_class(pl_report_group);

/* ---- html_frame.c: texts are escaped, unless they are said to be ours ---- */
typedef struct pl_html_page {
    const char *title;
    const char *what;        /* "plan": what the page is of it; ours */
    const char *before;      /* stands before the title in the heading; ours; NULL: nothing */
    void (*style)(pl_str *); /* adds to the style sheet; NULL: nothing */
} pl_html_page;

void pl_html_page_begin(const pl_html_page *, pl_str *); /* as far as the heading */
void pl_html_page_end(pl_str *);
void pl_html_cards_begin(pl_str *);
void pl_html_card(const char *number, const char *words, pl_str *);
void pl_html_cards_end(pl_str *);
void pl_html_section(const char *title, const char *words, pl_str *); /* ends with </section> */
void pl_html_fact(const char *name, const char *value, pl_str *);     /* a row of a table */
/* A number of a table of class labels: where the window is too narrow for columns, its label (ours) stands beside
 * it. */
void pl_html_cell(const char *label, const char *text, pl_str *);
void pl_html_cell_count(const char *label, uint64_t number, pl_str *);

/* ---- html_base64.c ---- */
typedef struct pl_base64 {
    pl_str *out;
    uint32_t bits;
    int bytes; /* of the three that become four letters */
} pl_base64;
void pl_base64_put(pl_base64 *, unsigned byte);
void pl_base64_end(pl_base64 *);

/* ---- html_arena.c ---- */
void pl_html_arena(const pl_plan *, const pl_report_account *, uint64_t budget_bytes, pl_str *);
/* ---- html_timeline.c: one pass through the nodes of the program that is trained ---- */
void pl_html_timeline(const pl_plan *, pl_str *);
/* ---- html_curve.c ---- */
typedef struct pl_html_curve {
    const pl_report_point *point;
    size_t count;
    const char *line, *mark, *name; /* classes of the line and of its mark in the legend; its name there */
    bool dots;
} pl_html_curve;

/* Texts are constants of ours: they are not escaped. */
typedef struct pl_html_chart {
    const char *title, *unit, *axis;
    double least_tick;      /* of the axis */
    bool from_zero;         /* the values' axis */
    double mark;            /* along the axis, a line across */
    const char *mark_words; /* what stands at it; NULL: no line */
    const pl_html_curve *curve;
    size_t count;
} pl_html_chart;

void pl_html_curves(const pl_html_chart *, pl_str *); /* nothing when no point is finite */

/* ---- html_charts.c ---- */
void pl_html_components(const pl_report_components *, pl_str *);
void pl_html_losses(const pl_report_run *, const pl_words *, pl_str *);
/* ---- html_tables.c ---- */
void pl_html_ledger(const pl_plan *, const pl_report_account *, uint64_t budget_bytes, pl_str *);
void pl_html_measured(const pl_process_planned *, const pl_memory_measured *, pl_str *);
void pl_html_programs(const pl_plan *, const pl_report_programs *, pl_str *);
void pl_html_alive(const pl_plan *, const pl_report_alive *, size_t count, size_t shown, pl_str *);

#endif
