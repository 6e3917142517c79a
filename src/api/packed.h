/* A graph as a file of weights in 8 bits has it. */
#ifndef PL_API_PACKED_H
#define PL_API_PACKED_H

#include "ir/graph.h"

/* Layers of the program (PL_NONE: of all programs) whose weights are packed in the file are done in 8 bits; *packed:
 * how many weights those are. Of a file that holds none nothing changes. */
pl_status pl_graph_take_packed(pl_graph *, pl_id program, const char *path, size_t *packed, pl_error *);

#endif
