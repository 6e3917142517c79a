#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct lives {
    pl_id *last_reader; /* [values], by root: last node that reads or writes the storage */
    bool *viewed;       /* by root: somebody looks at a window of it */
} lives;

static void find_lives(const pl_graph *g, lives *l)
{
    for (size_t i = 0; i < g->value_count; i++) l->last_reader[i] = PL_NONE;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].view_of != PL_NONE) l->viewed[pl_value_root(g, (pl_id)i)] = true;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] != PL_NONE) l->last_reader[pl_value_root(g, n->in[k])] = (pl_id)i;
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (n->out[k] != PL_NONE) l->last_reader[pl_value_root(g, n->out[k])] = (pl_id)i;
    }
}

static int times_read(const pl_graph *g, const pl_node *n, pl_id root)
{
    int times = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) times += n->in[k] != PL_NONE && pl_value_root(g, n->in[k]) == root;
    return times;
}

/* Content that somebody outside the program's nodes reads or writes: it stays where it is. */
static bool lasts(pl_role r)
{
    return r == PL_ROLE_INPUT || r == PL_ROLE_OUTPUT || r == PL_ROLE_STATE || r == PL_ROLE_GRADIENT;
}

/* May output k of node i take the storage of input `in`, which must be dead afterwards? */
static bool may_take(const pl_graph *g, const lives *l, pl_id node, pl_id out, pl_id in)
{
    pl_id root = pl_value_root(g, in);
    const pl_value *to = &g->value[out], *from = &g->value[in], *owner = &g->value[root];
    if (owner->program == PL_NONE || owner->program != to->program || l->viewed[root] || from->view_of != PL_NONE)
        return false;
    if (l->last_reader[root] != node || times_read(g, &g->node[node], root) != 1) return false;
    if (lasts(owner->role) || lasts(to->role) || g->node[owner->producer].region != g->node[node].region) return false;
    return pl_shape_equal(&to->shape, &from->shape) && to->dtype == from->dtype;
}

pl_status pl_rewrite_in_place(pl_graph *g, pl_error *err)
{
    lives l = {pl_alloc(g->value_count, sizeof *l.last_reader), pl_alloc(g->value_count, sizeof *l.viewed)};
    pl_status status = PL_OK;
    if (!l.last_reader || !l.viewed) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the in-place rewrite"));
    find_lives(g, &l);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
            if (n->out[k] == PL_NONE || g->value[n->out[k]].update_of != PL_NONE ||
                g->value[n->out[k]].view_of != PL_NONE)
                continue;
            uint32_t may = pl_node_alias(n, k).may;
            for (int j = 0; j < PL_NODE_IN_MAX; j++) {
                /* an update comes after what it replaces: ids must rise so that the chain has no cycle */
                if (!(may >> j & 1) || n->in[j] == PL_NONE || n->in[j] >= n->out[k] ||
                    !may_take(g, &l, (pl_id)i, n->out[k], n->in[j]))
                    continue;
                pl_id root = pl_value_root(g, n->in[j]), last = l.last_reader[n->out[k]];
                pl_graph_set_update(g, n->out[k], n->in[j]);
                l.last_reader[root] = last;
                break;
            }
        }
    }
done:
    pl_free(l.last_reader);
    pl_free(l.viewed);
    return status;
}
