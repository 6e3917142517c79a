/* Charts for pages: each draws plain values, wherever they come from. They are appended to a drawing of a document
 * (pl_doc_drawing). Classes are ours (style.c); all texts are escaped. */
#ifndef PL_SHOW_CHART_H
#define PL_SHOW_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Numbers from validations that belong in one chart, over the steps of a training. */
enum { PL_METRIC_CURVES = 4 };
typedef struct pl_metric_chart {
    const char *title, *unit;
    struct {
        const char *key;         /* in metrics.jsonl; NULL after the last */
        const char *line, *mark; /* classes of the style sheet */
        const char *name;
    } curve[PL_METRIC_CURVES];
} pl_metric_chart;

/* ---- chart_bands.c ---- */
typedef struct pl_chart_key {
    const char *class_name, *name;
} pl_chart_key;
void pl_chart_legend(const pl_chart_key *, size_t count, pl_str *);

typedef struct pl_chart_quantiles {
    double low, median, high; /* NaN: there is no value */
    uint64_t values;          /* number of values behind them */
} pl_chart_quantiles;

typedef struct pl_chart_band {
    pl_chart_key key;
    const pl_chart_quantiles *at; /* [places] */
} pl_chart_band;

/* Over places on an axis: the median as a line, the range from low to high as a band. The axis of values is logarithmic
 * where they span a hundredfold and none is negative; the chart says so. */
typedef struct pl_chart_bands {
    const char *title, *axis;
    const uint32_t *place; /* ascending */
    size_t places, first;  /* those before `first` are not drawn */
    const pl_chart_band *band;
    size_t count;
} pl_chart_bands;
void pl_chart_draw_bands(const pl_chart_bands *, pl_str *);

/* ---- chart_fields.c ---- */
enum {
    PL_PICTURE_SIDE = 128,   /* reduce a field with more pixels first */
    PL_PICTURE_LEVELS = 255, /* colours of numbers; the next one is for pixels that are not finite */
};

/* Fields in a row, with one scale: from the least to the largest pixel. Pixel x gets colour
 * round((x - least) / (largest - least) * (PL_PICTURE_LEVELS - 1)). */
typedef struct pl_chart_fields {
    const char *of, *name, *each; /* "operator 12", "channel 0", "state" */
    uint32_t side, count;
    const uint32_t *number;     /* [count]: each one's */
    const float *pixel;         /* [count, side, side]; NaN: contains a number that is not finite */
    const uint64_t *not_finite; /* [count]: how many of the field's numbers */
} pl_chart_fields;
void pl_chart_draw_fields(const pl_chart_fields *, pl_str *);

/* ---- chart_panels.c: small panels in a grid of two or more columns ---- */
void pl_chart_panels_begin(pl_str *);
void pl_chart_panels_end(pl_str *);

typedef struct pl_chart_point {
    double x, y;  /* shares of the axes: cut to 0 and 1 */
    unsigned set; /* the first is drawn last, on top */
} pl_chart_point;

typedef struct pl_chart_points {
    const char *name, *title, *caption; /* title: "" for none; line ends in the caption are kept */
    pl_chart_point (*at)(const void *of, uint64_t i);
    const void *of;
    uint64_t count, every;         /* every so many-th point is drawn */
    const char *const *class_name; /* [sets] */
    unsigned sets;
    bool diagonal; /* a dashed line where y is x */
} pl_chart_points;
void pl_chart_draw_points(const pl_chart_points *, pl_str *);

/* Counts in equal steps from low to high. */
typedef struct pl_chart_counts {
    const char *name, *caption;
    const uint64_t *count; /* [bins] */
    unsigned bins;
    double low, high;
    double even; /* a dashed line at so many */
} pl_chart_counts;
void pl_chart_draw_counts(const pl_chart_counts *, pl_str *);    /* a panel */
void pl_chart_draw_histogram(const pl_chart_counts *, pl_str *); /* as wide as the page, with an axis; no caption */

/* ---- chart_pictures.c: pictures in a grid, with words below ---- */
typedef struct pl_chart_picture {
    const char *name; /* shown in place of the picture */
    const void *png;
    size_t png_bytes;
    const char *title, *text, *remark; /* text: foreign, shown as it is; "": none */
} pl_chart_picture;
void pl_chart_pictures_begin(pl_str *);
void pl_chart_draw_picture(const pl_chart_picture *, pl_str *);
void pl_chart_pictures_end(pl_str *);

#endif
