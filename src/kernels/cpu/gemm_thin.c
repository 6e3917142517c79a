/* Products of few rows (one token generated: m = 1), where B is read once and packing it would double the traffic. A
 * has its k contiguous. k contiguous in B   dot products, 4 columns at a time, vectors along k; lanes are summed at the
 * end n contiguous in B   4 vectors of columns at a time, k in ascending order */
#include "kernels/cpu/gemm_level.h"

enum {
    ROWS = PL_VW == 16 ? 4 : 2, /* rows at a time: ROWS × 4 accumulators */
    COLUMNS = 4,
    BLOCK = 4 * PL_VW /* columns that are summed before the epilogue runs on them */
};

PL_V_INLINE void dot_step(int rows, int columns, pl_vf acc[][COLUMNS], const float *a, int64_t lda, const float *b,
                          int64_t ldb, int64_t count)
{
    pl_vf x[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) x[r] = count == PL_VW ? pl_v_load(a + r * lda) : pl_v_load_part(a + r * lda, count);
#pragma GCC unroll 4
    for (int c = 0; c < columns; c++) {
        pl_vf y = count == PL_VW ? pl_v_load(b + c * ldb) : pl_v_load_part(b + c * ldb, count);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) acc[r][c] = pl_v_fma(x[r], y, acc[r][c]);
    }
}

/* s[r·BLOCK + c] = Σ_p a[r, p]·b[c, p] */
PL_V_INLINE void dot(int rows, int columns, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                     float *s)
{
    pl_vf acc[ROWS][COLUMNS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) acc[r][c] = pl_v_zero();
    int64_t p = 0;
    for (; p + PL_VW <= k; p += PL_VW) dot_step(rows, columns, acc, a + p, lda, b + p, ldb, PL_VW);
    if (p < k) dot_step(rows, columns, acc, a + p, lda, b + p, ldb, k - p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) s[r * BLOCK + c] = pl_v_sum(acc[r][c]);
}

static void dots(int64_t rows, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *s)
{
    int64_t r = 0;
    for (; r + ROWS <= rows; r += ROWS) dot(ROWS, COLUMNS, k, a + r * lda, lda, b, ldb, s + r * BLOCK);
    for (; r < rows; r++) dot(1, COLUMNS, k, a + r * lda, lda, b, ldb, s + r * BLOCK);
}

static void last_dots(int64_t rows, int64_t columns, int64_t k, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float *s)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) dot(1, 1, k, a + r * lda, lda, b + c * ldb, ldb, s + r * BLOCK + c);
}

static void block_by_dots(const pl_gemm_thin_product *t, int64_t j, int64_t columns, float *s)
{
    int64_t c = 0;
    for (; c + COLUMNS <= columns; c += COLUMNS)
        dots(t->m, t->k, t->a, t->a_row, t->b + (j + c) * t->b_col, t->b_col, s + c);
    last_dots(t->m, columns - c, t->k, t->a, t->a_row, t->b + (j + c) * t->b_col, t->b_col, s + c);
}

PL_V_INLINE void strip(int rows, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *s)
{
    pl_vf acc[ROWS][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = pl_v_zero();
    for (int64_t p = 0; p < k; p++, b += ldb) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            pl_vf y = pl_v_load(b + v * PL_VW);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) acc[r][v] = pl_v_fma(pl_v_set(a[r * lda + p]), y, acc[r][v]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) pl_v_store(s + r * BLOCK + v * PL_VW, acc[r][v]);
}

static void edge_strip(int64_t k, const float *a, const float *b, int64_t ldb, int64_t columns, float *s)
{
    pl_vf acc = pl_v_zero();
    for (int64_t p = 0; p < k; p++) acc = pl_v_fma(pl_v_set(a[p]), pl_v_load_part(b + p * ldb, columns), acc);
    pl_v_store(s, acc);
}

static void block_by_strips(const pl_gemm_thin_product *t, int64_t j, int64_t columns, float *s)
{
    const float *b = t->b + j;
    int64_t r = 0, m = t->m;
    if (columns < BLOCK) {
        for (; r < m; r++)
            for (int64_t v = 0; v < columns; v += PL_VW)
                edge_strip(t->k, t->a + r * t->a_row, b + v, t->b_row, columns - v < PL_VW ? columns - v : PL_VW,
                           s + r * BLOCK + v);
        return;
    }
    for (; r + ROWS <= m; r += ROWS) strip(ROWS, t->k, t->a + r * t->a_row, t->a_row, b, t->b_row, s + r * BLOCK);
    const float *a = t->a + r * t->a_row;
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

void pl_gemm_thin(const pl_gemm_thin_product *t, int64_t begin, int64_t end)
{
    float s[PL_GEMM_THIN_ROWS * BLOCK] __attribute__((aligned(64)));
    for (int64_t j = begin; j < end; j += BLOCK) {
        int64_t columns = end - j < BLOCK ? end - j : BLOCK;
        if (t->b_col == 1)
            block_by_strips(t, j, columns, s);
        else
            block_by_dots(t, j, columns, s);
        pl_gemm_finish(&t->epilogue, s, BLOCK, 0, j, t->m, columns);
    }
}
