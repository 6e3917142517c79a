/* The heap of the runner: counted, by doing here what it will do there, in its order, under a meter (base/alloc.h).
 *
 *   what libraries ask for before the first line of ours, and the team
 *   the plan        its text is there while it is read, at the end of the heap, and leaves its place
 *   the run         config, data and settings; for a moment a parser's tree
 *   the session     the bound program, the jobs' states, the lists of tensors
 *   a checkpoint    for a moment: two headers with their trees. Counted where a training begins, too: it may be
 *                   interrupted, and what goes on must fit where it began
 *
 * What no count can know is how malloc places it all: that is LOST below, and no other figure here is a guess.
 * tests/budget (heap) holds it against real runs. */
#include "api/compiler.h"
#include "base/alloc.h"
#include "base/size.h"
#include "run/threads.h"

/* What is lost between blocks: gaps too small for what is asked for next, above all where an array grew into a new
 * place and left its old one. The runner's malloc joins all that is given back and takes the best gap
 * (base/process_exec.c, process_prepare.c), so the same requests lose the same. Some 2 % of what is counted were lost
 * in runs traced by hand, with heaps of 0.2 to 48 MB; the holes that a tokenizer's tree leaves, up to 17 % more, are
 * counted by name instead (pl_run_heap). */
enum { LOST_SHARE = 16, LOST_BYTES_MAX = 256 << 10 };
/* libgomp as it is loaded and what malloc itself begins with: 3.0 kB; and room for what another C library takes. */
enum { LIBRARIES_BYTES = 8 << 10 };
enum { STEP_BYTES = 64 << 10 }; /* so that a word more in a config is mostly the same plan */

static uint64_t with_lost(uint64_t bytes)
{
    uint64_t share = bytes / LOST_SHARE;
    return bytes + (share < LOST_BYTES_MAX ? share : LOST_BYTES_MAX);
}

static uint64_t libraries_bytes(int threads)
{
    return LIBRARIES_BYTES + pl_process_libraries_bytes() + pl_threads_heap_bytes(threads);
}

static pl_status measure_text(pl_compiler *c, const pl_plan *plan, pl_error *err)
{
    pl_str text = {0};
    pl_plan_print(plan, &text);
    c->plan_text_bytes = text.bytes;
    const bool failed = text.failed;
    pl_str_deinit(&text); /* of a deep model tens of megabytes, and only its length is asked for */
    return failed ? pl_fail(err, PL_E_NOMEM, "no memory to print the plan") : PL_OK;
}

/* Once for all candidates whose checkpoints are alike. */
static pl_status rehearse_run(pl_compiler *c, const pl_plan *plan, pl_error *err)
{
    if (c->heap.held_bytes && c->heap_tensors == c->disk.tensors) return PL_OK;
    c->heap_tensors = c->disk.tensors;
    const pl_run_rehearsal o = {c->settings.config_text, c->command, plan, &plan->identity};
    return pl_run_rehearse(&o, &c->heap, err);
}

/* For a moment, beside what is held. */
static void pass(pl_alloc_meter *m, uint64_t bytes)
{
    if (m->held_bytes + bytes > m->peak_bytes) m->peak_bytes = m->held_bytes + bytes;
}

static void hold(pl_alloc_meter *m, uint64_t bytes)
{
    pass(m, bytes);
    m->held_bytes += bytes;
}

typedef struct rehearsal {
    const pl_compiler *compiler;
    pl_alloc_meter meter;
    pl_plan *copy;
} rehearsal;

static void load(void *context)
{
    rehearsal *r = context;
    pass(&r->meter, r->compiler->heap.load_bytes);
}

static pl_status rehearse(rehearsal *r, const pl_plan *plan, pl_error *err)
{
    const pl_compiler *c = r->compiler;
    pl_alloc_meter *m = &r->meter;
    PL_TRY(pl_plan_copy_as_read(plan, &r->copy, err));
    pass(m, c->plan_text_bytes);
    pass(m, c->heap.peak_bytes);
    hold(m, c->heap.held_bytes);
    pl_session_options o = {.plan = r->copy, .settings = &c->settings.run, .data = c->data, .jobs = c->settings.jobs};
    return pl_session_rehearse(&o, load, r, err);
}

pl_status pl_compiler_find_heap(pl_compiler *c, pl_plan *plan, pl_error *err)
{
    rehearsal r = {.compiler = c};
    if (c->roughly && plan->graph->node_count <= c->heap_nodes) return plan->process.heap_bytes = c->heap_bytes, PL_OK;
    PL_TRY(measure_text(c, plan, err));
    PL_TRY(rehearse_run(c, plan, err));
    pl_alloc_set_meter(&r.meter);
    pl_status status = rehearse(&r, plan, err);
    pl_alloc_set_meter(NULL);
    pl_plan_destroy(r.copy);
    const uint64_t bytes = with_lost(r.meter.peak_bytes) + libraries_bytes(plan->team.threads);
    plan->process.heap_bytes = c->heap_bytes = pl_align_up(bytes, STEP_BYTES);
    c->heap_nodes = plan->graph->node_count;
    return status;
}

pl_status pl_compiler_find_least_heap(const pl_compiler *c, int threads, uint64_t *bytes, pl_error *err)
{
    pl_run_heap heap;
    const pl_run_rehearsal o = {c->settings.config_text, c->command, NULL, &c->data->identity};
    PL_TRY(pl_run_rehearse(&o, &heap, err));
    *bytes = pl_align_up(with_lost(heap.peak_bytes) + libraries_bytes(threads), PL_PAGE_BYTES);
    return PL_OK;
}
