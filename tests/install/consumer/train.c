/* A program of somebody else, ten lines long: trains the perceptron of mlp.yaml, in the folder where it is. */
#include <plimsoll/plimsoll.h>
#include <stdio.h>

int main(void)
{
    pl_error error = {0};
    pl_plan *plan = NULL;
    pl_run *run = NULL;
    pl_config *config = pl_config_create();
    if (!pl_config_load_file(config, "mlp.yaml", &error) && !pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &error) &&
        !pl_plan_make(config, PL_COMMAND_TRAIN, NULL, NULL, NULL, &plan, &error) &&
        !pl_run_open(plan, &(pl_run_options){.host = true}, &run, &error) && !pl_run_train(run, &error))
        puts("trained");
    return fputs(error.text, stderr), pl_run_close(run), pl_status_exit_code(error.status);
}
