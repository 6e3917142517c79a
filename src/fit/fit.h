/* Choosing the micro-batch: the one decision that is taken today. For each candidate the graph is rewritten, planned by
 * the real planner and timed by the real cost table; nothing here sizes or times anything itself.
 *
 * Rule: of the candidates whose charged total fits the budget, those predicted within 5 % of the fastest; of these the
 * one with the smallest peak. */
#ifndef PL_FIT_FIT_H
#define PL_FIT_FIT_H

#include "plan/plan.h"

#define PL_FIT_NO_BUDGET UINT64_MAX

typedef struct pl_fit_options {
    pl_plan_options plan;
    int64_t batch, sequence; /* sequences of a step; tokens of a sequence */
    int64_t micro_batch;     /* given, or 0: choose */
    bool recompute;          /* drop norms and activations, compute them again in the backward pass */
    uint64_t budget_bytes;   /* charged; PL_FIT_NO_BUDGET */
    /* Adds what the session keeps in the arena; called once per candidate, before it is planned. */
    pl_status (*stage)(void *context, pl_graph *, int64_t micro_batch, pl_error *);
    /* Measures what the cost table lacks for this bound graph; may be NULL. */
    pl_status (*measure)(void *context, const pl_graph *, pl_error *);
    /* The process's rows are final only when the plan's text is known (its reader's heap); called for each plan. */
    pl_status (*settle)(void *context, pl_plan *, pl_error *);
    void *context;
} pl_fit_options;

/* graph: legal, its batch not bound; stays the caller's. PL_E_BUDGET when nothing fits: the smallest plan's needs, what
 * is alive at its peak, and what single change would make it fit are in the sentence. */
pl_status pl_fit(const pl_graph *graph, const pl_fit_options *, pl_plan **, pl_error *);

/* One candidate: rewritten, bound and planned. */
pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *, int64_t micro_batch, pl_plan **, pl_error *);

#endif
