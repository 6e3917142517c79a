/* Attention for a handful of queries (generation with a key-value cache), where lanes = queries would leave most lanes
 * idle: here lanes = elements of the head. A block of keys meets all queries of the heads that share it: scores, online
 * softmax on them, then o += p_j·v_j. So K and V are read once, where they lie, in f32; of 16 bits a block is widened
 * first. Every sum has the order that it has for one query and one head alone. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/attention_words.h"
#include "kernels/kernels.h"

enum { QUERIES = 16, ABREAST = 4 }; /* that meet a block together; keys at a time */

typedef struct query {
    const float *q;
    float *o, *s;       /* s: KEYS scores, then weights */
    int64_t begin, end; /* the keys that it sees */
    float top, sum;
} query;

typedef struct keys {
    int64_t first, count, ldk, ldv;
    const float *k, *v;
} keys;

PL_V_INLINE pl_vf part_of(const float *x, int64_t count)
{
    return count < PL_VW ? pl_v_load_part(x, count) : pl_v_load(x);
}

/* s[j] = scale·q·k_j for n keys. */
PL_V_INLINE void dots(int n, const float *q, const float *k, int64_t ld, int64_t width, float scale, float *s)
{
    pl_vf sum[ABREAST];
    PL_V_UNROLL for (int j = 0; j < n; j++) sum[j] = pl_v_zero();
    for (int64_t d = 0; d < width; d += PL_VW) {
        const pl_vf x = part_of(q + d, width - d);
        PL_V_UNROLL for (int j = 0; j < n; j++) sum[j] = pl_v_fma(x, part_of(k + j * ld + d, width - d), sum[j]);
    }
    PL_V_UNROLL for (int j = 0; j < n; j++) s[j] = scale * pl_v_sum(sum[j]);
}

/* o = o·correction + Σ p_j·v_j for n keys, one after the other. */
PL_V_INLINE void add_values(int n, float *o, float correction, const float *p, const float *v, int64_t ld,
                            int64_t width)
{
    for (int64_t d = 0; d < width; d += PL_VW) {
        pl_vf sum = pl_v_set(correction) * part_of(o + d, width - d);
        PL_V_UNROLL for (int j = 0; j < n; j++) sum = pl_v_fma(pl_v_set(p[j]), part_of(v + j * ld + d, width - d), sum);
        if (width - d < PL_VW)
            pl_v_store_part(o + d, sum, width - d);
        else
            pl_v_store(o + d, sum);
    }
}

/* s[j] = 2^(s[j] − top) for j < KEYS; returns the sum. */
static float exponentials(float *s, float top)
{
    pl_vf total = pl_v_zero();
    for (int64_t j = 0; j < KEYS; j += PL_VW) {
        pl_vf e = pl_v_exp2_flush(pl_v_load(s + j) - top);
        total += e;
        pl_v_store(s + j, e);
    }
    return pl_v_sum(total);
}

/* Scores of keys [begin, end) of the block, −∞ in the other places. */
static void score(const pl_attention_head *h, const query *t, const keys *b, int64_t begin, int64_t end)
{
    const float scale = h->scale * ATTENTION_LOG2_E, cap = h->cap * ATTENTION_LOG2_E;
    int64_t j = begin;
    for (; j + ABREAST <= end; j += ABREAST)
        dots(ABREAST, t->q, b->k + j * b->ldk, b->ldk, h->head_width, scale, t->s + j);
    for (; j < end; j++) dots(1, t->q, b->k + j * b->ldk, b->ldk, h->head_width, scale, t->s + j);
    for (j = 0; j < begin; j++) t->s[j] = -INFINITY;
    for (j = end; j < KEYS; j++) t->s[j] = -INFINITY;
    for (j = 0; j < KEYS && cap > 0; j += PL_VW) {
        pl_vf x = pl_v_load(t->s + j);
        pl_v_store(t->s + j, pl_v_select_gt(pl_v_set(-FLT_MAX), x, x, cap * pl_v_tanh(x / pl_v_set(cap))));
    }
}

static void visit(const pl_attention_head *h, query *t, const keys *b)
{
    const int64_t begin = clamp_to(t->begin - b->first, b->count), end = clamp_to(t->end - b->first, b->count);
    const float before = t->top;
    if (begin >= end) return;
    score(h, t, b, begin, end);
    for (int64_t j = begin; j < end; j++) t->top = t->s[j] > t->top ? t->s[j] : t->top;
    float correction = pl_v_exp2_flush(pl_v_set(before - t->top))[0];
    t->sum = t->sum * correction + exponentials(t->s, t->top);
    int64_t j = begin;
    for (; j + ABREAST <= end; j += ABREAST, correction = 1)
        add_values(ABREAST, t->o, correction, t->s + j, b->v + j * b->ldv, b->ldv, h->head_width);
    for (; j < end; j++, correction = 1)
        add_values(1, t->o, correction, t->s + j, b->v + j * b->ldv, b->ldv, h->head_width);
}

/* The block that begins at b->first, widened into the workspace if need be. */
static void take_block(const pl_attention_head *h, float *workspace, keys *b)
{
    const void *k = pl_real_at(h->key_type, h->k, b->first * h->ldk);
    const void *v = pl_real_at(h->key_type, h->v, b->first * h->ldv);
    b->k = k, b->ldk = h->ldk, b->v = v, b->ldv = h->ldv;
    if (h->key_type == PL_REAL_F32) return;
    float *wide = workspace + QUERIES * KEYS, *values = wide + KEYS * h->head_width;
    copy_rows(h->key_type, wide, h->head_width, b->count, k, h->ldk, b->count, h->head_width, 1);
    copy_rows(h->key_type, values, h->head_width, b->count, v, h->ldv, b->count, h->head_width, 1);
    b->k = wide, b->v = values, b->ldk = b->ldv = h->head_width;
}

/* Query `row` of head `head` of the group. */
static query query_of(const pl_attention_head *h, int64_t row, int64_t head, float *s)
{
    const int64_t inside = head * h->head_width;
    query t = {.q = (const float *)h->q + row * h->ldq + inside,
               .o = (float *)h->o + row * h->ldo + inside,
               .s = s,
               .begin = first_key_seen(h, row),
               .end = keys_seen(h, row),
               .top = -FLT_MAX};
    memset(t.o, 0, (size_t)h->head_width * sizeof *t.o);
    return t;
}

/* No key seen: o = 0, lse = −inf. */
static void finish(const pl_attention_head *h, const query *t, int64_t place)
{
    const float inverse = t->sum == 0 ? 0 : 1 / t->sum;
    for (int64_t d = 0; d < h->head_width; d++) t->o[d] *= inverse;
    if (h->lse) h->lse[place] = t->sum == 0 ? -INFINITY : t->top * ATTENTION_LN_2 + logf(t->sum);
}

void PL_KERNEL(attention_few)(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    const int64_t all = (end - begin) * h->group;
    for (int64_t first = 0; first < all; first += QUERIES) {
        query some[QUERIES];
        const int64_t count = smaller(all - first, QUERIES);
        int64_t from = h->tk, to = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = begin + (first + i) / h->group;
            some[i] = query_of(h, row, (first + i) % h->group, (float *)workspace + i * KEYS);
            from = smaller(from, some[i].begin), to = some[i].end > to ? some[i].end : to;
        }
        for (keys b = {.first = from}; b.first < to; b.first += KEYS) {
            b.count = smaller(to - b.first, KEYS);
            take_block(h, workspace, &b);
            for (int64_t i = 0; i < count; i++) visit(h, &some[i], &b);
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = begin + (first + i) / h->group, head = (first + i) % h->group;
            finish(h, &some[i], head * h->tq + row);
        }
    }
}
