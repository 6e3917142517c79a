/* Pages that are moved, and what is drawn near numbers, against loops straight from the definition: several teams,
 * samples that begin anywhere, guard zones. What is drawn by the Gumbel-max trick is as often drawn as the softmax
 * says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/policy.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

static const int teams[] = {1, 2, 5};
enum { TEAMS = 3 };
static uint64_t seed;

/* ---- pages ---- */

static void check_shift(int64_t height, int64_t width, int64_t reach)
{
    enum { PAGES = 40 };
    const int64_t pixels = height * width;
    uint8_t *x = guarded_bytes((uint64_t)(PAGES * pixels), 3);
    int32_t across[PAGES], down[PAGES];
    const pl_philox random = pl_philox_init(seed, (uint64_t)(pixels + reach));
    for (int64_t p = 0; p < PAGES; p++) {
        uint32_t bits[4];
        pl_philox_block(&random, 0, (uint64_t)p, 0, bits);
        across[p] = p == 0 ? INT32_MIN : (int32_t)(bits[0] % (uint32_t)(2 * reach + 3)) - 1;
        down[p] = p == 0 ? INT32_MAX : (int32_t)(bits[1] % (uint32_t)(2 * reach + 3)) - 1;
        for (int64_t i = 0; i < pixels; i++) x[p * pixels + i] = (uint8_t)((uint64_t)(i + p) * 2654435761u >> 9);
    }
    for (int t = 0; t < TEAMS; t++) {
        uint8_t *y = guarded_bytes((uint64_t)(PAGES * pixels), 1);
        pl_shift_exec(&(pl_shift_call){PAGES, height, width, reach, x, across, down, y},
                      (pl_team){teams[t], pl_isa_of_machine()});
        for (int64_t i = 0; i < PAGES * pixels; i++) {
            const int64_t p = i / pixels, most = 2 * reach;
            const int64_t right = (across[p] < 0      ? 0
                                   : across[p] > most ? most
                                                      : across[p]) -
                                  reach,
                          below = (down[p] < 0      ? 0
                                   : down[p] > most ? most
                                                    : down[p]) -
                                  reach;
            const int64_t c = i % width - right, r = i % pixels / width - below;
            const bool inside = c >= 0 && c < width && r >= 0 && r < height;
            assert_int_equal(y[i], inside ? x[p * pixels + r * width + c] : 255);
        }
    }
    guarded_check_all();
    guarded_free_all();
}

static void pages(void **state)
{
    (void)state;
    check_shift(64, 48, 5);
    check_shift(3, 70, 5); /* moved out of sight */
    check_shift(9, 2, 7);
    check_shift(1, 1, 0);
    check_shift(16, 16, 0);
}

/* ---- what is drawn ---- */

/* Samples one by one or together, and from wherever: the same numbers. */
static void near_numbers(void **state)
{
    (void)state;
    enum { SAMPLES = 7, WIDTH = 5, MOST = 6, ALL = SAMPLES * WIDTH * MOST };
    const float *x = guarded_normal(SAMPLES * WIDTH, 1);
    for (int kind = 0; kind < PL_PERTURB_COUNT; kind++)
        for (int64_t count = 1; count <= MOST; count++) {
            const int64_t step = 9, first = (INT64_C(1) << 33) + 1, row = count * WIDTH;
            float *one = guarded_f32(ALL);
            for (int64_t b = 0; b < SAMPLES; b++) {
                const int64_t sample = first + b;
                pl_perturb_exec(&(pl_perturb_call){1, count, WIDTH, (pl_perturbation)kind, 0.5, seed, 4, &step, &sample,
                                                   x + b * WIDTH, one + b * row},
                                (pl_team){1, PL_ISA_REF});
            }
            for (int t = 0; t < TEAMS; t++) {
                float *y = guarded_f32(SAMPLES * row);
                pl_perturb_exec(
                    &(pl_perturb_call){SAMPLES, count, WIDTH, (pl_perturbation)kind, 0.5, seed, 4, &step, &first, x, y},
                    (pl_team){teams[t], pl_isa_of_machine()});
                assert_memory_equal(y, one, (size_t)(SAMPLES * row) * sizeof *y);
            }
            for (int64_t i = 0; i < SAMPLES * row; i++) assert_true(isfinite(one[i]));
            if (count > 1) assert_memory_not_equal(one, one + WIDTH, WIDTH * sizeof *one);
        }
    guarded_check_all();
    guarded_free_all();
}

/* Of many draws each choice comes as often as its probability says, within six deviations. */
static void as_often_as_said(void **state)
{
    (void)state;
    enum { WIDTH = 4, COUNT = 40000 };
    static const float logits[WIDTH] = {0, 1, -1, 2};
    static float y[COUNT * WIDTH];
    const int64_t step = 1, first = 3;
    double all = 0, found[WIDTH] = {0}, sum = 0, squares = 0;
    pl_perturb_exec(&(pl_perturb_call){1, COUNT, WIDTH, PL_PERTURB_GUMBEL, 1, seed, 8, &step, &first, logits, y},
                    (pl_team){1, PL_ISA_REF});
    for (int i = 0; i < COUNT; i++) {
        int best = 0;
        for (int k = 1; k < WIDTH; k++)
            if (y[i * WIDTH + k] > y[i * WIDTH + best]) best = k;
        found[best]++;
    }
    for (int k = 0; k < WIDTH; k++) all += exp((double)logits[k]);
    for (int k = 0; k < WIDTH; k++) {
        const double p = exp((double)logits[k]) / all, deviation = sqrt(COUNT * p * (1 - p));
        if (fabs(found[k] - COUNT * p) > 6 * deviation)
            fail_msg("choice %d: %g of %d, and %g were to be (seed %llu)", k, found[k], COUNT, COUNT * p,
                     (unsigned long long)seed);
    }
    pl_perturb_exec(&(pl_perturb_call){1, COUNT, WIDTH, PL_PERTURB_NORMAL, 3, seed, 8, &step, &first, logits, y},
                    (pl_team){1, PL_ISA_REF});
    for (int i = 0; i < COUNT * WIDTH; i++) {
        const double off = ((double)y[i] - (double)logits[i % WIDTH]) / 3;
        sum += off, squares += off * off;
    }
    const double n = COUNT * WIDTH;
    assert_true(fabs(sum / n) < 6 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 6 * sqrt(2 / n));
}

/* ---- the choice ---- */

static void the_choice(void **state)
{
    (void)state;
    float row[PL_POLICY_LOGITS] = {0};
    pl_policy_choice c = pl_policy_choose(row); /* of equal ones the first */
    assert_true(c.size == -3 && c.across == -5 && c.down == -5 && c.strength == 0.5);
    assert_true(fabs(c.entropy - log(7.0 * 11 * 11)) < 1e-12);
    row[PL_POLICY_SIZE + 5] = row[PL_POLICY_ACROSS + 10] = row[PL_POLICY_DOWN + 4] = 90;
    row[PL_POLICY_STRENGTH] = (float)log(3);
    c = pl_policy_choose(row);
    assert_true(c.size == 2 && c.across == 5 && c.down == -1);
    assert_true(fabs(c.strength - 0.75) < 1e-6 && c.entropy >= 0 && c.entropy < 1e-30);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages), cmocka_unit_test(near_numbers),
                                       cmocka_unit_test(as_often_as_said), cmocka_unit_test(the_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
