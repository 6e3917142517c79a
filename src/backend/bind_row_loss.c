/* Losses of rows of numbers, and how many rows are right. */
#include "backend/backend.h"
#include "ir/op.h"

/* All but the penalty have the same inputs (what is compared, with what, scale, loss …) and, behind the loss, the
 * gradients of the first and of the second, as far as they have any: an output that a node lacks is PL_NONE. So one
 * function reads all as the derivative of a pair. */
#define READ_AS_A_PAIR(op)                                                                                             \
    _Static_assert(offsetof(pl_squared_error_bwd_args, counted) == offsetof(pl_##op##_args, counted) &&                \
                       offsetof(pl_squared_error_bwd_args, loss_new) == offsetof(pl_##op##_args, loss_new),            \
                   "one function reads all")
READ_AS_A_PAIR(cross_entropy);
READ_AS_A_PAIR(cross_entropy_bwd);
READ_AS_A_PAIR(bce_with_logits);
READ_AS_A_PAIR(bce_with_logits_bwd);
READ_AS_A_PAIR(cosine_loss);
READ_AS_A_PAIR(cosine_loss_bwd);
READ_AS_A_PAIR(squared_error);
#undef READ_AS_A_PAIR
_Static_assert(offsetof(pl_squared_error_bwd_args, da) == offsetof(pl_cross_entropy_bwd_args, dlogits) &&
                   offsetof(pl_squared_error_bwd_args, da) == offsetof(pl_bce_with_logits_bwd_args, dq) &&
                   offsetof(pl_squared_error_bwd_args, db) == offsetof(pl_cosine_loss_bwd_args, db),
               "one function reads all");
_Static_assert(offsetof(pl_cross_entropy_args, kind) == offsetof(pl_cross_entropy_bwd_args, kind),
               "one function binds both");
_Static_assert(offsetof(pl_norm_penalty_args, counted) == offsetof(pl_norm_penalty_bwd_args, counted) &&
                   offsetof(pl_norm_penalty_args, loss_new) == offsetof(pl_norm_penalty_bwd_args, loss_new),
               "one function binds both");

static pl_row_loss_call call_of(const pl_graph *g, const pl_addresses *a, const pl_squared_error_bwd_args *x)
{
    const pl_shape *s = &g->value[x->a].shape;
    const pl_value *counted = pl_value_at(g, x->counted);
    return (pl_row_loss_call){.rows = pl_shape_rows(s),
                              .rows_of_sample = pl_shape_rows(s) / s->dim[0],
                              .counted = pl_address_of(g, a, x->counted),
                              .counted_stride = counted ? counted->stride[0] : 0,
                              .width = pl_shape_last(s),
                              .a = pl_address_of(g, a, x->a),
                              .scale = pl_address_of(g, a, x->scale),
                              .loss = pl_address_of(g, a, x->loss_new),
                              .da = pl_address_of(g, a, x->da),
                              .db = pl_address_of(g, a, x->db),
                              .loss_scale = pl_address_of(g, a, x->loss_scale),
                              .type = pl_real_of(g, x->a)};
}

static uint64_t workspace_row_loss(const pl_call *c, pl_team team)
{
    return pl_row_loss_workspace_bytes(&c->u.row_loss, team);
}
static void exec_row_loss(const pl_call *c, pl_team team) { pl_row_loss_exec(&c->u.row_loss, c->workspace, team); }

static void bind_cross_entropy(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const bool stablemax = n->cross_entropy.kind == PL_CROSS_ENTROPY_STABLEMAX;
    call->u.row_loss = call_of(g, a, &n->squared_error_bwd);
    call->u.row_loss.target = pl_address_of(g, a, n->cross_entropy.target);
    call->u.row_loss.kind = stablemax ? PL_ROW_LOSS_STABLEMAX : PL_ROW_LOSS_SOFTMAX;
}

const pl_binding pl_binding_CROSS_ENTROPY = {bind_cross_entropy, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_CROSS_ENTROPY_BWD = {bind_cross_entropy, workspace_row_loss, exec_row_loss};

static void bind_bce(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_bce_with_logits_args *x = &n->bce_with_logits;
    pl_row_loss_call *c = &call->u.row_loss;
    *c = call_of(g, a, &n->squared_error_bwd);
    c->kind = PL_ROW_LOSS_BCE;
    c->rows = g->value[x->q].shape.dim[0], c->rows_of_sample = c->width = 1;
    c->y = pl_address_of(g, a, x->y), c->y_stride = g->value[x->y].stride[0];
}

const pl_binding pl_binding_BCE_WITH_LOGITS = {bind_bce, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_BCE_WITH_LOGITS_BWD = {bind_bce, workspace_row_loss, exec_row_loss};

static void bind_pair(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bool is_cosine = n->op == PL_OP_COSINE_LOSS || n->op == PL_OP_COSINE_LOSS_BWD;
    call->u.row_loss = call_of(g, a, &n->squared_error_bwd);
    call->u.row_loss.kind = is_cosine ? PL_ROW_LOSS_COSINE : PL_ROW_LOSS_SQUARED_ERROR;
    call->u.row_loss.b = pl_address_of(g, a, n->squared_error_bwd.b);
}

const pl_binding pl_binding_COSINE_LOSS = {bind_pair, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_COSINE_LOSS_BWD = {bind_pair, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_SQUARED_ERROR = {bind_pair, workspace_row_loss, exec_row_loss};
const pl_binding pl_binding_SQUARED_ERROR_BWD = {bind_pair, workspace_row_loss, exec_row_loss};

static void bind_norm_penalty(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_norm_penalty_bwd_args *x = &n->norm_penalty_bwd;
    pl_squared_error_bwd_args alone = pl_squared_error_bwd_none;
    alone.a = x->x, alone.scale = x->scale, alone.loss_scale = x->loss_scale, alone.counted = x->counted;
    alone.loss_new = x->loss_new, alone.da = x->dx, alone.db = PL_NONE;
    call->u.row_loss = call_of(g, a, &alone);
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
