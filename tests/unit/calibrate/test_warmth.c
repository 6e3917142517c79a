/* The cache that a replay follows, against a list that is searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/philox.h"
#include "calibrate/warmth.h"
#include "support/program.h"

enum { BLOCK = 64 << 10, ROOTS = 40, CACHE_BLOCKS = 33 /* 32 and the one that is begun */ };

typedef struct world {
    pl_layout layout;
    uint8_t kind[ROOTS];
    uint64_t home[ROOTS], bytes[ROOTS];
    uint64_t order[CACHE_BLOCKS]; /* the newest first */
    size_t held;
} world;

static void make_world(world *w, pl_philox *random)
{
    *w = (world){0};
    w->layout.kind = w->kind;
    w->layout.home = w->home;
    for (uint32_t i = 0; i < ROOTS; i++) {
        uint32_t bits[4];
        pl_philox_block(random, 0, 0, i, bits);
        pl_area *area = &w->layout.area[w->kind[i] = (uint8_t)(i % PL_AREA_COUNT)];
        w->bytes[i] = bits[0] % (5 * BLOCK) / 64 * 64 + 64;
        w->home[i] = area->demand_bytes;
        area->demand_bytes += w->bytes[i];
    }
}

/* Blocks are numbered apart for each area. */
static uint64_t name_of(const world *w, pl_id root, uint64_t byte)
{
    return ((uint64_t)w->kind[root] << 32) + (w->home[root] + byte) / BLOCK;
}

static size_t find(const world *w, uint64_t block)
{
    size_t i = 0;
    while (i < w->held && w->order[i] != block) i++;
    return i;
}

static void use(world *w, uint64_t block)
{
    size_t at = find(w, block);
    if (at == w->held && w->held < CACHE_BLOCKS) w->held++;
    if (at == CACHE_BLOCKS) at--;
    for (; at > 0; at--) w->order[at] = w->order[at - 1];
    w->order[0] = block;
}

typedef struct seen {
    const world *w;
    uint64_t next; /* byte that was not looked at */
} seen;

static void is_cold(void *context, pl_id root, uint64_t begin, uint64_t end)
{
    seen *s = context;
    for (; s->next < begin; s->next += 64) assert_true(find(s->w, name_of(s->w, root, s->next)) < s->w->held);
    for (; s->next < end; s->next += 64) assert_true(find(s->w, name_of(s->w, root, s->next)) == s->w->held);
}

static void look(const world *w, const pl_warmth *warmth, pl_id root, uint64_t begin, uint64_t end)
{
    seen s = {w, begin};
    pl_warmth_find_cold(warmth, root, begin, end, is_cold, &s);
    for (; s.next < end; s.next += 64) assert_true(find(w, name_of(w, root, s.next)) < w->held);
}

static void test_least_recently_used(void **state)
{
    (void)state;
    pl_philox random = pl_philox_init(20, pl_stream_id("warmth"));
    world w;
    make_world(&w, &random);
    pl_warmth warmth;
    pl_error err = {0};
    assert_int_equal(pl_warmth_init(&warmth, &w.layout, 32 * BLOCK, &err), PL_OK);
    for (uint32_t step = 0; step < 4000; step++) {
        uint32_t bits[4];
        pl_philox_block(&random, 1, 0, step, bits);
        pl_id root = bits[0] % ROOTS;
        uint64_t begin = bits[1] % w.bytes[root] / 64 * 64,
                 end = begin + 64 + bits[2] % (w.bytes[root] - begin) / 64 * 64;
        if (end > w.bytes[root]) end = w.bytes[root];
        look(&w, &warmth, root, begin, end);
        pl_warmth_touch(&warmth, root, begin, end);
        for (uint64_t at = begin; at < end; at += 64)
            if (w.held == 0 || find(&w, name_of(&w, root, at)) != 0) use(&w, name_of(&w, root, at));
        look(&w, &warmth, root, begin, end);
        assert_true(warmth.held <= CACHE_BLOCKS);
    }
    pl_warmth_deinit(&warmth);
}

static void test_what_is_left_out_pushes_out(void **state)
{
    (void)state;
    pl_philox random = pl_philox_init(21, pl_stream_id("warmth"));
    world w;
    make_world(&w, &random);
    pl_warmth warmth;
    pl_error err = {0};
    assert_int_equal(pl_warmth_init(&warmth, &w.layout, 32 * BLOCK, &err), PL_OK);
    pl_warmth_touch(&warmth, 0, 0, 64);
    use(&w, name_of(&w, 0, 0));
    for (int i = 0; i < 32; i++) {
        look(&w, &warmth, 0, 0, 64); /* in parts, and not yet all of it */
        for (int part = 0; part < 4; part++) pl_warmth_pass(&warmth, BLOCK / 4);
    }
    look(&w, &warmth, 0, 0, 64);
    pl_warmth_pass(&warmth, BLOCK);
    w.held = 0;
    look(&w, &warmth, 0, 0, 64);
    pl_warmth_deinit(&warmth);
}

static void test_large_is_coarse(void **state)
{
    (void)state;
    uint8_t kind = PL_AREA_ACTIVATION;
    uint64_t home = 0;
    pl_layout l = {.kind = &kind, .home = &home};
    l.area[PL_AREA_ACTIVATION].demand_bytes = UINT64_C(1) << 44;
    pl_warmth warmth;
    pl_error err = {0};
    assert_int_equal(pl_warmth_init(&warmth, &l, 32 << 20, &err), PL_OK);
    assert_true(warmth.block_count < 1 << 16 && warmth.cache_blocks >= 1);
    pl_warmth_touch(&warmth, 0, 0, UINT64_C(1) << 44);
    pl_warmth_deinit(&warmth);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recently_used),
        cmocka_unit_test(test_what_is_left_out_pushes_out),
        cmocka_unit_test(test_large_is_coarse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
