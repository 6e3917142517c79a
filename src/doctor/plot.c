/* Memory over time in characters: a column holds the largest of its samples, in eighths of a line.
 *
 *     412 MB |        ▂█▆
 *            |  ▃▅▇█████████▁
 *            +---------------
 *             0 s        12 s                                                                                       */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "doctor/doctor.h"

enum { COLUMNS_MAX = 200, TEXT = 32, LABEL = 9 };

static void fill_columns(const pl_doctor *d, unsigned width, double length, double *column)
{
    for (unsigned x = 0; x < width; x++) column[x] = -1;
    for (size_t i = 0; i < d->sample_count; i++) {
        double at = length > 0 ? d->sample[i].seconds / length * width : 0;
        unsigned x = at < width ? (unsigned)at : width - 1;
        column[x] = fmax(column[x], (double)d->sample[i].bytes);
    }
    for (unsigned x = 1; x < width; x++) /* no sample fell in: as it was */
        if (column[x] < 0) column[x] = column[x - 1];
}

void pl_doctor_write_plot(const pl_doctor *d, unsigned width, unsigned height, pl_str *out)
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double column[COLUMNS_MAX];
    char text[TEXT];
    if (width < 20 + LABEL || height == 0 || d->sample_count < 2) return;
    width = width - LABEL - 2 > COLUMNS_MAX ? COLUMNS_MAX : width - LABEL - 2;
    double length = d->sample[d->sample_count - 1].seconds, most = fmax((double)d->most_bytes, 1);
    fill_columns(d, width, length, column);
    for (unsigned line = height; line-- > 0;) {
        const char *label = line + 1 == height ? pl_format_bytes(d->most_bytes, text, sizeof text) : "";
        pl_str_printf(out, "%*s |", LABEL, label);
        for (unsigned x = 0; x < width; x++) {
            double filled = column[x] / most * height * 8 - 8.0 * line;
            pl_str_append(out, eighths[filled <= 0 ? 0 : filled >= 8 ? 8 : (int)ceil(filled)]);
        }
        pl_str_append(out, "\n");
    }
    pl_str_printf(out, "%*s +", LABEL, "0 B");
    pl_str_pad(out, '-', width);
    pl_format_seconds(length, text, sizeof text);
    pl_str_printf(out, "\n%*s  0 s%*s\n", LABEL, "", (int)width - 3, text);
}
