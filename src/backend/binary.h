/* Layers of signs as graphs have them (ir/op_binary.c), beside their product (pl_binary_call), as plain values; see
 * calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_BINARY_H
#define PL_BACKEND_BINARY_H

#include "backend/calls.h"

typedef struct pl_pack_signs_call { /* the weight w [n,k] as base/binary.h has it; a sum |w| in the order of signs() */
    int64_t n, k;
    const float *w;
    void *packed;
} pl_pack_signs_call;
uint64_t pl_pack_signs_workspace_bytes(const pl_pack_signs_call *, pl_team);
void pl_pack_signs_exec(const pl_pack_signs_call *, void *workspace, pl_team);

typedef struct pl_linear_binary_dx_call { /* dy [m,n], x and dx [m,k] */
    int64_t m, n, k;
    const float *dy, *x;
    const void *packed;
    float *dx;
} pl_linear_binary_dx_call;
uint64_t pl_linear_binary_dx_workspace_bytes(const pl_linear_binary_dx_call *, pl_team);
void pl_linear_binary_dx_exec(const pl_linear_binary_dx_call *, void *workspace, pl_team);

/* dw [n,k] += dyᵀ X~, sample by sample: the bits are the same however the samples are cut into calls. */
typedef struct pl_linear_binary_dw_call {
    int64_t m, n, k;
    int64_t tokens; /* rows of a sample */
    const float *dy, *x;
    float *dw;
} pl_linear_binary_dw_call;
uint64_t pl_linear_binary_dw_workspace_bytes(const pl_linear_binary_dw_call *, pl_team);
void pl_linear_binary_dw_exec(const pl_linear_binary_dw_call *, void *workspace, pl_team);

typedef struct pl_latent_gradient_call { /* g_jk ·= 1/k + mean|w_j|·[|w_jk| ≤ 1] */
    int64_t n, k;
    const float *w;
    float *g;
} pl_latent_gradient_call;
uint64_t pl_latent_gradient_workspace_bytes(const pl_latent_gradient_call *, pl_team);
void pl_latent_gradient_exec(const pl_latent_gradient_call *, void *workspace, pl_team);

#endif
