/* conv2d, its two derivatives and its transpose. */
#include "backend/backend.h"
#include "ir/op.h"

static void *at(const pl_graph *g, const pl_addresses *a, pl_id value) { return pl_address_of(g, a, value); }

static pl_convolution_shape shape_between(const pl_shape *x, const pl_shape *w, const pl_shape *y, int64_t stride,
                                          int64_t pad)
{
    return (pl_convolution_shape){.batch = x->dim[0],
                                  .height = x->dim[1],
                                  .width = x->dim[2],
                                  .in = x->dim[3],
                                  .out_height = y->dim[1],
                                  .out_width = y->dim[2],
                                  .out = y->dim[3],
                                  .kernel = w->dim[1],
                                  .stride = stride,
                                  .pad = pad};
}

static void bind_conv2d(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_call *c = &call->u.convolution;
    *c = (pl_convolution_call){.algorithm = (pl_convolution_algorithm)n->conv2d.algorithm,
                               .type = pl_real_of(g, n->conv2d.x),
                               .x = at(g, a, n->conv2d.x),
                               .weight = at(g, a, n->conv2d.weight),
                               .bias = at(g, a, n->conv2d.bias),
                               .residual = at(g, a, n->conv2d.residual),
                               .y = at(g, a, n->conv2d.y),
                               .act = (pl_activation)n->conv2d.act,
                               .act_out = at(g, a, n->conv2d.act_y),
                               .moments = at(g, a, n->conv2d.moments)};
    c->shape = shape_between(&g->value[n->conv2d.x].shape, &g->value[n->conv2d.weight].shape,
                             &g->value[n->conv2d.y].shape, n->conv2d.stride, n->conv2d.pad);
}

static uint64_t workspace_conv2d(const pl_call *c, pl_team team)
{
    return pl_convolution_workspace_bytes(&c->u.convolution, team);
}
static void exec_conv2d(const pl_call *c, pl_team team) { pl_convolution_exec(&c->u.convolution, c->workspace, team); }

const pl_binding pl_binding_CONV2D = {bind_conv2d, workspace_conv2d, exec_conv2d};

static void bind_conv2d_dx(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_dx_call *c = &call->u.convolution_dx;
    *c = (pl_convolution_dx_call){.algorithm = (pl_convolution_algorithm)n->conv2d_dx.algorithm,
                                  .type = pl_real_of(g, n->conv2d_dx.dy),
                                  .dy = at(g, a, n->conv2d_dx.dy),
                                  .weight = at(g, a, n->conv2d_dx.weight),
                                  .residual = at(g, a, n->conv2d_dx.partial),
                                  .act = (pl_activation)n->conv2d_dx.act,
                                  .grad_of = at(g, a, n->conv2d_dx.u),
                                  .dx = at(g, a, n->conv2d_dx.dx),
                                  .act_again = at(g, a, n->conv2d_dx.act_u)};
    c->shape = shape_between(&g->value[n->conv2d_dx.dx].shape, &g->value[n->conv2d_dx.weight].shape,
                             &g->value[n->conv2d_dx.dy].shape, n->conv2d_dx.stride, n->conv2d_dx.pad);
}

static uint64_t workspace_conv2d_dx(const pl_call *c, pl_team team)
{
    return pl_convolution_dx_workspace_bytes(&c->u.convolution_dx, team);
}
static void exec_conv2d_dx(const pl_call *c, pl_team team)
{
    pl_convolution_dx_exec(&c->u.convolution_dx, c->workspace, team);
}

const pl_binding pl_binding_CONV2D_DX = {bind_conv2d_dx, workspace_conv2d_dx, exec_conv2d_dx};

static void bind_conv2d_dw(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_dw_call *c = &call->u.convolution_dw;
    *c = (pl_convolution_dw_call){.algorithm = (pl_convolution_algorithm)n->conv2d_dw.algorithm,
                                  .type = pl_real_of(g, n->conv2d_dw.dy),
                                  .dy = at(g, a, n->conv2d_dw.dy),
                                  .x = at(g, a, n->conv2d_dw.x),
                                  .dw = at(g, a, n->conv2d_dw.dweight_new)};
    c->shape = shape_between(&g->value[n->conv2d_dw.x].shape, &g->value[n->conv2d_dw.dweight].shape,
                             &g->value[n->conv2d_dw.dy].shape, n->conv2d_dw.stride, n->conv2d_dw.pad);
}

static uint64_t workspace_conv2d_dw(const pl_call *c, pl_team team)
{
    return pl_convolution_dw_workspace_bytes(&c->u.convolution_dw, team);
}
static void exec_conv2d_dw(const pl_call *c, pl_team team)
{
    pl_convolution_dw_exec(&c->u.convolution_dw, c->workspace, team);
}

const pl_binding pl_binding_CONV2D_DW = {bind_conv2d_dw, workspace_conv2d_dw, exec_conv2d_dw};

_Static_assert(offsetof(pl_conv2d_pool_args, algorithm) == offsetof(pl_conv2d_pool_bwd_args, algorithm),
               "one function reads the attributes of both");

static pl_convolution_call pooled_call(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_id image,
                                       pl_id weight)
{
    const pl_shape *x = &g->value[image].shape, *w = &g->value[weight].shape;
    const int64_t stride = n->conv2d_pool.stride, pad = n->conv2d_pool.pad;
    pl_convolution_call c = {.algorithm = (pl_convolution_algorithm)n->conv2d_pool.algorithm,
                             .type = pl_real_of(g, image),
                             .x = at(g, a, image),
                             .weight = at(g, a, weight)};
    pl_shape y = *x;
    y.dim[1] = pl_convolution_outputs(x->dim[1], w->dim[1], stride, pad);
    y.dim[2] = pl_convolution_outputs(x->dim[2], w->dim[1], stride, pad);
    y.dim[3] = w->dim[0];
    c.shape = shape_between(x, w, &y, stride, pad);
    return c;
}

static void bind_conv2d_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_pool_call *c = &call->u.convolution_pool;
    *c = (pl_convolution_pool_call){.convolution = pooled_call(g, n, a, n->conv2d_pool.x, n->conv2d_pool.weight),
                                    .gamma = at(g, a, n->conv2d_pool.gamma),
                                    .film = at(g, a, n->conv2d_pool.film),
                                    .pooled = at(g, a, n->conv2d_pool.pooled),
                                    .argmax = at(g, a, n->conv2d_pool.argmax)};
    c->convolution.bias = at(g, a, n->conv2d_pool.bias);
    c->convolution.moments = at(g, a, n->conv2d_pool.moments);
    c->convolution.y = at(g, a, n->conv2d_pool.y);
}

static uint64_t workspace_conv2d_pool(const pl_call *c, pl_team team)
{
    return pl_convolution_pool_workspace_bytes(&c->u.convolution_pool, team);
}
static void exec_conv2d_pool(const pl_call *c, pl_team team)
{
    pl_convolution_pool_exec(&c->u.convolution_pool, c->workspace, team);
}

const pl_binding pl_binding_CONV2D_POOL = {bind_conv2d_pool, workspace_conv2d_pool, exec_conv2d_pool};

static void bind_conv2d_pool_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_pool_bwd_call *c = &call->u.convolution_pool_bwd;
    *c = (pl_convolution_pool_bwd_call){.convolution =
                                            pooled_call(g, n, a, n->conv2d_pool_bwd.x, n->conv2d_pool_bwd.weight),
                                        .g = at(g, a, n->conv2d_pool_bwd.dpooled),
                                        .argmax = at(g, a, n->conv2d_pool_bwd.argmax),
                                        .spread = at(g, a, n->conv2d_pool_bwd.spread),
                                        .dx = at(g, a, n->conv2d_pool_bwd.dx),
                                        .dw = at(g, a, n->conv2d_pool_bwd.dweight_new)};
    c->convolution.bias = at(g, a, n->conv2d_pool_bwd.bias);
}

static uint64_t workspace_conv2d_pool_bwd(const pl_call *c, pl_team team)
{
    return pl_convolution_pool_bwd_workspace_bytes(&c->u.convolution_pool_bwd, team);
}
static void exec_conv2d_pool_bwd(const pl_call *c, pl_team team)
{
    pl_convolution_pool_bwd_exec(&c->u.convolution_pool_bwd, c->workspace, team);
}

const pl_binding pl_binding_CONV2D_POOL_BWD = {bind_conv2d_pool_bwd, workspace_conv2d_pool_bwd, exec_conv2d_pool_bwd};

static void bind_conv_transpose2d(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_dx_call *c = &call->u.convolution_dx;
    *c = (pl_convolution_dx_call){.type = pl_real_of(g, n->conv_transpose2d.x),
                                  .dy = at(g, a, n->conv_transpose2d.x),
                                  .weight = at(g, a, n->conv_transpose2d.weight),
                                  .bias = at(g, a, n->conv_transpose2d.bias),
                                  .residual = at(g, a, n->conv_transpose2d.residual),
                                  .dx = at(g, a, n->conv_transpose2d.y)};
    c->shape = shape_between(&g->value[n->conv_transpose2d.y].shape, &g->value[n->conv_transpose2d.weight].shape,
                             &g->value[n->conv_transpose2d.x].shape, n->conv_transpose2d.stride, 0);
}

const pl_binding pl_binding_CONV_TRANSPOSE2D = {bind_conv_transpose2d, workspace_conv2d_dx, exec_conv2d_dx};
