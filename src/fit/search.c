/* The search (fit.h says what is looked for, and why that is enough).
 *
 *      propose     every choice of the axes, and what the recompute planner proposes
 *      bound       of every choice the bytes that it holds at least: cheap, without placement or clock
 *      feasible    does anything fit? Planned in the established order; if nothing does, the smallest plan is found
 *                  and no kernel was measured
 *      predict     kernels are measured, a step of each choice that may fit (or of all, for the front) is predicted
 *      walk        in the order of time each is planned that needs fewer bytes than all before it: the front */
#include <stdlib.h>

#include "fit/fit.h"
#include "fit/recompute.h"

enum { QUICK_BUDGETS = 4 }; /* where it is asked whether anything fits: the smallest plan is near the least of them */
enum { OTHER_FORMS_BUDGETS = 8 }; /* of a frontier beside that of the established form: what lies between is as good */
/* Nodes of a graph, and nodes counted for every choice, that take a second or two. What is less is told to nobody. */
enum { NODES_TOLD = 50000, CHOICES_TOLD = 400000 };

static bool may_fit(const pl_fit_search *s, const pl_fit_point *p) { return p->least_bytes <= s->result->budget_bytes; }
static bool is_wanted(const pl_fit_search *s, const pl_fit_point *p) { return s->options->everything || may_fit(s, p); }
static bool fits(const pl_fit_search *s, const pl_fit_point *p)
{
    return p->charged_bytes && p->charged_bytes <= s->result->budget_bytes;
}

/* By counting work, not by a clock: the same command says the same. */
static void tell(const pl_fit_search *s, size_t done, size_t total)
{
    const pl_fit_options *o = s->options;
    size_t nodes = s->graph->node_count;
    bool long_one = nodes >= NODES_TOLD || nodes * s->result->count >= CHOICES_TOLD;
    if (o->tell && long_one) o->tell(o->context, done, total);
}

/* What may be computed again, as the planner of recompute proposes it: with costs that are guessed from operations and
 * bytes, or that were measured. The decisions are made for one micro-batch; they name nodes, not sizes, so they are
 * good for every other in the same form. */
static pl_status propose_in(pl_fit_search *s, const pl_choice *form, bool measured, pl_error *err)
{
    pl_fit_result *r = s->result;
    pl_fit_options o = *s->options;
    o.given = *form;
    o.measure = NULL;
    if (!measured) o.plan.cost = (pl_cost_model){0};
    pl_choice established = r->point[0].choice;
    established.precision = form->precision;
    int budgets = pl_choice_same_form(form, &established) ? PL_RECOMPUTE_BUDGETS_MAX : OTHER_FORMS_BUDGETS;
    if (o.quick) budgets = QUICK_BUDGETS;
    PL_TRY(
        pl_recompute_frontier_create(s->graph, &o, form->micro_batch, budgets, &r->frontier[r->frontier_count], err));
    r->frontier_count++;
    return pl_fit_list(s->graph, s->options, r->frontier[r->frontier_count - 1], r, err);
}

/* For every form with guessed costs, in the order in which forms are first met. What was measured depends on the
 * budget, but for the established forms, one of each precision, whose kernels always are: those are asked again with
 * measured costs. */
static pl_status propose(pl_fit_search *s, bool measured, pl_error *err)
{
    const pl_fit_result *r = s->result;
    size_t rules = r->count, begun = r->frontier_count;
    if (!pl_fit_plans_recompute(s->graph, s->options)) return PL_OK;
    for (size_t i = 0; i < rules && r->frontier_count < PL_FIT_FRONTIERS_MAX; i++) {
        pl_choice form = r->point[i].choice, established = r->point[0].choice;
        established.precision = form.precision;
        bool known = measured ? !pl_choice_same_form(&established, &form) : !pl_fit_plans_form(s->options, &form);
        for (size_t k = begun; k < r->frontier_count && !known; k++)
            known = pl_choice_same_form(pl_recompute_frontier_given(r->frontier[k]), &form);
        if (!known) PL_TRY(propose_in(s, &form, measured, err));
    }
    return PL_OK;
}

/* ---- twins: two frontiers often propose the same, and then the one's figures are the other's ---- */

/* The first point with the same choice; often itself. */
static const pl_fit_point *first_of(const pl_fit_search *s, const pl_fit_point *p)
{
    const pl_fit_point *first = s->result->point;
    while (first < p && !pl_choice_equal(&first->choice, &p->choice)) first++;
    return first;
}

static void take_bound(pl_fit_point *p, const pl_fit_point *from)
{
    p->least_bytes = from->least_bytes;
    pl_fit_take_time(p, from);
    p->work = from->work;
}

static pl_status bound(pl_fit_search *s, size_t from, pl_error *err)
{
    for (size_t i = from; i < s->result->count; i++) {
        pl_fit_point *p = &s->result->point[i];
        const pl_fit_point *first = first_of(s, p);
        tell(s, i, s->result->count);
        if (first < p) {
            take_bound(p, first);
            continue;
        }
        pl_plan_options how = pl_fit_plan_options(s->options, &p->choice);
        pl_graph *g;
        PL_TRY(pl_fit_bind(s->graph, s->options, &p->choice, &g, err));
        pl_status status = pl_plan_find_least(g, &how, &p->least_bytes, err);
        /* What was measured before need not be bound again. */
        if (is_wanted(s, p) && !s->options->quick) pl_fit_predict(s->options, g, p);
        pl_graph_destroy(g);
        if (status != PL_OK) return status;
    }
    return PL_OK;
}

/* Planned as if huge pages were no question; what they would add is noted. */
static pl_status plan_one(pl_fit_search *s, size_t i, bool quick, pl_plan **plan, pl_error *err)
{
    pl_fit_point *p = &s->result->point[i];
    pl_fit_options o = *s->options;
    o.plan.quick = quick;
    PL_TRY(pl_fit_candidate(s->graph, &o, &p->choice, plan, err));
    p->huge_bytes = (*plan)->huge_pages ? pl_plan_charged_bytes(*plan) : 0;
    pl_status status = PL_OK;
    if ((*plan)->huge_pages) {
        (*plan)->huge_pages = false;
        status = pl_plan_account(*plan, s->options->plan.helper_threads, err);
    }
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    if (status == PL_OK) p->charged_bytes = pl_plan_charged_bytes(*plan);
    return status;
}

/* In hand from now on; what was is given back. */
static pl_status take(pl_fit_search *s, size_t i, bool quick, pl_error *err)
{
    pl_plan_destroy(s->plan);
    s->plan = NULL;
    s->planned = i;
    PL_TRY(plan_one(s, i, quick, &s->plan, err));
    s->rough = quick && s->plan->arena->bytes > s->plan->arena->lower_bound_bytes;
    s->result->point[i].rough = s->rough;
    return PL_OK;
}

static pl_status hold(pl_fit_search *s, size_t i, pl_error *err)
{
    return s->plan && s->planned == i && !s->rough ? PL_OK : take(s, i, false, err);
}

/* What the plan in hand would be charged in an arena of the lower bound, and what may come of another text of the plan:
 * its reader's heap is counted in steps of 64 KiB. */
static pl_status charged_at_best(pl_fit_search *s, uint64_t *bytes, pl_error *err)
{
    const uint64_t steps = 256 << 10;
    pl_plan *p = s->plan;
    uint64_t arena_bytes = p->arena->bytes;
    p->arena->bytes = p->arena->lower_bound_bytes;
    pl_status status = pl_plan_account(p, s->options->plan.helper_threads, err);
    *bytes = pl_plan_charged_bytes(p) > steps ? pl_plan_charged_bytes(p) - steps : 0;
    p->arena->bytes = arena_bytes;
    return status == PL_OK ? pl_plan_account(p, s->options->plan.helper_threads, err) : status;
}

static bool is_charged(const pl_fit_point *p) { return p->charged_bytes && !p->rough; }

/* What a point is charged, exactly where that could be below the limit: then the placer takes its time. */
static pl_status charge(pl_fit_search *s, pl_fit_point *p, uint64_t limit, pl_error *err)
{
    const pl_fit_point *first = first_of(s, p);
    size_t i = (size_t)(p - s->result->point);
    uint64_t least;
    if (is_charged(p)) return PL_OK;
    if (is_charged(first)) {
        p->charged_bytes = first->charged_bytes;
        p->huge_bytes = first->huge_bytes;
        p->rough = false;
        return PL_OK;
    }
    PL_TRY(take(s, i, true, err));
    if (!s->rough) return PL_OK;
    PL_TRY(charged_at_best(s, &least, err));
    return least >= limit ? PL_OK : take(s, i, false, err);
}

/* ---- does anything fit? ---- */

static int by_least(const void *a, const void *b)
{
    const pl_fit_point *p = *(pl_fit_point *const *)a, *q = *(pl_fit_point *const *)b;
    if (p->least_bytes != q->least_bytes) return p->least_bytes < q->least_bytes ? -1 : 1;
    return p < q ? -1 : p > q;
}

static pl_status note_smallest(pl_fit_search *s, size_t i, pl_error *err)
{
    pl_fit_result *r = s->result;
    PL_TRY(charge(s, &r->point[i], r->least == PL_FIT_NONE ? UINT64_MAX : r->point[r->least].charged_bytes, err));
    if (r->least != PL_FIT_NONE && r->point[r->least].charged_bytes <= r->point[i].charged_bytes) return PL_OK;
    r->least = i;
    return PL_OK;
}

static pl_fit_point **order_by_least(const pl_fit_search *s, pl_error *err)
{
    pl_fit_result *r = s->result;
    pl_fit_point **order = pl_alloc(r->count, sizeof *order);
    if (!order) {
        pl_fail(err, PL_E_NOMEM, "no memory for %zu choices", r->count);
        return NULL;
    }
    for (size_t i = 0; i < r->count; i++) order[i] = &r->point[i];
    qsort(order, r->count, sizeof *order, by_least);
    return order;
}

/* Exactly: what holds at least as many bytes as the smallest plan that is known cannot be smaller. */
static pl_status find_smallest(pl_fit_search *s, pl_error *err)
{
    pl_fit_result *r = s->result;
    pl_status status = PL_OK;
    pl_fit_point **order = order_by_least(s, err);
    if (!order) return PL_E_NOMEM;
    for (size_t i = 0; i < r->count; i++) {
        tell(s, i, r->count);
        if (r->least != PL_FIT_NONE && order[i]->least_bytes >= r->point[r->least].charged_bytes) break;
        PL_TRY_DONE(note_smallest(s, (size_t)(order[i] - r->point), err));
    }
    PL_TRY_DONE(hold(s, r->least, err));
    pl_fit_predict(s->options, s->plan->graph, &r->point[r->least]);
    r->smallest = s->plan;
    s->plan = NULL;
done:
    pl_free(order);
    return status;
}

static uint64_t above(uint64_t budget_bytes) { return budget_bytes == UINT64_MAX ? UINT64_MAX : budget_bytes + 1; }

static pl_status find_any(pl_fit_search *s, bool *found, pl_error *err)
{
    *found = false;
    for (size_t i = 0; i < s->result->count && !*found; i++) {
        if (!may_fit(s, &s->result->point[i])) continue;
        tell(s, i, s->result->count);
        PL_TRY(charge(s, &s->result->point[i], above(s->result->budget_bytes), err));
        *found = fits(s, &s->result->point[i]);
    }
    return *found ? PL_OK : find_smallest(s, err);
}

/* ---- how long does a step take? ---- */

/* The last of those with the same kernels stands for them: of a frontier that is what repeats the most. The established
 * ones of each precision are always measured: by them it is planned what to compute again. */
static bool stands_for_others(const pl_fit_search *s, size_t i)
{
    const pl_fit_point *p = s->result->point;
    for (size_t k = i + 1; k < s->result->count; k++)
        if (pl_choice_same_kernels(&p[k].choice, &p[i].choice)) return false;
    pl_choice established = p[0].choice;
    established.precision = p[i].choice.precision;
    bool wanted = pl_choice_same_kernels(&established, &p[i].choice);
    for (size_t k = 0; k <= i && !wanted; k++)
        wanted = pl_choice_same_kernels(&p[k].choice, &p[i].choice) && is_wanted(s, &p[k]);
    return wanted;
}

/* *news: its time is another one now, so something was measured. */
static pl_status measure_one(const pl_fit_search *s, size_t i, bool *news, pl_error *err)
{
    const pl_fit_options *o = s->options;
    pl_fit_point before = s->result->point[i], after = before;
    pl_graph *g;
    PL_TRY(pl_fit_bind(s->graph, o, &before.choice, &g, err));
    if (before.seconds < 0) pl_fit_predict(o, g, &before);
    pl_status status = o->measure(o->context, g, err);
    if (status == PL_OK) pl_fit_predict(o, g, &after);
    *news |= after.seconds != before.seconds;
    pl_graph_destroy(g);
    return status;
}

/* All of it measured: nothing that is measured yet would change it. */
static bool is_measured(const pl_fit_point *p) { return p->seconds >= 0 && p->estimated_seconds == 0; }

/* What was predicted before is good as long as nothing was measured. */
static pl_status measure(const pl_fit_search *s, pl_error *err)
{
    bool news = false;
    for (size_t i = 0; i < s->result->count; i++)
        if (s->options->measure && stands_for_others(s, i)) PL_TRY(measure_one(s, i, &news, err));
    for (size_t i = 0; i < s->result->count && news; i++) s->result->point[i].seconds = -1;
    return PL_OK;
}

/* What stood for it may lack a kernel of its own (computed in place, a last group of blocks): that is measured, too. */
static pl_status predict_graph(const pl_fit_search *s, const pl_graph *g, pl_fit_point *p, pl_error *err)
{
    const pl_fit_options *o = s->options;
    pl_fit_predict(o, g, p);
    if (is_measured(p) || !o->measure) return PL_OK;
    PL_TRY(o->measure(o->context, g, err));
    pl_fit_predict(o, g, p);
    return PL_OK;
}

static pl_status predict_one(const pl_fit_search *s, size_t i, pl_error *err)
{
    pl_fit_point *p = &s->result->point[i];
    pl_graph *g;
    const pl_fit_point *first = first_of(s, p);
    if (is_measured(p) || (p->seconds >= 0 && !s->options->measure)) return PL_OK;
    if (first < p && first->seconds >= 0) return take_bound(p, first), PL_OK;
    if (s->plan && s->planned == i) return predict_graph(s, s->plan->graph, p, err);
    PL_TRY(pl_fit_bind(s->graph, s->options, &p->choice, &g, err));
    pl_status status = predict_graph(s, g, p, err);
    pl_graph_destroy(g);
    return status;
}

static pl_status predict(pl_fit_search *s, pl_error *err)
{
    PL_TRY(measure(s, err));
    size_t known = s->result->count;
    if (s->options->plan.cost.seconds) PL_TRY(propose(s, true, err));
    PL_TRY(bound(s, known, err));
    for (size_t i = 0; i < s->result->count; i++)
        if (is_wanted(s, &s->result->point[i])) {
            tell(s, i, s->result->count);
            PL_TRY(predict_one(s, i, err));
        }
    return PL_OK;
}

/* ---- the front ---- */

/* The faster first. What nobody can predict comes behind all that can be, by its work. */
static int by_time(const void *a, const void *b)
{
    const pl_fit_point *p = *(pl_fit_point *const *)a, *q = *(pl_fit_point *const *)b;
    if ((p->seconds < 0) != (q->seconds < 0)) return p->seconds < 0 ? 1 : -1;
    double x = p->seconds < 0 ? p->work : p->seconds, y = q->seconds < 0 ? q->work : q->seconds;
    if (x != y) return x < y ? -1 : 1;
    return by_least(a, b);
}

/* Is q not worth its bytes beside p, which needs fewer? */
static bool is_dropped_for(const pl_fit_point *q, const pl_fit_point *p)
{
    return p->rank < q->rank && p->seconds >= 0 && p->seconds <= (1 + PL_FIT_WORTH) * q->seconds;
}

typedef struct walk {
    pl_fit_point **order; /* by time; at its begin, as the walk goes on, the front */
    size_t wanted, front;
    pl_fit_point *chosen;
} walk;

/* The fastest of the front that fits and is not dropped for what comes behind it. */
static void choose(const pl_fit_search *s, walk *w)
{
    w->chosen = NULL;
    for (size_t i = 0; i < w->front && !w->chosen; i++) {
        bool dropped = !fits(s, w->order[i]);
        for (size_t k = i + 1; k < w->front && !dropped; k++) dropped = is_dropped_for(w->order[i], w->order[k]);
        if (!dropped) w->chosen = w->order[i];
    }
}

/* Nothing that comes behind can be preferred to what is chosen. */
static bool is_over(const pl_fit_search *s, const walk *w, const pl_fit_point *next)
{
    if (!w->chosen || s->options->everything) return false;
    return w->chosen->rank == 0 || w->chosen->seconds < 0 || next->seconds < 0 ||
           next->seconds > (1 + PL_FIT_WORTH) * w->chosen->seconds;
}

static pl_status step(pl_fit_search *s, walk *w, pl_fit_point *next, pl_error *err)
{
    uint64_t below = w->front ? w->order[w->front - 1]->charged_bytes : UINT64_MAX;
    if (next->least_bytes >= below) return PL_OK;
    PL_TRY(charge(s, next, below, err));
    if (next->charged_bytes >= below) return PL_OK;
    if (w->front && next->seconds >= 0 && w->order[w->front - 1]->seconds == next->seconds)
        w->front--; /* as fast, and larger: beaten */
    w->order[w->front++] = next;
    choose(s, w);
    return PL_OK;
}

static void mark_front(const walk *w)
{
    for (size_t i = 0; i < w->front; i++) {
        w->order[i]->front = true;
        for (size_t k = i + 1; k < w->front; k++)
            if (is_dropped_for(w->order[i], w->order[k])) w->order[i]->front = false;
    }
}

static pl_status walk_along(pl_fit_search *s, pl_error *err)
{
    pl_fit_result *r = s->result;
    pl_status status = PL_OK;
    walk w = {.order = pl_alloc(r->count, sizeof *w.order)};
    if (!w.order) return pl_fail(err, PL_E_NOMEM, "no memory for %zu choices", r->count);
    for (size_t i = 0; i < r->count; i++)
        if (is_wanted(s, &r->point[i])) w.order[w.wanted++] = &r->point[i];
    qsort(w.order, w.wanted, sizeof *w.order, by_time);
    for (size_t i = 0; i < w.wanted && !(w.chosen && w.order[i] != w.chosen && is_over(s, &w, w.order[i])); i++) {
        tell(s, i, w.wanted);
        PL_TRY_DONE(step(s, &w, w.order[i], err));
    }
    mark_front(&w);
    r->chosen = (size_t)(w.chosen - r->point);
    PL_TRY_DONE(hold(s, r->chosen, err));
done:
    pl_free(w.order);
    return status;
}

/* What may be smallest is the first to be asked. */
static pl_status find_one(pl_fit_search *s, pl_error *err)
{
    pl_fit_result *r = s->result;
    pl_status status = PL_OK;
    pl_fit_point **order = order_by_least(s, err);
    if (!order) return PL_E_NOMEM;
    for (size_t i = 0; i < r->count && r->chosen == PL_FIT_NONE && may_fit(s, order[i]); i++) {
        PL_TRY_DONE(charge(s, order[i], above(r->budget_bytes), err));
        if (fits(s, order[i])) r->chosen = (size_t)(order[i] - r->point);
    }
    if (r->chosen != PL_FIT_NONE) PL_TRY_DONE(hold(s, r->chosen, err));
done:
    pl_free(order);
    return status;
}

pl_status pl_fit_run_search(pl_fit_search *s, pl_error *err)
{
    bool found;
    PL_TRY(pl_fit_list(s->graph, s->options, NULL, s->result, err));
    PL_TRY(propose(s, false, err));
    if (s->result->count > 1) PL_TRY(bound(s, 0, err));
    if (s->options->quick) return find_one(s, err);
    PL_TRY(find_any(s, &found, err));
    if (!found) return PL_OK;
    PL_TRY(predict(s, err));
    return walk_along(s, err);
}
