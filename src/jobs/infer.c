/* A model on the user's files (data/infer): batch by batch as the ring brings them, and what comes of each item to the
 * sink. The bits of an item do not depend on what comes beside it, so neither on the batch. Item by item (latency) the
 * time of each is kept, in planned memory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/infer/infer_data.h"
#include "ir/op.h"
#include "jobs/infer_sink.h"
#include "jobs/jobs.h"
#include "run/finite.h"
#include "run/session_impl.h"

#define SECONDS "infer.seconds"
enum { INIT, INFER };

typedef struct inference {
    const pl_infer_data *d;
    pl_id program;
    pl_infer_output output[PL_NODE_IN_MAX];
    size_t outputs;
    size_t ids_at;     /* STORE's port with the ids that came in */
    uint64_t id_count; /* of an item; 0: there are none */
    double *seconds;   /* [rows]; NULL: they are not asked for */
    uint64_t timed;
    double began, run_seconds;
    bool at_work;
    uint64_t done;      /* items */
    pl_infer_sums sums; /* of the one at work */
    pl_infer_remarked remarked;
    pl_infer_summary summary;
    pl_infer_sink sink;
} inference;

/* ---- what the program gives out ---- */

static pl_status see_output(const pl_graph *g, pl_id id, pl_infer_output *o, pl_error *err)
{
    static const char before[] = PL_INFER_PROGRAM ".";
    const pl_value *v = &g->value[id];
    const size_t bytes = sizeof before - 1;
    if (strncmp(v->name, before, bytes) != 0 || v->dtype != PL_DTYPE_F32)
        return pl_fail(err, PL_E_INTERNAL, "%.200s is given out, and is no result of the model", v->name);
    *o = (pl_infer_output){.name = v->name + bytes, .rank = v->shape.rank ? v->shape.rank - 1 : 0, .elems = 1};
    for (uint32_t i = 0; i < o->rank; i++) o->elems *= o->dim[i] = (uint64_t)v->shape.dim[i + 1];
    return PL_OK;
}

static uint64_t elems_of_item(const pl_shape *s)
{
    uint64_t elems = 1;
    for (uint32_t i = 1; i < s->rank; i++) elems *= (uint64_t)s->dim[i];
    return elems;
}

static pl_status see_outputs(const pl_session *s, inference *j, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != PL_OP_STORE || pl_region_program(g, n->region) != j->program) continue;
        const pl_id *port = n->store.port;
        for (size_t k = 0; k < PL_INS_OF_STORE && port[k] != PL_NONE; k++) {
            if (pl_dtype_is_real(g->value[port[k]].dtype))
                PL_TRY(see_output(g, port[k], &j->output[j->outputs++], err));
            else if (j->id_count == 0)
                j->ids_at = k, j->id_count = elems_of_item(&g->value[port[k]].shape);
        }
    }
    return PL_OK;
}

/* ---- opening ---- */

static uint64_t staging_bytes(const pl_graph *g, const pl_run_settings *r, const pl_data *data)
{
    const pl_infer_data *d = pl_infer_data_of(data);
    (void)g, (void)r;
    return d->setup.latency ? d->rows * sizeof(double) : 0;
}

static pl_status open_infer(pl_session *s, void *state, pl_error *err)
{
    inference *j = state;
    j->d = pl_infer_data_of(s->o.data);
    PL_TRY(pl_session_find_program(s, PL_INFER_PROGRAM, &j->program, err));
    PL_TRY(see_outputs(s, j, err));
    j->seconds = pl_session_value(s, SECONDS);
    j->sink.s = s, j->sink.output = j->output, j->sink.outputs = j->outputs;
    j->sink.of = j->d->of, j->sink.say = j->d->setup.say, j->sink.brief = j->d->setup.brief;
    return PL_OK;
}

static void close_infer(pl_session *s, void *state)
{
    inference *j = state;
    pl_error ignored;
    (void)s;
    (void)pl_infer_sink_close(&j->sink, false, &ignored);
}

/* ---- the work ---- */

static double count_runs(const pl_data *data, uint32_t micro_batch, size_t k)
{
    const pl_infer_data *d = pl_infer_data_of(data);
    if (!data->source) return 1;
    const uint64_t batch = d->source.batch, whole = d->rows / batch, rest = d->rows % batch;
    if (k == INIT) return 1;
    return (double)(whole * ((batch + micro_batch - 1) / micro_batch) + (rest + micro_batch - 1) / micro_batch);
}

/* Rows of the slot at work that are any: the last of a step and of all may have fewer. */
static uint64_t rows_of(const pl_session *s, const inference *j, uint64_t *first)
{
    const pl_slot *slot = &s->slot;
    const uint64_t place = slot->micro * (uint64_t)slot->rows, batch = j->d->source.batch;
    *first = slot->step * batch + place;
    uint64_t rows = batch > place ? batch - place : 0;
    if (rows > slot->rows) rows = slot->rows;
    return *first >= j->d->rows ? 0 : rows < j->d->rows - *first ? rows : j->d->rows - *first;
}

static pl_status store(pl_session *s, void *state, const pl_store_call *call, pl_error *err)
{
    inference *j = state;
    const pl_rows_remark *remark[PL_ROWS_REMARKS_MAX];
    const float *row[PL_NODE_IN_MAX];
    char source[PL_FILE_PATH_MAX + 32];
    uint64_t first;
    if (!j->at_work) return PL_OK; /* before commit everything runs once */
    const uint64_t rows = rows_of(s, j, &first);
    pl_infer_item item = {.output = j->output,
                          .values = row,
                          .outputs = j->outputs,
                          .id_count = j->id_count,
                          .remark = remark,
                          .sums = &j->sums};
    for (uint64_t i = 0; i < rows; i++) {
        const pl_rows_part part = pl_infer_data_part(j->d, first + i);
        pl_str name = pl_str_fixed(source, sizeof source);
        pl_infer_data_name(j->d, part.item, &name);
        for (size_t k = 0; k < j->outputs; k++) row[k] = (const float *)call->port[k].at + i * j->output[k].elems;
        if (j->id_count) item.ids = (const int32_t *)call->port[j->ids_at].at + i * j->id_count;
        item.remarks = pl_infer_data_remarks(j->d, first + i, remark);
        pl_infer_remarked_add(&j->remarked, remark, item.remarks);
        item.again = part.again, item.is_last = part.is_last;
        if (part.again == 0) j->sums = (pl_infer_sums){0};
        PL_TRY(pl_infer_sink_put(&j->sink, part.item, source, &item, err));
        j->done += part.is_last;
    }
    s->items_seen += rows;
    return pl_infer_sink_flush(&j->sink, err);
}

/* Programs have a region for the micro-batches of a step, or none: then each run takes one. */
static pl_status run_step(pl_session *s, inference *j, pl_error *err)
{
    const uint64_t batch = j->d->source.batch, micro = s->settings->micro_batch;
    const uint64_t parts = (batch + micro - 1) / micro, trips = pl_program_count_trips(s->program, j->program);
    for (uint64_t done = 0; done < parts; done += trips ? trips : 1) {
        if (pl_session_should_stop(s)) return pl_fail(err, PL_E_STOPPED, "stopped; what was not finished is not there");
        const double began = pl_run_now();
        PL_TRY(pl_session_run_program(s, j->program, false, err));
        s->part += trips == 0; /* else those are counted */
        const double now = pl_run_now(), took = now - began;
        j->run_seconds += took;
        s->last_rate = (double)s->items_seen / (now - j->began);
        if (j->seconds && j->timed < j->d->rows) j->seconds[j->timed++] = took;
    }
    return PL_OK;
}

static pl_status run_steps(pl_session *s, inference *j, pl_error *err)
{
    const uint64_t steps = j->d->source.steps_per_epoch[PL_PART_TRAIN];
    pl_ring_begin(s->ring, PL_PART_TRAIN, 0, steps);
    s->part = 0;
    s->parts = steps * ((j->d->source.batch + s->settings->micro_batch - 1) / s->settings->micro_batch);
    for (uint64_t i = 0; i < steps; i++) PL_TRY(run_step(s, j, err));
    return PL_OK;
}

/* ---- what is told ---- */

static void sift(double *x, uint64_t root, uint64_t count)
{
    for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && x[child + 1] > x[child]) child++;
        if (x[root] >= x[child]) return;
        const double swap = x[root];
        x[root] = x[child];
        x[child] = swap;
    }
}

/* In place: qsort may ask for memory. */
static void sort(double *x, uint64_t count)
{
    for (uint64_t i = count / 2; i-- > 0;) sift(x, i, count);
    for (uint64_t end = count; end-- > 1;) {
        const double swap = x[0];
        x[0] = x[end];
        x[end] = swap;
        sift(x, 0, end);
    }
}

static void sum_up(inference *j)
{
    pl_infer_summary *u = &j->summary;
    *u = (pl_infer_summary){.items = j->done,
                            .not_finite = j->sink.not_finite,
                            .seconds = pl_run_now() - j->began,
                            .run_seconds = j->run_seconds};
    if (!j->seconds || j->timed == 0) return;
    sort(j->seconds, j->timed);
    u->median_seconds = j->seconds[(j->timed - 1) / 2];
    u->p95_seconds = j->seconds[(uint64_t)ceil(0.95 * (double)j->timed) - 1];
    u->most_seconds = j->seconds[j->timed - 1];
}

static void tell_not_finite(pl_session *s, const inference *j)
{
    char text[512];
    if (j->summary.not_finite == 0) return;
    const char *weight = pl_finite_find_bad(s);
    snprintf(text, sizeof text, "%" PRIu64 " numbers of the results are infinite or NaN%s%s%.300s",
             j->summary.not_finite, j->sink.in_arrays ? "" : ", written as null",
             weight ? "; so is one of the weight " : "", weight ? weight : "");
    pl_session_warn(s, text);
}

/* What cannot be read as it is meant is read as well as it can, and said. */
static void tell_remarks(pl_session *s, const inference *j)
{
    char text[PL_ERROR_TEXT_BYTES];
    pl_str out = pl_str_fixed(text, sizeof text);
    pl_infer_remarked_print(&j->remarked, &out);
    if (out.bytes == 0) return;
    pl_str_printf(&out, " (of %" PRIu64 " items%s)", j->done,
                  j->sink.in_arrays ? "" : "; the key remarks of a line says which");
    pl_session_warn(s, text);
}

/* Who asked for it hears no complaint, but what there is. */
static void tell_stopped(pl_session *s, const inference *j)
{
    char text[160];
    const int n = snprintf(text, sizeof text, "stopped after %" PRIu64 " of %" PRIu64 " items%s", j->done, j->d->items,
                           j->sink.open ? "; no file was written" : "");
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_NOTE, .text = text, .text_bytes = (size_t)n});
}

static pl_status run_infer(pl_session *s, void *state, pl_error *err)
{
    inference *j = state;
    pl_error ignored;
    if (!s->o.data->source) return pl_fail(err, PL_E_USAGE, "there are no files to run the model on; name some");
    j->began = pl_run_now();
    j->timed = 0, j->run_seconds = 0, j->sink.not_finite = 0, j->done = 0;
    j->remarked = (pl_infer_remarked){0};
    s->items_seen = 0;
    pl_status status = pl_infer_sink_open(&j->sink, j->d->setup.to, j->d->setup.arrays, j->d->items, err);
    j->at_work = true;
    if (status == PL_OK) status = run_steps(s, j, err);
    j->at_work = false;
    if (status == PL_E_STOPPED) tell_stopped(s, j);
    if (status != PL_OK) return (void)pl_infer_sink_close(&j->sink, false, &ignored), status;
    PL_TRY(pl_infer_sink_close(&j->sink, true, err));
    sum_up(j);
    tell_not_finite(s, j);
    tell_remarks(s, j);
    return PL_OK;
}

pl_status pl_infer_find_summary(const pl_session *s, pl_infer_summary *summary, pl_error *err)
{
    const inference *j = pl_session_job_state(s, &pl_job_infer);
    if (!j) return pl_fail(err, PL_E_USAGE, "this run is of another command: nothing was inferred");
    *summary = j->summary;
    return PL_OK;
}

const pl_job pl_job_infer = {.program = {[INIT] = "init", [INFER] = PL_INFER_PROGRAM},
                             .repeated = INFER,
                             .count_runs = count_runs,
                             .staging = SECONDS,
                             .staging_bytes = staging_bytes,
                             .state_bytes = sizeof(inference),
                             .open = open_infer,
                             .close = close_infer,
                             .run = run_infer,
                             .store = store};
