/* How attention's matrices become words (kernels/gemm.h: what tiles multiply), for the two kinds there are: an f32, or
 * with ATTENTION_PAIRS two neighbours of bf16. A product runs over words; pairs follow the direction of its sum:
 *
 *              sum over head elements          sum over keys or queries
 *   f32        a word is an element            a word is an element
 *   pairs      along a row: (x[r][2p],         across rows: (x[2p][d],
 *              x[r][2p + 1])                   x[2p + 1][d])
 *
 * A pair that has no second is filled up with a zero. */
#ifndef PL_KERNELS_CPU_ATTENTION_WORDS_H
#define PL_KERNELS_CPU_ATTENTION_WORDS_H

#include "kernels/attention.h"
#include "kernels/cpu/attention_tile.h"

#if defined(PL_LEVEL_avx512)
/* attention_pairs.c, attention_pairs_bwd.c: the kernels of kernels.def for bf16, where AVX512-BF16 is. */
void pl_attention_pairs(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace);
void pl_attention_pairs_bwd(const pl_attention_bwd_head *h, const pl_attention_part *part, void *workspace);

/* attention_amx.c: likewise where AMX is, forward. */
int64_t pl_attention_amx_queries(void);
uint64_t pl_attention_amx_workspace_bytes(int64_t head_width);
void pl_attention_amx(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace);
#endif

PL_V_INLINE int64_t keys_seen(const pl_attention_head *h, int64_t query)
{
    return h->causal ? clamp_to(h->offset + query + 1, h->tk) : h->tk;
}

PL_V_INLINE int64_t first_key_seen(const pl_attention_head *h, int64_t query)
{
    return h->window ? clamp_to(h->offset + query + 1 - h->window, h->tk) : 0;
}

#if !defined(ATTENTION_PAIRS)

enum { STEP = 1 }; /* elements of a word */

PL_V_INLINE int64_t words_of(int64_t elems) { return elems; }

/* to[word][i] = scale·from[i][·] for i < rows ≤ GROUP, zeros up to the next multiple of PL_VW. */
PL_V_INLINE void pack_queries(pl_real type, word *to, const void *from, int64_t ld, int64_t rows, int64_t width,
                              float scale)
{
    pack_transposed(type, to, from, ld, rows, width, scale);
}

/* What the scores are still to be multiplied with: nothing, the queries were. */
PL_V_INLINE void scale_tile(int vectors, float scale, pl_vf acc[ROWS][VECTORS])
{
    (void)vectors, (void)scale, (void)acc;
}

/* Words along the rows, ld_to ≥ words_of(width), zeros behind and in the rows [rows, padded_rows). */
PL_V_INLINE void copy_along(pl_real type, word *to, int64_t ld_to, int64_t padded_rows, const void *from, int64_t ld,
                            int64_t rows, int64_t width)
{
    copy_rows(type, to, ld_to, padded_rows, from, ld, rows, width, 1);
}

/* words_of(rows) rows of words across the rows, where a word is one element of scale·from; zeros after the width. */
PL_V_INLINE void copy_across(pl_real type, word *to, int64_t ld_to, const void *from, int64_t ld, int64_t rows,
                             int64_t width, float scale)
{
    copy_rows(type, to, ld_to, rows, from, ld, rows, width, scale);
}

/* A tile whose rows are keys and whose lanes are queries: as words along queries, rows of GROUP / STEP words; and as
 * words across keys, rows of GROUP words. Where both are the same, the second does it. */
PL_V_INLINE void store_along(int vectors, word *to, pl_vf acc[ROWS][VECTORS]) { (void)vectors, (void)to, (void)acc; }

PL_V_INLINE void store_across(int vectors, word *to, pl_vf acc[ROWS][VECTORS]) { store_tile(vectors, to, GROUP, acc); }

/* P of row j of words from S, in place, for one vector; returns total and what was added to it. */
PL_V_INLINE pl_vf weigh(float *p, int64_t j, pl_vf top, pl_vf total)
{
    pl_vf e = pl_v_exp2_flush(pl_v_load(p + j * GROUP) - top);
    pl_v_store(p + j * GROUP, e);
    return total + e;
}

#else

enum { STEP = 2 };

PL_V_INLINE int64_t words_of(int64_t elems) { return (elems + 1) / 2; }

/* The scale cannot go into the queries: they would be rounded once more. */
PL_V_INLINE void pack_queries(pl_real type, word *to, const void *from, int64_t ld, int64_t rows, int64_t width,
                              float scale)
{
    (void)type, (void)scale;
    for (int64_t i = 0; i < rows; i += PL_VW)
        for (int64_t d = 0; d < width; d += 2 * PL_VW) {
            const uint16_t *at = (const uint16_t *)from + i * ld + d;
            int64_t lines = smaller(rows - i, PL_VW), columns = words_of(smaller(width - d, 2 * PL_VW));
            pl_vf tile[PL_VW];
            PL_V_UNROLL for (int r = 0; r < PL_VW; r++) tile[r] =
                r < lines ? (pl_vf)load_halves(at + r * ld, width - d) : pl_v_zero();
            pl_v_transpose(tile);
            PL_V_UNROLL for (int r = 0; r < PL_VW; r++) if (r < columns)
                _mm512_storeu_si512(to + (d / 2 + r) * GROUP + i, (__m512i)tile[r]);
        }
}

PL_V_INLINE void scale_tile(int vectors, float scale, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] *= scale;
}

PL_V_INLINE void copy_along(pl_real type, word *to, int64_t ld_to, int64_t padded_rows, const void *from, int64_t ld,
                            int64_t rows, int64_t width)
{
    (void)type;
    for (int64_t r = 0; r < padded_rows; r++, to += ld_to)
        for (int64_t p = 0; p < ld_to; p += PL_VW) {
            words w =
                r < rows ? load_halves((const uint16_t *)from + r * ld + 2 * p, width - 2 * p) : _mm512_setzero_si512();
            _mm512_mask_storeu_epi32(to + p, words_mask(smaller(ld_to - p, PL_VW)), w);
        }
}

PL_V_INLINE void copy_across(pl_real type, word *to, int64_t ld_to, const void *from, int64_t ld, int64_t rows,
                             int64_t width, float scale)
{
    (void)type, (void)scale;
    for (int64_t r = 0; r < rows; r += 2, to += ld_to)
        for (int64_t d = 0; d < ld_to; d += PL_VW) {
            const uint16_t *first = (const uint16_t *)from + r * ld + d, *second = r + 1 < rows ? first + ld : first;
            __mmask16 mask = words_mask(clamp_to(width - d, PL_VW));
            words w = pairs_of(_mm256_maskz_loadu_epi16(mask, first),
                               _mm256_maskz_loadu_epi16(r + 1 < rows ? mask : 0, second));
            _mm512_mask_storeu_epi32(to + d, words_mask(smaller(ld_to - d, PL_VW)), w);
        }
}

/* Two vectors, rounded, as pairs: (first[i], second[i]). */
TILE_TARGET PL_V_INLINE words paired(pl_vf first, pl_vf second)
{
    static const uint16_t turns[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                       8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m512i halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(turns), halves);
}

TILE_TARGET PL_V_INLINE void store_along(int vectors, word *to, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) _mm256_storeu_si256(
        (void *)(to + r * (GROUP / STEP) + v * PL_VW / STEP), (__m256i)_mm512_cvtneps_pbh((__m512)acc[r][v]));
}

TILE_TARGET PL_V_INLINE void store_across(int vectors, word *to, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r += 2) PL_V_UNROLL for (int v = 0; v < vectors; v++)
        _mm512_storeu_si512(to + r / 2 * GROUP + v * PL_VW, paired(acc[r][v], acc[r + 1][v]));
}

/* The sum is that of the exponentials before they are rounded. */
TILE_TARGET PL_V_INLINE pl_vf weigh(float *p, int64_t j, pl_vf top, pl_vf total)
{
    pl_vf first = pl_v_exp2_flush(pl_v_load(p + 2 * j * GROUP) - top);
    pl_vf second = pl_v_exp2_flush(pl_v_load(p + (2 * j + 1) * GROUP) - top);
    _mm512_storeu_si512(p + j * GROUP, paired(first, second));
    return total + first + second;
}

#endif
#endif
