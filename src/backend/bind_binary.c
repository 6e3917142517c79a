/* Layers of signs. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_pack_signs(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *w = &g->value[n->pack_signs.weight].shape;
    call->u.pack_signs = (pl_pack_signs_call){w->dim[0], w->dim[1], pl_address_of(g, a, n->pack_signs.weight),
                                              pl_address_of(g, a, n->pack_signs.packed)};
}

static uint64_t workspace_pack_signs(const pl_call *c, pl_team team)
{
    return pl_pack_signs_workspace_bytes(&c->u.pack_signs, team);
}

static void exec_pack_signs(const pl_call *c, pl_team team)
{
    pl_pack_signs_exec(&c->u.pack_signs, c->workspace, team);
}

const pl_binding pl_binding_PACK_SIGNS = {bind_pack_signs, workspace_pack_signs, exec_pack_signs};

static void bind_linear_binary(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->linear_binary.x].shape;
    const int64_t k = pl_shape_last(x), columns = g->value[n->linear_binary.packed].shape.dim[0];
    call->u.linear_binary = (pl_binary_call){.m = pl_shape_rows(x),
                                             .n = columns,
                                             .k = k,
                                             .x_real = pl_address_of(g, a, n->linear_binary.x),
                                             .ld_x = k,
                                             .packed = pl_address_of(g, a, n->linear_binary.packed),
                                             .bias = pl_address_of(g, a, n->linear_binary.bias),
                                             .residual = pl_address_of(g, a, n->linear_binary.residual),
                                             .ld_residual = columns,
                                             .c = pl_address_of(g, a, n->linear_binary.y),
                                             .ldc = columns,
                                             .act = PL_ACT_NONE};
}

static uint64_t workspace_linear_binary(const pl_call *c, pl_team team)
{
    return pl_binary_workspace_bytes(&c->u.linear_binary, team);
}

static void exec_linear_binary(const pl_call *c, pl_team team)
{
    pl_binary_exec(&c->u.linear_binary, c->workspace, team);
}

const pl_binding pl_binding_LINEAR_BINARY = {bind_linear_binary, workspace_linear_binary, exec_linear_binary};

static void bind_dx(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *dy = &g->value[n->linear_binary_dx.dy].shape, *x = &g->value[n->linear_binary_dx.x].shape;
    call->u.linear_binary_dx = (pl_linear_binary_dx_call){.m = pl_shape_rows(x),
                                                          .n = pl_shape_last(dy),
                                                          .k = pl_shape_last(x),
                                                          .dy = pl_address_of(g, a, n->linear_binary_dx.dy),
                                                          .x = pl_address_of(g, a, n->linear_binary_dx.x),
                                                          .packed = pl_address_of(g, a, n->linear_binary_dx.packed),
                                                          .dx = pl_address_of(g, a, n->linear_binary_dx.dx)};
}

static uint64_t workspace_dx(const pl_call *c, pl_team team)
{
    return pl_linear_binary_dx_workspace_bytes(&c->u.linear_binary_dx, team);
}

static void exec_dx(const pl_call *c, pl_team team)
{
    pl_linear_binary_dx_exec(&c->u.linear_binary_dx, c->workspace, team);
}

const pl_binding pl_binding_LINEAR_BINARY_DX = {bind_dx, workspace_dx, exec_dx};

static void bind_dw(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *dy = &g->value[n->linear_binary_dw.dy].shape, *x = &g->value[n->linear_binary_dw.x].shape;
    call->u.linear_binary_dw = (pl_linear_binary_dw_call){.m = pl_shape_rows(x),
                                                          .n = pl_shape_last(dy),
                                                          .k = pl_shape_last(x),
                                                          .tokens = pl_tokens_of(x),
                                                          .dy = pl_address_of(g, a, n->linear_binary_dw.dy),
                                                          .x = pl_address_of(g, a, n->linear_binary_dw.x),
                                                          .dw = pl_address_of(g, a, n->linear_binary_dw.dweight_new)};
}

static uint64_t workspace_dw(const pl_call *c, pl_team team)
{
    return pl_linear_binary_dw_workspace_bytes(&c->u.linear_binary_dw, team);
}

static void exec_dw(const pl_call *c, pl_team team)
{
    pl_linear_binary_dw_exec(&c->u.linear_binary_dw, c->workspace, team);
}

const pl_binding pl_binding_LINEAR_BINARY_DW = {bind_dw, workspace_dw, exec_dw};

static void bind_latent_gradient(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *w = &g->value[n->latent_gradient.weight].shape;
    call->u.latent_gradient =
        (pl_latent_gradient_call){w->dim[0], w->dim[1], pl_address_of(g, a, n->latent_gradient.weight),
                                  pl_address_of(g, a, n->latent_gradient.sum_new)};
}

static uint64_t workspace_latent_gradient(const pl_call *c, pl_team team)
{
    return pl_latent_gradient_workspace_bytes(&c->u.latent_gradient, team);
}

static void exec_latent_gradient(const pl_call *c, pl_team team)
{
    pl_latent_gradient_exec(&c->u.latent_gradient, c->workspace, team);
}

const pl_binding pl_binding_LATENT_GRADIENT = {bind_latent_gradient, workspace_latent_gradient, exec_latent_gradient};
