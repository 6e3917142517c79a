/* Random processes (threads, helpers, arena, heap, stacks, huge pages, filter, address layout): planned = measured to
 * the page, no fault after "committed". `test_process SEED CASES` repeats a run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "run/arena.h"
#include "support/runner.h"
#include "support/seed.h"

static pl_philox generator;
static uint32_t drawn;

static uint64_t draw(uint64_t low, uint64_t high) /* half-open */
{
    uint32_t out[4];
    pl_philox_block(&generator, 0, 0, drawn++, out);
    return low + ((uint64_t)out[0] << 32 | out[1]) % (high - low);
}

static runner_request draw_request(void)
{
    runner_request r = runner_request_default((int)(draw(0, 4) ? draw(1, 9) : draw(9, 65)));
    r.helper_threads = (int)draw(0, 4);
    r.arena_bytes = draw(1, draw(0, 3) ? 3 << 20 : 40 << 20);
    r.huge_pages = (int)draw(0, 2);
    r.lockdown = RUNNER_EXACT && draw(0, 2) ? PL_LOCKDOWN_KILL : PL_LOCKDOWN_OFF;
    r.loops = (int)draw(1, 6);
    r.endless_stack = draw(0, 8) == 0;
    r.fixed_addresses = draw(0, 8) == 0;
    r.options.heap_bytes = PL_PAGE_BYTES * draw(100, 1500);
    r.options.main_stack_bytes = PL_PAGE_BYTES * draw(32, 400);
    r.options.thread_stack_touched_bytes = PL_PAGE_BYTES * draw(6, 40);
    r.options.thread_stack_reserved_bytes = r.options.thread_stack_touched_bytes + PL_PAGE_BYTES * draw(0, 500);
    return r;
}

/* NULL when all is as planned, else what is not. */
static const char *judge(const runner_request *r, const pl_process_planned *plan, const runner_result *got)
{
    const pl_memory_measured *m = &got->end;
    if (m->explained_bytes + m->unexplained_bytes != m->rollup_bytes) return "rows do not add up to smaps_rollup";
    if (!RUNNER_EXACT) return NULL;
    if (m->rollup_bytes != plan->resident_bytes) return "resident bytes differ";
    if (m->unexplained_bytes) return "something is unexplained";
    if (m->page_table_bytes > plan->page_table_bytes) return "page tables are above their bound";
    if (got->faults_in_loop || m->minor_faults != got->committed.minor_faults) return "a page fault after committed";
    if (m->threads != (uint32_t)(r->threads + r->helper_threads)) return "the number of threads differs";
    for (size_t i = 0; i < plan->row_count; i++) {
        const pl_memory_row *p = &plan->row[i], *q = pl_memory_find_row(m->row, m->row_count, p->kind, p->name);
        if (!q || q->resident_bytes != p->resident_bytes) return p->name;
        if (p->kind == PL_MEMORY_THREAD_STACK && q->reserved_bytes != p->reserved_bytes)
            return "reserved stacks differ";
    }
    return NULL;
}

static int run_case(uint64_t seed, int number)
{
    static runner_result got;
    static pl_process_planned plan;
    pl_error err = {0};
    runner_request r = draw_request();
    pl_process_arena arena = {"ram", pl_arena_resident_bytes(r.arena_bytes, r.huge_pages)};
    const char *wrong = "the plan fails";
    int state = 0;
    if (pl_process_plan(&r.options, r.threads, r.helper_threads, &arena, 1, &plan, &err) == PL_OK) {
        state = runner_run(&r, NULL, &got);
        wrong = state ? "the runner fails" : judge(&r, &plan, &got);
    }
    if (!wrong) return 0;
    printf("seed %" PRIu64 ", case %d: %s (planned %" PRIu64 ", measured %" PRIu64 ", status %#x, %s%s)\n"
           "  threads %d+%d arena %" PRIu64 " huge %d lockdown %d heap %" PRIu64 " main %" PRIu64 " stack %" PRIu64
           "/%" PRIu64 " endless %d fixed %d page tables %" PRIu64 "/%" PRIu64 " faults %" PRIu64 "\n",
           seed, number, wrong, plan.resident_bytes, got.end.rollup_bytes, state, err.text, got.error.text, r.threads,
           r.helper_threads, r.arena_bytes, r.huge_pages, r.lockdown, r.options.heap_bytes, r.options.main_stack_bytes,
           r.options.thread_stack_touched_bytes, r.options.thread_stack_reserved_bytes, r.endless_stack,
           r.fixed_addresses, got.end.page_table_bytes, plan.page_table_bytes, got.faults_in_loop);
    return 1;
}

int main(int argc, char **argv, char **envp)
{
    runner_main(argc, argv, envp);
    pl_error err = {0};
    if (pl_process_start(&err) != PL_OK) return 1;
    uint64_t seed = test_seed(argc, argv);
    int cases = argc > 2 ? atoi(argv[2]) : 40, failures = 0;
    printf("repeat with: %s %" PRIu64 " %d\n", argv[0], seed, cases);
    generator = pl_philox_init(seed, pl_stream_id("process"));
    for (int i = 0; i < cases; i++) failures += run_case(seed, i);
    printf("%d cases, %d failures\n", cases, failures);
    return failures != 0;
}
