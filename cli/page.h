/* The page that a finished rollout gets by itself. A runner's memory is what was planned, so it is made by one more
 * process of the same executable, in place of the runner. */
#ifndef PL_CLI_PAGE_H
#define PL_CLI_PAGE_H

#include "command.h"

#define PL_CLI_PAGER "__page"

/* Writes it beside the results, and says where unless quiet. Results are whole without it: what fails is a warning
 * (none where quiet is 2). */
void pl_page_make(const char *results, int quiet);
/* Replaces this process by one that does it. Returns only on failure. */
pl_status pl_page_exec(const char *results, int quiet, pl_error *);
/* That process; argv[0] is PL_CLI_PAGER; returns the exit code. */
int pl_page_run(int argc, char **argv);

#endif
