/* pl_recompute: the whole road on one screen. Graph → does all fit as it is? → greedy passes → exact search while it is
 * small → climbing and annealing from the best of them → steps, bound, verdict.
 *
 * Work is shared out in elementary steps, not seconds, so that the same schedule comes out on each machine. */
#include "graph.h"

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "base/units.h"

enum { ORDERS = 2, EXPONENTS = 4 };

pl_recompute_options pl_recompute_options_default(void)
{
    return (pl_recompute_options){.low_peak_order = true,
                                  .distance_0 = true,
                                  .distance_half = true,
                                  .distance_1 = true,
                                  .distance_3_2 = true,
                                  .prune = true,
                                  .refill = true,
                                  .climb = true,
                                  .climb_orders = true,
                                  .anneal = true,
                                  .anneal_pairs = true,
                                  .anneal_blocks = true,
                                  .anneal_far = true,
                                  .anneal_orders = true,
                                  .exact = true,
                                  .exact_bound = true,
                                  .exact_dead = true,
                                  .exact_leaves = true,
                                  .exact_states = 300000,
                                  .work_limit = UINT64_C(1000000000)};
}

/* What is known while the methods run. */
typedef struct progress {
    recompute_graph graph;
    recompute_run run;
    recompute_best best;
    recompute_sequence trial;
    uint32_t *orders[ORDERS]; /* the given one; one that keeps little alive, or NULL */
    recompute_proof proof;
    double bound;
    uint64_t store_all_peak;
} progress;

static uint64_t work_left(const recompute_run *run)
{
    return run->work < run->work_limit ? run->work_limit - run->work : 0;
}

static bool is_done(progress *p)
{
    return (p->best.fits && (p->run.options->first_that_fits || p->best.sequence.cost <= p->bound)) ||
           recompute_run_look(&p->run) || recompute_run_spend(&p->run, 0);
}

static pl_status find_orders(progress *p, pl_error *err)
{
    for (uint32_t k = 0; k < ORDERS; k++) {
        if (k > 0 && (!p->run.options->low_peak_order || recompute_run_look(&p->run))) return PL_OK;
        p->orders[k] = pl_alloc(p->graph.count, sizeof *p->orders[k]);
        if (!p->orders[k]) return pl_fail(err, PL_E_NOMEM, "no memory to plan %" PRIu32 " nodes", p->graph.count);
        for (uint32_t v = 0; v < p->graph.count; v++) p->orders[k][v] = v;
        if (k > 0) PL_TRY(recompute_order_low_peak(&p->graph, p->orders[k], err));
    }
    return PL_OK;
}

/* Every node once, in each order while there is time. Also measures what storing all takes. */
static pl_status store_all(progress *p, pl_error *err)
{
    for (uint32_t k = 0; k < ORDERS && p->orders[k]; k++) {
        if (k > 0 && recompute_run_look(&p->run)) return PL_OK;
        p->trial.count = 0;
        for (uint32_t t = 0; t < p->graph.count; t++)
            if (recompute_sequence_append(&p->trial, p->orders[k][t]))
                return pl_fail(err, PL_E_NOMEM, "no memory for a schedule of %zu computations", p->trial.count);
        PL_TRY(recompute_sequence_measure(&p->graph, &p->trial, err));
        if (k == 0) p->store_all_peak = (uint64_t)p->trial.peak;
        PL_TRY(recompute_best_offer(&p->best, &p->graph, &p->run, &p->trial, "store all", err));
    }
    return PL_OK;
}

static pl_status greedy(progress *p, pl_error *err)
{
    const pl_recompute_options *o = p->run.options;
    const bool wanted[EXPONENTS] = {o->distance_0, o->distance_half, o->distance_1, o->distance_3_2};
    for (unsigned twice_p = 0; twice_p < EXPONENTS; twice_p++) {
        for (uint32_t k = 0; k < ORDERS && p->orders[k] && wanted[twice_p]; k++) {
            if (is_done(p)) return PL_OK;
            PL_TRY(recompute_greedy(&p->graph, &p->run, p->orders[k], twice_p, NULL, &p->trial, err));
            PL_TRY(recompute_best_offer(&p->best, &p->graph, &p->run, &p->trial, "greedy", err));
        }
    }
    return PL_OK;
}

/* The exact search ends where the graph is small, or little is missing; else it is not given much. When nothing that
 * fits is known, it looks for that first. */
static pl_status search(progress *p, uint64_t work, pl_error *err)
{
    enum { SMALL = 64, LITTLE = 32 };
    uint64_t share = p->graph.count <= SMALL ? work - work / 4 : work / LITTLE;
    for (int round = p->best.fits ? 1 : 0; round < 2 && p->proof == RECOMPUTE_OPEN; round++) {
        double bound;
        bool any = round == 0;
        if (!p->run.options->exact || is_done(p)) return PL_OK;
        PL_TRY(recompute_exact(&p->graph, &p->run, any, any ? share / 4 : share, &p->best, &p->proof, &bound, err));
        if (bound > p->bound) p->bound = bound;
    }
    return PL_OK;
}

/* Many short rounds of climbing, from both orders and with all exponents, then a few of annealing. */
static pl_status improve(progress *p, uint64_t work, uint64_t pass, pl_error *err)
{
    enum { CLIMBS = 8, ANNEALS = 3 };
    const pl_recompute_options *o = p->run.options;
    uint64_t end = p->run.work + work, climbing = o->anneal ? work / 2 : work;
    for (uint64_t k = 0; k < CLIMBS && o->climb; k++) {
        const uint32_t *order = p->orders[k / EXPONENTS % ORDERS] ? p->orders[k / EXPONENTS % ORDERS] : p->orders[0];
        if (is_done(p)) return PL_OK;
        PL_TRY(recompute_climb(&p->graph, &p->run, order, k % EXPONENTS, climbing / CLIMBS, pass * CLIMBS + k, &p->best,
                               err));
    }
    uint64_t annealing = p->run.work < end ? end - p->run.work : 0;
    for (uint64_t k = 0; k < ANNEALS && o->anneal && !is_done(p); k++)
        PL_TRY(recompute_anneal(&p->graph, &p->run, annealing / ANNEALS, pass * ANNEALS + k, &p->best, err));
    return PL_OK;
}

/* Most of the work for the exact search where it has a chance, at most half for the others. With a limit on work there
 * is one pass; with a clock, passes grow until it stops them, or nothing is left that would do anything. */
static pl_status find(progress *p, pl_error *err)
{
    const uint64_t first_pass = 600000000;
    PL_TRY(find_orders(p, err));
    PL_TRY(store_all(p, err));
    PL_TRY(greedy(p, err));
    for (uint64_t pass = 0; p->proof == RECOMPUTE_OPEN && !is_done(p); pass++) {
        uint64_t before = p->run.work, work = first_pass << (pass < 16 ? pass : 16);
        if (p->run.work_limit != PL_RECOMPUTE_NONE) work = work_left(&p->run);
        PL_TRY(search(p, work, err));
        uint64_t left = p->run.work - before < work ? work - (p->run.work - before) : 0;
        if (p->proof == RECOMPUTE_OPEN) PL_TRY(improve(p, left < work / 2 ? left : work / 2, pass, err));
        if (p->run.work_limit != PL_RECOMPUTE_NONE || p->run.work - before < 1000) return PL_OK;
    }
    return PL_OK;
}

static pl_status report(progress *p, pl_recompute_solution *s, pl_error *err)
{
    const recompute_graph *g = &p->graph;
    s->cost = p->best.sequence.cost;
    s->base_cost = g->base_cost;
    s->peak = (uint64_t)p->best.sequence.peak;
    s->store_all_peak = p->store_all_peak;
    s->floor_bytes = (uint64_t)g->floor;
    s->floor_node = g->floor_node;
    s->method = p->best.method;
    if (p->proof == RECOMPUTE_NONE_FITS && g->floor <= g->budget) {
        s->floor_bytes = (uint64_t)g->budget + 1;
        s->floor_node = g->count;
    }
    if (p->best.fits && p->proof == RECOMPUTE_BEST_IS_OPTIMAL) p->bound = s->cost;
    s->cost_lower_bound = p->bound;
    s->optimal = p->best.fits && s->cost <= p->bound;
    return recompute_sequence_steps(g, &p->best.sequence, &s->steps, &s->step_count, err);
}

static pl_status refuse_proven(const pl_recompute_problem *problem, const pl_recompute_solution *s, pl_error *err)
{
    char needed[16], room[16], lacking[32];
    pl_format_bytes(problem->budget, room, sizeof room);
    pl_format_bytes(s->floor_bytes, needed, sizeof needed);
    pl_format_count(s->floor_bytes - problem->budget, lacking, sizeof lacking);
    if (s->floor_node < problem->node_count) {
        const char *name = problem->nodes[s->floor_node].name;
        return pl_fail(err, PL_E_BUDGET,
                       "no schedule fits %" PRIu64 " byte%s (%s): node %" PRIu32 "%s%s%s needs %" PRIu64
                       " bytes (%s) with what it reads and what is kept, %s bytes more; proven",
                       problem->budget, problem->budget == 1 ? "" : "s", room, s->floor_node, name ? " (" : "",
                       name ? name : "", name ? ")" : "", s->floor_bytes, needed, lacking);
    }
    return pl_fail(err, PL_E_BUDGET,
                   "no schedule fits %" PRIu64 " byte%s (%s): at least %" PRIu64 " bytes (%s) are needed; proven. "
                   "The lowest peak found is %" PRIu64 " bytes",
                   problem->budget, problem->budget == 1 ? "" : "s", room, s->floor_bytes, needed, s->peak);
}

static pl_status judge(const pl_recompute_problem *problem, pl_recompute_solution *s, bool fits, pl_error *err)
{
    char needed[16], room[16], lacking[32], least[16];
    s->verdict = PL_RECOMPUTE_FITS;
    if (fits) return PL_OK;
    s->verdict = s->floor_bytes > problem->budget ? PL_RECOMPUTE_IMPOSSIBLE : PL_RECOMPUTE_NOT_FOUND;
    if (s->verdict == PL_RECOMPUTE_IMPOSSIBLE) return refuse_proven(problem, s, err);
    return pl_fail(err, PL_E_BUDGET,
                   "no schedule within %" PRIu64 " bytes (%s) was found within the limits: the best one peaks at "
                   "%" PRIu64 " bytes (%s), %s too many; the proven floor is %" PRIu64
                   " bytes (%s), so one may exist: allow more time",
                   problem->budget, pl_format_bytes(problem->budget, room, sizeof room), s->peak,
                   pl_format_bytes(s->peak, needed, sizeof needed),
                   pl_format_count(s->peak - problem->budget, lacking, sizeof lacking), s->floor_bytes,
                   pl_format_bytes(s->floor_bytes, least, sizeof least));
}

pl_status recompute_solve(const pl_recompute_problem *problem, const pl_recompute_options *options,
                          const recompute_clock *clock, pl_recompute_solution *solution, pl_error *err)
{
    progress p = {.run = recompute_run_begin(options, clock)};
    *solution = (pl_recompute_solution){.method = "none"};
    pl_status status = recompute_graph_init(&p.graph, problem, err);
    p.bound = p.graph.base_cost;
    p.store_all_peak = problem->fixed;
    if (status == PL_OK && p.graph.floor > p.graph.budget) p.proof = RECOMPUTE_NONE_FITS;
    if (status == PL_OK) status = find(&p, err);
    if (status == PL_OK) status = report(&p, solution, err);
    if (status == PL_OK) status = judge(problem, solution, p.best.fits, err);
    for (uint32_t k = 0; k < ORDERS; k++) pl_free(p.orders[k]);
    recompute_sequence_deinit(&p.trial);
    recompute_sequence_deinit(&p.best.sequence);
    recompute_graph_deinit(&p.graph);
    solution->work = p.run.work;
    return status;
}

pl_status pl_recompute(const pl_recompute_problem *problem, const pl_recompute_options *options,
                       pl_recompute_solution *solution, pl_error *err)
{
    recompute_clock clock = recompute_clock_begin(options->time_limit_s);
    pl_status status = recompute_solve(problem, options, &clock, solution, err);
    solution->seconds = recompute_clock_spent(&clock);
    return status;
}

void pl_recompute_solution_deinit(pl_recompute_solution *solution)
{
    pl_free(solution->steps);
    solution->steps = NULL;
    solution->step_count = 0;
}
