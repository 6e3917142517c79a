/* The training loop. A step is a pure function of (weights, step): everything it needs is computed from the step's
 * number, so a run that was killed and resumed writes the same weights and the same lines. */
#include <math.h>
#include <time.h>

#include "run/session_impl.h"

static double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool due(uint64_t step, uint64_t every) { return every && step % every == 0; }

static pl_status write_metrics(pl_session *s, const pl_metric *values, size_t count, pl_error *err)
{
    if (!s->writes_checkpoints) return PL_OK;
    PL_TRY(pl_metrics_write(&s->metrics, s->step, values, count, err));
    return s->settings->tensorboard ? pl_tensorboard_write(&s->tensorboard, wall_seconds(), s->step, values, count, err)
                                    : PL_OK;
}

static pl_status report_step(pl_session *s, double loss, double lr, pl_error *err)
{
    double now = pl_run_now(), rate = (double)(s->tokens_seen - s->reported_tokens) / (now - s->reported_at);
    const pl_metric line[] = {{"epoch", (double)s->step / (double)s->train_sampler.steps_per_epoch},
                              {"tokens", (double)s->tokens_seen},
                              {"loss", loss},
                              {"lr", lr},
                              {"tokens_per_second", rate},
                              {"seconds", now - s->committed_at}};
    s->reported_at = now;
    s->reported_tokens = s->tokens_seen;
    PL_TRY(write_metrics(s, line, sizeof line / sizeof *line, err));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_STEP, .loss = loss, .lr = lr, .tokens_per_second = rate});
    return PL_OK;
}

static pl_status begin_stream(pl_session *s, pl_error *err)
{
    return pl_loader_begin(s->loader, &s->train_sampler, s->step, s->settings->steps, err);
}

static pl_status one_step(pl_session *s, double *loss, double *lr, pl_error *err)
{
    uint64_t counted = pl_sampler_step_tokens(&s->train_sampler, s->step);
    double began = pl_run_now();
    *lr = pl_lr_at(&s->settings->lr, &s->plateau, s->step);
    *s->lr = (float)*lr;
    *s->step_input = (int64_t)s->step + 1;
    *s->token_scale = counted ? 1.0f / (float)counted : 0;
    PL_TRY(pl_session_run_program(s, s->train, false, err));
    *loss = counted ? *s->train_loss / (double)counted : 0;
    if (!isfinite(*loss))
        return pl_fail(err, PL_E_DIVERGED,
                       "the loss is no longer finite at step %llu (learning rate %g); the last checkpoint is of step "
                       "%llu: resume from it with a lower train.learning_rate or with train.grad_clip",
                       (unsigned long long)s->step + 1, *lr,
                       (unsigned long long)(s->saved_step == UINT64_MAX ? 0 : s->saved_step));
    s->step++;
    s->tokens_seen += counted;
    if (s->steps_timed == 1) s->faults_at_step_2 = pl_process_count_faults().minor;
    s->step_seconds[s->steps_timed++ % PL_SESSION_STEPS_KEPT] = pl_run_now() - began;
    return PL_OK;
}

static pl_status evaluate(pl_session *s, pl_error *err)
{
    double loss, paused = pl_run_now();
    uint64_t tokens;
    PL_TRY(pl_session_evaluate(s, s->settings->eval_batches, &loss, &tokens, err));
    pl_plateau_update(&s->plateau, &s->settings->lr, loss);
    bool best = !s->has_best || loss < s->best_loss;
    if (best) s->has_best = true, s->best_loss = loss, s->best_step = s->step;
    const pl_metric line[] = {
        {"validation_loss", loss}, {"perplexity", exp(loss)}, {"best_validation_loss", s->best_loss}};
    PL_TRY(write_metrics(s, line, sizeof line / sizeof *line, err));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_EVALUATED, .loss = loss, .best_loss = s->best_loss});
    if (best && s->settings->keep_best) PL_TRY(pl_session_save(s, err));
    s->reported_at += pl_run_now() - paused;
    return PL_OK;
}

/* What comes between two steps. */
static pl_status between_steps(pl_session *s, double loss, double lr, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    bool last = s->step == r->steps, evaluates = s->has_validation && s->evaluate != PL_NONE &&
                                                 (due(s->step, r->eval_every) || (last && r->eval_every));
    bool samples = s->tokenizer && s->generate != PL_NONE && due(s->step, r->sample_every);
    if (due(s->step, r->log_every) || last) PL_TRY(report_step(s, loss, lr, err));
    if (evaluates) PL_TRY(evaluate(s, err));
    if (samples) {
        double paused = pl_run_now();
        PL_TRY(pl_session_generate(s, &r->sampling, err));
        s->reported_at += pl_run_now() - paused;
    }
    if (due(s->step, r->checkpoint_every) || last) PL_TRY(pl_session_save(s, err));
    return evaluates && !last ? begin_stream(s, err) : PL_OK;
}

pl_status pl_session_train(pl_session *s, pl_error *err)
{
    if (s->train == PL_NONE || !s->loader) return pl_fail(err, PL_E_USAGE, "this plan has no training program");
    PL_TRY(begin_stream(s, err));
    while (s->step < s->settings->steps) {
        double loss, lr;
        if (pl_session_should_stop(s)) {
            PL_TRY(pl_session_save(s, err));
            pl_session_tell(s, (pl_event){.kind = PL_EVENT_STOPPED});
            return pl_fail(err, PL_E_STOPPED, "stopped after step %llu of %llu; continue with --resume",
                           (unsigned long long)s->step, (unsigned long long)s->settings->steps);
        }
        PL_TRY(one_step(s, &loss, &lr, err));
        PL_TRY(between_steps(s, loss, lr, err));
    }
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_FINISHED, .best_loss = s->best_loss});
    return PL_OK;
}

pl_status pl_session_evaluate(pl_session *s, uint64_t batches, double *loss, uint64_t *tokens, pl_error *err)
{
    if (!s->has_validation || s->evaluate == PL_NONE)
        return pl_fail(err, PL_E_USAGE, "there is no validation part: set data.validation_fraction above 0");
    uint64_t steps = s->validation_sampler.steps_per_epoch;
    if (batches && batches < steps) steps = batches;
    double sum = 0;
    *tokens = 0;
    PL_TRY(pl_loader_begin(s->loader, &s->validation_sampler, 0, steps, err));
    for (uint64_t i = 0; i < steps; i++) {
        PL_TRY(pl_session_run_program(s, s->evaluate, false, err));
        sum += *s->evaluate_loss;
        *tokens += pl_sampler_step_tokens(&s->validation_sampler, i);
    }
    *loss = sum / (double)*tokens;
    return PL_OK;
}
