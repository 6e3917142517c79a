/* Attention, scalar, sums in double precision: softmax over the keys a query sees, in two passes over the scores, which
 * are computed again instead of kept. The backward pass needs P only one element at a time:
 *   P = exp(scale·q·k − lse),  delta_i = Σ_d do·o,  dS = P·(do·v − delta),
 *   dq_i = scale·Σ_j dS k_j,  dk_j = scale·Σ_i dS q_i,  dv_j = Σ_i P do_i.
 * With dropout o and dv have P times its factor, 0 or 1/(1 − p), and dS has the factor times do·v. */
#include <math.h>

#include "base/size.h"
#include "kernels/kernels.h"

/* Of the rows of a and b that begin at these elements. */
static double dot(pl_real type, int64_t n, const void *a, int64_t at_a, const void *b, int64_t at_b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)pl_real_get(type, a, at_a + i) * pl_real_get(type, b, at_b + i);
    return sum;
}

/* Number of keys of which query i sees the last. */
static int64_t visible(int causal, int64_t tq, int64_t tk, int64_t i)
{
    int64_t seen = tk - tq + i + 1;
    return !causal || seen > tk ? tk : seen < 0 ? 0 : seen;
}

/* 0 where query i drops its weight of key j, else 1/(1 − p). */
static double factor_of(const pl_attention_dropout *d, int64_t i, int64_t j)
{
    uint32_t bits[4], block = d->block + (uint32_t)i * d->row_blocks + (uint32_t)(j / 4);
    if (d->probability == 0) return 1;
    pl_philox_block(&d->philox, d->step, d->sample, block, bits);
    return pl_uniform_f32(bits[j % 4]) >= d->probability ? pl_attention_kept_scale(d) : 0;
}

int64_t PL_KERNEL(attention_block_queries)(pl_attention_products products) { return (void)products, 16; }

uint64_t PL_KERNEL(attention_workspace_bytes)(int64_t head_width, pl_attention_products products)
{
    (void)products;
    return pl_align_up((uint64_t)head_width * sizeof(double), 64);
}

/* Number d of row j of k or v; a row is read from its first number on, and `wide` keeps the block that d is in. */
static double key_number(const pl_attention_head *h, const void *x, int64_t ld, int64_t j, int64_t d, float *wide)
{
    const int64_t at = pl_attention_place(h, j) * ld + d;
    if (!h->key_encoding) return pl_real_get(h->key_type, x, at);
    const int64_t block = pl_encoding_block(h->key_encoding);
    if (d % block == 0)
        pl_encoding_widen(h->key_encoding, pl_attention_key_at(h->key_type, h->key_encoding, x, at), block, wide);
    return wide[d % block];
}

static double score(const pl_attention_head *h, int64_t i, int64_t j)
{
    float wide[PL_ENCODING_BLOCK_MAX];
    double s = 0;
    for (int64_t d = 0; d < h->head_width; d++)
        s += (double)pl_real_get(h->type, h->q, i * h->ldq + d) * key_number(h, h->k, h->ldk, j, d, wide);
    return h->cap > 0 ? h->cap * tanh(h->scale * s / h->cap) : h->scale * s;
}

static void one_query(const pl_attention_head *h, int64_t i, double *sum)
{
    const int64_t last = h->offset + i + 1, end = !h->causal || last > h->tk ? h->tk : last, width = h->head_width;
    const int64_t begin = h->window && last > h->window ? last - h->window : 0;
    float wide[PL_ENCODING_BLOCK_MAX];
    double top = -INFINITY, total = 0;
    for (int64_t j = begin; j < end; j++) {
        double s = score(h, i, j);
        top = s > top || isnan(s) ? s : top;
    }
    for (int64_t d = 0; d < width; d++) sum[d] = 0;
    for (int64_t j = begin; j < end; j++) {
        double p = exp(score(h, i, j) - top), factor = factor_of(&h->dropout, i, j);
        total += p;
        for (int64_t d = 0; d < width && factor > 0; d++)
            sum[d] += factor * p * key_number(h, h->v, h->ldv, j, d, wide);
    }
    for (int64_t d = 0; d < width; d++)
        pl_real_put(h->type, h->o, i * h->ldo + d, begin < end ? (float)(sum[d] / total) : 0);
    if (h->lse) h->lse[i] = begin < end ? (float)(top + log(total)) : -INFINITY;
}

void PL_KERNEL(attention)(const pl_attention_head *head, int64_t begin, int64_t end, void *workspace)
{
    for (int64_t i = begin; i < end; i++) one_query(head, i, workspace);
}

void PL_KERNEL(attention_few)(const pl_attention_head *head, int64_t begin, int64_t end, void *workspace)
{
    pl_attention_head one = *head;
    for (int64_t g = 0; g < head->group; g++) {
        const int64_t inside = g * head->head_width;
        one.q = pl_real_at(head->type, head->q, inside), one.o = pl_real_at(head->type, head->o, inside);
        one.lse = head->lse ? head->lse + g * head->tq : NULL;
        PL_KERNEL(attention)(&one, begin, end, workspace);
    }
}

uint64_t PL_KERNEL(attention_bwd_workspace_bytes)(int64_t head_width, pl_real type, int64_t keys)
{
    (void)type, (void)keys; /* each row is summed in double and written once */
    return pl_align_up(2 * (uint64_t)head_width * sizeof(double), 64);
}

static double probability(const pl_attention_bwd_head *h, int64_t i, int64_t j)
{
    return exp(h->scale * dot(h->type, h->head_width, h->q, i * h->ldq, h->k, j * h->ldk) - h->lse[i]);
}

static double score_gradient(const pl_attention_bwd_head *h, int64_t i, int64_t j, double p, double factor)
{
    double delta = dot(h->type, h->head_width, h->d_o, i * h->lddo, h->o, i * h->ldo);
    double dp = factor > 0 ? factor * dot(h->type, h->head_width, h->d_o, i * h->lddo, h->v, j * h->ldv) : 0;
    return p * (dp - delta);
}

static void query_gradient(const pl_attention_bwd_head *h, int64_t i, double *sum)
{
    int64_t n = visible(h->causal, h->tq, h->tk, i);
    for (int64_t d = 0; d < h->head_width; d++) sum[d] = 0;
    for (int64_t j = 0; j < n; j++) {
        double ds = score_gradient(h, i, j, probability(h, i, j), factor_of(&h->dropout, i, j));
        for (int64_t d = 0; d < h->head_width; d++) sum[d] += ds * pl_real_get(h->type, h->k, j * h->ldk + d);
    }
    for (int64_t d = 0; d < h->head_width; d++)
        pl_real_put(h->type, h->dq, i * h->lddq + d, (float)(h->scale * sum[d]));
}

static void key_gradients(const pl_attention_bwd_head *h, int64_t j, double *dk, double *dv)
{
    for (int64_t d = 0; d < h->head_width; d++) dk[d] = dv[d] = 0;
    for (int64_t i = 0; i < h->tq; i++) {
        if (j >= visible(h->causal, h->tq, h->tk, i)) continue;
        double p = probability(h, i, j), factor = factor_of(&h->dropout, i, j);
        double ds = score_gradient(h, i, j, p, factor);
        for (int64_t d = 0; d < h->head_width; d++) {
            dk[d] += ds * pl_real_get(h->type, h->q, i * h->ldq + d);
            dv[d] += factor * p * pl_real_get(h->type, h->d_o, i * h->lddo + d);
        }
    }
    for (int64_t d = 0; d < h->head_width; d++) {
        pl_real_put(h->type, h->dk, j * h->lddk + d, (float)(h->scale * dk[d]));
        pl_real_put(h->type, h->dv, j * h->lddv + d, (float)dv[d]);
    }
}

void PL_KERNEL(attention_bwd)(const pl_attention_bwd_head *head, const pl_attention_part *part, void *workspace)
{
    double *sums = workspace;
    for (int64_t i = part->query_begin; i < part->query_end && part->want_dq; i++) query_gradient(head, i, sums);
    for (int64_t j = part->key_begin; j < part->key_end && part->want_dkv; j++)
        key_gradients(head, j, sums, sums + head->head_width);
}
