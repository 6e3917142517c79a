/* Sums down the columns: eight vectors of columns stay in registers while the rows run by. A row is a few lines, then
 * comes a leap: what the processor would not fetch ahead by itself is asked for. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"

enum { WIDE = 8, AHEAD = 16, LINE_BYTES = 64 }; /* vectors; rows that are asked for before they are added */

PL_V_INLINE void sum_wide(pl_real type, const void *x, int64_t j, int64_t ld, int64_t rows, float *out, int add)
{
    pl_vf acc[WIDE];
#pragma GCC unroll 8
    for (int v = 0; v < WIDE; v++) acc[v] = add ? pl_v_load(out + v * PL_VW) : pl_v_zero();
    for (int64_t i = 0; i < rows; i++, j += ld) {
#pragma GCC unroll 8
        for (int at = 0; at < WIDE * PL_VW * pl_real_bytes(type); at += LINE_BYTES)
            __builtin_prefetch((const char *)x + (j + AHEAD * ld) * pl_real_bytes(type) + at);
#pragma GCC unroll 8
        for (int v = 0; v < WIDE; v++) acc[v] += pl_v_get(type, x, j + v * PL_VW, PL_VW);
    }
#pragma GCC unroll 8
    for (int v = 0; v < WIDE; v++) pl_v_store(out + v * PL_VW, acc[v]);
}

PL_V_INLINE void sum_part(pl_real type, const void *x, int64_t j, int64_t ld, int64_t rows, int64_t columns, float *out,
                          int add)
{
    pl_vf acc = add ? pl_v_load_part(out, columns) : pl_v_zero();
    for (int64_t i = 0; i < rows; i++, j += ld) acc += pl_v_get(type, x, j, columns);
    pl_v_store_part(out, acc, columns);
}

PL_V_INLINE void sum_columns(pl_real type, const void *x, int64_t ld, int64_t rows, int64_t columns, float *out,
                             int add)
{
    int64_t j = 0;
    for (; j + WIDE * PL_VW <= columns; j += WIDE * PL_VW) sum_wide(type, x, j, ld, rows, out + j, add);
    for (; j < columns; j += PL_VW)
        sum_part(type, x, j, ld, rows, columns - j < PL_VW ? columns - j : PL_VW, out + j, add);
}

void pl_gemm_column_sum(pl_real type, const void *x, int64_t ld, int64_t rows, int64_t columns, float *out, int add)
{
    PL_REAL_EACH(type, sum_columns(REAL, x, ld, rows, columns, out, add));
}
