/* The planner's own view of a problem: rows of dependencies and uses in compressed form, sizes checked so that no sum
 * can overflow. And what the methods share: the limits of the run, and sequences.
 *
 * A *sequence* lists computations only. Given it, the best moments to free are known: behind the last use before the
 * value is computed again. So planners search sequences; frees are put in at the end (sequence.c). */
#ifndef PL_PLAN_RECOMPUTE_GRAPH_H
#define PL_PLAN_RECOMPUTE_GRAPH_H

#include "plimsoll/recompute.h"
#include "base/error.h"

#define RECOMPUTE_NO_NODE UINT32_MAX

typedef struct recompute_graph {
    uint32_t count;
    double *cost;
    int64_t *size, *work;      /* bytes: fixed, all sizes and the largest work together fit 62 bits */
    uint32_t *dep_begin, *dep; /* of node v: dep[dep_begin[v] … dep_begin[v + 1]), ascending, each once */
    uint32_t *use_begin, *use; /* the nodes that read v, ascending */
    bool *keep;
    int64_t fixed, budget;
    double base_cost;
    int64_t floor; /* no schedule has a lower peak */
    uint32_t floor_node;
} recompute_graph;

/* graph.c: checks the problem; PL_E_DATA with a sentence. */
pl_status recompute_graph_init(recompute_graph *, const pl_recompute_problem *, pl_error *);
void recompute_graph_deinit(recompute_graph *);
/* order.c: a topological order that keeps little alive. */
pl_status recompute_order_low_peak(const recompute_graph *, uint32_t *order, pl_error *);

/* ---- run.c: what all methods share ---- */

/* Tests bring a clock of their own. */
typedef struct recompute_clock {
    double (*now)(void *context); /* NULL: there is no limit on time */
    void *context;
    double begin, deadline;
} recompute_clock;

/* From now on, so many seconds; 0: no limit. */
recompute_clock recompute_clock_begin(double seconds);
/* Seconds since it began, by the clock of the machine. */
double recompute_clock_spent(const recompute_clock *);
/* Seconds to the deadline: not negative, infinite without one. */
double recompute_clock_left(const recompute_clock *);

/* *Work* is booked by estimate, and is what the limit on work and the shares of the methods are about: the same answer
 * on every machine hangs on it. *Steps* are all that is done, an edge of the graph or a value each: they only tell when
 * to look at the clock, so that no loop runs past the deadline for more than some milliseconds. */
typedef struct recompute_run {
    const pl_recompute_options *options;
    recompute_clock clock;
    uint64_t work, work_limit;
    uint64_t steps, next_look; /* steps at which to look at the clock again; UINT64_MAX: never */
    bool out_of_time;          /* nothing goes on; what is half done is thrown away */
} recompute_run;

recompute_run recompute_run_begin(const pl_recompute_options *, const recompute_clock *);
/* Looks at the clock now: is the time over? */
bool recompute_run_look(recompute_run *);
/* Counts steps, looks at the clock when many were done, and says whether the time is over. */
static inline bool recompute_run_step(recompute_run *run, uint64_t steps)
{
    run->steps += steps;
    return run->steps < run->next_look ? run->out_of_time : recompute_run_look(run);
}
/* Books work, which is as many steps, and says whether a limit is passed. */
bool recompute_run_spend(recompute_run *, uint64_t work);
/* Has a greedy pass that computes everything again and again had its share of steps? */
bool recompute_run_is_lost(const recompute_run *, uint64_t steps);

/* ---- recompute.c, least.c: the public functions with this clock for a limit ---- */
pl_status recompute_solve(const pl_recompute_problem *, const pl_recompute_options *, const recompute_clock *,
                          pl_recompute_solution *, pl_error *);
pl_status recompute_solve_least(const pl_recompute_problem *, const pl_recompute_options *, const recompute_clock *,
                                uint64_t *budget, pl_recompute_solution *, pl_error *);

/* ---- sequence.c ---- */
typedef struct recompute_sequence {
    uint32_t *node;
    size_t count, capacity;
    double cost;
    int64_t peak;
} recompute_sequence;

/* Marks what the clock cut short: it is worse than any other, and empty. */
void recompute_sequence_void(recompute_sequence *);

int recompute_sequence_append(recompute_sequence *, uint32_t node); /* -1: memory was refused */
pl_status recompute_sequence_copy(recompute_sequence *to, const recompute_sequence *from, pl_error *);
void recompute_sequence_deinit(recompute_sequence *);
/* Sets cost and peak. */
pl_status recompute_sequence_measure(const recompute_graph *, recompute_sequence *, pl_error *);
/* Sets cost and peak. While there is time, as the options say: takes out computations that nothing uses, which never
 * raises cost or peak; then one wherever keeping the value since its last use stays within the budget. Void stays
 * void. */
pl_status recompute_sequence_polish(const recompute_graph *, recompute_run *, recompute_sequence *, pl_error *);
/* The steps with their frees, in a block for pl_free. */
pl_status recompute_sequence_steps(const recompute_graph *, const recompute_sequence *, pl_recompute_step **,
                                   size_t *count, pl_error *);

/* ---- the best so far ---- */
typedef struct recompute_best {
    recompute_sequence sequence; /* within the budget and cheap if there is such; else the one of the lowest peak */
    bool fits;
    const char *method;
} recompute_best;

/* ---- best.c ---- */
/* The order of goodness: within the budget, cheap; else a low peak. */
bool recompute_is_better(const recompute_graph *, const recompute_sequence *, const recompute_sequence *than);
/* Polishes, and keeps a copy if it is better than what was there. */
pl_status recompute_best_offer(recompute_best *, const recompute_graph *, recompute_run *, recompute_sequence *,
                               const char *method, pl_error *);

/* ---- greedy.c ---- */
/* One pass in this order with the score's exponent twice_p / 2, each loss times its weight (NULL: 1). Beyond the budget
 * only where nothing is left to drop, or where the pass has lost its way. Void when the time ran out. */
pl_status recompute_greedy(const recompute_graph *, recompute_run *, const uint32_t *order, unsigned twice_p,
                           const double *weight, recompute_sequence *, pl_error *);

/* ---- climb.c ---- */
/* One round: changes weights and order of the greedy pass, and keeps what is no worse, until the work is spent. */
pl_status recompute_climb(const recompute_graph *, recompute_run *, const uint32_t *order, unsigned twice_p,
                          uint64_t work, uint64_t round, recompute_best *, pl_error *);

/* ---- anneal.c ---- */
enum { RECOMPUTE_ANNEAL_NODES_MAX = 6000 }; /* the matrix grows with the square: 18 MB here */
/* One round, from the best so far. */
pl_status recompute_anneal(const recompute_graph *, recompute_run *, uint64_t work, uint64_t round, recompute_best *,
                           pl_error *);

/* ---- exact.c ---- */
enum { RECOMPUTE_EXACT_NODES_MAX = 256 };
typedef enum recompute_proof { RECOMPUTE_OPEN, RECOMPUTE_BEST_IS_OPTIMAL, RECOMPUTE_NONE_FITS } recompute_proof;
/* Goes on until the work, or the states, are spent. *bound gets the proven lower bound on the cost. With `any` it looks
 * for a schedule within the budget, whatever its cost, and proves nothing about that. */
pl_status recompute_exact(const recompute_graph *, recompute_run *, bool any, uint64_t work, recompute_best *,
                          recompute_proof *, double *bound, pl_error *);

#endif
