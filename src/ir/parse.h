/* Reading a graph that is part of a larger text (a plan). */
#ifndef PL_IR_PARSE_H
#define PL_IR_PARSE_H

#include "base/lex.h"
#include "ir/graph.h"

/* The line "graph 2" is current and its first word has been read; reads through "end graph". */
pl_status pl_graph_parse_lines(pl_lex *, pl_graph **, pl_error *);

#endif
