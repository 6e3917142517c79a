/* Recompute: which results to drop and compute again so that a graph runs within a budget of bytes, at the least added
 * cost. A problem is a plain value: costs, sizes and dependencies; it knows nothing of tensors or operators.
 *
 *     pl_recompute_node nodes[] = {{.size = 4}, {.cost = 2, .size = 8, .deps = (uint32_t[]){0}, .dep_count = 1}};
 *     pl_recompute_problem problem = {.nodes = nodes, .node_count = 2, .budget = 12};
 *     pl_recompute_options options = pl_recompute_options_default();
 *     pl_recompute_solution solution;
 *     pl_status status = pl_recompute(&problem, &options, &solution, &error);
 *     …
 *     pl_recompute_solution_deinit(&solution);
 *
 * A schedule is a list of steps. To compute a node, all it depends on must be resident and the node itself must not;
 * at that moment fixed + resident + its size + its work must fit the budget (nothing is computed in place). Freed
 * results may be computed again. Every node runs at least once; what is kept is never freed. The cost of a schedule is
 * the sum over its computations. Without a time limit the answer is the same on every machine. */
#ifndef PLIMSOLL_RECOMPUTE_H
#define PLIMSOLL_RECOMPUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PL_RECOMPUTE_NONE UINT64_MAX /* no budget; no work limit */

typedef struct pl_recompute_node {
    const char *name;     /* for messages; NULL: the index is its name */
    double cost;          /* of computing it once: finite, not negative; whole numbers up to 2^53 are added exactly */
    uint64_t size;        /* bytes of the result */
    uint64_t work;        /* bytes beside it while it runs */
    const uint32_t *deps; /* what it reads; each below its own index */
    size_t dep_count;
    bool keep; /* stays resident from its first run to the end */
} pl_recompute_node;

typedef struct pl_recompute_problem {
    const pl_recompute_node *nodes; /* in topological order */
    size_t node_count;
    uint64_t fixed;  /* bytes that are always there */
    uint64_t budget; /* fixed included; PL_RECOMPUTE_NONE: none */
} pl_recompute_problem;

typedef enum pl_recompute_action { PL_RECOMPUTE_COMPUTE, PL_RECOMPUTE_FREE } pl_recompute_action;

typedef struct pl_recompute_step {
    pl_recompute_action action;
    uint32_t node;
} pl_recompute_step;

/* Every heuristic is a switch, so that each can be tested alone and in all combinations. None changes which
 * answers are right; they change how good an answer is found, and how fast. */
typedef struct pl_recompute_options {
    bool low_peak_order; /* besides the given order, one that keeps little alive */
    /* greedy: drop the least cost to compute again / (size × distance to next use ^ p) */
    bool distance_0, distance_half, distance_1, distance_3_2; /* p */
    bool prune;                                               /* take out computations that nothing uses */
    bool refill;                                              /* keep what fits after all */
    /* climbing: the greedy pass again and again, with changed weights */
    bool climb;
    bool climb_orders; /* and with another order */
    /* annealing on the retention matrix */
    bool anneal;
    bool anneal_pairs;  /* one value for another */
    bool anneal_blocks; /* all values of a stretch of nodes at once */
    bool anneal_far;    /* beyond the next use */
    bool anneal_orders; /* neighbours in the order change places */
    uint64_t seed;
    /* exact search */
    bool exact;
    bool exact_bound;     /* what must still run, as an estimate of the cost to come */
    bool exact_dead;      /* free at once what nothing will need */
    bool exact_leaves;    /* run at once what nothing will read */
    size_t exact_states;  /* most states held; a state takes about 100 bytes */
    uint64_t work_limit;  /* elementary steps, roughly a nanosecond each; deterministic. PL_RECOMPUTE_NONE: none */
    double time_limit_s;  /* wall clock, from the call on; 0: none (then the answer is reproducible) */
    bool first_that_fits; /* stop at the first schedule within the budget, whatever its cost */
} pl_recompute_options;

typedef enum pl_recompute_verdict {
    PL_RECOMPUTE_FITS,
    PL_RECOMPUTE_IMPOSSIBLE, /* proven: no schedule fits the budget */
    PL_RECOMPUTE_NOT_FOUND,  /* none found within the limits; there may be one */
} pl_recompute_verdict;

typedef struct pl_recompute_solution {
    pl_recompute_step *steps; /* the library's; pl_recompute_solution_deinit gives them back */
    size_t step_count;
    double cost;             /* of the schedule */
    double base_cost;        /* of every node once */
    double cost_lower_bound; /* no schedule within the budget costs less */
    uint64_t peak;           /* of the schedule */
    uint64_t store_all_peak; /* in the given order, freeing after the last use */
    uint64_t floor_bytes;    /* proven: no schedule has a lower peak */
    uint32_t floor_node;     /* the node that needs that much, with its inputs; node_count: proven by search */
    bool optimal;            /* proven: cost = cost_lower_bound */
    pl_recompute_verdict verdict;
    double seconds;
    uint64_t work;
    const char *method; /* which one won: "store all", "greedy", "annealing", "exact search"; a constant string */
} pl_recompute_solution;

/* Everything on, deterministic, about a second of work at most: what planning uses. */
PL_API pl_recompute_options pl_recompute_options_default(void);

/* Fills *solution. PL_E_BUDGET when no schedule within the budget was found: the sentence says what is needed, the
 * verdict whether that is proven, and the steps hold the schedule with the lowest peak that is known. */
PL_API PL_MUST_USE pl_status pl_recompute(const pl_recompute_problem *, const pl_recompute_options *,
                                          pl_recompute_solution *, pl_error *);

/* Finds the least budget that has a schedule, *budget, and the solution of pl_recompute for it. solution->floor_bytes
 * is what is proven to be needed; it equals *budget when nothing less is possible. The limit on work holds for each
 * budget that is tried, the limit on time for all together; work and seconds are the totals. */
PL_API PL_MUST_USE pl_status pl_recompute_least(const pl_recompute_problem *, const pl_recompute_options *,
                                                uint64_t *budget, pl_recompute_solution *, pl_error *);
PL_API void pl_recompute_solution_deinit(pl_recompute_solution *);

/* The judge: shares no code with the planners. PL_E_INTERNAL names the first step that breaks a rule. *cost and
 * *peak (or NULL) get the cost and peak of the steps. Does not judge the budget. */
PL_API PL_MUST_USE pl_status pl_recompute_validate(const pl_recompute_problem *, const pl_recompute_step *steps,
                                                   size_t step_count, double *cost, uint64_t *peak, pl_error *);

/* A problem read from a .dag file (docs/recompute.md). Owns its nodes, their names and dependencies. */
typedef struct pl_recompute_dag pl_recompute_dag;
PL_API PL_MUST_USE pl_status pl_recompute_dag_read(const char *path, pl_recompute_dag **, pl_error *); /* "-" = stdin */
PL_API PL_MUST_USE pl_status pl_recompute_dag_parse(const char *text, size_t bytes, const char *name,
                                                    pl_recompute_dag **, pl_error *);
/* A view into it, without budget. */
PL_API pl_recompute_problem pl_recompute_dag_problem(const pl_recompute_dag *);
PL_API const char *pl_recompute_dag_name(const pl_recompute_dag *);
PL_API void pl_recompute_dag_destroy(pl_recompute_dag *);

/* Text of a solution, in a block for pl_recompute_text_free. SCHED: one step a line, "C 3" computes and "F 3" frees.
 * JSON: schema plimsoll.recompute/1. */
typedef enum pl_recompute_form { PL_RECOMPUTE_SCHED, PL_RECOMPUTE_JSON } pl_recompute_form;
PL_API PL_MUST_USE pl_status pl_recompute_print(const pl_recompute_problem *, const pl_recompute_solution *,
                                                pl_recompute_form, char **text, size_t *bytes, pl_error *);
PL_API void pl_recompute_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
