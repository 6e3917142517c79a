/* Nodes in a heap: the one that comes before all others is at hand. The order is its owner's; when it changes for a
 * node, the owner says so. */
#ifndef PL_PLAN_RECOMPUTE_HEAP_H
#define PL_PLAN_RECOMPUTE_HEAP_H

#include "graph.h"

typedef struct recompute_heap {
    uint32_t *node, *place; /* by node: where in the heap; RECOMPUTE_NO_NODE: not there */
    uint32_t count;
    bool (*before)(const void *owner, uint32_t a, uint32_t b);
    const void *owner;
} recompute_heap;

/* Room for nodes below `most`. -1: memory was refused; deinit all the same. */
int recompute_heap_init(recompute_heap *, uint32_t most);
void recompute_heap_deinit(recompute_heap *);
bool recompute_heap_holds(const recompute_heap *, uint32_t node);
/* Puts the node in, or where it now belongs. */
void recompute_heap_place(recompute_heap *, uint32_t node);
/* Does nothing when it is not there. */
void recompute_heap_remove(recompute_heap *, uint32_t node);

#endif
