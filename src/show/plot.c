#include "show/plot.h"

#include <math.h>
#include <string.h>

enum { LABEL = 9, COLUMNS_MIN = 18 };

unsigned pl_plot_columns(unsigned width)
{
    if (width < LABEL + 2 + COLUMNS_MIN) return 0;
    return width - LABEL - 2 > PL_PLOT_COLUMNS_MAX ? PL_PLOT_COLUMNS_MAX : width - LABEL - 2;
}

void pl_plot_write(const pl_plot *p, pl_str *out)
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    for (unsigned line = p->height; line-- > 0;) {
        pl_str_printf(out, "%*s |", LABEL, line + 1 == p->height ? p->top : "");
        for (unsigned x = 0; x < p->columns; x++) {
            double filled = p->column[x] / p->most * p->height * 8 - 8.0 * line;
            pl_str_append(out, eighths[filled <= 0 ? 0 : filled >= 8 ? 8 : (int)ceil(filled)]);
        }
        pl_str_append(out, "\n");
    }
    pl_str_printf(out, "%*s +", LABEL, p->bottom);
    pl_str_pad(out, '-', p->columns);
    int gap = (int)p->columns - (int)strlen(p->left);
    pl_str_printf(out, "\n%*s  %s%*s\n", LABEL, "", p->left, gap > 0 ? gap : 0, p->right);
}
