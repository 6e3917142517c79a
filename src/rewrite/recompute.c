/* Carrying out a decision: one walk over the nodes in their order. Where the decision says so, a copy of an earlier
 * node is put in; from there on everybody reads the copy's output instead of the first one, whose life so ends with its
 * last reader before.
 *
 *      decision (3 before 40) (7 before 40)      … 38 39 3' 7' 40 …      7' reads what 3' made, and so does 40
 *
 * Invariant: `newest` names, for each value of the graph as it was given, the copy that a reader at this place of the
 * walk reads. A window on a value that was made again becomes a window on the copy. */
#include <string.h>

#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct recomputer {
    pl_graph *g;
    const pl_recompute_decision *d;
    pl_node *given;       /* [nodes] as they were: what a repetition begins from */
    size_t nodes, values; /* before the first copy */
    pl_id *newest;        /* [values] */
    uint32_t *copies;     /* [values] so far */
    pl_id *order;         /* [nodes + copies] */
    size_t placed;
    pl_error *err;
} recomputer;

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values"); }

static pl_status refuse(const recomputer *r, const pl_again *a, const char *why)
{
    bool exists = a->node < r->nodes;
    return pl_fail(r->err, PL_E_INTERNAL, "recompute: node %u (%s in %s) again before node %u: %s", a->node,
                   exists ? pl_op_name(r->g->node[a->node].op) : "none",
                   exists ? r->g->node[a->node].scope : "no scope", a->before, why);
}

/* The same value once more, for another node or window to fill. */
static pl_status add_copy(recomputer *r, pl_id of, pl_id view_of)
{
    pl_graph *g = r->g;
    pl_value v = g->value[of];
    pl_str name = {0};
    pl_str_printf(&name, "%s.again", v.name);
    if (r->copies[of] > 0) pl_str_printf(&name, "%u", r->copies[of] + 1);
    r->copies[of]++;
    v.name = name.data;
    v.producer = PL_NONE;
    v.view_of = view_of;
    pl_id copy = name.failed ? PL_NONE : pl_graph_add_value(g, &v);
    pl_str_deinit(&name);
    r->newest[of] = copy;
    return copy == PL_NONE ? no_memory(r->err) : PL_OK;
}

/* What a reader at this place of the walk reads for `value`. A window on a copy is made when it is first asked for. */
static pl_status find_newest(recomputer *r, pl_id value, pl_id *newest)
{
    *newest = value;
    if (value == PL_NONE || value >= r->values) return PL_OK;
    pl_id base = r->g->value[value].view_of, base_now = PL_NONE;
    if (base != PL_NONE) {
        PL_TRY(find_newest(r, base, &base_now));
        if (r->g->value[r->newest[value]].view_of != base_now) PL_TRY(add_copy(r, value, base_now));
    }
    *newest = r->newest[value];
    return PL_OK;
}

static pl_status redirect(recomputer *r, pl_id node)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        pl_id newest;
        PL_TRY(find_newest(r, r->g->node[node].in[k], &newest)); /* may move the arrays */
        r->g->node[node].in[k] = newest;
    }
    return PL_OK;
}

static pl_status repeat(recomputer *r, const pl_again *a)
{
    pl_graph *g = r->g;
    const pl_node *given = &r->given[a->node];
    pl_node again = *given;
    again.phase = g->node[a->before].phase;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) again.out[k] = PL_NONE; /* statistics are kept */
    pl_id copy = pl_graph_add_node(g, &again);
    if (copy == PL_NONE) return no_memory(r->err);
    PL_TRY(redirect(r, copy));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        if (!pl_node_remakes(given, k)) continue;
        PL_TRY(add_copy(r, given->out[k], PL_NONE));
        g->node[copy].out[k] = r->newest[given->out[k]];
        g->value[r->newest[given->out[k]]].producer = copy;
    }
    r->order[r->placed++] = copy;
    return PL_OK;
}

static pl_status walk(recomputer *r)
{
    const pl_again *a = r->d->again, *end = a + r->d->count;
    for (pl_id i = 0; i < r->nodes; i++) {
        for (; a < end && a->before == i; a++) PL_TRY(repeat(r, a));
        if (!r->g->node[i].dead) PL_TRY(redirect(r, i));
        r->order[r->placed++] = i;
    }
    PL_TRY(pl_graph_reorder(r->g, r->order, r->err));
    return pl_graph_number_values(r->g, r->err);
}

static pl_status check(const recomputer *r, const bool *may)
{
    for (size_t i = 0; i < r->d->count; i++) {
        const pl_again *a = &r->d->again[i];
        if (a->before >= r->nodes || a->node >= a->before) return refuse(r, a, "there is no such place after it");
        if (i && a->before < a[-1].before) return refuse(r, a, "the decision is not in the order of the graph");
        if (r->g->node[a->before].region != r->g->node[a->node].region) return refuse(r, a, "that is another region");
        if (!may[a->node] || r->g->node[a->before].dead) return refuse(r, a, "it can run only once");
    }
    return PL_OK;
}

pl_status pl_rewrite_recompute(pl_graph *g, const pl_recompute_decision *d, pl_error *err)
{
    recomputer r = {.g = g, .d = d, .nodes = g->node_count, .values = g->value_count, .err = err};
    pl_status status = PL_OK;
    bool *may = pl_alloc(r.nodes + 1, sizeof *may);
    r.given = pl_alloc(r.nodes + 1, sizeof *r.given);
    r.newest = pl_alloc(r.values + 1, sizeof *r.newest);
    r.copies = pl_alloc(r.values + 1, sizeof *r.copies);
    r.order = pl_alloc(r.nodes + d->count + 1, sizeof *r.order);
    if (!may || !r.given || !r.newest || !r.copies || !r.order) PL_TRY_DONE(no_memory(err));
    memcpy(r.given, g->node, r.nodes * sizeof *r.given);
    for (size_t i = 0; i < r.values; i++) r.newest[i] = (pl_id)i;
    PL_TRY_DONE(pl_recompute_find_repeatable(g, may, err));
    PL_TRY_DONE(check(&r, may));
    if (d->count) status = walk(&r);
done:
    pl_free(may);
    pl_free(r.given);
    pl_free(r.newest);
    pl_free(r.copies);
    pl_free(r.order);
    return status;
}

static pl_status decide_and_do(pl_graph *g, pl_id program,
                               pl_status (*decide)(const pl_graph *, pl_id, pl_recompute_decision *, pl_error *),
                               pl_error *err)
{
    pl_recompute_decision d = {0};
    pl_status status = decide(g, program, &d, err);
    if (status == PL_OK) status = pl_rewrite_recompute(g, &d, err);
    pl_recompute_decision_deinit(&d);
    return status;
}

pl_status pl_rewrite_recompute_cheap(pl_graph *g, pl_id program, pl_error *err)
{
    return decide_and_do(g, program, pl_recompute_decide_cheap, err);
}

pl_status pl_rewrite_recompute_full(pl_graph *g, pl_id program, pl_error *err)
{
    return decide_and_do(g, program, pl_recompute_decide_full, err);
}
