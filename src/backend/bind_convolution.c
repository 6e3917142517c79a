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
    *c = (pl_convolution_call){.algorithm = (pl_convolution_algorithm)n->attr[3].i,
                               .type = pl_real_of(g, n->in[0]),
                               .x = at(g, a, n->in[0]),
                               .weight = at(g, a, n->in[1]),
                               .bias = at(g, a, n->in[2]),
                               .residual = at(g, a, n->in[3]),
                               .y = at(g, a, n->out[0]),
                               .act = (pl_activation)n->attr[0].i,
                               .act_out = at(g, a, n->out[1]),
                               .moments = at(g, a, n->out[2])};
    c->shape = shape_between(&pl_in(g, n, 0)->shape, &pl_in(g, n, 1)->shape, &g->value[n->out[0]].shape, n->attr[1].i,
                             n->attr[2].i);
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
    *c = (pl_convolution_dx_call){.algorithm = (pl_convolution_algorithm)n->attr[3].i,
                                  .type = pl_real_of(g, n->in[0]),
                                  .dy = at(g, a, n->in[0]),
                                  .weight = at(g, a, n->in[1]),
                                  .residual = at(g, a, n->in[2]),
                                  .act = (pl_activation)n->attr[0].i,
                                  .grad_of = at(g, a, n->in[3]),
                                  .dx = at(g, a, n->out[0]),
                                  .act_again = at(g, a, n->out[1])};
    c->shape = shape_between(&g->value[n->out[0]].shape, &pl_in(g, n, 1)->shape, &pl_in(g, n, 0)->shape, n->attr[1].i,
                             n->attr[2].i);
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
    *c = (pl_convolution_dw_call){.algorithm = (pl_convolution_algorithm)n->attr[2].i,
                                  .type = pl_real_of(g, n->in[0]),
                                  .dy = at(g, a, n->in[0]),
                                  .x = at(g, a, n->in[1]),
                                  .dw = at(g, a, n->out[0])};
    c->shape = shape_between(&pl_in(g, n, 1)->shape, &pl_in(g, n, 2)->shape, &pl_in(g, n, 0)->shape, n->attr[0].i,
                             n->attr[1].i);
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

static void bind_conv_transpose2d(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_convolution_dx_call *c = &call->u.convolution_dx;
    *c = (pl_convolution_dx_call){.type = pl_real_of(g, n->in[0]),
                                  .dy = at(g, a, n->in[0]),
                                  .weight = at(g, a, n->in[1]),
                                  .bias = at(g, a, n->in[2]),
                                  .residual = at(g, a, n->in[3]),
                                  .dx = at(g, a, n->out[0])};
    c->shape =
        shape_between(&g->value[n->out[0]].shape, &pl_in(g, n, 1)->shape, &pl_in(g, n, 0)->shape, n->attr[0].i, 0);
}

const pl_binding pl_binding_CONV_TRANSPOSE2D = {bind_conv_transpose2d, workspace_conv2d_dx, exec_conv2d_dx};
