/* Work in a process of its own: what libraries load, ask for and leave behind ends with it, and where one of them
 * crashes on a damaged file, it dies in place of the process that asked, and of a host that this is a part of. What
 * it leaves is in files that both have open; what comes back is how it ended, and notes of how far it is. */
#ifndef PL_BASE_CHILD_H
#define PL_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { PL_CHILD_NOTE_BYTES = 128 };

typedef struct pl_child_work {
    /* In the child, with a copy of what is here. */
    pl_status (*work)(void *context, int channel, pl_error *);
    /* Here: what it told (pl_child_tell), aligned to nothing. A failure is that of the work, which is to end. NULL: it
     * tells nothing. */
    pl_status (*hear)(void *context, const void *note, pl_error *);
    void *context;
} pl_child_work;

/* Waits for its end, and gives its status, or that of `hear` where it failed. *signal: what ended it, and then
 * PL_E_INTERNAL, for which the caller has words; else 0. PL_E_NOMEM: no process can be started; PL_E_STORAGE: there is
 * no descriptor for its notes. A child does not outlive who waits for it. */
pl_status pl_child_run(const pl_child_work *, int *signal, pl_error *);
/* In the child: goes on when the note, PL_CHILD_NOTE_BYTES at most, was heard. false: the work is to end. */
bool pl_child_tell(int channel, const void *note, size_t bytes);
/* It crashed by itself: nobody ended it, nor want of memory. */
bool pl_child_crashed(int signal);

#endif
