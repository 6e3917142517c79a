/* The inside of quantize, shared by the files that work on it: what is to be put into 8 bits, and what was found. */
#ifndef PL_JOBS_QUANTIZE_IMPL_H
#define PL_JOBS_QUANTIZE_IMPL_H

#include "base/difference.h"
#include "base/quantize.h"
#include "data/infer/infer_data.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"
#include "store/weights.h"

/* What comes to layers. */
typedef struct pl_quantize_site {
    const char *name; /* with PL_QUANTIZE_SEEN behind it */
    pl_extremes *seen;
    int64_t *bin; /* NULL: how it is spread is of no interest */
    float *range;
    pl_id range_root;
    uint64_t clipped, count; /* numbers outside of the range, of all that came; 0, 0: not known */
    bool used;               /* by a layer that is in 8 bits */
} pl_quantize_site;
#define PL_QUANTIZE_SEEN ".extremes"

typedef struct pl_quantize_layer {
    const char *name;
    const void *weight; /* of `real` */
    pl_real real;
    void *packed;
    int64_t rows, width;
    double *difference; /* Σ (y − y8)², Σ y² */
    int32_t *taken;     /* 1: what it gives out is that in 8 bits */
    pl_id packed_root, weight_root;
    bool kept; /* in f32 */
} pl_quantize_layer;

/* A model as it is judged. */
typedef struct pl_quantize_judged {
    double loss;
    uint64_t items;
    pl_loss_metric metric[PL_LOSS_METRICS_MAX];
    size_t metrics;
} pl_quantize_judged;

/* One of what the model gives out of the samples. */
typedef struct pl_quantize_output {
    const char *name;
    size_t port; /* of STORE */
    float *wide; /* of one sample, in f32; in the place of `rows`, when all is packed */
    pl_real real;
    uint64_t count, width; /* numbers of a sample, and of a row of them */
    pl_difference difference;
} pl_quantize_output;

/* What becomes of what the program gives out. */
typedef enum pl_quantize_takes {
    PL_QUANTIZE_NOTHING,
    PL_QUANTIZE_EVALUATED, /* by the job that evaluates */
    PL_QUANTIZE_WIDE,      /* outputs in f32, */
    PL_QUANTIZE_NARROW     /* and in 8 bits */
} pl_quantize_takes;

typedef struct pl_quantizing {
    const pl_quantize_settings *how;
    pl_id program;
    pl_quantize_site *site;
    pl_quantize_layer *layer;
    pl_quantize_layer **worst; /* the largest difference first */
    pl_st_entry *entry;
    pl_st_text text[3];
    char checksum[PL_CHECKSUM_TEXT_BYTES];
    pl_st_writer *writer;
    double *scratch;
    size_t sites, layers;
    char *rows; /* of the widest layer: 8 bits a number, and the scales; behind them a row in f32 */
    pl_quantize_takes takes;
    uint64_t done;                   /* runs of the program */
    bool was_there;                  /* a file of that name */
    pl_quantize_judged wide, narrow; /* in f32, and in 8 bits */
    pl_quantize_output output[PL_NODE_IN_MAX];
    size_t outputs;
    pl_infer_remarked remarked; /* of files */
} pl_quantizing;

void pl_quantize_note(pl_session *, const char *text); /* told while it works */
/* Of what comes out, by its size: 0 where nothing does. */
double pl_quantize_loss(const pl_quantize_layer *);

/* ---- quantize_outputs.c ---- */
extern const pl_real pl_quantize_reals[PL_DTYPE_COUNT]; /* numbers of weights and of what comes out */
uint64_t pl_quantize_output_bytes(const pl_graph *);    /* of a sample, in f32; 0: nothing comes out */
void pl_quantize_open_outputs(const pl_session *, pl_quantizing *);
pl_status pl_quantize_check_outputs(const pl_quantizing *, pl_error *); /* PL_E_DATA: one was not finite */
/* As q->takes says, WIDE or NARROW. */
void pl_quantize_take_outputs(const pl_session *, pl_quantizing *, const pl_store_call *);

/* ---- quantize_tell.c ---- */
/* Of ranges that leave much out. */
void pl_quantize_warn_of_ranges(pl_session *, const pl_quantizing *);
/* Two tables: what 8 bits cost each layer, the worst first, and the range of what comes to each site. */
void pl_quantize_tell(pl_session *, const pl_quantizing *);
/* The model judged in f32 and in 8 bits. */
void pl_quantize_tell_judged(pl_session *, const pl_quantizing *);
void pl_quantize_tell_outputs(pl_session *, const pl_quantizing *);
void pl_quantize_tell_file(pl_session *, const pl_quantizing *);

#endif
