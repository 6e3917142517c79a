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
 * Above the diagonal P and dS are exactly 0 or not visited. dk and dv are summed in place in the output, or, where that
 * is of 16 bits, in f32 beside it: they are rounded once, at the end. */
#include <math.h>

#include "kernels/cpu/attention_tile.h"
#include "kernels/kernels.h"

_Static_assert(PL_ATTENTION_PART_QUERIES % GROUP == 0 && PL_ATTENTION_PART_KEYS % KEYS == 0,
               "a part must begin where a panel or a block begins, or its sums would differ");

typedef struct work {
    int64_t width, row_width, tile_width; /* dh; rounded up to PL_VW; rounded up to ROWS */
    float *q, *d_o;                       /* [GROUP][row_width] */
    float *qt, *d_ot;                     /* [dh][GROUP] */
    float *dqt;                           /* [tile_width][GROUP] */
    float *lse, *delta, *factor;          /* [GROUP] */
    float *k, *v;                         /* [KEYS][tile_width] */
    float *p, *ds;                        /* [KEYS][GROUP] */
    float *dk, *dv;                       /* [keys of the part][lddk], [lddv] */
    int64_t lddk, lddv;
} work;

/* sum_keys: keys whose dk and dv have their sums here; 0 where these are the output. */
static uint64_t lay_out(int64_t head_width, int64_t sum_keys, float *memory, work *w)
{
    int64_t width = head_width, row = round_up(width, PL_VW), tile = round_up(width, ROWS), at = 0;
    const int64_t sizes[14] = {
        GROUP * row, GROUP * row, GROUP * width, GROUP * width, GROUP * tile,     GROUP,           GROUP, GROUP,
        KEYS * tile, KEYS * tile, KEYS * GROUP,  KEYS * GROUP,  sum_keys * width, sum_keys * width};
    float **const places[14] = {&w->q,      &w->d_o, &w->qt, &w->d_ot, &w->dqt, &w->lse, &w->delta,
                                &w->factor, &w->k,   &w->v,  &w->p,    &w->ds,  &w->dk,  &w->dv};
    w->width = width, w->row_width = row, w->tile_width = tile, w->lddk = width, w->lddv = width;
    for (int i = 0; i < 14; i++) {
        if (memory) *places[i] = memory + at;
        at += sizes[i];
    }
    return pl_align_up((uint64_t)at * sizeof(float), 64);
}

uint64_t PL_KERNEL(attention_bwd_workspace_bytes)(int64_t head_width, pl_real type, int64_t keys)
{
    work w;
    return lay_out(head_width, type == PL_REAL_F32 ? 0 : keys, NULL, &w);
}

/* P and dS of ROWS keys from row j on, the last `vectors` vectors of the panel, from vector v0. */
PL_V_INLINE void score_rows(int vectors, int v0, const diagonal *g, const work *w, int64_t j, int64_t keys)
{
    pl_vf acc[ROWS][VECTORS];
    int64_t at = j * GROUP + v0 * PL_VW;
    int cut = j + ROWS > keys || g->shift + j + ROWS - 1 > v0 * PL_VW;
    zero_tile(vectors, acc);
    multiply(0, vectors, w->width, w->k + j * w->tile_width, w->tile_width, 1, w->qt + v0 * PL_VW, GROUP, acc);
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_vf p = pl_v_exp2_flush(acc[r][v] - pl_v_load(w->lse + (v0 + v) * PL_VW));
        acc[r][v] = cut ? mask_lanes(g, j + r, keys, v0 + v, p, pl_v_zero()) : p;
    }
    store_tile(vectors, w->p + at, GROUP, acc);
    zero_tile(vectors, acc);
    multiply(0, vectors, w->width, w->v + j * w->tile_width, w->tile_width, 1, w->d_ot + v0 * PL_VW, GROUP, acc);
    PL_V_UNROLL for (int r = 0; r < ROWS; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_vf p = pl_v_load(w->p + at + r * GROUP + v * PL_VW);
        pl_vf ds = p * (acc[r][v] - pl_v_load(w->delta + (v0 + v) * PL_VW));
        acc[r][v] = cut ? mask_lanes(g, j + r, keys, v0 + v, ds, pl_v_zero()) : ds;
    }
    store_tile(vectors, w->ds + at, GROUP, acc);
}

static void scores(int vectors, const diagonal *g, const work *w, int64_t keys)
{
    for (int64_t j = 0; j < keys; j += ROWS) {
        int v0 = first_vector(g, j);
        switch (vectors - v0) {
        case 3:
            score_rows(3, v0, g, w, j, keys);
            break;
        case 2:
            score_rows(2, v0, g, w, j, keys);
            break;
        default:
            score_rows(1, v0, g, w, j, keys);
            break;
        }
    }
}

PL_V_INLINE void add_query_tile(int vectors, const diagonal *g, const work *w, int64_t d)
{
    pl_vf acc[ROWS][VECTORS];
    load_tile(vectors, w->dqt + d * GROUP, GROUP, acc);
    multiply_ragged(vectors, g->limit, w->k + d, 1, w->tile_width, w->ds, GROUP, acc);
    store_tile(vectors, w->dqt + d * GROUP, GROUP, acc);
}

/* dQᵀ += Kᵀ·dS */
static void add_query_gradient(int vectors, const diagonal *g, const work *w)
{
    for (int64_t d = 0; d < w->width; d += ROWS) {
        switch (vectors) {
        case 3:
            add_query_tile(3, g, w, d);
            break;
        case 2:
            add_query_tile(2, g, w, d);
            break;
        default:
            add_query_tile(1, g, w, d);
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
PL_V_INLINE void add_key_tile(int vectors, int64_t rows, int64_t columns, int64_t steps, const float *weights,
                              const float *panel, int64_t ld_panel, float *out, int64_t ld_out)
{
    pl_vf acc[ROWS][VECTORS];
    load_output(vectors, rows, columns, out, ld_out, acc);
    multiply(0, vectors, steps, weights, GROUP, 1, panel, ld_panel, acc);
    store_output(vectors, rows, columns, out, ld_out, acc);
}

/* out[key][d] += Σ_query weights[key][query]·panel[query][d], for all keys of the block. */
static void add_key_gradient(const diagonal *g, const work *w, int64_t keys, int64_t queries, const float *weights,
                             const float *panel, float *out, int64_t ld_out)
{
    int64_t total = w->row_width / PL_VW, chunks = (total + VECTORS - 1) / VECTORS;
    for (int64_t j = 0; j < keys; j += ROWS) {
        int64_t first = first_vector(g, j) * PL_VW, rows = smaller(keys - j, ROWS), steps = queries - first;
        const float *a = weights + j * GROUP + first, *b = panel + first * w->row_width;
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
    copy_rows(type, w->q, w->row_width, count, q, h->ldq, count, w->width, h->scale);
    copy_rows(type, w->d_o, w->row_width, count, d_o, h->lddo, count, w->width, 1);
    pack_transposed(type, w->qt, q, h->ldq, count, w->width, h->scale * ATTENTION_LOG2_E);
    pack_transposed(type, w->d_ot, d_o, h->lddo, count, w->width, 1);
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
    copy_rows(h->type, w->k, w->tile_width, round_up(keys, ROWS), k, h->ldk, keys, w->width, 1);
    copy_rows(h->type, w->v, w->tile_width, round_up(keys, ROWS), v, h->ldv, keys, w->width, 1);
    scores(vectors, &g, w, keys);
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

PL_V_INLINE void round_row(pl_real type, void *to, const float *from, int64_t width)
{
    int64_t d = 0;
    for (; d + PL_VW <= width; d += PL_VW) pl_v_put(type, to, d, pl_v_load(from + d), PL_VW);
    if (d < width) pl_v_put(type, to, d, pl_v_load_part(from + d, width - d), width - d);
}

static void finish_sums(const pl_attention_bwd_head *h, const pl_attention_part *part, const work *w)
{
    for (int64_t j = part->key_begin; j < part->key_end && h->type != PL_REAL_F32; j++) {
        const float *dk = w->dk + (j - part->key_begin) * w->lddk, *dv = w->dv + (j - part->key_begin) * w->lddv;
        PL_REAL_EACH(h->type, round_row(REAL, pl_real_at(REAL, h->dk, j * h->lddk), dk, w->width);
                     round_row(REAL, pl_real_at(REAL, h->dv, j * h->lddv), dv, w->width));
    }
}

void PL_KERNEL(attention_bwd)(const pl_attention_bwd_head *h, const pl_attention_part *part, void *workspace)
{
    work w;
    int64_t sum_keys = h->type == PL_REAL_F32 || !part->want_dkv ? 0 : part->key_end - part->key_begin;
    lay_out(h->head_width, sum_keys, workspace, &w);
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
