/* A user's arrays as the data of a command, and as their source: the ports "images" f32 [micro_batch, window, height,
 * width], "angles" f32 [micro_batch, 2] and "target" f32 [micro_batch, 1]. Angles and targets are scaled to mean 0 and
 * variance 1 of the training part. A share of the samples, drawn by the seed, is the validation part, in training
 * commands and in those that evaluate; it comes from front to back, and rows past its end are 0, with a target of NAN,
 * which counts nothing. The training part comes in a new order each epoch, and steps run across the ends of epochs, so
 * that every step has a whole batch. */
#ifndef PL_DATA_ARRAYS_DATA_H
#define PL_DATA_ARRAYS_DATA_H

#include "base/permutation.h"
#include "data/arrays/arrays_file.h"
#include "stream/data.h"

/* What a config says, as plain values. Texts are the caller's, and needed only while the data are opened. */
typedef struct pl_arrays_setup {
    const char *path;   /* of arrays.bin */
    const char *images; /* NULL: the command reads no samples */
    uint32_t window, batch;
    uint64_t seed;
    double held_out; /* share, in [0, 1) */
    bool zscore;     /* each frame to mean 0 and variance 1; else it is as the file has it */
    bool evaluates;  /* it does not train */
} pl_arrays_setup;

typedef struct pl_arrays_scalers {
    pl_scaler angle[PL_ARRAYS_ANGLE_COUNT], target;
} pl_arrays_scalers;

typedef struct pl_arrays_data {
    pl_data data; /* first: this is one. Identity: "arrays", "split", "scalers"; extents: "height", "width" */
    pl_source source;
    char *path, *images; /* what the rows point into */
    pl_arrays_record record;
    int fd; /* of arrays.bin */
    pl_infer_port port;
    pl_rows rows; /* rows of the images */
    float *target, *angles;
    uint64_t *sums;
    uint64_t *item[2], count[2]; /* by part: the samples, from front to back */
    pl_permutation order;        /* the training part's */
    pl_arrays_scalers scaler;
    bool zscore;
} pl_arrays_data;

/* PL_E_DATA: the file is not there or damaged, or all targets that would be trained on are the same. */
pl_status pl_arrays_data_open(const pl_arrays_setup *, pl_arrays_data **, pl_error *);
static inline const pl_arrays_data *pl_arrays_data_of(const pl_data *d) { return (const pl_arrays_data *)d; }

/* ---- arrays_source.c ---- */
void pl_arrays_source_init(pl_arrays_data *, const pl_arrays_setup *);

#endif
