/* What commands that keep results have in common: planned processes one after the other until all is done, a page about
 * it where there is one; or a witness of one item, in this process. */
#ifndef PL_CLI_RESULTS_COMMAND_H
#define PL_CLI_RESULTS_COMMAND_H

#include "load.h"

/* Places of their options; behind these a command has its own. */
enum { PL_RESULTS_QUIET, PL_RESULTS_VERBOSE, PL_RESULTS_LEDGER, PL_RESULTS_ONLY, PL_RESULTS_WITNESS, PL_RESULTS_OWN };

/* Loads the config, as pl_cli_load does, for a process that goes on when nobody reads what it says. */
pl_status pl_results_command_load(const pl_cli_command *, int argc, char **argv, pl_cli_input *, pl_error *);

/* The rest, unless the status says that it failed; releases the input. steps: the place of the option that says how
 * many steps a witness has; PL_RESULTS_NO_STEPS: one. Returns the exit code. */
enum { PL_RESULTS_NO_STEPS = -1 };
int pl_results_command_finish(const pl_cli_command *, pl_cli_input *, int steps, pl_status, pl_error *);

#endif
