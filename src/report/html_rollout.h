/* Parts of pages about results, most of them of rollouts (systems/rollout_page.c); each writes one section. Words are
 * escaped. */
#ifndef PL_REPORT_HTML_ROLLOUT_H
#define PL_REPORT_HTML_ROLLOUT_H

#include "base/rollout.h"
#include "report/html.h"

/* ---- html_rollout.c ---- */
void pl_html_results_begin(const char *title, const char *words, pl_str *); /* ends with pl_html_page_end */
/* The class of a policy's colour: "weight". */
const char *pl_html_policy_class(pl_update_policy);
const char *pl_html_policy_name(pl_update_policy);

/* ---- html_fields.c ---- */
enum {
    PL_PICTURE_STATES = 6,
    PL_PICTURE_SIDE = 128,   /* a field of more pixels is halved until it has no more */
    PL_PICTURE_LEVELS = 255, /* colours of numbers; the next is that of pixels that are none */
};

/* Some states of one operator. */
typedef struct pl_html_fields {
    const char *title, *words; /* "operator 12", the point of the space that it is */
    uint32_t number;           /* of the operator */
    uint32_t side, whole;      /* pixels of a picture's side, and of the field's */
    uint32_t states, channels;
    const uint32_t *state;      /* which they are */
    const float *pixel;         /* [channels, states, side, side]; NaN: a number of it is not finite */
    const uint64_t *not_finite; /* [channels, states]: so many of the field's numbers */
} pl_html_fields;

/* A channel has one scale: from the least to the largest pixel that is shown of it. Pixel x gets colour
 * round((x - least) / (largest - least) * (PL_PICTURE_LEVELS - 1)). */
void pl_html_field_style(pl_str *); /* the colours, for a style sheet */
void pl_html_field_pictures(const pl_html_fields *, pl_str *);

/* ---- html_bands.c ---- */
typedef struct pl_html_quantiles {
    double low, median, high; /* NaN: there is no finite value */
    uint64_t values;          /* that are finite */
} pl_html_quantiles;

typedef struct pl_html_band {
    pl_update_policy policy;
    uint64_t series, values, not_finite; /* values: of all states, shown or not */
    const pl_html_quantiles *at;         /* [states] */
} pl_html_band;

typedef struct pl_html_bands {
    const char *title, *words;
    const uint32_t *state; /* which states are shown */
    size_t states, first;  /* those before `first` are not drawn */
    const pl_html_band *band;
    size_t count;
} pl_html_bands;

void pl_html_band_chart(const pl_html_bands *, pl_str *); /* for a <div class='bands'> */

/* ---- html_space.c ---- */
enum { PL_HTML_CHOICES = 16 };

/* A dimension of the parameter space that has more than one value. */
typedef struct pl_html_dimension {
    const char *name;
    bool log_scale, is_whole;
    double low, high;                  /* of numbers */
    uint32_t choices;                  /* 0: it is a number */
    const char *word[PL_HTML_CHOICES]; /* NULL: the number */
    double choice[PL_HTML_CHOICES];    /* as they stand among the parameters */
    double weight[PL_HTML_CHOICES];    /* sum 1 */
    uint32_t column;                   /* of the parameters */
} pl_html_dimension;

typedef struct pl_html_space {
    const pl_html_dimension *dimension;
    size_t dimensions;
    const float *parameters;      /* [operators, columns] */
    const uint8_t *policy, *done; /* [operators] */
    uint32_t operators, columns;
    double discrepancy, correlation; /* NaN: not known */
    uint32_t points;                 /* that these two are of */
} pl_html_space;

void pl_html_coverage(const pl_html_space *, pl_str *);

/* ---- html_shapes.c ---- */
/* What the processes of one shape planned and measured. */
typedef struct pl_html_shape {
    const char *words; /* "num_layers 2, base_channels 16" */
    uint32_t operators, done;
    uint32_t processes;                 /* that told; 0: what follows is not known */
    uint64_t planned_bytes, peak_bytes; /* of the last of them */
    bool as_planned;                    /* all of them */
    uint64_t states;
    double seconds;
} pl_html_shape;

void pl_html_shapes(const pl_html_shape *, size_t count, const char *remark, pl_str *);

#endif
