/* The training loop. A step is a pure function of (weights, step): everything it needs is computed from the step's
 * number, so a run that was killed and resumed writes the same weights and the same lines. */
#include <math.h>
#include <stdio.h>

#include "ir/properties.h"
#include "jobs/jobs.h"
#include "run/finite.h"
#include "run/session_impl.h"

typedef struct training {
    pl_id program;
    const double *loss;
    bool is_mean; /* the loss is one, and not the sum over the items */
    /* progress, saved */
    pl_plateau plateau;
    bool has_best;
    double best_loss;
    uint64_t best_step;
    double early_best;  /* of the validation loss, that a further one has to better by early_min_delta */
    uint64_t early_bad; /* evaluations in a row that did not */
} training;

/* So many evaluations brought nothing that no more steps are made. */
static bool ends_early(const pl_session *s, const training *t)
{
    return s->settings->early_patience && t->early_bad >= s->settings->early_patience;
}

static bool is_complete(const pl_session *s, const training *t)
{
    return s->step >= s->settings->steps || ends_early(s, t);
}

static void note_early(training *t, const pl_run_settings *r, double loss)
{
    const bool better = loss < t->early_best - r->early_min_delta;
    if (better) t->early_best = loss;
    t->early_bad = better ? 0 : t->early_bad + 1;
}

static bool due(uint64_t step, uint64_t every) { return every && step % every == 0; }

/* TensorBoard's file has nothing that metrics.jsonl has not: where it cannot be written the run goes on without it. */
static void write_events(pl_session *s, const pl_metric *values, size_t count)
{
    pl_error why;
    char text[PL_ERROR_TEXT_BYTES];
    if (pl_tensorboard_write(&s->tensorboard, pl_session_wall_seconds(), s->step, values, count, &why) == PL_OK) return;
    pl_tensorboard_close(&s->tensorboard);
    snprintf(text, sizeof text, "%.900s; the run goes on without events for TensorBoard", why.text);
    pl_session_warn(s, text);
}

/* A line that metrics.jsonl has no room for does not fail at once: what the step has still to do is done, then the run
 * stops with its state saved (stop_without_metrics). */
static pl_status write_metrics(pl_session *s, const pl_metric *values, size_t count, pl_error *err)
{
    if (!s->writes_checkpoints || s->metrics_lost.status != PL_OK) return PL_OK;
    pl_status status = pl_metrics_write(&s->metrics, s->step, values, count, err);
    if (status == PL_E_STORAGE) {
        s->metrics_lost = *err;
        pl_error_clear(err);
        return PL_OK;
    }
    if (status == PL_OK && s->tensorboard.is_open) write_events(s, values, count);
    return status;
}

/* Since the last report; a clock that stands still tells no rate. */
static double rate_at(const pl_session *s, double now)
{
    return now > s->reported_at ? (double)(s->items_seen - s->reported_items) / (now - s->reported_at) : NAN;
}

static pl_status report_step(pl_session *s, double loss, double lr, pl_error *err)
{
    double now = pl_run_now(), rate = rate_at(s, now);
    const pl_metric line[] = {{"epoch", pl_session_epoch(s)},
                              {s->words->items, (double)s->items_seen},
                              {"loss", loss},
                              {"lr", lr},
                              {s->rate_key, rate},
                              {"seconds", now - s->committed_at},
                              {"loss_scale", s->loss_scale ? (double)*s->loss_scale : 1},
                              {"skipped_steps", s->loss_scale ? (double)*s->skipped_steps : 0}};
    size_t count = sizeof line / sizeof *line;
    s->reported_at = now;
    s->reported_items = s->items_seen;
    PL_TRY(write_metrics(s, line, s->loss_scale ? count : count - 2, err));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_STEP, .loss = loss, .lr = lr, .items_per_second = rate});
    return PL_OK;
}

static void begin_stream(pl_session *s) { pl_ring_begin(s->ring, PL_PART_TRAIN, s->step, s->settings->steps); }

/* ---- numbers that are not finite ---- */

/* PL_E_DIVERGED: what is not finite, and what there is to go on from. */
static pl_status fail_diverged(const pl_session *s, uint64_t step, const char *what, pl_error *err)
{
    char from[96] = "there is no checkpoint yet: start again";
    if (s->saved_step != UINT64_MAX)
        snprintf(from, sizeof from, "the last checkpoint, of step %llu, is unchanged: resume from it",
                 (unsigned long long)s->saved_step);
    return pl_fail(
        err, PL_E_DIVERGED,
        "%s is no longer finite at step %llu (learning rate %g); %s with a lower train.learning_rate or with "
        "train.grad_clip%s",
        what, (unsigned long long)step, s->last_lr, from, s->loss_scale ? ", or with train.mixed_precision: off" : "");
}

/* The loss of the first step is that of no update: a smaller learning rate would not help. */
static pl_status fail_loss(const pl_session *s, pl_error *err)
{
    if (s->step > 0) return fail_diverged(s, s->step + 1, "the loss", err);
    return pl_fail(
        err, PL_E_DIVERGED,
        "the loss is not finite at step 1, before any update: the weights that it begins with are too large, or "
        "too large for 16 bits; give others, or take train.mixed_precision: off");
}

/* The loss of a step is that of the weights before its update. What the update made of them is seen here, so that no
 * checkpoint ever holds a number that is not finite. */
static pl_status check_state(const pl_session *s, pl_error *err)
{
    const pl_st_list *lists[] = {&s->spec.model, &s->spec.state};
    char what[96];
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            const pl_st_entry *e = &lists[k]->entries[i];
            if (pl_finite_tensor(e)) continue;
            snprintf(what, sizeof what, "%.80s", e->name);
            return fail_diverged(s, s->step, what, err);
        }
    return PL_OK;
}

static pl_status save(pl_session *s, pl_error *err)
{
    if (!s->writes_checkpoints || s->saved_step == s->step) return PL_OK;
    const double began = pl_run_now();
    PL_TRY(check_state(s, err));
    PL_TRY(pl_session_save(s, err));
    pl_session_spend(s, PL_SPENT_SAVING, began);
    return PL_OK;
}

/* ---- steps ---- */

static pl_status one_step(pl_session *s, const training *t, double *loss, double *lr, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    uint64_t counted = pl_session_counted(s, PL_PART_TRAIN, s->step);
    double began = pl_run_now();
    *lr = s->last_lr = pl_lr_at(&r->lr, &t->plateau, s->step);
    pl_session_set_real(s, PL_INPUT_LR, (float)*lr);
    pl_session_set_step(s, s->step, counted);
    s->part = 0;
    s->parts = pl_program_count_trips(s->program, t->program);
    PL_TRY(pl_session_run_program(s, t->program, false, err));
    *loss = counted ? *t->loss / (t->is_mean ? 1 : (double)counted) : 0;
    if (!isfinite(*loss)) return fail_loss(s, err);
    s->last_loss = *loss;
    s->step++;
    s->part = 0;
    s->items_seen += counted;
    if (s->steps_timed == 1) s->faults_at_step_2 = pl_process_count_faults().minor;
    double ended = pl_run_now();
    s->step_seconds[s->steps_timed++ % PL_SESSION_STEPS_KEPT] = ended - began;
    pl_session_spend(s, PL_SPENT_STEPS, began);
    s->last_rate = rate_at(s, ended);
    if (s->steps_timed == 1) s->ticked_at = 0; /* the first loss is told at once */
    pl_session_tick(s, ended);
    return PL_OK;
}

/* The loss, what the system reads off it, and the best so far. */
static pl_status write_validation(pl_session *s, double loss, double best, pl_error *err)
{
    pl_loss_metric of[PL_LOSS_METRICS_MAX];
    pl_metric line[PL_LOSS_METRICS_MAX + 2] = {{"validation_loss", loss}};
    size_t count = 1, metrics = pl_session_find_metrics(s, loss, of);
    for (size_t i = 0; i < metrics; i++)
        if (of[i].uses & PL_METRIC_IN_FILE) line[count++] = (pl_metric){of[i].key, of[i].value};
    line[count++] = (pl_metric){"best_validation_loss", best};
    return write_metrics(s, line, count, err);
}

static pl_status evaluate(pl_session *s, training *t, pl_error *err)
{
    double loss, paused = pl_run_now();
    uint64_t items;
    pl_status status = pl_evaluate(s, s->settings->eval_batches, &loss, &items, err);
    pl_session_spend(s, PL_SPENT_EVALUATING, paused);
    if (status == PL_E_DIVERGED) return fail_diverged(s, s->step, "the validation loss", err);
    if (status != PL_OK) return status;
    pl_plateau_update(&t->plateau, &s->settings->lr, loss);
    note_early(t, s->settings, loss);
    bool best = !t->has_best || !(loss >= t->best_loss);
    if (best) t->has_best = true, t->best_loss = loss, t->best_step = s->step;
    PL_TRY(write_validation(s, loss, t->best_loss, err));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_EVALUATED, .loss = loss, .best_loss = t->best_loss});
    if (best && s->settings->keep_best) PL_TRY(save(s, err));
    s->reported_at += pl_run_now() - paused;
    return PL_OK;
}

/* What the system has to show of the weights as they are. */
static pl_status show(pl_session *s, pl_error *err)
{
    double paused = pl_run_now();
    for (size_t i = 1; i < s->jobs.count; i++)
        if (s->jobs.job[i] != &pl_job_evaluate) PL_TRY(pl_session_run_job(s, s->jobs.job[i], err));
    pl_session_spend(s, PL_SPENT_SHOWING, paused);
    s->reported_at += pl_run_now() - paused;
    return PL_OK;
}

/* What comes between two steps. */
static pl_status between_steps(pl_session *s, training *t, double loss, double lr, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    const bool last = s->step == r->steps, has_part = pl_session_job_state(s, &pl_job_evaluate) != NULL,
               evaluates = has_part && (due(s->step, r->eval_every) || (last && r->eval_every));
    if (due(s->step, r->log_every) || last) PL_TRY(report_step(s, loss, lr, err));
    if (due(s->step, r->sample_every))
        PL_TRY(show(s, err)); /* before the best checkpoint: its lines are of this step */
    if (evaluates) PL_TRY(evaluate(s, t, err));
    if (due(s->step, r->checkpoint_every) || is_complete(s, t)) PL_TRY(save(s, err));
    if (evaluates && !last) begin_stream(s);
    return PL_OK;
}

/* metrics.jsonl is what the run has to show, so it does not go on without; but no step that was made is lost. */
static pl_status stop_without_metrics(pl_session *s, pl_error *err)
{
    pl_error why;
    unsigned long long step = s->step;
    if (save(s, &why) != PL_OK)
        return pl_fail(err, why.status, "%.450s; and step %llu could not be saved: %.450s", s->metrics_lost.text, step,
                       why.text);
    return pl_fail(err, PL_E_STORAGE,
                   "%.700s; step %llu is saved, its line of metrics is lost: make room and continue with `run.resume`",
                   s->metrics_lost.text, step);
}

pl_status pl_train_steps(pl_session *s, uint64_t count, double *loss, pl_error *err)
{
    double lr;
    const training *t = pl_session_job_state(s, &pl_job_train);
    if (!t) return pl_fail(err, PL_E_USAGE, "this plan is not for training");
    pl_ring_begin(s->ring, PL_PART_TRAIN, s->step, s->step + count);
    for (uint64_t i = 0; i < count; i++) PL_TRY(one_step(s, t, loss, &lr, err));
    return PL_OK;
}

static pl_status open_train(pl_session *s, void *state, pl_error *err)
{
    training *t = state;
    pl_plateau_init(&t->plateau);
    t->early_best = INFINITY;
    if (!s->o.data->source)
        return pl_fail(err, PL_E_DATA, "the plan trains, but there is no data to train on; plan again");
    PL_TRY(pl_session_find_program(s, "train", &t->program, err));
    t->is_mean = pl_program_has_mean_loss(s->o.plan->graph, t->program);
    return pl_session_find_loss(s, t->program, &t->loss, err);
}

static pl_status run_train(pl_session *s, void *state, pl_error *err)
{
    training *t = state;
    if (s->o.data->has_less) pl_session_warn(s, s->o.data->said);
    begin_stream(s);
    while (!is_complete(s, t)) {
        double loss, lr;
        if (pl_session_should_stop(s)) {
            PL_TRY(save(s, err));
            pl_session_tell(s, (pl_event){.kind = PL_EVENT_STOPPED});
            return pl_fail(err, PL_E_STOPPED, "stopped after step %llu of %llu; continue with `run.resume`",
                           (unsigned long long)s->step, (unsigned long long)s->settings->steps);
        }
        PL_TRY(one_step(s, t, &loss, &lr, err));
        PL_TRY(between_steps(s, t, loss, lr, err));
        if (s->metrics_lost.status != PL_OK) return stop_without_metrics(s, err);
    }
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_FINISHED, .best_loss = t->best_loss});
    return PL_OK;
}

/* ---- in the records of checkpoints ---- */

enum { PLATEAU_BEST, PLATEAU_SCALE, PLATEAU_BAD, SKIPPED_STEPS, EARLY_BEST, EARLY_BAD, COMPLETE };
static const char skipped_steps[] = "skipped_steps";

static void note(const pl_session *s, const void *state, double counter[PL_JOB_COUNTERS_MAX], pl_record *r)
{
    const training *t = state;
    counter[PLATEAU_BEST] = t->plateau.best;
    counter[PLATEAU_SCALE] = t->plateau.scale;
    counter[PLATEAU_BAD] = (double)t->plateau.bad;
    counter[SKIPPED_STEPS] = s->skipped_steps ? (double)*s->skipped_steps : 0;
    counter[EARLY_BEST] = t->early_best;
    counter[EARLY_BAD] = (double)t->early_bad;
    counter[COMPLETE] = is_complete(s, t);
    r->has_best = t->has_best;
    r->best_value = t->best_loss;
    r->best_step = t->best_step;
}

static pl_status check_counters(const pl_saved *saved, pl_error *err)
{
    const double steps = (double)saved->record->step;
    PL_TRY(pl_session_check_counter(saved, "plateau_bad", 0, 0, 0x1p53, err));
    PL_TRY(pl_session_check_counter(saved, skipped_steps, 0, 0, steps < INT32_MAX ? steps : INT32_MAX, err));
    PL_TRY(pl_session_check_counter(saved, "early_bad", 0, 0, 0x1p53, err));
    return pl_session_check_counter(saved, "plateau_scale", 1, 0, 1, err);
}

static pl_status take_up(pl_session *s, void *state, const pl_saved *saved, pl_error *err)
{
    training *t = state;
    const pl_record *r = saved->record;
    PL_TRY(check_counters(saved, err));
    t->has_best = r->has_best;
    t->best_loss = r->best_value;
    t->best_step = r->best_step;
    t->plateau.best = pl_record_counter_value(r, "plateau_best", INFINITY);
    if (isnan(t->plateau.best)) t->plateau.best = INFINITY;
    t->plateau.scale = pl_record_counter_value(r, "plateau_scale", 1);
    t->plateau.bad = (uint64_t)pl_record_counter_value(r, "plateau_bad", 0);
    t->early_best = pl_record_counter_value(r, "early_best", INFINITY);
    if (isnan(t->early_best)) t->early_best = INFINITY;
    t->early_bad = (uint64_t)pl_record_counter_value(r, "early_bad", 0);
    if (s->skipped_steps) *s->skipped_steps = (int32_t)pl_record_counter_value(r, skipped_steps, 0);
    return PL_OK;
}

const pl_job pl_job_train = {.program = {"init", "train"},
                             .state_bytes = sizeof(training),
                             .open = open_train,
                             .run = run_train,
                             .best_metric = "validation_loss",
                             .counter = {[PLATEAU_BEST] = "plateau_best",
                                         [PLATEAU_SCALE] = "plateau_scale",
                                         [PLATEAU_BAD] = "plateau_bad",
                                         [SKIPPED_STEPS] = skipped_steps,
                                         [EARLY_BEST] = "early_best",
                                         [EARLY_BAD] = "early_bad",
                                         [COMPLETE] = PL_COUNTER_COMPLETE},
                             .note = note,
                             .take_up = take_up};
