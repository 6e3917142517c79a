/* Pieces of pages: escaping, the frame of a page, curves, files inside of a page. */
#ifndef PL_SHOW_HTML_H
#define PL_SHOW_HTML_H

#include <stdbool.h>

#include "base/str.h"

/* ---- html_text.c ---- */
/* Escaped for text and attributes; bytes that are no UTF-8 and control characters become U+FFFD. */
void pl_html_text(pl_str *, const char *text);
void pl_html_text_bytes(pl_str *, const char *text, size_t bytes);
void pl_html_lines(pl_str *, const char *text); /* with its ends of lines, but for those at the end */
/* The next of 1, 2, 5 × 10^k that cuts the range into at most `ticks` + 1 pieces. */
double pl_html_tick(double range, int ticks);
/* The number at a tick of an axis: with as many digits as tell it from its neighbours, no two of which look alike. */
const char *pl_html_tick_text(double value, double step, char text[32]);

/* ---- style.css, explore.js: made into C by the build ---- */
extern const char pl_html_style[], pl_html_explore[];

/* ---- html_frame.c: texts are escaped, unless they are said to be ours ---- */
typedef struct pl_html_page {
    const char *title;
    const char *what;   /* "plan": what the page is of it; ours */
    const char *before; /* stands before the title in the heading; ours; NULL: nothing */
} pl_html_page;

void pl_html_page_begin(const pl_html_page *, pl_str *); /* as far as the heading */
void pl_html_page_end(bool explored, pl_str *); /* with the script for pictures that can be explored */

/* ---- html_base64.c ---- */
typedef struct pl_base64 {
    pl_str *out;
    uint32_t bits;
    int bytes; /* of the three that become four letters */
} pl_base64;
void pl_base64_put(pl_base64 *, unsigned byte);
void pl_base64_end(pl_base64 *);

/* ---- html_curve.c ---- */
typedef struct pl_curve_point {
    double step, value;
} pl_curve_point;

typedef struct pl_html_curve {
    const pl_curve_point *point;
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

/* In a section of its own, or in one that is open; nothing when no point is finite. */
void pl_html_curves(const pl_html_chart *, pl_str *);
void pl_html_draw_curves(const pl_html_chart *, pl_str *);

#endif
