/* Products of 8 bits, and what a calibration sees. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_observe(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.observe = (pl_observe_call){.count = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape),
                                        .x = pl_address_of(g, a, n->in[0]),
                                        .extremes = pl_address_of(g, a, n->in[1]),
                                        .bin = pl_address_of(g, a, n->in[2])};
}

static uint64_t workspace_observe(const pl_call *c, pl_team team)
{
    return pl_observe_workspace_bytes(&c->u.observe, team);
}

static void exec_observe(const pl_call *c, pl_team team) { pl_observe_exec(&c->u.observe, c->workspace, team); }

const pl_binding pl_binding_OBSERVE_EXTREMES = {bind_observe, workspace_observe, exec_observe};
const pl_binding pl_binding_OBSERVE_SPREAD = {bind_observe, workspace_observe, exec_observe};

static void bind_difference(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.difference = (pl_difference_call){.count = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape),
                                              .x = pl_address_of(g, a, n->in[0]),
                                              .y = pl_address_of(g, a, n->in[1]),
                                              .sums = pl_address_of(g, a, n->in[2])};
}

static uint64_t workspace_difference(const pl_call *c, pl_team team)
{
    (void)team;
    return pl_difference_workspace_bytes(&c->u.difference);
}

static void exec_difference(const pl_call *c, pl_team team)
{
    pl_difference_exec(&c->u.difference, c->workspace, team);
}

const pl_binding pl_binding_OBSERVE_DIFFERENCE = {bind_difference, workspace_difference, exec_difference};

static void bind_overwrite(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.overwrite = (pl_overwrite_call){.count = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape),
                                            .y = pl_address_of(g, a, n->in[0]),
                                            .z = pl_address_of(g, a, n->in[1])};
}

static void exec_overwrite(const pl_call *c, pl_team team) { pl_overwrite_exec(&c->u.overwrite, team); }

const pl_binding pl_binding_OVERWRITE = {bind_overwrite, NULL, exec_overwrite};

static void bind_linear_int8(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    const int64_t k = pl_shape_last(x), out = n->attr[0].i;
    call->u.linear_int8 = (pl_linear_int8_call){.product = {.m = pl_shape_rows(x),
                                                            .n = out,
                                                            .k = k,
                                                            .x_real = pl_address_of(g, a, n->in[0]),
                                                            .ld_x = k,
                                                            .packed = pl_address_of(g, a, n->in[1]),
                                                            .bias = pl_address_of(g, a, n->in[3]),
                                                            .residual = pl_address_of(g, a, n->in[4]),
                                                            .ld_residual = out,
                                                            .c = pl_address_of(g, a, n->out[0]),
                                                            .ldc = out,
                                                            .act = (pl_activation)n->attr[1].i,
                                                            .act_out = pl_address_of(g, a, n->out[1]),
                                                            .ld_act_out = out},
                                                .range = pl_address_of(g, a, n->in[2])};
}

static uint64_t workspace_linear_int8(const pl_call *c, pl_team team)
{
    return pl_int8_workspace_bytes(&c->u.linear_int8.product, team);
}

static void exec_linear_int8(const pl_call *c, pl_team team)
{
    pl_linear_int8_exec(&c->u.linear_int8, c->workspace, team);
}

const pl_binding pl_binding_LINEAR_INT8 = {bind_linear_int8, workspace_linear_int8, exec_linear_int8};
