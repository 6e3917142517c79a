/* Dropout on the weights of attention, forward and backward, f32, bf16 and f16, at every level of this machine:
 *   random problems against the formula in double with the whole matrix stored and the mask of base/philox.h;
 *   the masks of o, dv and dS, read off problems made for it, against that of the operator dropout;
 *   the same bits for any team, and for each sample of a batch alone; the share that is dropped, and that masks of
 *   different samples, heads and steps have nothing in common; a probability that drops nothing gives the bits of 0. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "base/narrow.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

enum { Q, K, V, O, DO, DQ, DK, DV, TENSORS };
enum { CASES = 10, SIGMAS = 6 };
static uint64_t first_seed;

/* What a bound of an error counts in, for each type: roundings of the matrices, of P and of dS. */
static const double unit[] = {[PL_REAL_F32] = 1e-5, [PL_REAL_BF16] = 0x1p-7, [PL_REAL_F16] = 0x1p-9};

typedef struct dice {
    pl_philox philox;
    uint32_t rolls;
} dice;

static int64_t roll(dice *d, int64_t low, int64_t high) /* both included */
{
    uint32_t bits[4];
    pl_philox_block(&d->philox, 1, 0, d->rolls++, bits);
    return low + (int64_t)(bits[0] % (uint64_t)(high - low + 1));
}

typedef struct problem {
    pl_attention_call c;
    pl_attention_bwd_call b;
    int64_t step, first, count[TENSORS];
    void *at[TENSORS];
    pl_attention_strides s[TENSORS];
} problem;

static int64_t tokens_of(const problem *p, int tensor)
{
    return tensor == K || tensor == V || tensor == DK || tensor == DV ? p->c.tk : p->c.tq;
}

/* The calls of a problem whose sizes and places are known. */
static void connect(problem *p, float *lse)
{
    pl_attention_call *c = &p->c;
    c->q = p->at[Q], c->k = p->at[K], c->v = p->at[V], c->o = p->at[O], c->lse = lse;
    c->sq = p->s[Q], c->sk = p->s[K], c->sv = p->s[V], c->so = p->s[O];
    c->drops.step = &p->step, c->drops.first_sample = &p->first;
    p->b = (pl_attention_bwd_call){.batch = c->batch,
                                   .tq = c->tq,
                                   .tk = c->tk,
                                   .heads = c->heads,
                                   .head_width = c->head_width,
                                   .causal = c->causal,
                                   .scale = c->scale,
                                   .type = c->type,
                                   .drops = c->drops,
                                   .lse = lse};
    pl_attention_bwd_call *b = &p->b;
    b->q = p->at[Q], b->k = p->at[K], b->v = p->at[V], b->o = p->at[O], b->d_o = p->at[DO];
    b->sq = p->s[Q], b->sk = p->s[K], b->sv = p->s[V], b->so = p->s[O], b->sdo = p->s[DO];
    b->dq = p->at[DQ], b->dk = p->at[DK], b->dv = p->at[DV];
    b->sdq = p->s[DQ], b->sdk = p->s[DK], b->sdv = p->s[DV];
}

static void make_tensor(problem *p, int i, int64_t gap, int64_t gap_of_batch)
{
    p->s[i].token = p->c.heads * p->c.head_width + gap;
    p->s[i].batch = tokens_of(p, i) * p->s[i].token + gap_of_batch;
    p->count[i] = p->c.batch * p->s[i].batch;
    p->at[i] = guarded_bytes((uint64_t)(p->count[i] * pl_real_bytes(p->c.type)), 0);
}

static void fill(const problem *p, const pl_philox *philox, int i)
{
    float *normal = guarded_f32(p->count[i]);
    pl_philox_normal_f32(philox, 2, (uint64_t)i, 0, (uint64_t)p->count[i], normal);
    for (int64_t e = 0; e < p->count[i]; e++) pl_real_put(p->c.type, p->at[i], e, normal[e]);
}

static pl_attention_drops drops_of(uint64_t seed, dice *d, float probability)
{
    return (pl_attention_drops){.probability = probability, .seed = seed, .stream = (uint64_t)roll(d, 0, 1 << 20)};
}

static int64_t size(dice *d)
{
    static const int64_t edges[] = {1, 2, 4, 5, 12, 16, 17, 48, 49, 64, 65, 96, 128, 130, 197, 256, 257, 290};
    return roll(d, 0, 1) ? roll(d, 1, 150) : edges[roll(d, 0, (int64_t)(sizeof edges / sizeof *edges) - 1)];
}

static problem problem_make(uint64_t seed)
{
    dice d = {.philox = pl_philox_init(seed, 1)};
    problem p = {.step = roll(&d, 0, INT32_MAX), .first = roll(&d, 0, INT32_MAX) << roll(&d, 0, 30)};
    pl_attention_call *c = &p.c;
    *c = (pl_attention_call){.batch = roll(&d, 1, 2), .heads = roll(&d, 1, 3)};
    c->type = c->key_type = (pl_real)roll(&d, 0, 2), c->causal = (int)roll(&d, 0, 1);
    c->tq = size(&d), c->tk = roll(&d, 0, 1) ? c->tq : size(&d);
    c->head_width = roll(&d, 0, 1) ? 16 * roll(&d, 1, 4) : roll(&d, 1, 70);
    c->scale = (float)roll(&d, 1, 20) / 15 / sqrtf((float)c->head_width);
    c->drops = drops_of(seed, &d, (float)roll(&d, 1, 9) / 10);
    for (int i = 0; i < TENSORS; i++) make_tensor(&p, i, roll(&d, 0, 1) * roll(&d, 1, 40), roll(&d, 0, 30));
    for (int i = 0; i <= DO; i++)
        if (i != O) fill(&p, &d.philox, i);
    connect(&p, guarded_f32(c->batch * c->heads * c->tq));
    return p;
}

static void exec_both(const pl_attention_call *c, const pl_attention_bwd_call *b, pl_team team)
{
    if (c) pl_attention_exec(c, guarded_bytes(pl_attention_workspace_bytes(c, team), 0), team);
    if (b) pl_attention_bwd_exec(b, guarded_bytes(pl_attention_bwd_workspace_bytes(b, team), 0), team);
}

static void run_forward(problem *p, pl_team team)
{
    connect(p, p->c.lse);
    exec_both(&p->c, NULL, team);
}

static void run_backward(problem *p, pl_team team)
{
    connect(p, p->c.lse);
    exec_both(NULL, &p->b, team);
}

static void run(problem *p, pl_team team)
{
    run_forward(p, team);
    run_backward(p, team);
}

/* ---- the formula, in double ---- */

typedef struct head {
    const problem *p;
    int64_t b, h;
    double *weight, *factor; /* [tq, tk]: P; 0 or 1/(1 − p) */
    double *ds, *ds_size;    /* [tq, tk]: dS, and the sum of the sizes of its terms */
} head;

static double at(const head *n, int tensor, int64_t t, int64_t d)
{
    const problem *p = n->p;
    int64_t e = n->b * p->s[tensor].batch + t * p->s[tensor].token + n->h * p->c.head_width + d;
    return pl_real_get(p->c.type, p->at[tensor], e);
}

static double dot(const head *n, int a, int64_t i, int b, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < n->p->c.head_width; d++) sum += at(n, a, i, d) * at(n, b, j, d);
    return sum;
}

static double dot_of_sizes(const head *n, int a, int64_t i, int b, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < n->p->c.head_width; d++) sum += fabs(at(n, a, i, d) * at(n, b, j, d));
    return sum;
}

/* The mask is that of dropout on [heads, tq, tk rounded up to 4]. */
static double factor_of(const head *n, int64_t i, int64_t j)
{
    const pl_attention_call *c = &n->p->c;
    pl_philox philox = pl_philox_init(c->drops.seed, c->drops.stream);
    uint64_t e = (uint64_t)((n->h * c->tq + i) * ((c->tk + 3) / 4 * 4) + j);
    uint32_t bits[4];
    pl_philox_block(&philox, (uint32_t)n->p->step, (uint64_t)(n->p->first + n->b), (uint32_t)(e / 4), bits);
    return pl_uniform_f32(bits[e % 4]) >= c->drops.probability ? 1 / (1 - (double)c->drops.probability) : 0;
}

/* Row i of P, and its log-sum-exp. */
static double make_row(head *n, int64_t i)
{
    const pl_attention_call *c = &n->p->c;
    int64_t seen = c->causal ? c->tk - c->tq + i + 1 : c->tk;
    double top = -INFINITY, sum = 0, *w = n->weight + i * c->tk;
    for (int64_t j = 0; j < c->tk; j++) {
        w[j] = j < seen ? c->scale * dot(n, Q, i, K, j) : -INFINITY;
        top = fmax(top, w[j]);
    }
    for (int64_t j = 0; j < c->tk; j++) sum += w[j] = j < seen ? exp(w[j] - top) : 0;
    for (int64_t j = 0; j < c->tk; j++) {
        w[j] = sum > 0 ? w[j] / sum : 0;
        n->factor[i * c->tk + j] = factor_of(n, i, j);
    }
    return sum > 0 ? top + log(sum) : -INFINITY;
}

static void check(const head *n, int tensor, int64_t t, int64_t d, double want, double terms)
{
    static const char *const name[] = {"q", "k", "v", "o", "do", "dq", "dk", "dv"};
    double got = at(n, tensor, t, d), bound = unit[n->p->c.type] * (terms + fabs(want)) + 1e-6;
    if (!(fabs(got - want) <= bound))
        fail_msg("%s[%lld, %lld, head %lld, %lld] is %.9g, %.9g was expected, within %.3g", name[tensor],
                 (long long)n->b, (long long)t, (long long)n->h, (long long)d, got, want, bound);
}

static void check_forward(head *n)
{
    const pl_attention_call *c = &n->p->c;
    for (int64_t i = 0; i < c->tq; i++) {
        double lse = make_row(n, i), got = (double)c->lse[(n->b * c->heads + n->h) * c->tq + i];
        assert_true(lse == got || fabs(lse - got) <= 2e-5 * fmax(1, fabs(lse)));
        for (int64_t d = 0; d < c->head_width; d++) {
            double o = 0, terms = 0;
            for (int64_t j = 0; j < c->tk; j++) {
                double term = n->weight[i * c->tk + j] * n->factor[i * c->tk + j] * at(n, V, j, d);
                o += term, terms += fabs(term);
            }
            check(n, O, i, d, o, terms);
        }
    }
}

static void make_ds(head *n)
{
    const pl_attention_call *c = &n->p->c;
    for (int64_t i = 0; i < c->tq; i++) {
        /* The kernel has delta from o, whose error is that of its terms, however small their sum is. */
        double delta = 0, delta_size = 0;
        for (int64_t j = 0; j < c->tk; j++) {
            const double p = n->weight[i * c->tk + j] * n->factor[i * c->tk + j];
            delta += p * dot(n, DO, i, V, j), delta_size += p * dot_of_sizes(n, DO, i, V, j);
        }
        for (int64_t e = i * c->tk, j = 0; j < c->tk; j++, e++) {
            n->ds[e] = n->weight[e] * (n->factor[e] * dot(n, DO, i, V, j) - delta);
            n->ds_size[e] = n->weight[e] * (n->factor[e] * dot_of_sizes(n, DO, i, V, j) + delta_size);
        }
    }
}

static void check_backward(head *n)
{
    const pl_attention_call *c = &n->p->c;
    make_ds(n);
    for (int64_t d = 0; d < c->head_width; d++) {
        for (int64_t i = 0; i < c->tq; i++) {
            double dq = 0, terms = 0;
            for (int64_t j = 0; j < c->tk; j++) {
                dq += c->scale * n->ds[i * c->tk + j] * at(n, K, j, d);
                terms += c->scale * n->ds_size[i * c->tk + j] * fabs(at(n, K, j, d));
            }
            check(n, DQ, i, d, dq, terms);
        }
        for (int64_t j = 0; j < c->tk; j++) {
            double dk = 0, dk_terms = 0, dv = 0, dv_terms = 0;
            for (int64_t i = 0, e = j; i < c->tq; i++, e += c->tk) {
                double term = n->weight[e] * n->factor[e] * at(n, DO, i, d);
                dk += c->scale * n->ds[e] * at(n, Q, i, d), dv += term;
                dk_terms += c->scale * n->ds_size[e] * fabs(at(n, Q, i, d)), dv_terms += fabs(term);
            }
            check(n, DK, j, d, dk, dk_terms);
            check(n, DV, j, d, dv, dv_terms);
        }
    }
}

static void check_formula(const problem *p)
{
    double *memory = calloc((size_t)(4 * p->c.tq * p->c.tk), sizeof(double));
    assert_non_null(memory);
    const int64_t weights = p->c.tq * p->c.tk;
    for (int64_t b = 0; b < p->c.batch; b++)
        for (int64_t h = 0; h < p->c.heads; h++) {
            head n = {p, b, h, memory, memory + weights, memory + 2 * weights, memory + 3 * weights};
            check_forward(&n);
            check_backward(&n);
        }
    free(memory);
}

/* ---- the same bits ---- */

static uint64_t bytes_of(const problem *p, int tensor)
{
    return (uint64_t)(p->count[tensor] * pl_real_bytes(p->c.type));
}

/* The problem with outputs of its own, as they were before. */
static problem again(const problem *p)
{
    problem other = *p;
    for (int i = 0; i < TENSORS; i++)
        if (i == O || i >= DQ) {
            other.at[i] = guarded_bytes(bytes_of(p, i), 0);
            memcpy(other.at[i], p->at[i], bytes_of(p, i));
        }
    connect(&other, guarded_f32(p->c.batch * p->c.heads * p->c.tq));
    return other;
}

static void expect_same(const problem *p, const problem *other)
{
    for (int i = 0; i < TENSORS; i++) assert_memory_equal(p->at[i], other->at[i], bytes_of(p, i));
    assert_memory_equal(p->c.lse, other->c.lse, (uint64_t)(p->c.batch * p->c.heads * p->c.tq) * sizeof(float));
}

static void check_teams(const problem *p, pl_isa isa)
{
    static const int threads[] = {2, 7, 64};
    for (int i = 0; i < 3; i++) {
        problem other = again(p);
        run(&other, (pl_team){threads[i], isa});
        expect_same(p, &other);
    }
}

/* Each sample alone, as a micro-batch of one that begins there. */
static void check_samples(const problem *p, pl_isa isa)
{
    problem other = again(p), one = other;
    one.c.batch = 1;
    for (int64_t b = 0; b < p->c.batch; b++) {
        for (int i = 0; i < TENSORS; i++) one.at[i] = pl_real_at(p->c.type, other.at[i], b * p->s[i].batch);
        one.first = p->first + b;
        one.c.lse = other.c.lse + b * p->c.heads * p->c.tq;
        run(&one, (pl_team){1, isa});
    }
    expect_same(p, &other);
}

static void check_seed(uint64_t seed)
{
    print_message("repeat with: unit_backend test_attention_dropout %llu\n", (unsigned long long)seed);
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        problem p = problem_make(seed);
        run(&p, (pl_team){1, (pl_isa)isa});
        check_formula(&p);
        if (isa > PL_ISA_REF) check_teams(&p, (pl_isa)isa);
        if (isa > PL_ISA_REF) check_samples(&p, (pl_isa)isa);
        guarded_check_all();
        guarded_free_all();
    }
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < CASES; i++) check_seed(first_seed + i);
}

/* ---- the mask itself ---- */

/* n queries of zeros, n keys, heads of n elements: P is 1/n wherever a key is seen. Matrices: zeros, the unit matrix in
 * each head, or rows that are all the first unit vector. */
typedef enum content { ZEROS, UNITS, FIRSTS } content;

static void set_matrix(const problem *p, int tensor, content what)
{
    const int64_t n = p->c.head_width;
    for (int64_t e = 0; e < p->count[tensor]; e++) {
        int64_t row = e / p->s[tensor].token % n, column = e % p->s[tensor].token % n;
        bool one = what == UNITS ? row == column : what == FIRSTS && column == 0;
        pl_real_put(p->c.type, p->at[tensor], e, one);
    }
}

static problem square(uint64_t seed, int64_t n, pl_real type, int causal, float probability)
{
    dice d = {.philox = pl_philox_init(seed, 5)};
    problem p = {.step = roll(&d, 0, INT32_MAX - 1), .first = roll(&d, 0, INT32_MAX) << roll(&d, 0, 30)};
    p.c = (pl_attention_call){
        2, n, n, 2, n, causal, 1, .type = type, .key_type = type, .drops = drops_of(seed, &d, probability)};
    for (int i = 0; i < TENSORS; i++) {
        make_tensor(&p, i, 0, 0);
        set_matrix(&p, i, ZEROS);
    }
    set_matrix(&p, K, UNITS);
    connect(&p, guarded_f32(2 * 2 * n));
    return p;
}

/* [batch, heads, n, row]: what dropout makes of ones. */
static float *mask_of(const problem *p)
{
    const int64_t row = (p->c.tk + 3) / 4 * 4, count = p->c.heads * p->c.tq * row;
    float *x = guarded_f32(p->c.batch * count), *y = guarded_f32(p->c.batch * count);
    for (int64_t i = 0; i < p->c.batch * count; i++) x[i] = 1;
    pl_dropout_call c = {.samples = p->c.batch,
                         .elems_per_sample = count,
                         .probability = p->c.drops.probability,
                         .seed = p->c.drops.seed,
                         .stream = p->c.drops.stream,
                         .step = &p->step,
                         .first_sample = &p->first,
                         .x = x,
                         .y = y};
    pl_dropout_exec(&c, (pl_team){1, PL_ISA_REF});
    return y;
}

/* The tensor has, in each head, a number for each query and key (turned: key and query), which is mask/n. */
static void expect_mask(const problem *p, int tensor, bool turned)
{
    const int64_t n = p->c.tq, row = (n + 3) / 4 * 4;
    const float *mask = mask_of(p);
    for (int64_t b = 0; b < p->c.batch; b++)
        for (int64_t h = 0; h < p->c.heads; h++)
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++) {
                    head of = {.p = p, .b = b, .h = h};
                    double got = turned ? at(&of, tensor, j, i) : at(&of, tensor, i, j);
                    bool seen = !p->c.causal || j <= i;
                    double want = seen ? (double)mask[((b * p->c.heads + h) * n + i) * row + j] : 0;
                    want /= (double)(p->c.causal ? i + 1 : n);
                    if ((got != 0) != (want != 0) || !(fabs(got - want) <= 2 * unit[p->c.type] * want))
                        fail_msg("tensor %d: weight of query %lld and key %lld is %g, not %g", tensor, (long long)i,
                                 (long long)j, got, want);
                }
}

static void check_masks(int64_t n, pl_real type, int causal, pl_isa isa)
{
    problem p = square(first_seed, n, type, causal, 0.3f);
    set_matrix(&p, V, UNITS);
    run_forward(&p, (pl_team){1, isa});
    expect_mask(&p, O, false);
    set_matrix(&p, DO, UNITS); /* dv_j = Σ_i mask P do_i */
    run_backward(&p, (pl_team){3, isa});
    expect_mask(&p, DV, true);
    set_matrix(&p, V, FIRSTS), set_matrix(&p, DO, FIRSTS), set_matrix(&p, O, ZEROS);
    run_backward(&p, (pl_team){1, isa}); /* do·v = 1, delta = 0: dq_i = Σ_j mask P k_j */
    expect_mask(&p, DQ, false);
    guarded_check_all();
    guarded_free_all();
}

static void test_masks(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 5, 12, 48, 66, 275};
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int type = 0; type < 3; type++) {
                if (isa == PL_ISA_REF && sizes[i] > 70) continue; /* slow */
                check_masks(sizes[i], (pl_real)type, (int)(i + (size_t)type) % 2, (pl_isa)isa);
            }
}

/* ---- how much is dropped ---- */

/* The number of events of that share among so many lies within SIGMAS deviations of what is expected. */
static void expect_share(int64_t found, int64_t among, double share, const char *what)
{
    double mean = (double)among * share, deviation = sqrt(mean * (1 - share));
    if (!(fabs((double)found - mean) <= SIGMAS * deviation))
        fail_msg("%s: %lld of %lld, %.0f ± %.0f were expected", what, (long long)found, (long long)among, mean,
                 deviation);
}

static int64_t agreements(const float *a, const float *b, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += (a[i] == 0) == (b[i] == 0);
    return found;
}

static void check_share(float probability, pl_isa isa)
{
    enum { N = 128, HEAD = N * N };
    problem p = square(first_seed + 1, N, PL_REAL_F32, 0, probability), next = again(&p);
    next.step++;
    set_matrix(&p, V, UNITS);
    run_forward(&p, (pl_team){1, isa});
    run_forward(&next, (pl_team){1, isa});
    float *w[2][2], *later = guarded_f32(HEAD); /* [sample][head][query, key] */
    int64_t zeros = 0;
    for (int64_t i = 0; i < 4; i++) {
        head of = {.p = &p, .b = i / 2, .h = i % 2}, then = {.p = &next};
        w[i / 2][i % 2] = guarded_f32(HEAD);
        for (int64_t e = 0; e < HEAD; e++) {
            w[i / 2][i % 2][e] = (float)at(&of, O, e / N, e % N);
            later[e] = (float)at(&then, O, e / N, e % N);
            zeros += w[i / 2][i % 2][e] == 0;
        }
    }
    const double dropped = (double)probability, both = dropped * dropped + (1 - dropped) * (1 - dropped);
    expect_share(zeros, 4 * HEAD, dropped, "dropped weights");
    expect_share(agreements(w[0][0], w[1][0], HEAD), HEAD, both, "agreement of two samples");
    expect_share(agreements(w[0][0], w[0][1], HEAD), HEAD, both, "agreement of two heads");
    expect_share(agreements(w[0][0], later, HEAD), HEAD, both, "agreement of two steps");
    expect_share(agreements(w[0][0], w[0][0] + N, HEAD - N), HEAD - N, both, "agreement of neighbouring queries");
    expect_share(agreements(w[0][0], w[0][0] + 1, HEAD - 1), HEAD - 1, both, "agreement of neighbouring keys");
    guarded_free_all();
}

static void test_share(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int i = 0; i < 3; i++) check_share((float[]){0.05f, 0.1f, 0.5f}[i], (pl_isa)isa);
}

/* ---- nothing dropped ---- */

/* 2⁻³⁰ drops only where 24 bits are all 0: one weight in 16 million. */
static bool drops_some(const problem *p)
{
    for (int64_t b = 0; b < p->c.batch; b++)
        for (int64_t h = 0; h < p->c.heads; h++) {
            head n = {.p = p, .b = b, .h = h};
            for (int64_t e = 0; e < p->c.tq * p->c.tk; e++)
                if (factor_of(&n, e / p->c.tk, e % p->c.tk) == 0) return true;
        }
    return false;
}

/* The first problem from the seed on that is of the type and drops nothing; and few queries are another kernel's. */
static problem problem_of(pl_real type, uint64_t seed)
{
    for (;; seed++) {
        problem p = problem_make(seed);
        p.c.drops.probability = 0x1p-30f;
        if (p.c.type == type && p.c.tq > 4 && !drops_some(&p)) return p;
        guarded_free_all();
    }
}

/* 1/(1 − 2⁻³⁰) is 1 in f32, so the bits are those of 0. */
static void check_nothing(pl_real type, pl_isa isa)
{
    problem p = problem_of(type, first_seed + 2);
    problem plain = again(&p);
    run(&p, (pl_team){1, isa});
    connect(&plain, plain.c.lse);
    plain.c.drops = plain.b.drops = (pl_attention_drops){.seed = 5}; /* and nowhere to read step and sample from */
    exec_both(&plain.c, &plain.b, (pl_team){3, isa});
    expect_same(&p, &plain);
    guarded_check_all();
    guarded_free_all();
}

static void test_nothing(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int type = 0; type < 3; type++) check_nothing((pl_real)type, (pl_isa)isa);
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_masks),
                                       cmocka_unit_test(test_share), cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
