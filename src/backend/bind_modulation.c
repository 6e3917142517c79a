/* Gates, blends, feature-wise affine maps, softmax pools. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_gate(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    call->u.gate = (pl_gate_call){.positions = pl_shape_rows(x),
                                  .channels = pl_shape_last(x),
                                  .gates = pl_shape_last(&pl_in(g, n, 1)->shape),
                                  .x = pl_address_of(g, a, n->in[0]),
                                  .g = pl_address_of(g, a, n->in[1]),
                                  .y = pl_address_of(g, a, n->out[0]),
                                  .type = pl_real_of(g, n->in[0])};
}

static void exec_gate(const pl_call *c, pl_team team) { pl_gate_exec(&c->u.gate, team); }

const pl_binding pl_binding_GATE = {bind_gate, NULL, exec_gate};

static void bind_gate_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 1)->shape;
    call->u.gate_bwd = (pl_gate_bwd_call){.positions = pl_shape_rows(x),
                                          .channels = pl_shape_last(x),
                                          .gates = pl_shape_last(&pl_in(g, n, 2)->shape),
                                          .dy = pl_address_of(g, a, n->in[0]),
                                          .x = pl_address_of(g, a, n->in[1]),
                                          .g = pl_address_of(g, a, n->in[2]),
                                          .dx = pl_address_of(g, a, n->out[0]),
                                          .dg = pl_address_of(g, a, n->out[1]),
                                          .type = pl_real_of(g, n->in[1])};
}

static void exec_gate_bwd(const pl_call *c, pl_team team) { pl_gate_bwd_exec(&c->u.gate_bwd, team); }

const pl_binding pl_binding_GATE_BWD = {bind_gate_bwd, NULL, exec_gate_bwd};

static void bind_blend(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    int64_t rows = pl_shape_rows(x);
    call->u.blend = (pl_blend_call){.rows = rows,
                                    .shared = rows / (int64_t)pl_shape_elems(&pl_in(g, n, 2)->shape),
                                    .width = pl_shape_last(x),
                                    .a = pl_address_of(g, a, n->in[0]),
                                    .b = pl_address_of(g, a, n->in[1]),
                                    .z = pl_address_of(g, a, n->in[2]),
                                    .y = pl_address_of(g, a, n->out[0]),
                                    .g = pl_address_of(g, a, n->out[1]),
                                    .type = pl_real_of(g, n->in[0])};
}

static void exec_blend(const pl_call *c, pl_team team) { pl_blend_exec(&c->u.blend, team); }

const pl_binding pl_binding_BLEND = {bind_blend, NULL, exec_blend};

static void bind_blend_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 1)->shape;
    int64_t rows = pl_shape_rows(x);
    call->u.blend_bwd = (pl_blend_bwd_call){.rows = rows,
                                            .shared = rows / (int64_t)pl_shape_elems(&pl_in(g, n, 3)->shape),
                                            .width = pl_shape_last(x),
                                            .dy = pl_address_of(g, a, n->in[0]),
                                            .a = pl_address_of(g, a, n->in[1]),
                                            .b = pl_address_of(g, a, n->in[2]),
                                            .z = pl_address_of(g, a, n->in[3]),
                                            .da = pl_address_of(g, a, n->out[0]),
                                            .db = pl_address_of(g, a, n->out[1]),
                                            .dz = pl_address_of(g, a, n->out[2]),
                                            .type = pl_real_of(g, n->in[1])};
}

static void exec_blend_bwd(const pl_call *c, pl_team team) { pl_blend_bwd_exec(&c->u.blend_bwd, team); }

const pl_binding pl_binding_BLEND_BWD = {bind_blend_bwd, NULL, exec_blend_bwd};

/* Positions of a row of x [samples, ..., positions, channels]; all of a sample are rows of them. */
static int64_t positions_of(const pl_shape *x) { return x->rank > 2 ? x->dim[x->rank - 2] : 1; }

static void bind_film(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    call->u.film = (pl_film_call){.samples = x->dim[0],
                                  .positions = pl_shape_rows(x) / x->dim[0],
                                  .channels = pl_shape_last(x),
                                  .x = pl_address_of(g, a, n->in[0]),
                                  .s = pl_address_of(g, a, n->in[1]),
                                  .y = pl_address_of(g, a, n->out[0]),
                                  .type = pl_real_of(g, n->in[0]),
                                  .s_type = pl_real_of(g, n->in[1])};
}

static uint64_t workspace_film(const pl_call *c, pl_team team) { return pl_film_workspace_bytes(&c->u.film, team); }
static void exec_film(const pl_call *c, pl_team team) { pl_film_exec(&c->u.film, c->workspace, team); }

const pl_binding pl_binding_FILM = {bind_film, workspace_film, exec_film};

static void bind_film_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 1)->shape;
    call->u.film_bwd = (pl_film_bwd_call){.samples = x->dim[0],
                                          .rows = pl_shape_rows(x) / x->dim[0] / positions_of(x),
                                          .positions = positions_of(x),
                                          .channels = pl_shape_last(x),
                                          .dy = pl_address_of(g, a, n->in[0]),
                                          .x = pl_address_of(g, a, n->in[1]),
                                          .s = pl_address_of(g, a, n->in[2]),
                                          .dx = pl_address_of(g, a, n->out[0]),
                                          .ds = pl_address_of(g, a, n->out[1]),
                                          .type = pl_real_of(g, n->in[1]),
                                          .s_type = pl_real_of(g, n->in[2])};
}

static uint64_t workspace_film_bwd(const pl_call *c, pl_team team)
{
    return pl_film_bwd_workspace_bytes(&c->u.film_bwd, team);
}
static void exec_film_bwd(const pl_call *c, pl_team team) { pl_film_bwd_exec(&c->u.film_bwd, c->workspace, team); }

const pl_binding pl_binding_FILM_BWD = {bind_film_bwd, workspace_film_bwd, exec_film_bwd};

static void bind_softmax_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *e = &pl_in(g, n, 1)->shape;
    call->u.softmax_pool = (pl_softmax_pool_call){.samples = e->dim[0],
                                                  .times = (int64_t)pl_shape_elems(e) / e->dim[0],
                                                  .channels = pl_shape_last(&g->value[n->out[0]].shape),
                                                  .x = pl_address_of(g, a, n->in[0]),
                                                  .e = pl_address_of(g, a, n->in[1]),
                                                  .y = pl_address_of(g, a, n->out[0]),
                                                  .type = pl_real_of(g, n->in[0])};
}

static uint64_t workspace_softmax_pool(const pl_call *c, pl_team team)
{
    return pl_softmax_pool_workspace_bytes(&c->u.softmax_pool, team);
}
static void exec_softmax_pool(const pl_call *c, pl_team team)
{
    pl_softmax_pool_exec(&c->u.softmax_pool, c->workspace, team);
}

const pl_binding pl_binding_SOFTMAX_POOL = {bind_softmax_pool, workspace_softmax_pool, exec_softmax_pool};

static void bind_softmax_pool_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *e = &pl_in(g, n, 2)->shape;
    call->u.softmax_pool_bwd = (pl_softmax_pool_bwd_call){.samples = e->dim[0],
                                                          .times = (int64_t)pl_shape_elems(e) / e->dim[0],
                                                          .channels = pl_shape_last(&pl_in(g, n, 0)->shape),
                                                          .dy = pl_address_of(g, a, n->in[0]),
                                                          .x = pl_address_of(g, a, n->in[1]),
                                                          .e = pl_address_of(g, a, n->in[2]),
                                                          .dx = pl_address_of(g, a, n->out[0]),
                                                          .de = pl_address_of(g, a, n->out[1]),
                                                          .type = pl_real_of(g, n->in[1])};
}

static uint64_t workspace_softmax_pool_bwd(const pl_call *c, pl_team team)
{
    return pl_softmax_pool_bwd_workspace_bytes(&c->u.softmax_pool_bwd, team);
}
static void exec_softmax_pool_bwd(const pl_call *c, pl_team team)
{
    pl_softmax_pool_bwd_exec(&c->u.softmax_pool_bwd, c->workspace, team);
}

const pl_binding pl_binding_SOFTMAX_POOL_BWD = {bind_softmax_pool_bwd, workspace_softmax_pool_bwd,
                                                exec_softmax_pool_bwd};
