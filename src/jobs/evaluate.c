/* The loss of what is held out: the same sum as while training, without dropout. */
#include <math.h>

#include "jobs/jobs.h"
#include "run/session_impl.h"

typedef struct evaluation {
    pl_id program;
    const double *loss;
} evaluation;

static pl_status open_evaluate(pl_session *s, void *state, pl_error *err)
{
    evaluation *e = state;
    PL_TRY(pl_session_find_program(s, "evaluate", &e->program, err));
    return pl_session_find_loss(s, e->program, &e->loss, err);
}

/* Between training steps a validation is finished before a stop: a resumed run must have the same metrics. */
static pl_status evaluate_batch(pl_session *s, const evaluation *e, uint64_t batch, double *sum, uint64_t *items,
                                pl_error *err)
{
    if (s->jobs.job[0] == &pl_job_evaluate && pl_session_should_stop(s))
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

pl_status pl_evaluate(pl_session *s, uint64_t batches, double *loss, uint64_t *items, pl_error *err)
{
    const evaluation *e = pl_session_job_state(s, &pl_job_evaluate);
    if (!e || !pl_data_has(s->o.data, PL_PART_VALIDATION)) return fail_without_part(s->settings->held_out, err);
    uint64_t steps = s->o.data->source->steps_per_epoch[PL_PART_VALIDATION];
    if (batches && batches < steps) steps = batches;
    double sum = 0;
    *items = 0;
    pl_ring_begin(s->ring, PL_PART_VALIDATION, 0, steps);
    s->validating = true;
    s->part = 0;
    s->parts = steps * pl_program_count_trips(s->program, e->program);
    for (uint64_t i = 0; i < steps; i++) PL_TRY(evaluate_batch(s, e, i, &sum, items, err));
    s->validating = false;
    s->part = 0;
    *loss = sum / (double)*items;
    if (isfinite(*loss)) return PL_OK;
    return pl_fail(err, PL_E_DIVERGED,
                   "the loss of the validation part is not finite: these weights are of no use; take another "
                   "checkpoint (--checkpoint), or train again with a lower train.learning_rate");
}

static pl_status run_evaluate(pl_session *s, void *state, pl_error *err)
{
    double loss;
    uint64_t items;
    (void)state;
    PL_TRY(pl_evaluate(s, 0, &loss, &items, err));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_EVALUATED, .loss = loss, .best_loss = loss, .items = items});
    return PL_OK;
}

const pl_job pl_job_evaluate = {
    .program = {"evaluate"}, .state_bytes = sizeof(evaluation), .open = open_evaluate, .run = run_evaluate};
