/* Running programs of a session, and what is told, traced and watched meanwhile. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "run/session_impl.h"

double pl_session_epoch(const pl_session *s)
{
    uint64_t steps = s->o.data->source ? s->o.data->source->steps_per_epoch[PL_PART_TRAIN] : 0;
    return steps ? (double)s->step / (double)steps : 0;
}

static size_t metrics_of_loss(const pl_session *s, double loss, pl_loss_metric *metric)
{
    return s->o.metrics ? s->o.metrics(loss, &s->o.plan->validation, metric) : 0;
}

size_t pl_session_find_metrics(const pl_session *s, double loss, pl_loss_metric *metric)
{
    const size_t count = metrics_of_loss(s, loss, metric);
    if (!s->o.measure || s->predicted.count == 0) return count;
    return count + s->o.measure(s->o.data, &s->predicted, metric + count);
}

static bool has_loss(const pl_event *e)
{
    return e->kind == PL_EVENT_STEP || e->kind == PL_EVENT_TICK || e->kind == PL_EVENT_EVALUATED;
}

/* A sample between the steps of a training is kept among its metrics; half of one is not. */
static void keep_text(pl_session *s, const pl_event *e)
{
    pl_error why = {0};
    pl_status status = PL_OK;
    if (!s->writes_checkpoints || s->metrics_lost.status != PL_OK) return;
    if (e->kind == PL_EVENT_TEXT)
        status = pl_metrics_text(&s->metrics, s->step, e->text, e->text_bytes, &why);
    else if (e->kind == PL_EVENT_TEXT_END && e->told->ended == PL_TEXT_INTERRUPTED)
        pl_metrics_text_drop(&s->metrics);
    else if (e->kind == PL_EVENT_TEXT_END)
        status = pl_metrics_text_end(&s->metrics, &why);
    if (status != PL_OK) s->metrics_lost = why;
}

void pl_session_tell(pl_session *s, pl_event e)
{
    pl_loss_metric metric[PL_LOSS_METRICS_MAX];
    keep_text(s, &e);
    if (!s->o.listener) return;
    e.step = s->step;
    e.steps = s->settings->steps;
    e.words = s->words;
    if (!e.items) e.items = s->items_seen;
    e.seconds = s->committed_at > 0 ? pl_run_now() - s->committed_at : 0;
    e.epoch = pl_session_epoch(s);
    e.metric = metric;
    if (has_loss(&e))
        e.metrics = (e.kind == PL_EVENT_EVALUATED ? pl_session_find_metrics : metrics_of_loss)(s, e.loss, metric);
    e.is_saved = s->writes_checkpoints && s->saved_step != UINT64_MAX;
    e.saved_step = e.is_saved ? s->saved_step : 0;
    if (s->results) {
        e.there_bytes = pl_block_file_there_bytes(s->results);
        e.result_bytes = pl_block_file_data_bytes(s->results);
    }
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

/* ---- where the time goes ---- */

const char *pl_spent_name(pl_spent what)
{
    static const char *const names[PL_SPENT_COUNT] = {"steps", "evaluating", "showing", "saving"};
    return names[what];
}

void pl_session_spend(pl_session *s, pl_spent what, double began)
{
    s->spent[what].seconds += pl_run_now() - began;
    s->spent[what].count++;
}

pl_session_times pl_session_find_times(const pl_session *s)
{
    return (pl_session_times){.program = s->timed,
                              .components = &s->components,
                              .seconds = s->clock.seconds,
                              .runs = s->timed_runs,
                              .spent = s->spent,
                              .first = s->step > s->steps_timed ? s->step - s->steps_timed : 0};
}

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

static void tell_source(pl_session *s)
{
    const pl_source *source = s->o.data->source;
    char text[PL_ERROR_TEXT_BYTES];
    if (source->kind->tell && source->kind->tell(source, text, sizeof text)) pl_session_warn(s, text);
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
    s->slot = slot;
    pl_ring_release(s->ring);
    tell_source(s);
    return PL_OK;
}

/* What a program gives back of its data. */
static pl_status return_port(pl_session *s, const pl_store_call *call, pl_error *err)
{
    const pl_source *source = s->o.data->source;
    if (!source->kind->keep) return PL_OK;
    return source->kind->keep(source, &s->slot, call->returned, call->port[0].at, err);
}

static bool runs(const pl_job *job, const char *program)
{
    for (size_t k = 0; k < PL_JOB_PROGRAMS_MAX && job->program[k]; k++)
        if (strcmp(job->program[k], program) == 0) return true;
    return false;
}

/* What a program gives out is for the job whose program it is. */
static pl_status store_slot(void *context, const pl_trips *trips, const pl_store_call *call, pl_error *err)
{
    pl_session *s = context;
    const char *program = s->o.plan->graph->region[s->running].name;
    (void)trips;
    if (call->returned != PL_NONE) return return_port(s, call, err);
    for (size_t i = 0; i < s->jobs.count; i++)
        if (s->jobs.job[i]->store && runs(s->jobs.job[i], program))
            return s->jobs.job[i]->store(s, s->job_state[i], call, err);
    return pl_fail(err, PL_E_INTERNAL, "the program \"%s\" gives out values that no job takes", program);
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

void pl_session_close_trace(pl_session *s)
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
    if (s->trace && !pl_trace_add(s->trace, name, category, begin, end)) pl_session_close_trace(s);
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

/* A tick comes with every micro-batch and every run of a program; only where those take long, or nobody knows yet how
 * long they take, does each node read the clock for one. */
pl_status pl_session_run_program(pl_session *s, pl_id program, bool single_trip, pl_error *err)
{
    pl_program_hooks hooks = {.load = single_trip ? load_nothing : load_slot, .context = s, .single_trip = single_trip};
    if (single_trip) return pl_program_run(s->program, program, &hooks, err);
    s->running = program;
    hooks.store = store_slot;
    hooks.trip = end_part;
    const bool timed = program == s->timed && s->clock.components; /* a session of a test alone has none */
    if (timed) hooks.clock = &s->clock;
    double began = pl_run_now();
    bool watched = s->o.listener && (s->part_seconds <= 0 || s->part_seconds >= PL_SESSION_TICK_SECONDS);
    uint64_t before = s->part;
    if (s->watcher) hooks.begins = watch_begin;
    hooks.timed = s->watcher ? watch_node : s->trace ? trace_node : watched ? tick_node : NULL;
    PL_TRY(pl_program_run(s->program, program, &hooks, err));
    double ended = pl_run_now();
    if (timed) s->timed_runs.seconds += ended - began, s->timed_runs.count++;
    if (s->part > before) s->part_seconds = (ended - began) / (double)(s->part - before);
    pl_session_tick(s, ended);
    return PL_OK;
}
