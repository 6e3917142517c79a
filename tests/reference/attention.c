/* SDPA(Q,K,V) = softmax(scale·Q Kᵀ) V per head, with the T×T matrix stored, and its derivative. Query i of
 * tq is at place offset + i of the keys, offset being the position if there is one, else tk − tq. When causal it sees
 * the keys up to its place, with a window only the last `window` of these. With a cap scores s become cap·tanh(s/cap).
 * Head h reads key head floor(h·key_heads/heads). With dropout P times a factor meets V: 1/(1 − p) where
 * uniform(bits of (step, first + b, element)) ≥ p, else 0; elements are numbered [heads, tq, tk rounded up to 4]. */
#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "reference/state.h"

enum { HEADS, CAUSAL, SCALE, PROBABILITY, SEED, STREAM, SEQUENCES, KEY_HEADS, WINDOW, CAP };

typedef struct sizes {
    int64_t sequence; /* of the keys, that is read by the only one of the queries */
    int64_t batch, tq, tk, offset, heads, key_heads, dh, width, key_width, window;
    bool is_ring; /* place j has the last key u ≤ the query's place with u mod tk = j */
    double scale, cap;
    bool causal;
    float probability;
    pl_philox philox;
    const double *step, *first; /* of dropout */
    uint64_t sequences;         /* of a sample */
} sizes;

/* step: the input that holds it; the next is the number of the first sample. */
static sizes sizes_of(const operands *o, int step)
{
    const pl_attr *attr = o->node->attr;
    const pl_shape *q = &operand(o, 0)->shape, *k = &operand(o, 1)->shape;
    sizes s = {.batch = q->dim[0],
               .tq = q->dim[1],
               .tk = k->dim[1],
               .offset = k->dim[1] - q->dim[1],
               .heads = attr[HEADS].i,
               .key_heads = attr[KEY_HEADS].i ? attr[KEY_HEADS].i : attr[HEADS].i,
               .width = q->dim[2],
               .key_width = k->dim[2],
               .window = attr[WINDOW].i,
               .cap = attr[CAP].f,
               .scale = o->node->attr[SCALE].f,
               .causal = o->node->attr[CAUSAL].i,
               .probability = (float)attr[PROBABILITY].f,
               .philox = pl_philox_init((uint64_t)attr[SEED].i, (uint64_t)attr[STREAM].i),
               .step = o->in[step],
               .sequences = attr[SEQUENCES].i ? (uint64_t)attr[SEQUENCES].i : 1,
               .first = o->in[step + 1]};
    s.dh = s.width / s.heads;
    return s;
}

static int64_t query_at(const sizes *s, int64_t b, int64_t h, int64_t t)
{
    return (b * s->tq + t) * s->width + h * s->dh;
}
static int64_t key_at(const sizes *s, int64_t b, int64_t h, int64_t t)
{
    return ((b + s->sequence) * s->tk + t) * s->key_width + h * s->key_heads / s->heads * s->dh;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double factor_of(const sizes *s, int64_t b, int64_t h, int64_t i, int64_t j)
{
    uint64_t element = (uint64_t)((h * s->tq + i) * ((s->tk + 3) / 4 * 4) + j);
    uint32_t bits[4];
    if (s->probability == 0) return 1;
    pl_philox_block(&s->philox, (uint32_t)*s->step, (uint64_t)*s->first * s->sequences + (uint64_t)b,
                    (uint32_t)(element / 4), bits);
    return pl_uniform_f32(bits[element % 4]) >= s->probability ? 1 / (1 - (double)s->probability) : 0;
}

static bool sees(const sizes *s, int64_t i, int64_t j)
{
    const int64_t place = s->offset + i, before = ((place - j) % s->tk + s->tk) % s->tk;
    if (s->is_ring) return before < s->window && before <= place;
    return !s->causal || (j <= place && (!s->window || place - j < s->window));
}

static double score(const sizes *s, const double *q, const double *k)
{
    const double x = s->scale * dot(q, k, s->dh);
    return s->cap > 0 ? s->cap * tanh(x / s->cap) : x;
}

void reference_attention(operands *o)
{
    sizes s = sizes_of(o, 4);
    const int64_t positions = o->in[3] ? operand(o, 3)->shape.dim[0] : 0;
    s.is_ring = positions && s.window > 0, s.sequence = o->in[6] ? (int64_t)o->in[6][0] : 0;
    double *out = scratch(o, (uint64_t)(s.batch * s.tq * s.width)),
           *lse = scratch(o, (uint64_t)(s.batch * s.heads * s.tq));
    double *p = scratch(o, (uint64_t)s.tk);
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t h = 0; h < s.heads; h++)
            for (int64_t i = 0; i < s.tq; i++) {
                if (positions) s.offset = (int64_t)o->in[3][positions > 1 ? b : 0];
                double top = -INFINITY, sum = 0;
                for (int64_t j = 0; j < s.tk; j++) {
                    p[j] = sees(&s, i, j) ? score(&s, o->in[0] + query_at(&s, b, h, i), o->in[1] + key_at(&s, b, h, j))
                                          : -INFINITY;
                    top = p[j] > top ? p[j] : top;
                }
                for (int64_t j = 0; j < s.tk; j++) sum += exp(p[j] - top);
                for (int64_t j = 0; j < s.tk; j++) {
                    double weight = exp(p[j] - top) / sum * factor_of(&s, b, h, i, j);
                    for (int64_t d = 0; d < s.dh && sees(&s, i, j); d++)
                        out[query_at(&s, b, h, i) + d] += weight * o->in[2][key_at(&s, b, h, j) + d];
                }
                lse[(b * s.heads + h) * s.tq + i] = top + log(sum);
            }
    put(o, 0, out);
    put(o, 1, lse);
}

/* dV = (factor∘P)ᵀ dO;  dP = factor∘(dO Vᵀ);  dS = P·(dP − Σ dO·O);  dQ = scale·dS K;  dK = scale·dSᵀ Q */
static void one_pair(operands *o, const sizes *s, int64_t b, int64_t h, int64_t i, int64_t j, double **d)
{
    int64_t at_q = query_at(s, b, h, i), at_k = key_at(s, b, h, j);
    const double *q = o->in[0] + at_q, *k = o->in[1] + at_k, *v = o->in[2] + at_k, *out = o->in[3] + at_q,
                 *d_o = o->in[5] + at_q;
    double p = exp(s->scale * dot(q, k, s->dh) - o->in[4][(b * s->heads + h) * s->tq + i]);
    double factor = factor_of(s, b, h, i, j), ds = p * (factor * dot(d_o, v, s->dh) - dot(d_o, out, s->dh));
    for (int64_t e = 0; e < s->dh; e++) {
        d[0][at_q + e] += s->scale * ds * k[e];
        d[1][at_k + e] += s->scale * ds * q[e];
        d[2][at_k + e] += factor * p * d_o[e];
    }
}

void reference_attention_bwd(operands *o)
{
    sizes s = sizes_of(o, 6);
    double *d[3];
    for (int k = 0; k < 3; k++) d[k] = scratch(o, pl_shape_elems(&operand(o, k)->shape));
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t h = 0; h < s.heads; h++)
            for (int64_t i = 0; i < s.tq; i++)
                for (int64_t j = 0; j < s.tk; j++)
                    if (sees(&s, i, j)) one_pair(o, &s, b, h, i, j, d);
    for (int k = 0; k < 3; k++) put(o, k, d[k]);
}

void reference_cache_write(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape, *cache = &operand(o, 1)->shape;
    const int64_t positions = operand(o, 2)->shape.dim[0], first = o->in[3] ? (int64_t)o->in[3][0] : 0;
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t t = 0; t < x->dim[1]; t++) {
            const int64_t at = (int64_t)o->in[2][positions > 1 ? b : 0] + t;
            const int64_t place = o->node->attr[0].i ? at % cache->dim[1] : at;
            for (int64_t d = 0; d < x->dim[2] && place < cache->dim[1]; d++)
                o->in[1][((first + b) * cache->dim[1] + place) * x->dim[2] + d] =
                    o->in[0][(b * x->dim[1] + t) * x->dim[2] + d];
        }
    put(o, 0, o->in[1]);
}
