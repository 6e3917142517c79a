/* Sums down the columns: up to eight vectors of columns stay in registers while the rows run by. A row is a few lines,
 * then comes a leap: what the processor would not fetch ahead by itself is asked for. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"

enum { WIDE = 8, AHEAD = 16, LINE_BYTES = 64 }; /* vectors; rows that are asked for before they are added */

/* n vectors of columns. */
PL_V_INLINE void sum_wide(pl_real type, int n, const void *x, int64_t j, int64_t ld, int64_t rows, float *out, int add)
{
    const int bytes = n * PL_VW * (int)pl_real_bytes(type);
    pl_vf acc[WIDE];
    PL_V_UNROLL for (int v = 0; v < n; v++) acc[v] = add ? pl_v_load(out + v * PL_VW) : pl_v_zero();
    for (int64_t i = 0; i < rows; i++, j += ld) {
        PL_V_UNROLL for (int at = 0; at < bytes; at += LINE_BYTES)
            __builtin_prefetch((const char *)x + (j + AHEAD * ld) * pl_real_bytes(type) + at);
        PL_V_UNROLL for (int v = 0; v < n; v++) acc[v] += pl_v_get(type, x, j + v * PL_VW, PL_VW);
    }
    PL_V_UNROLL for (int v = 0; v < n; v++) pl_v_store(out + v * PL_VW, acc[v]);
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
    for (; j + WIDE * PL_VW <= columns; j += WIDE * PL_VW) sum_wide(type, WIDE, x, j, ld, rows, out + j, add);
    if (j + 4 * PL_VW <= columns) sum_wide(type, 4, x, j, ld, rows, out + j, add), j += 4 * PL_VW;
    if (j + 2 * PL_VW <= columns) sum_wide(type, 2, x, j, ld, rows, out + j, add), j += 2 * PL_VW;
    if (j + PL_VW <= columns) sum_wide(type, 1, x, j, ld, rows, out + j, add), j += PL_VW;
    for (; j < columns; j += PL_VW)
        sum_part(type, x, j, ld, rows, columns - j < PL_VW ? columns - j : PL_VW, out + j, add);
}

void pl_gemm_column_sum(pl_real type, const void *x, int64_t ld, int64_t rows, int64_t columns, float *out, int add)
{
    PL_REAL_EACH(type, sum_columns(REAL, x, ld, rows, columns, out, add));
}
