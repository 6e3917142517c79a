/* The clock of components, with a clock of its own that goes on by one with each reading: what it gives to whom, that
 * it adds up, and that a program does the same with and without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "support/load.h"
#include "support/program.h"
#include "support/seed.h"

static double ticks;
static double tick(void) { return ticks++; }

static pl_run_clock clock_of(const pl_components *c) { return (pl_run_clock){.components = c, .now = tick}; }

static double sum_of(const pl_run_clock *clock)
{
    double sum = 0;
    for (int i = 0; i < PL_COMPONENTS_MAX; i++) sum += clock->seconds[i];
    return sum;
}

/* a a b b a: read at the beginning, where a becomes b, where b becomes a, and at the end. */
static void is_read_between_components(void **state)
{
    (void)state;
    uint8_t of[] = {0, 0, 1, 1, 0};
    const pl_components c = {.count = 2, .of = of};
    pl_run_clock clock = clock_of(&c);
    ticks = 10;
    for (int again = 0; again < 2; again++) {
        pl_run_clock_begin(&clock);
        for (uint32_t node = 0; node < 5; node++) pl_run_clock_enter(&clock, node);
        pl_run_clock_leave(&clock);
    }
    assert_true(ticks == 10 + 2 * 4);
    assert_true(clock.seconds[0] == 2 * 2 && clock.seconds[1] == 2 * 1); /* nothing of the time between the runs */
}

static void of_nothing_is_nothing(void **state)
{
    (void)state;
    const pl_components c = {0};
    pl_run_clock clock = clock_of(&c);
    pl_run_clock_begin(&clock);
    pl_run_clock_leave(&clock);
    assert_true(sum_of(&clock) == 0);
}

/* The same tokens in every run. */
static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    const tiny *t = context;
    (void)trips, (void)err;
    for (int64_t i = 0; i < load_count(call); i++) {
        load_tokens(call)[i] = tiny_token(t, 1, 0, i);
        load_targets(call)[i] = tiny_token(t, 2, 0, i);
    }
    return PL_OK;
}

/* A training step; what it leaves in memory. */
static void *memory_after(tiny *t, bool timed, uint64_t *bytes)
{
    tiny_run r = tiny_run_begin(t, (pl_team){1, PL_ISA_REF});
    pl_components c;
    pl_error err = {0};
    const pl_id train = pl_graph_find_program(r.plan->graph, "train");
    assert_int_equal(pl_components_create(r.plan->graph, train, &c, &err), PL_OK);
    pl_run_clock clock = clock_of(&c);
    tiny_run_weights(t, &r);
    tiny_run_step(t, &r, "train", 1); /* inputs are there then */
    ticks = 0;
    pl_program_hooks hooks = {.load = load, .context = t, .clock = timed ? &clock : NULL};
    assert_int_equal(pl_program_run(r.program, train, &hooks, &err), PL_OK);
    assert_true(c.count > 4 && sum_of(&clock) == (timed ? ticks - 1 : 0)); /* from the first reading to the last */
    for (size_t i = 0; i < c.count && timed; i++) assert_true(clock.seconds[i] > 0);
    *bytes = r.plan->arena->bytes;
    void *copy = malloc(*bytes);
    memcpy(copy, r.memory, *bytes);
    pl_components_deinit(&c);
    tiny_run_end(&r);
    return copy;
}

static uint64_t seed;

static void changes_no_bit(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 5; k++) {
        tiny t;
        uint64_t bytes[2];
        tiny_random(&t, seed + k);
        t.update = true;
        void *without = memory_after(&t, false, &bytes[0]), *with = memory_after(&t, true, &bytes[1]);
        if (bytes[0] != bytes[1] || memcmp(without, with, bytes[0]) != 0) {
            tiny_print(&t);
            fail_msg("the clock changes what a step computes");
        }
        free(without), free(with);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_read_between_components),
        cmocka_unit_test(of_nothing_is_nothing),
        cmocka_unit_test(changes_no_bit),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
