/* The sampler over random sizes: each epoch is a permutation of all windows, windows tile the part, the count of a step
 * is the sum over its rows, nothing depends on anything but (seed, step, row). Usage: program [seed] */
#include "unit/data/scratch.h"

#include "data/text/sampler.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static pl_error err;

static void check_epoch(const pl_sampler *s, uint64_t epoch)
{
    uint8_t *seen = pl_alloc(s->windows, 1);
    uint64_t counted = 0, rows = 0;
    for (uint64_t k = 0; k < s->steps_per_epoch; k++) {
        uint64_t step = epoch * s->steps_per_epoch + k, in_step = 0;
        for (uint32_t row = 0; row < s->batch; row++) {
            pl_window w = pl_sampler_window(s, step, row);
            in_step += w.counted;
            if (w.counted == 0) continue;
            uint64_t index = (w.start - s->begin) / s->sequence;
            assert_int_equal((w.start - s->begin) % s->sequence, 0);
            assert_true(index < s->windows && w.start + w.counted < s->end && w.counted <= s->sequence);
            if (seen[index]++)
                fail_msg("window %llu comes twice; repeat with seed %llu", (unsigned long long)index,
                         (unsigned long long)seed);
            rows++;
        }
        assert_int_equal(pl_sampler_step_tokens(s, step), in_step);
        assert_true(in_step > 0);
        counted += in_step;
    }
    assert_int_equal(rows, s->windows);
    assert_int_equal(counted, pl_sampler_epoch_tokens(s));
    assert_int_equal(counted, s->end - s->begin - 1);
    pl_free(seen);
}

static void test_each_window_once(void **state)
{
    (void)state;
    scratch_random r = {pl_philox_init(seed, 1), 0};
    for (int i = 0; i < 300; i++) {
        uint32_t sequence = 1 + scratch_next(&r, 20);
        pl_sampler_options o = {.tokens = 2 * (sequence + 1) + scratch_next(&r, i < 200 ? 300 : 20000),
                                .sequence = sequence,
                                .batch = 1 + scratch_next(&r, 40),
                                .seed = seed,
                                .validation_fraction = 0.5};
        pl_sampler s, v;
        assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_OK);
        assert_int_equal(pl_sampler_init(&v, &o, PL_PART_VALIDATION, &err), PL_OK);
        assert_int_equal(s.end, v.begin);
        assert_int_equal(v.end, o.tokens);
        for (uint64_t epoch = 0; epoch < 3; epoch++) check_epoch(&s, epoch);
        check_epoch(&v, 0);
    }
}

/* Epochs and seeds differ; the same place is the same place whenever it is asked for. */
static void test_orders(void **state)
{
    (void)state;
    pl_sampler_options o = {.tokens = 100001, .sequence = 10, .batch = 32, .seed = seed};
    pl_sampler a, b;
    assert_int_equal(pl_sampler_init(&a, &o, PL_PART_TRAIN, &err), PL_OK);
    o.seed++;
    assert_int_equal(pl_sampler_init(&b, &o, PL_PART_TRAIN, &err), PL_OK);
    uint64_t same_seed = 0, same_epoch = 0, in_place = 0, neighbours = 0;
    for (uint64_t i = 0; i < a.windows; i++) {
        uint64_t at = pl_sampler_shuffle(&a, 0, i);
        same_epoch += at == pl_sampler_shuffle(&a, 1, i);
        same_seed += at == pl_sampler_shuffle(&b, 0, i);
        in_place += at == i;
        if (i) neighbours += at == pl_sampler_shuffle(&a, 0, i - 1) + 1;
    }
    /* each is about Poisson with mean 1 for a random permutation */
    assert_true(same_epoch < 12 && same_seed < 12 && in_place < 12 && neighbours < 12);
}

/* The mean place of each tenth of an epoch is the middle: no part of the text comes early. */
static void test_spread(void **state)
{
    (void)state;
    pl_sampler_options o = {.tokens = 1000001, .sequence = 10, .batch = 32, .seed = seed};
    pl_sampler s;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_OK);
    for (uint64_t tenth = 0; tenth < 10; tenth++) {
        double sum = 0, n = (double)s.windows / 10;
        for (uint64_t i = 0; i < s.windows / 10; i++)
            sum += (double)pl_sampler_shuffle(&s, 5, tenth * (s.windows / 10) + i);
        double middle = (double)s.windows / 2,
               deviation = (double)s.windows * 0.29 / 100; /* of a mean of 10,000 uniforms */
        assert_true(sum / n > middle - 5 * deviation && sum / n < middle + 5 * deviation);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    pl_sampler s;
    pl_sampler_options o = {.tokens = 128, .sequence = 128, .batch = 4};
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_E_DATA);
    assert_says(&err, "the text has 128 tokens, fewer than one sequence of 128");
    o.tokens = 1;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_E_DATA);
    assert_says(&err, "the text has 1 token, fewer than one sequence of 128");
    o.tokens = 129;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_OK);
    assert_int_equal(s.windows, 1);
    o.tokens = 257, o.validation_fraction = 0.1;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_VALIDATION, &err), PL_E_DATA);
    assert_says(&err, "set validation_fraction to 0");
    o.tokens = 1000;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_VALIDATION, &err), PL_E_DATA);
    assert_says(&err, "raise validation_fraction");
    o.validation_fraction = 0.9;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_E_DATA);
    assert_says(&err, "lower validation_fraction");
    o.validation_fraction = 1;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_E_CONFIG);
    o.validation_fraction = 0, o.batch = 0;
    assert_int_equal(pl_sampler_init(&s, &o, PL_PART_TRAIN, &err), PL_E_CONFIG);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_window_once), cmocka_unit_test(test_orders),
                                       cmocka_unit_test(test_spread), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
