/* What commands that keep results have in common: planned processes, one after another, until all is done, and a page
 * about it where the command has one; or a witness of one item, in this process. */
#ifndef PL_CLI_RESULTS_COMMAND_H
#define PL_CLI_RESULTS_COMMAND_H

#include "load.h"

/* Positions of their common options; a command's own follow. */
enum { PL_RESULTS_QUIET, PL_RESULTS_VERBOSE, PL_RESULTS_LEDGER, PL_RESULTS_ONLY, PL_RESULTS_WITNESS, PL_RESULTS_OWN };

/* Loads the config, as pl_cli_load does, for a process that goes on when nobody reads its output any more. */
pl_status pl_results_command_load(const pl_cli_command *, int argc, char **argv, pl_cli_input *, pl_error *);

/* The rest, unless the status is a failure; releases the input. steps: the position of the option for a witness's
 * number of steps; PL_RESULTS_NO_STEPS: one step. Returns the exit code. */
enum { PL_RESULTS_NO_STEPS = -1 };
int pl_results_command_finish(const pl_cli_command *, pl_cli_input *, int steps, pl_status, pl_error *);

#endif
