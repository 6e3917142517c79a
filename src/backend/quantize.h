/* Products of 8 bits as graphs have them, and what a calibration sees (ir/op_quantize.c), as plain values; see calls.h,
 * whose rules hold here too. */
#ifndef PL_BACKEND_QUANTIZE_H
#define PL_BACKEND_QUANTIZE_H

#include "backend/calls.h"
#include "base/quantize.h"
#include "kernels/team.h"

typedef struct pl_observe_call {
    int64_t count;
    const float *x;
    pl_extremes *extremes; /* updated; read alone where there are bins */
    int64_t *bin;          /* updated; NULL: extremes are looked for */
} pl_observe_call;
uint64_t pl_observe_workspace_bytes(const pl_observe_call *, pl_team);
void pl_observe_exec(const pl_observe_call *, void *workspace, pl_team);

/* sums[0] += Σ (x − y)², sums[1] += Σ x²: pieces of equal length one after the other, each
 * by itself, so that the bits depend on no team. */
typedef struct pl_difference_call {
    int64_t count;
    const float *x, *y;
    double *sums;
} pl_difference_call;
uint64_t pl_difference_workspace_bytes(const pl_difference_call *);
void pl_difference_exec(const pl_difference_call *, void *workspace, pl_team);

typedef struct pl_overwrite_call {
    int64_t count;
    float *y;
    const float *z;
} pl_overwrite_call;
void pl_overwrite_exec(const pl_overwrite_call *, pl_team);

typedef struct pl_linear_int8_call {
    pl_int8_call product;   /* all but how x and what comes out are rounded */
    const float *range;     /* (run) what x spans: least, largest */
    const float *out_range; /* (run) likewise act(v); NULL: it is not rounded */
} pl_linear_int8_call;
void pl_linear_int8_exec(const pl_linear_int8_call *, void *workspace, pl_team);

#endif
