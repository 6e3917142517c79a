/* The graph of one micro-batch as a recompute problem. A *group* is one of its nodes: a node of the graph, or a few
 * neighbours of which each but the last is read by the next alone, so that nothing can be gained between them. */
#ifndef PL_FIT_RECOMPUTE_PROBLEM_H
#define PL_FIT_RECOMPUTE_PROBLEM_H

#include "plimsoll/recompute.h"
#include "ir/graph.h"

typedef struct recompute_group {
    pl_id first, end; /* nodes of the graph, all of one region */
    double seconds;   /* of all of them */
    bool once;        /* what it does must not be done again; the planner is told a prohibitive cost */
} recompute_group;

typedef struct recompute_problem {
    pl_recompute_problem problem; /* without budget */
    recompute_group *group;       /* [problem.node_count] */
    pl_recompute_node *node;      /* likewise; the problem's */
    uint32_t *deps;
    size_t deps_capacity;
    double seconds; /* of all groups */
} recompute_problem;

/* g: bound, as the decision will find it; seconds: by node of g. No groups when the program has no backward pass. */
pl_status recompute_problem_init(recompute_problem *, const pl_graph *g, pl_id program, const double *seconds,
                                 pl_error *);
void recompute_problem_deinit(recompute_problem *);

#endif
