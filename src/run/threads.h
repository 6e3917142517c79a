/* The OpenMP team: created once, with planned stacks, before "committed"; from then on every parallel region opens with
 * all of it or is run by the caller alone. libgomp ends threads when a team shrinks and clones new ones when it grows
 * again, so the team never changes its size. */
#ifndef PL_RUN_THREADS_H
#define PL_RUN_THREADS_H

#include "base/process.h"

enum { PL_THREADS_MAX = 1024 };

/* The most threads that a team may have here: OMP_THREAD_LIMIT, or PL_THREADS_MAX. */
int pl_threads_limit(void);

/* What the OpenMP library takes from the heap for a team of this size. */
uint64_t pl_threads_heap_bytes(int threads);

/* Before a parallel region of a team that may not be there yet: libgomp ends the process without a sentence when it
 * cannot create a thread, so the system is asked first for the threads that OpenMP does not keep from earlier regions,
 * and for `helpers` that come later, and gets them back; then OpenMP starts its own. PL_E_NOMEM when it refuses, with
 * how many it grants. */
pl_status pl_threads_probe(int threads, int helpers, pl_error *);

/* What pl_threads_probe would take now for the stacks of such a team; 0 when OpenMP keeps all of its threads. */
uint64_t pl_threads_missing_bytes(int threads);

/* Gives back the threads that OpenMP keeps for the caller's next region: what the kernel holds for 63 of them, two
 * megabytes, is in no list of the process's own memory, and would count as that of others. A later region starts them
 * anew. */
void pl_threads_end(void);

/* Creates the team of `threads` (the caller included), touches and registers every stack. PL_E_USAGE when the number is
 * out of range or the environment forbids it (OMP_THREAD_LIMIT), PL_E_NOMEM when the system refuses them or the helpers
 * that are to come. */
pl_status pl_threads_create(int threads, int helpers, const pl_process_options *, pl_memory_owners *, pl_error *);

/* Checks that a region still gets the whole team on the stacks recorded: after everything was executed once. */
pl_status pl_threads_check(int threads, const pl_memory_owners *, pl_error *);

#endif
