/* Attention forward without the T×T matrix: the online softmax of FlashAttention (Dao et al. 2022; Milakov & Gimelshein
 * 2018) over blocks of KEYS keys, in base 2 (log₂e is folded into the scale).
 *
 *   a task: PANELS panels of GROUP queries          for each block of keys: K, V copied once, then per panel
 *   ┌──────────┐                                      S = K·Qᵀ   [keys, queries]   masked at the diagonal
 *   │ Qᵀ  dh×GROUP  packed once                       m' = max(m, max S), P = 2^(S − m'), l = l·2^(m−m') + ΣP
 *   │ Oᵀ  dh×GROUP  running                           Oᵀ = Oᵀ·2^(m−m') + Vᵀ·P
 *   └──────────┘                                      at the end o = Oᵀ/l, lse = m·ln 2 + ln l
 *
 * Key blocks past the diagonal are not visited, and inside a block vectors of queries that see nothing are left out.
 * Everything of a task depends on its place alone, so the bits do not depend on who runs it.
 *
 * With dropout the weights of P that are dropped become 0 between its sum and its product with V; 1/(1 − p) is left to
 * the end.
 *
 * Caps and the far end of a window are applied to S in a pass of its own, in the blocks that have them.
 *
 * Written once for every kind of word (attention_words.h): in pairs of bf16, P is rounded to bf16 before it meets V.
 * Included by one file a kind. */
#ifndef PL_KERNELS_CPU_ATTENTION_FORWARD_H
#define PL_KERNELS_CPU_ATTENTION_FORWARD_H

#include <float.h>
#include <math.h>

#include "kernels/attention.h"
#include "kernels/cpu/attention_ahead.h"
#include "kernels/cpu/attention_dropout.h"
#include "kernels/cpu/attention_keys.h"
#include "kernels/cpu/attention_words.h"

enum { PANELS = PL_VW == 16 ? 2 : 4 };

typedef struct panel {
    int64_t first, count; /* queries */
    word *qt;             /* [words_of(dh)][GROUP] */
    float *ot;            /* [dh rounded up to ROWS][GROUP] */
    float *top, *sum;     /* [GROUP] m and l */
    float *correction;    /* [GROUP] 2^(m − m') of the block in hand; in memory, the registers are all taken */
} panel;

typedef struct key_block {
    int64_t first, count, width, ldk, ldv;
    word *k, *v; /* [KEYS][ldk], [words_of(KEYS)][ldv], zeros behind */
    float *p;    /* [KEYS][GROUP], of which P takes the first words_of(KEYS) rows */
    float scale; /* of S */
    float cap;   /* of S; 0: none */
    fetch *ahead;
    const pl_attention_dropout *dropout; /* NULL: nothing is dropped */
} key_block;

/* S of ROWS keys from row j on, for the last `vectors` vectors of the panel, from vector v0; raises high. */
TILE_TARGET PL_V_INLINE void score_rows(int vectors, int v0, const diagonal *g, const key_block *b, const panel *t,
                                        int64_t j, int64_t keys, pl_vf *high)
{
    pl_vf acc[ROWS][VECTORS];
    zero_tile(vectors, acc);
    multiply(0, vectors, b->ldk, b->k + j * b->ldk, b->ldk, 1, t->qt + v0 * PL_VW, GROUP, acc);
    scale_tile(vectors, b->scale, acc);
    if (j + ROWS > keys || g->shift + j + ROWS - 1 > v0 * PL_VW)
        PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] =
            mask_lanes(g, j + r, keys, v0 + v, acc[r][v], pl_v_set(-INFINITY));
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) high[v0 + v] =
        pl_v_max(high[v0 + v], acc[r][v]);
    store_tile(vectors, b->p + j * GROUP + v0 * PL_VW, GROUP, acc);
}

TILE_TARGET static void scores(int vectors, const diagonal *g, const key_block *b, const panel *t, int64_t keys,
                               pl_vf *high)
{
    for (int64_t j = 0; j < keys; j += ROWS) {
        int v0 = first_vector(g, j);
        fetch_some(b->ahead);
        switch (vectors - v0) {
        case 3:
            score_rows(3, v0, g, b, t, j, keys, high);
            break;
        case 2:
            score_rows(2, v0, g, b, t, j, keys, high);
            break;
        default:
            score_rows(1, v0, g, b, t, j, keys, high);
            break;
        }
    }
}

/* S as it is after its cap, which leaves −∞ as it is, and without the keys before the window: lane i of the panel sees
 * the keys of the block from `begin + i` on. Takes `high` anew. */
TILE_TARGET PL_V_CALL void revise_scores(int vectors, const diagonal *g, const key_block *b, int64_t begin, pl_vf *high)
{
    const pl_vf cap = pl_v_set(b->cap), never = pl_v_set(-INFINITY), lowest = pl_v_set(-FLT_MAX);
    for (int v = 0; v < vectors; v++) {
        high[v] = lowest;
        for (int64_t j = 0; j < g->limit[v]; j++) {
            float *s = b->p + j * GROUP + v * PL_VW;
            pl_vf x = pl_v_load(s);
            if (b->cap > 0) x = pl_v_select_gt(lowest, x, x, cap * pl_v_tanh(x / cap));
            x = pl_v_select_gt(pl_v_lane_index(), pl_v_set((float)(j - begin - v * PL_VW)), never, x);
            pl_v_store(s, x);
            high[v] = pl_v_max(high[v], x);
        }
    }
}

/* P = 2^(S − m) in place for the rows of words [begin, end), vectors [v0, v1); adds to total. */
TILE_TARGET PL_V_INLINE void exponentials(int v0, int v1, float *p, int64_t begin, int64_t end, const pl_vf *top,
                                          pl_vf *total)
{
    for (int64_t j = begin; j < end; j++)
        PL_V_UNROLL for (int v = v0; v < v1; v++) total[v] = weigh(p + v * PL_VW, j, top[v], total[v]);
}

/* 0 in P, as words, for what is dropped. */
PL_V_CALL void drop_weights(int vectors, const diagonal *g, const key_block *b, const panel *t)
{
    kept k;
    draw_kept(b->dropout, t->first, b->first, vectors, g->limit, &k);
    for (int v = 0; v < vectors; v++)
        for (int64_t j = 0; j < words_of(g->limit[v]); j++) {
            float *p = b->p + j * GROUP + v * PL_VW;
            pl_v_store(p, (pl_vf)((pl_vu)pl_v_load(p) & kept_words(&k, j, v)));
        }
}

/* The softmax step and Oᵀ = Oᵀ·correction + Vᵀ·P. */
TILE_TARGET PL_V_INLINE void accumulate(int vectors, const diagonal *g, const key_block *b, const panel *t,
                                        const pl_vf *high)
{
    pl_vf top[VECTORS], total[VECTORS];
    PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_vf old = pl_v_load(t->top + v * PL_VW);
        top[v] = pl_v_max(old, high[v]);
        pl_v_store(t->correction + v * PL_VW, pl_v_exp2_flush(old - top[v]));
        total[v] = pl_v_zero();
    }
    int64_t done = 0, limit[VECTORS];
    PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        limit[v] = words_of(g->limit[v]);
        exponentials(v, vectors, b->p, done, limit[v], top, total);
        done = limit[v];
    }
    PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_v_store(t->top + v * PL_VW, top[v]);
        pl_vf before = pl_v_load(t->sum + v * PL_VW) * pl_v_load(t->correction + v * PL_VW);
        pl_v_store(t->sum + v * PL_VW, before + total[v]);
    }
    if (b->dropout) drop_weights(vectors, g, b, t);
    for (int64_t d = 0; d < b->width; d += ROWS) {
        pl_vf acc[ROWS][VECTORS];
        fetch_some(b->ahead);
        load_tile(vectors, t->ot + d * GROUP, GROUP, acc);
        PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] *=
            pl_v_load(t->correction + v * PL_VW);
        multiply_ragged(vectors, limit, b->v + d, 1, b->ldv, (const word *)b->p, GROUP, acc);
        store_tile(vectors, t->ot + d * GROUP, GROUP, acc);
    }
}

TILE_TARGET static void visit(const pl_attention_head *h, const key_block *b, const panel *t)
{
    int64_t keys = clamp_to(keys_seen(h, t->first + t->count - 1) - b->first, b->count);
    int64_t begin = first_key_seen(h, t->first) - b->first, end = first_key_seen(h, t->first + t->count - 1) - b->first;
    if (keys == 0 || begin >= keys) return;
    diagonal g = diagonal_of(h->causal, b->first, h->offset + t->first, keys);
    pl_vf high[VECTORS];
    for (int v = 0; v < VECTORS; v++) high[v] = pl_v_set(-FLT_MAX);
    int vectors = (int)((t->count + PL_VW - 1) / PL_VW);
    scores(vectors, &g, b, t, keys, high);
    if (b->cap > 0 || end > 0)
        revise_scores(vectors, &g, b, h->window ? h->offset + t->first + 1 - h->window - b->first : -GROUP, high);
    switch (vectors) {
    case 3:
        accumulate(3, &g, b, t, high);
        break;
    case 2:
        accumulate(2, &g, b, t, high);
        break;
    default:
        accumulate(1, &g, b, t, high);
        break;
    }
}

static void start_panel(const pl_attention_head *h, panel *t)
{
    const void *q = pl_real_at(h->type, h->q, t->first * h->ldq);
    pack_queries(h->type, t->qt, q, h->ldq, t->count, h->head_width, h->scale * ATTENTION_LOG2_E);
    memset(t->ot, 0, (size_t)(round_up(h->head_width, ROWS) * GROUP) * sizeof(float));
    for (int i = 0; i < GROUP; i++) t->top[i] = -FLT_MAX, t->sum[i] = 0;
}

/* A lane that saw no key has sum 0: o = 0, lse = −inf. A NaN in the sum stays one. */
static void finish_panel(const pl_attention_head *h, panel *t)
{
    const float scale = pl_attention_kept_scale(&h->dropout);
    for (int v = 0; v < VECTORS; v++) {
        int64_t at = v * PL_VW, lanes = clamp_to(t->count - at, PL_VW);
        pl_vf zero = pl_v_zero(), sum = pl_v_load(t->sum + at);
        pl_vf lse = pl_v_fma(pl_v_load(t->top + at), pl_v_set(ATTENTION_LN_2), pl_v_log(sum));
        lse = pl_v_select_gt(sum, zero, lse, sum - INFINITY);
        if (h->lse) pl_v_store_part(h->lse + t->first + at, lse, lanes);
        pl_v_store(t->sum + at, pl_v_select_gt(sum, zero, scale / sum, sum * 0.0f));
    }
    void *o = pl_real_at(h->type, h->o, t->first * h->ldo);
    store_transposed(h->type, o, h->ldo, t->count, h->head_width, t->ot, t->sum);
}

static int64_t make_panels(const pl_attention_head *h, int64_t begin, int64_t end, float *memory, panel *panels)
{
    int64_t count = 0, width = h->head_width;
    for (int64_t i = begin; i < end; i += GROUP, count++) {
        panel *t = &panels[count];
        *t = (panel){.first = i, .count = smaller(end - i, GROUP), .qt = (word *)memory};
        t->ot = (float *)t->qt + words_of(width) * GROUP;
        t->top = t->ot + round_up(width, ROWS) * GROUP;
        t->sum = t->top + GROUP;
        t->correction = t->sum + GROUP;
        memory = t->correction + GROUP;
        start_panel(h, t);
    }
    return count;
}

/* Pairs have neither rings nor blocks: what lies across rows would be cut. */
static void take_block(const pl_attention_head *h, const key_block *b)
{
#if defined(ATTENTION_PAIRS)
    const void *k = pl_real_at(h->key_type, h->k, b->first * h->ldk);
    const void *v = pl_real_at(h->key_type, h->v, b->first * h->ldv);
    copy_along(h->key_type, b->k, b->ldk, round_up(b->count, ROWS), k, h->ldk, b->count, b->width);
    copy_across(h->key_type, b->v, b->ldv, v, h->ldv, b->count, b->width, 1);
#else
    copy_keys(h, h->k, h->ldk, b->first, b->count, round_up(b->count, ROWS), b->k, b->ldk);
    copy_keys(h, h->v, h->ldv, b->first, b->count, b->count, b->v, b->ldv);
#endif
}

static void attend(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    int64_t width = h->head_width;
    key_block b = {.width = width, .ldk = words_of(width), .ldv = round_up(width, ROWS), .p = workspace};
    b.k = (word *)workspace + KEYS * GROUP;
    b.v = b.k + KEYS * b.ldk;
    b.scale = h->scale * ATTENTION_LOG2_E;
    b.cap = h->cap * ATTENTION_LOG2_E;
    b.ahead = &(fetch){.ahead = h->ahead};
    b.dropout = h->dropout.probability > 0 ? &h->dropout : NULL;
    panel panels[PANELS];
    float *memory = (float *)(b.v + words_of(KEYS) * b.ldv);
    int64_t count = make_panels(h, begin, end, memory, panels), last = keys_seen(h, end - 1);
    for (b.first = first_key_seen(h, begin); b.first < last; b.first += KEYS) {
        b.count = smaller(last - b.first, KEYS);
        take_block(h, &b);
        for (int64_t i = 0; i < count; i++) visit(h, &b, &panels[i]);
    }
    for (int64_t i = 0; i < count; i++) finish_panel(h, &panels[i]);
}

#endif
