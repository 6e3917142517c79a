#include "ir/op.h"
#include "rewrite/rewrite.h"

static pl_id first_backward_reader(const pl_graph *g, pl_id value, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->phase != PL_PHASE_BACKWARD || pl_region_program(g, n->region) != program) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] == value) return (pl_id)i;
    }
    return PL_NONE;
}

static pl_status clone_before(pl_graph *g, pl_id node, pl_id reader, pl_error *err)
{
    pl_node again = g->node[node];
    pl_id old = again.out[0];
    pl_value v = g->value[old];
    char name[300];
    pl_str text = {0};
    pl_str_printf(&text, "%s.again", v.name);
    if (text.failed || text.bytes >= sizeof name) {
        pl_str_deinit(&text);
        return pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values");
    }
    v.name = text.data;
    pl_id fresh = pl_graph_add_value(g, &v);
    pl_str_deinit(&text);
    if (fresh == PL_NONE) return pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values");
    again.out[0] = fresh;
    again.out[1] = again.out[2] = PL_NONE; /* statistics are kept, only the large output is made again */
    again.phase = PL_PHASE_BACKWARD;
    again.region = g->node[reader].region;
    for (size_t i = reader; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX && g->node[i].phase == PL_PHASE_BACKWARD; k++)
            if (g->node[i].in[k] == old) g->node[i].in[k] = fresh;
    return pl_graph_insert_node(g, reader, &again) == PL_NONE
               ? pl_fail(err, PL_E_NOMEM, "no memory for the recomputed values")
               : PL_OK;
}

pl_status pl_rewrite_recompute_cheap(pl_graph *g, pl_id program, pl_error *err)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->phase != PL_PHASE_FORWARD || n->dead || !pl_op_rule_of(n->op)->recompute) continue;
        if (pl_region_program(g, n->region) != program || g->value[n->out[0]].update_of != PL_NONE) continue;
        pl_id reader = first_backward_reader(g, n->out[0], program);
        if (reader == PL_NONE || reader == i + 1) continue; /* read at once: nothing is freed by making it again */
        PL_TRY(clone_before(g, (pl_id)i, reader, err));
    }
    return PL_OK;
}
