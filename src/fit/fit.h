/* Choosing the micro-batch: the one decision that is taken today. Each candidate is rewritten and planned by the real
 * planner; nothing here sizes anything itself.
 *
 * Rule: the largest divisor of the batch of at most 512 tokens (beyond that a matrix product gains nothing) whose
 * charged total fits the budget. Predicted times take no part: the micro-batch orders sums, so a clock must not choose
 * it, or the last bits of a run would depend on one. The number of threads counts only by its memory: where a budget
 * lies between what the plans of two teams need. */
#ifndef PL_FIT_FIT_H
#define PL_FIT_FIT_H

#include "fit/choice.h"
#include "plan/plan.h"

#define PL_FIT_NO_BUDGET UINT64_MAX

typedef struct pl_fit_options {
    pl_plan_options plan;    /* but for huge_pages, which is a choice */
    int64_t batch, sequence; /* sequences of a step; tokens of a sequence */
    pl_choice given;         /* what is decided already; a micro-batch of 0: choose. Huge pages may still be dropped */
    uint64_t budget_bytes;   /* charged; PL_FIT_NO_BUDGET */
    bool plan_recompute;     /* where nothing else fits, what is computed again may be chosen node by node */
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

/* One choice, and once more without huge pages where these are what is missing. *plan gets what fits; what does not
 * replaces *smallest when it needs less. */
pl_status pl_fit_try(const pl_graph *, const pl_fit_options *, const pl_choice *, pl_plan **plan, pl_plan **smallest,
                     pl_error *);

/* ---- candidate.c: one choice carried out: rewritten, bound and planned ---- */
pl_status pl_fit_rewrite(pl_graph *, const pl_fit_options *, const pl_choice *, pl_error *); /* all but the plan */
pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *, const pl_choice *, pl_plan **, pl_error *);

#endif
