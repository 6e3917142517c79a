/* Each value is made again by a clone of its node, put right before its first reader in the backward pass. Clones wait
 * behind the nodes of the graph and get their places at the end, all at once: until then each hangs in the list before
 * the node of the graph that it will precede.
 *
 *      list before node 40:   clone a, clone b, 40       a clone read by b goes right before b, else right before 40
 */
#include "ir/index.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct recomputer {
    pl_graph *g;
    pl_id program;
    size_t nodes; /* before the first clone */
    pl_readers readers;
    pl_id *first;  /* [nodes] first clone of the list before a node; PL_NONE: none */
    pl_id *next;   /* [clones] behind a clone in its list */
    pl_id *before; /* [clones] the node whose list it is in */
    size_t clone_room, next_room;
} recomputer;

static bool reads(const pl_node *n, pl_id value)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] == value) return true;
    return false;
}

/* The node of the graph before which, or in whose list, the value is first read in the backward pass. */
static pl_id first_backward_reader(const recomputer *r, pl_id value)
{
    pl_id best = PL_NONE;
    for (const pl_reader *at = pl_readers_first(&r->readers, value); at; at = pl_readers_next(&r->readers, at)) {
        const pl_node *n = &r->g->node[at->node];
        if (n->phase != PL_PHASE_BACKWARD || pl_region_program(r->g, n->region) != r->program) continue;
        pl_id place = at->node < r->nodes ? at->node : r->before[at->node - r->nodes];
        if (best == PL_NONE || place < best) best = place;
    }
    return best;
}

static pl_id add_fresh_value(pl_graph *g, pl_id old)
{
    pl_value v = g->value[old];
    pl_str text = {0};
    pl_str_printf(&text, "%s.again", v.name);
    v.name = text.data;
    pl_id fresh = text.failed ? PL_NONE : pl_graph_add_value(g, &v);
    pl_str_deinit(&text);
    return fresh;
}

/* Right before the first of the list that reads `value`, or at the end of the list. */
static void hang(recomputer *r, pl_id clone, pl_id place, pl_id value)
{
    pl_id *link = &r->first[place];
    while (*link != PL_NONE && !reads(&r->g->node[*link], value)) link = &r->next[*link - r->nodes];
    r->next[clone - r->nodes] = *link;
    r->before[clone - r->nodes] = place;
    *link = clone;
}

static pl_status clone_before(recomputer *r, pl_id node, pl_id place, pl_error *err)
{
    pl_graph *g = r->g;
    pl_node again = g->node[node];
    pl_id old = again.out[0], fresh = add_fresh_value(g, old);
    size_t clones = g->node_count - r->nodes;
    if (fresh == PL_NONE || pl_grow(&r->next, &r->next_room, clones, sizeof *r->next) ||
        pl_grow(&r->before, &r->clone_room, clones, sizeof *r->before))
        return pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values");
    again.out[0] = fresh;
    again.out[1] = again.out[2] = PL_NONE; /* statistics are kept, only the large output is made again */
    again.phase = PL_PHASE_BACKWARD;
    again.region = g->node[place].region;
    pl_id clone = pl_graph_add_node(g, &again);
    if (clone == PL_NONE) return pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values");
    hang(r, clone, place, old);
    for (const pl_reader *at = pl_readers_first(&r->readers, old); at; at = pl_readers_next(&r->readers, at))
        for (int k = 0; k < PL_NODE_IN_MAX && g->node[at->node].phase == PL_PHASE_BACKWARD; k++)
            if (g->node[at->node].in[k] == old) g->node[at->node].in[k] = fresh;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) PL_TRY(pl_readers_add(&r->readers, again.in[k], clone, err));
    return PL_OK;
}

static pl_status clone_all(recomputer *r, pl_error *err)
{
    pl_graph *g = r->g;
    for (size_t i = 0; i < r->nodes; i++) {
        const pl_node *n = &g->node[i];
        if (n->phase != PL_PHASE_FORWARD || n->dead || !pl_op_rule_of(n->op)->recompute) continue;
        if (pl_region_program(g, n->region) != r->program || g->value[n->out[0]].update_of != PL_NONE) continue;
        pl_id place = first_backward_reader(r, n->out[0]);
        if (place == PL_NONE || place == i + 1) continue; /* read at once: nothing is freed by making it again */
        PL_TRY(clone_before(r, (pl_id)i, place, err));
    }
    return PL_OK;
}

static pl_status put_in_place(const recomputer *r, pl_error *err)
{
    size_t at = 0;
    pl_id *order = pl_alloc(r->g->node_count, sizeof *order);
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < r->nodes; i++) {
        for (pl_id c = r->first[i]; c != PL_NONE; c = r->next[c - r->nodes]) order[at++] = c;
        order[at++] = (pl_id)i;
    }
    pl_status status = pl_graph_reorder(r->g, order, err);
    pl_free(order);
    return status;
}

pl_status pl_rewrite_recompute_cheap(pl_graph *g, pl_id program, pl_error *err)
{
    recomputer r = {.g = g, .program = program, .nodes = g->node_count};
    pl_status status = PL_OK;
    r.first = pl_alloc(g->node_count + 1, sizeof *r.first);
    if (!r.first) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values"));
    for (size_t i = 0; i < g->node_count; i++) r.first[i] = PL_NONE;
    PL_TRY_DONE(pl_readers_init(&r.readers, g, err));
    PL_TRY_DONE(clone_all(&r, err));
    PL_TRY_DONE(put_in_place(&r, err));
done:
    pl_readers_deinit(&r.readers);
    pl_free(r.first);
    pl_free(r.next);
    pl_free(r.before);
    return status;
}
