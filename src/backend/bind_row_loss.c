/* Losses of rows of numbers, and how many rows are right. */
#include "backend/backend.h"
#include "ir/op.h"

/* Everything that does not depend on the operator; scale and loss are inputs at and at + 1. */
static pl_row_loss_call call_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, int at)
{
    const pl_shape *s = &pl_in(g, n, 0)->shape;
    const pl_value *counted = pl_in(g, n, at + 3);
    return (pl_row_loss_call){.rows = pl_shape_rows(s),
                              .rows_of_sample = pl_shape_rows(s) / s->dim[0],
                              .counted = counted ? pl_address_of(g, a, n->in[at + 3]) : NULL,
                              .counted_stride = counted ? counted->stride[0] : 0,
                              .width = pl_shape_last(s),
                              .a = pl_address_of(g, a, n->in[0]),
                              .scale = pl_address_of(g, a, n->in[at]),
                              .loss = pl_address_of(g, a, n->out[0]),
                              .da = pl_address_of(g, a, n->out[1]),
                              .db = pl_address_of(g, a, n->out[2]),
                              .loss_scale = pl_address_of(g, a, n->in[at + 2]),
                              .type = pl_real_of(g, n->in[0])};
}

static uint64_t workspace_row_loss(const pl_call *c, pl_team team)
{
    return pl_row_loss_workspace_bytes(&c->u.row_loss, team);
}
static void exec_row_loss(const pl_call *c, pl_team team) { pl_row_loss_exec(&c->u.row_loss, c->workspace, team); }

static void bind_cross_entropy(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.row_loss = call_of(g, n, a, 2);
    call->u.row_loss.target = pl_address_of(g, a, n->in[1]);
    call->u.row_loss.kind = n->attr[0].i == PL_CROSS_ENTROPY_STABLEMAX ? PL_ROW_LOSS_STABLEMAX : PL_ROW_LOSS_SOFTMAX;
}

const pl_binding pl_binding_CROSS_ENTROPY = {bind_cross_entropy, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_CROSS_ENTROPY_BWD = {bind_cross_entropy, workspace_row_loss, exec_row_loss};

static void bind_bce(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *y = pl_in(g, n, 1);
    pl_row_loss_call *c = &call->u.row_loss;
    *c = call_of(g, n, a, 2);
    c->kind = PL_ROW_LOSS_BCE;
    c->rows = pl_in(g, n, 0)->shape.dim[0], c->rows_of_sample = c->width = 1;
    c->y = pl_address_of(g, a, n->in[1]), c->y_stride = y->stride[0];
}

const pl_binding pl_binding_BCE_WITH_LOGITS = {bind_bce, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_BCE_WITH_LOGITS_BWD = {bind_bce, workspace_row_loss, exec_row_loss};

static void bind_pair(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bool is_cosine = n->op == PL_OP_COSINE_LOSS || n->op == PL_OP_COSINE_LOSS_BWD;
    call->u.row_loss = call_of(g, n, a, 2);
    call->u.row_loss.kind = is_cosine ? PL_ROW_LOSS_COSINE : PL_ROW_LOSS_SQUARED_ERROR;
    call->u.row_loss.b = pl_address_of(g, a, n->in[1]);
}

const pl_binding pl_binding_COSINE_LOSS = {bind_pair, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_COSINE_LOSS_BWD = {bind_pair, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_SQUARED_ERROR = {bind_pair, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_SQUARED_ERROR_BWD = {bind_pair, workspace_row_loss, exec_row_loss};

static void bind_norm_penalty(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.row_loss = call_of(g, n, a, 1);
    call->u.row_loss.kind = PL_ROW_LOSS_NORM_PENALTY;
}

const pl_binding pl_binding_NORM_PENALTY = {bind_norm_penalty, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_NORM_PENALTY_BWD = {bind_norm_penalty, workspace_row_loss, exec_row_loss};

static void bind_count_right(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *s = &g->value[n->count_right.logits].shape;
    call->u.count_right = (pl_count_right_call){.samples = s->dim[0],
                                                .rows = pl_shape_rows(s) / s->dim[0],
                                                .width = pl_shape_last(s),
                                                .logits = pl_address_of(g, a, n->count_right.logits),
                                                .target = pl_address_of(g, a, n->count_right.target),
                                                .y = pl_address_of(g, a, n->count_right.counts),
                                                .type = pl_real_of(g, n->count_right.logits)};
}

static void exec_count_right(const pl_call *c, pl_team team) { pl_count_right_exec(&c->u.count_right, team); }

const pl_binding pl_binding_COUNT_RIGHT = {bind_count_right, NULL, exec_count_right};
