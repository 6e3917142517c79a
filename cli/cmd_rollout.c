/* plimsoll rollout: random operators iterated from random fields, each group of one shape in a planned process of its
 * own, in turn; or a witness of one operator, in this process. */
#include "results_command.h"

enum { STEPS = PL_RESULTS_OWN };
static const pl_cli_option options[] = {
    [PL_RESULTS_QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [PL_RESULTS_VERBOSE] = {"--verbose", NULL, "print the whole report of each plan first", true},
    [PL_RESULTS_LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, and where the time went"},
    [PL_RESULTS_ONLY] = {"--only", "N", "with --witness: operator N, counted from 0; default: 0"},
    [STEPS] = {"--steps", "N", "with --witness: so many steps; default: 1"},
    [PL_RESULTS_WITNESS] = {"--witness", "DIR",
                            "write what another program needs to repeat one operator into DIR, and no results"},
};

static const char about[] =
    "Draws operators from the parameter space of the config and iterates each from its initial field. States, or only "
    "what is measured of them, go into one file of results, block by block as they come, so memory does not grow with "
    "the number of steps. What the file has already is not made again: after a stop, a crash or a kill the same "
    "command goes on, and the file is the one that an undisturbed run would have made. Operators of one shape share a "
    "plan; what the disk has no room for is refused before anything runs (exit 5), what does not fit memory.budget "
    "before the first operator does (exit 3). When all is done, a page with pictures lies beside the results; "
    "plimsoll results report makes one before.\n";

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    const pl_status status = pl_results_command_load(command, argc, argv, &in, &err);
    return pl_results_command_finish(command, &in, STEPS, status, &err);
}

const pl_cli_body pl_cli_rollout = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
