/* Attention backward: P is computed again from the saved lse, tile by tile, and goes straight into the five products
 * (FlashAttention-2, Dao 2023, with queries in the outer loop). One task owns a whole head, or, where there are too few
 * heads for the team, a stretch of its queries (then it computes dq alone) or of its keys (dk and dv alone). Every sum
 * has the same order either way: dq over key blocks ascending, dk and dv over panels of queries ascending.
 *
 *   per panel of GROUP queries: Qᵀ (·scale·log₂e), dOᵀ packed; scale·Q, dO copied; delta = rowsum(dO∘O)
 *     per block of KEYS keys, lanes = queries:          per block, lanes = head elements:
 *       P  = 2^(K·Qᵀ − lse·log₂e)                         dV += P·dO
 *       dS = P∘(V·dOᵀ − delta)                            dK += dS·(scale·Q)
 *       dQᵀ += Kᵀ·dS
 *   dq = scale·dQᵀ transposed back
 *
 * With dropout P·dO has the P that met V forward, mask∘P/(1 − p), and dS = P∘(mask∘(V·dOᵀ)/(1 − p) − delta). delta is
 * as it was, since rowsum(P∘dP) = rowsum(dO∘O).
 *
 * Above the diagonal P and dS are exactly 0 or not visited. dk and dv are summed in place in the output, or, where that
 * is of 16 bits, in f32 beside it: they are rounded once, at the end.
 *
 * Written once for every kind of word (attention_words.h): in pairs of bf16, P and dS are rounded to bf16 before they
 * are multiplied, and the scale is left to the ends of the sums. Included by one file a kind. */
#ifndef PL_KERNELS_CPU_ATTENTION_BACKWARD_H
#define PL_KERNELS_CPU_ATTENTION_BACKWARD_H

#include <math.h>
#include <stdbool.h>

#include "kernels/attention.h"
#include "kernels/cpu/attention_dropout.h"
#include "kernels/cpu/attention_words.h"

_Static_assert(PL_ATTENTION_PART_QUERIES % GROUP == 0 && PL_ATTENTION_PART_KEYS % KEYS == 0,
               "a part must begin where a panel or a block begins, or its sums would differ");

typedef struct work {
    int64_t width, row_width, tile_width; /* dh; rounded up to PL_VW; rounded up to ROWS */
    word *q, *d_o;                        /* across queries [GROUP][row_width] */
    word *qt, *d_ot;                      /* along head elements [dh][GROUP] */
    float *dqt;                           /* [tile_width][GROUP] */
    float *lse, *delta, *factor;          /* [GROUP] */
    word *k, *v;                          /* along head elements [KEYS][ld_along] */
    word *p, *ds;                         /* along queries [KEYS][LD_WEIGHTS] */
    word *k_across, *ds_across;           /* across keys [KEYS][tile_width], [KEYS][GROUP] */
    float *raw;                           /* P of ROWS keys as f32 [ROWS][GROUP] */
    float *dk, *dv;                       /* [keys of the part][lddk], [lddv] */
    int64_t ld_along, lddk, lddv;
    float scale;      /* of S */
    float kept_scale; /* 1/(1 − p) of dropout */
} work;

enum { LD_WEIGHTS = GROUP / STEP };

/* The same bytes for both kinds of words: two forms of pairs take the place of one of f32. sum_keys: keys whose dk and
 * dv have their sums here; 0 where these are the output. */
static uint64_t lay_out(int64_t head_width, int64_t sum_keys, float *memory, work *w)
{
    int64_t width = head_width, row = round_up(width, PL_VW), tile = round_up(width, ROWS), at = 0;
    const int64_t sizes[14] = {
        GROUP * row, GROUP * row, GROUP * width, GROUP * width, GROUP * tile,     GROUP,           GROUP, GROUP,
        KEYS * tile, KEYS * tile, KEYS * GROUP,  KEYS * GROUP,  sum_keys * width, sum_keys * width};
    float *places[14];
    for (int i = 0; i < 14; i++) {
        places[i] = memory ? memory + at : NULL;
        at += sizes[i];
    }
    *w = (work){.width = width, .row_width = row, .tile_width = tile, .ld_along = words_of(tile)};
    w->q = (word *)places[0], w->d_o = (word *)places[1], w->qt = (word *)places[2], w->d_ot = (word *)places[3];
    w->dqt = places[4], w->lse = places[5], w->delta = places[6], w->factor = places[7];
    w->k = (word *)places[8], w->v = (word *)places[9], w->p = (word *)places[10], w->ds = (word *)places[11];
    w->dk = places[12], w->dv = places[13], w->lddk = width, w->lddv = width;
    w->k_across = STEP == 1 || !memory ? w->k : w->k + KEYS * w->ld_along;
    w->ds_across = STEP == 1 || !memory ? w->ds : w->ds + KEYS * LD_WEIGHTS;
    w->raw = STEP == 1 || !memory ? places[10] : places[10] + KEYS * LD_WEIGHTS;
    return pl_align_up((uint64_t)at * sizeof(float), 64);
}

/* P and dS of ROWS keys from row j on, the last `vectors` vectors of the panel, from vector v0. mask: NULL where
 * nothing is dropped; else P is what it was before the mask until dS is made. */
TILE_TARGET PL_V_INLINE void score_rows(int vectors, int v0, const diagonal *g, const work *w, const kept *mask,
                                        int64_t j, int64_t keys)
{
    pl_vf acc[ROWS][VECTORS];
    float *raw = w->raw + (STEP == 1 ? j * GROUP : 0) + v0 * PL_VW;
    int cut = j + ROWS > keys || g->shift + j + ROWS - 1 > v0 * PL_VW;
    int64_t steps = words_of(w->width);
    zero_tile(vectors, acc);
    multiply(0, vectors, steps, w->k + j * w->ld_along, w->ld_along, 1, w->qt + v0 * PL_VW, GROUP, acc);
    scale_tile(vectors, w->scale, acc);
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_vf p = pl_v_exp2_flush(acc[r][v] - pl_v_load(w->lse + (v0 + v) * PL_VW));
        acc[r][v] = cut ? mask_lanes(g, j + r, keys, v0 + v, p, pl_v_zero()) : p;
    }
    store_tile(vectors, raw, GROUP, acc);
    store_along(vectors, w->p + j * LD_WEIGHTS + v0 * PL_VW / STEP, acc);
    zero_tile(vectors, acc);
    multiply(0, vectors, steps, w->v + j * w->ld_along, w->ld_along, 1, w->d_ot + v0 * PL_VW, GROUP, acc);
    if (mask) drop_tile(vectors, mask, w->kept_scale, j, v0, acc);
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_vf p = pl_v_load(raw + r * GROUP + v * PL_VW);
        pl_vf ds = p * (acc[r][v] - pl_v_load(w->delta + (v0 + v) * PL_VW));
        acc[r][v] = cut ? mask_lanes(g, j + r, keys, v0 + v, ds, pl_v_zero()) : ds;
    }
    store_along(vectors, w->ds + j * LD_WEIGHTS + v0 * PL_VW / STEP, acc);
    store_across(vectors, w->ds_across + j / STEP * GROUP + v0 * PL_VW, acc);
    if (mask) {
        load_tile(vectors, raw, GROUP, acc);
        drop_tile(vectors, mask, w->kept_scale, j, v0, acc);
        store_tile(vectors, raw, GROUP, acc);
        store_along(vectors, w->p + j * LD_WEIGHTS + v0 * PL_VW / STEP, acc);
    }
}

TILE_TARGET static void scores(int vectors, const diagonal *g, const work *w, const kept *mask, int64_t keys)
{
    for (int64_t j = 0; j < keys; j += ROWS) {
        int v0 = first_vector(g, j);
        switch (vectors - v0) {
        case 3:
            score_rows(3, v0, g, w, mask, j, keys);
            break;
        case 2:
            score_rows(2, v0, g, w, mask, j, keys);
            break;
        default:
            score_rows(1, v0, g, w, mask, j, keys);
            break;
        }
    }
}

TILE_TARGET PL_V_INLINE void add_query_tile(int vectors, const int64_t limit[VECTORS], const work *w, int64_t d)
{
    pl_vf acc[ROWS][VECTORS];
    load_tile(vectors, w->dqt + d * GROUP, GROUP, acc);
    multiply_ragged(vectors, limit, w->k_across + d, 1, w->tile_width, w->ds_across, GROUP, acc);
    store_tile(vectors, w->dqt + d * GROUP, GROUP, acc);
}

/* dQᵀ += Kᵀ·dS */
TILE_TARGET static void add_query_gradient(int vectors, const diagonal *g, const work *w)
{
    int64_t limit[VECTORS];
    for (int v = 0; v < VECTORS; v++) limit[v] = words_of(g->limit[v]);
    for (int64_t d = 0; d < w->width; d += ROWS) {
        switch (vectors) {
        case 3:
            add_query_tile(3, limit, w, d);
            break;
        case 2:
            add_query_tile(2, limit, w, d);
            break;
        default:
            add_query_tile(1, limit, w, d);
            break;
        }
    }
}

/* The tile of the output at `out`, of which rows × columns exist: whole tiles go the short way. */
PL_V_INLINE void load_output(int vectors, int64_t rows, int64_t columns, const float *out, int64_t ld,
                             pl_vf acc[ROWS][VECTORS])
{
    if (rows == ROWS && columns == vectors * PL_VW) {
        load_tile(vectors, out, ld, acc);
        return;
    }
    zero_tile(vectors, acc);
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) if (r < rows) acc[r][v] =
        pl_v_load_part(out + r * ld + v * PL_VW, clamp_to(columns - v * PL_VW, PL_VW));
}

PL_V_INLINE void store_output(int vectors, int64_t rows, int64_t columns, float *out, int64_t ld,
                              pl_vf acc[ROWS][VECTORS])
{
    if (rows == ROWS && columns == vectors * PL_VW) {
        store_tile(vectors, out, ld, acc);
        return;
    }
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) if (r < rows)
        pl_v_store_part(out + r * ld + v * PL_VW, acc[r][v], clamp_to(columns - v * PL_VW, PL_VW));
}

/* out += weights·rows of the panel, for ROWS keys and `vectors` vectors of the head. */
TILE_TARGET PL_V_INLINE void add_key_tile(int vectors, int64_t rows, int64_t columns, int64_t steps,
                                          const word *weights, const word *panel, int64_t ld_panel, float *out,
                                          int64_t ld_out)
{
    pl_vf acc[ROWS][VECTORS];
    load_output(vectors, rows, columns, out, ld_out, acc);
    multiply(0, vectors, steps, weights, LD_WEIGHTS, 1, panel, ld_panel, acc);
    store_output(vectors, rows, columns, out, ld_out, acc);
}

/* out[key][d] += Σ_query weights[key][query]·panel[query][d], for all keys of the block. */
TILE_TARGET static void add_key_gradient(const diagonal *g, const work *w, int64_t keys, int64_t queries,
                                         const word *weights, const word *panel, float *out, int64_t ld_out)
{
    int64_t total = w->row_width / PL_VW, chunks = (total + VECTORS - 1) / VECTORS;
    for (int64_t j = 0; j < keys; j += ROWS) {
        int64_t first = first_vector(g, j) * PL_VW, rows = smaller(keys - j, ROWS), steps = words_of(queries - first);
        const word *a = weights + j * LD_WEIGHTS + first / STEP, *b = panel + first / STEP * w->row_width;
        for (int64_t c = 0, at = 0; c < chunks; c++) {
            int64_t vectors = (total - at + chunks - c - 1) / (chunks - c), d = at * PL_VW;
            int64_t columns = smaller(vectors * PL_VW, w->width - d);
            float *to = out + j * ld_out + d;
            switch (vectors) {
            case 3:
                add_key_tile(3, rows, columns, steps, a, b + d, w->row_width, to, ld_out);
                break;
            case 2:
                add_key_tile(2, rows, columns, steps, a, b + d, w->row_width, to, ld_out);
                break;
            default:
                add_key_tile(1, rows, columns, steps, a, b + d, w->row_width, to, ld_out);
                break;
            }
            at += vectors;
        }
    }
}

PL_V_INLINE float dot_of(pl_real type, const void *a, const void *b, int64_t n)
{
    pl_vf sum = pl_v_zero();
    int64_t d = 0;
    for (; d + PL_VW <= n; d += PL_VW) sum = pl_v_fma(pl_v_get(type, a, d, PL_VW), pl_v_get(type, b, d, PL_VW), sum);
    if (d < n) sum = pl_v_fma(pl_v_get(type, a, d, n - d), pl_v_get(type, b, d, n - d), sum);
    return pl_v_sum(sum);
}

static void start_panel(const pl_attention_bwd_head *h, const work *w, int64_t first, int64_t count)
{
    pl_real type = h->type;
    const void *q = pl_real_at(type, h->q, first * h->ldq), *d_o = pl_real_at(type, h->d_o, first * h->lddo);
    copy_across(type, w->q, w->row_width, q, h->ldq, count, w->width, h->scale);
    copy_across(type, w->d_o, w->row_width, d_o, h->lddo, count, w->width, 1);
    pack_queries(type, w->qt, q, h->ldq, count, w->width, h->scale * ATTENTION_LOG2_E);
    pack_queries(type, w->d_ot, d_o, h->lddo, count, w->width, 1);
    memset(w->dqt, 0, (size_t)(w->tile_width * GROUP) * sizeof(float));
    for (int64_t i = 0; i < GROUP; i++) {
        w->lse[i] = i < count ? h->lse[first + i] * ATTENTION_LOG2_E : 0;
        w->delta[i] = 0;
        w->factor[i] = h->scale;
    }
    for (int64_t i = 0; i < count; i++) {
        const void *a = pl_real_at(type, d_o, i * h->lddo), *b = pl_real_at(type, h->o, (first + i) * h->ldo);
        PL_REAL_EACH(type, w->delta[i] = dot_of(REAL, a, b, w->width));
    }
}

static void one_block(const pl_attention_bwd_head *h, const pl_attention_part *part, const work *w, int64_t first,
                      int64_t count, int64_t key, int64_t keys)
{
    diagonal g = diagonal_of(h->causal, key, h->tk - h->tq + first, keys);
    int vectors = (int)((count + PL_VW - 1) / PL_VW);
    const void *k = pl_real_at(h->type, h->k, key * h->ldk), *v = pl_real_at(h->type, h->v, key * h->ldv);
    copy_along(h->type, w->k, w->ld_along, round_up(keys, ROWS), k, h->ldk, keys, w->width);
    copy_along(h->type, w->v, w->ld_along, round_up(keys, ROWS), v, h->ldv, keys, w->width);
    if (w->k_across != w->k) copy_across(h->type, w->k_across, w->tile_width, k, h->ldk, keys, w->width, 1);
    kept drawn;
    const bool drops = h->dropout.probability > 0;
    if (drops) draw_kept(&h->dropout, first, key, vectors, g.limit, &drawn);
    scores(vectors, &g, w, drops ? &drawn : NULL, keys);
    if (part->want_dq) add_query_gradient(vectors, &g, w);
    if (part->want_dkv) {
        int64_t at = key - part->key_begin;
        add_key_gradient(&g, w, keys, count, w->p, w->d_o, w->dv + at * w->lddv, w->lddv);
        add_key_gradient(&g, w, keys, count, w->ds, w->q, w->dk + at * w->lddk, w->lddk);
    }
}

/* dk and dv of the part begin at zero, in the output or beside it. */
static void start_sums(const pl_attention_bwd_head *h, const pl_attention_part *part, work *w)
{
    if (h->type == PL_REAL_F32) {
        w->dk = (float *)h->dk + part->key_begin * h->lddk, w->lddk = h->lddk;
        w->dv = (float *)h->dv + part->key_begin * h->lddv, w->lddv = h->lddv;
    }
    for (int64_t j = 0; j < part->key_end - part->key_begin; j++) {
        memset(w->dk + j * w->lddk, 0, (size_t)w->width * sizeof(float));
        memset(w->dv + j * w->lddv, 0, (size_t)w->width * sizeof(float));
    }
}

PL_V_INLINE void round_row(pl_real type, void *to, const float *from, int64_t width, float scale)
{
    int64_t d = 0;
    for (; d + PL_VW <= width; d += PL_VW) pl_v_put(type, to, d, scale * pl_v_load(from + d), PL_VW);
    if (d < width) pl_v_put(type, to, d, scale * pl_v_load_part(from + d, width - d), width - d);
}

static void finish_sums(const pl_attention_bwd_head *h, const pl_attention_part *part, const work *w)
{
    for (int64_t j = part->key_begin; j < part->key_end && h->type != PL_REAL_F32; j++) {
        const float *dk = w->dk + (j - part->key_begin) * w->lddk, *dv = w->dv + (j - part->key_begin) * w->lddv;
        PL_REAL_EACH(h->type,
                     round_row(REAL, pl_real_at(REAL, h->dk, j * h->lddk), dk, w->width, STEP == 1 ? 1 : h->scale);
                     round_row(REAL, pl_real_at(REAL, h->dv, j * h->lddv), dv, w->width, 1));
    }
}

static void attend_backward(const pl_attention_bwd_head *h, const pl_attention_part *part, void *workspace)
{
    work w;
    int64_t sum_keys = h->type == PL_REAL_F32 || !part->want_dkv ? 0 : part->key_end - part->key_begin;
    lay_out(h->head_width, sum_keys, workspace, &w);
    w.scale = h->scale * ATTENTION_LOG2_E, w.kept_scale = pl_attention_kept_scale(&h->dropout);
    if (part->want_dkv) start_sums(h, part, &w);
    for (int64_t first = part->query_begin; first < part->query_end; first += GROUP) {
        int64_t count = smaller(h->tq - first, GROUP), end = part->key_end;
        int64_t seen = h->causal ? clamp_to(h->tk - h->tq + first + count, end) : end;
        if (!part->want_dq && seen <= part->key_begin) continue;
        start_panel(h, &w, first, count);
        for (int64_t key = part->key_begin; key < seen; key += KEYS)
            one_block(h, part, &w, first, count, key, smaller(seen - key, KEYS));
        if (!part->want_dq) continue;
        void *dq = pl_real_at(h->type, h->dq, first * h->lddq);
        store_transposed(h->type, dq, h->lddq, count, w.width, w.dqt, w.factor);
    }
    if (part->want_dkv) finish_sums(h, part, &w);
}

#endif
