/* The loss of what is held out: the same sum as while training, without dropout. Where the program gives predictions
 * out (STORE), those of all samples are kept until the next evaluation, for what is read off them; of what else it
 * gives out a histogram. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"

#define PREDICTIONS "evaluate.predictions"

typedef struct evaluation {
    pl_id program;
    const double *loss;
    pl_histogram *histogram; /* [histograms], before the predictions */
    uint32_t histograms;
    char *predictions; /* NULL: the program gives none out */
    uint64_t bytes, room;
    uint64_t row_bytes; /* of a sample */
    uint64_t samples;   /* of the steps so far, the one that runs included: rows behind them are of none */
} evaluation;

/* ---- predictions ---- */

/* Its first input is those of a micro-batch. */
static const pl_node *find_store(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op == PL_OP_STORE && pl_node_returned_port(g, n) == PL_NONE &&
            strcmp(g->region[pl_region_program(g, n->region)].name, "evaluate") == 0)
            return n;
    }
    return NULL;
}

static uint64_t row_bytes(const pl_value *v)
{
    uint64_t bytes = pl_dtype_bytes(v->dtype);
    for (uint32_t i = 1; i < v->shape.rank; i++) bytes *= (uint64_t)v->shape.dim[i];
    return bytes;
}

static uint32_t count_histograms(const pl_node *store)
{
    uint32_t k = 0;
    while (k + 1 < PL_INS_OF_STORE && store->store.port[k + 1] != PL_NONE) k++;
    return k;
}

static uint64_t staging_bytes(const pl_graph *g, const pl_run_settings *r, const pl_data *data)
{
    const pl_node *store = find_store(g);
    uint64_t bytes = 0, micro = r->micro_batch ? r->micro_batch : 1;
    if (!store || !pl_data_has(data, PL_PART_VALIDATION)) return 0;
    /* of the last step of the part as many micro-batches run as of the others */
    const uint64_t of_step = (r->batch + micro - 1) / micro * micro;
    const uint64_t rows = of_step * data->source->steps_per_epoch[PL_PART_VALIDATION];
    if (pl_size_mul(rows, row_bytes(&g->value[store->store.port[0]]), &bytes)) return UINT64_MAX;
    return pl_size_add(bytes, count_histograms(store) * sizeof(pl_histogram), &bytes) ? UINT64_MAX : bytes;
}

/* Of the rows that are of samples; those come first. */
static void add_to_histograms(evaluation *e, const pl_store_call *call)
{
    const uint64_t rows = call->port[0].bytes / e->row_bytes, before = e->bytes / e->row_bytes;
    const uint64_t left = before < e->samples ? e->samples - before : 0, counted = rows < left ? rows : left;
    for (uint32_t k = 0; k < e->histograms; k++)
        pl_histogram_add(&e->histogram[k], call->port[1 + k].at,
                         counted * (call->port[1 + k].bytes / rows / sizeof(float)));
}

static pl_status store_predictions(pl_session *s, void *state, const pl_store_call *call, pl_error *err)
{
    evaluation *e = state;
    const uint64_t bytes = call->port[0].bytes;
    (void)s;
    if (bytes > e->room - e->bytes)
        return pl_fail(err, PL_E_DATA, "the plan has too little room for predictions; plan again");
    add_to_histograms(e, call);
    memcpy(e->predictions + e->bytes, call->port[0].at, bytes);
    e->bytes += bytes;
    return PL_OK;
}

static void begin_predictions(pl_session *s, evaluation *e)
{
    e->bytes = 0;
    s->predicted.count = 0;
    if (e->histograms) memset(e->histogram, 0, e->histograms * sizeof *e->histogram);
}

static void begin_step(const pl_session *s, evaluation *e, uint64_t step)
{
    const uint64_t all = s->o.data->source->samples[PL_PART_VALIDATION];
    e->samples = (step + 1) * s->settings->batch;
    if (all && e->samples > all) e->samples = all;
}

/* Where micro-batches do not divide the batch, the last of each step has rows for no sample. */
static void drop_padding(const pl_session *s, evaluation *e, uint64_t steps)
{
    const uint64_t bytes = steps * s->settings->batch * e->row_bytes;
    if (e->bytes > bytes) e->bytes = bytes;
}

static void end_predictions(pl_session *s, const evaluation *e)
{
    s->predicted = (pl_predicted){.row = (const float *)(const void *)e->predictions,
                                  .count = e->bytes / sizeof(float),
                                  .histogram = e->histogram};
}

/* ---- the loss ---- */

static pl_status open_predictions(const pl_session *s, evaluation *e, pl_id staging, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_node *store = find_store(g);
    const uint64_t room = pl_value_bytes(g, staging);
    e->histograms = count_histograms(store);
    const uint64_t before = e->histograms * sizeof *e->histogram;
    if (room < before) return pl_fail(err, PL_E_DATA, "the plan has too little room for predictions; plan again");
    e->histogram = pl_session_address(s, staging);
    e->predictions = (char *)e->histogram + before;
    e->room = room - before;
    e->row_bytes = row_bytes(&g->value[store->store.port[0]]);
    return PL_OK;
}

static pl_status open_evaluate(pl_session *s, void *state, pl_error *err)
{
    evaluation *e = state;
    const pl_graph *g = s->o.plan->graph;
    const pl_id staging = pl_graph_find_value(g, PREDICTIONS);
    PL_TRY(pl_session_find_program(s, "evaluate", &e->program, err));
    if (staging != PL_NONE) PL_TRY(open_predictions(s, e, staging, err));
    return pl_session_find_loss(s, e->program, &e->loss, err);
}

/* Between training steps a validation is finished before a stop: a resumed run must have the same metrics. */
static pl_status evaluate_batch(pl_session *s, const evaluation *e, uint64_t batch, double *sum, uint64_t *items,
                                pl_error *err)
{
    if (!s->writes_checkpoints && pl_session_should_stop(s))
        return pl_fail(err, PL_E_STOPPED, "stopped before the whole validation part was read");
    PL_TRY(pl_session_run_program(s, e->program, false, err));
    *sum += *e->loss;
    *items += pl_session_counted(s, PL_PART_VALIDATION, batch);
    return PL_OK;
}

static pl_status fail_without_part(const char *key, pl_error *err)
{
    if (key) return pl_fail(err, PL_E_USAGE, "there is no validation part: set %s above 0", key);
    return pl_fail(err, PL_E_USAGE, "there is no validation part: these data have none");
}

static pl_status run_batches(pl_session *s, evaluation *e, uint64_t steps, double *sum, uint64_t *items, pl_error *err)
{
    *sum = 0;
    *items = 0;
    pl_ring_begin(s->ring, PL_PART_VALIDATION, 0, steps);
    begin_predictions(s, e);
    s->validating = true;
    s->part = 0;
    s->parts = steps * pl_program_count_trips(s->program, e->program);
    for (uint64_t i = 0; i < steps; i++) {
        begin_step(s, e, i);
        PL_TRY(evaluate_batch(s, e, i, sum, items, err));
        drop_padding(s, e, i + 1);
    }
    s->validating = false;
    s->part = 0;
    end_predictions(s, e);
    return PL_OK;
}

pl_status pl_evaluate(pl_session *s, uint64_t batches, double *loss, uint64_t *items, pl_error *err)
{
    evaluation *e = pl_session_job_state(s, &pl_job_evaluate);
    if (!e || !pl_data_has(s->o.data, PL_PART_VALIDATION)) return fail_without_part(s->settings->held_out, err);
    uint64_t steps = s->o.data->source->steps_per_epoch[PL_PART_VALIDATION];
    if (batches && batches < steps) steps = batches;
    double sum;
    PL_TRY(run_batches(s, e, steps, &sum, items, err));
    *loss = sum / (double)*items;
    if (isfinite(*loss)) return PL_OK;
    return pl_fail(err, PL_E_DIVERGED,
                   "the loss of the validation part is not finite: these weights are of no use; take another "
                   "checkpoint (`checkpoint`), or train again with a lower train.learning_rate");
}

pl_status pl_keep_predictions(pl_session *s, const char *path, pl_error *err)
{
    if (!s->o.keep_predictions || s->predicted.count == 0)
        return pl_fail(err, PL_E_USAGE, "a model of this kind gives no predictions out: leave `predictions` out");
    return s->o.keep_predictions(s->o.data, s->predicted.row, s->predicted.count, path, err);
}

static pl_status run_evaluate(pl_session *s, void *state, pl_error *err)
{
    double loss;
    uint64_t items;
    (void)state;
    if (s->o.data->has_less) pl_session_warn(s, s->o.data->said);
    PL_TRY(pl_evaluate(s, 0, &loss, &items, err));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_EVALUATED, .loss = loss, .best_loss = loss, .items = items});
    return PL_OK;
}

const pl_job pl_job_evaluate = {.program = {"evaluate"},
                                .staging = PREDICTIONS,
                                .staging_bytes = staging_bytes,
                                .state_bytes = sizeof(evaluation),
                                .open = open_evaluate,
                                .run = run_evaluate,
                                .store = store_predictions};
