/* Any command of plimsoll/commands.def that has no file of its own here: plans it, then does the job that the config's
 * system has for it, in a process that holds exactly what was planned. What the job tells, progress shows. */
#include "planning.h"

enum { CHECKPOINT, QUIET, VERBOSE, LEDGER };
static const pl_cli_option options[] = {
    [CHECKPOINT] = {"--checkpoint", "DIR", "weights of this checkpoint; default: the run's best, else its latest"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, and where the time went"},
};

static const char about[] =
    "Prepares the data where it reads some, plans where every byte will go, and does what the system of the config has "
    "for this command; a system that has nothing for it refuses. What does not fit memory.budget is refused before "
    "anything large is taken (exit 3). CONFIG is the run's config file or the folder of the run.\n";

/* What trains goes on from its own run, and has a folder that must be free or its own. */
static pl_status check_folder(const pl_cli_command *command, const pl_cli_input *in, pl_error *err)
{
    const char *checkpoint = in->arguments.value[CHECKPOINT];
    const bool trains = pl_command_does(command->command, PL_USES_UPDATE);
    if (trains && checkpoint)
        return pl_cli_error(err, PL_E_USAGE,
                            "--checkpoint is of commands that train nothing, and %s trains: --resume goes on with the "
                            "newest checkpoint of its run",
                            command->name);
    if (trains) return pl_cli_check_new_run(in, err);
    return checkpoint ? pl_cli_require_trained(in, checkpoint, false, err) : PL_OK;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_call call = {.command = command};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = check_folder(command, &in, &err);
    call.word[PL_CALL_CHECKPOINT] = in.arguments.value[CHECKPOINT];
    const pl_manner manner = {.quiet = in.arguments.value[QUIET],
                              .verbose = in.arguments.value[VERBOSE],
                              .keep = pl_command_does(command->command, PL_USES_UPDATE),
                              .ledger = in.arguments.value[LEDGER],
                              .sums_up = true};
    return pl_cli_finish(&in, status, &manner, &call, &err);
}

const pl_cli_body pl_cli_job = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
