/* The GEMM rate of a transformer: the yardstick of its training speed. Every linear layer of the model gives three
 * products (forward, dX, dW); the rate is FLOPs over summed time, each product at the number of tokens where it is
 * quickest. */
#ifndef PL_BENCH_GEMM_RATE_H
#define PL_BENCH_GEMM_RATE_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

typedef struct bench_model {
    int64_t width, feed_forward, vocab, layers;
} bench_model;

typedef enum bench_product { BENCH_FORWARD, BENCH_DX, BENCH_DW, BENCH_PRODUCT_COUNT } bench_product;

typedef struct bench_linear { /* y[tokens, out] = x[tokens, in] Wᵀ, W[out, in] */
    int64_t out, in, times;   /* how often the model has it */
    int64_t sample;           /* tokens of a sample, which the gradient of W is told; 0: it is not */
} bench_linear;

enum { BENCH_LINEARS = 5 };
void bench_model_linears(const bench_model *, bench_linear out[BENCH_LINEARS]);

/* Another implementation to time in place of ours; row-major operands with the strides of pl_gemm_call. */
struct pl_gemm_call;
typedef void bench_gemm_fn(const struct pl_gemm_call *, void *context, pl_team);

/* Median seconds of one product; exec NULL = ours. Negative when memory is refused. */
double bench_gemm_seconds(bench_product, const bench_linear *, int64_t tokens, pl_team, bench_gemm_fn *exec,
                          void *context);

/* How much faster the product is with operands of 16 bits than with f32: both in turns, the median. Negative when
 * memory is refused. */
double bench_gemm_ratio(bench_product, const bench_linear *, int64_t tokens, pl_team, pl_real type);

/* FLOP/s; tokens[0 … count) are tried for each product. Negative when memory is refused. */
double bench_gemm_rate(const bench_model *, const int64_t *tokens, int count, pl_team);

#endif
