/* When a gradient begins to live and when it is applied. As the graph is built, all gradients are zeroed before
 * everything else of their program and all weights updated behind it. Here each zeroing goes to the latest and each
 * node of the update to the earliest place that its inputs and outputs allow:
 *
 *      zero a, zero b, backward b, backward a, update a, update b
 *   →  zero b, backward b, update b, zero a, backward a, update a
 *
 * A *unit* is what a node may be put before or behind: a node, or a whole region that is repeated, for what stands in
 * it would be repeated as well. So where one region accumulates all gradients nothing moves; where it runs once, or
 * where the backward pass is many regions (layer_major.c), a gradient lives no longer than the units that touch it.
 *
 * Invariant: two nodes that touch one storage, one of them to change it, keep their order. An update node goes behind
 * the last that wrote what it reads and the last that read or wrote what it writes: a weight is changed only when its
 * last reader (the derivative of its input, the tied table's second use) is through. What clips by the norm of all
 * gradients reads them all, and all updates read its result: they stay behind it, at the end. */
#include "ir/op.h"
#include "rewrite/rewrite.h"

#define MOVES (PL_NONE - 1) /* in `first`: a node that goes to another place, in front of which nothing can be put */

typedef struct orderer {
    pl_graph *g;
    pl_id program;
    pl_id *unit;    /* [nodes] last node of the unit that the node belongs to; of one moved: that it stands behind */
    pl_id *begin;   /* [nodes] first node of its unit */
    bool *moved;    /* [nodes] */
    pl_id *written; /* [values] by root: unit of the last node so far that writes it; PL_NONE: none */
    pl_id *touched; /* [values] by root: likewise, reads or writes */
    pl_id *first;   /* [values] by root: first node of the first unit that touches it, the zeroing left out */
} orderer;

/* ---- units ---- */

/* The outermost repeated region that holds the node; PL_NONE: it runs once. */
static pl_id repeated(const pl_graph *g, const pl_node *n)
{
    pl_id found = PL_NONE;
    for (pl_id r = n->region; r != PL_NONE; r = g->region[r].parent)
        if (g->region[r].trip > 1) found = r;
    return found;
}

static void find_units(orderer *o)
{
    const pl_graph *g = o->g;
    for (size_t begin = 0, end; begin < g->node_count; begin = end) {
        pl_id region = repeated(g, &g->node[begin]);
        for (end = begin + 1; region != PL_NONE && end < g->node_count && repeated(g, &g->node[end]) == region; end++) {
        }
        for (size_t i = begin; i < end; i++) o->begin[i] = (pl_id)begin, o->unit[i] = (pl_id)end - 1;
    }
}

/* ---- which nodes, and how far ---- */

static bool is_zeroing(const orderer *o, const pl_node *n)
{
    if (n->op != PL_OP_FILL || n->region != o->program || n->fill.y == PL_NONE) return false;
    const pl_value *v = &o->g->value[pl_value_root(o->g, n->fill.y)];
    return v->program != PL_NONE && (v->role == PL_ROLE_GRADIENT || v->role == PL_ROLE_TEMPORARY);
}

/* What stands behind the backward pass: updates, and sums of what several readers of a weight contribute. */
static bool is_update(const orderer *o, const pl_node *n)
{
    return n->phase != PL_PHASE_FORWARD && n->region == o->program;
}

/* PL_NONE is the beginning of the program. */
static pl_id later(pl_id a, pl_id b)
{
    if (a == PL_NONE || b == PL_NONE) return a == PL_NONE ? b : a;
    return a > b ? a : b;
}

static pl_id earliest(const orderer *o, const pl_node *n)
{
    pl_id after = n->predicate == PL_NONE ? PL_NONE : o->written[pl_value_root(o->g, n->predicate)];
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE) after = later(after, o->written[pl_value_root(o->g, n->in[k])]);
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) after = later(after, o->touched[pl_value_root(o->g, n->out[k])]);
    return after;
}

static void touch(orderer *o, pl_id value, size_t node, bool writes)
{
    if (value == PL_NONE) return;
    pl_id root = pl_value_root(o->g, value);
    o->touched[root] = later(o->touched[root], o->unit[node]);
    if (writes) o->written[root] = later(o->written[root], o->unit[node]);
    if (o->first[root] == PL_NONE && !is_zeroing(o, &o->g->node[node]))
        o->first[root] = o->moved[node] ? MOVES : o->begin[node];
}

static void find_places(orderer *o)
{
    for (size_t i = 0; i < o->g->node_count; i++) {
        const pl_node *n = &o->g->node[i];
        if (pl_region_program(o->g, n->region) != o->program || n->dead) continue;
        if (is_update(o, n)) {
            pl_id after = earliest(o, n);
            o->moved[i] = after != PL_NONE;
            if (o->moved[i]) o->unit[i] = after;
        }
        for (int k = 0; k < PL_NODE_IN_MAX; k++) touch(o, n->in[k], i, false);
        touch(o, n->predicate, i, false);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) touch(o, n->out[k], i, true);
    }
}

/* ---- the new order: nodes hang in lists before or behind those that stay ---- */

typedef struct lists {
    pl_id *head; /* [nodes] first that hangs there; PL_NONE: none */
    pl_id *next; /* [nodes] */
    pl_id *last;
} lists;

static void hang(lists *l, pl_id at, pl_id node)
{
    if (l->head[at] == PL_NONE)
        l->head[at] = node;
    else
        l->next[l->last[at]] = node;
    l->last[at] = node;
    l->next[node] = PL_NONE;
}

/* Right before or behind a node that runs once it joins its region, or that would be cut in two. */
static void join(orderer *o, pl_id node, pl_id neighbour)
{
    pl_id region = repeated(o->g, &o->g->node[neighbour]);
    o->g->node[node].region = region == PL_NONE ? o->g->node[neighbour].region : o->g->region[region].parent;
}

static void hang_all(orderer *o, lists *before, lists *behind)
{
    for (size_t i = 0; i < o->g->node_count; i++) {
        const pl_node *n = &o->g->node[i];
        if (pl_region_program(o->g, n->region) != o->program || n->dead) continue;
        pl_id first = is_zeroing(o, n) ? o->first[pl_value_root(o->g, n->fill.y)] : PL_NONE;
        if (o->moved[i]) {
            hang(behind, o->unit[i], (pl_id)i);
            join(o, (pl_id)i, o->unit[i]);
        } else if (first != PL_NONE && first != MOVES) {
            o->moved[i] = true;
            hang(before, first, (pl_id)i);
            join(o, (pl_id)i, first);
        }
    }
}

static void put(const lists *l, pl_id at, pl_id *order, size_t *count)
{
    for (pl_id i = l->head[at]; i != PL_NONE; i = l->next[i]) order[(*count)++] = i;
}

static pl_status reorder(orderer *o, const lists *before, const lists *behind, pl_error *err)
{
    size_t count = 0;
    pl_id *order = pl_alloc(o->g->node_count + 1, sizeof *order);
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < o->g->node_count; i++) {
        if (o->moved[i]) continue;
        put(before, (pl_id)i, order, &count);
        order[count++] = (pl_id)i;
        put(behind, (pl_id)i, order, &count);
    }
    pl_status status = pl_graph_reorder(o->g, order, err);
    pl_free(order);
    return status;
}

static pl_id *none(size_t count)
{
    pl_id *ids = pl_alloc(count + 1, sizeof *ids);
    for (size_t i = 0; ids && i < count; i++) ids[i] = PL_NONE;
    return ids;
}

pl_status pl_rewrite_update_order(pl_graph *g, pl_id program, pl_error *err)
{
    pl_status status;
    size_t nodes = g->node_count;
    orderer o = {.g = g, .program = program, .unit = none(nodes), .begin = none(nodes)};
    lists before = {none(nodes), none(nodes), none(nodes)}, behind = {none(nodes), none(nodes), none(nodes)};
    o.written = none(g->value_count), o.touched = none(g->value_count), o.first = none(g->value_count);
    o.moved = pl_alloc(nodes + 1, sizeof *o.moved);
    bool whole = o.unit && o.begin && o.written && o.touched && o.first && o.moved && before.head && before.next &&
                 before.last && behind.head && behind.next && behind.last;
    if (!whole) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to order the updates of %zu nodes", nodes));
    find_units(&o);
    find_places(&o);
    hang_all(&o, &before, &behind);
    status = reorder(&o, &before, &behind, err);
done:
    pl_free(before.head), pl_free(before.next), pl_free(before.last);
    pl_free(behind.head), pl_free(behind.next), pl_free(behind.last);
    pl_free(o.unit), pl_free(o.begin), pl_free(o.moved);
    pl_free(o.written), pl_free(o.touched), pl_free(o.first);
    return status;
}

/* Clipping and checks for overflow look at all gradients before the first weight may change. */
static bool looks_at_gradients(const pl_graph *g, const pl_node *n)
{
    bool reads = false, applies = false;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        reads |= n->in[k] != PL_NONE && g->value[pl_value_root(g, n->in[k])].role == PL_ROLE_GRADIENT;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        applies |= n->out[k] != PL_NONE && g->value[pl_value_root(g, n->out[k])].role == PL_ROLE_WEIGHT;
    return n->phase == PL_PHASE_UPDATE && reads && !applies;
}

bool pl_rewrite_update_early_possible(const pl_graph *g, pl_id program, uint64_t trips, const char **why)
{
    bool updates = false, looks = false;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        updates |= n->phase == PL_PHASE_UPDATE;
        looks |= looks_at_gradients(g, n);
    }
    *why = !updates ? "nothing is updated"
           : looks  ? "train.grad_clip (or a check for overflow) looks at the whole gradient before the first weight "
                      "changes"
           : trips > 1 ? "the gradients of several micro-batches are summed before the first weight changes; only "
                         "train.layer_major, or a train.micro_batch of the whole batch, lets them go earlier"
                       : NULL;
    return *why == NULL;
}
