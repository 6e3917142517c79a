/* The small matrix products that attention is made of, and the copies between strided matrices and packed tiles.
 *
 * Tiles are "lanes = queries": a panel holds GROUP queries side by side, a row per head element d or per key j. So the
 * maximum, the exponential and the sum of a softmax are plain vector code without a horizontal step, and K and V are
 * read one element at a time as broadcasts. Tiles are f32; 16-bit matrices are widened as they are copied in and
 * rounded as results are copied out. One product serves all five matrices of forward and backward:
 *
 *     acc[r][v] += Σ_p a[r·a_row + p·a_step] · b[p·ldb + v·PL_VW … + PL_VW)      r < ROWS, v0 ≤ v < v1
 *
 * ROWS·VECTORS accumulators fill the register file. Sums over p are sequential: their order is fixed. */
#ifndef PL_KERNELS_CPU_ATTENTION_TILE_H
#define PL_KERNELS_CPU_ATTENTION_TILE_H

#include "base/size.h"
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"

#if defined(ATTENTION_PAIRS)
#include "kernels/cpu/pairs.h"
#else
#include "kernels/cpu/singles.h"
#endif

enum {
    VECTORS = 3,
    ROWS = PL_VW == 16 ? 8 : 4,
    GROUP = VECTORS * PL_VW, /* queries of a panel */
    KEYS = 64                /* keys of a block, a multiple of ROWS and PL_VW */
};

#define ATTENTION_LOG2_E 1.4426950408889634f
#define ATTENTION_LN_2   0.69314718055994531f

PL_V_INLINE int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
PL_V_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
PL_V_INLINE int64_t clamp_to(int64_t x, int64_t end) { return x < 0 ? 0 : x > end ? end : x; }

TILE_TARGET PL_V_INLINE void multiply(int v0, int v1, int64_t steps, const word *a, int64_t a_row, int64_t a_step,
                                      const word *b, int64_t ldb, pl_vf acc[ROWS][VECTORS])
{
    for (int64_t p = 0; p < steps; p++, a += a_step, b += ldb) {
        words bv[VECTORS];
        PL_V_UNROLL for (int v = v0; v < v1; v++) bv[v] = load_words(b + v * PL_VW);
        PL_V_UNROLL for (int r = 0; r < ROWS; r++)
        {
            words av = set_word(a[r * a_row]);
            PL_V_UNROLL for (int v = v0; v < v1; v++) acc[r][v] = multiply_add(av, bv[v], acc[r][v]);
        }
    }
}

/* The same with a triangular end: vector v takes the steps [0, limit[v]), limits ascending. */
TILE_TARGET PL_V_INLINE void multiply_ragged(int vectors, const int64_t limit[VECTORS], const word *a, int64_t a_row,
                                             int64_t a_step, const word *b, int64_t ldb, pl_vf acc[ROWS][VECTORS])
{
    int64_t done = 0;
    PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        multiply(v, vectors, limit[v] - done, a + done * a_step, a_row, a_step, b + done * ldb, ldb, acc);
        done = limit[v];
    }
}

PL_V_INLINE void load_tile(int vectors, const float *c, int64_t ldc, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] =
        pl_v_load(c + r * ldc + v * PL_VW);
}

PL_V_INLINE void store_tile(int vectors, float *c, int64_t ldc, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++)
        pl_v_store(c + r * ldc + v * PL_VW, acc[r][v]);
}

PL_V_INLINE void zero_tile(int vectors, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] = pl_v_zero();
}

/* to[r][0 … ld_to) = scale·from[r][0 … width), zeros behind and in the rows [rows, padded_rows). ld_to ≥ width. */
PL_V_INLINE void copy_rows_of(pl_real type, float *to, int64_t ld_to, int64_t padded_rows, const void *from, int64_t ld,
                              int64_t rows, int64_t width, float scale)
{
    for (int64_t r = 0; r < padded_rows; r++, to += ld_to) {
        int64_t valid = r < rows ? width : 0, d = 0;
        for (; d + PL_VW <= valid; d += PL_VW) pl_v_store(to + d, scale * pl_v_get(type, from, r * ld + d, PL_VW));
        for (; d < valid; d++) to[d] = scale * pl_real_get(type, from, r * ld + d);
        for (; d < ld_to; d++) to[d] = 0;
    }
}

static inline void copy_rows(pl_real type, float *to, int64_t ld_to, int64_t padded_rows, const void *from, int64_t ld,
                             int64_t rows, int64_t width, float scale)
{
    PL_REAL_EACH(type, copy_rows_of(REAL, to, ld_to, padded_rows, from, ld, rows, width, scale));
}

/* to[d][i] = scale·from[i][d] for i < rows ≤ GROUP, zeros up to the next multiple of PL_VW; ld of `to` is GROUP. */
PL_V_INLINE void pack_transposed_of(pl_real type, float *to, const void *from, int64_t ld, int64_t rows, int64_t width,
                                    float scale)
{
    for (int64_t i = 0; i < rows; i += PL_VW)
        for (int64_t d = 0; d < width; d += PL_VW) {
            int64_t columns = smaller(width - d, PL_VW), lines = smaller(rows - i, PL_VW), at = i * ld + d;
            pl_vf tile[PL_VW];
            if (columns == PL_VW && lines == PL_VW)
                PL_V_UNROLL for (int r = 0; r < PL_VW; r++) tile[r] = pl_v_get(type, from, at + r * ld, PL_VW);
            else
                for (int64_t r = 0; r < PL_VW; r++)
                    tile[r] = r < lines ? pl_v_get(type, from, at + r * ld, columns) : pl_v_zero();
            pl_v_transpose(tile);
            PL_V_UNROLL for (int r = 0; r < PL_VW; r++) if (r < columns)
                pl_v_store(to + (d + r) * GROUP + i, scale * tile[r]);
        }
}

static inline void pack_transposed(pl_real type, float *to, const void *from, int64_t ld, int64_t rows, int64_t width,
                                   float scale)
{
    PL_REAL_EACH(type, pack_transposed_of(REAL, to, from, ld, rows, width, scale));
}

/* to[i][d] = factor[i]·from[d][i] for i < rows ≤ GROUP, d < width: the way back. factor has GROUP elements. */
PL_V_INLINE void store_transposed_of(pl_real type, void *to, int64_t ld, int64_t rows, int64_t width, const float *from,
                                     const float *factor)
{
    for (int64_t i = 0; i < rows; i += PL_VW)
        for (int64_t d = 0; d < width; d += PL_VW) {
            int64_t columns = smaller(width - d, PL_VW), lines = smaller(rows - i, PL_VW), at = i * ld + d;
            pl_vf tile[PL_VW], scale = pl_v_load(factor + i);
            PL_V_UNROLL for (int r = 0; r < PL_VW; r++) tile[r] =
                r < columns ? scale * pl_v_load(from + (d + r) * GROUP + i) : pl_v_zero();
            pl_v_transpose(tile);
            if (columns == PL_VW && lines == PL_VW)
                PL_V_UNROLL for (int r = 0; r < PL_VW; r++) pl_v_put(type, to, at + r * ld, tile[r], PL_VW);
            else
                for (int64_t r = 0; r < lines; r++) pl_v_put(type, to, at + r * ld, tile[r], columns);
        }
}

static inline void store_transposed(pl_real type, void *to, int64_t ld, int64_t rows, int64_t width, const float *from,
                                    const float *factor)
{
    PL_REAL_EACH(type, store_transposed_of(REAL, to, ld, rows, width, from, factor));
}

/* Where the diagonal cuts a block: key j of the block is seen by the lanes ≥ shift + j of the panel. */
typedef struct diagonal {
    int64_t shift, limit[VECTORS]; /* limit[v]: keys that some lane of vector v sees */
} diagonal;

/* first_key: the block's first key; first_seen: the last key that the panel's lane 0 sees; keys in the block. */
PL_V_INLINE diagonal diagonal_of(int causal, int64_t first_key, int64_t first_seen, int64_t keys)
{
    diagonal g = {.shift = causal ? first_key - first_seen : -(KEYS + GROUP)};
    for (int v = 0; v < VECTORS; v++) g.limit[v] = clamp_to((v + 1) * PL_VW - g.shift, keys);
    return g;
}

/* The first vector of the panel that sees key j. */
PL_V_INLINE int first_vector(const diagonal *g, int64_t j)
{
    return g->shift + j > 0 ? (int)((g->shift + j) / PL_VW) : 0;
}

/* value where lane (of vector v) sees key j and j < keys, else `otherwise`. */
PL_V_INLINE pl_vf mask_lanes(const diagonal *g, int64_t j, int64_t keys, int v, pl_vf value, pl_vf otherwise)
{
    int64_t first = j < keys ? g->shift + j - v * PL_VW : PL_VW;
    return pl_v_select_gt(pl_v_set((float)first), pl_v_lane_index(), otherwise, value);
}

#endif
