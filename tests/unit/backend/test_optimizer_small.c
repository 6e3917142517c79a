/* AdamW and Adam-atan2 with moments of 16 and 8 bits: against the formula in double with the same random bits; rounding
 * without bias, so that no moment sticks; the same bits with any team. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "base/block8.h"
#include "base/narrow.h"
#include "support/guarded.h"
#include "support/program.h"

enum { SEED = 11, STREAM = 77, STEP = 5 };
static bool angle; /* which of the two */
static const float beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f, decay = 0.1f, lr = 1e-3f;
static const int64_t counts[] = {1, 15, 127, 128, 129, 255, 256, 257, 1023, 1025, 8191, 20000};
enum { COUNTS = sizeof counts / sizeof *counts };

typedef struct arrays {
    float *w, *g;
    void *m, *v;
    uint64_t moment_bytes;
} arrays;

static uint64_t moment_bytes(pl_adamw_state state, int64_t count)
{
    if (state == PL_ADAMW_8BIT) return pl_block8_blocks((uint64_t)count) * PL_BLOCK8_BYTES;
    return (uint64_t)count * (state == PL_ADAMW_BF16 ? 2 : 4);
}

static uint32_t random_bits(int64_t step, int64_t element)
{
    pl_philox philox = pl_philox_init(SEED, STREAM);
    uint32_t word[4];
    pl_philox_block(&philox, (uint32_t)step, 0, (uint32_t)element / 8, word);
    return word[element / 2 % 4] >> element % 2 * 16 & 0xffff;
}

static void run(pl_adamw_state state, const arrays *a, int64_t count, int64_t step, float b2, pl_team team)
{
    pl_adamw_call call = {count, a->w, a->m,  a->v, a->g,  beta1, b2,     eps,
                          decay, &lr,  &step, NULL, state, SEED,  STREAM, .angle = angle};
    pl_adamw_exec(&call, team);
}

/* ---- how a test writes and reads moments ---- */

static double read_code(const unsigned char *codes, int64_t i, bool is_signed)
{
    float scale;
    const unsigned char *block = codes + i / 256 * PL_BLOCK8_BYTES;
    memcpy(&scale, block + 256, sizeof scale);
    unsigned code = block[i % 256];
    if (!is_signed) return pl_block8_value(code, 8) * (double)scale;
    double x = pl_block8_value(code & 127, 7) * (double)scale;
    return code & 128 ? -x : x;
}

static double read_m(pl_adamw_state state, const arrays *a, int64_t i)
{
    if (state == PL_ADAMW_BF16) return pl_f32_of_bf16(((uint16_t *)a->m)[i]);
    return read_code(a->m, i, true);
}

static double read_v(pl_adamw_state state, const arrays *a, int64_t i)
{
    if (state == PL_ADAMW_BF16) return pl_f32_of_bf16(((uint16_t *)a->v)[i]);
    double root = read_code(a->v, i, false);
    return root * root;
}

static void fill_codes(unsigned char *codes, int64_t count, float scale, uint64_t stream)
{
    pl_philox philox = pl_philox_init(3, stream);
    memset(codes, 0, moment_bytes(PL_ADAMW_8BIT, count));
    for (int64_t i = 0; i < count; i++) {
        uint32_t word[4];
        pl_philox_block(&philox, 0, 0, (uint32_t)i, word);
        unsigned char *block = codes + i / 256 * PL_BLOCK8_BYTES;
        block[i % 256] = (unsigned char)word[0];
        float own = scale * (1 + (float)(i / 256 % 7));
        memcpy(block + 256, &own, sizeof own);
    }
}

static arrays make_arrays(pl_adamw_state state, int64_t count)
{
    arrays a = {.w = guarded_normal(count, 1), .g = guarded_normal(count, 2)};
    a.moment_bytes = moment_bytes(state, count);
    a.m = guarded_bytes(a.moment_bytes, 0), a.v = guarded_bytes(a.moment_bytes, 0);
    if (state == PL_ADAMW_8BIT) {
        fill_codes(a.m, count, 0.01f, 1), fill_codes(a.v, count, 0.1f, 2);
        return a;
    }
    const float *m = guarded_normal(count, 3), *v = guarded_normal(count, 4);
    for (int64_t i = 0; i < count; i++) {
        ((uint16_t *)a.m)[i] = pl_bf16_of_f32(m[i] * 0.1f);
        ((uint16_t *)a.v)[i] = pl_bf16_of_f32(v[i] * v[i] * 0.01f);
    }
    return a;
}

static arrays copy_arrays(const arrays *a, int64_t count)
{
    arrays b = {.w = guarded_copy(a->w, count), .g = guarded_copy(a->g, count), .moment_bytes = a->moment_bytes};
    b.m = memcpy(guarded_bytes(a->moment_bytes, 0), a->m, a->moment_bytes);
    b.v = memcpy(guarded_bytes(a->moment_bytes, 0), a->v, a->moment_bytes);
    return b;
}

/* ---- one step against the formula ---- */

/* Rounded at random from a number that may lie a little off: a sum in f32 of parts as large as `parts`. */
static void check_bf16(uint16_t stored, double exact, double parts, uint32_t random)
{
    float x = pl_f32_of_bf16(stored), off = (float)(3e-7 * parts);
    float low = pl_f32_of_bf16(pl_bf16_of_f32_stochastic((float)exact - off, random));
    float high = pl_f32_of_bf16(pl_bf16_of_f32_stochastic((float)exact + off, random));
    assert_true(low <= x && x <= high);
}

static void check_code(unsigned code, double x, int bits, uint32_t random, bool not_zero)
{
    double place = pl_block8_place(x, bits);
    unsigned low = pl_block8_round(place - 2e-4, bits, random), high = pl_block8_round(place + 2e-4, bits, random);
    if (not_zero && low == 0) low = 1, high = high ? high : 1;
    assert_true(code == low || code == high);
}

typedef struct exact {
    double w, m, v;
} exact;

static exact formula(pl_adamw_state state, const arrays *before, int64_t i)
{
    exact e = {.w = before->w[i], .m = read_m(state, before, i), .v = read_v(state, before, i)};
    double b1 = beta1, b2 = beta2, g = before->g[i], rate = lr;
    e.m = b1 * e.m + (1 - b1) * g;
    e.v = b2 * e.v + (1 - b2) * g * g;
    double m_hat = e.m / (1 - pow(b1, STEP)), v_hat = e.v / (1 - pow(b2, STEP));
    e.w -= rate * decay * e.w + rate * (angle ? atan2(m_hat, sqrt(v_hat)) : m_hat / (sqrt(v_hat) + eps));
    return e;
}

static void check_blocks(const arrays *before, const arrays *after, int64_t count)
{
    for (int64_t block = 0; block * 256 < count; block++) {
        double most_m = 0, most_root = 0;
        const unsigned char *m = (unsigned char *)after->m + block * PL_BLOCK8_BYTES;
        const unsigned char *v = (unsigned char *)after->v + block * PL_BLOCK8_BYTES;
        float scale_m, scale_v;
        memcpy(&scale_m, m + 256, 4), memcpy(&scale_v, v + 256, 4);
        for (int64_t i = block * 256; i < count && i < block * 256 + 256; i++) {
            exact e = formula(PL_ADAMW_8BIT, before, i);
            most_m = fmax(most_m, fabs(e.m)), most_root = fmax(most_root, sqrt(e.v));
        }
        assert_true(fabs(scale_m * pl_block8_top(7) / most_m - 1) < 1e-5);
        assert_true(fabs(scale_v * pl_block8_top(8) / most_root - 1) < 1e-5);
        for (int64_t i = block * 256; i < block * 256 + 256; i++) {
            int k = (int)(i % 256);
            if (i >= count) {
                assert_true(m[k] == 0 && v[k] == 0);
                continue;
            }
            exact e = formula(PL_ADAMW_8BIT, before, i);
            uint32_t bits = random_bits(STEP, i);
            check_code(m[k] & 127, fabs(e.m) / most_m * pl_block8_top(7), 7, bits, false);
            check_code(v[k], sqrt(e.v) / most_root * pl_block8_top(8), 8, bits, true);
            assert_true((m[k] & 128) == (e.m < 0 ? 128 : 0) || fabs(e.m) < 1e-6 * most_m);
        }
    }
}

static void check_step(pl_adamw_state state, int64_t count, pl_isa isa)
{
    arrays start = make_arrays(state, count), first = copy_arrays(&start, count);
    run(state, &first, count, STEP, beta2, (pl_team){1, isa});
    for (int64_t i = 0; i < count; i++) {
        exact e = formula(state, &start, i);
        assert_true(fabs(first.w[i] - e.w) <= 1e-5 * fabs(e.w - start.w[i]) + 4 * (double)FLT_EPSILON * fabs(e.w));
        if (state != PL_ADAMW_BF16) continue;
        double parts = fabs(read_m(state, &start, i)) + fabs((double)start.g[i]);
        check_bf16(((uint16_t *)first.m)[i], e.m, parts, random_bits(STEP, i));
        check_bf16(((uint16_t *)first.v)[i], e.v, e.v, random_bits(STEP, i));
    }
    if (state == PL_ADAMW_8BIT) check_blocks(&start, &first, count);
    for (int threads = 2; threads <= 64; threads *= 3) {
        arrays a = copy_arrays(&start, count);
        run(state, &a, count, STEP, beta2, (pl_team){threads, isa});
        assert_memory_equal(a.w, first.w, (size_t)count * 4);
        assert_memory_equal(a.m, first.m, a.moment_bytes);
        assert_memory_equal(a.v, first.v, a.moment_bytes);
    }
}

static void check_steps(void)
{
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int c = 0; c < COUNTS; c++)
            for (pl_adamw_state s = PL_ADAMW_BF16; s <= PL_ADAMW_8BIT; s++) {
                check_step(s, counts[c], isa);
                guarded_check_all();
                guarded_free_all();
            }
}

static void test_step(void **state)
{
    (void)state;
    check_steps();
}

static void test_step_of_angle(void **state)
{
    (void)state;
    angle = true;
    check_steps();
    angle = false;
}

/* ---- many steps: a moment whose change is less than the distance of two numbers still moves, and rightly ---- */

enum { MANY = 1 << 13, STEPS = 300 };

static void zero_moments(arrays *a) { memset(a->m, 0, a->moment_bytes), memset(a->v, 0, a->moment_bytes); }

/* What is rounded without bias: v, or its root. */
static double read_kept(pl_adamw_state state, const arrays *a, int64_t i)
{
    double v = read_v(state, a, i);
    return state == PL_ADAMW_BF16 ? v : sqrt(v);
}

/* With beta2 = 0.999 and no gradient v loses 0.1 % a step; half the distance of two bf16 numbers is 0.2 % at least. In
 * each block of 8-bit numbers one gradient keeps the scale up, so that the others' codes must fall one by one. */
static void check_decay(pl_adamw_state state, pl_isa isa)
{
    const float b2 = 0.999f;
    arrays a = make_arrays(state, MANY);
    zero_moments(&a);
    for (int64_t i = 0; i < MANY; i++) a.g[i] = 1;
    run(state, &a, MANY, 1, b2, (pl_team){1, isa});
    double v0 = 0, v1 = 0, m1 = 0, steady = 0;
    for (int64_t i = 0; i < MANY; i++) v0 += i % 256 ? read_kept(state, &a, i) : 0, a.g[i] = i % 256 ? 0 : 1;
    for (int64_t step = 2; step < 2 + STEPS; step++) run(state, &a, MANY, step, b2, (pl_team){1, isa});
    for (int64_t i = 0; i < MANY; i++)
        if (i % 256)
            v1 += read_kept(state, &a, i), m1 += fabs(read_m(state, &a, i));
        else
            steady += read_v(state, &a, i) / (MANY / 256);
    assert_true(fabs(v0 / (MANY - MANY / 256) / (state == PL_ADAMW_BF16 ? 1e-3 : sqrt(1e-3)) - 1) < 0.01);
    assert_true(fabs(v1 / v0 / pow((double)b2, state == PL_ADAMW_BF16 ? STEPS : STEPS / 2) - 1) < 0.005);
    assert_true(fabs(steady / (1 - pow((double)b2, STEPS + 1)) - 1) < 0.02);
    assert_true(m1 / MANY < 1e-6);
    assert_true(pl_f32_of_bf16(pl_bf16_of_f32(b2)) == 1); /* to nearest, 1 would stay 1 */
}

static void test_decay(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (pl_adamw_state s = PL_ADAMW_BF16; s <= PL_ADAMW_8BIT; s++) {
            check_decay(s, isa);
            guarded_check_all();
            guarded_free_all();
        }
}

/* Over many steps from the same state, the mean of what is stored is the exact moment: the random bits of the steps are
 * independent. */
static void test_unbiased(void **state)
{
    (void)state;
    enum { COUNT = 512, TRIES = 4000 };
    for (pl_adamw_state s = PL_ADAMW_BF16; s <= PL_ADAMW_8BIT; s++) {
        arrays start = make_arrays(s, COUNT), a = copy_arrays(&start, COUNT);
        static double m[COUNT], root[COUNT];
        double error_m = 0, error_root = 0, most = 0;
        memset(m, 0, sizeof m), memset(root, 0, sizeof root);
        for (int64_t i = 0; i < TRIES; i++) {
            memcpy(a.m, start.m, a.moment_bytes), memcpy(a.v, start.v, a.moment_bytes);
            run(s, &a, COUNT, STEP + i, beta2, (pl_team){1, pl_isa_of_machine()});
            for (int64_t k = 0; k < COUNT; k++) {
                m[k] += read_m(s, &a, k) / TRIES, root[k] += read_kept(s, &a, k) / TRIES;
            }
        }
        for (int64_t k = 0; k < COUNT; k++) {
            exact e = formula(s, &start, k);
            double kept = s == PL_ADAMW_BF16 ? e.v : sqrt(e.v), off_m = m[k] / e.m - 1, off = root[k] / kept - 1;
            error_m += fabs(e.m) > 1e-3 ? off_m : 0, error_root += off;
            most = fmax(most, fabs(off));
        }
        assert_true(fabs(error_m / COUNT) < 2e-4 && fabs(error_root / COUNT) < 2e-4 && most < 0.02);
        guarded_free_all();
    }
}

/* What is not finite is not hidden; what is zero stays so. */
static void check_not_finite(pl_adamw_state state, pl_isa isa)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int b = 0; b < 3; b++) {
        arrays a = make_arrays(state, 600);
        zero_moments(&a);
        memset(a.g, 0, 600 * sizeof *a.g);
        a.g[300] = bad[b];
        run(state, &a, 600, 1, beta2, (pl_team){1, isa});
        assert_false(isfinite(read_m(state, &a, 300)));
        assert_false(isfinite(read_v(state, &a, 300)));
        assert_true(read_m(state, &a, 10) == 0 && read_v(state, &a, 10) == 0 && isfinite(a.w[299]));
        guarded_check_all();
        guarded_free_all();
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (pl_adamw_state s = PL_ADAMW_BF16; s <= PL_ADAMW_8BIT; s++) check_not_finite(s, isa);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_step), cmocka_unit_test(test_step_of_angle),
                                       cmocka_unit_test(test_decay), cmocka_unit_test(test_unbiased),
                                       cmocka_unit_test(test_not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
