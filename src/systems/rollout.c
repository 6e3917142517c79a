/* The row of rollouts. */
#include "models/model.h"
#include "systems/system.h"

static pl_status open_rollout(const pl_config *c, pl_command command, pl_data_use use, pl_data **data, pl_error *err)
{
    (void)c, (void)command, (void)use, (void)data;
    return pl_fail(err, PL_E_UNSUPPORTED, "not yet");
}

const pl_system pl_system_rollout = {
    .words = {"step", "steps", "realisation", "realisations", "steps/s", "operators", NULL},
    .check = pl_model_check,
    .open = open_rollout};
