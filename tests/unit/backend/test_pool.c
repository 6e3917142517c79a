/* Pools, changes of size and whole channels of images against loops in double straight from the definition; every level
 * of this machine, several teams, sample by sample, gradients that are added to what is there, 16-bit arrays, guard
 * zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/channels.h"
#include "backend/pool.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"

enum { ELEMS_MAX = 1 << 17, WAYS = 3 };

/* How a result is made: all of these must give the same bits. */
static const struct {
    int threads;
    bool by_sample, into_add;
} ways[WAYS] = {{1, false, false}, {1, true, false}, {3, false, true}};

/* samples, height, width, channels; some are large enough to be shared out */
typedef struct shape {
    int64_t b, h, w, c;
} shape;

static const shape shapes[] = {{1, 2, 2, 1},    {2, 3, 5, 3},   {3, 4, 7, 17}, {1, 9, 2, 33},
                               {2, 12, 11, 64}, {1, 5, 6, 200}, {5, 8, 8, 80}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int64_t elems_of(const shape *s) { return s->b * s->h * s->w * s->c; }

static const float *pixel(const shape *s, const float *x, int64_t b, int64_t i, int64_t j)
{
    return x + ((b * s->h + i) * s->w + j) * s->c;
}

static void assert_near(const float *got, const double *expected, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - expected[i]) <= 2e-6 * (1 + fabs(expected[i]))))
            fail_msg("%s[%lld] is %.9g, expected %.9g", what, (long long)i, (double)got[i], expected[i]);
}

/* ---- the largest ---- */

/* Ties, and not-a-number here and there. */
static float *make_image(const shape *s, uint64_t stream, bool odd_numbers)
{
    float *x = guarded_normal(elems_of(s), stream);
    for (int64_t i = 0; i < elems_of(s) && odd_numbers; i++) {
        x[i] = rintf(x[i]);
        if (i % 37 == 5) x[i] = NAN;
    }
    return x;
}

static void oracle_max(const shape *s, const float *x, int64_t b, int64_t i, int64_t j, int64_t c, float *y, int *place)
{
    *y = pixel(s, x, b, 2 * i, 2 * j)[c], *place = 0;
    for (int k = 1; k < 4 && !isnan(*y); k++) {
        float at = pixel(s, x, b, 2 * i + k / 2, 2 * j + k % 2)[c];
        if (at > *y || isnan(at)) *y = at, *place = k;
    }
}

static void check_max(const shape *s, const float *x, const float *y, const uint8_t *argmax)
{
    for (int64_t e = 0; e < s->b * (s->h / 2) * (s->w / 2) * s->c; e++) {
        int64_t c = e % s->c, j = e / s->c % (s->w / 2), i = e / s->c / (s->w / 2) % (s->h / 2);
        float wanted;
        int place;
        oracle_max(s, x, e / s->c / (s->w / 2) / (s->h / 2), i, j, c, &wanted, &place);
        assert_int_equal(argmax[e], place);
        assert_true(isnan(wanted) ? isnan(y[e]) : y[e] == wanted);
    }
}

static void check_max_gradient(const shape *s, const float *dy, const uint8_t *argmax, const float *add,
                               const float *dx)
{
    for (int64_t e = 0; e < elems_of(s); e++) {
        int64_t c = e % s->c, j = e / s->c % s->w, i = e / s->c / s->w % s->h, b = e / s->c / s->w / s->h;
        float wanted = add ? add[e] : 0;
        int64_t from = ((b * (s->h / 2) + i / 2) * (s->w / 2) + j / 2) * s->c + c;
        if (i < s->h / 2 * 2 && j < s->w / 2 * 2 && argmax[from] == i % 2 * 2 + j % 2) wanted += dy[from];
        assert_true(dx[e] == wanted);
    }
}

static void run_max(const shape *s, pl_isa isa, int way, bool odd_numbers, bool has_add)
{
    int64_t n = elems_of(s), each = n / s->b, small = s->h / 2 * (s->w / 2) * s->c;
    int64_t step = ways[way].by_sample ? 1 : s->b;
    pl_team team = {ways[way].threads, isa};
    float *x = make_image(s, 1, odd_numbers), *y = guarded_f32(s->b * small), *dy = guarded_normal(s->b * small, 2);
    float *add = has_add ? guarded_normal(n, 3) : NULL, *kept = has_add ? guarded_copy(add, n) : NULL;
    float *dx = has_add && ways[way].into_add ? add : guarded_f32(n), *again = guarded_f32(s->b * small);
    uint8_t *argmax = guarded_bytes((uint64_t)(s->b * small), 1);
    for (int64_t b = 0; b < s->b; b += step) {
        pl_max_pool_call call = {step, s->h, s->w, s->c, x + b * each, y + b * small, argmax + b * small, PL_REAL_F32};
        pl_max_pool_exec(&call, team);
        call.argmax = NULL, call.y = again + b * small;
        pl_max_pool_exec(&call, team);
        pl_max_pool_bwd_call bwd = {
            step,          s->h,       s->w, s->c, dy + b * small, argmax + b * small, add ? add + b * each : NULL,
            dx + b * each, PL_REAL_F32};
        pl_max_pool_bwd_exec(&bwd, team);
    }
    check_max(s, x, y, argmax);
    assert_memory_equal(y, again, (size_t)(s->b * small) * sizeof *y);
    check_max_gradient(s, dy, argmax, kept, dx);
}

static void the_largest_of_four(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int i = 0; i < SHAPES * WAYS; i++) {
            run_max(&shapes[i / WAYS], isa, i % WAYS, i % 3 == 0, i % 2);
            guarded_check_all();
            guarded_free_all();
        }
}

/* ---- means and bilinear ×2 ---- */

typedef struct problem {
    pl_resample_kind kind;
    shape x;
    int64_t h, w, kernel, stride; /* of y */
} problem;

/* What pixel i of n gives to pixel o of m. */
static double share(const problem *p, int64_t i, int64_t n, int64_t o, int64_t m)
{
    double first = floor((double)(o * n) / (double)m), end = ceil((double)((o + 1) * n) / (double)m);
    double at = fmin(fmax(((double)o + 0.5) / 2 - 0.5, 0), (double)(n - 1));
    if (p->kind == PL_RESAMPLE_AVERAGE)
        return i >= o * p->stride && i < o * p->stride + p->kernel ? 1 / (double)p->kernel : 0;
    if (p->kind == PL_RESAMPLE_ADAPTIVE) return (double)i >= first && (double)i < end ? 1 / (end - first) : 0;
    return fmax(0, 1 - fabs(at - (double)i));
}

/* y += weights·x, dx += weights·dy: y and dx begin as what is there. */
static void oracle_resample(const problem *p, const float *x, const float *dy, double *y, double *dx)
{
    const shape *s = &p->x;
    for (int64_t r = 0; r < s->b * p->h * p->w; r++)
        for (int64_t i = 0; i < s->h; i++) {
            double down = share(p, i, s->h, r / p->w % p->h, p->h);
            for (int64_t j = 0; j < s->w && down > 0; j++) {
                double weight = down * share(p, j, s->w, r % p->w, p->w);
                int64_t at = ((r / p->w / p->h * s->h + i) * s->w + j) * s->c;
                for (int64_t c = 0; c < s->c && weight > 0; c++) {
                    y[r * s->c + c] += weight * x[at + c];
                    dx[at + c] += weight * dy[r * s->c + c];
                }
            }
        }
}

static pl_resample_call resample_call(const problem *p, int64_t samples, const float *from, float *to)
{
    return (pl_resample_call){.kind = p->kind,
                              .samples = samples,
                              .channels = p->x.c,
                              .height = p->x.h,
                              .width = p->x.w,
                              .out_height = p->h,
                              .out_width = p->w,
                              .kernel = p->kernel,
                              .stride = p->stride,
                              .from = from,
                              .to = to};
}

static void run_call(const pl_resample_call *call, pl_team team)
{
    pl_resample_exec(call, guarded_bytes(pl_resample_workspace_bytes(call, team), 0), team);
}

/* y and dx behind each other */
static float *run_resample(const problem *p, pl_isa isa, int way, bool has_add)
{
    int64_t n = elems_of(&p->x), each = n / p->x.b, small = p->h * p->w * p->x.c, m = p->x.b * small;
    int64_t step = ways[way].by_sample ? 1 : p->x.b;
    pl_team team = {ways[way].threads, isa};
    float *x = guarded_normal(n, 1), *dy = guarded_normal(m, 2), *out = guarded_f32(m + n);
    float *add = guarded_normal(n, 3), *dx = ways[way].into_add && has_add ? add : guarded_f32(n);
    for (int64_t b = 0; b < p->x.b; b += step) {
        pl_resample_call call = resample_call(p, step, x + b * each, out + b * small);
        run_call(&call, team);
        call = resample_call(p, step, dy + b * small, dx + b * each);
        call.backward = 1, call.add = has_add ? add + b * each : NULL;
        run_call(&call, team);
    }
    memcpy(out + m, dx, (size_t)n * sizeof *out);
    return out;
}

static void check_resample(const problem *p, bool has_add)
{
    static double y[ELEMS_MAX], dx[ELEMS_MAX];
    int64_t n = elems_of(&p->x), m = p->x.b * p->h * p->w * p->x.c;
    assert_true(n <= ELEMS_MAX && m <= ELEMS_MAX);
    float *x = guarded_normal(n, 1), *dy = guarded_normal(m, 2), *add = guarded_normal(n, 3);
    for (int64_t i = 0; i < m; i++) y[i] = 0;
    for (int64_t i = 0; i < n; i++) dx[i] = has_add ? add[i] : 0;
    oracle_resample(p, x, dy, y, dx);
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float *first = NULL;
        for (int way = 0; way < WAYS; way++) {
            float *out = run_resample(p, isa, way, has_add);
            if (!first) first = out;
            assert_memory_equal(out, first, (size_t)(m + n) * sizeof *out);
        }
        assert_near(first, y, m, "y");
        assert_near(first + m, dx, n, "dx");
    }
    guarded_check_all();
    guarded_free_all();
}

static void means_and_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        check_resample(&(problem){PL_RESAMPLE_DOUBLE, *s, 2 * s->h, 2 * s->w, 0, 0}, i % 2);
        check_resample(&(problem){PL_RESAMPLE_ADAPTIVE, *s, 1, 1, 0, 0}, i % 2 == 0);
        check_resample(&(problem){PL_RESAMPLE_ADAPTIVE, *s, 3, 5, 0, 0}, i % 2);
        bool small = elems_of(s) < 8192; /* a team costs more here than what it does */
        for (int64_t kernel = small ? 1 : 2; kernel <= (small ? 3 : 2) && kernel <= s->h && kernel <= s->w; kernel++)
            for (int64_t stride = 1 + (kernel + i) % 2; stride < (small ? 4 : 3); stride += 2)
                check_resample(&(problem){PL_RESAMPLE_AVERAGE, *s, (s->h - kernel) / stride + 1,
                                          (s->w - kernel) / stride + 1, kernel, stride},
                               stride % 2);
    }
}

/* ---- 16 bits: the result is that of f32 on the widened input, rounded once ---- */

static void widen_both(pl_real type, float *x, void *narrow, int64_t count)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, narrow, i, x[i]), x[i] = pl_real_get(type, narrow, i);
}

static void check_rounded(pl_real type, const uint16_t *got, const float *wide, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t rounded[1];
        pl_real_put(type, rounded, 0, wide[i]);
        assert_int_equal(got[i], rounded[0]);
    }
}

static void check_sixteen_bits(const shape *s, pl_real type, pl_team team)
{
    int64_t n = elems_of(s);
    problem p = {PL_RESAMPLE_DOUBLE, *s, 2 * s->h, 2 * s->w, 0, 0};
    float *x = guarded_normal(n, 1), *add = guarded_normal(n, 2), *y = guarded_f32(4 * n), *dx = guarded_f32(n);
    void *x16 = guarded_bytes((uint64_t)n * 2, 0), *add16 = guarded_bytes((uint64_t)n * 2, 2);
    uint16_t *y16 = guarded_bytes((uint64_t)n * 8, 2), *dx16 = guarded_bytes((uint64_t)n * 2, 0);
    widen_both(type, x, x16, n), widen_both(type, add, add16, n);
    pl_resample_call call = resample_call(&p, s->b, x, y);
    run_call(&call, team);
    call.from = x16, call.to = y16, call.type = type;
    run_call(&call, team);
    check_rounded(type, y16, y, 4 * n);
    for (int64_t i = 0; i < 4 * n; i++) y[i] = pl_real_get(type, y16, i);
    call = resample_call(&p, s->b, y, dx), call.backward = 1, call.add = add;
    run_call(&call, team);
    call.from = y16, call.to = dx16, call.add = add16, call.type = type;
    run_call(&call, team);
    check_rounded(type, dx16, dx, n);
    int64_t small = s->b * (s->h / 2) * (s->w / 2) * s->c;
    float *max = guarded_f32(small);
    uint16_t *max16 = guarded_bytes((uint64_t)small * 2, 0);
    uint8_t *place = guarded_bytes((uint64_t)small, 0), *place16 = guarded_bytes((uint64_t)small, 3);
    pl_max_pool_exec(&(pl_max_pool_call){s->b, s->h, s->w, s->c, x, max, place, PL_REAL_F32}, team);
    pl_max_pool_exec(&(pl_max_pool_call){s->b, s->h, s->w, s->c, x16, max16, place16, type}, team);
    check_rounded(type, max16, max, small);
    assert_memory_equal(place, place16, (size_t)small);
    pl_max_pool_bwd_exec(&(pl_max_pool_bwd_call){s->b, s->h, s->w, s->c, max, place, add, dx, PL_REAL_F32}, team);
    pl_max_pool_bwd_exec(&(pl_max_pool_bwd_call){s->b, s->h, s->w, s->c, max16, place, add16, dx16, type}, team);
    check_rounded(type, dx16, dx, n);
}

static void sixteen_bits_are_only_stored_so(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int i = 0; i < 2 * SHAPES; i++) {
            check_sixteen_bits(&shapes[i / 2], i % 2 ? PL_REAL_BF16 : PL_REAL_F16, (pl_team){1 + i % 3, isa});
            guarded_check_all();
            guarded_free_all();
        }
}

/* ---- whole channels ---- */

static void check_concat(pl_real type, pl_team team)
{
    enum { POSITIONS = 700, ALL = 3 + 1 + 16 + 20 };
    static const int64_t channels[4] = {3, 1, 16, 20};
    pl_concat_call call = {.positions = POSITIONS, .inputs = 4, .type = type};
    int64_t bytes = pl_real_bytes(type);
    call.y = guarded_bytes((uint64_t)(POSITIONS * ALL * bytes), 0);
    for (int k = 0; k < 4; k++) {
        void *x = guarded_bytes((uint64_t)(POSITIONS * channels[k] * bytes), 4);
        for (int64_t i = 0; i < POSITIONS * channels[k]; i++) pl_real_put(type, x, i, (float)(k * 50 + i % 47));
        call.channels[k] = channels[k], call.x[k] = x;
    }
    pl_concat_exec(&call, team);
    for (int64_t p = 0; p < POSITIONS; p++)
        for (int64_t c = 0, k = 0, first = 0; c < ALL; c++) {
            if (c - first == channels[k]) first += channels[k++];
            assert_true(pl_real_get(type, call.y, p * ALL + c) ==
                        pl_real_get(type, call.x[k], p * channels[k] + c - first));
        }
    for (int64_t k = 0, first = 0; k < 4; first += channels[k++]) { /* and apart again */
        void *x = guarded_bytes((uint64_t)(POSITIONS * channels[k] * bytes), 0);
        pl_slice_exec(&(pl_slice_call){POSITIONS, ALL, first, channels[k], call.y, x, type}, team);
        assert_memory_equal(x, call.x[k], (size_t)(POSITIONS * channels[k] * bytes));
    }
}

static void check_coordinates(pl_real type, pl_team team, int64_t height, int64_t width)
{
    enum { SAMPLES = 3, CHANNELS = 5 };
    const int64_t n = SAMPLES * height * width;
    void *x = guarded_bytes((uint64_t)(n * CHANNELS * pl_real_bytes(type)), 4);
    void *to = guarded_bytes((uint64_t)(n * (CHANNELS + 2) * pl_real_bytes(type)), 0);
    for (int64_t i = 0; i < n * CHANNELS; i++) pl_real_put(type, x, i, (float)(i % 97));
    pl_append_coordinates_exec(&(pl_append_coordinates_call){SAMPLES, height, width, CHANNELS, x, to, type}, team);
    for (int64_t p = 0; p < n; p++) {
        const double place[2] = {height > 1 ? (double)(p / width % height) / (double)(height - 1) : 0,
                                 width > 1 ? (double)(p % width) / (double)(width - 1) : 0};
        for (int64_t c = 0; c < CHANNELS; c++)
            assert_true(pl_real_get(type, to, p * (CHANNELS + 2) + c) == pl_real_get(type, x, p * CHANNELS + c));
        for (int k = 0; k < 2; k++) {
            float wanted[1];
            pl_real_put(type, wanted, 0, (float)place[k]);
            assert_true(pl_real_get(type, to, p * (CHANNELS + 2) + CHANNELS + k) == pl_real_get(type, wanted, 0));
        }
    }
}

static void check_slice_gradient(pl_real type, pl_team team, bool has_add, bool in_place)
{
    enum { POSITIONS = 900, ALL = 37, FIRST = 5, COUNT = 19 };
    int64_t bytes = pl_real_bytes(type);
    void *dy = guarded_bytes((uint64_t)(POSITIONS * COUNT * bytes), 0), *add = NULL, *dx;
    void *kept = guarded_bytes((uint64_t)(POSITIONS * ALL * bytes), 0);
    dx = guarded_bytes((uint64_t)(POSITIONS * ALL * bytes), 0);
    for (int64_t i = 0; i < POSITIONS * COUNT; i++) pl_real_put(type, dy, i, (float)(i % 31));
    for (int64_t i = 0; i < POSITIONS * ALL; i++) pl_real_put(type, kept, i, (float)(i % 29) / 4);
    if (has_add) add = in_place ? memcpy(dx, kept, (size_t)(POSITIONS * ALL * bytes)) : kept;
    pl_slice_bwd_exec(&(pl_slice_bwd_call){POSITIONS, ALL, FIRST, COUNT, dy, add, dx, type}, team);
    for (int64_t i = 0; i < POSITIONS * ALL; i++) {
        int64_t c = i % ALL - FIRST;
        float wanted = has_add ? pl_real_get(type, kept, i) : 0;
        if (c >= 0 && c < COUNT) wanted += pl_real_get(type, dy, i / ALL * COUNT + c);
        assert_true(pl_real_get(type, dx, i) == wanted);
    }
}

/* Kept channels are scaled, the others are 0 even where x is infinite; the mask is that of the samples' numbers. */
static void check_channel_dropout(pl_real type, pl_team team)
{
    enum { SAMPLES = 5, POSITIONS = 60, CHANNELS = 37, N = SAMPLES * POSITIONS * CHANNELS };
    const int64_t step = 12, first = 1000;
    pl_philox philox = pl_philox_init(3, 4);
    void *x = guarded_bytes((uint64_t)(N * pl_real_bytes(type)), 0);
    int dropped = 0;
    for (int64_t i = 0; i < N; i++) pl_real_put(type, x, i, i % 11 == 3 ? INFINITY : (float)(i % 64));
    for (int64_t s = 0; s < SAMPLES; s += 2) { /* in place, two samples a call */
        int64_t start = first + s, left = SAMPLES - s < 2 ? SAMPLES - s : 2;
        void *at = pl_real_at(type, x, s * POSITIONS * CHANNELS);
        pl_channel_dropout_call call = {left, POSITIONS, CHANNELS, 0.5f, 3, 4, &step, &start, at, at, type};
        pl_channel_dropout_exec(&call, guarded_bytes(pl_channel_dropout_workspace_bytes(&call, team), 0), team);
    }
    for (int64_t i = 0; i < N; i++) {
        uint32_t bits[4], c = (uint32_t)(i % CHANNELS);
        pl_philox_block(&philox, (uint32_t)step, (uint64_t)(first + i / (POSITIONS * CHANNELS)), c / 4, bits);
        bool kept = pl_uniform_f32(bits[c % 4]) >= 0.5f;
        float wanted = !kept ? 0 : i % 11 == 3 ? INFINITY : (float)(i % 64) * 2;
        assert_true(pl_real_get(type, x, i) == wanted);
        dropped += !kept;
    }
    assert_in_range(dropped, N / 4, N * 3 / 4);
}

static void whole_channels(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int type = PL_REAL_F32; type <= PL_REAL_F16; type++)
            for (int threads = 1; threads < 4; threads++) {
                pl_team team = {threads, isa};
                check_concat((pl_real)type, team);
                check_coordinates((pl_real)type, team, 9, 33);
                check_coordinates((pl_real)type, team, 1, 4);
                for (int options = 0; options < 3; options++)
                    check_slice_gradient((pl_real)type, team, options > 0, options > 1);
                check_channel_dropout((pl_real)type, team);
                guarded_check_all();
                guarded_free_all();
            }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_of_four), cmocka_unit_test(means_and_sizes),
                                       cmocka_unit_test(sixteen_bits_are_only_stored_so),
                                       cmocka_unit_test(whole_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
