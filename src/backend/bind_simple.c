/* Element by element: activation, dropout, add, cast, fill, first values, the optimizer. */
#include "backend/backend.h"
#include "ir/op.h"

static int64_t elems(const pl_graph *g, pl_id value) { return (int64_t)pl_shape_elems(&g->value[value].shape); }

static void bind_activation(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.activation = (pl_activation_call){elems(g, n->activation.x), (pl_activation)n->activation.act,
                                              pl_address_of(g, a, n->activation.x),
                                              pl_address_of(g, a, n->activation.y), pl_real_of(g, n->activation.x)};
}

static void exec_activation(const pl_call *c, pl_team team) { pl_activation_exec(&c->u.activation, team); }

const pl_binding pl_binding_ACTIVATION = {bind_activation, NULL, exec_activation};

static void bind_gated_activation(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *y = &g->value[n->gated_activation.y].shape;
    call->u.gated_activation = (pl_gated_activation_call){pl_shape_rows(y),
                                                          pl_shape_last(y),
                                                          (pl_activation)n->gated_activation.act,
                                                          pl_address_of(g, a, n->gated_activation.x),
                                                          pl_address_of(g, a, n->gated_activation.y),
                                                          pl_address_of(g, a, n->gated_activation.up),
                                                          pl_real_of(g, n->gated_activation.x)};
}

static void exec_gated_activation(const pl_call *c, pl_team team)
{
    pl_gated_activation_exec(&c->u.gated_activation, team);
}

const pl_binding pl_binding_GATED_ACTIVATION = {bind_gated_activation, NULL, exec_gated_activation};

static void bind_gated_activation_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *y = &g->value[n->gated_activation_bwd.dy].shape;
    call->u.gated_activation_bwd = (pl_gated_activation_bwd_call){pl_shape_rows(y),
                                                                  pl_shape_last(y),
                                                                  (pl_activation)n->gated_activation_bwd.act,
                                                                  pl_address_of(g, a, n->gated_activation_bwd.x),
                                                                  pl_address_of(g, a, n->gated_activation_bwd.dy),
                                                                  pl_address_of(g, a, n->gated_activation_bwd.dx)};
}

static uint64_t workspace_gated_activation_bwd(const pl_call *c, pl_team team)
{
    return pl_gated_activation_bwd_workspace_bytes(&c->u.gated_activation_bwd, team);
}

static void exec_gated_activation_bwd(const pl_call *c, pl_team team)
{
    pl_gated_activation_bwd_exec(&c->u.gated_activation_bwd, c->workspace, team);
}

const pl_binding pl_binding_GATED_ACTIVATION_BWD = {bind_gated_activation_bwd, workspace_gated_activation_bwd,
                                                    exec_gated_activation_bwd};

static void bind_activation_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.activation_bwd = (pl_activation_bwd_call){elems(g, n->activation_bwd.x),
                                                      (pl_activation)n->activation_bwd.act,
                                                      pl_address_of(g, a, n->activation_bwd.x),
                                                      pl_address_of(g, a, n->activation_bwd.dy),
                                                      pl_address_of(g, a, n->activation_bwd.dx),
                                                      pl_real_of(g, n->activation_bwd.x)};
}

static void exec_activation_bwd(const pl_call *c, pl_team team) { pl_activation_bwd_exec(&c->u.activation_bwd, team); }

const pl_binding pl_binding_ACTIVATION_BWD = {bind_activation_bwd, NULL, exec_activation_bwd};

static void bind_dropout(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->dropout.x];
    int64_t samples = x->shape.dim[0];
    call->u.dropout = (pl_dropout_call){.samples = samples,
                                        .elems_per_sample = elems(g, n->dropout.x) / samples,
                                        .probability = (float)n->dropout.probability,
                                        .seed = (uint64_t)n->dropout.seed,
                                        .stream = (uint64_t)n->dropout.stream,
                                        .step = pl_address_of(g, a, n->dropout.step),
                                        .first_sample = pl_address_of(g, a, n->dropout.first_sample),
                                        .x = pl_address_of(g, a, n->dropout.x),
                                        .residual = pl_address_of(g, a, n->dropout.residual),
                                        .y = pl_address_of(g, a, n->dropout.y),
                                        .type = pl_real_of(g, n->dropout.x)};
}

static void exec_dropout(const pl_call *c, pl_team team) { pl_dropout_exec(&c->u.dropout, team); }

const pl_binding pl_binding_DROPOUT = {bind_dropout, NULL, exec_dropout};

static void bind_add(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_add_args *x = &n->add;
    call->u.add = (pl_add_call){elems(g, x->a), pl_address_of(g, a, x->a), pl_address_of(g, a, x->b),
                                pl_address_of(g, a, x->y), pl_real_of(g, x->a)};
}

static void bind_add_to(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_add_to_args *x = &n->add_to;
    call->u.add = (pl_add_call){elems(g, x->x), pl_address_of(g, a, x->x), pl_address_of(g, a, x->sum),
                                pl_address_of(g, a, x->sum_new), pl_real_of(g, x->x)};
}

static void exec_add(const pl_call *c, pl_team team) { pl_add_exec(&c->u.add, team); }

static void bind_scale(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_scale_args *x = &n->scale;
    call->u.scale = (pl_scale_call){elems(g, x->x), (float)x->factor, pl_address_of(g, a, x->x),
                                    pl_address_of(g, a, x->y), pl_real_of(g, x->x)};
}

static void exec_scale(const pl_call *c, pl_team team) { pl_scale_exec(&c->u.scale, team); }

const pl_binding pl_binding_SCALE = {bind_scale, NULL, exec_scale};

const pl_binding pl_binding_ADD = {bind_add, NULL, exec_add};
const pl_binding pl_binding_ADD_TO = {bind_add_to, NULL, exec_add};

static void bind_copy(const pl_graph *g, const pl_addresses *a, pl_id from, pl_id to, pl_call *call)
{
    const pl_value *x = &g->value[from];
    call->u.cast = (pl_cast_call){.count = elems(g, from),
                                  .from = pl_real_of(g, from),
                                  .to = pl_real_of(g, to),
                                  .encoding = g->value[to].encoding,
                                  .x = pl_address_of(g, a, from),
                                  .y = pl_address_of(g, a, to)};
    if (pl_value_is_contiguous(x)) return;
    call->u.cast.sample = call->u.cast.count / x->shape.dim[0];
    call->u.cast.distance = x->stride[0];
}

static void bind_cast(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_copy(g, a, n->cast.x, n->cast.y, call);
}

static void bind_replace(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_id x = n->replace.x, to = n->replace.value_new;
    if (pl_dtype_is_real(g->value[x].dtype)) return bind_copy(g, a, x, to, call);
    call->u.cast =
        (pl_cast_call){.bytes = pl_value_bytes(g, x), .x = pl_address_of(g, a, x), .y = pl_address_of(g, a, to)};
}

static void bind_detach(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_copy(g, a, n->detach.x, n->detach.y, call);
}

static void bind_straight_through(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_copy(g, a, n->straight_through.code, n->straight_through.y, call);
}

static void exec_cast(const pl_call *c, pl_team team) { pl_cast_exec(&c->u.cast, team); }

const pl_binding pl_binding_CAST = {bind_cast, NULL, exec_cast};

static void exec_replace(const pl_call *c, pl_team team)
{
    if (!c->u.cast.bytes) return exec_cast(c, team);
    memcpy(c->u.cast.y, c->u.cast.x, c->u.cast.bytes);
}

const pl_binding pl_binding_REPLACE = {bind_replace, NULL, exec_replace};

/* In place there is nothing to do. */
static void exec_detach(const pl_call *c, pl_team team)
{
    if (c->u.cast.x != c->u.cast.y) pl_cast_exec(&c->u.cast, team);
}

const pl_binding pl_binding_STRAIGHT_THROUGH = {bind_straight_through, NULL, exec_detach};
const pl_binding pl_binding_DETACH = {bind_detach, NULL, exec_detach};

/* Zero bytes for any dtype, a value for f32 and i32. */
static void bind_fill(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->fill_is_value = n->fill.value != 0;
    if (!call->fill_is_value)
        call->u.fill = (pl_fill_call){pl_value_bytes(g, n->fill.y), pl_address_of(g, a, n->fill.y)};
    else
        call->u.fill_value =
            (pl_fill_value_call){(uint64_t)elems(g, n->fill.y), n->fill.value, pl_address_of(g, a, n->fill.y),
                                 g->value[n->fill.y].dtype == PL_DTYPE_I32};
}

static void exec_fill(const pl_call *c, pl_team team)
{
    if (c->fill_is_value)
        pl_fill_value_exec(&c->u.fill_value, team);
    else
        pl_fill_exec(&c->u.fill, team);
}

const pl_binding pl_binding_FILL = {bind_fill, NULL, exec_fill};

_Static_assert(offsetof(pl_normal_args, stream) == offsetof(pl_truncated_normal_args, stream),
               "one function binds both");

static void bind_normal(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_normal_args *x = &n->normal;
    call->u.normal =
        (pl_normal_call){(uint64_t)elems(g, x->y),  (float)x->std,      (uint64_t)x->seed, (uint64_t)x->stream,
                         pl_address_of(g, a, x->y), pl_real_of(g, x->y)};
}

static void exec_normal(const pl_call *c, pl_team team) { pl_normal_exec(&c->u.normal, team); }

const pl_binding pl_binding_NORMAL = {bind_normal, NULL, exec_normal};

static void exec_truncated_normal(const pl_call *c, pl_team team) { pl_truncated_normal_exec(&c->u.normal, team); }

const pl_binding pl_binding_TRUNCATED_NORMAL = {bind_normal, NULL, exec_truncated_normal};

static void bind_uniform(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.uniform = (pl_uniform_call){.count = elems(g, n->uniform.y),
                                        .middle = (float)((n->uniform.low + n->uniform.high) / 2),
                                        .bound = (float)((n->uniform.high - n->uniform.low) / 2),
                                        .seed = (uint64_t)n->uniform.seed,
                                        .stream = (uint64_t)n->uniform.stream,
                                        .item = pl_address_of(g, a, n->uniform.item),
                                        .y = pl_address_of(g, a, n->uniform.y),
                                        .type = pl_real_of(g, n->uniform.y)};
}

static void exec_uniform(const pl_call *c, pl_team team) { pl_uniform_exec(&c->u.uniform, team); }

const pl_binding pl_binding_UNIFORM = {bind_uniform, NULL, exec_uniform};

static pl_adamw_state state_of(const pl_value *moment)
{
    return moment->encoding ? PL_ADAMW_8BIT : moment->dtype == PL_DTYPE_BF16 ? PL_ADAMW_BF16 : PL_ADAMW_F32;
}

_Static_assert(offsetof(pl_adamw_args, skipped) == offsetof(pl_adam_atan2_args, skipped) &&
                   offsetof(pl_adamw_args, v_new) == offsetof(pl_adam_atan2_args, v_new) &&
                   offsetof(pl_adamw_args, beta2) == offsetof(pl_adam_atan2_args, beta2),
               "one function reads both");

/* What both rules have in common. */
static void bind_optimizer(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_adamw_args *x = &n->adamw;
    call->u.adamw = (pl_adamw_call){.count = elems(g, x->weight),
                                    .w = pl_address_of(g, a, x->weight_new),
                                    .m = pl_address_of(g, a, x->m_new),
                                    .v = pl_address_of(g, a, x->v_new),
                                    .g = pl_address_of(g, a, x->gradient),
                                    .beta1 = (float)x->beta1,
                                    .beta2 = (float)x->beta2,
                                    .lr = pl_address_of(g, a, x->rate),
                                    .step = pl_address_of(g, a, x->step),
                                    .grad_scale = pl_address_of(g, a, x->scale),
                                    .state = state_of(&g->value[x->m]),
                                    .skipped_steps = pl_address_of(g, a, x->skipped)};
}

static void bind_adamw(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_optimizer(g, n, a, call);
    call->u.adamw.eps = (float)n->adamw.eps;
    call->u.adamw.weight_decay = (float)n->adamw.weight_decay;
    call->u.adamw.seed = (uint64_t)n->adamw.seed;
    call->u.adamw.stream = (uint64_t)n->adamw.stream;
    call->u.adamw.limit = (float)n->adamw.limit;
}

static void bind_adam_atan2(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_optimizer(g, n, a, call);
    call->u.adamw.angle = true;
    call->u.adamw.weight_decay = (float)n->adam_atan2.weight_decay;
    call->u.adamw.seed = (uint64_t)n->adam_atan2.seed;
    call->u.adamw.stream = (uint64_t)n->adam_atan2.stream;
    call->u.adamw.limit = (float)n->adam_atan2.limit;
}

static void exec_adamw(const pl_call *c, pl_team team) { pl_adamw_exec(&c->u.adamw, team); }

const pl_binding pl_binding_ADAMW = {bind_adamw, NULL, exec_adamw};
const pl_binding pl_binding_ADAM_ATAN2 = {bind_adam_atan2, NULL, exec_adamw};

static void bind_ema(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.ema = (pl_ema_call){elems(g, n->ema.average), (float)n->ema.rate, pl_address_of(g, a, n->ema.average_new),
                                pl_address_of(g, a, n->ema.weight)};
}

static void exec_ema(const pl_call *c, pl_team team) { pl_ema_exec(&c->u.ema, team); }

const pl_binding pl_binding_EMA = {bind_ema, NULL, exec_ema};

static void bind_sum_squares(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.sum_squares = (pl_sum_squares_call){elems(g, n->sum_squares.x), pl_address_of(g, a, n->sum_squares.x),
                                                pl_address_of(g, a, n->sum_squares.sum_new)};
}

static uint64_t workspace_sum_squares(const pl_call *c, pl_team team)
{
    return pl_sum_squares_workspace_bytes(&c->u.sum_squares, team);
}
static void exec_sum_squares(const pl_call *c, pl_team team)
{
    pl_sum_squares_exec(&c->u.sum_squares, c->workspace, team);
}

const pl_binding pl_binding_SUM_SQUARES = {bind_sum_squares, workspace_sum_squares, exec_sum_squares};

static void bind_clip_scale(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.clip_scale =
        (pl_clip_scale_call){pl_address_of(g, a, n->clip_scale.sum),        (float)n->clip_scale.max_norm,
                             pl_address_of(g, a, n->clip_scale.scale),      pl_address_of(g, a, n->clip_scale.finite),
                             pl_address_of(g, a, n->clip_scale.loss_scale), pl_address_of(g, a, n->clip_scale.skipped)};
}

static void exec_clip_scale(const pl_call *c, pl_team team) { pl_clip_scale_exec(&c->u.clip_scale, team); }

const pl_binding pl_binding_CLIP_SCALE = {bind_clip_scale, NULL, exec_clip_scale};

static void bind_loss_scale(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.loss_scale = (pl_loss_scale_call){n->loss_scale.growth_steps, pl_address_of(g, a, n->loss_scale.finite),
                                              pl_address_of(g, a, n->loss_scale.loss_scale_new),
                                              pl_address_of(g, a, n->loss_scale.good_steps_new)};
}

static void exec_loss_scale(const pl_call *c, pl_team team) { pl_loss_scale_exec(&c->u.loss_scale, team); }

const pl_binding pl_binding_LOSS_SCALE = {bind_loss_scale, NULL, exec_loss_scale};
