/* Planning and measuring inside one process: who owns an address, mappings with several owners, sums. The oracle is
 * what was touched here, page by page, and smaps_rollup. Whole processes are compared in unit/run/test_process_plan.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/process.h"
#include "base/process_image.h"
#include "support/program.h"

static pl_memory_owners owners;
static pl_memory_measured measured;
static pl_error err;

static int reset(void **state)
{
    (void)state;
    memset(&owners, 0, sizeof owners);
    memset(&err, 0, sizeof err);
    return 0;
}

static const pl_memory_row *row(pl_memory_kind kind, const char *name)
{
    return pl_memory_find_row(measured.row, measured.row_count, kind, name);
}

/* Mappings and their sum are read one after the other. On a machine with little memory left the kernel takes pages of
 * programs and libraries in between, and they come back when they are needed; what is lost is so each time. */
static void measure_at_rest(void)
{
    for (int tries = 0; tries < 50; tries++) {
        assert_int_equal(pl_memory_measure(&owners, &measured, &err), PL_OK);
        if (measured.explained_bytes + measured.unexplained_bytes == measured.rollup_bytes) return;
    }
}

static void test_owners_stay_sorted_and_apart(void **state)
{
    (void)state;
    unsigned seed = 20240607;
    for (int i = 0; i < PL_MEMORY_RANGES_OWN; i++) {
        uintptr_t slot;
        do {
            seed = seed * 1664525u + 1013904223u;
            slot = 1 + (seed >> 8) % 4096;
        } while (pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "a", (void *)(slot * 0x10000), 0x10000, &err) != PL_OK);
        for (size_t k = 1; k < owners.count; k++) assert_true(owners.range[k - 1].end <= owners.range[k].begin);
    }
    assert_int_equal(owners.count, PL_MEMORY_RANGES_OWN);
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "b", (void *)0x50000000, 1, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "256"));
    for (size_t left = owners.count; left; left--)
        pl_memory_owners_remove(&owners, (void *)owners.range[left / 2].begin);
    assert_int_equal(owners.count, 0);
    pl_memory_owners_remove(&owners, (void *)1);
}

static void test_overlaps_are_refused(void **state)
{
    (void)state;
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "a", (void *)0x10000, 0x1000, &err), PL_OK);
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "b", (void *)0x10fff, 1, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "'b'"));
    assert_non_null(strstr(err.text, "'a'"));
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "b", (void *)0xf000, 0x1001, &err), PL_E_INTERNAL);
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "b", (void *)0xf000, 0x1000, &err), PL_OK);
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "c", (void *)0x11000, 0, &err), PL_E_INTERNAL);
    assert_int_equal(pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "c", (void *)0x11000, UINT64_MAX, &err),
                     PL_E_INTERNAL);
}

/* One mapping of 64 pages: pages 4…15 are a's, 32…47 b's, the rest nobody's; every third page is touched. */
static void test_a_mapping_with_several_owners(void **state)
{
    (void)state;
    enum { PAGES = 64 };
    size_t length = PAGES * PL_PAGE_BYTES;
    char *guarded = mmap(NULL, length + 2 * PL_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(guarded, MAP_FAILED);
    char *p = guarded + PL_PAGE_BYTES;
    assert_int_equal(mprotect(p, length, PROT_READ | PROT_WRITE), 0);
    (void)madvise(p, length, MADV_NOHUGEPAGE);
    uint64_t a = 0, b = 0;
    for (int i = 0; i < PAGES; i += 3) {
        p[i * PL_PAGE_BYTES] = 1;
        if (i >= 4 && i < 16) a += PL_PAGE_BYTES;
        if (i >= 32 && i < 48) b += PL_PAGE_BYTES;
    }
    pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "a", p + 4 * PL_PAGE_BYTES, 12 * PL_PAGE_BYTES, &err);
    pl_memory_owners_add(&owners, PL_MEMORY_ARENA, "b", p + 32 * PL_PAGE_BYTES, 16 * PL_PAGE_BYTES, &err);
    measure_at_rest();
    assert_int_equal(row(PL_MEMORY_ARENA, "a")->resident_bytes, a);
    assert_int_equal(row(PL_MEMORY_ARENA, "b")->resident_bytes, b);
    assert_int_equal(row(PL_MEMORY_ARENA, "b")->reserved_bytes, 16 * PL_PAGE_BYTES);
    assert_int_equal(row(PL_MEMORY_ARENA, "b")->anonymous_bytes, b);
    assert_int_equal(measured.explained_bytes, a + b);
    assert_int_equal(measured.explained_bytes + measured.unexplained_bytes, measured.rollup_bytes);
    munmap(guarded, length + 2 * PL_PAGE_BYTES);
}

/* All of this process without any owner is unexplained, and it is all there is. */
static void test_nothing_is_lost(void **state)
{
    (void)state;
    measure_at_rest();
    assert_int_equal(measured.explained_bytes, 0);
    assert_int_equal(measured.unexplained_bytes, measured.rollup_bytes);
    assert_true(measured.unexplained_count > 4);
    assert_true(measured.threads >= 1 && measured.page_table_bytes > 0 && measured.peak_bytes > 0);
}

static void *adopt(void *context)
{
    pl_process_options o = pl_process_options_default();
    *(pl_status *)context = pl_process_adopt_thread(&o, &owners, NULL);
    pl_memory_measure(&owners, &measured, NULL);
    return NULL;
}

static void test_a_thread_is_adopted(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    pl_status status = PL_E_INTERNAL;
    pl_process_options o = pl_process_options_default();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, o.thread_stack_reserved_bytes);
    assert_int_equal(pthread_create(&thread, &attributes, adopt, &status), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_int_equal(status, PL_OK);
    const pl_memory_row *stack = row(PL_MEMORY_THREAD_STACK, NULL);
    assert_non_null(stack);
    assert_int_equal(stack->count, 1);
    assert_true(stack->resident_bytes >= o.thread_stack_touched_bytes);
#if !defined(__SANITIZE_ADDRESS__)
    assert_int_equal(stack->resident_bytes, o.thread_stack_touched_bytes);
    assert_int_equal(stack->reserved_bytes, o.thread_stack_reserved_bytes);
#endif
}

static void test_plan_adds_up(void **state)
{
    (void)state;
    static pl_process_planned one, many;
    pl_process_options o = pl_process_options_default();
    pl_process_arena arenas[] = {{"ram", 40 << 20}, {"staging", 1 << 20}};
    assert_int_equal(pl_process_plan(&o, 1, 0, arenas, 2, &one, &err), PL_OK);
    assert_int_equal(pl_process_plan(&o, 8, 2, arenas, 2, &many, &err), PL_OK);
    uint64_t sum = 0;
    for (size_t i = 0; i < many.row_count; i++) sum += many.row[i].resident_bytes;
    assert_int_equal(sum, many.resident_bytes);
    assert_int_equal(many.resident_bytes - one.resident_bytes, 9 * o.thread_stack_touched_bytes);
    assert_int_equal(many.charged_bytes, many.resident_bytes + many.page_table_bytes + many.kernel_bytes);
    assert_int_equal(many.kernel_bytes - one.kernel_bytes, 9 * pl_process_thread_kernel_bytes());
    assert_int_equal(pl_memory_find_row(many.row, many.row_count, PL_MEMORY_ARENA, "staging")->resident_bytes, 1 << 20);
    assert_non_null(pl_memory_find_row(many.row, many.row_count, PL_MEMORY_PROGRAM, "unit_base"));
    assert_non_null(pl_memory_find_row(many.row, many.row_count, PL_MEMORY_LIBRARY, "libc.so.6"));
}

/* What a process loads on its way (a module of HDF5 while it prepares data) is not in the runner. */
static void test_later_libraries_are_not_planned(void **state)
{
    (void)state;
    const pl_process_options o = pl_process_options_default();
    pl_process_planned before, after;
    pl_image now, start;
    assert_int_equal(pl_process_plan(&o, 2, 1, NULL, 0, &before, &err), PL_OK);
    void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW); /* the C library brings it, and nothing needs it */
    if (!library) skip();
    assert_int_equal(pl_image_read(&now, &err), PL_OK);
    assert_int_equal(pl_image_read_start(&start, &err), PL_OK);
    assert_true(now.module_count > start.module_count);
    assert_int_equal(pl_process_plan(&o, 2, 1, NULL, 0, &after, &err), PL_OK);
    assert_int_equal(after.row_count, before.row_count);
    assert_memory_equal(after.row, before.row, before.row_count * sizeof *before.row);
    dlclose(library);
}

static void test_bad_options(void **state)
{
    (void)state;
    static pl_process_planned plan;
    pl_process_options good = pl_process_options_default(), o = good;
    assert_int_equal(pl_process_plan(&good, 0, 0, NULL, 0, &plan, &err), PL_E_USAGE);
    assert_int_equal(pl_process_plan(&good, 1025, 1024, NULL, 0, &plan, &err), PL_E_USAGE);
    assert_int_equal(pl_process_plan(&good, 1, -1, NULL, 0, &plan, &err), PL_E_USAGE);
    o.heap_bytes = 1000;
    assert_int_equal(pl_process_plan(&o, 1, 0, NULL, 0, &plan, &err), PL_E_USAGE);
    o = good;
    o.thread_stack_touched_bytes = o.thread_stack_reserved_bytes + PL_PAGE_BYTES;
    assert_int_equal(pl_process_plan(&o, 1, 0, NULL, 0, &plan, &err), PL_E_USAGE);
    assert_non_null(strstr(err.text, "touched"));
    pl_process_arena huge[] = {{"a", UINT64_MAX - 5000}, {"b", 8192}};
    assert_int_equal(pl_process_plan(&good, 1, 0, huge, 2, &plan, &err), PL_E_BUDGET);
    static pl_process_arena many[PL_MEMORY_ROWS_MAX];
    for (int i = 0; i < PL_MEMORY_ROWS_MAX; i++) many[i] = (pl_process_arena){"x", 4096};
    assert_int_equal(pl_process_plan(&good, 1, 0, many, PL_MEMORY_ROWS_MAX, &plan, &err), PL_E_INTERNAL);
}

/* Against counting: the tables a mapping meets, for every place it can have inside of a 2 MiB region. */
static void test_page_tables_are_a_bound(void **state)
{
    (void)state;
    assert_int_equal(pl_process_page_table_bytes(0), 0);
    for (uint64_t pages = 1; pages < 3000; pages += 7) {
        uint64_t most = 0;
        for (uint64_t first = 0; first < 512; first++) {
            uint64_t tables = (first + pages - 1) / 512 + 1;
            if (tables > most) most = tables;
        }
        uint64_t planned = pl_process_page_table_bytes(pages * PL_PAGE_BYTES) / PL_PAGE_BYTES;
        assert_true(planned >= most && planned <= most + 1);
    }
}

/* Of [1, 9) pages what is not in [2, 3), [5, 6) and [8, 12). */
static void test_what_is_left_out_is_cut_out(void **state)
{
    (void)state;
    static const pl_left_out out = {3, {{2, 3, 0}, {5, 6, 0}, {8, 12, 0}}};
    static const uintptr_t held[][2] = {{1, 2}, {3, 5}, {6, 8}};
    uintptr_t begin = 1, end = 9;
    for (size_t i = 0; i < 3; i++, begin = end, end = 9) {
        assert_true(pl_image_next_held(&out, &begin, &end));
        assert_int_equal(begin, held[i][0]);
        assert_int_equal(end, held[i][1]);
    }
    assert_false(pl_image_next_held(&out, &begin, &end));
    begin = 9, end = 11;
    assert_false(pl_image_next_held(&out, &begin, &end));
    begin = 12, end = 20;
    assert_true(pl_image_next_held(&out, &begin, &end));
    assert_int_equal(begin, 12);
    assert_int_equal(end, 20);
}

static void test_parts_have_names(void **state)
{
    (void)state;
    char names[PL_PARTS_NAMES_BYTES];
    pl_parts held;
    for (pl_parts parts = 1; parts <= PL_PARTS_ALL; parts++) {
        pl_parts_print(parts, names);
        assert_true(strlen(names) + 1 < sizeof names);
        assert_int_equal(pl_parts_parse(names, &held), 0);
        assert_int_equal(held, parts);
    }
    assert_int_equal(pl_parts_parse("avx2,avx", &held), -1);
    assert_int_equal(pl_parts_parse("avx2,,ref", &held), -1);
    assert_int_equal(pl_parts_of_isa(PL_ISA_AVX2), PL_PART(avx2));
}

PL_TEST_PROGRAM(argc, argv)
{
    if (pl_process_start(&err) != PL_OK) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_owners_stay_sorted_and_apart, reset),
        cmocka_unit_test_setup(test_overlaps_are_refused, reset),
        cmocka_unit_test_setup(test_a_mapping_with_several_owners, reset),
        cmocka_unit_test_setup(test_nothing_is_lost, reset),
        cmocka_unit_test_setup(test_a_thread_is_adopted, reset),
        cmocka_unit_test_setup(test_plan_adds_up, reset),
        cmocka_unit_test_setup(test_later_libraries_are_not_planned, reset),
        cmocka_unit_test_setup(test_bad_options, reset),
        cmocka_unit_test_setup(test_page_tables_are_a_bound, reset),
        cmocka_unit_test_setup(test_what_is_left_out_is_cut_out, reset),
        cmocka_unit_test_setup(test_parts_have_names, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
