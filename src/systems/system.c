#include "systems/system.h"

const pl_system *pl_system_of(const pl_config *c)
{
    static const pl_system *const rows[] = {
#define PL_SYSTEM_ROW(id, name) [PL_SYSTEM_##id] = &pl_system_##name,
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
    };
    return rows[pl_config_system_of(c)];
}

pl_status pl_config_check(const pl_config *c, pl_error *err)
{
    PL_TRY(pl_config_check_keys(c, err));
    PL_TRY(pl_system_of(c)->check(c, err));
    return pl_system_check_held_out(c, err);
}

pl_status pl_system_require(const pl_config *c, pl_command command, pl_error *err)
{
    if (pl_system_of(c)->job[command]) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "a model of this model.arch does not support the command %s; docs/systems.md says which it supports",
                   pl_command_name(command));
}

pl_status pl_system_find_jobs(const pl_config *c, pl_command command, const pl_data *data, pl_job_list *list,
                              pl_error *err)
{
    const pl_system *y = pl_system_of(c);
    const bool trains = pl_command_does(command, PL_USES_UPDATE);
    PL_TRY(pl_system_require(c, command, err));
    *list = (pl_job_list){.job = {y->job[command]}, .count = 1};
    if (trains && pl_data_has(data, PL_PART_VALIDATION)) list->job[list->count++] = &pl_job_evaluate;
    if (trains && y->show && c->train.sample_every > 0) list->job[list->count++] = y->show;
    return PL_OK;
}
