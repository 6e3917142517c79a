/* plimsoll doctor: looking at a process until it ends (doctor_watch.c), or at one that the doctor starts
 * (doctor_command.c). */
#ifndef PL_CLI_DOCTOR_H
#define PL_CLI_DOCTOR_H

#include <signal.h>

#include "plimsoll/plimsoll.h"

typedef struct pl_cli_watch {
    double interval_s; /* between two looks, at most; longer when a look is costly */
    double length_s;   /* 0: until it ends */
    bool show;         /* a line on stderr that moves */
    double shown_s;    /* when it last did */
} pl_cli_watch;

/* How long to wait before the next look. */
double pl_cli_watch_pause(const pl_cli_watch *, const pl_doctor *);
/* A signal of the set, or 0 after so many seconds; *info says who sent it. */
int pl_cli_watch_wait(const sigset_t *, double seconds, siginfo_t *info);
void pl_cli_watch_show(pl_cli_watch *, const pl_doctor *, bool end);

/* Looks until the process has ended, or SIGINT, SIGTERM or SIGHUP came (*stopped_by), or the time is up. */
pl_status pl_cli_watch_process(pl_cli_watch *, pl_doctor *, int *stopped_by, pl_error *);

/* Starts the command, looks at it and its children until it ends, and passes signals on. *exit_code is the command's,
 * as a shell tells it (128 + signal); 127 and 126 when it could not be started, with PL_E_USAGE and a sentence.
 * PL_E_DATA: it was never seen, mostly because it ended at once; other failures ended the looking. What was seen before
 * is in *doctor, or NULL. */
pl_status pl_cli_watch_command(pl_cli_watch *, char **argv, pl_doctor **, int *exit_code, pl_error *);

#endif
