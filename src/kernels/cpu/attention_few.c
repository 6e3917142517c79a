/* Attention for a handful of queries (generation with a key-value cache), where lanes = queries would leave most lanes
 * idle: here lanes = elements of the head. Scores of a block of keys, online softmax on them, then o += p_j·v_j.
 * K and V are read once, where they lie: f32 alone and nothing dropped, as generating is. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/attention_tile.h"
#include "kernels/kernels.h"

static float dot(const float *a, const float *b, int64_t n)
{
    pl_vf sum = pl_v_zero();
    int64_t d = 0;
    for (; d + PL_VW <= n; d += PL_VW) sum = pl_v_fma(pl_v_load(a + d), pl_v_load(b + d), sum);
    if (d < n) sum = pl_v_fma(pl_v_load_part(a + d, n - d), pl_v_load_part(b + d, n - d), sum);
    return pl_v_sum(sum);
}

/* o = o·correction + x·y */
static void scale_add(float *o, float correction, float x, const float *y, int64_t n)
{
    int64_t d = 0;
    pl_vf c = pl_v_set(correction), xv = pl_v_set(x);
    for (; d + PL_VW <= n; d += PL_VW) pl_v_store(o + d, pl_v_fma(xv, pl_v_load(y + d), c * pl_v_load(o + d)));
    int64_t rest = n - d;
    if (rest > 0)
        pl_v_store_part(o + d, pl_v_fma(xv, pl_v_load_part(y + d, rest), c * pl_v_load_part(o + d, rest)), rest);
}

/* s[j] = 2^(s[j] − top) for j < KEYS (the rest of the block is −inf); returns the sum. */
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

static void one_query(const pl_attention_head *h, int64_t i, float *s)
{
    int64_t width = h->head_width, seen = h->causal ? clamp_to(h->tk - h->tq + i + 1, h->tk) : h->tk;
    const float *q = (const float *)h->q + i * h->ldq, *k = h->k, *v = h->v;
    float *o = (float *)h->o + i * h->ldo, top = -FLT_MAX, sum = 0, scale = h->scale * ATTENTION_LOG2_E;
    memset(o, 0, (size_t)width * sizeof *o);
    for (int64_t first = 0; first < seen; first += KEYS) {
        int64_t keys = smaller(seen - first, KEYS);
        float before = top;
        for (int64_t j = 0; j < keys; j++) {
            s[j] = scale * dot(q, k + (first + j) * h->ldk, width);
            top = s[j] > top ? s[j] : top;
        }
        for (int64_t j = keys; j < KEYS; j++) s[j] = -INFINITY;
        float correction = pl_v_exp2_flush(pl_v_set(before - top))[0];
        sum = sum * correction + exponentials(s, top);
        for (int64_t j = 0; j < keys; j++) scale_add(o, j == 0 ? correction : 1, s[j], v + (first + j) * h->ldv, width);
    }
    float inverse = sum == 0 ? 0 : 1 / sum; /* no key seen: o = 0, lse = −inf */
    for (int64_t d = 0; d < width; d++) o[d] *= inverse;
    if (h->lse) h->lse[i] = sum == 0 ? -INFINITY : top * ATTENTION_LN_2 + logf(sum);
}

void PL_KERNEL(attention_few)(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    for (int64_t i = begin; i < end; i++) one_query(h, i, workspace);
}
