/* Products whose B is a weight of blocks. What meets A is bit for bit what base/encoding.h widens, and is
 * added in the same order as numbers that are f32 already: a product has the bits of the one with the widened weight.
 *
 *   many rows   a vector of columns is widened, some of k at a time, into memory of the first-level cache, and turned
 *               from there into the panel that tiles read: each of them meets all rows of a unit
 *   transposed  (dx = dy W) rows of the panel are widened as they lie
 *   few rows    four columns likewise, and all rows take their part of the dot products from there
 *   one row     what is widened goes from the register into the sum (not at baseline, where that would be much code) */
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/gemm_level.h"

enum {
    CHUNK = 128, /* of k, widened at a time */
    COLUMNS = 4,
    ROWS = PL_VW == 16 ? 4 : 2,
    AT_ONCE = 16,
    SUMS = 4 * PL_VW /* columns whose sums are complete before the epilogue runs on them */
};

/* Groups [begin, end) of a row. */
PL_V_INLINE void widen_row(pl_encoding e, const uint8_t *row, int64_t begin, int64_t end, float *to)
{
    const int64_t groups = pl_groups_of(e), bytes = pl_block_bytes_of(e);
    while (begin < end) {
        const uint8_t *b = row + begin / groups * bytes;
        const int64_t stop = (begin / groups + 1) * groups;
        pl_block_scales scales;
        pl_scales_of(e, b, &scales);
        for (; begin < end && begin < stop; begin++) {
            pl_vf number[PL_GROUP_VECTORS];
            pl_v_group(e, b, &scales, begin % groups, number);
            PL_V_UNROLL for (int v = 0; v < PL_GROUP_VECTORS; v++, to += PL_VW) pl_v_store(to, number[v]);
        }
    }
}

/* Numbers [begin, end) of so many columns, CHUNK apart. */
PL_V_INLINE void widen_columns(pl_encoding e, const uint8_t *blocks, int64_t row_bytes, int64_t columns, int64_t begin,
                               int64_t end, float *to)
{
    for (int64_t j = 0; j < columns; j++)
        widen_row(e, blocks + j * row_bytes, begin / PL_GROUP, end / PL_GROUP, to + j * CHUNK);
}

PL_V_CALL void widen(pl_encoding e, const uint8_t *blocks, int64_t row_bytes, int64_t columns, int64_t begin,
                     int64_t end, float *to)
{
    PL_BLOCKS_EACH(e, widen_columns(ENCODING, blocks, row_bytes, columns, begin, end, to));
}

static int64_t end_of_chunk(int64_t begin, int64_t k) { return k - begin < CHUNK ? k : begin + CHUNK; }

void pl_gemm_strip_of_blocks(pl_encoding e, const void *blocks, int64_t row_bytes, int64_t k, int64_t columns,
                             float *dst, int64_t stride)
{
    float wide[PL_VW * CHUNK] __attribute__((aligned(64)));
    for (int64_t begin = 0, end; begin < k; begin = end) {
        end = end_of_chunk(begin, k);
        widen(e, blocks, row_bytes, columns, begin, end, wide);
        pl_gemm_pack[PL_REAL_F32].b_strip(wide, CHUNK, end - begin, columns, dst + begin * stride, stride);
    }
}

void pl_gemm_rows_of_blocks(pl_encoding e, const void *blocks, int64_t row_bytes, int64_t k, int64_t begin,
                            int64_t columns, float *dst, int64_t stride)
{
    float wide[CHUNK] __attribute__((aligned(64)));
    const int64_t first = begin / PL_GROUP * PL_GROUP, end = (begin + columns + PL_GROUP - 1) / PL_GROUP * PL_GROUP;
    for (int64_t p = 0; p < k; p++) {
        widen(e, (const uint8_t *)blocks + p * row_bytes, row_bytes, 1, first, end, wide);
        for (int64_t j = 0; j < columns; j += PL_VW)
            pl_v_store(dst + p * stride + j, pl_v_load(wide + begin - first + j));
    }
}

/* ---- few rows ---- */

/* Bytes [begin, end) of the rows that come after these: four short rows at a time are more than a processor follows. */
PL_V_INLINE void fetch_next_columns(const uint8_t *blocks, int64_t row_bytes, int64_t begin, int64_t end)
{
    for (int64_t c = COLUMNS; c < 2 * COLUMNS; c++)
        for (int64_t at = begin; at < end; at += 64) __builtin_prefetch(blocks + c * row_bytes + at, 0, 2);
}

typedef struct sums { /* along vectors of k */
    pl_vf of[AT_ONCE][COLUMNS];
} sums;

PL_V_INLINE void add_dots(int rows, int64_t count, const float *a, int64_t lda, const float *wide, pl_vf to[][COLUMNS])
{
    pl_vf acc[ROWS][COLUMNS];
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int c = 0; c < COLUMNS; c++) acc[r][c] = to[r][c];
    for (int64_t p = 0; p < count; p += PL_VW) {
        pl_vf w[COLUMNS];
        PL_V_UNROLL for (int c = 0; c < COLUMNS; c++) w[c] = pl_v_load(wide + c * CHUNK + p);
        PL_V_UNROLL for (int r = 0; r < rows; r++)
        {
            const pl_vf x = pl_v_load(a + r * lda + p);
            PL_V_UNROLL for (int c = 0; c < COLUMNS; c++) acc[r][c] = pl_v_fma(x, w[c], acc[r][c]);
        }
    }
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int c = 0; c < COLUMNS; c++) to[r][c] = acc[r][c];
}

/* `columns` ≤ COLUMNS; of those past it what is added up means nothing. */
static void dots(const pl_gemm_thin_product *t, int64_t i, int64_t rows, const uint8_t *blocks, int64_t row_bytes,
                 int64_t columns, sums *s)
{
    float wide[COLUMNS * CHUNK] __attribute__((aligned(64))) = {0};
    memset(s, 0, (size_t)rows * sizeof s->of[0]);
    for (int64_t begin = 0, end; begin < t->k; begin = end) {
        const float *a = (const float *)t->a + i * t->a_row + begin;
        int64_t r = 0;
        end = end_of_chunk(begin, t->k);
        fetch_next_columns(blocks, row_bytes, row_bytes * begin / t->k, row_bytes * end / t->k);
        widen(t->b_encoding, blocks, row_bytes, columns, begin, end, wide);
        for (; r + ROWS <= rows; r += ROWS) add_dots(ROWS, end - begin, a + r * t->a_row, t->a_row, wide, s->of + r);
        for (; r < rows; r++) add_dots(1, end - begin, a + r * t->a_row, t->a_row, wide, s->of + r);
    }
}

/* ---- one row ---- */

PL_V_INLINE void dots_of_row(pl_encoding e, int columns, const float *a, const uint8_t *blocks, int64_t row_bytes,
                             pl_vf *to)
{
    const int64_t groups = pl_groups_of(e), bytes = pl_block_bytes_of(e), count = row_bytes / bytes;
    pl_vf acc[COLUMNS];
    PL_V_UNROLL for (int c = 0; c < columns; c++) acc[c] = pl_v_zero();
    for (int64_t i = 0; i < count; i++, blocks += bytes) {
        pl_block_scales scales[COLUMNS];
        if (i * bytes % 64 < bytes) fetch_next_columns(blocks, row_bytes, 0, bytes); /* a line once */
        PL_V_UNROLL for (int c = 0; c < columns; c++) pl_scales_of(e, blocks + c * row_bytes, &scales[c]);
        for (int64_t g = 0; g < groups; g++, a += PL_GROUP) PL_V_UNROLL for (int c = 0; c < columns; c++)
            {
                pl_vf w[PL_GROUP_VECTORS];
                pl_v_group(e, blocks + c * row_bytes, &scales[c], g, w);
                PL_V_UNROLL for (int v = 0; v < PL_GROUP_VECTORS; v++) acc[c] =
                    pl_v_fma(pl_v_load(a + v * PL_VW), w[v], acc[c]);
            }
    }
    PL_V_UNROLL for (int c = 0; c < columns; c++) to[c] = acc[c];
}

PL_V_CALL void dots_of_four(pl_encoding e, const float *a, const uint8_t *blocks, int64_t row_bytes, pl_vf *to)
{
    PL_BLOCKS_EACH(e, dots_of_row(ENCODING, COLUMNS, a, blocks, row_bytes, to));
}

/* ---- both ---- */

/* Rows [i, i + rows) of columns [j, j + count) of B, count ≤ SUMS, into s, whose rows are SUMS long. */
static void sums_of(const pl_gemm_thin_product *t, int64_t i, int64_t rows, int64_t j, int64_t count, float *s)
{
    const int64_t row_bytes = pl_encoding_row_bytes(t->b_encoding, t->k);
    sums of;
    for (int64_t done = 0; done < count; done += COLUMNS) {
        const uint8_t *blocks = (const uint8_t *)t->b + (j + done) * row_bytes;
        const int64_t columns = count - done < COLUMNS ? count - done : COLUMNS;
        if (rows == 1 && columns == COLUMNS && PL_VW > 4)
            dots_of_four(t->b_encoding, (const float *)t->a + i * t->a_row, blocks, row_bytes, of.of[0]);
        else
            dots(t, i, rows, blocks, row_bytes, columns, &of);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) s[r * SUMS + done + c] = pl_v_sum(of.of[r][c]);
    }
}

void pl_gemm_thin_blocks(const pl_gemm_thin_product *t, int64_t begin, int64_t end)
{
    float s[AT_ONCE * SUMS] __attribute__((aligned(64)));
    const int gated = t->epilogue.gated;
    const int64_t step = gated ? PL_VW : SUMS; /* of a gated product both factors lie side by side, as in a tile */
    for (int64_t j = begin; j < end; j += step) {
        const int64_t columns = end - j < step ? end - j : step;
        for (int64_t i = 0; i < t->m; i += AT_ONCE) {
            const int64_t rows = t->m - i < AT_ONCE ? t->m - i : AT_ONCE;
            sums_of(t, i, rows, j, columns, s);
            if (gated) sums_of(t, i, rows, t->n + j, columns, s + PL_VW);
            pl_gemm_finish(&t->epilogue, s, SUMS, i, j, rows, columns);
        }
    }
}
