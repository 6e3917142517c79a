/* Attention for a handful of queries (generation with a key-value cache), where lanes = queries would leave most lanes
 * idle: here lanes = elements of the head. A block of keys meets all queries of the heads that share it: scores, online
 * softmax on them, then o += p_j·v_j. So K and V are read once, where they lie, in f32; of 16 bits a block is widened
 * first. Every sum has the order that it has for one query and one head alone. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/attention_keys.h"
#include "kernels/cpu/attention_words.h"
#include "kernels/gemm_ahead.h"
#include "kernels/kernels.h"

enum { QUERIES = 16, PART = 16, ABREAST = 4 }; /* that meet a block together; keys of a part; keys at a time */

typedef struct query {
    const float *q;
    float *o, *s;       /* s: KEYS scores, then weights */
    int64_t begin, end; /* the keys that it sees */
    float top, sum, correction;
} query;

typedef struct keys {
    int64_t first, count, ldk, ldv;
    const float *k, *v;
} keys;

/* s[j] = scale·q·k_j for n keys. */
PL_V_INLINE void dots(int n, const float *q, const float *k, int64_t ld, int64_t width, float scale, float *s)
{
    pl_vf sum[ABREAST];
    int64_t d = 0;
    PL_V_UNROLL for (int j = 0; j < n; j++) sum[j] = pl_v_zero();
    for (; d + PL_VW <= width; d += PL_VW) {
        const pl_vf x = pl_v_load(q + d);
        PL_V_UNROLL for (int j = 0; j < n; j++) sum[j] = pl_v_fma(x, pl_v_load(k + j * ld + d), sum[j]);
    }
    if (d < width) {
        const pl_vf x = pl_v_load_part(q + d, width - d);
        for (int j = 0; j < n; j++) sum[j] = pl_v_fma(x, pl_v_load_part(k + j * ld + d, width - d), sum[j]);
    }
    PL_V_UNROLL for (int j = 0; j < n; j++) s[j] = scale * pl_v_sum(sum[j]);
}

/* o = o·correction + Σ p_j·v_j for n keys, one after the other. */
PL_V_INLINE void add_values(int n, float *o, float correction, const float *p, const float *v, int64_t ld,
                            int64_t width)
{
    pl_vf weight[ABREAST], by = pl_v_set(correction);
    int64_t d = 0;
    PL_V_UNROLL for (int j = 0; j < n; j++) weight[j] = pl_v_set(p[j]);
    for (; d + PL_VW <= width; d += PL_VW) {
        pl_vf sum = by * pl_v_load(o + d);
        PL_V_UNROLL for (int j = 0; j < n; j++) sum = pl_v_fma(weight[j], pl_v_load(v + j * ld + d), sum);
        pl_v_store(o + d, sum);
    }
    if (d < width) {
        pl_vf sum = by * pl_v_load_part(o + d, width - d);
        for (int j = 0; j < n; j++) sum = pl_v_fma(weight[j], pl_v_load_part(v + j * ld + d, width - d), sum);
        pl_v_store_part(o + d, sum, width - d);
    }
}

/* The largest of `top` and s[j] for j < KEYS; what is not a number counts for nothing. */
static float highest(const float *s, float top)
{
    pl_vf high = pl_v_set(top);
    for (int64_t j = 0; j < KEYS; j += PL_VW) high = pl_v_max(pl_v_load(s + j), high);
    for (int i = 0; i < PL_VW; i++) top = high[i] > top ? high[i] : top;
    return top;
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

/* Keys [begin, end) of the block, those of [first, first + PART) that the query sees. */
static void seen_of(const query *t, const keys *b, int64_t first, int64_t *begin, int64_t *end)
{
    const int64_t last = smaller(first + PART, b->count);
    *begin = t->begin - b->first > first ? t->begin - b->first : first;
    *end = smaller(t->end - b->first, last);
}

static void score_part(const pl_attention_head *h, const query *t, const keys *b, int64_t first)
{
    const float scale = h->scale * ATTENTION_LOG2_E;
    int64_t j, end;
    for (seen_of(t, b, first, &j, &end); j + ABREAST <= end; j += ABREAST)
        dots(ABREAST, t->q, b->k + j * b->ldk, b->ldk, h->head_width, scale, t->s + j);
    for (; j < end; j++) dots(1, t->q, b->k + j * b->ldk, b->ldk, h->head_width, scale, t->s + j);
}

/* Weights from scores, 0 for keys that are not seen. */
static void weigh_block(const pl_attention_head *h, query *t, const keys *b)
{
    const int64_t begin = clamp_to(t->begin - b->first, b->count), end = clamp_to(t->end - b->first, b->count);
    const float cap = h->cap * ATTENTION_LOG2_E, before = t->top;
    if (begin >= end) return;
    for (int64_t j = 0; j < KEYS && cap > 0; j += PL_VW)
        pl_v_store(t->s + j, cap * pl_v_tanh(pl_v_load(t->s + j) / pl_v_set(cap)));
    for (int64_t j = 0; j < begin; j++) t->s[j] = -INFINITY;
    for (int64_t j = end; j < KEYS; j++) t->s[j] = -INFINITY;
    t->top = highest(t->s, before);
    t->correction = pl_v_exp2_flush(pl_v_set(before - t->top))[0];
    t->sum = t->sum * t->correction + exponentials(t->s, t->top);
}

static void add_part(const pl_attention_head *h, query *t, const keys *b, int64_t first)
{
    int64_t j, end;
    for (seen_of(t, b, first, &j, &end); j + ABREAST <= end; j += ABREAST, t->correction = 1)
        add_values(ABREAST, t->o, t->correction, t->s + j, b->v + j * b->ldv, b->ldv, h->head_width);
    for (; j < end; j++, t->correction = 1)
        add_values(1, t->o, t->correction, t->s + j, b->v + j * b->ldv, b->ldv, h->head_width);
}

/* Asks for rows of the next block, the share of query i in those at the places of a part: several queries compute long
 * enough to wait for short rows, which the processor does not foresee. */
static void fetch_rows(const pl_attention_head *h, const void *x, int64_t ld, int64_t first, int64_t i, int64_t count)
{
    enum { SHORT_ROW_BYTES = 4 * PL_CACHE_LINE_BYTES };
    const int64_t end = smaller(first + (i + 1) * PART / count, h->tk), bytes = pl_real_bytes(h->key_type);
    if (count == 1 || h->key_encoding || h->head_width * bytes > SHORT_ROW_BYTES) return;
    for (int64_t j = first + i * PART / count; j < end; j++)
        for (int64_t at = 0; at < h->head_width * bytes; at += PL_CACHE_LINE_BYTES)
            pl_gemm_ahead_line((const char *)x + pl_attention_place(h, j) * ld * bytes + at);
}

/* All queries meet the block, a part of it at a time, which stays in the nearest cache. */
static void visit(const pl_attention_head *h, query *some, int64_t count, const keys *b)
{
    const int64_t next = b->first + KEYS;
    for (int64_t first = 0; first < b->count; first += PART)
        for (int64_t i = 0; i < count; i++) {
            fetch_rows(h, h->k, h->ldk, next + first, i, count);
            score_part(h, &some[i], b, first);
        }
    for (int64_t i = 0; i < count; i++) weigh_block(h, &some[i], b);
    for (int64_t first = 0; first < b->count; first += PART)
        for (int64_t i = 0; i < count; i++) {
            fetch_rows(h, h->v, h->ldv, next + first, i, count);
            add_part(h, &some[i], b, first);
        }
}

/* The block that begins at b->first, copied into the workspace where it is not f32 or lies in two parts of a ring. */
static void take_block(const pl_attention_head *h, float *workspace, keys *b)
{
    float *wide = workspace + QUERIES * KEYS, *values = wide + KEYS * h->head_width;
    const int64_t place = pl_attention_place(h, b->first);
    const int is_apart = h->ring && place + b->count > h->ring;
    if (h->key_type == PL_REAL_F32 && !h->key_encoding && !is_apart) {
        b->k = (const float *)h->k + place * h->ldk, b->ldk = h->ldk;
        b->v = (const float *)h->v + place * h->ldv, b->ldv = h->ldv;
        return;
    }
    copy_keys(h, h->k, h->ldk, b->first, b->count, b->count, wide, h->head_width);
    copy_keys(h, h->v, h->ldv, b->first, b->count, b->count, values, h->head_width);
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
            visit(h, some, count, &b);
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = begin + (first + i) / h->group, head = (first + i) % h->group;
            finish(h, &some[i], head * h->tq + row);
        }
    }
}
