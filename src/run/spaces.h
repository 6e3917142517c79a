/* The spaces that a run can provide: a row each. A graph names the spaces of its values, a plan has an arena for each.
 */
#ifndef PL_RUN_SPACES_H
#define PL_RUN_SPACES_H

#include "run/arena.h"

typedef struct pl_space_kind {
    const char *name; /* as in the graph */
    pl_status (*map)(pl_arena *, uint64_t bytes, const pl_arena_options *, pl_memory_owners *, pl_error *);
    void (*unmap)(pl_arena *); /* a zeroed arena is fine */
    bool is_files;             /* it is mapped in a host program, too, and filled by whoever has the files */
} pl_space_kind;

/* NULL: there is none of that name. */
const pl_space_kind *pl_space_find(const char *name);

#endif
