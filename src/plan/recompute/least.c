/* The least budget that can be met: budgets are halved between the floor and what is known to work, each tried with a
 * share of the work; then the least one is solved with all of it. Peaks differ by multiples of what divides all sizes,
 * so only those budgets are tried.
 *
 * A limit on time is one for all: half of it for the halvings, to each a part of what is left (the first ones decide
 * most), and the rest for the least one. While nothing is computed twice there is nothing to improve, and halvings
 * may take it all.
 *
 * A limit on work is one for each budget. What a small share of it missed is tried again with all of it. Now a miss is
 * dear, and what fits a lower budget fits a higher one, too, where it is found more easily: so steps are short, from
 * what works down. */
#include "graph.h"

#include "base/alloc.h"

enum {
    TRIAL_SHARE = 16,
    AGAIN_PART = 8,   /* how far down each trial with all of the work goes: a part of what is left */
    AGAIN_LIMITS = 4, /* no more of them once they took so many times the limit on work */
};

typedef struct bracket {
    pl_recompute_problem problem;
    pl_recompute_options trial; /* for one budget: any schedule will do */
    const recompute_clock *clock;
    uint64_t work; /* of all runs */
    uint64_t grain;
    uint64_t low;    /* nothing below was found, or can be */
    uint64_t proven; /* nothing below exists */
    pl_recompute_solution best;
} bracket;

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t find_grain(const pl_recompute_problem *p)
{
    uint64_t grain = 0;
    for (size_t i = 0; i < p->node_count; i++)
        grain = greatest_divisor(greatest_divisor(grain, p->nodes[i].size), p->nodes[i].work);
    return grain ? grain : 1;
}

static pl_status solve(bracket *b, const pl_recompute_options *options, const recompute_clock *clock,
                       pl_recompute_solution *s, pl_error *err)
{
    pl_status status = recompute_solve(&b->problem, options, clock, s, err);
    b->work += s->work;
    return status;
}

/* Seconds for all halvings that may still come. */
static double time_to_halve(const bracket *b)
{
    double left = recompute_clock_left(b->clock);
    if (b->clock->now && b->best.cost > b->best.base_cost) left -= (b->clock->deadline - b->clock->begin) / 2;
    return left;
}

static recompute_clock share_time(const bracket *b)
{
    enum { PARTS = 6 };
    recompute_clock clock = *b->clock;
    uint32_t halvings = 1; /* that may still come */
    if (!clock.now) return clock;
    for (uint64_t width = (b->best.peak - b->low) / b->grain; width > 0 && halvings < PARTS; width /= 2) halvings++;
    clock.begin = clock.now(clock.context);
    clock.deadline = clock.begin + time_to_halve(b) / halvings;
    return clock;
}

/* A schedule that missed the budget tried may all the same be the one of the lowest peak: that is what it fits. Bounds
 * for the budget that it missed say nothing about that. */
static void accept(pl_recompute_solution *s)
{
    if (s->verdict == PL_RECOMPUTE_FITS) return;
    s->verdict = PL_RECOMPUTE_FITS;
    s->cost_lower_bound = s->base_cost;
    s->optimal = s->cost <= s->base_cost;
}

static pl_status try_budget(bracket *b, uint64_t budget, pl_error *err)
{
    pl_recompute_solution s;
    recompute_clock clock = share_time(b);
    b->problem.budget = budget;
    pl_status status = solve(b, &b->trial, &clock, &s, err);
    if (status == PL_E_BUDGET) {
        b->low = budget + b->grain;
        if (s.verdict == PL_RECOMPUTE_IMPOSSIBLE)
            b->proven = s.floor_node < b->problem.node_count ? s.floor_bytes : b->low;
        if (b->low < b->proven) b->low = b->proven;
        status = PL_OK;
        pl_error_clear(err);
    }
    if (status == PL_OK && s.peak < b->best.peak) {
        accept(&s);
        pl_recompute_solution worse = b->best;
        b->best = s;
        s = worse;
    }
    pl_recompute_solution_deinit(&s);
    return status;
}

static bool is_open(const bracket *b) { return b->low < b->best.peak && time_to_halve(b) > 0; }

/* This part of what is left below the best one. */
static pl_status try_below(bracket *b, uint64_t part, pl_error *err)
{
    uint64_t width = b->best.peak - b->low;
    return try_budget(b, b->low + (width - (width + part - 1) / part) / b->grain * b->grain, err);
}

/* Without a limit on work no trial had a small share of it. */
static pl_status try_again(bracket *b, uint64_t work_limit, pl_error *err)
{
    uint64_t before = b->work;
    if (work_limit == PL_RECOMPUTE_NONE) return PL_OK;
    b->trial.work_limit = work_limit;
    b->low = b->proven;
    while (is_open(b) && (b->work - before) / AGAIN_LIMITS < work_limit) PL_TRY(try_below(b, AGAIN_PART, err));
    return PL_OK;
}

/* At the least budget, with all that is allowed. What the trial found is at hand if that should find nothing. */
static pl_status solve_least(bracket *b, const pl_recompute_options *options, pl_error *err)
{
    pl_recompute_solution s;
    b->problem.budget = b->best.peak;
    pl_status status = solve(b, options, b->clock, &s, err);
    if (status == PL_OK && s.cost <= b->best.cost) {
        pl_recompute_solution worse = b->best;
        b->best = s;
        s = worse;
    }
    pl_recompute_solution_deinit(&s);
    if (status != PL_E_BUDGET) return status;
    pl_error_clear(err);
    return PL_OK;
}

pl_status recompute_solve_least(const pl_recompute_problem *problem, const pl_recompute_options *options,
                                const recompute_clock *clock, uint64_t *budget, pl_recompute_solution *solution,
                                pl_error *err)
{
    bracket b = {.problem = *problem, .trial = *options, .clock = clock, .grain = find_grain(problem)};
    b.trial.first_that_fits = true;
    if (b.trial.work_limit != PL_RECOMPUTE_NONE) b.trial.work_limit /= TRIAL_SHARE;
    b.problem.budget = PL_RECOMPUTE_NONE;
    *solution = (pl_recompute_solution){.method = "none"};
    pl_status status = solve(&b, &b.trial, clock, &b.best, err);
    b.low = b.proven = b.best.floor_bytes;
    if (status == PL_OK && is_open(&b)) status = try_budget(&b, b.low, err);
    while (status == PL_OK && is_open(&b)) status = try_below(&b, 2, err);
    if (status == PL_OK) status = try_again(&b, options->work_limit, err);
    if (status == PL_OK && recompute_clock_left(clock) > 0) status = solve_least(&b, options, err);
    if (status != PL_OK) {
        pl_recompute_solution_deinit(&b.best);
        return status;
    }
    *budget = b.best.peak;
    *solution = b.best;
    if (solution->floor_bytes < b.proven) {
        solution->floor_bytes = b.proven;
        solution->floor_node = (uint32_t)problem->node_count;
    }
    solution->work = b.work;
    return PL_OK;
}

pl_status pl_recompute_least(const pl_recompute_problem *problem, const pl_recompute_options *options, uint64_t *budget,
                             pl_recompute_solution *solution, pl_error *err)
{
    recompute_clock clock = recompute_clock_begin(options->time_limit_s);
    pl_status status = recompute_solve_least(problem, options, &clock, budget, solution, err);
    solution->seconds = recompute_clock_spent(&clock);
    return status;
}
