/* Losses of rows of numbers (base/row_loss.h), as plain values; see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_ROW_LOSS_H
#define PL_BACKEND_ROW_LOSS_H

#include <stdint.h>

#include "base/narrow.h"
#include "base/row_loss.h"
#include "kernels/team.h"

typedef enum pl_row_loss_kind {
    PL_ROW_LOSS_SOFTMAX,
    PL_ROW_LOSS_STABLEMAX,
    PL_ROW_LOSS_BCE,
    PL_ROW_LOSS_COSINE,
    PL_ROW_LOSS_SQUARED_ERROR,
    PL_ROW_LOSS_NORM_PENALTY
} pl_row_loss_kind;

/* loss[0] (f64) += scale·term of each row, one after the other; da and db are the derivatives of that sum, times
 * *loss_scale. */
typedef struct pl_row_loss_call {
    pl_row_loss_kind kind;
    int64_t rows, width;   /* BCE: width 1 */
    const void *a;         /* [rows, width] */
    const void *b;         /* [rows, width] of cosine loss and squared error, as a is stored */
    const int32_t *target; /* [rows] of cross-entropy: < width; negative: none */
    const float *y;        /* of BCE: one a row, y_stride apart */
    int64_t y_stride;
    const float *counted; /* one a sample of rows_of_sample rows, counted_stride apart; 0: it counts nothing; terms of
                             cross-entropy are divided by it. Or NULL */
    int64_t rows_of_sample, counted_stride;
    const float *scale;      /* (run) [1] */
    double *loss;            /* [1] accumulates */
    void *da, *db;           /* NULL: not wanted; may be a and b */
    const float *loss_scale; /* (run) [1] or NULL: the gradients are that many times as large */
    pl_real type;            /* of a, b, da, db */
} pl_row_loss_call;
uint64_t pl_row_loss_workspace_bytes(const pl_row_loss_call *, pl_team);
void pl_row_loss_exec(const pl_row_loss_call *, void *workspace, pl_team);

/* Of each sample: how many rows have a label, of how many of these it has the largest logit (of equal ones the first),
 * and 1 if these are as many, else 0. */
typedef struct pl_count_right_call {
    int64_t samples, rows, width; /* rows of a sample */
    const void *logits;           /* [samples, rows, width] */
    const int32_t *target;        /* [samples, rows] */
    float *y;                     /* [samples, 3] */
    pl_real type;
} pl_count_right_call;
void pl_count_right_exec(const pl_count_right_call *, pl_team);

#endif
