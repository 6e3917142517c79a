/* What a pass over a deep graph must not search for again and again: who reads a value, and which value has a name.
 * Both are built once per pass, in one walk, and kept up by the pass itself; the graph does not know of them, so that a
 * graph that is only run (run/) holds nothing of this. */
#ifndef PL_IR_INDEX_H
#define PL_IR_INDEX_H

#include "ir/graph.h"

typedef struct pl_reader {
    pl_id node;
    uint32_t next; /* index + 1 into entry; 0: the last one */
} pl_reader;

/* Readers of each value: one entry an input, so a node that reads a value twice is listed twice; live nodes only, in
 * the order of the graph, those added later in front. A pass that takes an input away leaves its entry behind: whoever
 * walks a list looks at the node itself. */
typedef struct pl_readers {
    uint32_t *head; /* [values] index + 1 into entry */
    bool *viewed;   /* [values] somebody looks at it through a window: who reads it there is not listed */
    pl_reader *entry;
    size_t count, capacity, value_count;
} pl_readers;

pl_status pl_readers_init(pl_readers *, const pl_graph *, pl_error *);
pl_status pl_readers_add(pl_readers *, pl_id value, pl_id node, pl_error *); /* values that came later are left out */
void pl_readers_deinit(pl_readers *);

/* for (const pl_reader *r = pl_readers_first(&readers, value); r; r = pl_readers_next(&readers, r)) */
const pl_reader *pl_readers_first(const pl_readers *, pl_id value);
const pl_reader *pl_readers_next(const pl_readers *, const pl_reader *);
bool pl_node_reads(const pl_node *, pl_id value); /* and lives */
/* The value has bytes of its own, from its one producer, and who reads it reads all of it: it is no window, none looks
 * at it, and it updates no other value. So the nodes that are listed are all that know it. */
bool pl_readers_know(const pl_readers *, const pl_graph *, pl_id value);
/* One input of one live node is it. */
bool pl_readers_have_one(const pl_readers *, const pl_graph *, pl_id value);
/* Nobody reads what the node makes, at out[0], before node `last` has run, which takes its place. PL_NONE may wait. */
bool pl_readers_may_wait(const pl_readers *, const pl_graph *, pl_id node, pl_id last);

/* Names of values to their ids. */
typedef struct pl_names {
    pl_id *slot; /* open addressing, at most half full; PL_NONE: free */
    size_t slot_count, count;
} pl_names;

pl_status pl_names_init(pl_names *, const pl_graph *, pl_error *);
pl_status pl_names_add(pl_names *, const pl_graph *, pl_id value, pl_error *); /* the first of a name stays */
pl_id pl_names_find(const pl_names *, const pl_graph *, const char *name);     /* PL_NONE when there is none */
void pl_names_deinit(pl_names *);

#endif
