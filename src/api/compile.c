/* From a config to a plan: the whole pipeline. pl_compile is its stages in their order; each has a file beside this one
 * (compiler.h). */
#include <inttypes.h>

#include "api/api.h"
#include "api/compile.h"
#include "api/compiler.h"
#include "base/alloc.h"

/* A budget that nobody gave as a size is explained where it is too small. */
static pl_status explain_budget(const pl_compiler *c, pl_status status, pl_error *err)
{
    if (status == PL_E_BUDGET && c->budget[0]) pl_error_append(err, "; the budget is %s", c->budget);
    return status;
}

/* Where memory to plan is short the kernels' times may be what took it. */
static void name_table(const pl_compiler *c, pl_error *err)
{
    if (!c->calibration || !pl_calibration_file(c->calibration)[0] || pl_calibration_count(c->calibration) == 0) return;
    pl_error_append(err, "; %" PRIu64 " bytes hold the kernels' times of %.300s, a file that may be removed",
                    pl_calibration_held_bytes(c->calibration), pl_calibration_file(c->calibration));
}

static pl_status check_state(const pl_compiler *c, const pl_fit_options *o, pl_error *err)
{
    pl_room room = {.bytes = o->budget_bytes, .words = "the budget of", .floor_bytes = o->floor_bytes};
    return pl_room_check_state(c->config, c->command, &c->data->extents, &room, err);
}

pl_status pl_compile(const pl_config *config, const pl_compile_options *o, pl_fit_result *result, pl_plan **plan,
                     pl_error *err)
{
    pl_status status = PL_OK;
    pl_graph *graph = NULL;
    pl_fit_options fit;
    const pl_command command = o->command;
    pl_fit_result own = {0};
    if (!result) result = &own;
    *result = (pl_fit_result){.chosen = PL_FIT_NONE, .least = PL_FIT_NONE, .cheapest = PL_FIT_NONE};
    *plan = NULL;
    pl_compiler *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to plan");
    c->config = config;
    c->command = command;
    c->measured = o->measured;
    c->told = (pl_told){o->progress, o->context};
    PL_TRY_DONE(pl_config_check(config, err));
    PL_TRY_DONE(pl_compiler_go_on(c, err));
    PL_TRY_DONE(pl_machine_read("", &c->machine, err));
    PL_TRY_DONE(pl_system_of(c->config)->open(c->config, command, PL_DATA_FOR_PLAN, &c->data, err));
    PL_TRY_DONE(pl_settings_fill(c->config, command, c->data, &c->settings, err));
    PL_TRY_DONE(pl_compiler_reserve_words(c, config, err));
    PL_TRY_DONE(pl_compiler_find_options(c, &fit, err));
    fit.everything = o->everything;
    if (o->steps) *o->steps = c->settings.run.steps;
    if (fit.budget_bytes != PL_FIT_NO_BUDGET && !o->everything) PL_TRY_DONE(check_state(c, &fit, err));
    PL_TRY_DONE(pl_compiler_check_work(c, err));
    PL_TRY_DONE(pl_compiler_make_graph(c, &graph, err));
    if (pl_command_does(command, PL_USES_UPDATE) && !o->unmeasured)
        PL_TRY_DONE(pl_compiler_open_calibration(c, config, &fit, o->cache_folder, err));
    PL_TRY_DONE(pl_compiler_dump_graph(c, PL_DUMP_GRAD, "grad", graph, err));
    PL_TRY_DONE(explain_budget(c, pl_fit_find(graph, &fit, result, plan, err), err));
    PL_TRY_DONE(pl_compiler_keep_choice(c, &result->point[result->chosen].choice, *plan, err));
    PL_TRY_DONE(pl_compiler_dump_plan(c, *plan, err));
    if (c->calibration) PL_TRY_DONE(pl_compiler_keep_calibration(c, err));
done:
    if (status == PL_E_NOMEM) name_table(c, err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    pl_fit_result_deinit(&own);
    pl_graph_destroy(graph);
    pl_calibration_close(c->calibration);
    pl_data_close(c->data);
    pl_settings_deinit(&c->settings);
    pl_config_destroy(c->decided);
    pl_free(c);
    return status;
}

pl_status pl_plan_make(const pl_config *config, pl_command command, const char *cache_folder, pl_progress progress,
                       void *context, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {.command = command, .cache_folder = cache_folder, .progress = progress, .context = context};
    return pl_compile(config, &o, NULL, plan, err);
}

pl_status pl_plan_make_unmeasured(const pl_config *config, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {.command = PL_COMMAND_TRAIN, .unmeasured = true};
    return pl_compile(config, &o, NULL, plan, err);
}
