/* A convolution whose result goes through a 2×2 pool at once, and its gradient, some samples at a time; see calls.h,
 * whose rules hold here too. */
#ifndef PL_BACKEND_CONVOLUTION_POOL_H
#define PL_BACKEND_CONVOLUTION_POOL_H

#include "backend/calls.h"

/* pooled = of each 2×2 of y the largest of y·sign, the sign of gamma·scale of the channel (and sample); 0: the first.
 * The last row and column of an odd size are left out. */
typedef struct pl_convolution_pool_call {
    pl_convolution_call convolution; /* y NULL: it is not kept; with moments; neither residual nor act_out */
    const float *gamma;              /* [out] */
    const float *film;               /* [batch, 2·out], the scales in front; NULL: 1 */
    void *pooled;
    uint8_t *argmax; /* as pooled; NULL: not wanted */
} pl_convolution_pool_call;
uint64_t pl_convolution_pool_workspace_bytes(const pl_convolution_pool_call *, pl_team);
void pl_convolution_pool_exec(const pl_convolution_pool_call *, void *workspace, pl_team);

/* y once more, then dy = spread(g, argmax, y) (pool.h); dW += gradient;  dx = gradient. dx may be x. The bits are those
 * of the single calls. */
typedef struct pl_convolution_pool_bwd_call {
    pl_convolution_call convolution; /* x, weight and bias alone */
    const void *g;
    const uint8_t *argmax;
    const float *spread;
    void *dx;  /* NULL: not wanted */
    float *dw; /* likewise */
} pl_convolution_pool_bwd_call;
uint64_t pl_convolution_pool_bwd_workspace_bytes(const pl_convolution_pool_bwd_call *, pl_team);
void pl_convolution_pool_bwd_exec(const pl_convolution_pool_bwd_call *, void *workspace, pl_team);

#endif
