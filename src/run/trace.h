/* A trace of a run in Chrome's format (Trace Event Format, "X" events): open it in chrome://tracing or Perfetto. Events
 * gather in caller memory and are written out when that is full; nothing is allocated. */
#ifndef PL_RUN_TRACE_H
#define PL_RUN_TRACE_H

#include <stdbool.h>

#include "base/file.h"

enum { PL_TRACE_STAGING_BYTES = 128 << 10 };

typedef struct pl_trace pl_trace;

/* Before anything is made: PL_E_USAGE where a file is that is no trace, PL_E_STORAGE where none can be made. */
pl_status pl_trace_check(const char *path, pl_error *);
/* memory: PL_TRACE_STAGING_BYTES, aligned to 64, the caller's. now: the time that counts as 0. */
pl_status pl_trace_open(const char *path, void *memory, double now, pl_trace **, pl_error *);
/* name and category live as long as the trace; times in seconds. False when the file cannot be written any more:
 * then close it. */
bool pl_trace_add(pl_trace *, const char *name, const char *category, double begin, double end);
/* Writes what is left and the end of the file. Returns the status of the first write that failed; the file then ends
 * behind the last whole event before it. NULL is fine. */
pl_status pl_trace_close(pl_trace *, pl_error *);

#endif
