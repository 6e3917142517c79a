/* The heap for libraries: random requests against a list of what is given out, each block filled with a byte of its
 * own; what was given back can be had again as one. */
#include "unit/data/scratch.h"

#include "data/pages/heap.h"
#include "support/program.h"
#include "support/seed.h"

enum { BLOCKS = 64, MEMORY = 1 << 16, HEADER = 16 };

static scratch_random numbers;

typedef struct given {
    uint8_t *block;
    size_t bytes;
    uint8_t fill;
} given;

static bool is_whole(const given *g)
{
    for (size_t i = 0; i < g->bytes; i++)
        if (g->block[i] != g->fill) return false;
    return true;
}

static void fill(given *g, uint8_t *block, size_t bytes)
{
    static uint8_t next;
    *g = (given){block, bytes, ++next};
    memset(block, g->fill, bytes);
}

static size_t draw_size(void)
{
    const uint64_t kind = scratch_next(&numbers, 8);
    return kind == 0 ? 0 : kind < 6 ? scratch_next(&numbers, 200) : scratch_next(&numbers, 9000);
}

static void take(pl_page_heap *h, given *g)
{
    const size_t bytes = draw_size(), align = (size_t)1 << scratch_next(&numbers, 9);
    uint8_t *block = pl_page_heap_alloc(h, bytes, align);
    if (!block) return;
    assert_true((uintptr_t)block % align == 0 && (uintptr_t)block % 16 == 0);
    assert_true(pl_page_heap_holds(h, block));
    fill(g, block, bytes);
}

static void resize(pl_page_heap *h, given *g)
{
    const size_t bytes = draw_size(), kept = bytes < g->bytes ? bytes : g->bytes;
    uint8_t *block = pl_page_heap_resize(h, g->block, bytes);
    assert_true(is_whole(&(given){block ? block : g->block, block ? kept : g->bytes, g->fill}));
    if (block) fill(g, block, bytes);
}

static void test_random(void **state)
{
    (void)state;
    static uint8_t memory[MEMORY + 16];
    static given all[BLOCKS];
    pl_page_heap h;
    pl_page_heap_init(&h, memory + scratch_next(&numbers, 16), MEMORY);
    for (int i = 0; i < 20000; i++) {
        given *g = &all[scratch_next(&numbers, BLOCKS)];
        if (!g->block) {
            take(&h, g);
        } else if (scratch_next(&numbers, 3) == 0) {
            resize(&h, g);
        } else {
            assert_true(is_whole(g));
            pl_page_heap_free(&h, g->block);
            g->block = NULL;
        }
        assert_true(h.used <= h.peak && h.peak <= h.bytes);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (all[i].block) assert_true(is_whole(&all[i])), pl_page_heap_free(&h, all[i].block);
    assert_int_equal(h.used, 0);
    assert_non_null(pl_page_heap_alloc(&h, h.bytes - HEADER, 16)); /* one block again */
    assert_null(pl_page_heap_alloc(&h, 1, 16));
}

static void test_edges(void **state)
{
    (void)state;
    static _Alignas(16) uint8_t memory[256];
    pl_page_heap h;
    for (size_t bytes = 0; bytes < 48; bytes++) {
        pl_page_heap_init(&h, memory + 1, bytes); /* too small for anything, or for one */
        void *block = pl_page_heap_alloc(&h, 1, 16);
        assert_true((block != NULL) == (h.bytes >= 2 * HEADER));
    }
    pl_page_heap_init(&h, memory, sizeof memory);
    assert_null(pl_page_heap_alloc(&h, SIZE_MAX, 16));
    assert_null(pl_page_heap_alloc(&h, SIZE_MAX - 20, 16));
    assert_null(pl_page_heap_alloc(&h, sizeof memory, 16));
    void *first = pl_page_heap_alloc(&h, 0, 0), *second = pl_page_heap_alloc(&h, 0, 0);
    assert_true(first && second && first != second);
    assert_null(pl_page_heap_resize(&h, first, SIZE_MAX));
    assert_int_equal(h.refused, 4);
    pl_page_heap_reset(&h);
    assert_ptr_equal(pl_page_heap_alloc(&h, 10, 0), first);
    h.refuse_from = 2;
    assert_null(pl_page_heap_alloc(&h, 10, 0));
    assert_null(pl_page_heap_alloc(&h, 10, 0));
    pl_page_heap_reset(&h);
    assert_non_null(pl_page_heap_alloc(&h, 10, 0));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_edges)};
    numbers = (scratch_random){.key = pl_philox_init(test_seed_said(argc, argv), 21)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
