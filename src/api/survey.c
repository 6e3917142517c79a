/* Work in groups, looked over as a whole: each group's graph is built and placed quickly, and its time is predicted. A
 * few groups are measured, so that none is far from one that was; the kernels of the others follow from theirs
 * (calibrate/estimate.c). Nothing hangs on an order: who looks again finds the same, and measures nothing more. */
#include <math.h>

#include "api/api.h"
#include "api/compiler.h"
#include "base/alloc.h"
#include "ir/properties.h"

typedef struct survey {
    pl_compiler *c;
    pl_work *work;
    bool *far; /* [groups] from all that was measured */
} survey;

/* ---- a group ---- */

static pl_choice choice_of(const pl_compiler *c)
{
    pl_choice choice = c->fit.given;
    if (!choice.micro_batch) choice.micro_batch = 1; /* left open: the fewest bytes */
    return choice;
}

static pl_status make_graph(pl_compiler *c, size_t group, pl_error *err)
{
    pl_graph_destroy(c->graph);
    c->graph = NULL;
    PL_TRY(c->data->kind->choose(c->data, (uint32_t)group, err));
    return pl_compiler_make_graph(c, &c->graph, err);
}

static pl_status bind_group(pl_compiler *c, size_t group, pl_graph **bound, pl_error *err)
{
    const pl_choice choice = choice_of(c);
    PL_TRY(make_graph(c, group, err));
    return pl_fit_bind(c->graph, &c->fit, &choice, bound, err);
}

static const pl_duration unknown = {-1, -1, -1, 1, true};

/* False: how long one takes is not known. */
static bool add_runs(pl_duration *sum, pl_duration one, double runs)
{
    if (one.seconds < 0) return false;
    sum->seconds += runs * one.seconds;
    sum->low += runs * one.low;
    sum->high += runs * one.high;
    sum->busy = one.busy > sum->busy ? one.busy : sum->busy;
    sum->estimated |= one.estimated;
    return true;
}

pl_duration pl_compiler_predict(const pl_compiler *c, const pl_plan *p, uint32_t micro_batch)
{
    const pl_job *job = c->settings.jobs.job[0];
    pl_duration sum = {.busy = 1};
    if (!c->calibration || !job->count_runs) return unknown;
    /* One thread writes results between two runs, and the others sleep meanwhile. */
    const double seconds = pl_calibration_rates(c->calibration).wake_seconds;
    const pl_duration wake = {seconds, 0, 2 * seconds, 1, false};
    for (size_t k = 0; k < PL_JOB_PROGRAMS_MAX && job->program[k]; k++) {
        const pl_id program = pl_graph_find_program(p->graph, job->program[k]);
        if (program == PL_NONE) continue;
        const double runs = job->count_runs(c->data, micro_batch, k);
        if (!add_runs(&sum, pl_plan_program_time(p, program), runs)) return unknown;
        if (c->data->sink && k == job->repeated) (void)add_runs(&sum, wake, runs);
    }
    return sum;
}

/* Evaluations come after every so many steps and after the last one. */
static uint64_t count_due(uint64_t steps, uint64_t every) { return every ? (steps - 1) / every + 1 : 0; }

void pl_compiler_count_training(const pl_compiler *c, const pl_plan *p, pl_compiled *found)
{
    const pl_run_settings *r = &c->settings.run;
    const pl_id train = pl_graph_find_trained(p->graph), evaluate = pl_graph_find_program(p->graph, "evaluate");
    const bool evaluates = evaluate != PL_NONE && pl_data_has(c->data, PL_PART_VALIDATION) && r->steps;
    const uint64_t batches = evaluates ? c->data->source->steps_per_epoch[PL_PART_VALIDATION] : 0;
    found->steps = r->steps;
    found->epoch_steps = c->data->source ? c->data->source->steps_per_epoch[PL_PART_TRAIN] : 0;
    found->evaluations = evaluates ? count_due(r->steps, r->eval_every) : 0;
    found->patience = found->evaluations > r->early_patience ? r->early_patience : 0; /* the first is always better */
    found->checkpoints = r->steps && r->checkpoint_every ? count_due(r->steps, r->checkpoint_every) : 1;
    found->time = unknown;
    if (!c->calibration || train == PL_NONE) return;
    const uint64_t runs = r->eval_batches && r->eval_batches < batches ? r->eval_batches : batches;
    pl_duration sum = {.busy = 1};
    if (add_runs(&sum, pl_plan_program_time(p, train), (double)r->steps) &&
        (!found->evaluations || add_runs(&sum, pl_plan_program_time(p, evaluate), (double)(runs * found->evaluations))))
        found->time = sum;
}

static pl_status say_group(const pl_compiler *c, pl_work_group *g, pl_error *err)
{
    pl_str text = {0};
    c->data->kind->say_group(c->data, &text);
    if (text.failed) return pl_str_deinit(&text), pl_fail(err, PL_E_NOMEM, "no memory to name a shape");
    pl_free(g->text);
    g->text = pl_strdup(pl_str_text(&text));
    pl_str_deinit(&text);
    return g->text ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to name a shape");
}

static pl_status plan_group(survey *s, size_t i, pl_error *err)
{
    pl_compiler *c = s->c;
    pl_work_group *g = &s->work->group[i];
    const pl_choice choice = choice_of(c);
    pl_plan *plan;
    PL_TRY(make_graph(c, i, err));
    PL_TRY(pl_fit_candidate(c->graph, &c->fit, &choice, &plan, err));
    const pl_status predicted = pl_fit_predict_plan(&c->fit, &choice, plan, err);
    if (predicted != PL_OK) return pl_plan_destroy(plan), predicted;
    g->items = c->data->group_items;
    g->charged_bytes = pl_plan_charged_bytes(plan);
    const pl_duration time = pl_compiler_predict(c, plan, (uint32_t)choice.micro_batch);
    g->seconds = time.seconds, g->low = time.low, g->high = time.high;
    if (time.busy > s->work->busy) s->work->busy = time.busy;
    const double distance = c->calibration ? pl_compiler_distance(c, plan->graph) : 0;
    g->measured = c->calibration && distance == 0;
    s->far[i] = distance > PL_SURVEY_NEAR;
    pl_plan_destroy(plan);
    return say_group(c, g, err);
}

static void tell(const pl_compiler *c, const char *phase, size_t done, size_t total)
{
    if (c->told.progress) (void)c->told.progress(c->told.context, phase, done, total);
}

/* ---- all of them ---- */

static pl_status plan_groups(survey *s, pl_error *err)
{
    for (size_t i = 0; i < s->work->count; i++) {
        tell(s->c, "planning", i, s->work->count);
        PL_TRY(plan_group(s, i, err));
    }
    return PL_OK;
}

/* The bits of k in reverse, as a number below `count` where it is one: so a part of the groups lies between all others.
 */
static size_t spread_out(size_t k, unsigned bits)
{
    size_t reversed = 0;
    for (unsigned b = 0; b < bits; b++) reversed |= (k >> b & 1) << (bits - 1 - b);
    return reversed;
}

static pl_status measure_group(survey *s, size_t i, bool *news, pl_error *err)
{
    pl_compiler *c = s->c;
    pl_graph *bound;
    PL_TRY(bind_group(c, i, &bound, err));
    pl_status status = PL_OK;
    if (pl_compiler_distance(c, bound) > PL_SURVEY_NEAR) {
        *news = true;
        status = c->fit.measure(c->fit.context, bound, err);
    }
    pl_graph_destroy(bound);
    return status;
}

/* Where time for measuring is up, what lies between was measured first. */
static pl_status measure_groups(survey *s, bool *news, pl_error *err)
{
    unsigned bits = 0;
    const size_t count = s->work->count;
    while ((size_t)1 << bits < count) bits++;
    for (size_t k = 0; k >> bits == 0; k++) {
        const size_t i = spread_out(k, bits);
        if (i < count && s->far[i]) PL_TRY(measure_group(s, i, news, err));
    }
    return PL_OK;
}

static void add_up(const pl_compiler *c, pl_work *w)
{
    w->items = 0;
    w->seconds = w->low = w->high = 0;
    w->done = 0;
    w->limit_seconds = c->data->limit_seconds;
    _Static_assert(sizeof w->said == sizeof c->data->said, "one is copied to the other");
    memcpy(w->said, c->data->said, sizeof w->said);
    w->measured = w->largest = 0;
    for (size_t i = 0; i < w->count; i++) {
        const pl_work_group *g = &w->group[i];
        w->items += g->items;
        w->seconds = w->seconds < 0 || g->seconds < 0 ? -1 : w->seconds + g->seconds;
        w->low += g->low;
        w->high += g->high;
        w->measured += g->measured;
        if (g->charged_bytes > w->group[w->largest].charged_bytes) w->largest = i;
    }
    w->left_seconds = w->seconds;
    w->error = c->calibration ? pl_calibration_error(c->calibration) : -1;
}

static pl_status look_over(survey *s, pl_error *err)
{
    bool news = false;
    s->c->roughly = s->c->fit.plan.quick = true;
    PL_TRY(plan_groups(s, err));
    if (s->c->calibration && s->c->fit.measure) PL_TRY(measure_groups(s, &news, err));
    if (news) PL_TRY(plan_groups(s, err));
    if (s->c->calibration) PL_TRY(pl_compiler_keep_calibration(s->c, err));
    add_up(s->c, s->work);
    return PL_OK;
}

static pl_status survey_work(pl_compiler *c, pl_work **work, pl_error *err)
{
    survey s = {.c = c, .work = pl_alloc(1, sizeof *s.work)};
    const size_t count = c->data->groups;
    if (s.work) s.work->group = pl_alloc(count, sizeof *s.work->group);
    if (s.work && s.work->group) s.work->count = count;
    s.far = pl_alloc(count, sizeof *s.far);
    pl_status status = s.work && s.work->group && s.far
                           ? look_over(&s, err)
                           : pl_fail(err, PL_E_NOMEM, "no memory to look over %zu shapes", count);
    pl_free(s.far);
    if (status != PL_OK) pl_work_destroy(s.work), s.work = NULL;
    *work = s.work;
    return status;
}

static pl_status make_survey(const pl_config *config, const pl_compile_options *given, pl_work **work,
                             uint64_t *budget_bytes, pl_error *err)
{
    pl_compiler *c;
    pl_compile_options o = *given;
    *work = NULL;
    o.survey = true;
    pl_status status = pl_compiler_begin(config, &o, &c, err);
    if (status == PL_OK && c->data->groups) {
        status = pl_compiler_open_times(c, config, &o, err);
        if (status == PL_OK) status = survey_work(c, work, err);
        *budget_bytes = c->fit.budget_bytes;
        if (o.news) *o.news |= c->news;
    }
    pl_compiler_end(c);
    return status;
}

/* Which of them it was, before the sentence that says why. */
static pl_status name_group(const pl_work *w, size_t group, pl_status status, pl_error *err)
{
    if (status != PL_E_BUDGET || w->count == 1) return status;
    return pl_fail_prefix(err, status, "of %zu shapes that of %s", w->count, w->group[group].text);
}

/* Where there is one group, its plan knows more than a look did: how many samples are at once. */
static void take_plan(pl_work *w, const pl_plan *plan, const pl_compiled *found)
{
    w->group[0].charged_bytes = pl_plan_charged_bytes(plan);
    if (found->time.seconds < 0) return;
    w->seconds = w->left_seconds = w->group[0].seconds = found->time.seconds;
    w->low = w->group[0].low = found->time.low;
    w->high = w->group[0].high = found->time.high;
    w->busy = found->time.busy;
}

pl_status pl_work_add_training(pl_plan *plan, const pl_compiled *found, pl_error *err)
{
    pl_work *w = pl_alloc(1, sizeof *w);
    if (w) w->group = pl_alloc(1, sizeof *w->group);
    plan->work = w; /* freed with the plan */
    if (!w || !w->group) return pl_fail(err, PL_E_NOMEM, "no memory to look over the training");
    w->count = 1;
    w->trains = true;
    w->items = w->group->items = found->steps;
    w->group->charged_bytes = pl_plan_charged_bytes(plan);
    w->group->measured = found->measured;
    w->measured = found->measured;
    w->seconds = w->left_seconds = w->group->seconds = found->time.seconds;
    w->low = w->group->low = found->time.low;
    w->high = w->group->high = found->time.high;
    w->busy = found->time.busy;
    w->epoch_steps = found->epoch_steps;
    w->evaluations = found->evaluations;
    w->patience = found->patience;
    w->checkpoints = found->checkpoints;
    w->error = -1;
    return PL_OK;
}

pl_status pl_compile_largest(const pl_config *config, pl_compile_options *o, pl_fit_result *result, pl_plan **plan,
                             pl_error *err)
{
    pl_work *work;
    uint64_t budget_bytes;
    *plan = NULL;
    PL_TRY(make_survey(config, o, &work, &budget_bytes, err));
    if (!work) return pl_compile(config, o, result, plan, err);
    pl_compiled own;
    if (!o->found) o->found = &own;
    o->group = (uint32_t)work->largest + 1;
    pl_status status = pl_compile(config, o, result, plan, err);
    if (status == PL_OK && work->count == 1) take_plan(work, *plan, o->found);
    if (o->found == &own) o->found = NULL;
    if (status != PL_OK) return status = name_group(work, work->largest, status, err), pl_work_destroy(work), status;
    (*plan)->work = work;
    return PL_OK;
}

/* What was placed quickly may be too large only by that: then its own plan tells. */
static pl_status check_group(const pl_config *config, pl_command command, const pl_work *w, size_t group, pl_error *err)
{
    pl_plan *plan;
    pl_compile_options o = {.command = command, .unmeasured = true, .here = true, .group = (uint32_t)group + 1};
    pl_status status = name_group(w, group, pl_compile(config, &o, NULL, &plan, err), err);
    pl_plan_destroy(plan);
    return status;
}

pl_status pl_work_check(const pl_config *config, pl_command command, pl_error *err)
{
    pl_work *work;
    uint64_t budget_bytes;
    pl_compile_options o = {.command = command, .unmeasured = true, .here = true};
    PL_TRY(make_survey(config, &o, &work, &budget_bytes, err));
    if (!work) return PL_OK;
    pl_status status = check_group(config, command, work, work->largest, err);
    for (size_t i = 0; i < work->count && status == PL_OK; i++)
        if (i != work->largest && work->group[i].charged_bytes > budget_bytes)
            status = check_group(config, command, work, i, err);
    pl_work_destroy(work);
    return status;
}
