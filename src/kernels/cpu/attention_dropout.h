/* The mask of dropout for a block of keys and a panel of queries, lanes = queries: four neighbouring keys of a query
 * are one Philox block (kernels/attention.h), so the words of PL_VW blocks are four rows of the tile as they are.
 *
 * A bit for each weight: bit j mod 32 of bits[j / 32][i] says whether query i keeps its weight of key j. It is drawn
 * once for a block, by a call: where nothing is dropped the tiles have their registers as before. */
#ifndef PL_KERNELS_CPU_ATTENTION_DROPOUT_H
#define PL_KERNELS_CPU_ATTENTION_DROPOUT_H

#include "kernels/attention.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/philox.h"

typedef struct kept {
    uint32_t bits[KEYS / 32][GROUP];
} kept;

/* All bits of the lanes that are kept: where uniform ≥ probability, both times 2²⁴. */
PL_V_INLINE pl_vu kept_of_bits(pl_vu bits, float probability)
{
    pl_vf uniform = __builtin_convertvector((pl_vi)(bits >> 8), pl_vf);
    return (pl_vu)(uniform >= pl_v_set(probability * 0x1p24f));
}

/* Of vector v of the panel that begins with query `first`: the keys [key, key + keys), keys ≤ KEYS. */
PL_V_INLINE void draw_vector(const pl_attention_dropout *d, int64_t first, int64_t key, int v, int64_t keys, kept *k)
{
    enum { STEP_KEYS = 4 * PL_V_PHILOX_BATCHES };
    const uint32_t query = (uint32_t)first + (uint32_t)(v * PL_VW);
    pl_vu lane = (pl_vu) __builtin_convertvector(pl_v_lane_index(), pl_vi);
    pl_vu block = (lane + query) * d->row_blocks + (d->block + (uint32_t)(key / 4));
    for (int64_t at = 0; at < keys; at += STEP_KEYS) {
        pl_vu rows[PL_V_PHILOX_ROWS], bits = {0};
        PL_V_UNROLL for (uint32_t b = 0; b < PL_V_PHILOX_BATCHES; b++) rows[4 * b] = block + ((uint32_t)(at / 4) + b);
        pl_v_philox_words(&d->philox, d->step, d->sample, rows);
        PL_V_UNROLL for (int r = 0; r < STEP_KEYS; r++) bits |=
            kept_of_bits(rows[r], d->probability) & (UINT32_C(1) << r);
        float *to = (float *)&k->bits[at / 32][v * PL_VW];
        pl_vu before = at % 32 ? (pl_vu)pl_v_load(to) : (pl_vu){0};
        pl_v_store(to, (pl_vf)(before | bits << (uint32_t)(at % 32)));
    }
}

/* limit[v]: the keys of vector v that matter. */
PL_V_CALL void draw_kept(const pl_attention_dropout *d, int64_t first, int64_t key, int vectors,
                         const int64_t limit[VECTORS], kept *k)
{
    for (int v = 0; v < vectors; v++) draw_vector(d, first, key, v, limit[v], k);
}

/* All bits of the lanes of vector v that keep key j. */
PL_V_INLINE pl_vu kept_lanes(const kept *k, int64_t j, int v)
{
    pl_vu bits = (pl_vu)pl_v_load((const float *)&k->bits[j / 32][v * PL_VW]);
    return 0 - (bits >> (uint32_t)(j % 32) & 1);
}

/* The same for row j of the words across keys. */
PL_V_INLINE pl_vu kept_words(const kept *k, int64_t j, int v)
{
#if defined(ATTENTION_PAIRS)
    return (kept_lanes(k, 2 * j, v) & 0xffff) | kept_lanes(k, 2 * j + 1, v) << 16;
#else
    return kept_lanes(k, j, v);
#endif
}

/* A tile of ROWS keys from row j on, from vector v0 on: what is kept times scale, else 0. */
PL_V_INLINE void drop_tile(int vectors, const kept *k, float scale, int64_t j, int v0, pl_vf acc[ROWS][VECTORS])
{
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] =
        (pl_vf)((pl_vu)(scale * acc[r][v]) & kept_lanes(k, j + r, v0 + v));
}

#endif
