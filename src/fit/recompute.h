/* Recompute, node by node: from a differentiated graph to decisions that rewrite/ carries out (docs/recompute.md, "How
 * it is joined").
 *
 * The graph of one micro-batch becomes a problem of plimsoll/recompute.h, and the planner solves it for a row of
 * budgets. That problem knows nothing of fusion, of what is computed in place, or of placement: its bytes order the
 * decisions, but only the real planner says what a process needs. So what is given out is a frontier: decisions from
 * storing all to the least memory, each for fit to try.
 *
 *     pl_recompute_frontier *f;
 *     PL_TRY(pl_recompute_frontier_create(graph, options, micro_batch, &f, err));
 *     for (size_t i = 0; i < pl_recompute_frontier_count(f); i++) {
 *         choice.recompute = PL_RECOMPUTE_LISTED;
 *         choice.decision = pl_recompute_frontier_point(f, i)->decision; … pl_fit_candidate(…)
 *     }
 *     pl_recompute_frontier_destroy(f);      after the last candidate that carries one of its decisions
 */
#ifndef PL_FIT_RECOMPUTE_H
#define PL_FIT_RECOMPUTE_H

#include "fit/fit.h"
#include "rewrite/rewrite.h"

typedef struct pl_recompute_point {
    const pl_recompute_decision *decision; /* of the frontier */
    uint64_t peak_bytes;  /* of activations and their gradients as the problem sees them: to compare points by */
    double added_seconds; /* predicted, of one step (all micro-batches); in arbitrary units if nothing was measured */
    size_t repeated;      /* nodes that run again, each time counted */
} pl_recompute_point;

typedef struct pl_recompute_frontier pl_recompute_frontier;

#define PL_RECOMPUTE_BUDGETS_MAX 24 /* between storing all and the least; more find little that is new */

/* graph: differentiated, unbound, as pl_fit gets it; options->given says what the passes before recompute do, and a
 * decision is of use with these alone (pl_fit_prepare). budgets: how many are asked of the planner, which is what takes
 * the time. Calls options->measure for what the cost table lacks. A graph with nothing to recompute has a frontier of
 * one point: storing all. */
pl_status pl_recompute_frontier_create(const pl_graph *graph, const pl_fit_options *, int64_t micro_batch, int budgets,
                                       pl_recompute_frontier **, pl_error *);
void pl_recompute_frontier_destroy(pl_recompute_frontier *);

/* Points from the fastest (storing all, or what costs nothing to compute again) to the least memory: peaks fall, added
 * time rises, strictly. */
size_t pl_recompute_frontier_count(const pl_recompute_frontier *);
/* options->given: a decision names the nodes of the graph in that form. */
const pl_choice *pl_recompute_frontier_given(const pl_recompute_frontier *);
const pl_recompute_point *pl_recompute_frontier_point(const pl_recompute_frontier *, size_t);

#endif
