/* The graph of one micro-batch as a recompute problem. A *group* is one of its nodes: a node of the graph, or a few
 * neighbours of which each but the last is read by the next alone, so that nothing can be gained between them. A large
 * output beside a node's first (pl_op_rule.remade), if smaller than that, is a group without nodes: it needs the one in
 * front, and no time. (Where it is wanted later than that one it is in truth kept in between: a peak may be higher by
 * its bytes than the schedule says; what counts is the plan that is made of it.) */
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

/* g: bound, as the decision will find it; seconds: by node of g. */
pl_status recompute_problem_init(recompute_problem *, const pl_graph *g, pl_id region, const double *seconds,
                                 pl_error *);
void recompute_problem_deinit(recompute_problem *);

/* recompute_regions.c: the regions of a program that have a backward pass, in their order. One; many in layer-major
 * order, which takes them one after the other: each is a problem of its own. */
typedef struct recompute_region {
    pl_id region;
    uint64_t beside; /* bytes that lie there while it runs for the sake of other regions, beyond those of the region
                        that has the least: stacks of tiles, and gradients of its own weights and shared ones */
} recompute_region;

/* For pl_free; NULL with a count of 0 where nothing is ever differentiated. */
pl_status recompute_regions_find(const pl_graph *g, pl_id program, recompute_region **, size_t *count, pl_error *);

#endif
