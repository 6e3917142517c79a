#include "run/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "run/session_impl.h"
#include "run/spaces.h"
#include "run/threads.h"

/* ---- open ---- */

/* The arena of one space, from who provides it; in a host program its heap does. */
static pl_status map_space(pl_session *s, pl_id space, pl_program_memory *memory, pl_error *err)
{
    const pl_plan *p = s->o.plan;
    const char *name = p->graph->space[space];
    const pl_space_kind *kind = pl_space_find(name);
    const uint64_t bytes = p->arena[space].bytes;
    if (!kind)
        return pl_fail(err, PL_E_UNSUPPORTED, "the plan needs the space '%s', which this program does not have", name);
    if (s->o.owners || kind->is_files) {
        pl_arena_options options = {.name = name, .huge_pages = space == PL_SPACE_RAM && p->huge_pages};
        PL_TRY(kind->map(&s->arena[space], bytes, &options, s->o.owners, err));
        *memory = (pl_program_memory){s->arena[space].base, s->arena[space].bytes};
        return PL_OK;
    }
    if (s->o.memory && space == PL_SPACE_RAM) {
        *memory = (pl_program_memory){s->o.memory, s->o.memory_bytes};
        return PL_OK;
    }
    s->host_memory[space] = pl_alloc(1, bytes + PL_PLAN_ALIGNMENT);
    if (!s->host_memory[space])
        return pl_fail(err, PL_E_NOMEM, "no memory for the arena of %llu bytes", (unsigned long long)bytes);
    *memory = (pl_program_memory){(void *)pl_align_up((uintptr_t)s->host_memory[space], PL_PLAN_ALIGNMENT), bytes};
    return PL_OK;
}

static pl_status map_memory(pl_session *s, pl_error *err)
{
    pl_program_memory memory[PL_SPACES_MAX] = {0};
    for (pl_id k = 0; k < s->o.plan->graph->space_count; k++) PL_TRY(map_space(s, k, &memory[k], err));
    return pl_program_create_in(s->o.plan, memory, &s->program, err);
}

static void unmap_memory(pl_session *s)
{
    for (pl_id k = 0; k < PL_SPACES_MAX; k++) {
        if (s->arena[k].base) pl_space_find(s->o.plan->graph->space[k])->unmap(&s->arena[k]);
        pl_free(s->host_memory[k]);
    }
}

static pl_status adopt_ring_thread(void *context, pl_error *err)
{
    pl_session *s = context;
    return s->o.owners ? pl_process_adopt_thread(&s->o.plan->process, s->o.owners, err) : PL_OK;
}

/* Between planning and this moment another command may have made the data anew. */
static pl_status check_identity(const pl_session *s, pl_error *err)
{
    const pl_facts *planned = &s->o.plan->identity, *now = &s->o.data->identity;
    for (uint32_t i = 0; i < planned->count; i++) {
        const char *name = planned->fact[i].name;
        const bool is_weights = s->o.data->weights && strcmp(name, PL_FACT_WEIGHTS) == 0;
        if (pl_facts_value(now, name, 0) != planned->fact[i].value)
            return pl_fail(err, PL_E_DATA,
                           "%s: has changed since planning: it was made anew, with another %s; start this command "
                           "again, or plan anew if you gave a lock file",
                           is_weights ? s->o.data->weights : s->o.data->path, name);
    }
    return PL_OK;
}

static pl_status open_ring(pl_session *s, pl_error *err)
{
    if (s->o.data->source || s->o.data->brought) PL_TRY(check_identity(s, err));
    if (!s->o.data->source) return PL_OK;
    PL_TRY(pl_session_check_ids(s, err));
    pl_ring_options ro = pl_session_ring_options(s->o.data->source, s->settings);
    ro.stack_bytes = s->o.plan->process.thread_stack_reserved_bytes;
    ro.thread_begins = adopt_ring_thread;
    ro.context = s;
    const pl_graph *g = s->o.plan->graph;
    void *memory = pl_session_value(s, PL_STAGING_LOADER);
    uint64_t bytes;
    PL_TRY(pl_ring_bytes(&ro, &bytes, err));
    if (!memory || pl_value_bytes(g, pl_graph_find_value(g, PL_STAGING_LOADER)) < bytes)
        return pl_fail(err, PL_E_DATA, "the plan has too little staging for %s; the file has changed, plan again",
                       s->o.data->path);
    PL_TRY(pl_ring_init(memory, &ro, &s->ring, err));
    return pl_ring_start(s->ring, err);
}

/* ---- jobs ---- */

void *pl_session_job_state(const pl_session *s, const pl_job *job)
{
    for (size_t i = 0; i < s->jobs.count; i++)
        if (s->jobs.job[i] == job) return s->job_state[i];
    return NULL;
}

pl_status pl_session_run_job(pl_session *s, const pl_job *job, pl_error *err)
{
    void *state = pl_session_job_state(s, job);
    if (!state) return pl_fail(err, PL_E_USAGE, "this plan is for another command: it lacks the programs");
    const pl_status status = job->run(s, state, err);
    return status == PL_OK ? pl_session_check_files(s, err) : status;
}

static pl_status open_jobs(pl_session *s, pl_error *err)
{
    s->jobs = s->o.jobs;
    for (size_t i = 0; i < s->jobs.count; i++) {
        const pl_job *job = s->jobs.job[i];
        s->job_state[i] = pl_alloc(1, job->state_bytes);
        if (!s->job_state[i]) return pl_fail(err, PL_E_NOMEM, "no memory for the session");
        s->jobs_begun++;
        if (job->open) PL_TRY(job->open(s, s->job_state[i], err));
    }
    return PL_OK;
}

static void close_jobs(pl_session *s)
{
    for (size_t i = s->jobs_begun; i-- > 0;) {
        if (s->jobs.job[i]->close) s->jobs.job[i]->close(s, s->job_state[i]);
        pl_free(s->job_state[i]);
    }
}

/* The program that is trained, else the one that the command runs again and again. */
static pl_status find_timed(pl_session *s, pl_error *err)
{
    const pl_job *job = s->o.jobs.count ? s->o.jobs.job[0] : NULL;
    s->timed = pl_graph_find_trained(s->o.plan->graph);
    if (s->timed == PL_NONE && job) s->timed = pl_graph_find_program(s->o.plan->graph, job->program[job->repeated]);
    s->clock = (pl_run_clock){.components = &s->components, .now = pl_run_now};
    return pl_components_create(s->o.plan->graph, s->timed, &s->components, err);
}

/* In a rehearsal, too: the heap is planned by it. */
static size_t ranges_of(const pl_session *s)
{
    return pl_memory_owners_room((size_t)s->o.plan->team.threads - 1 + pl_source_threads(s->o.data->source));
}

static pl_status create(const pl_session_options *options, pl_session **session, pl_error *err)
{
    pl_session *s = *session = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "no memory for the session");
    s->o = *options;
    if (ranges_of(s) && !(s->ranges = pl_alloc(ranges_of(s), sizeof *s->ranges)))
        return pl_fail(err, PL_E_NOMEM, "no memory for the register of threads");
    s->settings = options->settings;
    s->lock = -1;
    s->saved_step = UINT64_MAX;
    s->part_seconds = INFINITY; /* not known: watched closely */
    s->last_loss = s->last_rate = NAN;
    s->init = pl_graph_find_program(s->o.plan->graph, "init");
    if (!pl_session_has_nodes(s, s->init)) s->init = PL_NONE;
    s->words = s->settings->words;
    snprintf(s->rate_key, sizeof s->rate_key, "%.30s_per_second", s->words->items);
    return find_timed(s, err);
}

static pl_status create_threads(pl_session *s, pl_error *err)
{
    const int threads = s->o.plan->team.threads, helpers = (int)pl_source_threads(s->o.data->source);
    if (!s->o.owners) return pl_threads_probe(threads, helpers, err);
    if (s->ranges) pl_memory_owners_move(s->o.owners, s->ranges, ranges_of(s));
    return pl_threads_create(threads, helpers, &s->o.plan->process, s->o.owners, err);
}

pl_status pl_session_open(const pl_session_options *options, pl_session **session, pl_error *err)
{
    pl_session *s = NULL;
    pl_status status = PL_OK;
    PL_TRY_DONE(create(options, &s, err));
    PL_TRY_DONE(create_threads(s, err));
    PL_TRY_DONE(map_memory(s, err));
    pl_session_find_values(s);
    PL_TRY_DONE(pl_session_check_values(s, err));
    PL_TRY_DONE(open_ring(s, err));
    PL_TRY_DONE(pl_session_open_results(s, err));
    PL_TRY_DONE(open_jobs(s, err));
    PL_TRY_DONE(pl_session_open_files(s, err));
    PL_TRY_DONE(pl_session_open_weights(s, err));
    *session = s;
    return PL_OK;
done:
    pl_session_close(s);
    return status;
}

pl_status pl_session_rehearse(const pl_session_options *options, void (*opened)(void *context), void *context,
                              pl_error *err)
{
    pl_session *s = NULL;
    pl_status status = PL_OK;
    PL_TRY_DONE(create(options, &s, err));
    PL_TRY_DONE(pl_program_create_nowhere(s->o.plan, &s->program, err));
    PL_TRY_DONE(open_jobs(s, err));
    PL_TRY_DONE(pl_session_list_tensors(s, err));
    PL_TRY_DONE(pl_session_open_weights(s, err));
    opened(context);
done:
    pl_session_close(s);
    return status;
}

/* ---- commit ---- */

/* Of a program's own inputs there is nothing yet: zeros, which are ids, too. Only when its turn has come, for the
 * programs before it use the same memory. */
static void clear_inputs(pl_session *s, pl_id program)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t v = 0; v < g->value_count; v++)
        if (g->value[v].role == PL_ROLE_INPUT && g->value[v].program == program && pl_value_root(g, (pl_id)v) == v)
            memset(pl_program_address(s->program, (pl_id)v), 0, pl_value_bytes(g, (pl_id)v));
}

/* Every call of every program; that of the first values has its turn later, if at all. */
static pl_status run_everything_once(pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    for (int k = 0; k < PL_INPUT_COUNT; k++)
        if (s->input[k]) memset(s->input[k], 0, pl_dtype_bytes(pl_input_dtype((pl_input)k)));
    pl_session_set_integer(s, PL_INPUT_STEP, 1);
    pl_session_set_real(s, PL_INPUT_LOSS_SCALE, 1);
    if (s->skipped_steps) *s->skipped_steps = 0; /* no step is before the first */
    for (pl_id k = 0; k < g->region_count; k++) {
        if (g->region[k].parent != PL_NONE || k == s->init || !pl_session_has_nodes(s, k)) continue;
        clear_inputs(s, k);
        PL_TRY(pl_session_run_program(s, k, true, err));
    }
    return PL_OK;
}

/* The heap was planned too; if it had to grow, that is the one thing that would not be as planned. */
static pl_status check_heap(const pl_session *s, pl_error *err)
{
    pl_process_heap heap = pl_process_count_heap();
    uint64_t planned = s->o.plan->process.heap_bytes;
    if (heap.total_bytes <= planned) return PL_OK;
    return pl_fail(err, PL_E_MISMATCH,
                   "the heap has %llu bytes, %llu were planned; this is a fault of the planner, please report it",
                   (unsigned long long)heap.total_bytes, (unsigned long long)planned);
}

/* Without a checkpoint. */
static pl_status begin(pl_session *s, pl_error *err)
{
    const bool has_all = pl_session_begins_with_file(s->o.data);
    if ((s->init == PL_NONE || s->settings->needs_saved) && !has_all)
        return pl_fail(err, PL_E_DATA, "%s: has no checkpoint to start from; train first", s->settings->out);
    if (s->init != PL_NONE) PL_TRY(pl_session_run_program(s, s->init, true, err));
    if (!has_all) PL_TRY(pl_session_begin_from(s, err));
    PL_TRY(pl_session_take_weights(s, err));
    if (s->settings->init_from || s->settings->part_from || s->weights) pl_session_begin_at_averages(s);
    return PL_OK;
}

pl_status pl_session_commit(pl_session *s, pl_error *err)
{
    bool loaded = false;
    pl_session_tell_of_locks(s);
    PL_TRY(run_everything_once(s, err));
    if (pl_command_does(s->o.plan->command, PL_USES_WEIGHTS) && !s->settings->begins_first)
        PL_TRY(pl_session_load(s, &loaded, err));
    if (!loaded) PL_TRY(begin(s, err));
    PL_TRY(pl_session_make_known(s, err));
    if (s->o.owners) {
        PL_TRY(pl_threads_check(s->o.plan->team.threads, s->o.owners, err));
        PL_TRY(check_heap(s, err));
        pl_alloc_seal(1);
        PL_TRY(pl_lockdown_commit(s->o.lockdown, err));
    }
    s->committed_at = s->reported_at = pl_run_now();
    s->faults_at_commit = pl_process_count_faults();
    void *staging = pl_session_value(s, PL_STAGING_TRACE);
    if (s->settings->trace_path && staging)
        PL_TRY(pl_trace_open(s->settings->trace_path, staging, s->committed_at, &s->trace, err));
    s->reported_items = s->items_seen;
    const char *changes = s->changes ? s->changes : "";
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_COMMITTED, .text = changes, .text_bytes = strlen(changes)});
    return PL_OK;
}

/* A thread that ends gives its stack back to the system (madvise), which the filter of run/lockdown.h forbids: under it
 * the ring's threads wait, with their memory, for the process to end. */
static void close_ring(pl_session *s)
{
    if (!pl_lockdown_active()) pl_ring_deinit(s->ring);
}

void pl_session_close(pl_session *s)
{
    pl_error ignored;
    if (!s) return;
    if (s->o.owners) pl_alloc_seal(0);
    pl_session_close_trace(s);
    close_ring(s);
    close_jobs(s);
    (void)pl_block_file_close(s->results, &ignored); /* what counts a job has committed */
    pl_session_close_files(s);
    pl_safetensors_destroy(s->weights);
    pl_program_destroy(s->program);
    pl_components_deinit(&s->components);
    unmap_memory(s);
    if (s->ranges && s->o.owners) pl_memory_owners_move(s->o.owners, NULL, 0);
    pl_free(s->ranges);
    pl_free(s);
}

uint64_t pl_session_minor_faults(const pl_session *s)
{
    return s->steps_timed > 1 ? pl_process_count_faults().minor - s->faults_at_step_2 : 0;
}

pl_process_faults pl_session_faults(const pl_session *s)
{
    const pl_process_faults now = pl_process_count_faults();
    return (pl_process_faults){now.minor - s->faults_at_commit.minor, now.major - s->faults_at_commit.major};
}

uint64_t pl_session_items(const pl_session *s) { return s->items_seen; }

double pl_session_seconds(const pl_session *s) { return pl_run_now() - s->committed_at; }

double pl_session_step_seconds(const pl_session *s)
{
    double sorted[PL_SESSION_STEPS_KEPT];
    size_t n = s->steps_timed < PL_SESSION_STEPS_KEPT ? (size_t)s->steps_timed : PL_SESSION_STEPS_KEPT;
    if (n == 0) return 0;
    memcpy(sorted, s->step_seconds, n * sizeof *sorted);
    for (size_t i = 1; i < n; i++) /* insertion: qsort may ask for memory */
        for (size_t j = i; j > 0 && sorted[j - 1] > sorted[j]; j--) {
            double swap = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = swap;
        }
    return sorted[n / 2];
}
