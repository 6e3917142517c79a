/* Rotary position embedding. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_rope(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->rope.x].shape;
    const pl_value *cosine = pl_value_at(g, n->rope.cosine);
    call->u.rope = (pl_rope_call){.rows = pl_shape_rows(x),
                                  .positions = cosine ? pl_shape_rows(&cosine->shape) : x->dim[x->rank - 2],
                                  .heads = n->rope.heads,
                                  .rotated = n->rope.rotated,
                                  .head_width = pl_shape_last(x) / n->rope.heads,
                                  .theta = n->rope.theta,
                                  .adjoint = n->rope.adjoint != 0,
                                  .x = pl_address_of(g, a, n->rope.x),
                                  .y = pl_address_of(g, a, n->rope.y),
                                  .type = pl_real_of(g, n->rope.x),
                                  .cosine = pl_address_of(g, a, n->rope.cosine),
                                  .sine = pl_address_of(g, a, n->rope.sine)};
}

static uint64_t workspace_rope(const pl_call *c, pl_team team) { return pl_rope_workspace_bytes(&c->u.rope, team); }
static void exec_rope(const pl_call *c, pl_team team) { pl_rope_exec(&c->u.rope, c->workspace, team); }

const pl_binding pl_binding_ROPE = {bind_rope, workspace_rope, exec_rope};

static void bind_rope_table(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_rope_table_args *x = &n->rope_table;
    call->u.rope_table = (pl_rope_table_call){.positions = x->positions,
                                              .half = x->half,
                                              .kind = (pl_rope_kind)x->kind,
                                              .theta = x->theta,
                                              .factor = x->factor,
                                              .original_context = x->original,
                                              .low = x->low,
                                              .high = x->high,
                                              .magnitude = x->magnitude == 0 ? 1 : x->magnitude,
                                              .keeps_fractions = x->keeps_fractions != 0,
                                              .position = pl_address_of(g, a, x->position),
                                              .samples = pl_shape_rows(&g->value[x->cosine].shape) / x->positions,
                                              .divisor = pl_address_of(g, a, x->divisor),
                                              .cosine = pl_address_of(g, a, x->cosine),
                                              .sine = pl_address_of(g, a, x->sine)};
}

static uint64_t workspace_rope_table(const pl_call *c, pl_team team)
{
    return pl_rope_table_workspace_bytes(&c->u.rope_table, team);
}
static void exec_rope_table(const pl_call *c, pl_team team)
{
    pl_rope_table_exec(&c->u.rope_table, c->workspace, team);
}

const pl_binding pl_binding_ROPE_TABLE = {bind_rope_table, workspace_rope_table, exec_rope_table};
