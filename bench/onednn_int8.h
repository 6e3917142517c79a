/* oneDNN's matmul of u8 and s8 into s32 on the same operands, where the library was found at build time. Its weights
 * lie as it likes them, reordered once; scale, zero point and bias are left out: less work than ours. */
#ifndef PL_BENCH_ONEDNN_INT8_H
#define PL_BENCH_ONEDNN_INT8_H

#include <stdint.h>

#include "kernels/team.h"

typedef struct bench_onednn_int8 bench_onednn_int8;

int bench_onednn_int8_available(void);
/* x[m,k], w[n,k], y[m,n] of 4 bytes each; NULL: refused. */
bench_onednn_int8 *bench_onednn_int8_create(int64_t m, int64_t n, int64_t k, void *x, void *w, void *y, pl_team);
void bench_onednn_int8_exec(bench_onednn_int8 *);
void bench_onednn_int8_destroy(bench_onednn_int8 *);

#endif
