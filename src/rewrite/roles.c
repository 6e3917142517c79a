#include "rewrite/rewrite.h"

pl_status pl_rewrite_mark_saved(pl_graph *g, pl_error *err)
{
    (void)err;
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->node[i].phase != PL_PHASE_BACKWARD) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            if (g->node[i].in[k] == PL_NONE) continue;
            pl_id root = pl_value_root(g, g->node[i].in[k]);
            pl_value *v = &g->value[root];
            bool forward = v->producer != PL_NONE && g->node[v->producer].phase == PL_PHASE_FORWARD;
            bool zeroed = forward && g->node[v->producer].op == PL_OP_FILL; /* a sum of a weight's further reader */
            if (v->role == PL_ROLE_TEMPORARY && forward) v->role = zeroed ? PL_ROLE_GRADIENT : PL_ROLE_SAVED;
        }
    }
    return PL_OK;
}
