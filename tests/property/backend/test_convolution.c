/* Convolutions and their derivatives against sums in double, over random shapes (kernels 1 to 16, strides, paddings,
 * images smaller than a tile and wider than one), types and epilogues, at every level of this machine. Several team
 * sizes must give the same bits, and so must the images of a batch in two calls. Outputs, which begin as not-a-number,
 * and workspace stand between guard zones.
 *
 * Tolerance. As in test_gemm.c: a chain of k fused steps errs by at most k·u·Σ|a·b| (u = 2⁻²⁴), epilogue and numbers of
 * 16 bits by a few roundings more. Winograd's sums are not bounded so: an output depends on rounding of all pixels of
 * its window, 6 × 6 of them, and a weight's gradient on that of its neighbours. What is usual is a few millionths of
 * the outputs' size (tests/unit/backend has figures); here it may be 2e-4 of that, which no wrong sum comes near. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "backend/channel_norm.h"
#include "base/alloc.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

enum { CASES = 20, THREAD_COUNTS = 4 };
static const int thread_counts[THREAD_COUNTS] = {2, 3, 5, 8};
static uint64_t first_seed, state;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
static int chance(int percent) { return below(100) < percent; }

/* ---- tensors ---- */

typedef struct tensor {
    pl_real type;
    int64_t count;
    void *at; /* NULL: absent */
} tensor;

static tensor tensor_empty(pl_real type, int64_t count)
{
    int64_t size = pl_real_bytes(type);
    tensor t = {type, count, guarded_bytes((uint64_t)(count * size), (uint64_t)(below(3) * size))};
    return t;
}

static tensor tensor_random(pl_real type, int64_t count, double scale)
{
    tensor t = tensor_empty(type, count);
    for (int64_t i = 0; i < count; i++)
        pl_real_put(type, t.at, i, (float)(scale * ((double)below(1 << 20) * 0x1p-19 - 1)));
    return t;
}

static double get(const tensor *t, int64_t i) { return pl_real_get(t->type, t->at, i); }

static tensor tensor_copy(const tensor *t)
{
    tensor copy = tensor_empty(t->type, t->count);
    memcpy(copy.at, t->at, (size_t)(t->count * pl_real_bytes(t->type)));
    return copy;
}

static int same_bits(const tensor *a, const tensor *b)
{
    return !a->at || memcmp(a->at, b->at, (size_t)(a->count * pl_real_bytes(a->type))) == 0;
}

static double rounding(pl_real type, double x)
{
    return type == PL_REAL_F32 ? 0 : type == PL_REAL_BF16 ? 0x1p-8 * fabs(x) : fmax(0x1p-11 * fabs(x), 0x1p-25);
}

/* ---- a case ---- */

typedef struct problem {
    uint64_t seed;
    pl_convolution_shape s;
    pl_convolution_algorithm algorithm;
    pl_real type;
    pl_activation act;
    tensor x, w, dy, bias, residual, bias_x, partial, pre, dw;
    int act_out, moments, act_again, residual_in_place;
} problem;

static int64_t y_elems(const pl_convolution_shape *s) { return s->batch * s->out_height * s->out_width * s->out; }
static int64_t x_elems(const pl_convolution_shape *s) { return s->batch * s->height * s->width * s->in; }

static int64_t random_channels(void)
{
    static const int64_t usual[] = {1, 2, 3, 4, 8, 16, 17, 32, 33, 40, 48, 64};
    return chance(70) ? usual[below(12)] : 1 + below(70);
}

static pl_convolution_shape random_shape(void)
{
    static const int64_t kernels[] = {1, 2, 3, 3, 3, 4, 5, 7, 16}, strides[] = {1, 1, 1, 2, 3, 16};
    pl_convolution_shape s = {.batch = 1 + below(3), .in = random_channels(), .out = random_channels()};
    s.kernel = chance(80) ? kernels[below(9)] : 1 + below(16);
    if (chance(25)) s.kernel = 1 + below(4), s.in = 1 + below(3); /* a window of few numbers */
    s.stride = strides[below(6)];
    s.pad = chance(40) ? (s.kernel - 1) / 2 : below(s.kernel);
    int64_t least = s.kernel - 2 * s.pad > 1 ? s.kernel - 2 * s.pad : 1, room = s.kernel > 7 ? 20 : 30;
    s.height = least + below(room / 2), s.width = least + below(room);
    s.out_height = pl_convolution_outputs(s.height, s.kernel, s.stride, s.pad);
    s.out_width = pl_convolution_outputs(s.width, s.kernel, s.stride, s.pad);
    return s;
}

/* Cheap enough for the reference and the oracle: fewer channels where there are many taps. */
static pl_convolution_shape random_small_shape(void)
{
    pl_convolution_shape s = random_shape();
    while (pl_convolution_macs(&s) * (double)s.batch > 1.5e6) {
        if (s.batch > 1)
            s.batch--;
        else if (s.in > s.out)
            s.in = (s.in + 1) / 2;
        else
            s.out = (s.out + 1) / 2;
    }
    return s;
}

/* So many channels on one side that Winograd's points are computed in halves, at any level. */
static pl_convolution_shape random_deep_shape(void)
{
    pl_convolution_shape s = {.batch = 1 + below(2), .kernel = 3, .stride = 1, .pad = below(3)};
    s.in = 345 + below(20), s.out = 1 + below(6);
    s.height = 4 + below(4), s.width = 4 + below(5);
    if (chance(50)) s.out = s.in, s.in = 1 + below(6);
    s.out_height = pl_convolution_outputs(s.height, s.kernel, s.stride, s.pad);
    s.out_width = pl_convolution_outputs(s.width, s.kernel, s.stride, s.pad);
    return s;
}

static problem problem_of(uint64_t seed)
{
    state = seed;
    problem p = {.seed = seed, .s = chance(90) ? random_small_shape() : random_deep_shape()};
    const pl_convolution_shape *s = &p.s;
    p.type = chance(50) ? PL_REAL_F32 : chance(60) ? PL_REAL_BF16 : PL_REAL_F16;
    if (pl_convolution_allows(s, PL_CONVOLUTION_WINOGRAD4))
        p.algorithm = (pl_convolution_algorithm)below(PL_CONVOLUTION_ALGORITHM_COUNT);
    p.act = (pl_activation)below(PL_ACT_COUNT);
    p.x = tensor_random(p.type, x_elems(s), 1), p.dy = tensor_random(p.type, y_elems(s), 1);
    p.w = tensor_random(p.type, s->out * s->kernel * s->kernel * s->in, 1);
    p.dw = tensor_random(PL_REAL_F32, p.w.count, 2);
    if (chance(50)) p.bias = tensor_random(PL_REAL_F32, s->out, 1);
    if (chance(50)) p.residual = tensor_random(p.type, y_elems(s), 1);
    if (chance(30)) p.bias_x = tensor_random(PL_REAL_F32, s->in, 1);
    if (chance(50)) p.partial = tensor_random(p.type, x_elems(s), 1);
    if (chance(50)) p.pre = tensor_random(p.type, x_elems(s), 3);
    p.moments = chance(50), p.act_out = chance(50), p.act_again = p.pre.at && chance(50),
    p.residual_in_place = chance(50);
    return p;
}

/* ---- runs ---- */

typedef struct result {
    tensor y, act_out, moments, dx, act_again, dw;
} result;

static void *workspace_of(uint64_t bytes) { return bytes ? guarded_bytes(bytes, 0) : NULL; }
static void *part(const tensor *t, int64_t at) { return t->at ? pl_real_at(t->type, t->at, at) : NULL; }

/* Images [first, first + count). */
static void run_images(const problem *p, result *r, int64_t first, int64_t count, pl_team team)
{
    pl_convolution_shape s = p->s;
    int64_t y = first * (y_elems(&s) / s.batch), x = first * (x_elems(&s) / s.batch);
    s.batch = count;
    const tensor *residual = p->residual.at && p->residual_in_place ? &r->y : &p->residual;
    const tensor *partial = p->partial.at && p->residual_in_place ? &r->dx : &p->partial;
    pl_convolution_call forward = {.shape = s,
                                   .algorithm = p->algorithm,
                                   .type = p->type,
                                   .x = part(&p->x, x),
                                   .weight = p->w.at,
                                   .bias = p->bias.at,
                                   .residual = part(residual, y),
                                   .y = part(&r->y, y),
                                   .act = p->act,
                                   .act_out = part(&r->act_out, y),
                                   .moments = part(&r->moments, first * s.out_height * 2 * s.out)};
    pl_convolution_exec(&forward, workspace_of(pl_convolution_workspace_bytes(&forward, team)), team);
    pl_convolution_dx_call dx = {.shape = s,
                                 .algorithm = p->algorithm,
                                 .type = p->type,
                                 .dy = part(&p->dy, y),
                                 .weight = p->w.at,
                                 .bias = p->bias_x.at,
                                 .residual = part(partial, x),
                                 .act = p->act,
                                 .grad_of = part(&p->pre, x),
                                 .dx = part(&r->dx, x),
                                 .act_again = part(&r->act_again, x)};
    pl_convolution_dx_exec(&dx, workspace_of(pl_convolution_dx_workspace_bytes(&dx, team)), team);
    pl_convolution_dw_call dw = {s, p->algorithm, p->type, part(&p->dy, y), part(&p->x, x), r->dw.at};
    pl_convolution_dw_exec(&dw, workspace_of(pl_convolution_dw_workspace_bytes(&dw, team)), team);
}

static result result_of(const problem *p)
{
    int in_place = p->residual_in_place;
    result r = {.dw = tensor_copy(&p->dw)};
    r.y = p->residual.at && in_place ? tensor_copy(&p->residual) : tensor_empty(p->type, y_elems(&p->s));
    r.dx = p->partial.at && in_place ? tensor_copy(&p->partial) : tensor_empty(p->type, x_elems(&p->s));
    if (p->moments) r.moments = tensor_empty(PL_REAL_F32, p->s.batch * p->s.out_height * 2 * p->s.out);
    if (p->act_out) r.act_out = tensor_empty(p->type, y_elems(&p->s));
    if (p->act_again) r.act_again = tensor_empty(p->type, x_elems(&p->s));
    return r;
}

static result run(const problem *p, int64_t images_first, pl_team team)
{
    result r = result_of(p);
    if (images_first) run_images(p, &r, 0, images_first, team);
    if (images_first < p->s.batch) run_images(p, &r, images_first, p->s.batch - images_first, team);
    guarded_check_all();
    return r;
}

static int same_results(const result *a, const result *b)
{
    return same_bits(&a->y, &b->y) && same_bits(&a->act_out, &b->act_out) && same_bits(&a->moments, &b->moments) &&
           same_bits(&a->dx, &b->dx) && same_bits(&a->act_again, &b->act_again) && same_bits(&a->dw, &b->dw);
}

/* ---- the oracle: sums and sums of absolute values, pair by pair ---- */

typedef struct sums {
    double *y, *y_size, *dx, *dx_size, *dw, *dw_size;
} sums;

static double *zeros(int64_t count)
{
    double *at = calloc((size_t)count, sizeof *at);
    assert_non_null(at);
    return at;
}

static void add(double *sum, double *size, double a, double b) { *sum += a * b, *size += fabs(a * b); }

static void add_pair(const problem *p, sums *o, int64_t pixel_y, int64_t pixel_x, int64_t tap)
{
    const pl_convolution_shape *s = &p->s;
    for (int64_t n = 0; n < s->out; n++)
        for (int64_t c = 0; c < s->in; c++) {
            int64_t iy = pixel_y * s->out + n, ix = pixel_x * s->in + c;
            int64_t iw = (n * s->kernel * s->kernel + tap) * s->in + c;
            add(o->y + iy, o->y_size + iy, get(&p->x, ix), get(&p->w, iw));
            add(o->dx + ix, o->dx_size + ix, get(&p->dy, iy), get(&p->w, iw));
            add(o->dw + iw, o->dw_size + iw, get(&p->dy, iy), get(&p->x, ix));
        }
}

static sums oracle(const problem *p)
{
    const pl_convolution_shape *s = &p->s;
    sums o = {zeros(y_elems(s)), zeros(y_elems(s)),  zeros(x_elems(s)),
              zeros(x_elems(s)), zeros(p->dw.count), zeros(p->dw.count)};
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t i = 0; i < s->out_height * s->out_width; i++)
            for (int64_t tap = 0; tap < s->kernel * s->kernel; tap++) {
                int64_t row = i / s->out_width * s->stride - s->pad + tap / s->kernel;
                int64_t column = i % s->out_width * s->stride - s->pad + tap % s->kernel;
                if (row < 0 || row >= s->height || column < 0 || column >= s->width) continue;
                add_pair(p, &o, b * s->out_height * s->out_width + i, (b * s->height + row) * s->width + column, tap);
            }
    return o;
}

static void sums_free(sums *o)
{
    double *all[] = {o->y, o->y_size, o->dx, o->dx_size, o->dw, o->dw_size};
    for (int i = 0; i < 6; i++) free(all[i]);
}

static double activate(pl_activation act, double x)
{
    switch (act) {
    case PL_ACT_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2)));
    case PL_ACT_SILU:
        return x / (1 + exp(-x));
    case PL_ACT_TANH:
        return tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? x : 0;
    case PL_ACT_LEAKY_RELU:
        return x > 0 ? x : 0.01 * x;
    case PL_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case PL_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    case PL_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

static double slope(pl_activation act, double x)
{
    const double h = 1e-5;
    if (act == PL_ACT_RELU) return x > 0;
    if (act == PL_ACT_LEAKY_RELU) return x > 0 ? 1 : 0.01;
    return (activate(act, x + h) - activate(act, x - h)) / (2 * h);
}

static void check(const problem *p, const char *what, pl_isa isa, int64_t i, double got, double wanted, double bound)
{
    const pl_convolution_shape *s = &p->s;
    if (fabs(got - wanted) <= bound) return;
    fail_msg("seed %llu: %s[%lld] is %.9g, expected %.9g within %.3g (%s, type %d, %s, batch %lld, image %lld × %lld × "
             "%lld, out %lld, kernel %lld, stride %lld, padding %lld)",
             (unsigned long long)p->seed, what, (long long)i, got, wanted, bound, pl_isa_name(isa), (int)p->type,
             pl_convolution_algorithm_name(p->algorithm), (long long)s->batch, (long long)s->height,
             (long long)s->width, (long long)s->in, (long long)s->out, (long long)s->kernel, (long long)s->stride,
             (long long)s->pad);
}

/* The operands are uniform in [−1, 1), so a sum of k products has the standard deviation √k/3. */
static double chain_bound(const problem *p, int64_t k, double size)
{
    double chain = 2 * (double)(k + 8) * 0x1p-24 * size;
    return p->algorithm == PL_CONVOLUTION_DIRECT ? chain : chain + 2e-4 * sqrt((double)k) / 3;
}

static void check_act(const problem *p, const char *what, pl_isa isa, int64_t i, double got, double x)
{
    double wanted = activate(p->act, x), close = 4e-7 * fmax(1, fabs(x));
    check(p, what, isa, i, got, wanted, close + rounding(p->type, fabs(wanted) + close));
}

static void check_forward(const problem *p, const result *r, const sums *o, pl_isa isa)
{
    int64_t k = p->s.kernel * p->s.kernel * p->s.in;
    for (int64_t i = 0; i < y_elems(&p->s); i++) {
        double bias = p->bias.at ? get(&p->bias, i % p->s.out) : 0, add_on = p->residual.at ? get(&p->residual, i) : 0;
        double s = o->y[i] + bias + add_on, bound = chain_bound(p, k, o->y_size[i] + fabs(bias) + fabs(add_on));
        check(p, "y", isa, i, get(&r->y, i), s, bound + rounding(p->type, fabs(s) + bound));
        if (p->act_out) check_act(p, "act_out", isa, i, get(&r->act_out, i), get(&r->y, i));
    }
}

/* The bits of the operator that makes them from y. */
static void check_moments(const problem *p, const result *r, pl_team team)
{
    const pl_convolution_shape *s = &p->s;
    tensor want = tensor_empty(PL_REAL_F32, r->moments.count);
    pl_channel_moments_call call = {s->batch * s->out_height, s->out_width, s->out, r->y.at, want.at, p->type};
    pl_channel_moments_exec(&call, team);
    if (!same_bits(&r->moments, &want))
        fail_msg("seed %llu, %s: other moments", (unsigned long long)p->seed, pl_isa_name(team.isa));
}

static void check_dx(const problem *p, const result *r, const sums *o, pl_isa isa)
{
    int64_t k = p->s.kernel * p->s.kernel * p->s.out;
    for (int64_t i = 0; i < x_elems(&p->s); i++) {
        double bias = p->bias_x.at ? get(&p->bias_x, i % p->s.in) : 0, add_on = p->partial.at ? get(&p->partial, i) : 0;
        double s = o->dx[i] + bias + add_on, bound = chain_bound(p, k, o->dx_size[i] + fabs(bias) + fabs(add_on));
        if (p->pre.at) {
            bound += rounding(p->type, fabs(s) + bound);
            bound = 1.2 * bound + 2e-6 * fabs(s), s *= slope(p->act, get(&p->pre, i));
        }
        check(p, "dx", isa, i, get(&r->dx, i), s, bound + rounding(p->type, fabs(s) + bound));
        if (p->act_again) check_act(p, "act_again", isa, i, get(&r->act_again, i), get(&p->pre, i));
    }
}

static void check_dw(const problem *p, const result *r, const sums *o, pl_isa isa)
{
    int64_t k = p->s.batch * p->s.out_height * p->s.out_width;
    for (int64_t i = 0; i < p->dw.count; i++) {
        double start = get(&p->dw, i), bound = chain_bound(p, k, o->dw_size[i] + fabs(start));
        check(p, "dw", isa, i, get(&r->dw, i), start + o->dw[i], bound);
    }
}

/* ---- tests ---- */

static void one_case(uint64_t seed)
{
    problem p = problem_of(seed);
    sums o = oracle(&p);
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        pl_team one = {1, (pl_isa)isa}, some = {thread_counts[seed % THREAD_COUNTS], (pl_isa)isa};
        result first = run(&p, 0, one), team = run(&p, 0, some), cut = run(&p, p.s.batch / 2, one);
        check_forward(&p, &first, &o, (pl_isa)isa);
        if (p.moments) check_moments(&p, &first, one);
        check_dx(&p, &first, &o, (pl_isa)isa);
        check_dw(&p, &first, &o, (pl_isa)isa);
        if (!same_results(&first, &team))
            fail_msg("seed %llu, %s: other bits with %d threads", (unsigned long long)seed, pl_isa_name((pl_isa)isa),
                     some.threads);
        if (!same_results(&first, &cut))
            fail_msg("seed %llu, %s: other bits in two calls", (unsigned long long)seed, pl_isa_name((pl_isa)isa));
    }
    sums_free(&o);
    guarded_free_all();
}

static void convolutions_agree_with_sums(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < CASES; i++) one_case(first_seed + i);
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions_agree_with_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
