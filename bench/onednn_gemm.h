/* oneDNN's matmul on the same operands, where the library was found at build time; an optional peer, never needed. */
#ifndef PL_BENCH_ONEDNN_GEMM_H
#define PL_BENCH_ONEDNN_GEMM_H

#include "gemm_rate.h"

int bench_onednn_available(void);
double bench_onednn_seconds(bench_product, const bench_linear *, int64_t tokens, pl_team); /* negative: refused */

#endif
