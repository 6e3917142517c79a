#include "run/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "run/session_impl.h"
#include "run/spaces.h"
#include "run/threads.h"

double pl_session_epoch(const pl_session *s)
{
    uint64_t steps = s->o.data->source ? s->o.data->source->steps_per_epoch[PL_PART_TRAIN] : 0;
    return steps ? (double)s->step / (double)steps : 0;
}

size_t pl_session_find_metrics(const pl_session *s, double loss, pl_loss_metric *metric)
{
    return s->o.metrics ? s->o.metrics(loss, &s->o.plan->validation, metric) : 0;
}

static bool has_loss(const pl_event *e)
{
    return e->kind == PL_EVENT_STEP || e->kind == PL_EVENT_TICK || e->kind == PL_EVENT_EVALUATED;
}

void pl_session_tell(pl_session *s, pl_event e)
{
    pl_loss_metric metric[PL_LOSS_METRICS_MAX];
    if (!s->o.listener) return;
    e.step = s->step;
    e.steps = s->settings->steps;
    e.words = s->words;
    if (!e.items) e.items = s->items_seen;
    e.seconds = s->committed_at > 0 ? pl_run_now() - s->committed_at : 0;
    e.epoch = pl_session_epoch(s);
    e.metric = metric;
    if (has_loss(&e)) e.metrics = pl_session_find_metrics(s, e.loss, metric);
    e.is_saved = s->writes_checkpoints && s->saved_step != UINT64_MAX;
    e.saved_step = e.is_saved ? s->saved_step : 0;
    s->o.listener(s->o.context, &e);
}

void pl_session_warn(pl_session *s, const char *text)
{
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_WARNING, .text = text, .text_bytes = strlen(text)});
}

void pl_session_tick(pl_session *s, double now)
{
    if (!s->o.listener || now - s->ticked_at < PL_SESSION_TICK_SECONDS) return;
    s->ticked_at = now;
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_TICK,
                                  .loss = s->last_loss,
                                  .lr = s->last_lr,
                                  .items_per_second = s->last_rate,
                                  .part = s->part,
                                  .parts = s->parts,
                                  .validating = s->validating});
}

double pl_session_wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool pl_session_should_stop(const pl_session *s) { return s->o.stop && *s->o.stop; }

void *pl_session_value(const pl_session *s, const char *name) { return pl_program_find(s->program, name); }
void *pl_session_address(const pl_session *s, pl_id value) { return pl_program_address(s->program, value); }

/* ---- running programs ---- */

static pl_status copy_port(const pl_call_port *to, const pl_port *from, pl_error *err)
{
    if (to->dtype != from->dtype || to->bytes != from->bytes)
        return pl_fail(err, PL_E_DATA,
                       "the plan takes %llu bytes of %s as %s at once, but its config gives %llu as %s; plan again",
                       (unsigned long long)to->bytes, from->name, pl_dtype_name(to->dtype),
                       (unsigned long long)from->bytes, pl_dtype_name(from->dtype));
    memcpy(to->at, from->at, from->bytes);
    return PL_OK;
}

static pl_status load_slot(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    pl_session *s = context;
    pl_slot slot;
    (void)trips;
    pl_session_tick(s, pl_run_now());
    PL_TRY(pl_ring_next(s->ring, &slot, err));
    if (!slot.ports) return pl_fail(err, PL_E_INTERNAL, "the stream of data ended in the middle of a step");
    if (call->ports != slot.ports)
        return pl_fail(err, PL_E_DATA, "the plan takes %u values of data, but its config gives %u; plan again",
                       call->ports, slot.ports);
    for (uint32_t k = 0; k < slot.ports; k++) PL_TRY(copy_port(&call->port[k], &slot.port[k], err));
    pl_session_set_integer(s, PL_INPUT_FIRST_SAMPLE, (int64_t)slot.first_sample);
    if (call->first_sample) *call->first_sample = (int64_t)slot.first_sample;
    pl_ring_release(s->ring);
    return PL_OK;
}

static void end_part(void *context)
{
    pl_session *s = context;
    s->part++;
    pl_session_tick(s, pl_run_now());
}

/* Before commit there is no data: zeros. */
static pl_status load_nothing(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)context, (void)trips, (void)err;
    for (uint32_t k = 0; k < call->ports; k++) memset(call->port[k].at, 0, call->port[k].bytes);
    if (call->first_sample) *call->first_sample = 0;
    return PL_OK;
}

static pl_status tick_node(void *context, uint32_t node, double begin, double end, pl_error *err)
{
    (void)node, (void)begin, (void)err;
    pl_session_tick(context, end);
    return PL_OK;
}

static void close_trace(pl_session *s)
{
    pl_error why;
    char text[PL_ERROR_TEXT_BYTES];
    if (pl_trace_close(s->trace, &why) != PL_OK) {
        snprintf(text, sizeof text, "%.900s; the trace ends there", why.text);
        pl_session_warn(s, text);
    }
    s->trace = NULL;
}

void pl_session_trace(pl_session *s, const char *name, const char *category, double begin, double end)
{
    if (s->trace && !pl_trace_add(s->trace, name, category, begin, end)) close_trace(s);
}

static pl_status trace_node(void *context, uint32_t node, double begin, double end, pl_error *err)
{
    pl_session *s = context;
    const pl_node *n = &s->o.plan->graph->node[node];
    (void)err;
    pl_session_tick(s, end);
    pl_session_trace(s, pl_op_name(n->op), n->scope[0] ? n->scope : pl_phase_name(n->phase), begin, end);
    return PL_OK;
}

static pl_status watch_node(void *context, uint32_t node, double begin, double end, pl_error *err)
{
    pl_session *s = context;
    (void)begin, (void)end, (void)err;
    s->watcher(s->watcher_context, node, true);
    return PL_OK;
}

static void watch_begin(void *context, uint32_t node)
{
    pl_session *s = context;
    s->watcher(s->watcher_context, node, false);
}

void pl_session_watch(pl_session *s, pl_session_watcher *watcher, void *context)
{
    s->watcher = watcher;
    s->watcher_context = context;
}

/* A tick comes with every micro-batch and token; only where those take long, or nobody knows yet how long they take,
 * does each node read the clock for one. */
pl_status pl_session_run_program(pl_session *s, pl_id program, bool single_trip, pl_error *err)
{
    pl_program_hooks hooks = {.load = single_trip ? load_nothing : load_slot, .context = s, .single_trip = single_trip};
    if (single_trip) return pl_program_run(s->program, program, &hooks, err);
    hooks.trip = end_part;
    double began = pl_run_now();
    bool watched = s->o.listener && (s->part_seconds <= 0 || s->part_seconds >= PL_SESSION_TICK_SECONDS);
    uint64_t before = s->part;
    if (s->watcher) hooks.begins = watch_begin;
    hooks.timed = s->watcher ? watch_node : s->trace ? trace_node : watched ? tick_node : NULL;
    PL_TRY(pl_program_run(s->program, program, &hooks, err));
    double ended = pl_run_now();
    if (s->part > before) s->part_seconds = (ended - began) / (double)(s->part - before);
    pl_session_tick(s, ended);
    return PL_OK;
}

/* ---- open ---- */

static bool has_nodes(const pl_session *s, pl_id program)
{
    uint64_t first = 0, last = 0;
    if (program != PL_NONE) pl_plan_program_span(s->o.plan->graph, program, &first, &last);
    return last > 0;
}

pl_status pl_session_find_program(const pl_session *s, const char *name, pl_id *program, pl_error *err)
{
    *program = pl_graph_find_program(s->o.plan->graph, name);
    return has_nodes(s, *program) ? PL_OK : pl_fail(err, PL_E_DATA, "the plan has no program \"%s\"; plan again", name);
}

/* The arena of one space, from who provides it; in a host program its heap does. */
static pl_status map_space(pl_session *s, pl_id space, pl_program_memory *memory, pl_error *err)
{
    const pl_plan *p = s->o.plan;
    const char *name = p->graph->space[space];
    const pl_space_kind *kind = pl_space_find(name);
    const uint64_t bytes = p->arena[space].bytes;
    if (!kind)
        return pl_fail(err, PL_E_UNSUPPORTED, "the plan needs the space '%s', which this program does not have", name);
    if (s->o.owners) {
        pl_arena_options options = {.name = name, .huge_pages = space == PL_SPACE_RAM && p->huge_pages};
        PL_TRY(kind->map(&s->arena[space], bytes, &options, s->o.owners, err));
        *memory = (pl_program_memory){s->arena[space].base, s->arena[space].bytes};
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

/* Where a number lies that the session reads or writes itself; NULL when the plan has none of that name and dtype. */
static void *find_number(const pl_session *s, const char *name, pl_dtype dtype)
{
    const pl_graph *g = s->o.plan->graph;
    pl_id id = pl_graph_find_value(g, name);
    bool fits = id != PL_NONE && g->value[id].dtype == dtype && pl_shape_elems(&g->value[id].shape) == 1;
    return fits ? pl_session_value(s, name) : NULL;
}

static void find_values(pl_session *s)
{
    for (int k = 0; k < PL_INPUT_COUNT; k++)
        s->input[k] = find_number(s, pl_input_name((pl_input)k), pl_input_dtype((pl_input)k));
    s->loss_scale = find_number(s, "loss_scale", PL_DTYPE_F32);
    s->good_steps = find_number(s, "loss_scale.good_steps", PL_DTYPE_I32);
    s->skipped_steps = find_number(s, PL_SKIPPED_STEPS, PL_DTYPE_I32);
}

static bool is_known_input(const pl_session *s, pl_id value)
{
    for (int k = 0; k < PL_INPUT_COUNT; k++)
        if (s->input[k] && s->input[k] == pl_session_address(s, value)) return true;
    return false;
}

static pl_status check_values(const pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t v = 0; v < g->value_count; v++)
        if (g->value[v].role == PL_ROLE_INPUT && g->value[v].program == PL_NONE && !is_known_input(s, (pl_id)v))
            return pl_fail(err, PL_E_DATA, "this program did not make the plan: nothing writes the input %.100s",
                           g->value[v].name);
    bool scale = (s->loss_scale != NULL) == (s->good_steps != NULL) && (!s->loss_scale || s->skipped_steps);
    return scale ? PL_OK : pl_fail(err, PL_E_DATA, "this program did not make the plan: a state is missing");
}

pl_status pl_session_find_loss(const pl_session *s, pl_id program, const double **loss, pl_error *err)
{
    pl_id sum = pl_graph_find_loss(s->o.plan->graph, program);
    if (sum == PL_NONE)
        return pl_fail(err, PL_E_DATA, "the program \"%s\" of the plan has no loss; plan again",
                       s->o.plan->graph->region[program].name);
    *loss = pl_session_address(s, sum);
    return PL_OK;
}

void pl_session_set_real(pl_session *s, pl_input input, float value)
{
    if (s->input[input]) *(float *)s->input[input] = value;
}

void pl_session_set_integer(pl_session *s, pl_input input, int64_t value)
{
    if (s->input[input]) *(int64_t *)s->input[input] = value;
}

void pl_session_set_step(pl_session *s, uint64_t step, uint64_t counted)
{
    pl_session_set_integer(s, PL_INPUT_STEP, (int64_t)step + 1);
    pl_session_set_real(s, PL_INPUT_ITEM_SCALE, counted ? 1.0f / (float)counted : 0);
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
    for (uint32_t i = 0; i < planned->count; i++)
        if (pl_facts_value(now, planned->fact[i].name, 0) != planned->fact[i].value)
            return pl_fail(err, PL_E_DATA,
                           "%s: has changed since planning: another command made it anew, with another %s; start this "
                           "one again, or plan anew if you gave a lock file",
                           s->o.data->path, planned->fact[i].name);
    return PL_OK;
}

/* Nothing checks ids one by one: the source says what they are below, the graph what they must be below. */
static pl_status check_ids(const pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    pl_source_layout l;
    int64_t below;
    PL_TRY(s->o.data->source->kind->describe(s->o.data->source, s->settings->micro_batch, &l, err));
    for (size_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < l.ports && g->node[i].op == PL_OP_LOAD; k++) {
            if (g->node[i].out[k] == PL_NONE || !pl_graph_find_id_limit(g, g->node[i].out[k], &below)) continue;
            if (l.port[k].below > 0 && l.port[k].below <= below) continue;
            return pl_fail(err, PL_E_DATA, "%s: holds %s up to %lld, but the plan has rows for %lld; plan again",
                           s->o.data->path, l.port[k].name, (long long)l.port[k].below - 1, (long long)below);
        }
    return PL_OK;
}

static pl_status open_ring(pl_session *s, pl_error *err)
{
    if (!s->o.data->source) return PL_OK;
    PL_TRY(check_identity(s, err));
    PL_TRY(check_ids(s, err));
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
    return job->run(s, state, err);
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

pl_status pl_session_open(const pl_session_options *options, pl_session **session, pl_error *err)
{
    pl_status status = PL_OK;
    pl_session *s = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "no memory for the session");
    s->o = *options;
    s->settings = options->settings;
    s->lock = -1;
    s->saved_step = UINT64_MAX;
    s->part_seconds = INFINITY; /* not known: watched closely */
    s->last_loss = s->last_rate = NAN;
    s->init = pl_graph_find_program(s->o.plan->graph, "init");
    if (!has_nodes(s, s->init)) s->init = PL_NONE;
    s->words = s->settings->words;
    snprintf(s->rate_key, sizeof s->rate_key, "%.30s_per_second", s->words->items);
    int threads = s->o.plan->team.threads;
    PL_TRY_DONE(s->o.owners ? pl_threads_create(threads, &s->o.plan->process, s->o.owners, err)
                            : pl_threads_probe(threads, err));
    PL_TRY_DONE(map_memory(s, err));
    find_values(s);
    PL_TRY_DONE(check_values(s, err));
    PL_TRY_DONE(open_ring(s, err));
    PL_TRY_DONE(open_jobs(s, err));
    PL_TRY_DONE(pl_session_open_files(s, err));
    *session = s;
    return PL_OK;
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
        if (g->region[k].parent != PL_NONE || k == s->init || !has_nodes(s, k)) continue;
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

pl_status pl_session_commit(pl_session *s, pl_error *err)
{
    bool loaded = false;
    PL_TRY(run_everything_once(s, err));
    PL_TRY(pl_session_load(s, &loaded, err));
    if (!loaded && s->init == PL_NONE)
        return pl_fail(err, PL_E_DATA, "%s: has no checkpoint to start from; train first", s->settings->out);
    if (!loaded) PL_TRY(pl_session_run_program(s, s->init, true, err));
    if (s->o.owners) {
        PL_TRY(pl_threads_check(s->o.plan->team.threads, s->o.owners, err));
        PL_TRY(check_heap(s, err));
        pl_alloc_seal(1);
        PL_TRY(pl_lockdown_commit(s->o.lockdown, err));
    }
    s->committed_at = s->reported_at = pl_run_now();
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
    if (!s) return;
    if (s->o.owners) pl_alloc_seal(0);
    close_trace(s);
    close_ring(s);
    close_jobs(s);
    pl_session_close_files(s);
    pl_program_destroy(s->program);
    unmap_memory(s);
    pl_free(s);
}

uint64_t pl_session_minor_faults(const pl_session *s)
{
    return s->steps_timed > 1 ? pl_process_count_faults().minor - s->faults_at_step_2 : 0;
}

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
