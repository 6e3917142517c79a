/* The three products of a linear layer y = x Wᵀ, W as it is stored: one row for each output. What is added, applied or
 * taken in beside (bias, activation, residual) the caller sets. */
#include "backend/calls.h"

pl_gemm_call pl_gemm_linear(pl_real type, int64_t m, int64_t n, int64_t k, const void *x, const void *w, void *y)
{
    return (pl_gemm_call){.m = m,
                          .n = n,
                          .k = k,
                          .a_type = type,
                          .b_type = type,
                          .type = type,
                          .a = x,
                          .a_row = k,
                          .a_col = 1,
                          .b = w,
                          .b_row = 1,
                          .b_col = k,
                          .c = y,
                          .ldc = n};
}

void pl_gemm_encode(pl_gemm_call *c, pl_encoding encoding)
{
    if (encoding == PL_ENCODING_BF16) c->b_type = PL_REAL_BF16;
    if (encoding == PL_ENCODING_F16) c->b_type = PL_REAL_F16;
    if (pl_encoding_block(encoding) > 1) c->b_encoding = encoding;
}

pl_gemm_call pl_gemm_linear_dx(pl_real type, int64_t m, int64_t n, int64_t k, const void *dy, const void *w, void *dx)
{
    pl_gemm_call c = pl_gemm_linear(type, m, n, k, dy, w, dx);
    c.b_row = n, c.b_col = 1;
    return c;
}

pl_gemm_call pl_gemm_linear_dw(pl_real type, int64_t m, int64_t n, int64_t rows, const void *dy, const void *x,
                               float *dw)
{
    pl_gemm_call c = pl_gemm_linear(type, m, n, rows, dy, x, dw);
    c.type = PL_REAL_F32, c.accumulate = 1;
    c.a_row = 1, c.a_col = m;
    c.b_row = n, c.b_col = 1;
    return c;
}

int64_t pl_gemm_end_of_tokens(int64_t first, int64_t limit, int64_t rows, int64_t k_sample)
{
    if (rows - first <= limit) return rows;
    const int64_t end = first + limit;
    return k_sample > 0 ? end - end % k_sample % PL_GEMM_TOKEN_GROUP : end;
}
