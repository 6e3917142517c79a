/* What a calibration sees (ir/op_quantize.c), as plain values; see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_QUANTIZE_H
#define PL_BACKEND_QUANTIZE_H

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

#endif
