/* A curve in characters: columns of eighths of a line, over time or over bytes.
 *
 *     412 MB |        ▂█▆
 *            |  ▃▅▇█████████▁
 *            +---------------
 *             0 s        12 s
 */
#ifndef PL_REPORT_PLOT_H
#define PL_REPORT_PLOT_H

#include "base/str.h"

enum { PL_PLOT_COLUMNS_MAX = 200 };

typedef struct pl_plot {
    const double *column; /* [columns] from 0 to most; negative: nothing there */
    unsigned columns, height;
    double most;                             /* the top line's end */
    const char *top, *bottom, *left, *right; /* what stands at the ends of the axes */
} pl_plot;

/* Columns that fit `width` characters of a line: 0 when that is too narrow for a plot. */
unsigned pl_plot_columns(unsigned width);
void pl_plot_write(const pl_plot *, pl_str *out);

#endif
