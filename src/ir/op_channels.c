/* Whole channels, the last dimension: concatenated, sliced, dropped, and two that say where a pixel is. All are copies:
 * kernels take whole tensors, and few would read a window with gaps between its rows. */
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

static pl_status check_channels(const pl_graph *g, const pl_node *n, const pl_id *operand, pl_error *err)
{
    const pl_shape *s = &g->value[*operand].shape;
    if (s->rank < 1 || s->symbolic >> (s->rank - 1) & 1) return pl_fail_operand(g, n, operand, "[..., channels]", err);
    return PL_OK;
}

_Static_assert(offsetof(pl_slice_args, y) == offsetof(pl_concat_args, y) &&
                   offsetof(pl_slice_args, y) == offsetof(pl_slice_bwd_args, dx) &&
                   offsetof(pl_slice_args, y) == offsetof(pl_append_coordinates_args, y) &&
                   offsetof(pl_slice_args, y) == offsetof(pl_channel_dropout_args, y) &&
                   offsetof(pl_slice_args, y) == offsetof(pl_path_dropout_args, y),
               "one rule reads all");

static pl_cost cost_copied(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->slice.y];
    return (pl_cost){pl_value_elems_f(y), 2 * pl_value_bytes_f(y)};
}

/* ---- concat: two or more parts → their channels, one after another ---- */
static pl_status shape_concat(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_id *part = n->concat.part;
    const pl_value *first = &g->value[*part];
    int64_t channels = 0;
    int k = 0;
    for (; k < PL_INS_OF_CONCAT && part[k] != PL_NONE; k++) {
        PL_TRY(check_channels(g, n, &part[k], err));
        pl_shape like = with_channels(first->shape, pl_shape_last(&g->value[part[k]].shape));
        PL_TRY(pl_expect_operand(g, n, &part[k], &like, "the shape of the first part but for its channels", err));
        if (__builtin_add_overflow(channels, pl_shape_last(&like), &channels))
            return refuse(n, "these are too many channels", err);
    }
    for (int behind = k; behind < PL_INS_OF_CONCAT; behind++)
        if (part[behind] != PL_NONE) return pl_fail_operand(g, n, &part[k], "no gap between inputs", err);
    *out = (pl_out){with_channels(first->shape, channels), first->dtype};
    return PL_OK;
}

static pl_status gradient_concat(pl_gradient *g, const pl_node *n)
{
    const pl_id *part = n->concat.part;
    const pl_id dy = pl_gradient_of(g, n->concat.y);
    if (dy == PL_NONE) return PL_OK;
    for (int64_t k = 0, first = 0, count; k < PL_INS_OF_CONCAT && part[k] != PL_NONE; k++, first += count) {
        pl_slice_args b = pl_slice_none;
        count = pl_shape_last(&g->b->graph->value[part[k]].shape);
        b.x = dy, b.first = first, b.channels = count;
        if (pl_gradient_is_wanted(g, part[k])) pl_gradient_add(g, part[k], pl_build_slice(g->b, &b));
    }
    return g->b->status;
}

const pl_op_rule pl_rule_CONCAT = {shape_concat, gradient_concat, cost_copied, .recompute = true};

/* ---- slice: x → its channels [first, first + channels) ---- */
static pl_status shape_slice(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_slice_args *a = &n->slice;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_channels(g, n, &a->x, err));
    const int64_t all = pl_shape_last(&x->shape);
    if (a->first < 0 || a->channels < 1 || a->first > all || a->channels > all - a->first)
        return refuse(n, "the slice is not within the channels of its input", err);
    *out = (pl_out){with_channels(x->shape, a->channels), x->dtype};
    return PL_OK;
}

static pl_status gradient_slice(pl_gradient *g, const pl_node *n)
{
    const pl_slice_args *a = &n->slice;
    pl_slice_bwd_args b = pl_slice_bwd_none;
    b.dy = pl_gradient_of(g, a->y);
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.first = a->first, b.channels = pl_shape_last(&g->b->graph->value[a->x].shape);
    b.add = pl_gradient_take(g, a->x);
    pl_gradient_add(g, a->x, pl_build_slice_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_SLICE = {shape_slice, gradient_slice, cost_copied, .recompute = true};

/* ---- slice_bwd: dy, add → dx of `channels` channels, dy from `first` on ---- */
static pl_status shape_slice_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_slice_bwd_args *a = &n->slice_bwd;
    const pl_value *dy = &g->value[a->dy];
    PL_TRY(check_channels(g, n, &a->dy, err));
    if (a->first < 0 || a->first > a->channels || pl_shape_last(&dy->shape) > a->channels - a->first)
        return refuse(n, "the slice is not within the channels of its input", err);
    pl_shape s = with_channels(dy->shape, a->channels);
    PL_TRY(pl_expect_operand(g, n, &a->add, &s, "the shape of the slice's input", err));
    *out = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_SLICE_BWD = {shape_slice_bwd, NULL, cost_copied};

/* ---- append_coordinates: x [B,H,W,C] → [B,H,W,C+2] ----
 * The channels of pixel i,j are followed by i/(H−1) and j/(W−1), from 0 to 1. */
static pl_status shape_append_coordinates(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_append_coordinates_args *a = &n->append_coordinates;
    const pl_value *x = &g->value[a->x];
    if (x->shape.rank != 4 || x->shape.symbolic & ~1u)
        return pl_fail_operand(g, n, &a->x, "[batch, height, width, channels]", err);
    int64_t channels;
    if (__builtin_add_overflow(pl_shape_last(&x->shape), 2, &channels))
        return refuse(n, "these are too many channels", err);
    *out = (pl_out){with_channels(x->shape, channels), x->dtype};
    return PL_OK;
}

static pl_status gradient_append_coordinates(pl_gradient *g, const pl_node *n)
{
    const pl_append_coordinates_args *a = &n->append_coordinates;
    pl_slice_args b = pl_slice_none;
    b.x = pl_gradient_of(g, a->y);
    if (b.x == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.channels = pl_shape_last(&g->b->graph->value[a->x].shape);
    pl_gradient_add(g, a->x, pl_build_slice(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_APPEND_COORDINATES = {shape_append_coordinates, gradient_append_coordinates, cost_copied,
                                               .recompute = true};

/* ---- channel_dropout: x, step, first_sample → x·mask/(1−p), one number of the mask for each channel of a sample ----
 * The mask is a function of (seed, stream, step, global sample, channel), so the backward pass is the same node on dy.
 */
static pl_status shape_channel_dropout(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_channel_dropout_args *a = &n->channel_dropout;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_channels(g, n, &a->x, err));
    if (x->shape.rank < 2) return pl_fail_operand(g, n, &a->x, "[samples, ..., channels]", err);
    if (!(a->probability >= 0 && a->probability < 1)) return refuse(n, "its probability is not in [0, 1)", err);
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_channel_dropout(pl_gradient *g, const pl_node *n)
{
    const pl_channel_dropout_args *a = &n->channel_dropout;
    pl_channel_dropout_args b = pl_channel_dropout_none;
    b.x = pl_gradient_of(g, a->y), b.step = a->step, b.first_sample = a->first_sample;
    b.probability = a->probability, b.seed = a->seed, b.stream = a->stream;
    if (b.x == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    pl_gradient_add(g, a->x, pl_build_channel_dropout(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_CHANNEL_DROPOUT = {shape_channel_dropout, gradient_channel_dropout, cost_copied,
                                            .recompute = true};

/* ---- path_dropout: x [B,...], step, first_sample → x, but each of the `paths` equal, consecutive parts of a sample is
 * zeroed with probability p, and the others are not scaled: a part is one path to the result, and the remaining paths
 * are weighted elsewhere. The mask is channel_dropout's, one number per path; so the backward pass is the same node on
 * dy. */
static pl_status shape_path_dropout(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_path_dropout_args *a = &n->path_dropout;
    const pl_value *x = &g->value[a->x];
    int64_t sample = 1;
    for (uint32_t i = 1; i < x->shape.rank; i++) sample *= x->shape.dim[i];
    if (x->shape.rank < 2 || x->shape.symbolic & ~1u || sample == 0)
        return pl_fail_operand(g, n, &a->x, "[samples, ...]", err);
    if (a->paths < 1 || sample % a->paths) return refuse(n, "a sample has not so many equal parts", err);
    if (!(a->probability >= 0 && a->probability < 1)) return refuse(n, "its probability is not in [0, 1)", err);
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_path_dropout(pl_gradient *g, const pl_node *n)
{
    const pl_path_dropout_args *a = &n->path_dropout;
    pl_path_dropout_args b = pl_path_dropout_none;
    b.x = pl_gradient_of(g, a->y), b.step = a->step, b.first_sample = a->first_sample;
    b.paths = a->paths, b.probability = a->probability, b.seed = a->seed, b.stream = a->stream;
    if (b.x == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    pl_gradient_add(g, a->x, pl_build_path_dropout(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_PATH_DROPOUT = {shape_path_dropout, gradient_path_dropout, cost_copied, .recompute = true};
