/* Tokens as plain values: patches of images, positions, a row in front, rotations, capsules that sum tokens up, and
 * tokens that are picked; see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_TOKENS_H
#define PL_BACKEND_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/causal_lm.h"
#include "base/narrow.h"
#include "kernels/team.h"

/* ---- patches.c ---- */

/* y[b, gy·(W/p) + gx, c, r, q] = x[b, gy·p + r, gx·p + q, c]/255; of a grey image the same for each c; or, where x is
 * NULL, planes[b, c, gy·p + r, gx·p + q]. standardize: then (y − mean)/deviation of colour c (base/colours.h). */
typedef struct pl_patches_call {
    int standardize;
    int64_t samples, height, width, depth; /* depth: bytes of a pixel, 1 or `channels` */
    int64_t patch, channels;
    const uint8_t *x;
    const float *planes;
    float *y;
} pl_patches_call;
void pl_patches_exec(const pl_patches_call *, pl_team);

/* y = 255·x, cut and rounded to bytes (op_patches.c) */
typedef struct pl_pixels_call {
    int64_t elems;
    const void *x;
    uint8_t *y;
    pl_real type;
} pl_pixels_call;
void pl_pixels_exec(const pl_pixels_call *, pl_team);

/* y[b] = x[b] + p */
typedef struct pl_add_positions_call {
    int64_t samples, elems_per_sample;
    const void *x;
    const float *p;
    void *y; /* may be x */
    pl_real type;
} pl_add_positions_call;
void pl_add_positions_exec(const pl_add_positions_call *, pl_team);

/* y[b] = row, then x[b] */
typedef struct pl_prepend_row_call {
    int64_t samples, rows, width; /* rows of a sample of x */
    const void *x;                /* [samples, rows, width] */
    const float *row;             /* NULL: zeros */
    void *y;                      /* [samples, 1 + rows, width] */
    pl_real type;
} pl_prepend_row_call;
void pl_prepend_row_exec(const pl_prepend_row_call *, pl_team);

/* y[b] = x[b] without its first row; sum += Σ_b x[b,0], ascending */
typedef struct pl_drop_row_call {
    int64_t samples, rows, width; /* rows of a sample of y */
    const void *x;                /* [samples, 1 + rows, width] */
    void *y;                      /* [samples, rows, width] */
    float *sum;                   /* [width]; either may be NULL: not wanted */
    pl_real type;
} pl_drop_row_call;
void pl_drop_row_exec(const pl_drop_row_call *, pl_team);

/* ---- rope.c ---- */

/* Of each of the first `rotated` heads, with a and b for its halves and c and s for the cosines and sines of
 * t·theta^(−i/h), i < h = head_width/2: y = [a·c − b·s, b·c + a·s]; the other heads as they are. Row r is at
 * t = r mod positions. */
typedef struct pl_rope_call {
    int64_t rows, positions, heads, rotated, head_width;
    double theta;
    int adjoint; /* by the opposite angles */
    const void *x;
    void *y; /* may be x */
    pl_real type;
    const float *cosine, *sine; /* [positions, h], then theta is not read and it is not adjoint; or NULL */
} pl_rope_call;
uint64_t pl_rope_workspace_bytes(const pl_rope_call *, pl_team);
void pl_rope_exec(const pl_rope_call *, void *workspace, pl_team);

/* Rows of cosines and sines (ir/op_rope.c says of what). */
typedef struct pl_rope_table_call {
    int64_t samples, positions, half; /* samples: each with a position of its own */
    pl_rope_kind kind;
    double theta, factor, original_context, low, high, magnitude;
    bool keeps_fractions;
    const int64_t *position; /* (run) [samples] or NULL */
    const float *divisor;    /* [half] or NULL */
    float *cosine, *sine;    /* [samples, positions, half] */
} pl_rope_table_call;
uint64_t pl_rope_table_workspace_bytes(const pl_rope_table_call *, pl_team);
void pl_rope_table_exec(const pl_rope_table_call *, void *workspace, pl_team);

/* ---- capsule.c ---- */

/* y[b,k] = Σ_n a[b,k,n]·t[b,n], a[b,k] the softmax of logits[b,:,k]; sums ascend. */
typedef struct pl_capsule_pool_call {
    int64_t samples, positions, channels, capsules;
    const void *t, *logits; /* [B,N,D], [B,N,K] */
    void *y;                /* [B,K,D] */
    float *a;               /* [B,K,N]; NULL: not wanted */
    pl_real type;
} pl_capsule_pool_call;
uint64_t pl_capsule_pool_workspace_bytes(const pl_capsule_pool_call *, pl_team);
void pl_capsule_pool_exec(const pl_capsule_pool_call *, void *workspace, pl_team);

/* With e[k,n] = dy[k]·t[n] (+ da[k,n]): dt[n] = (partial +) Σ_k a[k,n]·dy[k],
 * dlogits[n,k] = a[k,n]·(e[k,n] − Σ_m a[k,m]·e[k,m]). */
typedef struct pl_capsule_pool_bwd_call {
    int64_t samples, positions, channels, capsules;
    const void *dy, *t, *logits;
    const float *da;
    const void *partial;
    void *dt, *dlogits; /* either may be NULL: not wanted; dt may be t or partial, dlogits may be logits */
    pl_real type;
} pl_capsule_pool_bwd_call;
uint64_t pl_capsule_pool_bwd_workspace_bytes(const pl_capsule_pool_bwd_call *, pl_team);
void pl_capsule_pool_bwd_exec(const pl_capsule_pool_bwd_call *, void *workspace, pl_team);

/* Where the `count` largest of each row are, the largest first; of equal ones the first; NaN behind all numbers. */
typedef struct pl_top_k_call {
    int64_t rows, width, count;
    const float *x;
    int32_t *y; /* [rows, count] */
} pl_top_k_call;
void pl_top_k_exec(const pl_top_k_call *, pl_team);

/* y[b,j] = t[b, index[b,j]] */
typedef struct pl_gather_rows_call {
    int64_t samples, positions, picks;
    int64_t row_bytes;
    const void *t;
    const int32_t *index; /* each in [0, positions) */
    void *y;
} pl_gather_rows_call;
void pl_gather_rows_exec(const pl_gather_rows_call *, pl_team);

/* dt[b,n] = (partial +) Σ dy[b,j] over the j with index[b,j] = n, ascending; rounded once */
typedef struct pl_gather_rows_bwd_call {
    int64_t samples, positions, picks, width;
    const void *dy;
    const int32_t *index;
    const void *partial;
    void *dt; /* may be partial */
    pl_real type;
} pl_gather_rows_bwd_call;
void pl_gather_rows_bwd_exec(const pl_gather_rows_bwd_call *, pl_team);

/* y[r,i] = x[r] for i < count */
typedef struct pl_repeat_call {
    int64_t rows, count, row_bytes;
    const void *x;
    void *y;
} pl_repeat_call;
void pl_repeat_exec(const pl_repeat_call *, pl_team);

/* dx[r] = Σ_i dy[r,i], ascending; rounded once */
typedef struct pl_repeat_bwd_call {
    int64_t rows, count, width;
    const void *dy;
    void *dx;
    pl_real type;
} pl_repeat_bwd_call;
void pl_repeat_bwd_exec(const pl_repeat_bwd_call *, pl_team);

#endif
