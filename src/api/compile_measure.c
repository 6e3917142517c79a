/* Kernels are measured while the search asks for times. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/choice.h"
#include "api/compiler.h"
#include "base/philox.h"
#include "config/schema.h"
#include "ir/properties.h"
#include "run/threads.h"

#define SMALL_SHARE 0.01
/* The most scratch memory, however much is free: a plan that holds more is measured with parts of its kernels. */
#define BYTES_MORE_MAX (UINT64_C(1) << 30)
enum { CANDIDATE_SECONDS_TENTHS = 13 }; /* calibration time of one candidate; mostly the first one fits */

/* Asks for the team before anything computes. */
static pl_status ask_team(pl_compiler *c, pl_error *err)
{
    if (c->team_wanted) PL_TRY(pl_threads_probe(c->team_wanted, 0, err));
    c->team_wanted = 0;
    return PL_OK;
}

/* In a small container there may be no room to measure: then times are estimated, and what fits runs all the same. */
static pl_status may_lack_room(pl_status status, const pl_error *why, pl_error *err)
{
    if (status == PL_E_NOMEM && pl_process_fence_left() != UINT64_MAX) return PL_OK;
    if (status != PL_OK) *err = *why;
    return status;
}

static pl_status measure(void *context, const pl_graph *g, pl_error *err)
{
    pl_compiler *c = context;
    pl_error why = {0};
    size_t missing = 0;
    if (c->team_wanted) PL_TRY(pl_calibration_count_missing(c->calibration, g, &missing, err));
    if (missing) PL_TRY(ask_team(c, err));
    return may_lack_room(pl_calibration_measure(c->calibration, g, &why), &why, err);
}

static pl_status find_rates(pl_compiler *c, pl_error *err)
{
    pl_error why = {0};
    return may_lack_room(pl_calibration_find_rates(c->calibration, c->graph, &why), &why, err);
}

static void tell_calibration(void *context, size_t done, size_t total, double seconds)
{
    pl_told *t = context;
    (void)seconds;
    if (t->progress) (void)t->progress(t->context, "measuring kernels", done, total);
}

/* Takes from a config what decides which kernels a search asks for: not a training's length, rates, folder or
 * reports. */
static void take_job(pl_config *job, const pl_config *given, bool trains)
{
    const pl_config_train *from = &given->train;
    pl_config_train *to = &job->train;
    job->model = given->model;
    job->memory = given->memory;
    job->fit = given->fit;
    job->run.isa = given->run.isa;
    if (!trains) job->run.precision = given->run.precision;
    to->batch_size = pl_config_batch(given); /* the kernels are those of the product */
    to->optimizer = from->optimizer;
    to->grad_clip = from->grad_clip;
    const uint32_t decides = PL_CONFIG_FLAG_MODEL | (trains ? 0 : PL_CONFIG_FLAG_NUMERICS);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->flags & decides) memcpy((char *)job + key->offset, (const char *)given + key->offset, key->bytes);
    pl_choice_copy(given, job);
}

/* Rounds down by an eighth at most: free memory is never twice the same to the byte, and about as much asks for about
 * the same kernels. */
static uint64_t coarse(uint64_t bytes)
{
    uint64_t step = 1;
    while (bytes / step >= 16) step *= 2;
    return bytes / step * step;
}

/* Every command of a config is to find what the first one measured; but a search for a front looks at more, and what
 * the config leaves to the machine (threads, instruction set, budget) counts with the value it got here. */
static pl_status name_job(pl_compiler *c, const pl_config *given, const pl_compile_options *how, pl_error *err)
{
    const pl_fit_options *o = &c->fit;
    const pl_team *team = &o->plan.team;
    pl_str text = {0};
    pl_config *job = pl_config_create();
    if (!job) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the config");
    take_job(job, given, pl_command_does(c->command, PL_USES_UPDATE));
    pl_config_print_yaml(job, &text);
    pl_config_destroy(job);
    for (uint32_t i = 0; i < c->data->extents.count; i++)
        pl_str_printf(&text, "%s %" PRIu64 "\n", c->data->extents.fact[i].name, c->data->extents.fact[i].value);
    pl_str_printf(&text, "team %d %s\n", team->threads, pl_isa_name(team->isa));
    if (given->memory.budget == PL_CONFIG_BYTES_AUTO)
        pl_str_printf(&text, "room %" PRIu64 "\n", coarse(o->budget_bytes));
    if (text.failed) return pl_str_deinit(&text), pl_fail(err, PL_E_NOMEM, "no memory for a copy of the config");
    snprintf(c->job, sizeof c->job, "%s %016" PRIx64,
             how->brief      ? "look"
             : how->survey   ? "work"
             : o->everything ? "fit"
                             : "plan",
             pl_stream_id(pl_str_text(&text)));
    pl_str_deinit(&text);
    return PL_OK;
}

/* A search for the front asks for all that a plan of the same config asks for, and more. */
static bool is_finished(const pl_compiler *c)
{
    char front[sizeof c->job + 4];
    snprintf(front, sizeof front, "fit %s", c->job + strcspn(c->job, " ") + 1);
    return pl_calibration_is_finished(c->calibration, c->job) || pl_calibration_is_finished(c->calibration, front);
}

double pl_compiler_distance(const pl_compiler *c, const pl_graph *g)
{
    const pl_id searched = pl_fit_find_searched(g, &c->fit);
    double all = 0, farthest = 0;
    for (size_t i = 0; i < g->node_count; i++)
        if (pl_region_program(g, g->node[i].region) == searched) all += pl_node_work(g, &g->node[i]);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const double distance = n->dead ? 0 : pl_calibration_distance(c->calibration, g, n);
        const bool counts = isinf(distance) || pl_node_work(g, n) > SMALL_SHARE * all;
        if (counts && distance > farthest) farthest = distance;
    }
    return farthest;
}

pl_status pl_compiler_keep_calibration(pl_compiler *c, pl_error *err)
{
    if (!c->measured) PL_TRY(pl_calibration_finish(c->calibration, c->job, err));
    PL_TRY(pl_calibration_save(c->calibration, err));
    c->news = pl_calibration_has_news(c->calibration);
    return PL_OK;
}

pl_status pl_compiler_open_calibration(pl_compiler *c, const pl_config *given, const pl_compile_options *how,
                                       pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const char *folder = how->cache_folder;
    pl_fit_options *o = &c->fit;
    pl_error ignored = {0};
    bool kept = folder && pl_folder_create(folder, &ignored) == PL_OK;
    if (kept) PL_TRY(pl_calibration_path(path, sizeof path, folder, err));
    const uint64_t stacks = pl_threads_missing_bytes(o->plan.team.threads), left = pl_process_fence_left();
    uint64_t room = left > stacks ? (left - stacks) / 2 : 0; /* the rest is for what plans */
    bool little = room < PL_CALIBRATION_BYTES_MAX;
    uint64_t more = c->machine.available_bytes / 4; /* where one kernel's operands are larger than that */
    if (more > room) more = room;
    if (more > o->budget_bytes / 2) more = o->budget_bytes / 2;
    if (more > BYTES_MORE_MAX) more = BYTES_MORE_MAX;
    pl_calibration_options co = {.team = o->plan.team,
                                 .huge_pages = o->given.huge_pages && !little,
                                 .bytes_max = little ? room + 1 : 0,
                                 .bytes_more = more,
                                 .seconds_max = how->brief ? PL_BRIEF_SECONDS : CANDIDATE_SECONDS_TENTHS / 10.0,
                                 .total_seconds_max = how->survey  ? PL_SURVEY_SECONDS
                                                      : how->brief ? 10 * PL_BRIEF_SECONDS
                                                                   : 0,
                                 .near_distance = how->survey ? PL_SURVEY_NEAR : 0,
                                 .brief = how->brief,
                                 .progress = tell_calibration,
                                 .progress_context = &c->told};
    PL_TRY(pl_calibration_open(kept ? path : NULL, &co, &c->calibration, err));
    c->team_wanted = o->plan.team.threads;
    PL_TRY(name_job(c, given, how, err));
    if (pl_calibration_will_compute(c->calibration, c->graph)) PL_TRY(ask_team(c, err));
    c->measured |= is_finished(c);
    if (!c->measured) pl_calibration_measure_busy_again(c->calibration);
    PL_TRY(find_rates(c, err));
    o->measure = c->measured ? NULL : measure;
    o->plan.cost = (pl_cost_model){pl_calibration_cost, pl_calibration_range, c->calibration};
    return PL_OK;
}
