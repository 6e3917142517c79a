/* How images become rows of tokens: patches, which a linear layer turns into tokens (a convolution whose windows do not
 * overlap), learned positions that are added to every sample's, and a learned row in front of them, the class token. */
#include "base/colours.h"
#include "ir/op.h"

static bool is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }

/* ---- patches: u8 [B,H,W] or [B,H,W,C], or f32 planes [B,C,H,W] → f32 [B,(H/p)·(W/p),channels·p·p] ----
 * Each number is v = value/255, of planes the value itself; standardize: (v − mean)/deviation of the three colours of
 * the pictures that CLIP was trained on (base/colours.h). Those of a patch are in the order channel, row, column, which
 * is that of a flattened weight [out, channels, p, p]; patches are in the order row, column. A grey image is repeated
 * for every channel. No gradient: pictures are data. */
static bool is_picture(const pl_value *x)
{
    const pl_shape *s = &x->shape;
    bool fine = x->dtype == PL_DTYPE_U8 ? s->rank == 3 || s->rank == 4 : x->dtype == PL_DTYPE_F32 && s->rank == 4;
    for (uint32_t i = 0; fine && i < s->rank; i++) fine = is_size(s->dim[i]);
    return fine && !(s->symbolic & ~1u);
}

static pl_status shape_patches(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    const pl_shape *s = &x->shape;
    const int64_t patch = n->attr[0].i, channels = n->attr[1].i;
    if (!is_picture(x))
        return pl_fail_input(g, n, 0,
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
    if (n->attr[2].i && channels != PL_COLOURS)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: %d colours can be standardised, not %lld channels",
                       pl_op_name(n->op), n->scope, PL_COLOURS, (long long)channels);
    pl_shape y = {.rank = 3, .symbolic = s->symbolic};
    y.dim[0] = s->dim[0], y.dim[1] = height / patch * (width / patch), y.dim[2] = channels * patch * patch;
    out[0] = (pl_out){y, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_patches(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->out[0]];
    return (pl_cost){2 * pl_value_elems_f(y), pl_value_bytes_f(pl_in(g, n, 0)) + pl_value_bytes_f(y)};
}

const pl_op_rule pl_rule_PATCHES = {shape_patches, NULL, cost_patches, .recompute = true};

/* ---- pixels: x [samples,...] → u8 of the same shape: 255·x, cut to 0 … 255 and rounded to the nearest, of two equally
 * near to the even one; what is no number becomes 0. No gradient: bytes are data. ---- */
static pl_status shape_pixels(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    if (pl_in(g, n, 0)->shape.rank < 1) return pl_fail_input(g, n, 0, "[samples, ...]", err);
    out[0] = (pl_out){pl_in(g, n, 0)->shape, PL_DTYPE_U8};
    return PL_OK;
}

static pl_cost cost_pixels(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){3 * pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_elems_f(x)};
}

const pl_op_rule pl_rule_PIXELS = {shape_pixels, NULL, cost_pixels, .recompute = true};

/* ---- add_positions: x [B,...,D], p f32 [...,D] → y = x + p, p for each sample; or p [D], for each token, too ---- */
static pl_status shape_add_positions(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    pl_shape sample = {.rank = x->shape.rank ? x->shape.rank - 1 : 0};
    if (sample.rank < 1 || x->shape.symbolic & ~1u) return pl_fail_input(g, n, 0, "[samples, ..., width]", err);
    for (uint32_t i = 0; i < sample.rank; i++) sample.dim[i] = x->shape.dim[i + 1];
    if (pl_in(g, n, 1)->shape.rank == 1) sample = pl_shape_of(1, pl_shape_last(&x->shape));
    PL_TRY(pl_expect_shape(g, n, 1, &sample, "the shape of one sample of the input, or of one position", err));
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_add_positions(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), sum = PL_NONE, in[2] = {dy, pl_gradient_accumulator(g, n->in[1])};
    if (dy == PL_NONE) return PL_OK;
    if (in[1] != PL_NONE)
        pl_gradient_accumulated(g, n->in[1], pl_build_node(g->b, PL_OP_COLUMN_SUM, NULL, 2, in, 1, &sum));
    pl_gradient_add(g, n->in[0], dy);
    return g->b->status;
}

static pl_cost cost_add_positions(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 1))};
}

const pl_op_rule pl_rule_ADD_POSITIONS = {shape_add_positions, gradient_add_positions, cost_add_positions,
                                          .recompute = true};

/* ---- prepend_row: x [B,N,D], [row f32 [D]] → y [B,1+N,D]: row, or zeros, in front of every sample ----
 * It and drop_row are each other's adjoint, but for the row, whose gradient drop_row sums up. */
static pl_status check_tokens(const pl_graph *g, const pl_node *n, int64_t rows_min, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, 0)->shape;
    if (s->rank != 3 || s->symbolic & ~1u || !is_size(s->dim[1]) || !is_size(s->dim[2]) || s->dim[1] == INT32_MAX)
        return pl_fail_input(g, n, 0, "[samples, positions, width]", err);
    if (s->dim[1] < rows_min) return pl_fail_input(g, n, 0, "a row that is left when the first is dropped", err);
    const pl_shape row = pl_shape_of(1, s->dim[2]);
    return pl_expect_shape(g, n, 1, &row, "one row, as wide as those of the input", err);
}

static pl_shape with_rows(pl_shape s, int64_t more)
{
    s.dim[1] += more;
    return s;
}

static pl_status shape_prepend_row(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_tokens(g, n, 1, err));
    out[0] = (pl_out){with_rows(pl_in(g, n, 0)->shape, 1), pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status gradient_prepend_row(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out[2] = {pl_gradient_output(g, n->in[0]), PL_NONE};
    if (dy == PL_NONE) return PL_OK;
    pl_id in[2] = {dy, n->in[1] == PL_NONE ? PL_NONE : pl_gradient_accumulator(g, n->in[1])};
    if (out[0] == PL_UNWANTED && in[1] == PL_NONE) return PL_OK;
    pl_build_node(g->b, PL_OP_DROP_ROW, NULL, 2, in, 2, out);
    pl_gradient_add(g, n->in[0], out[0]);
    if (in[1] != PL_NONE) pl_gradient_accumulated(g, n->in[1], out[1]);
    return g->b->status;
}

static pl_cost cost_rows(const pl_graph *g, const pl_node *n)
{
    double bytes = pl_value_bytes_f(pl_in(g, n, 0)) + pl_value_bytes_f(pl_in(g, n, 1));
    for (int k = 0; k < 2; k++)
        if (n->out[k] != PL_NONE) bytes += pl_value_bytes_f(&g->value[n->out[k]]);
    return (pl_cost){pl_value_elems_f(pl_in(g, n, 0)), bytes};
}

const pl_op_rule pl_rule_PREPEND_ROW = {shape_prepend_row, gradient_prepend_row, cost_rows, .recompute = true};

/* ---- drop_row: x [B,1+N,D], [sum f32 [D]] → [y [B,N,D]], [sum']: the first row of every sample is left out of y, and
 * added to the sum, sample after sample ---- */
static pl_status shape_drop_row(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_tokens(g, n, 2, err));
    out[0] = (pl_out){with_rows(pl_in(g, n, 0)->shape, -1), pl_in(g, n, 0)->dtype};
    if (pl_in(g, n, 1)) out[1] = (pl_out){pl_in(g, n, 1)->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_status gradient_drop_row(pl_gradient *g, const pl_node *n)
{
    pl_id dy = n->out[0] == PL_NONE ? PL_NONE : pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_PREPEND_ROW, NULL, 1, &dy, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_DROP_ROW = {shape_drop_row, gradient_drop_row, cost_rows, .recompute = true};
