/* What a policy draws and tries (ir/op_policy.c), as plain values; see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_POLICY_H
#define PL_BACKEND_POLICY_H

#include <stdint.h>

#include "base/policy.h"
#include "kernels/team.h"

typedef struct pl_perturb_call {
    int64_t samples, count, width;
    pl_perturbation kind;
    double scale;
    uint64_t seed, stream;
    const int64_t *step, *first_sample; /* (run) */
    const float *x;                     /* [samples, width] */
    float *y;                           /* [samples, count, width] */
} pl_perturb_call;
void pl_perturb_exec(const pl_perturb_call *, pl_team);

typedef struct pl_shift_call {
    int64_t pages, height, width, reach;
    const uint8_t *x;
    const int32_t *across, *down; /* reach: stays; cut to 0 … 2·reach */
    uint8_t *y;
} pl_shift_call;
void pl_shift_exec(const pl_shift_call *, pl_team);

#endif
