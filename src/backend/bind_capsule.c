/* Capsules: weighted sums over tokens, what is picked, copies. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_capsule_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *t = &g->value[n->capsule_pool.tokens].shape;
    call->u.capsule_pool = (pl_capsule_pool_call){.samples = t->dim[0],
                                                  .positions = pl_tokens_of(t),
                                                  .channels = pl_shape_last(t),
                                                  .capsules = pl_shape_last(&g->value[n->capsule_pool.logits].shape),
                                                  .t = pl_address_of(g, a, n->capsule_pool.tokens),
                                                  .logits = pl_address_of(g, a, n->capsule_pool.logits),
                                                  .y = pl_address_of(g, a, n->capsule_pool.y),
                                                  .a = pl_address_of(g, a, n->capsule_pool.assignment),
                                                  .type = pl_real_of(g, n->capsule_pool.tokens)};
}

static uint64_t workspace_capsule_pool(const pl_call *c, pl_team team)
{
    return pl_capsule_pool_workspace_bytes(&c->u.capsule_pool, team);
}
static void exec_capsule_pool(const pl_call *c, pl_team team)
{
    pl_capsule_pool_exec(&c->u.capsule_pool, c->workspace, team);
}

const pl_binding pl_binding_CAPSULE_POOL = {bind_capsule_pool, workspace_capsule_pool, exec_capsule_pool};

static void bind_capsule_pool_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *t = &g->value[n->capsule_pool_bwd.tokens].shape;
    call->u.capsule_pool_bwd =
        (pl_capsule_pool_bwd_call){.samples = t->dim[0],
                                   .positions = pl_tokens_of(t),
                                   .channels = pl_shape_last(t),
                                   .capsules = pl_shape_last(&g->value[n->capsule_pool_bwd.logits].shape),
                                   .dy = pl_address_of(g, a, n->capsule_pool_bwd.dy),
                                   .t = pl_address_of(g, a, n->capsule_pool_bwd.tokens),
                                   .logits = pl_address_of(g, a, n->capsule_pool_bwd.logits),
                                   .da = pl_address_of(g, a, n->capsule_pool_bwd.dassignment),
                                   .partial = pl_address_of(g, a, n->capsule_pool_bwd.partial),
                                   .dt = pl_address_of(g, a, n->capsule_pool_bwd.dtokens),
                                   .dlogits = pl_address_of(g, a, n->capsule_pool_bwd.dlogits),
                                   .type = pl_real_of(g, n->capsule_pool_bwd.tokens)};
}

static uint64_t workspace_capsule_pool_bwd(const pl_call *c, pl_team team)
{
    return pl_capsule_pool_bwd_workspace_bytes(&c->u.capsule_pool_bwd, team);
}
static void exec_capsule_pool_bwd(const pl_call *c, pl_team team)
{
    pl_capsule_pool_bwd_exec(&c->u.capsule_pool_bwd, c->workspace, team);
}

const pl_binding pl_binding_CAPSULE_POOL_BWD = {bind_capsule_pool_bwd, workspace_capsule_pool_bwd,
                                                exec_capsule_pool_bwd};

static void bind_top_k(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->top_k.x].shape;
    call->u.top_k = (pl_top_k_call){.rows = pl_shape_rows(x),
                                    .width = pl_shape_last(x),
                                    .count = n->top_k.count,
                                    .x = pl_address_of(g, a, n->top_k.x),
                                    .y = pl_address_of(g, a, n->top_k.index)};
}

static void exec_top_k(const pl_call *c, pl_team team) { pl_top_k_exec(&c->u.top_k, team); }

const pl_binding pl_binding_TOP_K = {bind_top_k, NULL, exec_top_k};

static int64_t picks_of(const pl_shape *index) { return (int64_t)pl_shape_elems(index) / index->dim[0]; }

static void bind_gather_rows(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *t = &g->value[n->gather_rows.tokens];
    call->u.gather_rows =
        (pl_gather_rows_call){.samples = t->shape.dim[0],
                              .positions = pl_tokens_of(&t->shape),
                              .picks = picks_of(&g->value[n->gather_rows.index].shape),
                              .row_bytes = pl_shape_last(&t->shape) * (int64_t)pl_dtype_bytes(t->dtype),
                              .t = pl_address_of(g, a, n->gather_rows.tokens),
                              .index = pl_address_of(g, a, n->gather_rows.index),
                              .y = pl_address_of(g, a, n->gather_rows.y)};
}

static void exec_gather_rows(const pl_call *c, pl_team team) { pl_gather_rows_exec(&c->u.gather_rows, team); }

const pl_binding pl_binding_GATHER_ROWS = {bind_gather_rows, NULL, exec_gather_rows};

static void bind_gather_rows_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *index = &g->value[n->gather_rows_bwd.index].shape;
    call->u.gather_rows_bwd = (pl_gather_rows_bwd_call){.samples = index->dim[0],
                                                        .positions = n->gather_rows_bwd.positions,
                                                        .picks = picks_of(index),
                                                        .width = pl_shape_last(&g->value[n->gather_rows_bwd.dy].shape),
                                                        .dy = pl_address_of(g, a, n->gather_rows_bwd.dy),
                                                        .index = pl_address_of(g, a, n->gather_rows_bwd.index),
                                                        .partial = pl_address_of(g, a, n->gather_rows_bwd.partial),
                                                        .dt = pl_address_of(g, a, n->gather_rows_bwd.dtokens),
                                                        .type = pl_real_of(g, n->gather_rows_bwd.dy)};
}

static void exec_gather_rows_bwd(const pl_call *c, pl_team team)
{
    pl_gather_rows_bwd_exec(&c->u.gather_rows_bwd, team);
}

const pl_binding pl_binding_GATHER_ROWS_BWD = {bind_gather_rows_bwd, NULL, exec_gather_rows_bwd};

static void bind_repeat(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->repeat.x];
    call->u.repeat = (pl_repeat_call){.rows = pl_shape_rows(&x->shape),
                                      .count = n->repeat.count,
                                      .row_bytes = pl_shape_last(&x->shape) * (int64_t)pl_dtype_bytes(x->dtype),
                                      .x = pl_address_of(g, a, n->repeat.x),
                                      .y = pl_address_of(g, a, n->repeat.y)};
}

static void exec_repeat(const pl_call *c, pl_team team) { pl_repeat_exec(&c->u.repeat, team); }

const pl_binding pl_binding_REPEAT = {bind_repeat, NULL, exec_repeat};

static void bind_repeat_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *dy = &g->value[n->repeat_bwd.dy];
    call->u.repeat_bwd = (pl_repeat_bwd_call){.rows = pl_shape_rows(&dy->shape) / n->repeat_bwd.count,
                                              .count = n->repeat_bwd.count,
                                              .width = pl_shape_last(&dy->shape),
                                              .dy = pl_address_of(g, a, n->repeat_bwd.dy),
                                              .dx = pl_address_of(g, a, n->repeat_bwd.dx),
                                              .type = pl_real_of(g, n->repeat_bwd.dy)};
}

static void exec_repeat_bwd(const pl_call *c, pl_team team) { pl_repeat_bwd_exec(&c->u.repeat_bwd, team); }

const pl_binding pl_binding_REPEAT_BWD = {bind_repeat_bwd, NULL, exec_repeat_bwd};
