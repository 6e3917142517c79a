/* The ring with a source whose every number is known: whatever the threads do (they dawdle at random), `next` gives
 * each slot once, in order, whole; streams follow one another at any moment; failures come up in their place. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "stream/ring.h"
#include "support/program.h"
#include "support/seed.h"

enum { BATCH = 7, MICRO = 3, MICROS = 3, NEVER = -1 };

typedef struct toy {
    pl_source source;           /* first */
    int64_t fail_from, fail_to; /* slots, counted over the steps, that fail */
    int64_t end_at;             /* the slot whose fill ends its thread */
    atomic_uint at_once, most_at_once;
} toy;

static pl_error err;
static uint64_t seed;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t number_of(pl_part part, uint64_t sample, uint64_t k) { return mix(mix(sample * 2 + part) + k); }

/* Two ports: three numbers a sample, and a byte a sample. */
static pl_status describe(const pl_source *s, uint32_t micro_batch, pl_source_layout *l, pl_error *e)
{
    (void)s;
    if (micro_batch > 1000) return pl_fail(e, PL_E_CONFIG, "more than 1000");
    *l = (pl_source_layout){
        .port = {{"numbers", PL_DTYPE_I64, micro_batch * 24, 0, NULL}, {"bytes", PL_DTYPE_U8, micro_batch, 0, NULL}},
        .ports = 2,
        .scratch_bytes = 8};
    return PL_OK;
}

static void prepare(const pl_source *s, void *scratch)
{
    (void)s;
    assert_int_equal(*(uint64_t *)scratch, 0);
    *(uint64_t *)scratch = 41;
}

static void dawdle(uint64_t x)
{
    struct timespec t = {0, (long)(mix(x ^ seed) % 200000)};
    if (x % 3 == 0) nanosleep(&t, NULL);
}

static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *e)
{
    toy *t = (toy *)(uintptr_t)source;
    unsigned together = atomic_fetch_add(&t->at_once, 1) + 1, most = atomic_load(&t->most_at_once);
    while (together > most && !atomic_compare_exchange_weak(&t->most_at_once, &most, together)) {
    }
    int64_t number = (int64_t)(slot->step * MICROS + slot->micro);
    bool fails = number >= t->fail_from && number < t->fail_to;
    uint64_t *numbers = slot->port[0].at;
    uint8_t *bytes = slot->port[1].at;
    for (uint32_t row = 0; row < slot->rows && !fails; row++) {
        uint64_t sample = slot->first_sample + row;
        for (uint64_t k = 0; k < 3; k++) numbers[row * 3 + k] = number_of(slot->part, sample, k);
        if (row == 1) dawdle(sample);
        bytes[row] = (uint8_t)number_of(slot->part, sample, 3);
        slot->counted++;
    }
    atomic_fetch_sub(&t->at_once, 1);
    if (number == t->end_at) pthread_exit(NULL);
    if (*(uint64_t *)scratch != 41) return pl_fail(e, PL_E_INTERNAL, "the scratch is another thread's");
    return fails ? pl_fail(e, PL_E_DATA, "slot %lld is no good", (long long)number) : PL_OK;
}

static uint64_t count(const pl_source *s, pl_part part, uint64_t step)
{
    return (void)s, (void)part, (void)step, BATCH;
}

static const pl_source_kind kind = {
    .name = "toy", .describe = describe, .prepare = prepare, .fill = fill, .count = count};

static toy make_toy(void)
{
    return (toy){.source = {.kind = &kind, .batch = BATCH, .steps_per_epoch = {100, 10}},
                 .fail_from = NEVER,
                 .fail_to = NEVER,
                 .end_at = NEVER};
}

static pl_ring_options options_of(const toy *t, uint32_t slots, uint32_t threads)
{
    return (pl_ring_options){
        .source = &t->source, .micro_batch = MICRO, .slots = slots, .threads = threads, .stack_bytes = 65536};
}

static pl_ring *make_ring(const pl_ring_options *o, void **memory)
{
    pl_ring *r;
    uint64_t bytes;
    assert_int_equal(pl_ring_bytes(o, &bytes, &err), PL_OK);
    *memory = aligned_alloc(64, bytes);
    memset(*memory, 0xA5, bytes);
    assert_int_equal(pl_ring_init(*memory, o, &r, &err), PL_OK);
    if (pl_ring_start(r, &err) != PL_OK) fail_msg("%s", err.text);
    return r;
}

static void check_slot(const pl_slot *s, pl_part part, uint64_t step, uint32_t micro)
{
    const uint64_t *numbers = s->port[0].at;
    const uint8_t *bytes = s->port[1].at;
    assert_int_equal(s->ports, 2);
    assert_int_equal((uintptr_t)s->port[1].at % 64, 0);
    assert_int_equal(s->step, step);
    assert_int_equal(s->micro, micro);
    assert_int_equal(s->micro_count, MICROS);
    assert_int_equal(s->first_sample, step * BATCH + micro * MICRO);
    assert_int_equal(s->counted, MICRO);
    for (uint64_t row = 0; row < MICRO; row++) {
        for (uint64_t k = 0; k < 3; k++)
            assert_int_equal(numbers[row * 3 + k], number_of(part, s->first_sample + row, k));
        assert_int_equal(bytes[row], (uint8_t)number_of(part, s->first_sample + row, 3));
    }
}

/* `slots` of a stream that has more, or all of it and its end. */
static void check_stream(pl_ring *r, pl_part part, uint64_t first, uint64_t end, uint64_t slots)
{
    pl_slot s;
    pl_ring_begin(r, part, first, end);
    uint64_t all = (end - first) * MICROS;
    for (uint64_t i = 0; i < slots && i < all; i++) {
        assert_int_equal(pl_ring_next(r, &s, &err), PL_OK);
        check_slot(&s, part, first + i / MICROS, (uint32_t)(i % MICROS));
        pl_ring_release(r);
    }
    if (slots < all) return;
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(pl_ring_next(r, &s, &err), PL_OK);
        assert_int_equal(s.ports, 0);
    }
}

static void test_streams(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++)
        for (uint32_t slots = 1; slots <= 5; slots++) {
            void *memory;
            toy t = make_toy();
            pl_ring_options o = options_of(&t, slots, threads);
            pl_ring *r = make_ring(&o, &memory);
            check_stream(r, PL_PART_TRAIN, 0, 12, UINT64_MAX);
            check_stream(r, PL_PART_VALIDATION, 3, 4, UINT64_MAX);
            check_stream(r, PL_PART_TRAIN, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 3, UINT64_MAX);
            check_stream(r, PL_PART_TRAIN, 9, 9, UINT64_MAX);
            for (uint64_t i = 0; i < 40; i++) /* the old stream still fills and has slots ready */
                check_stream(r, i % 2, i, i + 50, mix(seed + i) % 8);
            assert_true(atomic_load(&t.most_at_once) <= (threads < slots ? threads : slots));
            pl_ring_deinit(r); /* with work under way */
            free(memory);
        }
}

/* Several slots fail: the first of them is where the stream ends, whichever thread is first. */
static void test_failures_in_their_place(void **state)
{
    (void)state;
    for (int64_t fail = 0; fail < 9; fail++) {
        void *memory;
        pl_slot s;
        toy t = make_toy();
        char expected[64];
        t.fail_from = fail, t.fail_to = fail + 3;
        pl_ring_options o = options_of(&t, 4, 3);
        pl_ring *r = make_ring(&o, &memory);
        pl_ring_begin(r, PL_PART_TRAIN, 0, 100);
        for (int64_t i = 0; i < fail; i++) {
            assert_int_equal(pl_ring_next(r, &s, &err), PL_OK);
            check_slot(&s, PL_PART_TRAIN, (uint64_t)i / MICROS, (uint32_t)(i % MICROS));
            pl_ring_release(r);
        }
        snprintf(expected, sizeof expected, "slot %lld is no good", (long long)fail);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(pl_ring_next(r, &s, &err), PL_E_DATA);
            assert_string_equal(err.text, expected);
        }
        pl_ring_begin(r, PL_PART_TRAIN, 0, 0); /* nobody fills */
        t.fail_from = NEVER, t.fail_to = NEVER;
        check_stream(r, PL_PART_TRAIN, 0, 4, UINT64_MAX); /* a new stream starts clean */
        pl_ring_deinit(r);
        free(memory);
    }
}

/* The failure comes up in the place of the slot that a thread did not live to fill; the others go on with the next
 * stream, until none is left. */
static void test_threads_that_end(void **state)
{
    (void)state;
    void *memory;
    pl_slot s;
    toy t = make_toy();
    pl_ring_options o = options_of(&t, 4, 3);
    pl_ring *r = make_ring(&o, &memory);
    for (uint64_t left = o.threads; left > 0; left--) {
        pl_ring_begin(r, PL_PART_TRAIN, 0, 0); /* nobody fills */
        t.end_at = NEVER;
        check_stream(r, PL_PART_VALIDATION, left, left + 4, UINT64_MAX);
        t.end_at = (int64_t)(mix(seed + left) % 20);
        check_stream(r, PL_PART_TRAIN, 0, 20, (uint64_t)t.end_at);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(pl_ring_next(r, &s, &err), PL_E_INTERNAL);
            assert_string_equal(err.text, "a thread that reads the toy has ended; start again");
        }
    }
    pl_ring_begin(r, PL_PART_TRAIN, 0, 100);
    assert_int_equal(pl_ring_next(r, &s, &err), PL_E_INTERNAL);
    pl_ring_begin(r, PL_PART_TRAIN, 5, 5); /* nothing is wanted of them */
    assert_int_equal(pl_ring_next(r, &s, &err), PL_OK);
    assert_int_equal(s.ports, 0);
    pl_ring_deinit(r);
    free(memory);
}

static void test_refusals(void **state)
{
    (void)state;
    uint64_t bytes;
    void *memory;
    pl_ring *r;
    toy t = make_toy();
    pl_ring_options o = options_of(&t, 0, 1);
    assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_E_CONFIG);
    o = options_of(&t, 1, 0);
    assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_E_CONFIG);
    o = options_of(&t, 2, 1), o.micro_batch = 1001;
    assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "more than 1000");
    o = options_of(&t, 2, 2), o.stack_bytes = 100;
    assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_OK);
    memory = aligned_alloc(64, bytes);
    assert_int_equal(pl_ring_init(memory, &o, &r, &err), PL_OK);
    assert_int_equal(pl_ring_start(r, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "stack of 100 bytes"));
    pl_ring_deinit(r);
    pl_ring_deinit(NULL);
    free(memory);
}

static pl_status begin_or_fail(void *context, pl_error *e)
{
    int *left = context;
    return (*left)-- > 0 ? PL_OK : pl_fail(e, PL_E_INTERNAL, "one thread too many");
}

/* Each thread's first act is the caller's, one at a time; a failure is that of start. */
static void test_threads_begin(void **state)
{
    (void)state;
    for (int allowed = 0; allowed <= 3; allowed++) {
        int left = allowed;
        void *memory;
        uint64_t bytes;
        pl_ring *r;
        toy t = make_toy();
        pl_ring_options o = options_of(&t, 2, 3);
        o.thread_begins = begin_or_fail, o.context = &left;
        assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_OK);
        memory = aligned_alloc(64, bytes);
        assert_int_equal(pl_ring_init(memory, &o, &r, &err), PL_OK);
        assert_int_equal(pl_ring_start(r, &err), allowed == 3 ? PL_OK : PL_E_INTERNAL);
        if (allowed == 3) check_stream(r, PL_PART_TRAIN, 0, 5, UINT64_MAX);
        pl_ring_deinit(r);
        free(memory);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),          cmocka_unit_test(test_failures_in_their_place),
        cmocka_unit_test(test_threads_that_end), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_threads_begin),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
