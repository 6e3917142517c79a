/* Parts of the page about capsules (systems/capsules_page.c), as plain values. Its frame, cards and tables of facts are
 * those of html_rollout.h. Words and texts are escaped. */
#ifndef PL_REPORT_HTML_CAPSULES_H
#define PL_REPORT_HTML_CAPSULES_H

#include "report/html.h"

/* A text, as far as it is shown. */
typedef struct pl_html_said {
    uint64_t number;
    const char *text; /* NULL: it is not known */
    size_t bytes;
    bool is_cut; /* there is more of it */
} pl_html_said;

/* Its page: a grey PNG; NULL: it was not drawn. */
typedef struct pl_html_drawn {
    pl_html_said of;
    const void *png;
    size_t png_bytes;
    const char *words; /* below the text */
} pl_html_drawn;

void pl_html_drawn_begin(pl_str *);
void pl_html_drawn_page(const pl_html_drawn *, pl_str *);
void pl_html_drawn_end(pl_str *);

typedef struct pl_html_near {
    pl_html_said of;
    double cosine;
} pl_html_near;

/* The nearest first. */
void pl_html_neighbours(const pl_html_said *, const pl_html_near *, size_t count, pl_str *);

/* Counts of values in `bins` equal steps from low to high. */
typedef struct pl_html_histogram {
    const char *title, *words;
    double low, high;
    const uint64_t *count;
    unsigned bins;
} pl_html_histogram;

void pl_html_histogram_chart(const pl_html_histogram *, pl_str *);

/* Of pages of `all` texts: how many, and the numbers of the first few. */
typedef struct pl_html_remark {
    const char *words; /* "are longer than a page" */
    uint64_t count, all;
    const uint64_t *first;
    unsigned shown;
} pl_html_remark;

void pl_html_remarks_begin(pl_str *);
void pl_html_remark_row(const pl_html_remark *, pl_str *);
void pl_html_remarks_end(pl_str *);

#endif
