/* A witness: one item of a command's work with all that another program needs to repeat it. It runs inside of this
 * process, whose memory is its own affair. */
#include "api/api.h"
#include "api/compile.h"
#include "systems/system.h"

/* The data as they are for this item alone; the plan's identity says so to whoever opens them again. */
static pl_status make_plan(const pl_config *c, pl_command command, uint64_t item, pl_plan **plan, pl_error *err)
{
    pl_data *data;
    pl_facts planned = {0};
    pl_facts_add(&planned, PL_FACT_WITNESS, item);
    PL_TRY(pl_open_data(c, command, PL_DATA_FOR_PLAN, &planned, &data, err));
    pl_compile_options o = {.command = command, .unmeasured = true, .here = true, .data = data};
    pl_status status = pl_compile(c, &o, NULL, plan, err);
    pl_data_close(data);
    return status;
}

pl_status pl_witness_write(const pl_config *c, pl_command command, uint64_t item, uint64_t steps, const char *folder,
                           const volatile int *stop, pl_error *err)
{
    pl_plan *plan = NULL;
    pl_run *run = NULL;
    PL_TRY(pl_system_require(c, command, err));
    if (!pl_command_does(command, PL_USES_RESULTS))
        return pl_fail(err, PL_E_USAGE, "%s makes nothing that a witness could be of", pl_command_name(command));
    pl_status status = make_plan(c, command, item, &plan, err);
    if (status == PL_OK) status = pl_run_open_apart(plan, NULL, stop, &run, err);
    if (status == PL_OK) status = pl_run_write_witness(run, steps, folder, err);
    pl_run_close(run);
    pl_plan_destroy(plan);
    return status;
}
