#include "run/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "ir/facts.h"
#include "ir/op.h"
#include "run/session_impl.h"
#include "run/spaces.h"
#include "run/threads.h"

void pl_session_tell(pl_session *s, pl_event e)
{
    if (!s->o.listener) return;
    e.step = s->step;
    e.steps = s->settings->steps;
    e.tokens = s->tokens_seen;
    e.seconds = s->committed_at > 0 ? pl_run_now() - s->committed_at : 0;
    if (s->source) e.epoch = (double)s->step / (double)s->source->steps_per_epoch[PL_PART_TRAIN];
    e.is_saved = s->writes_checkpoints && s->saved_step != UINT64_MAX;
    e.saved_step = e.is_saved ? s->saved_step : 0;
    if (s->o.plan->validation_tokens)
        e.bytes_per_token = (double)s->o.plan->validation_bytes / (double)s->o.plan->validation_tokens;
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
                                  .tokens_per_second = s->last_rate,
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
                       "the plan takes %llu bytes of %s as %s at once, its config gives %llu as %s; plan again",
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
        return pl_fail(err, PL_E_DATA, "the plan takes %u values of data, its config gives %u; plan again", call->ports,
                       slot.ports);
    for (uint32_t k = 0; k < slot.ports; k++) PL_TRY(copy_port(&call->port[k], &slot.port[k], err));
    *s->first_sample = (int64_t)slot.first_sample;
    if (call->first_sample) *call->first_sample = *s->first_sample;
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

static void find_programs(pl_session *s)
{
    const pl_graph *g = s->o.plan->graph;
    const char *const names[] = {"init", "train", "evaluate", "generate"};
    pl_id *const ids[] = {&s->init, &s->train, &s->evaluate, &s->generate};
    for (int i = 0; i < 4; i++) {
        uint64_t first = 0, last = 0;
        *ids[i] = pl_graph_find_program(g, names[i]);
        if (*ids[i] != PL_NONE) pl_plan_program_span(g, *ids[i], &first, &last);
        if (last == 0) *ids[i] = PL_NONE;
    }
}

/* The arena of one space, from who provides it; in a host program its heap does. */
static pl_status map_space(pl_session *s, pl_id space, pl_program_memory *memory, pl_error *err)
{
    const pl_plan *p = s->o.plan;
    const char *name = p->graph->space[space];
    const pl_space_kind *kind = pl_space_find(name);
    const uint64_t bytes = p->arena[space].bytes;
    if (!kind) return pl_fail(err, PL_E_UNSUPPORTED, "the plan needs the space '%s', which this program has not", name);
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

static double *find_loss(const pl_session *s, pl_id program)
{
    pl_id loss = program == PL_NONE ? PL_NONE : pl_graph_find_loss(s->o.plan->graph, program);
    return loss == PL_NONE ? NULL : pl_session_address(s, loss);
}

static void find_values(pl_session *s)
{
    s->lr = find_number(s, "input.lr", PL_DTYPE_F32);
    s->step_input = find_number(s, "input.step", PL_DTYPE_I64);
    s->token_scale = find_number(s, "input.token_scale", PL_DTYPE_F32);
    s->loss_scale_input = find_number(s, "input.loss_scale", PL_DTYPE_F32);
    s->loss_scale = find_number(s, "loss_scale", PL_DTYPE_F32);
    s->good_steps = find_number(s, "loss_scale.good_steps", PL_DTYPE_I32);
    s->skipped_steps = find_number(s, PL_SKIPPED_STEPS, PL_DTYPE_I32);
    s->first_sample = find_number(s, "input.first_sample", PL_DTYPE_I64);
    s->position = find_number(s, "input.position", PL_DTYPE_I64);
    s->train_loss = find_loss(s, s->train);
    s->evaluate_loss = find_loss(s, s->evaluate);
}

static pl_status check_values(const pl_session *s, pl_error *err)
{
    bool inputs = s->lr && s->step_input && s->token_scale && s->first_sample && s->position;
    bool scale = (s->loss_scale != NULL) == (s->good_steps != NULL) && (!s->loss_scale || s->skipped_steps);
    bool losses = (s->train == PL_NONE || s->train_loss) && (s->evaluate == PL_NONE || s->evaluate_loss);
    if (!inputs || !losses || !scale)
        return pl_fail(err, PL_E_DATA, "the plan is not one of this program's: an input or output is missing");
    const pl_graph *g = s->o.plan->graph;
    pl_id staging = pl_graph_find_value(g, PL_STAGING_SAMPLING);
    if (s->generate == PL_NONE || staging == PL_NONE ||
        pl_value_bytes(g, staging) >= pl_session_sampling_bytes(g, s->settings))
        return PL_OK;
    return pl_fail(err, PL_E_DATA, "the plan has too little staging for choosing tokens; plan again");
}

static pl_status adopt_ring_thread(void *context, pl_error *err)
{
    pl_session *s = context;
    return s->o.owners ? pl_process_adopt_thread(&s->o.plan->process, s->o.owners, err) : PL_OK;
}

/* What every id that is loaded must be below: nothing checks them one by one. */
static int64_t find_id_limit(const pl_graph *g)
{
    int64_t least = INT64_MAX, below;
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_OUT_MAX && g->node[i].op == PL_OP_LOAD; k++)
            if (g->node[i].out[k] != PL_NONE && pl_graph_find_id_limit(g, g->node[i].out[k], &below) && below < least)
                least = below;
    return least;
}

/* Between planning and this moment another command may have made the token file anew. */
static pl_status check_tokens(const pl_session *s, pl_error *err)
{
    const pl_plan *p = s->o.plan;
    const pl_tokens_info *i = &s->tokens.info;
    if (i->vocab != s->settings->vocab)
        return pl_fail(err, PL_E_DATA, "%s: made for a vocabulary of %u, the plan has %u; plan again", s->tokens.path,
                       i->vocab, s->settings->vocab);
    int64_t below = find_id_limit(p->graph);
    if ((int64_t)i->vocab > below)
        return pl_fail(err, PL_E_DATA, "%s: holds ids up to %u, the plan has rows for %lld; plan again", s->tokens.path,
                       i->vocab - 1, (long long)below);
    if (p->tokenizer_hash == 0 || (i->tokenizer_hash == p->tokenizer_hash && i->source_hash == p->text_hash))
        return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: is no longer what was planned with: another command made it from another text or with another "
                   "tokenizer; start this one again, or plan anew where a lock file was given",
                   s->tokens.path);
}

static pl_status open_data(pl_session *s, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    if (!r->tokens_path) return PL_OK;
    PL_TRY(pl_tokens_open(&s->tokens, r->tokens_path, err));
    s->tokens_open = true;
    PL_TRY(check_tokens(s, err));
    PL_TRY(pl_session_open_source(&s->text, &s->tokens, r, err));
    s->source = &s->text.source;
    pl_ring_options ro = pl_session_ring_options(s->source, r);
    ro.stack_bytes = s->o.plan->process.thread_stack_reserved_bytes;
    ro.thread_begins = adopt_ring_thread;
    ro.context = s;
    const pl_graph *g = s->o.plan->graph;
    void *memory = pl_session_value(s, PL_STAGING_LOADER);
    uint64_t bytes;
    PL_TRY(pl_ring_bytes(&ro, &bytes, err));
    if (!memory || pl_value_bytes(g, pl_graph_find_value(g, PL_STAGING_LOADER)) < bytes)
        return pl_fail(err, PL_E_DATA, "the plan has too little staging for %s; the token file has changed, plan again",
                       r->tokens_path);
    PL_TRY(pl_ring_init(memory, &ro, &s->ring, err));
    return pl_ring_start(s->ring, err);
}

pl_status pl_session_open(const pl_session_options *options, pl_session **session, pl_error *err)
{
    pl_status status = PL_OK;
    pl_session *s = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "no memory for the session");
    s->o = *options;
    s->settings = options->settings;
    s->lock = -1;
    s->tokens.fd = -1;
    s->saved_step = UINT64_MAX;
    s->part_seconds = INFINITY; /* not known: watched closely */
    s->last_loss = s->last_rate = NAN;
    pl_plateau_init(&s->plateau);
    find_programs(s);
    int threads = s->o.plan->team.threads;
    PL_TRY_DONE(s->o.owners ? pl_threads_create(threads, &s->o.plan->process, s->o.owners, err)
                            : pl_threads_probe(threads, err));
    PL_TRY_DONE(map_memory(s, err));
    find_values(s);
    PL_TRY_DONE(check_values(s, err));
    PL_TRY_DONE(open_data(s, err));
    if (s->settings->tokenizer_path) PL_TRY_DONE(pl_tokenizer_load(s->settings->tokenizer_path, &s->tokenizer, err));
    PL_TRY_DONE(pl_session_encode_prompt(s, err));
    PL_TRY_DONE(pl_session_open_files(s, err));
    *session = s;
    return PL_OK;
done:
    pl_session_close(s);
    return status;
}

/* ---- commit ---- */

static void clear_generate_tokens(pl_session *s)
{
    pl_id id = pl_graph_find_value(s->o.plan->graph, "generate.tokens");
    if (id != PL_NONE) memset(pl_program_address(s->program, id), 0, pl_value_bytes(s->o.plan->graph, id));
}

static pl_status run_everything_once(pl_session *s, pl_error *err)
{
    const pl_id programs[] = {s->train, s->evaluate, s->generate}; /* init is over before commit anyway */
    *s->lr = 0;
    *s->step_input = 1;
    *s->token_scale = 0;
    if (s->loss_scale_input) *s->loss_scale_input = 1;
    *s->first_sample = *s->position = 0;
    if (s->skipped_steps) *s->skipped_steps = 0; /* no step is before the first */
    for (int i = 0; i < 3; i++) {
        if (programs[i] == PL_NONE) continue;
        if (programs[i] == s->generate) clear_generate_tokens(s); /* only now: the programs before used that memory */
        PL_TRY(pl_session_run_program(s, programs[i], true, err));
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
    s->reported_tokens = s->tokens_seen;
    const char *changes = s->changes ? s->changes : "";
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_COMMITTED, .text = changes, .text_bytes = strlen(changes)});
    return PL_OK;
}

/* A thread that ends gives its stack back to the system (madvise), which the filter of run/lockdown.h forbids: under it
 * the ring's threads wait, with their memory and their file, for the process to end. */
static void close_data(pl_session *s)
{
    if (pl_lockdown_active()) return;
    pl_ring_deinit(s->ring);
    if (s->tokens_open) pl_tokens_close(&s->tokens);
}

void pl_session_close(pl_session *s)
{
    if (!s) return;
    if (s->o.owners) pl_alloc_seal(0);
    close_trace(s);
    close_data(s);
    pl_session_close_files(s);
    pl_tokenizer_destroy(s->tokenizer);
    pl_free(s->prompt_id);
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
