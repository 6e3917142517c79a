#include "ir/op.h"
#include "rewrite/rewrite.h"

/* Content that somebody outside the program's nodes reads. */
static bool lasts(const pl_value *v)
{
    return v->program == PL_NONE || v->role == PL_ROLE_OUTPUT || v->role == PL_ROLE_STATE || v->role == PL_ROLE_INPUT;
}

static bool is_wanted(const pl_graph *g, const pl_node *n, const bool *read)
{
    bool wanted = pl_op_is_outside(n->op);
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        if (n->out[k] == PL_NONE) continue;
        pl_id root = pl_value_root(g, n->out[k]);
        wanted |= read[root] || lasts(&g->value[root]);
    }
    return wanted;
}

pl_status pl_rewrite_drop_unread(pl_graph *g, pl_id program, pl_error *err)
{
    bool *read = pl_alloc(g->value_count + 1, sizeof *read);
    if (!read) return pl_fail(err, PL_E_NOMEM, "no memory to find what nobody reads");
    for (size_t i = g->node_count; i-- > 0;) {
        pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        n->dead = !is_wanted(g, n, read);
        for (int k = 0; k < PL_NODE_IN_MAX && !n->dead; k++)
            if (n->in[k] != PL_NONE) read[pl_value_root(g, n->in[k])] = true;
        if (!n->dead && n->predicate != PL_NONE) read[pl_value_root(g, n->predicate)] = true;
    }
    pl_free(read);
    pl_graph_sweep(g);
    return PL_OK;
}

static void find_read(const pl_graph *g, bool *read)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX && !n->dead; k++)
            if (n->in[k] != PL_NONE) read[pl_value_root(g, n->in[k])] = true;
        if (!n->dead && n->predicate != PL_NONE) read[pl_value_root(g, n->predicate)] = true;
    }
}

pl_status pl_rewrite_drop_unread_outputs(pl_graph *g, pl_id program, pl_error *err)
{
    bool *read = pl_alloc(g->value_count + 1, sizeof *read);
    if (!read) return pl_fail(err, PL_E_NOMEM, "no memory to find what nobody reads");
    find_read(g, read);
    for (size_t i = 0; i < g->node_count; i++) {
        pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        for (int k = 1; k < PL_NODE_OUT_MAX; k++) {
            const pl_id out = n->out[k];
            const bool large = out != PL_NONE && pl_op_rule_of(n->op)->remade >> k & 1;
            if (large && pl_value_root(g, out) == out && !read[out] && !lasts(&g->value[out])) n->out[k] = PL_NONE;
        }
    }
    pl_free(read);
    pl_graph_sweep(g);
    return PL_OK;
}
