/* Memory over time in characters: a column holds the largest of its samples. */
#include <math.h>

#include "base/units.h"
#include "doctor/doctor.h"
#include "show/plot.h"

enum { TEXT = 32 };

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
    double column[PL_PLOT_COLUMNS_MAX];
    char top[TEXT], right[TEXT];
    unsigned columns = pl_plot_columns(width);
    if (columns == 0 || height == 0 || d->sample_count < 2) return;
    double length = d->sample[d->sample_count - 1].seconds;
    fill_columns(d, columns, length, column);
    pl_plot plot = {.column = column,
                    .columns = columns,
                    .height = height,
                    .most = fmax((double)d->most_bytes, 1),
                    .top = pl_format_bytes(d->most_bytes, top, sizeof top),
                    .bottom = "0 B",
                    .left = "0 s",
                    .right = pl_format_seconds(length, right, sizeof right)};
    pl_plot_write(&plot, out);
}
