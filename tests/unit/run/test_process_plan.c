/* Planned in one process, measured in another: every category must agree to the page, for 1, 2, 8, 64 and 1024 threads,
 * with and without huge pages, and nothing may fault or be unexplained. The oracle is the kernel's own count (smaps,
 * smaps_rollup). `PL_TABLE=1 test_process_plan` prints the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "run/arena.h"
#include "run/threads.h"
#include "support/runner.h"

static void print_table(const runner_request *r, const pl_process_planned *plan, const runner_result *got)
{
    if (!getenv("PL_TABLE")) return;
    const pl_memory_measured *m = &got->end;
    printf("\nthreads %d, arena %llu, huge %d (obtained %llu)\n%-16s %-22s %12s %12s %8s\n", r->threads,
           (unsigned long long)r->arena_bytes, r->huge_pages, (unsigned long long)got->arena_huge_bytes, "kind", "name",
           "planned", "measured", "diff");
    for (size_t i = 0; i < plan->row_count; i++) {
        const pl_memory_row *p = &plan->row[i];
        const pl_memory_row *q = pl_memory_find_row(m->row, m->row_count, p->kind, p->name);
        long long measured = q ? (long long)q->resident_bytes : 0;
        printf("%-16s %-22s %12llu %12lld %8lld\n", pl_memory_kind_name(p->kind), p->name,
               (unsigned long long)p->resident_bytes, measured, measured - (long long)p->resident_bytes);
    }
    for (size_t i = 0; i < m->unexplained_count; i++) {
        const pl_memory_unexplained *u = &m->unexplained[i];
        printf("unexplained %#lx-%#lx %s %s %llu\n", (unsigned long)u->begin, (unsigned long)u->end, u->protection,
               u->name, (unsigned long long)u->resident_bytes);
    }
    printf("%-39s %12llu %12llu %8lld\n", "resident (smaps_rollup)", (unsigned long long)plan->resident_bytes,
           (unsigned long long)m->rollup_bytes, (long long)m->rollup_bytes - (long long)plan->resident_bytes);
    printf("%-39s %12llu %12llu\n", "page tables (plan: bound)", (unsigned long long)plan->page_table_bytes,
           (unsigned long long)m->page_table_bytes);
    printf("VmHWM %llu, heap used %llu of %llu, faults in loop %llu, %.3f ms a region\n",
           (unsigned long long)m->peak_bytes, (unsigned long long)got->heap.used_bytes,
           (unsigned long long)got->heap.total_bytes, (unsigned long long)got->faults_in_loop,
           1e3 * got->loop_seconds / r->loops);
}

static void plan_request(const runner_request *r, pl_process_planned *plan)
{
    pl_error err = {0};
    pl_process_arena arena = {"ram", pl_arena_resident_bytes(r->arena_bytes, r->huge_pages != 0)};
    pl_status status = pl_process_plan(&r->options, r->threads, 0, &arena, 1, plan, &err);
    if (status != PL_OK) fail_msg("%s", err.text);
}

static void check_rows(const pl_process_planned *plan, const pl_memory_measured *m)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        const pl_memory_row *p = &plan->row[i];
        const pl_memory_row *q = pl_memory_find_row(m->row, m->row_count, p->kind, p->name);
        if (!q)
            fail_msg("%s '%s' was not measured", pl_memory_kind_name(p->kind), p->name);
        else if (q->resident_bytes != p->resident_bytes || q->count != p->count) {
            fail_msg("%s '%s': planned %llu in %u, measured %llu in %u", pl_memory_kind_name(p->kind), p->name,
                     (unsigned long long)p->resident_bytes, p->count, (unsigned long long)q->resident_bytes, q->count);
        }
    }
    assert_int_equal(m->row_count, plan->row_count);
    assert_int_equal(m->unexplained_bytes, 0);
    assert_int_equal(m->explained_bytes, m->rollup_bytes);
    assert_int_equal(m->rollup_bytes, plan->resident_bytes);
    assert_true(m->page_table_bytes <= plan->page_table_bytes);
    assert_true(plan->page_table_bytes - m->page_table_bytes <= (uint64_t)1 << 20);
}

static void check(runner_request r)
{
    static runner_result got;
    static pl_process_planned plan;
    plan_request(&r, &plan);
    int state = runner_run(&r, NULL, &got);
    assert_int_equal(state, 0);
    assert_int_equal(got.error.status, PL_OK);
    assert_true(got.arena_untouched_bytes >= r.arena_bytes / 2 - PL_PAGE_BYTES);
    if (!RUNNER_EXACT) return;
    print_table(&r, &plan, &got);
    check_rows(&plan, &got.committed);
    check_rows(&plan, &got.end);
    assert_int_equal(got.end.threads, r.threads);
    assert_int_equal(got.faults_in_loop, 0);
    assert_int_equal(got.end.minor_faults, got.committed.minor_faults);
    assert_int_equal(got.end.major_faults, got.committed.major_faults);
    assert_int_equal(got.lockdown.offences, 0);
}

static void test_every_category_to_the_page(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 8, 64, 1024};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        runner_request r = runner_request_default(threads[i]);
        r.options.heap_bytes += pl_align_up(pl_threads_heap_bytes(threads[i]), PL_PAGE_BYTES);
        check(r);
        r.huge_pages = 1;
        check(r);
        r.lockdown = RUNNER_EXACT ? PL_LOCKDOWN_KILL : PL_LOCKDOWN_OFF;
        r.arena_bytes += 12345;
        check(r);
    }
}

int main(int argc, char **argv, char **envp)
{
    runner_main(argc, argv, envp);
    pl_error err = {0};
    if (pl_process_start(&err) != PL_OK) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_category_to_the_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
