/* Gates, blends, feature-wise affine maps, softmax pools. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_gate(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->gate.x].shape;
    call->u.gate = (pl_gate_call){.positions = pl_shape_rows(x),
                                  .channels = pl_shape_last(x),
                                  .gates = pl_shape_last(&g->value[n->gate.gate].shape),
                                  .x = pl_address_of(g, a, n->gate.x),
                                  .g = pl_address_of(g, a, n->gate.gate),
                                  .y = pl_address_of(g, a, n->gate.y),
                                  .type = pl_real_of(g, n->gate.x)};
}

static void exec_gate(const pl_call *c, pl_team team) { pl_gate_exec(&c->u.gate, team); }

const pl_binding pl_binding_GATE = {bind_gate, NULL, exec_gate};

static void bind_gate_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->gate_bwd.x].shape;
    call->u.gate_bwd = (pl_gate_bwd_call){.positions = pl_shape_rows(x),
                                          .channels = pl_shape_last(x),
                                          .gates = pl_shape_last(&g->value[n->gate_bwd.gate].shape),
                                          .dy = pl_address_of(g, a, n->gate_bwd.dy),
                                          .x = pl_address_of(g, a, n->gate_bwd.x),
                                          .g = pl_address_of(g, a, n->gate_bwd.gate),
                                          .dx = pl_address_of(g, a, n->gate_bwd.dx),
                                          .dg = pl_address_of(g, a, n->gate_bwd.dgate),
                                          .type = pl_real_of(g, n->gate_bwd.x)};
}

static void exec_gate_bwd(const pl_call *c, pl_team team) { pl_gate_bwd_exec(&c->u.gate_bwd, team); }

const pl_binding pl_binding_GATE_BWD = {bind_gate_bwd, NULL, exec_gate_bwd};

static void bind_blend(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->blend.a].shape;
    int64_t rows = pl_shape_rows(x);
    call->u.blend = (pl_blend_call){.rows = rows,
                                    .shared = rows / (int64_t)pl_shape_elems(&g->value[n->blend.z].shape),
                                    .width = pl_shape_last(x),
                                    .a = pl_address_of(g, a, n->blend.a),
                                    .b = pl_address_of(g, a, n->blend.b),
                                    .z = pl_address_of(g, a, n->blend.z),
                                    .y = pl_address_of(g, a, n->blend.y),
                                    .g = pl_address_of(g, a, n->blend.gate),
                                    .type = pl_real_of(g, n->blend.a)};
}

static void exec_blend(const pl_call *c, pl_team team) { pl_blend_exec(&c->u.blend, team); }

const pl_binding pl_binding_BLEND = {bind_blend, NULL, exec_blend};

static void bind_blend_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->blend_bwd.a].shape;
    int64_t rows = pl_shape_rows(x);
    call->u.blend_bwd = (pl_blend_bwd_call){.rows = rows,
                                            .shared = rows / (int64_t)pl_shape_elems(&g->value[n->blend_bwd.z].shape),
                                            .width = pl_shape_last(x),
                                            .dy = pl_address_of(g, a, n->blend_bwd.dy),
                                            .a = pl_address_of(g, a, n->blend_bwd.a),
                                            .b = pl_address_of(g, a, n->blend_bwd.b),
                                            .z = pl_address_of(g, a, n->blend_bwd.z),
                                            .da = pl_address_of(g, a, n->blend_bwd.da),
                                            .db = pl_address_of(g, a, n->blend_bwd.db),
                                            .dz = pl_address_of(g, a, n->blend_bwd.dz),
                                            .type = pl_real_of(g, n->blend_bwd.a)};
}

static void exec_blend_bwd(const pl_call *c, pl_team team) { pl_blend_bwd_exec(&c->u.blend_bwd, team); }

const pl_binding pl_binding_BLEND_BWD = {bind_blend_bwd, NULL, exec_blend_bwd};

/* Positions of a row of x [samples, ..., positions, channels]; all of a sample are rows of them. */
static int64_t positions_of(const pl_shape *x) { return x->rank > 2 ? x->dim[x->rank - 2] : 1; }

static void bind_film(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->film.x].shape;
    call->u.film = (pl_film_call){.samples = x->dim[0],
                                  .positions = pl_shape_rows(x) / x->dim[0],
                                  .channels = pl_shape_last(x),
                                  .x = pl_address_of(g, a, n->film.x),
                                  .s = pl_address_of(g, a, n->film.film),
                                  .y = pl_address_of(g, a, n->film.y),
                                  .type = pl_real_of(g, n->film.x),
                                  .s_type = pl_real_of(g, n->film.film)};
}

static uint64_t workspace_film(const pl_call *c, pl_team team) { return pl_film_workspace_bytes(&c->u.film, team); }
static void exec_film(const pl_call *c, pl_team team) { pl_film_exec(&c->u.film, c->workspace, team); }

const pl_binding pl_binding_FILM = {bind_film, workspace_film, exec_film};

static void bind_film_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->film_bwd.x].shape;
    call->u.film_bwd = (pl_film_bwd_call){.samples = x->dim[0],
                                          .rows = pl_shape_rows(x) / x->dim[0] / positions_of(x),
                                          .positions = positions_of(x),
                                          .channels = pl_shape_last(x),
                                          .dy = pl_address_of(g, a, n->film_bwd.dy),
                                          .x = pl_address_of(g, a, n->film_bwd.x),
                                          .s = pl_address_of(g, a, n->film_bwd.film),
                                          .dx = pl_address_of(g, a, n->film_bwd.dx),
                                          .ds = pl_address_of(g, a, n->film_bwd.dfilm),
                                          .type = pl_real_of(g, n->film_bwd.x),
                                          .s_type = pl_real_of(g, n->film_bwd.film)};
}

static uint64_t workspace_film_bwd(const pl_call *c, pl_team team)
{
    return pl_film_bwd_workspace_bytes(&c->u.film_bwd, team);
}
static void exec_film_bwd(const pl_call *c, pl_team team) { pl_film_bwd_exec(&c->u.film_bwd, c->workspace, team); }

const pl_binding pl_binding_FILM_BWD = {bind_film_bwd, workspace_film_bwd, exec_film_bwd};

static void bind_softmax_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *e = &g->value[n->softmax_pool.logits].shape;
    call->u.softmax_pool = (pl_softmax_pool_call){.samples = e->dim[0],
                                                  .times = (int64_t)pl_shape_elems(e) / e->dim[0],
                                                  .channels = pl_shape_last(&g->value[n->softmax_pool.y].shape),
                                                  .x = pl_address_of(g, a, n->softmax_pool.x),
                                                  .e = pl_address_of(g, a, n->softmax_pool.logits),
                                                  .y = pl_address_of(g, a, n->softmax_pool.y),
                                                  .type = pl_real_of(g, n->softmax_pool.x)};
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
    const pl_shape *e = &g->value[n->softmax_pool_bwd.logits].shape;
    call->u.softmax_pool_bwd =
        (pl_softmax_pool_bwd_call){.samples = e->dim[0],
                                   .times = (int64_t)pl_shape_elems(e) / e->dim[0],
                                   .channels = pl_shape_last(&g->value[n->softmax_pool_bwd.dy].shape),
                                   .dy = pl_address_of(g, a, n->softmax_pool_bwd.dy),
                                   .x = pl_address_of(g, a, n->softmax_pool_bwd.x),
                                   .e = pl_address_of(g, a, n->softmax_pool_bwd.logits),
                                   .dx = pl_address_of(g, a, n->softmax_pool_bwd.dx),
                                   .de = pl_address_of(g, a, n->softmax_pool_bwd.dlogits),
                                   .type = pl_real_of(g, n->softmax_pool_bwd.x)};
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
