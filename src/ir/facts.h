/* What the rules of the operators (op.h) say about a whole graph, so that nobody has to know a program, a value or an
 * operator by its name. All of these look at every node. */
#ifndef PL_IR_FACTS_H
#define PL_IR_FACTS_H

#include "ir/graph.h"

/* The value that holds the loss of the program, which its gradients are of; PL_NONE when it has none. */
pl_id pl_graph_find_loss(const pl_graph *, pl_id program);

#endif
