/* Capsules: weighted sums over tokens, what is picked, copies. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_capsule_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *t = &pl_in(g, n, 0)->shape;
    call->u.capsule_pool = (pl_capsule_pool_call){.samples = t->dim[0],
                                                  .positions = pl_tokens_of(t),
                                                  .channels = pl_shape_last(t),
                                                  .capsules = pl_shape_last(&pl_in(g, n, 1)->shape),
                                                  .t = pl_address_of(g, a, n->in[0]),
                                                  .logits = pl_address_of(g, a, n->in[1]),
                                                  .y = pl_address_of(g, a, n->out[0]),
                                                  .a = pl_address_of(g, a, n->out[1]),
                                                  .type = pl_real_of(g, n->in[0])};
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
    const pl_shape *t = &pl_in(g, n, 1)->shape;
    call->u.capsule_pool_bwd = (pl_capsule_pool_bwd_call){.samples = t->dim[0],
                                                          .positions = pl_tokens_of(t),
                                                          .channels = pl_shape_last(t),
                                                          .capsules = pl_shape_last(&pl_in(g, n, 2)->shape),
                                                          .dy = pl_address_of(g, a, n->in[0]),
                                                          .t = pl_address_of(g, a, n->in[1]),
                                                          .logits = pl_address_of(g, a, n->in[2]),
                                                          .da = pl_address_of(g, a, n->in[3]),
                                                          .partial = pl_address_of(g, a, n->in[4]),
                                                          .dt = pl_address_of(g, a, n->out[0]),
                                                          .dlogits = pl_address_of(g, a, n->out[1]),
                                                          .type = pl_real_of(g, n->in[1])};
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
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    call->u.top_k = (pl_top_k_call){.rows = pl_shape_rows(x),
                                    .width = pl_shape_last(x),
                                    .count = n->attr[0].i,
                                    .x = pl_address_of(g, a, n->in[0]),
                                    .y = pl_address_of(g, a, n->out[0])};
}

static void exec_top_k(const pl_call *c, pl_team team) { pl_top_k_exec(&c->u.top_k, team); }

const pl_binding pl_binding_TOP_K = {bind_top_k, NULL, exec_top_k};

static int64_t picks_of(const pl_shape *index) { return (int64_t)pl_shape_elems(index) / index->dim[0]; }

static void bind_gather_rows(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *t = pl_in(g, n, 0);
    call->u.gather_rows =
        (pl_gather_rows_call){.samples = t->shape.dim[0],
                              .positions = pl_tokens_of(&t->shape),
                              .picks = picks_of(&pl_in(g, n, 1)->shape),
                              .row_bytes = pl_shape_last(&t->shape) * (int64_t)pl_dtype_bytes(t->dtype),
                              .t = pl_address_of(g, a, n->in[0]),
                              .index = pl_address_of(g, a, n->in[1]),
                              .y = pl_address_of(g, a, n->out[0])};
}

static void exec_gather_rows(const pl_call *c, pl_team team) { pl_gather_rows_exec(&c->u.gather_rows, team); }

const pl_binding pl_binding_GATHER_ROWS = {bind_gather_rows, NULL, exec_gather_rows};

static void bind_gather_rows_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *index = &pl_in(g, n, 1)->shape;
    call->u.gather_rows_bwd = (pl_gather_rows_bwd_call){.samples = index->dim[0],
                                                        .positions = n->attr[0].i,
                                                        .picks = picks_of(index),
                                                        .width = pl_shape_last(&pl_in(g, n, 0)->shape),
                                                        .dy = pl_address_of(g, a, n->in[0]),
                                                        .index = pl_address_of(g, a, n->in[1]),
                                                        .partial = pl_address_of(g, a, n->in[2]),
                                                        .dt = pl_address_of(g, a, n->out[0]),
                                                        .type = pl_real_of(g, n->in[0])};
}

static void exec_gather_rows_bwd(const pl_call *c, pl_team team)
{
    pl_gather_rows_bwd_exec(&c->u.gather_rows_bwd, team);
}

const pl_binding pl_binding_GATHER_ROWS_BWD = {bind_gather_rows_bwd, NULL, exec_gather_rows_bwd};

static void bind_repeat(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = pl_in(g, n, 0);
    call->u.repeat = (pl_repeat_call){.rows = pl_shape_rows(&x->shape),
                                      .count = n->attr[0].i,
                                      .row_bytes = pl_shape_last(&x->shape) * (int64_t)pl_dtype_bytes(x->dtype),
                                      .x = pl_address_of(g, a, n->in[0]),
                                      .y = pl_address_of(g, a, n->out[0])};
}

static void exec_repeat(const pl_call *c, pl_team team) { pl_repeat_exec(&c->u.repeat, team); }

const pl_binding pl_binding_REPEAT = {bind_repeat, NULL, exec_repeat};

static void bind_repeat_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *dy = pl_in(g, n, 0);
    call->u.repeat_bwd = (pl_repeat_bwd_call){.rows = pl_shape_rows(&dy->shape) / n->attr[0].i,
                                              .count = n->attr[0].i,
                                              .width = pl_shape_last(&dy->shape),
                                              .dy = pl_address_of(g, a, n->in[0]),
                                              .dx = pl_address_of(g, a, n->out[0]),
                                              .type = pl_real_of(g, n->in[0])};
}

static void exec_repeat_bwd(const pl_call *c, pl_team team) { pl_repeat_bwd_exec(&c->u.repeat_bwd, team); }

const pl_binding pl_binding_REPEAT_BWD = {bind_repeat_bwd, NULL, exec_repeat_bwd};
