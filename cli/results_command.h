/* What commands that keep results have in common: planned processes one after the other until all is done, a page about
 * it where there is one; or a witness of one item, in this process. */
#ifndef PL_CLI_RESULTS_COMMAND_H
#define PL_CLI_RESULTS_COMMAND_H

#include "command.h"

/* Places of their options; a command may lack the last. */
enum { PL_RESULTS_QUIET, PL_RESULTS_VERBOSE, PL_RESULTS_LEDGER, PL_RESULTS_ONLY, PL_RESULTS_WITNESS, PL_RESULTS_STEPS };

int pl_results_command_run(const pl_cli_command *, int argc, char **argv);

#endif
