#include "ir/facts.h"

#include "ir/op.h"

static bool is_of(const pl_graph *g, const pl_node *n, pl_id program)
{
    return !n->dead && pl_region_program(g, n->region) == program;
}

pl_id pl_graph_find_loss(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_op_rule_of(n->op)->loss && is_of(g, n, program)) return pl_value_root(g, n->out[0]);
    }
    return PL_NONE;
}
