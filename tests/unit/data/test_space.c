/* A parameter space: numbers by closed form, shares by count (1024 points of an unscrambled sequence are even), groups
 * against a search through all points, what makes no sense. */
#include "unit/data/scratch.h"

#include <math.h>

#include "data/fields/space.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static pl_error err;
static pl_space space;

static const pl_dimension layers = {.name = "num_layers", .is_shape = true, .low = 2, .high = 5};
static const pl_dimension kernel = {
    .name = "kernel_size", .type = PL_DIMENSION_CHOICE, .is_shape = true, .choices = 3, .choice = {3, 5, 7}};
static const pl_dimension noise = {
    .name = "noise_scale", .type = PL_DIMENSION_CONTINUOUS, .log_scale = true, .low = 1e-5, .high = 1};
static const pl_dimension policy = {.name = "update_policy",
                                    .type = PL_DIMENSION_CHOICE,
                                    .choices = 3,
                                    .choice = {10, 11, 12},
                                    .weight = {.75, 0, .25}};

static void test_numbers(void **state)
{
    (void)state;
    const pl_dimension dropout = {.type = PL_DIMENSION_CONTINUOUS, .low = 0, .high = .3},
                       yes = {.type = PL_DIMENSION_BOOLEAN};
    const double last = 1 - 0x1p-32;
    assert_true(pl_dimension_value(&layers, 0) == 2 && pl_dimension_value(&layers, .25) == 3);
    assert_true(pl_dimension_value(&layers, .7499) == 4 && pl_dimension_value(&layers, last) == 5);
    assert_true(pl_dimension_value(&kernel, .3333) == 3 && pl_dimension_value(&kernel, .3334) == 5);
    assert_true(pl_dimension_value(&kernel, last) == 7);
    assert_true(pl_dimension_value(&policy, .7499) == 10 && pl_dimension_value(&policy, .75) == 12);
    assert_true(pl_dimension_value(&policy, last) == 12);
    assert_true(fabs(pl_dimension_value(&dropout, .5) - .15) < 1e-15);
    assert_true(fabs(pl_dimension_value(&noise, .4) / 1e-3 - 1) < 1e-12);
    assert_true(pl_dimension_value(&noise, 0) == 1e-5 && pl_dimension_value(&noise, last) <= 1);
    assert_true(pl_dimension_value(&yes, .5) == 0 && pl_dimension_value(&yes, .5001) == 1);
}

static void test_shares(void **state)
{
    (void)state;
    const pl_dimension all[] = {layers, kernel, noise, policy};
    uint32_t of_layers[6] = {0}, of_kernel[8] = {0}, of_policy[13] = {0}, small = 0;
    assert_int_equal(pl_space_init(&space, all, 4, &err), PL_OK);
    for (uint32_t n = 0; n < 1024; n++) {
        double v[4], u[4], own[4];
        pl_sobol_point(&space.sobol, n, own);
        pl_space_point(&space, n, v, u);
        assert_memory_equal(u, own, sizeof u);
        of_layers[(int)v[0]]++;
        of_kernel[(int)v[1]]++;
        small += v[2] < sqrt(1e-5);
        of_policy[(int)v[3]]++;
    }
    for (int i = 2; i < 6; i++) assert_int_equal(of_layers[i], 256);
    assert_true(of_kernel[3] == 342 && of_kernel[5] + of_kernel[7] == 682 && small == 512);
    assert_true(of_policy[10] == 768 && of_policy[11] == 0 && of_policy[12] == 256);
}

/* ---- groups ---- */

static pl_dimension random_dimension(scratch_random *r)
{
    pl_dimension d = {.name = "random", .type = (pl_dimension_type)scratch_next(r, 4)};
    d.is_shape = d.type != PL_DIMENSION_CONTINUOUS && scratch_next(r, 2);
    d.low = (double)scratch_next(r, 9) - 4;
    d.high = d.low + scratch_next(r, 6);
    d.choices = 1 + scratch_next(r, 5);
    for (uint32_t i = 0; i < d.choices; i++) d.choice[i] = i * 2;
    if (scratch_next(r, 2)) d.weight[scratch_next(r, d.choices)] = 1;
    return d;
}

/* -1, 0 or 1: the first shape dimension that differs decides. */
static int compare_shapes(uint32_t a, uint32_t b)
{
    double x[PL_SPACE_DIMENSIONS], y[PL_SPACE_DIMENSIONS];
    pl_space_point(&space, a, x, NULL);
    pl_space_point(&space, b, y, NULL);
    for (uint32_t i = 0; i < space.dimensions; i++)
        if (space.dimension[i].is_shape && x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void check_groups(const pl_space_groups *g, uint32_t first, uint32_t points)
{
    uint8_t *seen = pl_alloc(points, 1);
    assert_int_equal(g->first[0], 0);
    assert_int_equal(g->first[g->groups], points);
    for (uint32_t group = 0, i = 0; group < g->groups; group++)
        for (; i < g->first[group + 1]; i++) {
            const uint32_t point = pl_space_groups_point(g, i), before = i ? pl_space_groups_point(g, i - 1) : 0;
            const int new_group = i == g->first[group];
            assert_true(point >= first && point - first < points && !seen[point - first]++);
            if (i && compare_shapes(before, point) != (new_group ? -1 : 0))
                fail_msg("points %u and %u in group %u; seed %" PRIu64, before, point, group, seed);
            assert_true(new_group || before < point);
        }
    pl_free(seen);
}

static void make_groups(uint32_t first, uint32_t points,
                        void (*check)(const pl_space_groups *, uint32_t first, uint32_t points))
{
    pl_space_groups g;
    uint64_t bytes;
    assert_int_equal(pl_space_groups_bytes(&space, points, &bytes, &err), PL_OK);
    assert_true(bytes <= 12 * (uint64_t)points + 4);
    char *memory = pl_alloc(bytes + 8, 1);
    memset(memory + bytes, 0x5a, 8);
    pl_space_groups_init(&g, &space, first, points, memory);
    for (uint64_t i = 0; i < 8; i++) assert_int_equal(memory[bytes + i], 0x5a);
    check(&g, first, points);
    pl_free(memory);
}

static void test_groups(void **state)
{
    (void)state;
    scratch_random r = {pl_philox_init(seed, 1), 0};
    for (int i = 0; i < 60; i++) {
        pl_dimension d[6];
        const uint32_t count = 1 + scratch_next(&r, 6);
        for (uint32_t k = 0; k < count; k++) d[k] = random_dimension(&r);
        assert_int_equal(pl_space_init(&space, d, count, &err), PL_OK);
        if (i % 2) pl_sobol_scramble(&space.sobol, seed);
        make_groups(scratch_next(&r, 50), 1 + scratch_next(&r, 200), check_groups);
    }
}

static void count_documented(const pl_space_groups *g, uint32_t first, uint32_t points)
{
    (void)first, (void)points;
    assert_int_equal(g->groups, 4 * 49 * 3); /* all there are */
}

static void test_documented_shapes(void **state)
{
    (void)state;
    const pl_dimension channels = {.name = "base_channels", .is_shape = true, .low = 16, .high = 64},
                       all[] = {layers, channels, kernel, noise, policy};
    assert_int_equal(pl_space_init(&space, all, 5, &err), PL_OK);
    pl_sobol_scramble(&space.sobol, 42);
    make_groups(0, 10000, count_documented);
}

/* ---- what makes no sense ---- */

static void refuse(pl_dimension d, const char *sentence)
{
    d.name = "x";
    assert_int_equal(pl_space_init(&space, &d, 1, &err), PL_E_CONFIG);
    assert_says(&err, sentence);
}

static pl_dimension weighted(double first)
{
    pl_dimension d = policy;
    d.weight[0] = first;
    return d;
}

static void test_refused(void **state)
{
    (void)state;
    const pl_dimension_type continuous = PL_DIMENSION_CONTINUOUS, choice = PL_DIMENSION_CHOICE;
    const pl_dimension wide = {.name = "x", .is_shape = true, .low = 0, .high = 1e9}, two[] = {wide, wide};
    uint64_t bytes;
    refuse((pl_dimension){.low = 3, .high = 2}, "x: from 3 to 2 is no interval");
    refuse((pl_dimension){.type = continuous, .low = NAN}, "no interval");
    refuse((pl_dimension){.type = continuous, .log_scale = true, .high = 1}, "a log scale cannot begin at 0");
    refuse((pl_dimension){.log_scale = true, .low = 1, .high = 2}, "integers have no log scale");
    refuse((pl_dimension){.low = 1.5, .high = 2}, "1.5 and 2 are not two integers");
    refuse((pl_dimension){.type = continuous, .is_shape = true}, "no end of shapes");
    refuse((pl_dimension){.type = choice}, "0 choices; 1 to 16 are possible");
    refuse((pl_dimension){.type = choice, .choices = 17}, "17 choices");
    refuse(weighted(.5), "the weights sum to 0.75, not to 1");
    refuse(weighted(-1), "the weight -1 is not from 0 to 1");
    assert_int_equal(pl_space_init(&space, two, 33, &err), PL_E_CONFIG);
    assert_int_equal(pl_space_init(&space, two, 0, &err), PL_E_CONFIG);
    assert_int_equal(pl_space_init(&space, two, 2, &err), PL_OK);
    assert_int_equal(pl_space_groups_bytes(&space, 5, &bytes, &err), PL_E_CONFIG);
    assert_says(&err, "more than 4294967295 shapes, from dimension x on");
    assert_int_equal(pl_space_init(&space, two, 1, &err), PL_OK);
    assert_int_equal(pl_space_groups_bytes(&space, 0, &bytes, &err), PL_E_CONFIG);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),           cmocka_unit_test(test_shares),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_documented_shapes), cmocka_unit_test(test_refused),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
