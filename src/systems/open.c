/* What the data of all systems have in common, whatever their row opens. */
#include "config/schema.h"
#include "systems/given_weights.h"
#include "systems/system.h"

uint64_t pl_system_epochs(const pl_config *c)
{
    const pl_task *t = pl_task_of(c);
    return t->epochs ? t->epochs(c) : (uint64_t)c->train.epochs;
}

int64_t pl_system_batch(const pl_config *c, pl_command command)
{
    return pl_command_does(command, PL_USES_CALIBRATION) ? 1 : pl_config_batch(c);
}

pl_real pl_system_narrowest(const pl_config *c)
{
    static const pl_real narrowest[] = {[PL_CONFIG_RUN_FLOAT32] = PL_REAL_F32,
                                        [PL_CONFIG_RUN_BFLOAT16] = PL_REAL_BF16,
                                        [PL_CONFIG_RUN_FLOAT16] = PL_REAL_F16};
    return narrowest[c->run.precision];
}

pl_status pl_system_take_weights(const pl_config *c, pl_command command, pl_data *data, pl_error *err)
{
    pl_given_weights given;
    const bool begins = pl_command_does(command, PL_USES_WEIGHTS) && !pl_command_does(command, PL_USES_GRADIENT);
    if (!begins || !c->run.weights[0] || !pl_config_is_used(c, pl_config_find("run.weights"))) return PL_OK;
    const bool calibrates = pl_command_does(command, PL_USES_CALIBRATION); /* in f32, whatever the key says */
    PL_TRY(
        pl_given_weights_check(c->run.weights, NULL, calibrates ? PL_REAL_F32 : pl_system_narrowest(c), &given, err));
    PL_TRY(pl_given_weights_match(c, c->run.weights, err));
    data->weights = c->run.weights;
    data->weights_part = NULL;
    pl_facts_add(&data->identity, PL_FACT_WEIGHTS, given.hash);
    return PL_OK;
}

static pl_status add_to(const pl_config *c, pl_command command, pl_data *data, pl_error *err)
{
    PL_TRY(pl_system_take_weights(c, command, data, err));
    return pl_command_does(command, PL_USES_CALIBRATION) ? pl_system_plan_calibration(c, data, err) : PL_OK;
}

pl_status pl_system_open(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                         pl_data **data, pl_error *err)
{
    PL_TRY(pl_dataset_of(c, command)->open(c, command, use, planned, data, err));
    const pl_status status = add_to(c, command, *data, err);
    if (status != PL_OK) pl_data_close(*data), *data = NULL;
    return status;
}
