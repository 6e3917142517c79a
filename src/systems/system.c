#include "systems/system.h"

#include <math.h>
#include <string.h>

#include "config/schema.h"
#include "systems/infer.h"

static const pl_system *const rows[] = {
#define PL_SYSTEM_ROW(id, name) [PL_SYSTEM_##id] = &pl_system_##name,
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
};

#define PL_SYSTEM_ROW(id, name) [PL_SYSTEM_##id] = #name,
#define PL_ARCH_ROW(id, name, system)
static const char *const names[] = {
#include "config/systems.def"
};
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW

const pl_system *pl_system_of(const pl_config *c) { return rows[pl_config_system_of(c)]; }

const pl_words *pl_system_words(const pl_config *c)
{
    const pl_system *y = pl_system_of(c);
    const pl_words *own = pl_dataset_of_run(c)->words;
    return own ? own : y->words_of ? y->words_of(c) : &y->words;
}

const pl_dataset *pl_dataset_of(const pl_config *c, pl_command command)
{
    const pl_dataset *const *d = pl_system_of(c)->dataset;
    for (const pl_dataset *const *other = d; *other; other++)
        if ((*other)->is_meant && (*other)->is_meant(c, command)) return *other;
    return *d;
}

const pl_dataset *pl_dataset_of_run(const pl_config *c) { return pl_dataset_of(c, pl_system_first_command(c)); }

static bool is_record(const char *name)
{
    for (int i = 0; i < PL_SYSTEM_COUNT; i++)
        for (const pl_dataset *const *d = rows[i]->dataset; *d; d++)
            if ((*d)->record && strcmp((*d)->record, name) == 0) return true;
    return false;
}

static bool is_prepared(const void *head, size_t bytes)
{
    for (int i = 0; i < PL_SYSTEM_COUNT; i++)
        for (const pl_dataset *const *d = rows[i]->dataset; *d; d++)
            if ((*d)->magic && pl_run_head_begins(head, bytes, (*d)->magic)) return true;
    return false;
}

const pl_run_data pl_system_data = {.is_record = is_record, .is_prepared = is_prepared};

const pl_task *pl_task_of(const pl_config *c) { return pl_system_of(c)->task; }

const char *pl_system_name(const pl_config *c) { return names[pl_config_system_of(c)]; }

const pl_system *pl_system_named(const char *name)
{
    for (int i = 0; i < PL_SYSTEM_COUNT; i++)
        if (strcmp(names[i], name) == 0) return rows[i];
    return NULL;
}

uint32_t pl_systems_with(pl_command command)
{
    uint32_t systems = 0;
    for (int i = 0; i < PL_SYSTEM_COUNT; i++) systems |= (uint32_t)(rows[i]->task->job[command] != NULL) << i;
    return systems;
}

/* A config that names one of its trainings is checked as that one, whatever it says about the others. */
static pl_status check_model(const pl_config *c, pl_error *err)
{
    pl_stage_row row;
    if (!pl_system_named_stage(c)[0] || !pl_system_find_stage(c, 0, &row)) return pl_model_check(c, err);
    pl_config *taken = pl_config_copy(c);
    if (!taken) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = pl_system_take_stage(taken, &row, err);
    if (status == PL_OK) status = pl_model_check(taken, err);
    pl_config_destroy(taken);
    return status;
}

pl_status pl_config_check(const pl_config *c, pl_error *err)
{
    PL_TRY(pl_config_check_keys(c, err));
    if (pl_dataset_of_run(c)->check) PL_TRY(pl_dataset_of_run(c)->check(c, err));
    PL_TRY(pl_system_check_stage(c, err));
    if (pl_system_of(c)->check) PL_TRY(pl_system_of(c)->check(c, err));
    PL_TRY(check_model(c, err));
    return pl_system_check_held_out(c, err);
}

/* The subcommands of plimsoll, as a person types them. */
#define PL_COMMAND_ROW(id, name, other, typed, ...) [PL_COMMAND_##id] = (typed),
static const char *const subcommands[] = {
#include "plimsoll/commands.def"
};
#undef PL_COMMAND_ROW

/* "train, eval and verify". */
static void list_commands(const pl_task *t, pl_str *out)
{
    int left = 0;
    for (int i = 0; i < PL_COMMAND_COUNT; i++) left += t->job[i] != NULL;
    for (int i = 0; i < PL_COMMAND_COUNT; i++) {
        if (!t->job[i]) continue;
        left--;
        pl_str_printf(out, "%s%s", subcommands[i], left > 1 ? ", " : left ? " and " : "");
    }
}

pl_status pl_system_require(const pl_config *c, pl_command command, pl_error *err)
{
    char arch[64], has[160];
    pl_str arch_text = pl_str_fixed(arch, sizeof arch), has_text = pl_str_fixed(has, sizeof has);
    const pl_config_key *key = pl_config_find("model.arch");
    if (pl_task_of(c)->job[command]) return PL_OK;
    pl_config_print_value(key, pl_config_value_of(c, key), &arch_text);
    list_commands(pl_task_of(c), &has_text);
    return pl_fail(err, PL_E_USAGE, "a config whose model.arch is %s has no command %s: it has %s", arch,
                   subcommands[command], has);
}

pl_command pl_system_first_command(const pl_config *c)
{
    int first = pl_task_of(c)->plans;
    while (first < PL_COMMAND_COUNT - 1 && !pl_task_of(c)->job[first]) first++;
    return (pl_command)first;
}

pl_status pl_system_find_jobs(const pl_config *c, pl_command command, const pl_data *data, pl_job_list *list,
                              pl_error *err)
{
    const pl_task *t = pl_task_of(c);
    const bool trains = pl_command_does(command, PL_USES_UPDATE);
    PL_TRY(pl_system_require(c, command, err));
    const bool calibrates = pl_command_does(command, PL_USES_CALIBRATION);
    const bool on_files = calibrates && pl_system_files(c, command);
    *list = (pl_job_list){.job = {on_files ? &pl_job_quantize_infer : t->job[command]}, .count = 1};
    const bool judges = trains || (calibrates && pl_system_judges_calibration(c));
    if (judges && pl_data_has(data, PL_PART_VALIDATION)) list->job[list->count++] = &pl_job_evaluate;
    if (trains && t->show && c->train.sample_every > 0) list->job[list->count++] = t->show;
    return PL_OK;
}

pl_loss_metric pl_system_perplexity(double loss)
{
    return (pl_loss_metric){.key = "perplexity",
                            .words = "perplexity",
                            .brief = "ppl",
                            .decimals = 3,
                            .brief_decimals = -1,
                            .uses = PL_METRIC_IN_FILE | PL_METRIC_AT_STEPS | PL_METRIC_VALIDATED,
                            .value = exp(loss)};
}
