#include "models/model.h"
#include "systems/clouds_stages.h"
static pl_status open_clouds(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                             pl_data **data, pl_error *err)
{
    (void)c;
    (void)command;
    (void)use;
    (void)planned;
    (void)data;
    return pl_fail(err, PL_E_CONFIG, "not yet");
}
const pl_system pl_system_clouds = {.words = {"sample", "samples", "sample", "samples", "samples/s", "flights", "step",
                                              "part", "of standardised heights", "batch_size",
                                              "channels or temporal_frames", "channels"},
                                    .job = {[PL_COMMAND_TRAIN] = &pl_job_train,
                                            [PL_COMMAND_EVALUATE] = &pl_job_evaluate,
                                            [PL_COMMAND_GRADIENTS] = &pl_job_gradients},
                                    .in_epochs = true,
                                    .check = pl_model_check,
                                    .open = open_clouds,
                                    .name_stage = pl_clouds_name_stage,
                                    .take_stage = pl_clouds_take_stage,
                                    .report_stages = pl_clouds_report_stages};
