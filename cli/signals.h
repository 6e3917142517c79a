/* Signals of a run: SIGINT, SIGTERM and SIGHUP ask it to stop after the step; a second SIGINT or SIGTERM leaves at
 * once. SIGUSR1 asks for the ledger. */
#ifndef PL_CLI_SIGNALS_H
#define PL_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

extern volatile int pl_signal_stop; /* nonzero: stop after this step */

void pl_signals_ignore(void);             /* first thing: those that would end the process without a word */
const sigset_t *pl_signals_changed(void); /* those of them that were at their default before */
void pl_signals_install(void);            /* of a run */
bool pl_signal_take_ledger(void);         /* was it asked for since the last call? */
/* 128 + the signal that stopped the run: 130, 143; 75 when it was none of those two. */
int pl_signal_exit_code(void);

#endif
