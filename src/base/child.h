/* Work in a process of its own: what libraries load, ask for and leave behind ends with it, and where one of them
 * crashes on a damaged file, it dies in place of the process that asked, and of a host that this is a part of. What
 * it leaves is in files that both have open. */
#ifndef PL_BASE_CHILD_H
#define PL_BASE_CHILD_H

#include <stdbool.h>

#include "base/error.h"

typedef pl_status pl_child_work(void *context, pl_error *);

/* Who waits is told so from time to time, if that takes long. */
enum { PL_CHILD_TELL_MS = 250 };
typedef void pl_child_wait(void *context);

/* Waits for its end, and gives its status. wait: called where this waits; or NULL. *signal: what ended it, and then
 * PL_E_INTERNAL, for which the caller has words; else 0. PL_E_NOMEM: no process can be started. A child does not
 * outlive who waits for it. */
pl_status pl_child_run(pl_child_work *, pl_child_wait *wait, void *context, int *signal, pl_error *);
/* It crashed by itself: nobody ended it, nor want of memory. */
bool pl_child_crashed(int signal);

#endif
