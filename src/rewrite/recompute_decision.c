/* Which nodes may run again, and the two decisions that follow from a rule. Both walk a program from its last node to
 * its first, so that whoever will read a repetition is known before what it reads is looked at. Values are named by
 * their roots: a window is a way to read the value behind it. */
#include <stdlib.h>
#include <string.h>

#include "ir/op.h"
#include "rewrite/rewrite.h"

void pl_recompute_decision_deinit(pl_recompute_decision *d)
{
    pl_free(d->again);
    *d = (pl_recompute_decision){0};
}

pl_status pl_recompute_decision_add(pl_recompute_decision *d, pl_id node, pl_id before, pl_error *err)
{
    if (pl_grow(&d->again, &d->capacity, d->count, sizeof *d->again))
        return pl_fail(err, PL_E_NOMEM, "no memory for a decision of %zu repetitions", d->count);
    d->again[d->count++] = (pl_again){node, before};
    return PL_OK;
}

/* ---- what may run again ---- */

/* Of the storage of each value: how many nodes write it, and while a walk goes from the last node to the first, the
 * nearest one behind that does. */
typedef struct writers {
    uint32_t *count;
    pl_id *next;
} writers;

/* A value of its own that nobody else writes. */
static bool is_own(const pl_graph *g, pl_id id, const writers *w)
{
    const pl_value *v = &g->value[id];
    bool temporary = v->role == PL_ROLE_TEMPORARY || v->role == PL_ROLE_SAVED;
    return pl_value_root(g, id) == id && temporary && v->program != PL_NONE && w->count[id] == 1;
}

/* What it makes again is its own; the other outputs can be left out. */
static bool makes_its_own(const pl_graph *g, pl_id id, const writers *w)
{
    const pl_node *n = &g->node[id];
    const pl_signature *s = pl_signature_of(n->op);
    if (pl_node_result(n) == PL_NONE) return false;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        if (n->out[k] == PL_NONE) continue;
        if (pl_node_remakes(n, k) ? !is_own(g, n->out[k], w)
                                  : pl_operand_is_required(s->out, k) || pl_node_alias(n, k).update >= 0)
            return false;
    }
    return true;
}

/* What it reads is not written again before its region ends. */
static bool inputs_stay(const pl_graph *g, const pl_node *n, const writers *w, const pl_id *region_end)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        if (n->in[k] == PL_NONE) continue;
        pl_id next = w->next[pl_value_root(g, n->in[k])];
        if (next != PL_NONE && next < region_end[n->region]) return false;
    }
    return true;
}

static void find_repeatable(const pl_graph *g, writers *w, pl_id *region_end, bool *may)
{
    for (size_t i = 0; i < g->value_count; i++) w->next[i] = PL_NONE;
    for (pl_id i = 0; i < g->node_count; i++) {
        for (pl_id r = g->node[i].region; r != PL_NONE; r = g->region[r].parent) region_end[r] = i + 1;
        for (int k = 0; k < PL_NODE_OUT_MAX && !g->node[i].dead; k++)
            if (g->node[i].out[k] != PL_NONE) w->count[pl_value_root(g, g->node[i].out[k])]++;
    }
    for (pl_id i = (pl_id)g->node_count; i-- > 0;) {
        const pl_node *n = &g->node[i];
        bool plain = !n->dead && !pl_op_is_outside(n->op) && n->predicate == PL_NONE && n->wait == PL_NONE;
        may[i] = plain && makes_its_own(g, i, w) && inputs_stay(g, n, w, region_end);
        for (int k = 0; k < PL_NODE_OUT_MAX && !n->dead; k++)
            if (n->out[k] != PL_NONE) w->next[pl_value_root(g, n->out[k])] = i;
    }
}

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory to decide what to recompute"); }

pl_status pl_recompute_find_repeatable(const pl_graph *g, bool *may, pl_error *err)
{
    writers w = {pl_alloc(g->value_count + 1, sizeof *w.count), pl_alloc(g->value_count + 1, sizeof *w.next)};
    pl_id *region_end = pl_alloc(g->region_count + 1, sizeof *region_end);
    bool fine = w.count && w.next && region_end;
    if (fine) find_repeatable(g, &w, region_end, may);
    pl_free(w.count);
    pl_free(w.next);
    pl_free(region_end);
    return fine ? PL_OK : no_memory(err);
}

/* ---- the two rules ---- */

typedef struct decider {
    const pl_graph *g;
    pl_id program;
    bool *may;        /* [nodes] */
    pl_id *wanted_at; /* [values], roots: the first node of the backward pass that reads it, or a repetition in front of
                         it; PL_NONE: none */
    bool *there;      /* [values], roots: to be had in the backward pass anyhow */
    bool *leaves;     /* [values], roots: read in the forward pass outside its block */
    pl_id *start;     /* [nodes] where the backward pass of the node's block begins; PL_NONE: in no block, or none */
} decider;

/* Where the backward pass first reads what the node makes again; PL_NONE: nowhere. */
static pl_id first_wanted(const decider *d, const pl_node *n)
{
    pl_id first = PL_NONE;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (pl_node_remakes(n, k) && d->wanted_at[n->out[k]] < first) first = d->wanted_at[n->out[k]];
    return first;
}

static bool is_in(const decider *d, const pl_node *n)
{
    return !n->dead && pl_region_program(d->g, n->region) == d->program;
}

static void want(const decider *d, const pl_node *n, pl_id at)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        if (n->in[k] == PL_NONE) continue;
        pl_id root = pl_value_root(d->g, n->in[k]);
        if (d->wanted_at[root] == PL_NONE || at < d->wanted_at[root]) d->wanted_at[root] = at;
    }
}

static void find_readers(decider *d)
{
    for (size_t i = 0; i < d->g->value_count; i++) d->wanted_at[i] = PL_NONE;
    for (pl_id i = 0; i < d->g->node_count; i++)
        if (is_in(d, &d->g->node[i]) && d->g->node[i].phase == PL_PHASE_BACKWARD) want(d, &d->g->node[i], i);
}

static pl_status init(decider *d, const pl_graph *g, pl_id program, pl_error *err)
{
    *d = (decider){.g = g, .program = program};
    d->may = pl_alloc(g->node_count + 1, sizeof *d->may);
    d->wanted_at = pl_alloc(g->value_count + 1, sizeof *d->wanted_at);
    d->there = pl_alloc(g->value_count + 1, sizeof *d->there);
    d->leaves = pl_alloc(g->value_count + 1, sizeof *d->leaves);
    d->start = pl_alloc(g->node_count + 1, sizeof *d->start);
    if (!d->may || !d->wanted_at || !d->there || !d->leaves || !d->start) return no_memory(err);
    find_readers(d);
    return pl_recompute_find_repeatable(g, d->may, err);
}

static void deinit(decider *d)
{
    pl_free(d->may);
    pl_free(d->wanted_at);
    pl_free(d->there);
    pl_free(d->leaves);
    pl_free(d->start);
}

static int compare_places(const void *left, const void *right)
{
    const pl_again *a = left, *b = right;
    if (a->before != b->before) return a->before < b->before ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static void sort(pl_recompute_decision *list)
{
    if (list->count > 1) qsort(list->again, list->count, sizeof *list->again, compare_places);
}

/* Cheap, and all it reads is there in the backward pass anyhow: else keeping its inputs would take what is won. */
static void find_cheap(decider *d)
{
    const pl_graph *g = d->g;
    for (size_t i = 0; i < g->value_count; i++) d->there[i] = d->wanted_at[i] != PL_NONE;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        bool cheap = is_in(d, n) && n->phase == PL_PHASE_FORWARD && d->may[i] && pl_op_rule_of(n->op)->recompute;
        for (int k = 0; k < PL_NODE_IN_MAX && cheap; k++) {
            if (n->in[k] == PL_NONE) continue;
            pl_id root = pl_value_root(g, n->in[k]), maker = g->value[root].producer;
            bool inside = g->value[root].program != PL_NONE && maker != PL_NONE && g->node[maker].region == n->region;
            bool statistic =
                inside && pl_node_result(&g->node[maker]) != root; /* small, and kept where its node runs once */
            cheap = d->there[root] || !inside || statistic || pl_op_is_outside(g->node[maker].op);
        }
        d->may[i] = cheap;
        for (int k = 0; k < PL_NODE_OUT_MAX && cheap; k++)
            if (pl_node_remakes(n, k)) d->there[n->out[k]] = true;
    }
}

pl_status pl_recompute_decide_cheap(const pl_graph *g, pl_id program, pl_recompute_decision *list, pl_error *err)
{
    decider d;
    pl_status status = PL_OK;
    PL_TRY_DONE(init(&d, g, program, err));
    find_cheap(&d);
    for (pl_id i = (pl_id)g->node_count; i-- > 0;) {
        if (!d.may[i]) continue;
        pl_id at = first_wanted(&d, &g->node[i]);
        if (at == PL_NONE || at == i + 1) continue; /* read at once: nothing is freed by making it again */
        if (g->node[at].region != g->node[i].region) continue;
        want(&d, &g->node[i], at);
        PL_TRY_DONE(pl_recompute_decision_add(list, i, at, err));
    }
    sort(list);
done:
    deinit(&d);
    return status;
}

/* How much of a scope names its block: the first part, where it is numbered. 0: it is in none. */
static size_t block_length(const char *scope)
{
    size_t part = strcspn(scope, "/"), name = strcspn(scope, ".");
    return name < part && strspn(scope + name + 1, "0123456789") == part - name - 1 ? part : 0;
}

static bool is_same_block(const pl_node *a, const pl_node *b)
{
    size_t length = block_length(a->scope);
    return length && length == block_length(b->scope) && memcmp(a->scope, b->scope, length) == 0 &&
           a->region == b->region;
}

/* The forward nodes of a block are one stretch, so are its backward nodes, and blocks end in the reverse order in which
 * they began: a walk with a stack pairs them. */
static void find_starts(decider *d, pl_id *stack)
{
    const pl_graph *g = d->g;
    size_t depth = 0;
    for (pl_id i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        d->start[i] = PL_NONE;
        if (!is_in(d, n) || block_length(n->scope) == 0) continue;
        if (n->phase == PL_PHASE_FORWARD) stack[depth++] = i;
        while (n->phase == PL_PHASE_BACKWARD && depth && is_same_block(&g->node[stack[depth - 1]], n))
            d->start[stack[--depth]] = i;
    }
}

static void find_leaving(decider *d)
{
    const pl_graph *g = d->g;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX && is_in(d, n) && n->phase == PL_PHASE_FORWARD; k++) {
            if (n->in[k] == PL_NONE) continue;
            pl_id root = pl_value_root(g, n->in[k]), maker = g->value[root].producer;
            if (maker != PL_NONE && !is_same_block(&g->node[maker], n)) d->leaves[root] = true;
        }
    }
}

pl_status pl_recompute_decide_full(const pl_graph *g, pl_id program, pl_recompute_decision *list, pl_error *err)
{
    decider d;
    pl_status status = PL_OK;
    pl_id *stack = pl_alloc(g->node_count + 1, sizeof *stack);
    PL_TRY_DONE(init(&d, g, program, err));
    if (!stack) PL_TRY_DONE(no_memory(err));
    find_starts(&d, stack);
    find_leaving(&d);
    for (pl_id i = (pl_id)g->node_count; i-- > 0;) {
        const pl_node *n = &g->node[i];
        if (d.start[i] == PL_NONE || !d.may[i] || d.leaves[pl_node_result(n)] || first_wanted(&d, n) == PL_NONE)
            continue;
        want(&d, n, d.start[i]);
        PL_TRY_DONE(pl_recompute_decision_add(list, i, d.start[i], err));
    }
    sort(list);
done:
    pl_free(stack);
    deinit(&d);
    return status;
}
