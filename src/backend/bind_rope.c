/* Rotary position embedding. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_rope(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->rope.x].shape;
    call->u.rope = (pl_rope_call){.rows = pl_shape_rows(x),
                                  .positions = x->dim[x->rank - 2],
                                  .heads = n->rope.heads,
                                  .rotated = n->rope.rotated,
                                  .head_width = pl_shape_last(x) / n->rope.heads,
                                  .theta = n->rope.theta,
                                  .adjoint = n->rope.adjoint != 0,
                                  .x = pl_address_of(g, a, n->rope.x),
                                  .y = pl_address_of(g, a, n->rope.y),
                                  .type = pl_real_of(g, n->rope.x)};
}

static uint64_t workspace_rope(const pl_call *c, pl_team team) { return pl_rope_workspace_bytes(&c->u.rope, team); }
static void exec_rope(const pl_call *c, pl_team team) { pl_rope_exec(&c->u.rope, c->workspace, team); }

const pl_binding pl_binding_ROPE = {bind_rope, workspace_rope, exec_rope};
