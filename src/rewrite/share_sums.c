/* A weight that several nodes read has a zeroed sum for each of them, which are added to the first one behind the
 * backward pass (grad/differentiate.c):
 *
 *      fill a, fill b, { a += reader 2, b += reader 1 }, a += b
 *   →  fill a,         { a += reader 2, a += reader 1 }
 *
 * Where a weight is read six times that is five of six gradients less. Sample by sample the terms now take turns, so
 * the last bits depend on the size of the micro-batch. */
#include "ir/op.h"
#include "rewrite/rewrite.h"

/* The sum that is added to another one, b, and what goes with it. */
typedef struct joined {
    pl_id from, into;             /* b and a */
    pl_id fill, add;              /* nodes */
    pl_id first, last, into_last; /* values: the first version of b, its last, and the last of a */
} joined;

static bool is_version(const pl_graph *g, pl_id value, pl_id of)
{
    return value != PL_NONE && pl_value_root(g, value) == of;
}

/* Is b zeroed once, then written by what adds to it and read by nothing else; and a written by none of these or behind
 * them, but for the sum of both? */
static bool find_joined(const pl_graph *g, pl_id add, joined *j)
{
    const pl_add_to_args *a = &g->node[add].add_to;
    *j = (joined){pl_value_root(g, a->x), pl_value_root(g, a->sum), PL_NONE, add, PL_NONE, a->x, a->sum};
    const pl_value *from = &g->value[j->from];
    if (from->role != PL_ROLE_TEMPORARY || from->program == PL_NONE || from->update_of != PL_NONE) return false;
    size_t into_written = 0;
    for (size_t i = 0; i < add; i++) {
        const pl_node *m = &g->node[i];
        if (m->dead) continue;
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
            if (is_version(g, m->out[k], j->into)) into_written = i;
            if (!is_version(g, m->out[k], j->from)) continue;
            if (m->op == PL_OP_FILL && j->fill == PL_NONE)
                j->fill = (pl_id)i;
            else if (j->fill == PL_NONE || g->value[m->out[k]].update_of == PL_NONE)
                return false;
            else if (j->first == PL_NONE)
                j->first = m->out[k];
        }
    }
    return j->fill != PL_NONE && j->first != PL_NONE && into_written < g->value[j->first].producer;
}

static void replace(pl_graph *g, size_t begin, pl_id old, pl_id with)
{
    for (size_t i = begin; i < g->node_count; i++) {
        pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] == old) n->in[k] = with;
        if (n->predicate == old) n->predicate = with;
    }
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].update_of == old) pl_graph_set_update(g, (pl_id)i, with);
}

/* b's first version follows the last of a, and who read the sum of both reads b's last. */
static void join(pl_graph *g, const joined *j)
{
    const pl_id start = g->value[j->first].update_of, sum = g->node[j->add].add_to.sum_new;
    g->node[j->fill].dead = g->node[j->add].dead = true;
    replace(g, 0, start, j->into_last);
    replace(g, j->add + 1, sum, j->last);
    for (size_t i = 0; i < g->value_count; i++) { /* roots, from the first version to the last */
        pl_value *v = &g->value[i];
        if (v->update_of == PL_NONE) continue;
        pl_graph_set_update(g, (pl_id)i, v->update_of);
        if (v->root == j->into) v->role = g->value[j->into].role;
    }
}

pl_status pl_rewrite_share_sums(pl_graph *g, pl_id program, pl_error *err)
{
    (void)err;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        joined j;
        if (n->dead || n->op != PL_OP_ADD_TO || n->region != program || n->phase != PL_PHASE_BACKWARD) continue;
        if (find_joined(g, (pl_id)i, &j)) join(g, &j);
    }
    pl_graph_sweep(g);
    return PL_OK;
}

bool pl_rewrite_share_sums_possible(const pl_graph *g, pl_id program)
{
    joined j;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op == PL_OP_ADD_TO && n->region == program && n->phase == PL_PHASE_BACKWARD &&
            find_joined(g, (pl_id)i, &j))
            return true;
    }
    return false;
}
