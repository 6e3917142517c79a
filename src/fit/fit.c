/* From a search to a plan, or to a refusal. */
#include "fit/fit.h"

#include <stdio.h>
#include <string.h>

#include "fit/recompute.h"
#include "ir/op.h"
#include "ir/properties.h"

/* The largest values alive at the plan's peak, in words. */
static void describe_peak(const pl_plan *p, char *text, size_t room)
{
    size_t used = 0;
    uint64_t below = UINT64_MAX;
    text[0] = 0;
    for (int rank = 0; rank < 3; rank++) {
        pl_id best = PL_NONE;
        for (size_t i = 0; i < p->graph->value_count; i++) {
            const pl_block *b = &p->value[i];
            bool alive = b->bytes && b->first <= p->arena->peak_position && p->arena->peak_position < b->last &&
                         b->bytes < below;
            if (alive && (best == PL_NONE || b->bytes > p->value[best].bytes)) best = (pl_id)i;
        }
        if (best == PL_NONE || used >= room) return;
        below = p->value[best].bytes;
        used += (size_t)snprintf(text + used, room - used, "%s%s (%llu bytes)", rank ? ", " : "",
                                 p->graph->value[best].name, (unsigned long long)below);
    }
}

/* Samples are mixed: the batch cannot be cut. */
static bool is_whole(const pl_graph *g)
{
    const pl_id train = pl_graph_find_trained(g);
    return train != PL_NONE && pl_graph_find_mixer(g, train) != PL_NONE;
}

/* A micro-batch above 1 was asked for, follows from an early update, or is what an evaluation takes by itself. */
static void say_smaller_batch(const pl_fit_result *r, const pl_choice *given, char *text, size_t room)
{
    snprintf(text, room, "set %s%s to %s", given->update_early ? "train.update_in_backward and " : "",
             r->words->at_once_key, r->smallest->batch == 0 ? "1" : "auto");
}

static pl_status refuse(const pl_fit_result *r, const pl_fit_options *o, pl_error *err)
{
    const pl_plan *smallest = r->smallest;
    char alive[400], change[240];
    uint64_t need = pl_plan_charged_bytes(smallest), by_role[PL_ROLE_COUNT] = {0};
    describe_peak(smallest, alive, sizeof alive);
    for (size_t i = 0; i < smallest->graph->value_count; i++) {
        const pl_block *b = &smallest->value[i];
        bool held = b->first <= smallest->arena->peak_position && smallest->arena->peak_position < b->last;
        by_role[smallest->graph->value[i].role] += held ? b->bytes : 0;
    }
    uint64_t state =
        by_role[PL_ROLE_WEIGHT] + by_role[PL_ROLE_GRADIENT] + by_role[PL_ROLE_OPTIMIZER] + by_role[PL_ROLE_AVERAGE];
    if (o->budget_bytes < o->floor_bytes)
        snprintf(change, sizeof change, PL_FIT_NO_MODEL("%llu") "; raise the budget to %llu bytes",
                 (unsigned long long)o->floor_bytes, (unsigned long long)need);
    else if (o->is_advised)
        snprintf(change, sizeof change, "raise the budget to %llu bytes", (unsigned long long)need);
    else if (state > o->budget_bytes)
        snprintf(change, sizeof change, "weights, gradients and optimizer state alone are %llu bytes; make %s smaller",
                 (unsigned long long)state, r->words->weight_keys);
    else if (o->given.micro_batch > 1 && !is_whole(smallest->graph))
        say_smaller_batch(r, &o->given, change, sizeof change);
    else if (o->instead)
        snprintf(change, sizeof change, "raise the budget to %llu bytes, or take %s", (unsigned long long)need,
                 o->instead);
    else
        snprintf(change, sizeof change, "raise the budget to %llu bytes, or make %s smaller", (unsigned long long)need,
                 r->words->size_keys);
    return pl_fail(err, PL_E_BUDGET,
                   "the smallest plan needs %llu bytes, %llu bytes more than the budget of %llu bytes; largest at its "
                   "peak: %s; %s",
                   (unsigned long long)need, (unsigned long long)(need - o->budget_bytes),
                   (unsigned long long)o->budget_bytes, alive, change);
}

/* Huge pages where what they round up to still fits. */
static pl_status settle_pages(pl_fit_search *s, pl_error *err)
{
    const pl_fit_point *p = &s->result->point[s->result->chosen];
    s->result->huge_pages = p->huge_bytes && p->huge_bytes <= s->result->budget_bytes;
    s->plan->huge_pages = s->result->huge_pages;
    return pl_plan_account(s->plan, s->options->plan.helper_threads, err);
}

static pl_status conclude(pl_fit_search *s, pl_plan **plan, pl_error *err)
{
    const pl_fit_result *r = s->result;
    if (r->chosen == PL_FIT_NONE && s->options->quick) return pl_fail(err, PL_E_BUDGET, "nothing fits");
    if (r->chosen == PL_FIT_NONE) return refuse(r, s->options, err);
    PL_TRY(settle_pages(s, err));
    PL_TRY(pl_fit_find_potential(s, err));
    PL_TRY(pl_fit_predict_plan(s->options, &r->point[r->chosen].choice, s->plan, err));
    *plan = s->plan;
    s->plan = NULL;
    return PL_OK;
}

pl_status pl_fit(const pl_graph *graph, const pl_fit_options *o, pl_plan **plan, pl_error *err)
{
    return pl_fit_find(graph, o, NULL, plan, err);
}

/* Of a sample: what enters a loss, at most (a page may have fewer words). Where both have one name it is one. */
static int64_t items_of(const pl_graph *g, bool trained, const pl_words *words)
{
    int64_t most = 1;
    if (!trained || (words && strcmp(words->item, words->sample) == 0)) return 1;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const pl_id judged = *n->in; /* what any loss judges comes first */
        if (n->dead || !pl_op_rule_of(n->op)->loss || judged == PL_NONE) continue;
        const int64_t rows = pl_shape_rows(&g->value[judged].shape);
        if (rows > most) most = rows;
    }
    return most;
}

pl_status pl_fit_find(const pl_graph *graph, const pl_fit_options *o, pl_fit_result *result, pl_plan **plan,
                      pl_error *err)
{
    pl_fit_result own;
    pl_fit_options decided = *o;
    pl_fit_search s = {.graph = graph, .options = &decided, .result = result ? result : &own};
    const bool trained = pl_graph_find_trained(graph) != PL_NONE;
    decided.given.micro_batch = pl_fit_given_micro_batch(graph, o);
    *plan = NULL;
    *s.result = (pl_fit_result){.chosen = PL_FIT_NONE,
                                .least = PL_FIT_NONE,
                                .cheapest = PL_FIT_NONE,
                                .budget_bytes = o->budget_bytes,
                                .floor_bytes = o->floor_bytes,
                                .batch = o->batch,
                                .trained = trained,
                                .rows = items_of(graph, trained, o->words),
                                .words = o->words ? o->words : &pl_words_plain,
                                .threads = o->plan.team.threads};
    pl_status status = pl_fit_run_search(&s, err);
    if (status == PL_OK) status = conclude(&s, plan, err);
    pl_plan_destroy(s.plan);
    if (!result) pl_fit_result_deinit(&own);
    return status;
}

void pl_fit_result_deinit(pl_fit_result *r)
{
    for (size_t i = 0; i < r->frontier_count; i++) pl_recompute_frontier_destroy(r->frontier[i]);
    r->frontier_count = 0;
    pl_plan_destroy(r->smallest);
    r->smallest = NULL;
    pl_free(r->point);
    r->point = NULL;
    r->count = 0;
}
