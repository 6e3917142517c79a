/* How images become rows: patches, which a linear layer makes as wide as the model (a convolution whose windows do not
 * overlap), learned positions that are added to every sample's rows, and a learned row before them. */
#include "base/colours.h"
#include "ir/op.h"

static bool is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }

/* ---- patches: u8 [B,H,W] or [B,H,W,C], or f32 planes [B,C,H,W] → f32 [B,(H/p)·(W/p),channels·p·p] ----
 * Each number is v = value/255, for planes the value itself; standardize: (v − mean)/deviation, for the three colours
 * of the pictures that CLIP was trained on (base/colours.h). A patch's numbers are in the order channel, row, column,
 * which is that of a flattened weight [out, channels, p, p]; patches are in the order row, column. A grey image is
 * repeated for every channel. No gradient: pictures are data. */
static bool is_picture(const pl_value *x)
{
    const pl_shape *s = &x->shape;
    bool fine = x->dtype == PL_DTYPE_U8 ? s->rank == 3 || s->rank == 4 : x->dtype == PL_DTYPE_F32 && s->rank == 4;
    for (uint32_t i = 0; fine && i < s->rank; i++) fine = is_size(s->dim[i]);
    return fine && !(s->symbolic & ~1u);
}

static pl_status shape_patches(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_patches_args *a = &n->patches;
    const pl_value *x = &g->value[a->image];
    const pl_shape *s = &x->shape;
    const int64_t patch = a->patch, channels = a->channels;
    if (!is_picture(x))
        return pl_fail_operand(g, n, &a->image,
                               "u8 [samples, height, width] or [samples, height, width, channels], or f32 [samples, "
                               "channels, height, width]",
                               err);
    const int high = x->dtype == PL_DTYPE_F32 ? 2 : 1, deep = x->dtype == PL_DTYPE_F32 ? 1 : 3;
    const int64_t height = s->dim[high], width = s->dim[high + 1];
    if (!is_size(patch) || height % patch || width % patch)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: an image of %lld by %lld pixels has no patches of %lld by %lld",
                       pl_op_name(n->op), n->scope, (long long)height, (long long)width, (long long)patch,
                       (long long)patch);
    if (!is_size(channels) || (s->rank == 4 && s->dim[deep] != channels) || channels > INT32_MAX / patch / patch)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: patches of %lld channels cannot be made of this image",
                       pl_op_name(n->op), n->scope, (long long)channels);
    if (a->standardize && channels != PL_COLOURS)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: %d colours can be standardised, not %lld channels",
                       pl_op_name(n->op), n->scope, PL_COLOURS, (long long)channels);
    pl_shape y = {.rank = 3, .symbolic = s->symbolic};
    y.dim[0] = s->dim[0], y.dim[1] = height / patch * (width / patch), y.dim[2] = channels * patch * patch;
    *out = (pl_out){y, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_patches(const pl_graph *g, const pl_node *n)
{
    const pl_value *image = &g->value[n->patches.image], *y = &g->value[n->patches.y];
    return (pl_cost){2 * pl_value_elems_f(y), pl_value_bytes_f(image) + pl_value_bytes_f(y)};
}

const pl_op_rule pl_rule_PATCHES = {shape_patches, NULL, cost_patches, .recompute = true};

/* ---- pixels: x [samples,...] → u8 of the same shape: 255·x, clamped to 0 … 255 and rounded to the nearest, ties to
 * even; not-a-number becomes 0. No gradient: bytes are data. ---- */
static pl_status shape_pixels(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &g->value[n->pixels.x].shape;
    if (x->rank < 1) return pl_fail_operand(g, n, &n->pixels.x, "[samples, ...]", err);
    *out = (pl_out){*x, PL_DTYPE_U8};
    return PL_OK;
}

static pl_cost cost_pixels(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->pixels.x];
    return (pl_cost){3 * pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_elems_f(x)};
}

const pl_op_rule pl_rule_PIXELS = {shape_pixels, NULL, cost_pixels, .recompute = true};

/* ---- add_positions: x [B,...,D], positions [...,D] for each sample, or [D] for each row → y, their sum ---- */
static pl_status shape_add_positions(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_add_positions_args *a = &n->add_positions;
    const pl_value *x = &g->value[a->x];
    pl_shape sample = {.rank = x->shape.rank ? x->shape.rank - 1 : 0};
    if (sample.rank < 1 || x->shape.symbolic & ~1u) return pl_fail_operand(g, n, &a->x, "[samples, ..., width]", err);
    for (uint32_t i = 0; i < sample.rank; i++) sample.dim[i] = x->shape.dim[i + 1];
    if (g->value[a->positions].shape.rank == 1) sample = pl_shape_of(1, pl_shape_last(&x->shape));
    PL_TRY(pl_expect_operand(g, n, &a->positions, &sample, "the shape of one sample of the input, or of one position",
                             err));
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_add_positions(pl_gradient *g, const pl_node *n)
{
    const pl_add_positions_args *a = &n->add_positions;
    pl_column_sum_args b = pl_column_sum_none;
    b.x = pl_gradient_of(g, a->y), b.sum = pl_gradient_accumulator(g, a->positions);
    if (b.x == PL_NONE) return PL_OK;
    if (b.sum != PL_NONE) pl_gradient_accumulated(g, a->positions, pl_build_column_sum(g->b, &b));
    pl_gradient_add(g, a->x, b.x);
    return g->b->status;
}

static pl_cost cost_add_positions(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->add_positions.x], *positions = &g->value[n->add_positions.positions];
    return (pl_cost){pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(positions)};
}

const pl_op_rule pl_rule_ADD_POSITIONS = {shape_add_positions, gradient_add_positions, cost_add_positions,
                                          .recompute = true};

/* ---- prepend_row: x [B,N,D], row [D] → y [B,1+N,D]: row, or zeros, before every sample ----
 * It and drop_row are each other's adjoint, except for the row, whose gradient drop_row sums up. */
_Static_assert(offsetof(pl_prepend_row_args, x) == offsetof(pl_drop_row_args, x) &&
                   offsetof(pl_prepend_row_args, row) == offsetof(pl_drop_row_args, sum) &&
                   offsetof(pl_prepend_row_args, y) == offsetof(pl_drop_row_args, y),
               "one rule reads both");

static pl_status check_rows(const pl_graph *g, const pl_node *n, int64_t rows_min, pl_error *err)
{
    const pl_prepend_row_args *a = &n->prepend_row;
    const pl_shape *s = &g->value[a->x].shape;
    if (s->rank != 3 || s->symbolic & ~1u || !is_size(s->dim[1]) || !is_size(s->dim[2]) || s->dim[1] == INT32_MAX)
        return pl_fail_operand(g, n, &a->x, "[samples, positions, width]", err);
    if (s->dim[1] < rows_min) return pl_fail_operand(g, n, &a->x, "a row that is left when the first is dropped", err);
    const pl_shape row = pl_shape_of(1, s->dim[2]);
    return pl_expect_operand(g, n, &a->row, &row, "one row, as wide as those of the input", err);
}

static pl_shape with_rows(pl_shape s, int64_t more)
{
    s.dim[1] += more;
    return s;
}

static pl_status shape_prepend_row(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = &g->value[n->prepend_row.x];
    PL_TRY(check_rows(g, n, 1, err));
    *out = (pl_out){with_rows(x->shape, 1), x->dtype};
    return PL_OK;
}

static pl_status gradient_prepend_row(pl_gradient *g, const pl_node *n)
{
    const pl_prepend_row_args *a = &n->prepend_row;
    pl_drop_row_args b = pl_drop_row_none;
    b.x = pl_gradient_of(g, a->y), b.sum = pl_gradient_accumulator(g, a->row), b.y = pl_gradient_output(g, a->x);
    if (b.x == PL_NONE || (b.y == PL_UNWANTED && b.sum == PL_NONE)) return PL_OK;
    pl_build_drop_row(g->b, &b);
    pl_gradient_add(g, a->x, b.y);
    pl_gradient_accumulated(g, a->row, b.sum_new);
    return g->b->status;
}

/* prepend_row has no sum. */
static pl_cost cost_rows(const pl_graph *g, const pl_node *n)
{
    const pl_drop_row_args *a = &n->drop_row;
    const pl_value *x = &g->value[a->x];
    return (pl_cost){pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_bytes_f(pl_value_at(g, a->sum)) +
                                              pl_value_bytes_f(pl_value_at(g, a->y)) +
                                              pl_value_bytes_f(pl_value_at(g, a->sum_new))};
}

const pl_op_rule pl_rule_PREPEND_ROW = {shape_prepend_row, gradient_prepend_row, cost_rows, .recompute = true};

/* ---- drop_row: x [B,1+N,D], sum [D] → y [B,N,D]: the first row of every sample is left out of y, and added to the
 * sum, sample after sample ---- */
static pl_status shape_drop_row(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = &g->value[n->drop_row.x];
    PL_TRY(check_rows(g, n, 2, err));
    out[PL_OUT_OF(drop_row, y)] = (pl_out){with_rows(x->shape, -1), x->dtype};
    return PL_OK;
}

static pl_status gradient_drop_row(pl_gradient *g, const pl_node *n)
{
    const pl_drop_row_args *a = &n->drop_row;
    pl_prepend_row_args b = pl_prepend_row_none;
    b.x = pl_gradient_of(g, a->y);
    if (b.x == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    pl_gradient_add(g, a->x, pl_build_prepend_row(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_DROP_ROW = {shape_drop_row, gradient_drop_row, cost_rows, .recompute = true};
