/* Products of 8 bits, and what a calibration sees. */
#include "backend/backend.h"
#include "ir/op.h"

static pl_observe_call observe_call(const pl_graph *g, const pl_addresses *a, pl_id x, pl_id extremes)
{
    return (pl_observe_call){.count = (int64_t)pl_shape_elems(&g->value[x].shape),
                             .x = pl_address_of(g, a, x),
                             .extremes = pl_address_of(g, a, extremes)};
}

static void bind_extremes(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.observe = observe_call(g, a, n->observe_extremes.x, n->observe_extremes.extremes);
}

static void bind_spread(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.observe = observe_call(g, a, n->observe_spread.x, n->observe_spread.extremes);
    call->u.observe.bin = pl_address_of(g, a, n->observe_spread.bins);
}

static uint64_t workspace_observe(const pl_call *c, pl_team team)
{
    return pl_observe_workspace_bytes(&c->u.observe, team);
}

static void exec_observe(const pl_call *c, pl_team team) { pl_observe_exec(&c->u.observe, c->workspace, team); }

const pl_binding pl_binding_OBSERVE_EXTREMES = {bind_extremes, workspace_observe, exec_observe};
const pl_binding pl_binding_OBSERVE_SPREAD = {bind_spread, workspace_observe, exec_observe};

static void bind_difference(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.difference =
        (pl_difference_call){.count = (int64_t)pl_shape_elems(&g->value[n->observe_difference.x].shape),
                             .x = pl_address_of(g, a, n->observe_difference.x),
                             .y = pl_address_of(g, a, n->observe_difference.y),
                             .sums = pl_address_of(g, a, n->observe_difference.sums)};
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
    call->u.overwrite = (pl_overwrite_call){.count = (int64_t)pl_shape_elems(&g->value[n->overwrite.y].shape),
                                            .y = pl_address_of(g, a, n->overwrite.y),
                                            .z = pl_address_of(g, a, n->overwrite.z)};
}

static void exec_overwrite(const pl_call *c, pl_team team) { pl_overwrite_exec(&c->u.overwrite, team); }

const pl_binding pl_binding_OVERWRITE = {bind_overwrite, NULL, exec_overwrite};

_Static_assert(offsetof(pl_linear_int8_args, bias) == offsetof(pl_hidden_int8_args, bias) &&
                   offsetof(pl_linear_int8_args, y) == offsetof(pl_hidden_int8_args, y) &&
                   offsetof(pl_linear_int8_args, act) == offsetof(pl_hidden_int8_args, act),
               "one function reads both");

static pl_linear_int8_call call_of(const pl_graph *g, const pl_node *n, const pl_addresses *a)
{
    const pl_linear_int8_args *in = &n->linear_int8;
    const pl_value *x = &g->value[in->x], *y = &g->value[in->y];
    pl_linear_int8_call c = {.product = {.m = pl_shape_rows(&x->shape),
                                         .n = pl_shape_last(&y->shape),
                                         .k = pl_shape_last(&x->shape),
                                         .ld_x = pl_shape_last(&x->shape),
                                         .packed = pl_address_of(g, a, in->weight),
                                         .bias = pl_address_of(g, a, in->bias),
                                         .act = (pl_activation)in->act},
                             .range = pl_address_of(g, a, in->range)};
    if (x->dtype == PL_DTYPE_U8)
        c.product.x = pl_address_of(g, a, in->x);
    else
        c.product.x_real = pl_address_of(g, a, in->x);
    return c;
}

static void bind_linear_int8(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_linear_int8_call c = call_of(g, n, a);
    c.product.residual = pl_address_of(g, a, n->linear_int8.residual);
    c.product.c = pl_address_of(g, a, n->linear_int8.y);
    c.product.act_out = pl_address_of(g, a, n->linear_int8.act_y);
    c.product.ld_residual = c.product.ldc = c.product.ld_act_out = c.product.n;
    call->u.linear_int8 = c;
}

static void bind_hidden_int8(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    pl_linear_int8_call c = call_of(g, n, a);
    c.product.gated = n->hidden_int8.gated != 0;
    c.out_range = pl_address_of(g, a, n->hidden_int8.hidden_range);
    if (c.out_range)
        c.product.q_out = pl_address_of(g, a, n->hidden_int8.y);
    else
        c.product.act_out = pl_address_of(g, a, n->hidden_int8.y);
    c.product.ld_q_out = c.product.ld_act_out = c.product.n;
    call->u.linear_int8 = c;
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
const pl_binding pl_binding_HIDDEN_INT8 = {bind_hidden_int8, workspace_linear_int8, exec_linear_int8};
