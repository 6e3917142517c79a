/* What train, generate, eval and verify have in common: data, plan, a few words about it, and off to the runner. */
#ifndef PL_CLI_PLANNING_H
#define PL_CLI_PLANNING_H

#include "load.h"
#include "runner.h"

/* Tells a process of this command which module to begin with (pl_process_begin). */
#define PL_CLI_MODULE "PLIMSOLL_INTERNAL_MODULE"

/* How the person wants to be spoken to. */
typedef struct pl_talk {
    int quiet;    /* 1: results and warnings only; 2: results only */
    bool verbose; /* the whole report of the plan */
    const char *show;
    bool elsewhere; /* the plan is for another machine */
} pl_talk;

pl_status pl_talk_read(const pl_config *, bool quiet, bool verbose, pl_talk *, pl_error *);

/* Where the config needs a module and the process has not begun with it, begins the command anew. */
pl_status pl_cli_begin_with_module(const pl_config *, pl_error *);
/* Prepares the data where the command needs them, and plans. Progress goes to stderr unless quiet. What this machine
 * cannot hold is refused. */
pl_status pl_cli_make_plan(const char *name, const pl_cli_input *, pl_command, const pl_talk *, pl_plan **, pl_error *);
/* For a look alone: what this machine cannot hold is planned, with a warning; what was prepared is to be undone. */
pl_status pl_cli_look_at_plan(const char *name, const pl_cli_input *, pl_command, const pl_talk *, pl_prepared **,
                              pl_plan **, pl_error *);
/* Removes it; what cannot be removed is a warning. */
void pl_cli_undo(pl_prepared *, const pl_talk *);
/* The same road to a search. An answer may be there when nothing fits, too. */
pl_status pl_cli_make_fit(const char *name, const pl_cli_input *, const pl_talk *, pl_fit_answer **, pl_error *);
/* Before a command that makes runs looks at their data, once: what piles up where it writes, and which keys of the
 * config have no effect. */
pl_status pl_cli_introduce_run(const char *name, const pl_cli_input *, const pl_talk *, pl_error *);
/* The whole road to the runner of the call's command; returns the exit code of a failure. `keep`: a run with files of
 * its own. */
int pl_cli_start(const pl_cli_input *, const pl_talk *, bool keep, pl_call *);
/* The end of most commands that run: with no failure so far the same, as --quiet and --verbose say (their values, or
 * NULL), else the sentence about it. The input is released. */
typedef struct pl_manner {
    const char *quiet, *verbose;
    const char *ledger; /* --ledger, or NULL: planned and measured at the end */
    bool keep;
    bool sums_up; /* a few lines at the end, unless quiet */
} pl_manner;
int pl_cli_finish(pl_cli_input *, pl_status, const pl_manner *, pl_call *, pl_error *);
/* Before anything is opened: the file of results that an earlier process of this job keeps others from is its own. */
void pl_cli_adopt_results(void);

#endif
