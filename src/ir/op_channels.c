/* Whole channels, the last dimension: put side by side, cut out, dropped, and two that say where a pixel is. All are
 * copies: kernels take whole tensors, a window with a distance between its rows would be read by few of them. */
#include "ir/op.h"

static pl_status refuse(const pl_node *n, const char *why, pl_error *err)
{
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: %s", pl_op_name(n->op), n->scope, why);
}

static pl_shape with_channels(pl_shape s, int64_t channels)
{
    s.dim[s.rank - 1] = channels;
    return s;
}

static pl_status check_channels(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, k)->shape;
    if (s->rank < 1 || s->symbolic >> (s->rank - 1) & 1) return pl_fail_input(g, n, k, "[..., channels]", err);
    return PL_OK;
}

static pl_cost cost_copied(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->out[0]];
    return (pl_cost){pl_value_elems_f(y), 2 * pl_value_bytes_f(y)};
}

/* ---- concat: two or more inputs → their channels, one behind the other ---- */
static pl_status shape_concat(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    int64_t channels = 0;
    int k = 0;
    for (; k < PL_NODE_IN_MAX && n->in[k] != PL_NONE; k++) {
        PL_TRY(check_channels(g, n, k, err));
        pl_shape like = with_channels(pl_in(g, n, 0)->shape, pl_shape_last(&pl_in(g, n, k)->shape));
        PL_TRY(pl_expect_shape(g, n, k, &like, "the shape of input 0 but for its channels", err));
        if (__builtin_add_overflow(channels, pl_shape_last(&like), &channels))
            return refuse(n, "these are too many channels", err);
    }
    for (int behind = k; behind < PL_NODE_IN_MAX; behind++)
        if (n->in[behind] != PL_NONE) return pl_fail_input(g, n, k, "no gap between inputs", err);
    out[0] = (pl_out){with_channels(pl_in(g, n, 0)->shape, channels), pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status gradient_concat(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]);
    if (dy == PL_NONE) return PL_OK;
    for (int64_t k = 0, first = 0, count; k < PL_NODE_IN_MAX && n->in[k] != PL_NONE; k++, first += count) {
        pl_id out = PL_NONE;
        count = pl_shape_last(&g->b->graph->value[n->in[k]].shape);
        if (!pl_gradient_is_wanted(g, n->in[k])) continue;
        pl_attr attr[2] = {pl_attr_i(first), pl_attr_i(count)};
        pl_gradient_add(g, n->in[k], pl_build_node(g->b, PL_OP_SLICE, attr, 1, &dy, 1, &out));
    }
    return g->b->status;
}

const pl_op_rule pl_rule_CONCAT = {shape_concat, gradient_concat, cost_copied, .recompute = true};

/* ---- slice: x → its channels [first, first + channels) ---- */
static pl_status shape_slice(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_channels(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    int64_t first = n->attr[0].i, count = n->attr[1].i, all = pl_shape_last(&x->shape);
    if (first < 0 || count < 1 || first > all || count > all - first)
        return refuse(n, "the slice is not within the channels of its input", err);
    out[0] = (pl_out){with_channels(x->shape, count), x->dtype};
    return PL_OK;
}

static pl_status gradient_slice(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, x)) return PL_OK;
    pl_attr attr[2] = {n->attr[0], pl_attr_i(pl_shape_last(&g->b->graph->value[x].shape))};
    pl_id in[2] = {dy, pl_gradient_take(g, x)};
    pl_gradient_add(g, x, pl_build_node(g->b, PL_OP_SLICE_BWD, attr, 2, in, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_SLICE = {shape_slice, gradient_slice, cost_copied, .recompute = true};

/* ---- slice_bwd: dy, [add] → dx of `channels` channels, dy from `first` on ---- */
static pl_status shape_slice_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_channels(g, n, 0, err));
    const pl_value *dy = pl_in(g, n, 0);
    int64_t first = n->attr[0].i, all = n->attr[1].i, count = pl_shape_last(&dy->shape);
    if (first < 0 || first > all || count > all - first)
        return refuse(n, "the slice is not within the channels of its input", err);
    pl_shape s = with_channels(dy->shape, all);
    PL_TRY(pl_expect_shape(g, n, 1, &s, "the shape of the slice's input", err));
    out[0] = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_SLICE_BWD = {shape_slice_bwd, NULL, cost_copied};

/* ---- append_coordinates: x [B,H,W,C] → [B,H,W,C+2] ----
 * Behind the channels of pixel i,j lie i/(H−1) and j/(W−1), from 0 to 1. */
static pl_status shape_append_coordinates(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    if (x->shape.rank != 4 || x->shape.symbolic & ~1u)
        return pl_fail_input(g, n, 0, "[batch, height, width, channels]", err);
    int64_t channels;
    if (__builtin_add_overflow(pl_shape_last(&x->shape), 2, &channels))
        return refuse(n, "these are too many channels", err);
    out[0] = (pl_out){with_channels(x->shape, channels), x->dtype};
    return PL_OK;
}

static pl_status gradient_append_coordinates(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_attr attr[2] = {pl_attr_i(0), pl_attr_i(pl_shape_last(&g->b->graph->value[n->in[0]].shape))};
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_SLICE, attr, 1, &dy, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_APPEND_COORDINATES = {shape_append_coordinates, gradient_append_coordinates, cost_copied,
                                               .recompute = true};

/* ---- channel_dropout: x, step, first sample → x·mask/(1−p), one number of the mask a channel of a sample ----
 * The mask is a function of (seed, stream, step, global sample, channel), so the backward pass is the same node on dy.
 */
static pl_status shape_channel_dropout(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_channels(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    if (x->shape.rank < 2) return pl_fail_input(g, n, 0, "[samples, ..., channels]", err);
    if (!(n->attr[0].f >= 0 && n->attr[0].f < 1)) return refuse(n, "its probability is not in [0, 1)", err);
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_channel_dropout(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_id in[3] = {dy, n->in[1], n->in[2]};
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_CHANNEL_DROPOUT, n->attr, 3, in, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_CHANNEL_DROPOUT = {shape_channel_dropout, gradient_channel_dropout, cost_copied,
                                            .recompute = true};

/* ---- path_dropout: x [B,...], step, first sample → x, but each of the `paths` equal parts of a sample, one behind the
 * other, is zero with the probability, and not scaled where it is not: a part is a way to the result, and those that
 * are left are weighed elsewhere. The mask is channel_dropout's, a number a path; so the backward pass is the same node
 * on dy. */
static pl_status shape_path_dropout(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    const int64_t paths = n->attr[0].i;
    int64_t sample = 1;
    for (uint32_t i = 1; i < x->shape.rank; i++) sample *= x->shape.dim[i];
    if (x->shape.rank < 2 || x->shape.symbolic & ~1u || sample == 0)
        return pl_fail_input(g, n, 0, "[samples, ...]", err);
    if (paths < 1 || sample % paths) return refuse(n, "a sample has not so many equal parts", err);
    if (!(n->attr[1].f >= 0 && n->attr[1].f < 1)) return refuse(n, "its probability is not in [0, 1)", err);
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_path_dropout(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_id in[3] = {dy, n->in[1], n->in[2]};
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_PATH_DROPOUT, n->attr, 3, in, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_PATH_DROPOUT = {shape_path_dropout, gradient_path_dropout, cost_copied, .recompute = true};
