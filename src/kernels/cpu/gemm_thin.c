/* Products of few rows (one token generated: m = 1), where B is read once and packing it would double the traffic. A
 * has its k contiguous.
 *   k contiguous in B   dot products, 4 columns at a time, vectors along k; lanes are summed at the end
 *   n contiguous in B   4 vectors of columns at a time, k in ascending order
 * Operands of 16 bits are widened as they are read. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"

enum {
    ROWS = PL_VW == 16 ? 4 : 2, /* rows at a time: ROWS × 4 accumulators */
    COLUMNS = 4,
    BLOCK = 4 * PL_VW /* columns that are summed before the epilogue runs on them */
};

typedef struct array { /* elements of one type, a constant where this is expanded */
    pl_real type;
    const void *at;
} array;

PL_V_INLINE array from(array a, int64_t element) { return (array){a.type, pl_real_at(a.type, a.at, element)}; }

PL_V_INLINE void dot_step(int rows, int columns, pl_vf acc[][COLUMNS], array a, int64_t lda, array b, int64_t ldb,
                          int64_t p, int64_t count)
{
    pl_vf x[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) x[r] = pl_v_get(a.type, a.at, r * lda + p, count);
#pragma GCC unroll 4
    for (int c = 0; c < columns; c++) {
        pl_vf y = pl_v_get(b.type, b.at, c * ldb + p, count);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) acc[r][c] = pl_v_fma(x[r], y, acc[r][c]);
    }
}

/* s[r·BLOCK + c] = Σ_p a[r, p]·b[c, p] */
PL_V_INLINE void dot(int rows, int columns, int64_t k, array a, int64_t lda, array b, int64_t ldb, float *s)
{
    pl_vf acc[ROWS][COLUMNS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) acc[r][c] = pl_v_zero();
    int64_t p = 0;
    for (; p + PL_VW <= k; p += PL_VW) dot_step(rows, columns, acc, a, lda, b, ldb, p, PL_VW);
    if (p < k) dot_step(rows, columns, acc, a, lda, b, ldb, p, k - p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) s[r * BLOCK + c] = pl_v_sum(acc[r][c]);
}

PL_V_INLINE void dots(int64_t rows, int64_t k, array a, int64_t lda, array b, int64_t ldb, float *s)
{
    int64_t r = 0;
    for (; r + ROWS <= rows; r += ROWS) dot(ROWS, COLUMNS, k, from(a, r * lda), lda, b, ldb, s + r * BLOCK);
    for (; r < rows; r++) dot(1, COLUMNS, k, from(a, r * lda), lda, b, ldb, s + r * BLOCK);
}

PL_V_INLINE void last_dots(int64_t rows, int64_t columns, int64_t k, array a, int64_t lda, array b, int64_t ldb,
                           float *s)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            dot(1, 1, k, from(a, r * lda), lda, from(b, c * ldb), ldb, s + r * BLOCK + c);
}

PL_V_INLINE void block_by_dots(pl_real type, const pl_gemm_thin_product *t, int64_t j, int64_t columns, float *s)
{
    array a = {type, t->a}, b = from((array){type, t->b}, j * t->b_col);
    int64_t c = 0;
    for (; c + COLUMNS <= columns; c += COLUMNS) dots(t->m, t->k, a, t->a_row, from(b, c * t->b_col), t->b_col, s + c);
    last_dots(t->m, columns - c, t->k, a, t->a_row, from(b, c * t->b_col), t->b_col, s + c);
}

PL_V_INLINE void strip(int rows, int64_t k, array a, int64_t lda, array b, int64_t ldb, float *s)
{
    pl_vf acc[ROWS][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = pl_v_zero();
    for (int64_t p = 0; p < k; p++) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            pl_vf y = pl_v_get(b.type, b.at, p * ldb + v * PL_VW, PL_VW);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                acc[r][v] = pl_v_fma(pl_v_set(pl_real_get(a.type, a.at, r * lda + p)), y, acc[r][v]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) pl_v_store(s + r * BLOCK + v * PL_VW, acc[r][v]);
}

PL_V_INLINE void edge_strip(int64_t k, array a, array b, int64_t ldb, int64_t columns, float *s)
{
    pl_vf acc = pl_v_zero();
    for (int64_t p = 0; p < k; p++)
        acc = pl_v_fma(pl_v_set(pl_real_get(a.type, a.at, p)), pl_v_get(b.type, b.at, p * ldb, columns), acc);
    pl_v_store(s, acc);
}

PL_V_INLINE void block_by_strips(pl_real type, const pl_gemm_thin_product *t, int64_t j, int64_t columns, float *s)
{
    array a = {type, t->a}, b = from((array){type, t->b}, j);
    int64_t r = 0, m = t->m;
    if (columns < BLOCK) {
        for (; r < m; r++)
            for (int64_t v = 0; v < columns; v += PL_VW)
                edge_strip(t->k, from(a, r * t->a_row), from(b, v), t->b_row, columns - v < PL_VW ? columns - v : PL_VW,
                           s + r * BLOCK + v);
        return;
    }
    for (; r + ROWS <= m; r += ROWS) strip(ROWS, t->k, from(a, r * t->a_row), t->a_row, b, t->b_row, s + r * BLOCK);
    a = from(a, r * t->a_row);
    switch (m - r) {
    case 3:
        strip(3 < ROWS ? 3 : ROWS, t->k, a, t->a_row, b, t->b_row, s + r * BLOCK);
        break;
    case 2:
        strip(2 < ROWS ? 2 : ROWS, t->k, a, t->a_row, b, t->b_row, s + r * BLOCK);
        break;
    case 1:
        strip(1, t->k, a, t->a_row, b, t->b_row, s + r * BLOCK);
        break;
    default:
        break;
    }
}

/* One function a type and form of B, so that none holds the code of all. */
#define BLOCKS(name, type)                                                                                             \
    static void dots_##name(const pl_gemm_thin_product *t, int64_t j, int64_t columns, float *s)                       \
    {                                                                                                                  \
        block_by_dots(type, t, j, columns, s);                                                                         \
    }                                                                                                                  \
    static void strips_##name(const pl_gemm_thin_product *t, int64_t j, int64_t columns, float *s)                     \
    {                                                                                                                  \
        block_by_strips(type, t, j, columns, s);                                                                       \
    }
/* clang-format off: it takes the macros for types */
BLOCKS(f32, PL_REAL_F32)
BLOCKS(bf16, PL_REAL_BF16)
BLOCKS(f16, PL_REAL_F16)
/* clang-format on */

typedef void block_fn(const pl_gemm_thin_product *, int64_t j, int64_t columns, float *s);

void pl_gemm_thin(const pl_gemm_thin_product *t, int64_t begin, int64_t end)
{
    static block_fn *const blocks[PL_GEMM_REALS][2] = {
        [PL_REAL_F32] = {dots_f32, strips_f32},
        [PL_REAL_BF16] = {dots_bf16, strips_bf16},
        [PL_REAL_F16] = {dots_f16, strips_f16},
    };
    block_fn *sum = blocks[t->a_type][t->b_col == 1];
    float s[PL_GEMM_THIN_ROWS * BLOCK] __attribute__((aligned(64)));
    for (int64_t j = begin; j < end; j += BLOCK) {
        int64_t columns = end - j < BLOCK ? end - j : BLOCK;
        sum(t, j, columns, s);
        pl_gemm_finish(&t->epilogue, s, BLOCK, 0, j, t->m, columns);
    }
}
