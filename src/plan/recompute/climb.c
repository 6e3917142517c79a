/* Climbing with the greedy pass as decoder: every node has a weight that makes its loss look heavier or lighter, and a
 * place in the order of first computations. A change of weights or order that gives a better schedule (or as good a
 * one) is kept. Schedules come out whole and within the budget, so steps are large where those of the annealing are
 * small; it goes before. */
#include "random.h"
#include "graph.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

typedef struct climb {
    const recompute_graph *g;
    recompute_run *run;
    unsigned twice_p;
    double *weight, *trial_weight; /* by node */
    uint32_t *order, *trial_order;
    uint32_t *position; /* by node: in trial_order */
    recompute_sequence now, trial;
    recompute_random random;
    bool orders; /* may change */
} climb;

/* A node, or a stretch of the order, becomes 2 to 16 times heavier or lighter. */
static void change_weights(climb *c)
{
    uint32_t n = c->g->count, begin = recompute_random_below(&c->random, n), length = 1;
    if (recompute_random_one_in(&c->random, 2)) length += recompute_random_below(&c->random, 12);
    double factor = (double)(2u << recompute_random_below(&c->random, 4));
    if (recompute_random_one_in(&c->random, 2)) factor = 1 / factor;
    for (uint32_t k = begin; k < begin + length && k < n; k++) {
        double *w = &c->trial_weight[c->trial_order[k]];
        *w *= factor;
        if (*w > 0x1p40 || *w < 0x1p-40) *w = 1;
    }
}

/* A node goes anywhere between the last of its inputs and the first of its readers. */
static void change_order(climb *c)
{
    const recompute_graph *g = c->g;
    uint32_t v = recompute_random_below(&c->random, g->count), from, low = 0, high = g->count - 1;
    for (uint32_t t = 0; t < g->count; t++) c->position[c->trial_order[t]] = t;
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++)
        if (c->position[g->dep[k]] >= low) low = c->position[g->dep[k]] + 1;
    for (uint32_t k = g->use_begin[v]; k < g->use_begin[v + 1]; k++)
        if (c->position[g->use[k]] <= high) high = c->position[g->use[k]] - 1;
    uint32_t to = low + recompute_random_below(&c->random, high - low + 1);
    for (from = c->position[v]; from < to; from++) c->trial_order[from] = c->trial_order[from + 1];
    for (; from > to; from--) c->trial_order[from] = c->trial_order[from - 1];
    c->trial_order[to] = v;
}

static void change(climb *c)
{
    uint32_t n = c->g->count;
    memcpy(c->trial_weight, c->weight, n * sizeof *c->weight);
    memcpy(c->trial_order, c->order, n * sizeof *c->order);
    if (c->orders && recompute_random_one_in(&c->random, 2)) change_order(c);
    if (!c->orders || recompute_random_one_in(&c->random, 2)) change_weights(c);
}

static pl_status decode(climb *c, const uint32_t *order, const double *weight, recompute_sequence *s, pl_error *err)
{
    PL_TRY(recompute_greedy(c->g, c->run, order, c->twice_p, weight, s, err));
    return recompute_sequence_polish(c->g, c->run, s, err);
}

static pl_status step(climb *c, recompute_best *best, pl_error *err)
{
    change(c);
    PL_TRY(decode(c, c->trial_order, c->trial_weight, &c->trial, err));
    if (recompute_is_better(c->g, &c->now, &c->trial)) return PL_OK;
    recompute_sequence sequence = c->now;
    double *weight = c->weight;
    uint32_t *order = c->order;
    c->now = c->trial, c->trial = sequence;
    c->weight = c->trial_weight, c->trial_weight = weight;
    c->order = c->trial_order, c->trial_order = order;
    return recompute_best_offer(best, c->g, c->run, &c->now, "greedy, weights climbed", err);
}

pl_status recompute_climb(const recompute_graph *g, recompute_run *run, const uint32_t *order, unsigned twice_p,
                          uint64_t work, uint64_t round, recompute_best *best, pl_error *err)
{
    climb c = {.g = g, .run = run, .twice_p = twice_p};
    pl_status status = PL_OK;
    uint64_t end = run->work + work;
    c.orders = run->options->climb_orders && round % 2; /* a search through both is wider, and less deep */
    c.random = recompute_random_begin(run->options->seed, (UINT64_C(1) << 32) + round);
    c.weight = pl_alloc(g->count, sizeof *c.weight);
    c.trial_weight = pl_alloc(g->count, sizeof *c.trial_weight);
    c.order = pl_alloc(g->count, sizeof *c.order);
    c.trial_order = pl_alloc(g->count, sizeof *c.trial_order);
    c.position = pl_alloc(g->count, sizeof *c.position);
    if (!c.weight || !c.trial_weight || !c.order || !c.trial_order || !c.position)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to plan %" PRIu32 " nodes", g->count));
    for (uint32_t v = 0; v < g->count; v++) c.weight[v] = 1;
    memcpy(c.order, order, g->count * sizeof *c.order);
    PL_TRY_DONE(decode(&c, c.order, c.weight, &c.now, err));
    while (run->work < end && !recompute_run_look(run) && !recompute_run_spend(run, 0)) {
        PL_TRY_DONE(step(&c, best, err));
        if (run->options->first_that_fits && best->fits) break;
    }
done:
    pl_free(c.weight);
    pl_free(c.trial_weight);
    pl_free(c.order);
    pl_free(c.trial_order);
    pl_free(c.position);
    recompute_sequence_deinit(&c.now);
    recompute_sequence_deinit(&c.trial);
    return status;
}
