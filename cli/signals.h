/* Signals of a run: SIGINT, SIGTERM and SIGHUP end it at once as long as there is nothing to save or to clean up; while
 * a text is prepared they ask it to stop there, while it runs after the step. A second SIGINT or SIGTERM, half a second
 * later or more, leaves at once, but for who only notes them. The exit code is the same, unless steps were made and
 * none is saved. SIGUSR1 asks for the ledger. */
#ifndef PL_CLI_SIGNALS_H
#define PL_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#define PL_SIGNAL_ECHO_SECONDS 0.5
extern volatile int pl_signal_stop; /* nonzero: stop after this step */

void pl_signals_ignore(void);             /* first thing: those that would end the process without a word */
const sigset_t *pl_signals_changed(void); /* those of them that were at their default before */
void pl_signals_leave(void);              /* from now on they end the process at once */
void pl_signals_catch(void);              /* from now on they set pl_signal_stop */
void pl_signals_note(void);               /* likewise, and a second one does not leave: for who has to clean up */
void pl_signals_forget(void);             /* what they asked for is done; the next one is the first again */
void pl_signals_hold(void);               /* before an exec: they wait until the next program hears them */
/* Who reads along may leave: what is written keeps on being made. exec keeps this. */
void pl_signals_outlive_readers(void);
void pl_signals_ledger(void);     /* SIGUSR1 is heard */
bool pl_signal_take_ledger(void); /* was it asked for since the last call? */
/* From now on a page of a mapped file that is not there any more, or cannot be read, ends the process with a sentence:
 * which file has the address? NULL: none, and the process ends as it would without this. */
void pl_signals_name_files(const char *command, const char *(*file_at)(const void *address));
/* From now on a second signal, which leaves at once, says this; where nothing is saved its exit code is 1. The text
 * must stay until the call after the next. */
void pl_signals_last_words(const char *text, size_t bytes, bool is_saved);
/* 128 + the signal that stopped the run: 130, 143; 75 when it was none of those two. */
int pl_signal_exit_code(void);

#endif
