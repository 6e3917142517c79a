/* The epilogue of a convolution: of the call's first pixel, and of another one. */
#ifndef PL_BACKEND_CONVOLUTION_EPILOGUE_H
#define PL_BACKEND_CONVOLUTION_EPILOGUE_H

#include <stddef.h>

#include "backend/calls.h"
#include "kernels/gemm.h"

/* Element (i, j) is now channel j of the pixel that is `at` + i·ld elements behind the first; absent stays absent. */
static inline pl_gemm_epilogue pl_convolution_epilogue_at(const pl_gemm_epilogue *first, int64_t at, int64_t ld)
{
    pl_gemm_epilogue e = *first;
    e.ldc = e.ld_residual = e.ld_act_out = e.ld_grad_of = e.ld_act_again = ld;
    e.c = pl_real_at(e.type, e.c, at);
    e.residual = e.residual ? pl_real_at(e.type, e.residual, at) : NULL;
    e.act_out = e.act_out ? pl_real_at(e.type, e.act_out, at) : NULL;
    e.grad_of = e.grad_of ? pl_real_at(e.type, e.grad_of, at) : NULL;
    e.act_again = e.act_again ? pl_real_at(e.type, e.act_again, at) : NULL;
    return e;
}

static inline pl_gemm_epilogue pl_convolution_epilogue(const pl_convolution_call *c)
{
    pl_gemm_epilogue e = {
        .type = c->type, .c = c->y, .bias = c->bias, .residual = c->residual, .act = c->act, .act_out = c->act_out};
    return pl_convolution_epilogue_at(&e, 0, c->shape.out);
}

static inline pl_gemm_epilogue pl_convolution_dx_epilogue(const pl_convolution_dx_call *c)
{
    pl_gemm_epilogue e = {.type = c->type,
                          .c = c->dx,
                          .bias = c->bias,
                          .residual = c->residual,
                          .act = c->act,
                          .grad_of = c->grad_of,
                          .act_again = c->act_again};
    return pl_convolution_epilogue_at(&e, 0, c->shape.in);
}

#endif
