/* Rollouts: each operator of a group of one shape, from each of its initial fields, state by state. States are written
 * as they come, so memory does not know how many there are.
 *
 * What is done already (data, then its mark: store/block_file.h) is not made again. The realisations that run at once
 * go on from the first block that one of them lacks, where the state that it begins from was kept for all of them;
 * else from their initial fields. A state's bits do not depend on where a run began, nor on what runs beside it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/narrow.h"
#include "base/units.h"
#include "data/fields/rollout_data.h"
#include "jobs/jobs.h"
#include "jobs/rollout_features.h"
#include "jobs/rollout_witness.h"
#include "run/session_impl.h"

#define COMMIT_SECONDS 2.0
#define RATE_SECONDS   0.5

typedef struct rollout {
    const pl_rollout_data *d;
    pl_id begin, step;
    float *state;  /* [micro-batch, H, W, C] */
    void *scratch; /* one state as it is written, or as it was kept; where features are wanted room for two */
    uint64_t state_elems;
    uint32_t operator;    /* at work */
    uint64_t first, rows; /* its realisations at work */
    uint64_t from;        /* the first state that is wanted of them */
    uint64_t t;           /* the state being made */
    bool fields_wanted;   /* the initial field is to be written, too */
    bool features_wanted; /* and the features of the operator */
    pl_rollout_features features;
    double committed_at;
    pl_witness *witness; /* instead of results; NULL: not wanted */
} rollout;

static uint64_t staging_bytes(const pl_graph *g, const pl_run_settings *settings, const pl_data *data)
{
    (void)data;
    const pl_id state = pl_graph_find_value(g, "state");
    (void)settings;
    const uint64_t states = pl_graph_find_program(g, "features") == PL_NONE ? 1 : 2;
    return state == PL_NONE ? 0 : states * pl_value_bytes(g, state) / (uint64_t)g->value[state].shape.dim[0];
}

/* ---- how much it is ---- */

enum { INIT, BEGIN, STEP, FEATURES }; /* places in pl_job_rollout.program */

static double count_runs(const pl_data *data, uint32_t micro_batch, size_t k)
{
    const pl_rollout_data *d = pl_rollout_data_of(data);
    const double operators = d->operators;
    const uint32_t times = (d->setup.realisations + micro_batch - 1) / micro_batch;
    const uint32_t asked = (PL_FEATURE_INPUTS + micro_batch - 1) / micro_batch;
    switch (k) {
    case INIT:
        return operators;
    case BEGIN:
        return operators * times;
    case STEP:
        return operators * times * (d->setup.states - 1.0);
    default:
        return operators * asked;
    }
}

/* ---- what is done ---- */

static uint64_t block_of(const rollout *r, uint64_t realisation, uint64_t t)
{
    return pl_block_at(&r->d->layout, PL_ROLLOUT_STATES,
                       (uint64_t[]){pl_rollout_place(r->d, r->operator), realisation, t});
}

static uint64_t fields_block(const rollout *r)
{
    return pl_block_at(&r->d->layout, PL_ROLLOUT_FIELDS, (uint64_t[]){pl_rollout_place(r->d, r->operator)});
}

static uint64_t features_block(const rollout *r)
{
    return pl_block_at(&r->d->layout, PL_ROLLOUT_FEATURES, (uint64_t[]){pl_rollout_place(r->d, r->operator)});
}

static bool are_features_wanted(const pl_session *s, const rollout *r)
{
    return r->d->setup.features && !pl_block_file_is_done(s->results, features_block(r));
}

/* The first state of a realisation that has no mark; `states` when all have. */
static uint64_t first_wanted(const pl_session *s, const rollout *r, uint64_t realisation)
{
    const uint64_t states = r->d->setup.states, piece = r->d->setup.piece;
    for (uint64_t t = 0; t < states; t += piece)
        if (!pl_block_file_is_done(s->results, block_of(r, realisation, t))) return t;
    return states;
}

static bool is_operator_done(const pl_session *s, const rollout *r)
{
    if (!pl_block_file_is_done(s->results, fields_block(r)) || are_features_wanted(s, r)) return false;
    for (uint64_t m = 0; m < r->d->setup.realisations; m++)
        if (first_wanted(s, r, m) < r->d->setup.states) return false;
    return true;
}

static uint64_t count_done(pl_session *s, rollout *r)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < r->d->setup.count; i++) {
        r->operator= r->d->setup.first + i;
        done += is_operator_done(s, r);
    }
    return done;
}

static pl_status open_rollout(pl_session *s, void *state, pl_error *err)
{
    rollout *r = state;
    r->d = pl_rollout_data_of(s->o.data);
    r->state = pl_session_value(s, "state");
    r->scratch = pl_session_value(s, pl_job_rollout.staging);
    r->state_elems = (uint64_t)r->d->grid * r->d->grid * PL_ROLLOUT_FIELD_CHANNELS;
    if (!r->state || !r->scratch) return pl_fail(err, PL_E_DATA, "the plan has no state of a rollout; plan again");
    r->features = (pl_rollout_features){.program = PL_NONE,
                                        .state = r->state,
                                        .room = r->scratch,
                                        .elems = r->state_elems,
                                        .rows = (int)s->settings->micro_batch};
    if (r->d->setup.features) PL_TRY(pl_session_find_program(s, "features", &r->features.program, err));
    if (s->results) s->step = count_done(s, r);
    PL_TRY(pl_session_find_program(s, "begin", &r->begin, err));
    return pl_session_find_program(s, "step", &r->step, err);
}

/* ---- what is written ---- */

/* Pixels with their channels together become channels: files have [C, H, W]. */
static void lay_out(const rollout *r, const float *state, bool narrow)
{
    const uint64_t pixels = r->state_elems / PL_ROLLOUT_FIELD_CHANNELS;
    float *wide = r->scratch;
    uint16_t *half = r->scratch;
    for (uint64_t c = 0; c < PL_ROLLOUT_FIELD_CHANNELS; c++)
        for (uint64_t i = 0; i < pixels; i++) {
            const float x = state[i * PL_ROLLOUT_FIELD_CHANNELS + c];
            if (narrow)
                half[c * pixels + i] = pl_f16_of_f32(x);
            else
                wide[c * pixels + i] = x;
        }
}

static pl_status put_fields(pl_session *s, rollout *r, const float *state, pl_error *err)
{
    const uint64_t block = fields_block(r);
    lay_out(r, state, false);
    PL_TRY(pl_block_file_put(s->results, block, r->d->fields_at, 0, r->scratch, r->state_elems * sizeof(float), err));
    return pl_block_file_finish(s->results, block, err);
}

static pl_status put_state(pl_session *s, rollout *r, uint64_t block, const float *state, pl_error *err)
{
    const pl_rollout_data *d = r->d;
    const uint64_t bytes = r->state_elems * pl_dtype_bytes(d->setup.state_dtype);
    if (!d->setup.keeps_states) return PL_OK;
    lay_out(r, state, d->setup.state_dtype == PL_DTYPE_F16);
    return pl_block_file_put(s->results, block, d->states_at, r->t % d->setup.piece * bytes, r->scratch, bytes, err);
}

static pl_status put_metrics(pl_session *s, rollout *r, uint64_t block, const float *metrics, pl_error *err)
{
    for (uint32_t k = 0; k < PL_FIELD_METRICS; k++)
        PL_TRY(pl_block_file_put(s->results, block, r->d->metrics_at + k, r->t % r->d->setup.piece * sizeof(float),
                                 &metrics[k], sizeof(float), err));
    return PL_OK;
}

/* The block ends with this state: the next one goes on from it. */
static pl_status end_block(pl_session *s, rollout *r, uint64_t realisation, uint64_t block, const float *state,
                           pl_error *err)
{
    if (r->t + 1 < r->d->setup.states)
        PL_TRY(pl_block_file_carry(s->results, (uint32_t)(realisation % pl_block_file_slots(s->results)), block,
                                   block_of(r, realisation, r->t + 1), state, err));
    return pl_block_file_finish(s->results, block, err); /* behind it: this may commit */
}

static pl_status put_row(pl_session *s, rollout *r, uint64_t realisation, const float *state, const float *metrics,
                         pl_error *err)
{
    const uint64_t block = block_of(r, realisation, r->t), piece = r->d->setup.piece;
    if (pl_block_file_is_done(s->results, block)) return PL_OK;
    PL_TRY(put_state(s, r, block, state, err));
    PL_TRY(put_metrics(s, r, block, metrics, err));
    bool ends = (r->t + 1) % piece == 0 || r->t + 1 == r->d->setup.states;
    return ends ? end_block(s, r, realisation, block, state, err) : PL_OK;
}

/* State t of the realisations at work, and its metrics. */
static pl_status store(pl_session *s, void *job, const pl_store_call *call, pl_error *err)
{
    rollout *r = job;
    const float *state = call->port[0].at, *metrics = call->port[1].at;
    if (r->features.at_work) return pl_rollout_features_take(&r->features, call), PL_OK;
    if (r->witness) return pl_witness_put(r->witness, r->t, call, err);
    if (r->t == 0 && r->fields_wanted) PL_TRY(put_fields(s, r, state, err));
    r->fields_wanted = false;
    if (r->t < r->from) return PL_OK;
    for (uint64_t i = 0; i < r->rows; i++)
        PL_TRY(put_row(s, r, r->first + i, state + i * r->state_elems, metrics + i * PL_FIELD_METRICS, err));
    return PL_OK;
}

/* While an operator lasts, how fast it goes. */
static void follow_rate(pl_session *s, double now)
{
    const double seconds = now - s->reported_at;
    if (seconds >= RATE_SECONDS) s->last_rate = (double)(s->items_seen - s->reported_items) / seconds;
}

/* The disk is waited for now and then, not with each block: those of a small operator come fast. */
static pl_status commit_now_and_then(pl_session *s, rollout *r, double now, pl_error *err)
{
    if (now - r->committed_at < COMMIT_SECONDS) return PL_OK;
    PL_TRY(pl_block_file_commit(s->results, err));
    r->committed_at = pl_run_now();
    return PL_OK;
}

/* ---- the work ---- */

static void begin_stream(pl_session *s, const rollout *r)
{
    const uint64_t step = pl_rollout_place(r->d, r->operator);
    pl_ring_begin(s->ring, PL_PART_TRAIN, step, step + 1);
}

static pl_status recall(pl_session *s, rollout *r, void *to(rollout *, uint64_t row), bool *found, pl_error *err)
{
    *found = true;
    for (uint64_t i = 0; i < r->rows && *found; i++)
        PL_TRY(pl_block_file_recall(s->results, block_of(r, r->first + i, r->from), to(r, i), found, err));
    return PL_OK;
}

static void *into_scratch(rollout *r, uint64_t row)
{
    (void)row;
    return r->scratch;
}
static void *into_state(rollout *r, uint64_t row) { return r->state + row * r->state_elems; }

/* Where the realisations at work go on: `from`, the first state wanted of one of them, or anew. */
static pl_status find_start(pl_session *s, rollout *r, pl_error *err)
{
    bool found = true;
    r->from = r->d->setup.states;
    for (uint64_t i = 0; i < r->rows; i++) {
        const uint64_t wanted = first_wanted(s, r, r->first + i);
        if (wanted < r->from) r->from = wanted;
    }
    if (r->from > 0 && r->from < r->d->setup.states) PL_TRY(recall(s, r, into_scratch, &found, err));
    if (!found) r->from = 0;
    return PL_OK;
}

static pl_status make_features(pl_session *s, rollout *r, pl_error *err)
{
    const uint64_t block = features_block(r);
    float feature[PL_OPERATOR_FEATURES];
    r->features_wanted = false;
    PL_TRY(pl_rollout_features_make(&r->features, s, r->operator, feature, err));
    PL_TRY(pl_block_file_put(s->results, block, r->d->features_at, 0, feature, sizeof feature, err));
    return pl_block_file_finish(s->results, block, err);
}

/* Of one state there is no step after this that would look for a stop. */
static pl_status begin(pl_session *s, rollout *r, pl_error *err)
{
    bool found;
    r->t = 0;
    if (pl_session_should_stop(s)) return pl_fail(err, PL_E_STOPPED, "stopped at operator %u", r->operator);
    PL_TRY(pl_session_run_program(s, r->begin, false, err));
    if (r->from == 0) s->part++;
    if (r->features_wanted) PL_TRY(make_features(s, r, err));
    return r->from > 0 && r->from < r->d->setup.states ? recall(s, r, into_state, &found, err) : PL_OK;
}

static pl_status make_states(pl_session *s, rollout *r, pl_error *err)
{
    const uint64_t states = r->d->setup.states;
    for (r->t = r->from ? r->from : 1; r->t < states; r->t++) {
        if (pl_session_should_stop(s))
            return pl_fail(err, PL_E_STOPPED, "stopped at operator %u, state %llu",
                           r->operator,(unsigned long long) r->t);
        pl_session_set_integer(s, PL_INPUT_STEP, (int64_t)r->t);
        PL_TRY(pl_session_run_program(s, r->step, false, err));
        s->items_seen += r->rows;
        s->part++;
        const double now = pl_run_now();
        follow_rate(s, now);
        PL_TRY(commit_now_and_then(s, r, now, err));
    }
    return PL_OK;
}

static pl_status skip_slot(pl_session *s, pl_error *err)
{
    pl_slot slot;
    PL_TRY(pl_ring_next(s->ring, &slot, err));
    pl_ring_release(s->ring);
    return PL_OK;
}

static pl_status run_realisations(pl_session *s, rollout *r, pl_error *err)
{
    const pl_rollout_setup *o = &r->d->setup;
    const uint64_t most = s->settings->micro_batch, left = o->realisations - r->first;
    r->rows = left < most ? left : most;
    PL_TRY(find_start(s, r, err));
    r->fields_wanted = r->first == 0 && !pl_block_file_is_done(s->results, fields_block(r));
    r->features_wanted = r->first == 0 && are_features_wanted(s, r);
    s->parts -= r->from; /* they are there: nothing to make, and no time */
    if (r->from == o->states && !r->fields_wanted && !r->features_wanted) return skip_slot(s, err);
    PL_TRY(begin(s, r, err));
    return make_states(s, r, err);
}

/* An operator is done: how fast it went. */
static void tell_progress(pl_session *s)
{
    const double now = pl_run_now(), seconds = now - s->reported_at;
    const uint64_t items = s->items_seen - s->reported_items;
    s->last_rate = seconds > 0 ? (double)items / seconds : NAN;
    s->reported_at = now;
    s->reported_items = s->items_seen;
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_STEP, .loss = NAN, .lr = NAN, .items_per_second = s->last_rate});
}

static pl_status run_operator(pl_session *s, rollout *r, pl_error *err)
{
    const uint64_t most = s->settings->micro_batch, all = r->d->setup.realisations;
    pl_session_set_integer(s, PL_INPUT_ITEM, r->operator);
    PL_TRY(pl_session_run_program(s, s->init, false, err));
    begin_stream(s, r);
    s->part = 0;
    s->parts = (all + most - 1) / most * r->d->setup.states;
    for (r->first = 0; r->first < all; r->first += most) PL_TRY(run_realisations(s, r, err));
    s->step++;
    tell_progress(s);
    return PL_OK;
}

static pl_status run_group(pl_session *s, rollout *r, pl_error *err)
{
    for (uint32_t i = 0; i < r->d->operators; i++) {
        r->operator= pl_rollout_operator(r->d, i);
        if (is_operator_done(s, r)) continue;
        PL_TRY(run_operator(s, r, err));
        PL_TRY(commit_now_and_then(s, r, pl_run_now(), err));
    }
    return PL_OK;
}

/* Of realisation 0; nothing is measured here, and the heap is used. */
static pl_status run_witness(pl_session *s, rollout *r, pl_error *err)
{
    pl_error ignored;
    const uint64_t steps = s->settings->steps;
    if (steps >= r->d->setup.states)
        return pl_fail(err, PL_E_CONFIG,
                       "a rollout has %u states, so %llu steps are too many for a witness; take at most %u",
                       r->d->setup.states, (unsigned long long)steps, r->d->setup.states - 1);
    r->operator= pl_rollout_operator(r->d, 0);
    pl_session_set_integer(s, PL_INPUT_ITEM, r->operator);
    PL_TRY(pl_session_run_program(s, s->init, false, err));
    r->witness = pl_alloc(1, sizeof *r->witness);
    if (!r->witness) return pl_fail(err, PL_E_NOMEM, "no memory for the witness");
    pl_status status = pl_witness_open(r->witness, s, r->operator, steps, s->settings->to, err);
    begin_stream(s, r);
    for (r->t = 0; r->t <= steps && status == PL_OK; r->t++) {
        pl_session_set_integer(s, PL_INPUT_STEP, (int64_t)r->t);
        if (pl_session_should_stop(s)) status = pl_fail(err, PL_E_STOPPED, "stopped before the witness was whole");
        if (status == PL_OK) status = pl_session_run_program(s, r->t ? r->step : r->begin, false, err);
        if (status == PL_OK && r->t == 0 && r->d->setup.features)
            status = pl_rollout_features_make(&r->features, s, r->operator, r->witness->feature, err);
    }
    if (status == PL_OK)
        status = pl_witness_close(r->witness, true, err);
    else
        (void)pl_witness_close(r->witness, false, &ignored);
    pl_free(r->witness);
    r->witness = NULL;
    return status;
}

static pl_status run_rollout(pl_session *s, void *state, pl_error *err)
{
    rollout *r = state;
    pl_error ignored;
    if (s->settings->to) return run_witness(s, r, err);
    r->committed_at = pl_run_now();
    pl_status status = run_group(s, r, err);
    if (status != PL_OK && status != PL_E_STOPPED) return (void)pl_block_file_commit(s->results, &ignored), status;
    PL_TRY(pl_block_file_commit(s->results, err));
    const char *path = s->o.data->sink->path;
    pl_event end = {.kind = PL_EVENT_FINISHED, .loss = NAN, .text = path, .text_bytes = strlen(path)};
    if (status == PL_E_STOPPED) end.kind = PL_EVENT_STOPPED;
    if (status == PL_E_STOPPED || pl_session_results_left(s) == 0) pl_session_tell(s, end);
    return status;
}

const pl_job pl_job_rollout = {
    .program = {[INIT] = "init", [BEGIN] = "begin", [STEP] = "step", [FEATURES] = "features"},
    .repeated = STEP,
    .count_runs = count_runs,
    .staging = "staging.state",
    .staging_bytes = staging_bytes,
    .state_bytes = sizeof(rollout),
    .open = open_rollout,
    .run = run_rollout,
    .store = store};
