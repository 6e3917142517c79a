/* From a config to a plan: the whole road on one screen, in `compile` below.
 *
 *     config ─> data ─> model ─> grad ─> for each choice: rewrite ─> bind ─> stage ─> plan ─> account ─> the best one
 *
 * A stage is a function in a file next to this one (compiler.h). What is done for each choice stands in
 * fit/candidate.c, which calls `stage` and `settle` (the account of the whole process) of compile_process.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/compile.h"
#include "api/compiler.h"
#include "base/alloc.h"
#include "base/machine_file.h"
#include "config/schema.h"
#include "run/trace.h"
#include "systems/files.h"
#include "systems/infer.h"

/* A budget that was not given as a size is explained where it is too small. */
static pl_status explain_budget(const pl_compiler *c, pl_status status, pl_error *err)
{
    if (status == PL_E_BUDGET && c->budget[0]) pl_error_append(err, "; the budget is %s", c->budget);
    return status;
}

/* Where memory for planning runs short, the kernels' times may have taken it. */
static void name_table(const pl_compiler *c, pl_error *err)
{
    if (!c->calibration || !pl_calibration_file(c->calibration)[0] || pl_calibration_count(c->calibration) == 0) return;
    pl_error_append(err, "; %" PRIu64 " bytes hold the kernel times from %.300s, a file that you may remove",
                    pl_calibration_held_bytes(c->calibration), pl_calibration_file(c->calibration));
}

static pl_status check_here(const pl_compiler *c, pl_error *err)
{
    char text[160];
    pl_machine_ceiling ceiling = pl_machine_find_ceiling(&c->machine);
    snprintf(text, sizeof text, "%s, which allows at most", ceiling.bound_by);
    return pl_room_check_state(c, &(pl_room){.bytes = ceiling.bytes, .words = text}, err);
}

static pl_status check_budget(const pl_compiler *c, const pl_fit_options *o, pl_error *err)
{
    pl_room room = {.bytes = o->budget_bytes, .words = "the budget of", .floor_bytes = o->floor_bytes};
    if (o->budget_bytes == PL_FIT_NO_BUDGET || o->everything) return PL_OK;
    return pl_room_check_state(c, &room, err);
}

/* ---- files that are made ready before planning ---- */

typedef struct readying {
    const pl_compiler *c;
    const pl_compile_options *o;
} readying;

/* One item in the caller's memory: no plan for files or for a calibration is smaller. Nobody reads its times. */
static pl_status refuse_before(void *context, pl_error *err)
{
    const readying *r = context;
    if (r->o->everything) return PL_OK;
    const pl_compile_options least = {.command = PL_COMMAND_INFER, .unmeasured = true, .here = r->o->here};
    pl_config *config = pl_config_copy(r->c->config);
    pl_plan *plan = NULL;
    if (!config) return pl_fail(err, PL_E_NOMEM, "no memory to plan");
    const char *const seeded = pl_system_is_seeded(config, r->o->command) ? "true" : "false";
    const char *const set[][2] = {{"infer.files", ""},
                                  {"infer.to", "none"},
                                  {"infer.npy", "none"},
                                  {"infer.batch", "1"},
                                  {"infer.seeded", seeded}};
    pl_status status = PL_OK;
    for (size_t i = 0; i < sizeof set / sizeof *set && status == PL_OK; i++)
        status = pl_config_set(config, set[i][0], set[i][1], "the first plan", err);
    if (status == PL_OK) status = pl_compile(config, &least, NULL, &plan, err);
    if (status == PL_E_BUDGET) pl_error_append(err, "; the files, which were not read yet, come on top of that");
    pl_plan_destroy(plan);
    pl_config_destroy(config);
    return status;
}

static bool tell_ready(void *context, uint64_t done, uint64_t of)
{
    const pl_told *t = &((const readying *)context)->c->told;
    return !t->progress || t->progress(t->context, "reading pictures and HDF5", done, of);
}

static pl_status open_files(pl_compiler *c, const pl_compile_options *o, pl_error *err)
{
    readying r = {c, o};
    const pl_staging_told told = {.before = refuse_before, .tell = tell_ready, .context = &r};
    return pl_open_files(c->config, c->command, NULL, &told, &c->data, err);
}

/* ---- data ---- */

static pl_status open_data(pl_compiler *c, const pl_compile_options *o, pl_error *err)
{
    c->data = o->data;
    c->data_lent = o->data != NULL;
    if (o->data) return PL_OK;
    if (pl_system_files(c->config, c->command)) return open_files(c, o, err);
    PL_TRY(pl_open_data(c->config, c->command, o->sizes ? PL_DATA_FOR_RUN : PL_DATA_FOR_PLAN, NULL, &c->data, err));
    return o->group ? c->data->kind->choose(c->data, o->group - 1, err) : PL_OK;
}

/* Kernels are measured, or their times looked up, where a prediction is of use. A repeated program that is about to run
 * does not wait for it, unless something is chosen by time. */
pl_status pl_compiler_open_times(pl_compiler *c, const pl_config *given, const pl_compile_options *o, pl_error *err)
{
    const bool trains = pl_command_does(c->command, PL_USES_UPDATE);
    if (o->unmeasured || pl_machine_described() || !(trains || c->fit.repeated)) return PL_OK;
    c->measured |= !trains && o->here && !pl_fit_is_open(&c->fit, PL_CHOICE_MICRO_BATCH);
    return pl_compiler_open_calibration(c, given, o, err);
}

/* What does not fit whatever is chosen is refused before anything deep is built. */
static pl_status refuse_at_once(const pl_compiler *c, const pl_compile_options *o, pl_error *err)
{
    if (o->here) PL_TRY(check_here(c, err));
    PL_TRY(check_budget(c, &c->fit, err));
    return pl_compiler_check_work(c, err);
}

/* Checks the trace's place before anything is made; the run makes its own folder, and no other. */
static pl_status check_trace(const pl_settings *s, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX] = ".";
    if (!s->run.trace_path) return PL_OK;
    PL_TRY(pl_trace_check(s->trace, err));
    const char *slash = strrchr(s->trace, '/');
    if (slash) snprintf(folder, sizeof folder, "%.*s", slash > s->trace ? (int)(slash - s->trace) : 1, s->trace);
    if (access(folder, F_OK) == 0 || errno != ENOENT || pl_files_are_one(folder, s->out)) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: the folder %.350s is not there; make it first", s->trace,
                   folder);
}

/* A model that asks to save memory gets that without a budget, too. */
static void save_memory(pl_compiler *c)
{
    const pl_family *family = pl_model_family(c->config);
    const uint32_t recompute = 1u << PL_CHOICE_RECOMPUTE;
    if (c->fit.budget_bytes != PL_FIT_NO_BUDGET || !(c->fit.open & recompute)) return;
    if (!family->saves_memory || !family->saves_memory(c->config)) return;
    c->fit.open &= ~recompute;
    c->fit.given.recompute = PL_RECOMPUTE_FULL;
}

pl_status pl_compiler_begin(const pl_config *given, const pl_compile_options *o, pl_compiler **compiler, pl_error *err)
{
    pl_compiler *c = *compiler = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to plan");
    c->config = given;
    c->command = o->command;
    c->measured = o->measured;
    c->brief = o->brief;
    c->told = (pl_told){o->progress, o->context};
    PL_TRY(pl_config_check(given, err));
    PL_TRY(pl_compiler_go_on(c, err));
    PL_TRY(pl_machine_planned(&c->machine, err));
    PL_TRY(open_data(c, o, err));
    PL_TRY(pl_settings_fill(c->config, c->command, c->data, &c->settings, err));
    PL_TRY(check_trace(&c->settings, err));
    PL_TRY(pl_compiler_reserve_words(c, given, err));
    PL_TRY(pl_compiler_find_options(c, &c->fit, err));
    c->fit.everything = o->everything;
    c->fit.quick = o->quick;
    if (!o->everything) save_memory(c);
    return PL_OK;
}

/* Steps that each take all samples of the batch once: a training's, or those of the repeated program. */
static uint64_t count_steps(const pl_compiler *c)
{
    const pl_job *job = c->settings.jobs.job[0];
    if (!c->fit.repeated) return c->settings.run.steps;
    return (uint64_t)job->count_runs(c->data, c->settings.run.batch, job->repeated);
}

static void tell_found(const pl_compiler *c, const pl_fit_result *result, const pl_plan *plan, pl_compiled *found)
{
    found->at_once = (uint32_t)result->point[result->chosen].choice.micro_batch;
    found->time = (pl_duration){-1, -1, -1, 1, true};
    if (c->fit.repeated) found->time = pl_compiler_predict(c, plan, found->at_once);
    if (pl_command_does(c->command, PL_USES_UPDATE)) pl_compiler_count_training(c, plan, found);
    found->measured = found->time.seconds >= 0 && pl_compiler_distance(c, plan->graph) == 0;
}

static pl_status compile(pl_compiler *c, const pl_config *given, const pl_compile_options *o, pl_fit_result *result,
                         pl_plan **plan, pl_error *err)
{
    if (o->steps) *o->steps = count_steps(c);
    PL_TRY(pl_compiler_count(c, &c->graph, err));
    PL_TRY(refuse_at_once(c, o, err));
    if (!c->graph) PL_TRY(pl_compiler_make_graph(c, &c->graph, err));
    PL_TRY(pl_session_check_weights(c->graph, c->data, err));
    PL_TRY(pl_compiler_open_times(c, given, o, err));
    PL_TRY(pl_compiler_dump_graph(c, PL_DUMP_GRAD, "grad", c->graph, err));
    PL_TRY(explain_budget(c, pl_fit_find(c->graph, &c->fit, result, plan, err), err));
    PL_TRY(pl_compiler_keep_choice(c, &result->point[result->chosen].choice, *plan, err));
    PL_TRY(pl_compiler_dump_plan(c, *plan, err));
    if (o->found) tell_found(c, result, *plan, o->found);
    if (!c->calibration) return PL_OK;
    (*plan)->rates = pl_calibration_rates(c->calibration);
    PL_TRY(pl_compiler_keep_calibration(c, err));
    if (o->news) *o->news |= c->news;
    return PL_OK;
}

void pl_compiler_end(pl_compiler *c)
{
    if (!c) return;
    pl_graph_destroy(c->graph);
    pl_calibration_close(c->calibration);
    if (!c->data_lent) pl_data_close(c->data);
    pl_settings_deinit(&c->settings);
    pl_config_destroy(c->decided);
    pl_free(c);
}

static pl_status compile_as_given(const pl_config *config, const pl_compile_options *o, pl_fit_result *result,
                                  pl_plan **plan, pl_error *err)
{
    pl_fit_result own = {0};
    if (!result) result = &own;
    *result = (pl_fit_result){.chosen = PL_FIT_NONE, .least = PL_FIT_NONE, .cheapest = PL_FIT_NONE};
    *plan = NULL;
    pl_compiler *c;
    pl_status status = pl_compiler_begin(config, o, &c, err);
    if (status == PL_OK) status = compile(c, config, o, result, plan, err);
    if (c && status == PL_E_NOMEM) name_table(c, err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    if (status == PL_OK && !c->data_lent) (*plan)->held = c->data->held, c->data->held = 0;
    pl_fit_result_deinit(&own);
    pl_compiler_end(c);
    return status;
}

/* The key with that tag where it is left to the planner, else NULL. */
static const pl_config_key *find_open(const pl_config *c, const char *tag, pl_command command)
{
    const pl_config_key *key = pl_config_find_for(c, tag);
    const bool is_read = key && pl_config_is_read(c, key, (pl_config_reader)(1u << command));
    return is_read && pl_config_is_default(c, key) ? key : NULL;
}

/* The same with so many tokens or sequences at once, which the plan's config then says. */
static pl_status compile_with(pl_config *config, const pl_config_key *key, int count, const pl_compile_options *o,
                              pl_fit_result *result, pl_plan **plan, pl_error *err)
{
    char value[16];
    snprintf(value, sizeof value, "%d", count);
    if (result) pl_fit_result_deinit(result); /* of the plan that did not fit */
    PL_TRY(pl_config_set(config, key->path, value, "the planner", err));
    return compile_as_given(config, o, result, plan, err);
}

pl_status pl_compile(const pl_config *config, const pl_compile_options *o, pl_fit_result *result, pl_plan **plan,
                     pl_error *err)
{
    enum { FIRST_TOKENS = 64, LAST_TOKENS = 8 };
    const pl_config_key *chunk = find_open(config, "<chunk>", o->command);
    const pl_config_key *several = find_open(config, "<sequences>", o->command);
    pl_status status = compile_as_given(config, o, result, plan, err);
    if (status != PL_E_BUDGET || (!chunk && !several)) return status;
    pl_config *smaller = pl_config_copy(config);
    if (!smaller) return pl_fail(err, PL_E_NOMEM, "no memory to plan for less at once");
    int sequences = 0, tokens = 0;
    for (int n = pl_config_sequences(config) / 2; several && status == PL_E_BUDGET && n >= 1; n /= 2)
        status = compile_with(smaller, several, sequences = n, o, result, plan, err);
    for (int n = o->quick ? LAST_TOKENS : FIRST_TOKENS; chunk && status == PL_E_BUDGET && n >= LAST_TOKENS; n /= 2)
        status = compile_with(smaller, chunk, tokens = n, o, result, plan, err);
    if (status == PL_OK) (*plan)->sequences = (uint32_t)sequences, (*plan)->chunk = (uint32_t)tokens;
    pl_config_destroy(smaller);
    return status;
}

/* A budget refused it, and there are keys that take less. */
static bool may_be_smaller(const pl_config *config, pl_command command)
{
    if (pl_command_does(command, PL_USES_RESULTS)) return true;
    return (pl_command_does(command, PL_USES_UPDATE) || pl_is_brought(config)) &&
           config->memory.budget != PL_CONFIG_BYTES_NONE;
}

static pl_status make_plan(const pl_config *config, const pl_compile_options *given, pl_plan **plan, pl_error *err)
{
    pl_compiled found = {0};
    pl_compile_options o = *given;
    o.found = &found;
    pl_status status = pl_compile_largest(config, &o, NULL, plan, err);
    if (status == PL_E_BUDGET && may_be_smaller(config, o.command)) return pl_advise_refused(config, &o, err);
    if (status == PL_OK && (*plan)->work) status = pl_advise(config, &o, &found, *plan, err);
    if (status == PL_OK && pl_command_does(o.command, PL_USES_UPDATE))
        status = pl_work_add_training(*plan, &found, err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    return status;
}

/* What was known at a decision must not depend on the order of measuring: the plan is made once more with all that was
 * measured on the way. So the same question, asked again without measuring, gets the same answer. */
static pl_status settle_plan(const pl_config *config, pl_compile_options *o, pl_plan **plan,
                             pl_status (*make)(const pl_config *, const pl_compile_options *, pl_plan **, pl_error *),
                             pl_error *err)
{
    bool news = false;
    o->news = &news;
    const pl_status status = make(config, o, plan, err);
    if (status != PL_OK || !news) return status;
    pl_plan_destroy(*plan);
    o->measured = true;
    return make(config, o, plan, err);
}

pl_status pl_plan_make(const pl_config *config, pl_command command, const char *cache_folder, pl_progress progress,
                       void *context, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {.command = command, .cache_folder = cache_folder, .progress = progress, .context = context};
    return settle_plan(config, &o, plan, make_plan, err);
}

static pl_status make_here(const pl_config *config, const pl_compile_options *o, pl_plan **plan, pl_error *err)
{
    const pl_status status = pl_compile(config, o, NULL, plan, err);
    const bool has_results = pl_command_does(o->command, PL_USES_RESULTS);
    if (status == PL_E_BUDGET && !has_results && may_be_smaller(config, o->command))
        return pl_advise_refused(config, o, err);
    return status;
}

pl_status pl_plan_make_here(const pl_config *config, pl_command command, const char *cache_folder, pl_progress progress,
                            void *context, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {
        .command = command, .cache_folder = cache_folder, .progress = progress, .context = context, .here = true};
    return settle_plan(config, &o, plan, make_here, err);
}

pl_status pl_plan_make_unmeasured(const pl_config *config, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {.command = PL_COMMAND_TRAIN, .unmeasured = true};
    return pl_compile(config, &o, NULL, plan, err);
}
