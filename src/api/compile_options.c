/* A config in fit's terms: what is given, what is left to the search, and the budget. */
#include <stdio.h>

#include "api/choice.h"
#include "api/compiler.h"
#include "api/narrow.h"
#include "base/size.h"
#include "base/units.h"
#include "run/threads.h"
#include "store/folder.h"

/* A config can only ask for what exists: the ranges are checked where it is read. */
_Static_assert((int)PL_ALLOW_OPTIMIZER_BF16 == (int)PL_FIT_ALLOW_OPTIMIZER_BF16 &&
                   (int)PL_ALLOW_OPTIMIZER_8BIT == (int)PL_FIT_ALLOW_OPTIMIZER_8BIT &&
                   (int)PL_ALLOW_BF16 == (int)PL_FIT_ALLOW_BF16 && (int)PL_ALLOW_FP16 == (int)PL_FIT_ALLOW_FP16 &&
                   (int)PL_ALLOW_FROZEN_BF16 == (int)PL_FIT_ALLOW_FROZEN_BF16 &&
                   (int)PL_ALLOW_FROZEN_FP16 == (int)PL_FIT_ALLOW_FROZEN_FP16 &&
                   (int)PL_ALLOW_SHARED_SUMS == (int)PL_FIT_ALLOW_SHARED_SUMS,
               "fit.allow");
_Static_assert((int)PL_CONFIG_THREADS_MAX == (int)PL_THREADS_MAX, "run.threads");

static pl_team team_of(const pl_compiler *c)
{
    int limit = pl_threads_limit(), most = c->machine.cores < limit ? c->machine.cores : limit;
    int threads = c->config->run.threads == PL_CONFIG_AUTO ? most : (int)c->config->run.threads;
    return (pl_team){.threads = threads, .isa = pl_config_find_isa(c->config)};
}

static void say_budget(const pl_machine_budget *b, char *text, size_t room)
{
    char all[32], reserve[32], left[32];
    snprintf(text, room, "%s (auto: %s by %s, less a reserve of %s for others)",
             pl_format_bytes(b->bytes, left, sizeof left), pl_format_bytes(b->room_bytes, all, sizeof all), b->bound_by,
             pl_format_bytes(b->reserve_bytes, reserve, sizeof reserve));
}

/* The files of this run, or of all the trainings that it is one of, that lie in memory. */
static uint64_t own_files_bytes(const pl_compiler *c)
{
    char folder[PL_FILE_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", c->settings.out);
    char *slash = strrchr(folder, '/');
    if (c->config->is_stage && slash) *slash = 0;
    return folder[0] && pl_command_does(c->command, PL_USES_UPDATE) ? pl_folder_memory_bytes(folder) : 0;
}

static pl_status find_budget(pl_compiler *c, uint64_t *bytes, pl_error *err)
{
    pl_machine_budget automatic;
    *bytes = c->config->memory.budget;
    if (*bytes == PL_CONFIG_BYTES_NONE) *bytes = PL_FIT_NO_BUDGET;
    if (*bytes != PL_CONFIG_BYTES_AUTO) return PL_OK;
    pl_machine machine = c->machine;
    /* Files that the plan counts; and what this process holds, since the runner takes its place: more than before, once
     * kernels were measured. */
    const uint64_t own = own_files_bytes(c) + machine.own_bytes;
    machine.available_bytes += own;
    if (machine.cgroup_room_bytes != PL_MACHINE_UNLIMITED) machine.cgroup_room_bytes += own;
    if (machine.cgroup_room_bytes > machine.cgroup_limit_bytes) machine.cgroup_room_bytes = machine.cgroup_limit_bytes;
    PL_TRY(pl_machine_auto_budget(&machine, &automatic, err));
    *bytes = automatic.bytes;
    say_budget(&automatic, c->budget, sizeof c->budget);
    return PL_OK;
}

static void tell_search(void *context, size_t done, size_t total)
{
    const pl_told *t = &((pl_compiler *)context)->told;
    if (t->progress) (void)t->progress(t->context, "planning", done, total);
}

/* For a repeated program: how much is done at once, where its data leave that open, and by how many threads. A training
 * may be cut as its config leaves it, unless its data say how much is at once. */
static uint32_t find_open(const pl_compiler *c, const pl_fit_options *o)
{
    const uint32_t at_once = 1u << PL_CHOICE_MICRO_BATCH, threads = 1u << PL_CHOICE_THREADS;
    const bool is_said = !c->data->source || c->data->source->at_once != 0;
    if (pl_command_does(c->command, PL_USES_UPDATE)) return is_said ? o->open & ~at_once : o->open;
    if (!o->repeated) return 0;
    return (is_said ? 0 : at_once) | (o->open & threads);
}

/* What the config decides and what it leaves open; only a training or a repeated program is searched. Without data
 * there is one sample. */
static void find_given(const pl_compiler *c, pl_fit_options *o)
{
    const pl_job *job = c->settings.jobs.job[0];
    pl_choice_read(c->config, pl_command_row_of(c->command)->uses, &o->given, &o->open);
    /* train.mixed_precision, which was read here, is for trainings; a model in use has run.precision */
    if (!pl_command_does(c->command, PL_USES_GRADIENT)) o->given.precision = PL_DTYPE_F32;
    if (pl_compiler_is_narrow(c)) o->given.precision = o->given.frozen = pl_narrow_dtype(c->config);
    if (job->count_runs) o->repeated = job->program[job->repeated];
    o->open = find_open(c, o);
    o->given.micro_batch = pl_command_does(c->command, PL_USES_DATA | PL_USES_FILES) ? c->settings.run.micro_batch : 1;
}

/* What the user allows and the data's weights can do. */
static uint32_t find_allowed(const pl_compiler *c)
{
    const uint32_t allow = c->config->fit.allow;
    return c->data->weights_exceed_f16 ? allow & ~(uint32_t)PL_FIT_ALLOW_FROZEN_FP16 : allow;
}

pl_status pl_compiler_find_options(pl_compiler *c, pl_fit_options *o, pl_error *err)
{
    pl_process_options process = pl_process_options_default();
    pl_room_find_less(c);
    process.parts = pl_model_family(c->config)->parts | pl_parts_of_isa(team_of(c).isa);
    process.thread_stack_reserved_bytes = pl_align_up(c->config->memory.thread_stack, PL_PAGE_BYTES);
    *o = (pl_fit_options){
        .plan = {.team = team_of(c), .process = process, .helper_threads = (int)pl_source_threads(c->data->source)},
        .words = c->settings.run.words,
        .batch = c->settings.run.batch,
        .instead = c->less[0] && pl_room_is_trained(c) ? c->less : NULL,
        .is_advised = pl_is_brought(c->config),
        .allow = find_allowed(c),
        .stage = pl_compiler_stage,
        .settle = pl_compiler_settle,
        .tell = tell_search,
        .context = c};
    find_given(c, o);
    PL_TRY(pl_compiler_find_floor(c, o, err));
    return find_budget(c, &o->budget_bytes, err);
}
