/* Products of few rows (one token generated: m = 1), where B is read once and packing it would double the traffic. k is
 * contiguous in A and in B: dot products, 4 columns at a time, vectors along k; lanes are summed at the end. Each row
 * for itself, whatever their number. Operands of 16 bits are widened as they are read. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"

enum {
    ROWS = PL_VW == 16 ? 4 : 2, /* rows at a time: ROWS × 4 accumulators */
    COLUMNS = 4,
    AT_ONCE = 8,
    BLOCK = 4 * PL_VW /* rows and columns that are summed before the epilogue runs on them */
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

PL_V_INLINE void block_by_dots(pl_real a_type, pl_real b_type, const pl_gemm_thin_product *t, int64_t i, int64_t rows,
                               int64_t j, int64_t columns, float *s)
{
    array a = {a_type, pl_real_at(a_type, t->a, i * t->a_row)}, b = {b_type, pl_real_at(b_type, t->b, j * t->b_col)};
    int64_t c = 0;
    for (; c + COLUMNS <= columns; c += COLUMNS) dots(rows, t->k, a, t->a_row, from(b, c * t->b_col), t->b_col, s + c);
    last_dots(rows, columns - c, t->k, a, t->a_row, from(b, c * t->b_col), t->b_col, s + c);
}

static void block_of_sums(const pl_gemm_thin_product *t, int64_t i, int64_t rows, int64_t j, int64_t columns, float *s)
{
    if (t->a_type == t->b_type)
        PL_REAL_EACH(t->b_type, block_by_dots(REAL, REAL, t, i, rows, j, columns, s));
    else
        PL_REAL_EACH(t->b_type, block_by_dots(PL_REAL_F32, REAL, t, i, rows, j, columns, s));
}

/* Both factors of PL_VW columns of C, side by side as a tile has them. */
static void thin_gated(const pl_gemm_thin_product *t, int64_t begin, int64_t end)
{
    float s[AT_ONCE * BLOCK] __attribute__((aligned(64))) = {0};
    for (int64_t j = begin; j < end; j += PL_VW) {
        int64_t columns = end - j < PL_VW ? end - j : PL_VW;
        for (int64_t i = 0; i < t->m; i += AT_ONCE) {
            int64_t rows = t->m - i < AT_ONCE ? t->m - i : AT_ONCE;
            block_of_sums(t, i, rows, j, columns, s);
            block_of_sums(t, i, rows, t->n + j, columns, s + PL_VW);
            pl_gemm_finish(&t->epilogue, s, BLOCK, i, j, rows, columns);
        }
    }
}

void pl_gemm_thin(const pl_gemm_thin_product *t, int64_t begin, int64_t end)
{
    if (pl_encoding_block(t->b_encoding) > 1) {
        pl_gemm_thin_blocks(t, begin, end);
        return;
    }
    float s[AT_ONCE * BLOCK] __attribute__((aligned(64)));
    if (t->epilogue.gated) {
        thin_gated(t, begin, end);
        return;
    }
    for (int64_t j = begin; j < end; j += BLOCK) {
        int64_t columns = end - j < BLOCK ? end - j : BLOCK;
        for (int64_t i = 0; i < t->m; i += AT_ONCE) {
            int64_t rows = t->m - i < AT_ONCE ? t->m - i : AT_ONCE;
            block_of_sums(t, i, rows, j, columns, s);
            pl_gemm_finish(&t->epilogue, s, BLOCK, i, j, rows, columns);
        }
    }
}
