/* The frontier: the planner's answers for a row of budgets, from what storing all takes down to the least that a
 * schedule was found for, each a constant factor below the one before.
 *
 * In layer-major order the backward pass is many regions. They run one after the other, each over all micro-batches: a
 * problem each, and a budget is asked of all of them. The decisions of one budget are one decision, in the order of the
 * regions; its peak is the highest of theirs, its time the sum.
 *
 * Costs are those of the nodes as they will run (fused, in place), where the cost table has them; the rest is guessed
 * from their operations and bytes at the best rates of the others. So the same table gives the same decisions. */
#include "fit/recompute.h"

#include <math.h>
#include <string.h>

#include "fit/recompute_problem.h"
#include "ir/properties.h"
#include "ir/index.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

enum { HALVINGS = 6, POINTS_MAX = PL_RECOMPUTE_BUDGETS_MAX + 1 + HALVINGS };

/* Elementary steps, about a nanosecond each: of one budget of the row, and of the least one. */
static const uint64_t quick_work = 8000000, least_work = 40000000;

typedef struct entry {
    pl_recompute_point point;
    pl_recompute_decision decision;
} entry;

typedef struct part { /* a region */
    recompute_problem problem;
    uint64_t beside; /* bytes, as in recompute_region */
} part;

struct pl_recompute_frontier {
    part *part;
    size_t part_count;
    pl_choice given;
    double trips;
    int budgets; /* that are asked for */
    entry *entry[POINTS_MAX];
    size_t count;
};

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory to plan what to recompute"); }

/* ---- seconds of each node ---- */

typedef struct rates {
    double flops, bytes; /* per second, the best that was measured */
} rates;

static double guess(const pl_graph *g, const pl_node *n, const rates *r)
{
    pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    double computing = cost.flops / r->flops, moving = cost.bytes / r->bytes;
    return computing > moving ? computing : moving;
}

static void learn(const pl_graph *g, const pl_node *n, double seconds, rates *r)
{
    pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    if (!(seconds > 0)) return;
    if (cost.flops / seconds > r->flops) r->flops = cost.flops / seconds;
    if (cost.bytes / seconds > r->bytes) r->bytes = cost.bytes / seconds;
}

/* of[value]: seconds of the node that makes it, in the graph as it will run; a node's time goes to its first output, so
 * what was fused into another costs nothing more. Negative: not known. */
static void find_measured(const pl_graph *ready, const pl_cost_model *cost, double *of, rates *r)
{
    for (size_t i = 0; i < ready->node_count; i++) {
        const pl_node *n = &ready->node[i];
        double seconds = cost->seconds ? cost->seconds(cost->context, ready, n) : -1;
        if (seconds >= 0) learn(ready, n, seconds, r);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (n->out[k] != PL_NONE) of[n->out[k]] = k == 0 ? seconds : 0;
    }
    if (r->flops == 0) *r = (rates){1, 0.1}; /* nothing is known: ten operations for a byte */
}

/* A node of g costs what the node costs that makes its output in the rewritten graph: values keep their names. */
static double look_up(const pl_graph *g, const pl_node *n, const pl_graph *ready, const pl_names *names,
                      const double *of, const rates *r)
{
    pl_id out = PL_NONE; /* the first of the first two */
    for (int k = 0; k < 2 && out == PL_NONE; k++) out = n->out[k];
    pl_id made = out == PL_NONE || n->dead ? PL_NONE : pl_names_find(names, ready, g->value[out].name);
    if (made == PL_NONE || ready->value[made].producer == PL_NONE) return 0; /* fused into its reader */
    return of[made] >= 0 ? of[made] : guess(g, n, r);
}

/* g: bound; ready: the same graph, rewritten. */
static pl_status find_seconds(const pl_graph *g, const pl_graph *ready, const pl_cost_model *cost, double *seconds,
                              pl_error *err)
{
    rates r = {0};
    pl_names names;
    PL_TRY(pl_names_init(&names, ready, err));
    double *of = pl_alloc(ready->value_count + 1, sizeof *of);
    if (of) {
        for (size_t i = 0; i < ready->value_count; i++) of[i] = -1;
        find_measured(ready, cost, of, &r);
        for (size_t i = 0; i < g->node_count; i++) seconds[i] = look_up(g, &g->node[i], ready, &names, of, &r);
    }
    pl_names_deinit(&names);
    pl_free(of);
    return of ? PL_OK : no_memory(err);
}

static pl_status make_ready(const pl_graph *graph, const pl_fit_options *o, const pl_choice *choice, pl_graph **ready,
                            pl_error *err)
{
    *ready = pl_graph_copy(graph);
    if (!*ready) return no_memory(err);
    PL_TRY(pl_fit_rewrite(*ready, o, choice, err));
    return o->measure ? o->measure(o->context, *ready, err) : PL_OK;
}

static pl_status make_parts(pl_recompute_frontier *f, const pl_graph *g, pl_id program, const double *seconds,
                            pl_error *err)
{
    recompute_region *region = NULL;
    size_t count;
    pl_status status = recompute_regions_find(g, program, &region, &count, err);
    if (status == PL_OK) f->part = pl_alloc(count + 1, sizeof *f->part);
    if (status == PL_OK && !f->part) status = no_memory(err);
    for (; status == PL_OK && f->part_count < count; f->part_count++) {
        part *p = &f->part[f->part_count];
        p->beside = region[f->part_count].beside;
        status = recompute_problem_init(&p->problem, g, region[f->part_count].region, seconds, err);
    }
    pl_free(region);
    return status;
}

static pl_status make_problems(pl_recompute_frontier *f, const pl_graph *graph, const pl_fit_options *o,
                               int64_t micro_batch, pl_error *err)
{
    pl_status status = PL_OK;
    pl_id train = pl_graph_find_trained(graph);
    pl_graph *g = pl_graph_copy(graph), *ready = NULL;
    double *seconds = NULL;
    pl_choice choice = o->given;
    choice.micro_batch = micro_batch;
    choice.recompute = PL_RECOMPUTE_CHEAP;
    if (!g) PL_TRY_DONE(no_memory(err));
    if (train == PL_NONE) goto done;
    PL_TRY_DONE(pl_fit_prepare(g, o, &choice, err));
    seconds = pl_alloc(g->node_count + 1, sizeof *seconds);
    if (!seconds) PL_TRY_DONE(no_memory(err));
    PL_TRY_DONE(pl_rewrite_bind_batch(g, train, micro_batch, NULL, 1, err));
    PL_TRY_DONE(make_ready(graph, o, &choice, &ready, err));
    PL_TRY_DONE(find_seconds(g, ready, &o->plan.cost, seconds, err));
    status = make_parts(f, g, train, seconds, err);
done:
    pl_graph_destroy(g);
    pl_graph_destroy(ready);
    pl_free(seconds);
    return status;
}

/* ---- from a schedule to a decision ---- */

static pl_status add_group(const recompute_problem *p, uint32_t group, pl_id before, entry *e, pl_error *err)
{
    for (pl_id n = p->group[group].first; n < p->group[group].end; n++)
        PL_TRY(pl_recompute_decision_add(&e->decision, n, before, err));
    e->point.added_seconds += p->group[group].seconds;
    return PL_OK;
}

/* Behind what is in the entry already, for the parts come in their order. Repetitions wait for the next node that runs
 * for the first time, and go before it. false: something ran again that must not, or first runs were exchanged; such a
 * schedule is of no use here. */
static pl_status take_schedule(const recompute_problem *p, const pl_recompute_solution *s, entry *e, bool *useful,
                               pl_error *err)
{
    uint32_t next = 0; /* groups run for the first time in their order */
    size_t from = 0;
    *useful = true;
    for (size_t i = 0; i < s->step_count && *useful; i++) {
        if (s->steps[i].action != PL_RECOMPUTE_COMPUTE) continue;
        uint32_t group = s->steps[i].node;
        *useful = group <= next && (group == next || !p->group[group].once);
        if (group != next) continue;
        if (p->group[group].first == p->group[group].end) { /* it came with the one in front */
            next++;
            continue;
        }
        for (; from < i && *useful; from++)
            if (s->steps[from].action == PL_RECOMPUTE_COMPUTE && s->steps[from].node != next)
                PL_TRY(add_group(p, s->steps[from].node, p->group[next].first, e, err));
        from = i + 1;
        next++;
    }
    return PL_OK;
}

static void destroy_entry(entry *e)
{
    if (!e) return;
    pl_recompute_decision_deinit(&e->decision);
    pl_free(e);
}

static bool is_beaten(const entry *e, const entry *by)
{
    return by->point.peak_bytes <= e->point.peak_bytes && by->point.added_seconds <= e->point.added_seconds;
}

/* Keeps the frontier strict and sorted. Takes e. */
static void insert(pl_recompute_frontier *f, entry *e)
{
    size_t kept = 0, at = 0;
    bool beaten = f->count == POINTS_MAX;
    for (size_t i = 0; i < f->count; i++) beaten |= is_beaten(e, f->entry[i]);
    if (beaten) {
        destroy_entry(e);
        return;
    }
    for (size_t i = 0; i < f->count; i++) {
        if (is_beaten(f->entry[i], e))
            destroy_entry(f->entry[i]);
        else
            f->entry[kept++] = f->entry[i];
    }
    while (at < kept && f->entry[at]->point.peak_bytes > e->point.peak_bytes) at++;
    memmove(&f->entry[at + 1], &f->entry[at], (kept - at) * sizeof(entry *));
    f->entry[at] = e;
    f->count = kept + 1;
}

/* ---- asking the planner ---- */

/* First runs stay in the order of the graph: only where something is computed again is decided here. */
static pl_recompute_options options_of(uint64_t work)
{
    pl_recompute_options o = pl_recompute_options_default();
    o.low_peak_order = o.climb_orders = o.anneal_orders = o.exact = false;
    o.anneal = false;
    o.work_limit = work;
    return o;
}

/* The share of a part. A small one is looked over in less: a trial takes some steps for each of its nodes, and there
 * are about as many to try. */
static uint64_t work_of(const pl_recompute_frontier *f, size_t i, uint64_t work)
{
    enum { STEPS = 100 };
    const uint64_t nodes = f->part[i].problem.problem.node_count, share = work / f->part_count;
    const uint64_t enough = STEPS * nodes * nodes * (work / quick_work + 1);
    return enough < share ? enough : share;
}

static entry *begin_entry(pl_error *err)
{
    entry *e = pl_alloc(1, sizeof *e);
    if (!e) no_memory(err);
    return e;
}

/* Takes e. */
static void finish_entry(pl_recompute_frontier *f, entry *e)
{
    e->point.decision = &e->decision;
    e->point.added_seconds *= f->trips;
    e->point.repeated = e->decision.count;
    insert(f, e);
}

static pl_status add_part(const part *p, const pl_recompute_solution *s, entry *e, bool *useful, pl_error *err)
{
    uint64_t peak = s->peak + p->beside;
    if (peak > e->point.peak_bytes) e->point.peak_bytes = peak;
    return take_schedule(&p->problem, s, e, useful, err);
}

/* Where no schedule within the budget is found, the one nearest to it may be new all the same. */
static pl_status solve_part(const part *p, uint64_t budget, uint64_t work, entry *e, bool *useful, pl_error *err)
{
    pl_recompute_solution s;
    pl_recompute_problem problem = p->problem.problem;
    pl_recompute_options o = options_of(work);
    problem.budget = budget == PL_RECOMPUTE_NONE ? budget : budget > p->beside ? budget - p->beside : 0;
    pl_status status = pl_recompute(&problem, &o, &s, err);
    if (status == PL_E_BUDGET) {
        pl_error_clear(err);
        status = PL_OK;
    }
    if (status == PL_OK) status = add_part(p, &s, e, useful, err);
    pl_recompute_solution_deinit(&s);
    return status;
}

static pl_status solve(pl_recompute_frontier *f, uint64_t budget, pl_error *err)
{
    pl_status status = PL_OK;
    bool useful = true;
    entry *e = begin_entry(err);
    if (!e) return PL_E_NOMEM;
    for (size_t i = 0; i < f->part_count && useful && status == PL_OK; i++)
        status = solve_part(&f->part[i], budget, work_of(f, i, quick_work), e, &useful, err);
    if (status == PL_OK && useful)
        finish_entry(f, e);
    else
        destroy_entry(e);
    return status;
}

static pl_status solve_least_part(const part *p, uint64_t work, entry *e, bool *useful, uint64_t *least, pl_error *err)
{
    pl_recompute_solution s;
    pl_recompute_options o = options_of(work);
    uint64_t own;
    PL_TRY(pl_recompute_least(&p->problem.problem, &o, &own, &s, err));
    pl_status status = *useful ? add_part(p, &s, e, useful, err) : PL_OK;
    pl_recompute_solution_deinit(&s);
    if (own + p->beside > *least) *least = own + p->beside;
    return status;
}

/* What the largest region needs at least: less is of no use to the others. */
static pl_status solve_least(pl_recompute_frontier *f, uint64_t *least, bool *found, pl_error *err)
{
    pl_status status = PL_OK;
    bool useful = true;
    entry *e = begin_entry(err);
    *least = 0;
    if (!e) return PL_E_NOMEM;
    for (size_t i = 0; i < f->part_count && status == PL_OK; i++)
        status =
            solve_least_part(&f->part[i], work_of(f, i, least_work / PL_RECOMPUTE_BUDGETS_MAX * (uint64_t)f->budgets),
                             e, &useful, least, err);
    *found = status == PL_OK && useful;
    if (*found)
        finish_entry(f, e);
    else
        destroy_entry(e);
    return status == PL_OK && f->part_count > 1 ? solve(f, *least, err) : status;
}

/* The schedule of the least budget ran something again that must not: the least that is of use lies between it and the
 * lowest one of the row. */
static pl_status halve_down(pl_recompute_frontier *f, uint64_t least, pl_error *err)
{
    for (int i = 0; i < HALVINGS; i++) {
        uint64_t lowest = f->entry[f->count - 1]->point.peak_bytes, middle = least + (lowest - least) / 2;
        if (lowest <= least) break;
        PL_TRY(solve(f, middle, err));
        if (f->entry[f->count - 1]->point.peak_bytes > middle) least = middle;
    }
    return PL_OK;
}

static pl_status sweep(pl_recompute_frontier *f, pl_error *err)
{
    uint64_t least;
    bool found;
    PL_TRY(solve(f, PL_RECOMPUTE_NONE, err)); /* storing all; all there is without a backward pass */
    double most = (double)f->entry[0]->point.peak_bytes;
    PL_TRY(solve_least(f, &least, &found, err));
    double step = pow((double)(least + 1) / (most + 1), 1.0 / f->budgets);
    for (int i = 1; i < f->budgets && (double)least < most; i++) PL_TRY(solve(f, (uint64_t)(most * pow(step, i)), err));
    return found || f->part_count > 1 ? PL_OK : halve_down(f, least, err);
}

pl_status pl_recompute_frontier_create(const pl_graph *graph, const pl_fit_options *o, int64_t micro_batch, int budgets,
                                       pl_recompute_frontier **frontier, pl_error *err)
{
    pl_status status = PL_OK;
    pl_recompute_frontier *f = pl_alloc(1, sizeof *f);
    if (!f) return no_memory(err);
    f->given = o->given;
    f->budgets = budgets;
    f->trips = (double)((o->batch + micro_batch - 1) / micro_batch);
    PL_TRY_DONE(make_problems(f, graph, o, micro_batch, err));
    PL_TRY_DONE(sweep(f, err));
    *frontier = f;
    return PL_OK;
done:
    pl_recompute_frontier_destroy(f);
    return status;
}

void pl_recompute_frontier_destroy(pl_recompute_frontier *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->count; i++) destroy_entry(f->entry[i]);
    for (size_t i = 0; i < f->part_count; i++) recompute_problem_deinit(&f->part[i].problem);
    pl_free(f->part);
    pl_free(f);
}

size_t pl_recompute_frontier_count(const pl_recompute_frontier *f) { return f->count; }

const pl_choice *pl_recompute_frontier_given(const pl_recompute_frontier *f) { return &f->given; }

const pl_recompute_point *pl_recompute_frontier_point(const pl_recompute_frontier *f, size_t i)
{
    return i < f->count ? &f->entry[i]->point : NULL;
}
