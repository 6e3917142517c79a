/* Two-dimensional convolution over N,H,W,C images, its two derivatives and its transpose; the gradient of
 * a bias is column_sum. What lies outside of the image counts as zero. Which algorithm computes it is an attribute,
 * decided when the model is built (base/convolution.h): it decides bits, so it is no matter of the machine.
 * What flows is of one type in a node, f32, bf16 or f16; biases, moments and sums of gradients are f32. */
#include "base/convolution.h"
#include "ir/op.h"

/* ---- shapes that the three have in common ---- */

static bool is_image(const pl_value *v) { return v->shape.rank == 4 && !(v->shape.symbolic & ~1u); }

/* What sizes can be calculated of; the rest check_window refuses. */
static bool is_possible(const pl_convolution_shape *s)
{
    bool small = s->height <= INT32_MAX && s->width <= INT32_MAX && s->kernel <= INT32_MAX && s->stride <= INT32_MAX;
    return small && s->stride >= 1 && s->pad >= 0 && s->pad < s->kernel;
}

static pl_convolution_shape shape_between(const pl_shape *x, const pl_shape *w, const pl_attr *stride)
{
    pl_convolution_shape s = {.batch = x->dim[0],
                              .height = x->dim[1],
                              .width = x->dim[2],
                              .in = x->dim[3],
                              .out = w->dim[0],
                              .kernel = w->dim[1],
                              .stride = stride[0].i,
                              .pad = stride[1].i};
    if (!is_possible(&s)) return s;
    s.out_height = pl_convolution_outputs(s.height, s.kernel, s.stride, s.pad);
    s.out_width = pl_convolution_outputs(s.width, s.kernel, s.stride, s.pad);
    return s;
}

/* So many products by the algorithm, and bytes. */
static pl_cost cost_of(const pl_convolution_shape *s, int64_t algorithm, double products, double bytes)
{
    const double flops =
        products * 2 * (double)s->batch * pl_convolution_products(s, (pl_convolution_algorithm)algorithm);
    return (pl_cost){flops, bytes, flops};
}

static pl_status check_weight(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    const pl_value *w = pl_in(g, n, k);
    if (w->shape.rank != 4 || w->shape.symbolic || w->shape.dim[1] != w->shape.dim[2])
        return pl_fail_input(g, n, k, "[out, kernel, kernel, in] with a square kernel", err);
    return PL_OK;
}

/* Stride, padding and algorithm fit kernel and image. */
static pl_status check_window(const pl_node *n, const pl_convolution_shape *s, int64_t algorithm, pl_error *err)
{
    if (!is_possible(s))
        return pl_fail(err, PL_E_INTERNAL,
                       "%s in %s: kernel %lld, stride %lld, padding %lld: expected a stride of at least 1, and padding "
                       "that is not negative and less than the kernel",
                       pl_op_name(n->op), n->scope, (long long)s->kernel, (long long)s->stride, (long long)s->pad);
    if (s->out_height < 1 || s->out_width < 1)
        return pl_fail(err, PL_E_INTERNAL,
                       "%s in %s: an image of %lld × %lld with padding %lld is smaller than the "
                       "kernel, %lld",
                       pl_op_name(n->op), n->scope, (long long)s->height, (long long)s->width, (long long)s->pad,
                       (long long)s->kernel);
    if (algorithm < 0 || !pl_convolution_allows(s, (pl_convolution_algorithm)algorithm))
        return pl_fail(
            err, PL_E_INTERNAL,
            "%s in %s: algorithm %lld, expected 0 (direct), or for kernel 3 with stride 1 also 1 (winograd2) "
            "or 2 (winograd4)",
            pl_op_name(n->op), n->scope, (long long)algorithm);
    return PL_OK;
}

static pl_shape image_of(const pl_shape *like, int64_t height, int64_t width, int64_t channels)
{
    pl_shape s = *like;
    s.dim[1] = height, s.dim[2] = width, s.dim[3] = channels;
    return s;
}

/* ---- conv2d: x [B,H,W,C], W [N,k,k,C], [bias N], [residual B,Ho,Wo,N] → y [B,Ho,Wo,N], [act(y)], [moments] ----
 * With act, y is the pre-activation and the second output is act(y). moments f32 [B,Ho,2,N] are those that
 * channel_moments makes of y; no gradient goes through them, a norm's own rule takes them into account. */
enum { ACT, STRIDE, PAD, ALGORITHM };

static pl_status shape_conv2d(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1), *bias = pl_in(g, n, 2);
    if (!is_image(x)) return pl_fail_input(g, n, 0, "[batch, height, width, in]", err);
    PL_TRY(check_weight(g, n, 1, err));
    if (w->shape.dim[3] != x->shape.dim[3])
        return pl_fail_input(g, n, 1, "[out, kernel, kernel, in] with in = the input's channels", err);
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, n->attr + STRIDE);
    PL_TRY(check_window(n, &s, n->attr[ALGORITHM].i, err));
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != s.out)) return pl_fail_input(g, n, 2, "f32 [out]", err);
    pl_shape y = image_of(&x->shape, s.out_height, s.out_width, s.out);
    PL_TRY(pl_expect_shape(g, n, 3, &y, "the shape of the output", err));
    out[0] = out[1] = (pl_out){y, x->dtype};
    out[2] = (pl_out){image_of(&x->shape, s.out_height, 2, s.out), PL_DTYPE_F32};
    return PL_OK;
}

static void bias_gradient(pl_gradient *g, pl_id bias, pl_id dy)
{
    if (bias == PL_NONE || pl_gradient_accumulator(g, bias) == PL_NONE) return;
    pl_id in[2] = {dy, pl_gradient_accumulator(g, bias)}, out = PL_NONE;
    pl_gradient_accumulated(g, bias, pl_build_node(g->b, PL_OP_COLUMN_SUM, NULL, 2, in, 1, &out));
}

/* window: stride, padding, algorithm. */
static void weight_gradient(pl_gradient *g, pl_id x, pl_id w, pl_id dy, const pl_attr *window)
{
    const pl_value *v = g->b->graph->value;
    pl_id acc = pl_gradient_accumulator(g, w), out = PL_NONE;
    if (acc == PL_NONE) return;
    pl_convolution_shape s = shape_between(&v[x].shape, &v[w].shape, window);
    pl_attr attr[] = {window[0], window[1],
                      pl_attr_i(pl_convolution_choose_dw(&s, (pl_convolution_algorithm)window[2].i))};
    pl_gradient_accumulated(g, w, pl_build_node(g->b, PL_OP_CONV2D_DW, attr, 3, (pl_id[]){dy, x, acc}, 1, &out));
}

/* As linear's: dW comes before dx, so that x is dead when dx is born. */
static pl_status gradient_conv2d(pl_gradient *g, const pl_node *n)
{
    pl_id da = n->out[1] == PL_NONE ? PL_NONE : pl_gradient_of(g, n->out[1]), du = PL_NONE;
    if (da != PL_NONE)
        pl_gradient_add(g, n->out[0],
                        pl_build_node(g->b, PL_OP_ACTIVATION_BWD, n->attr, 2, (pl_id[]){n->out[0], da}, 1, &du));
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], w = n->in[1];
    if (dy == PL_NONE) return g->b->status;
    bias_gradient(g, n->in[2], dy);
    weight_gradient(g, x, w, dy, n->attr + STRIDE);
    if (pl_gradient_is_wanted(g, x)) {
        const pl_shape *s = &g->b->graph->value[x].shape;
        pl_attr attr[] = {pl_attr_i(PL_ACT_NONE), n->attr[STRIDE],      n->attr[PAD],
                          n->attr[ALGORITHM],     pl_attr_i(s->dim[1]), pl_attr_i(s->dim[2])};
        pl_id dx_in[4] = {dy, w, pl_gradient_take(g, x), PL_NONE}, dx = PL_NONE;
        pl_build_node(g->b, PL_OP_CONV2D_DX, attr, 4, dx_in, 1, &dx);
        pl_gradient_add(g, x, dx);
    }
    if (n->in[3] != PL_NONE) pl_gradient_add(g, n->in[3], dy);
    return g->b->status;
}

static pl_cost cost_conv2d(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, n->attr + STRIDE);
    double batch = (double)s.batch, outputs = n->out[1] == PL_NONE ? 1 : 2;
    double y = batch * (double)s.out_height * (double)s.out_width * (double)s.out * (double)pl_dtype_bytes(x->dtype);
    return cost_of(&s, n->attr[ALGORITHM].i, 1,
                   pl_value_bytes_f(x) + pl_value_bytes_f(w) + y * outputs + pl_value_bytes_f(pl_in(g, n, 3)));
}

const pl_op_rule pl_rule_CONV2D = {shape_conv2d, gradient_conv2d, cost_conv2d, .remade = 1u << 2};

/* ---- conv2d_dx: dy [B,Ho,Wo,N], W [N,k,k,C], [partial B,H,W,C], [u B,H,W,C] → dx [B,H,W,C], [act(u)] ----
 * dx = gradient (+ partial) (· act'(u)); with u the second output, if wanted, computes act(u) once more. H and W are
 * attributes: with a stride, several sizes of image have a gradient of that size. */
enum { HEIGHT = ALGORITHM + 1, WIDTH };

static pl_convolution_shape shape_of_dx(const pl_shape *dy, const pl_shape *w, const pl_attr *attr)
{
    pl_shape x = image_of(dy, attr[HEIGHT].i, attr[WIDTH].i, w->dim[3]);
    return shape_between(&x, w, attr + STRIDE);
}

static pl_status shape_conv2d_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *dy = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    if (!is_image(dy)) return pl_fail_input(g, n, 0, "[batch, height, width, out]", err);
    PL_TRY(check_weight(g, n, 1, err));
    if (n->attr[HEIGHT].i < 1 || n->attr[WIDTH].i < 1 || n->attr[HEIGHT].i > INT32_MAX || n->attr[WIDTH].i > INT32_MAX)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: an image of %lld × %lld has no gradient", pl_op_name(n->op),
                       n->scope, (long long)n->attr[HEIGHT].i, (long long)n->attr[WIDTH].i);
    pl_convolution_shape s = shape_of_dx(&dy->shape, &w->shape, n->attr);
    PL_TRY(check_window(n, &s, n->attr[ALGORITHM].i, err));
    pl_shape want = image_of(&dy->shape, s.out_height, s.out_width, s.out);
    if (!pl_shape_equal(&dy->shape, &want))
        return pl_fail_input(g, n, 0, "the output of the convolution of an image of that height and width", err);
    pl_shape x = image_of(&dy->shape, s.height, s.width, s.in);
    for (int k = 2; k <= 3; k++) PL_TRY(pl_expect_shape(g, n, k, &x, "the shape of the output", err));
    out[0] = out[1] = (pl_out){x, dy->dtype};
    return PL_OK;
}

static pl_cost cost_conv2d_dx(const pl_graph *g, const pl_node *n)
{
    const pl_value *dy = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    pl_convolution_shape s = shape_of_dx(&dy->shape, &w->shape, n->attr);
    double x = (double)s.batch * (double)s.height * (double)s.width * (double)s.in * (double)pl_dtype_bytes(dy->dtype);
    return cost_of(&s, n->attr[ALGORITHM].i, 1,
                   pl_value_bytes_f(dy) + pl_value_bytes_f(w) + x + pl_value_bytes_f(pl_in(g, n, 2)) +
                       pl_value_bytes_f(pl_in(g, n, 3)));
}

const pl_op_rule pl_rule_CONV2D_DX = {shape_conv2d_dx, NULL, cost_conv2d_dx};

/* ---- conv2d_dw: dy [B,Ho,Wo,N], x [B,H,W,C], dW [N,k,k,C] → dW' ---- */
static pl_status shape_conv2d_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *dy = pl_in(g, n, 0), *x = pl_in(g, n, 1), *acc = pl_in(g, n, 2);
    if (!is_image(dy)) return pl_fail_input(g, n, 0, "[batch, height, width, out]", err);
    if (!is_image(x)) return pl_fail_input(g, n, 1, "[batch, height, width, in]", err);
    PL_TRY(check_weight(g, n, 2, err));
    pl_convolution_shape s = shape_between(&x->shape, &acc->shape, n->attr);
    PL_TRY(check_window(n, &s, n->attr[ALGORITHM - STRIDE].i, err));
    pl_shape y = image_of(&x->shape, s.out_height, s.out_width, s.out);
    PL_TRY(pl_expect_shape(g, n, 0, &y, "the output of the convolution", err));
    if (acc->shape.dim[3] != s.in) return pl_fail_input(g, n, 2, "f32 [out, kernel, kernel, in]", err);
    out[0] = (pl_out){acc->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_conv2d_dw(const pl_graph *g, const pl_node *n)
{
    const pl_value *dy = pl_in(g, n, 0), *x = pl_in(g, n, 1), *acc = pl_in(g, n, 2);
    pl_convolution_shape s = shape_between(&x->shape, &acc->shape, n->attr);
    return cost_of(&s, n->attr[ALGORITHM - STRIDE].i, 1,
                   pl_value_bytes_f(dy) + pl_value_bytes_f(x) + 2 * pl_value_bytes_f(acc));
}

const pl_op_rule pl_rule_CONV2D_DW = {shape_conv2d_dw, NULL, cost_conv2d_dw};

/* ---- conv_transpose2d: x [B,H,W,N], W [N,k,k,C], [bias C], [residual B,Ho,Wo,C] → y [B,Ho,Wo,C] ----
 * What conv2d_dx does to a gradient: each pixel of x is spread over k × k pixels of y, `stride` apart, and Ho is
 * (H − 1)·stride + k. So its own derivatives are a convolution, and conv2d_dw with x and dy in each other's place. */
static pl_convolution_shape shape_of_transpose(const pl_shape *x, const pl_shape *w, int64_t stride)
{
    pl_convolution_shape s = {.stride = stride, .kernel = w->dim[1]};
    if (stride < 1 || stride > INT32_MAX || s.kernel < 1 || s.kernel > INT32_MAX || x->dim[1] > INT32_MAX ||
        x->dim[2] > INT32_MAX)
        return s;
    int64_t height = (x->dim[1] - 1) * stride + s.kernel, width = (x->dim[2] - 1) * stride + s.kernel;
    pl_shape y = image_of(x, height, width, w->dim[3]);
    return shape_between(&y, w, (pl_attr[]){pl_attr_i(stride), pl_attr_i(0)});
}

static pl_status shape_conv_transpose2d(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1), *bias = pl_in(g, n, 2);
    if (!is_image(x)) return pl_fail_input(g, n, 0, "[batch, height, width, in]", err);
    PL_TRY(check_weight(g, n, 1, err));
    if (w->shape.dim[0] != x->shape.dim[3])
        return pl_fail_input(g, n, 1, "[in, kernel, kernel, out] with in = the input's channels", err);
    pl_convolution_shape s = shape_of_transpose(&x->shape, &w->shape, n->attr[0].i);
    PL_TRY(check_window(n, &s, PL_CONVOLUTION_DIRECT, err));
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != s.in)) return pl_fail_input(g, n, 2, "f32 [out]", err);
    pl_shape y = image_of(&x->shape, s.height, s.width, s.in);
    PL_TRY(pl_expect_shape(g, n, 3, &y, "the shape of the output", err));
    out[0] = (pl_out){y, x->dtype};
    return PL_OK;
}

static pl_status gradient_conv_transpose2d(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], w = n->in[1], out = PL_NONE, dx = PL_NONE;
    if (dy == PL_NONE) return PL_OK;
    pl_id acc = pl_gradient_accumulator(g, w);
    pl_attr attr[] = {pl_attr_i(PL_ACT_NONE), n->attr[0], pl_attr_i(0), pl_attr_i(PL_CONVOLUTION_DIRECT)};
    bias_gradient(g, n->in[2], dy);
    if (acc != PL_NONE)
        pl_gradient_accumulated(g, w,
                                pl_build_node(g->b, PL_OP_CONV2D_DW, attr + STRIDE, 3, (pl_id[]){x, dy, acc}, 1, &out));
    if (pl_gradient_is_wanted(g, x)) {
        pl_id in[4] = {dy, w, PL_NONE, pl_gradient_take(g, x)};
        pl_gradient_add(g, x, pl_build_node(g->b, PL_OP_CONV2D, attr, 4, in, 1, &dx));
    }
    if (n->in[3] != PL_NONE) pl_gradient_add(g, n->in[3], dy);
    return g->b->status;
}

static pl_cost cost_conv_transpose2d(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    pl_convolution_shape s = shape_of_transpose(&x->shape, &w->shape, n->attr[0].i);
    return cost_of(&s, PL_CONVOLUTION_DIRECT, 1,
                   pl_value_bytes_f(x) + pl_value_bytes_f(w) + pl_value_bytes_f(pl_in(g, n, 3)) +
                       pl_value_bytes_f(&g->value[n->out[0]]));
}

const pl_op_rule pl_rule_CONV_TRANSPOSE2D = {shape_conv_transpose2d, gradient_conv_transpose2d, cost_conv_transpose2d};

/* ---- conv2d_pool: x, W, gamma, [bias N], [film B,2N] → pooled [B,Ho/2,Wo/2,N], [argmax], [moments], [y] ----
 * y = conv2d(x, W, bias), and of each 2×2 of it the number that the largest is made of by what follows: a norm with
 * the gains gamma [N], an activation that falls nowhere, and film's scales. All of them keep the order of numbers or
 * turn it round, as the sign of gamma·scale says, so the pool may go first, and what comes after has a quarter of the
 * numbers. Where the sign is 0 all are made equal and the first is taken. moments are those of the whole y; y itself
 * need not be there at once.
 *
 * The gradient that moments get is pooled_batch_norm_bwd's spread. Since the statistics take away whatever is the same
 * for all numbers of a channel, that of the bias is then exactly zero. */
enum { POOL_STRIDE, POOL_PAD, POOL_ALGORITHM };

static pl_status shape_conv2d_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    if (!is_image(x)) return pl_fail_input(g, n, 0, "[batch, height, width, in]", err);
    PL_TRY(check_weight(g, n, 1, err));
    if (w->shape.dim[3] != x->shape.dim[3])
        return pl_fail_input(g, n, 1, "[out, kernel, kernel, in] with in = the input's channels", err);
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, n->attr + POOL_STRIDE);
    PL_TRY(check_window(n, &s, n->attr[POOL_ALGORITHM].i, err));
    if (s.out_height < 2 || s.out_width < 2)
        return pl_fail_input(g, n, 0, "an image whose convolution is 2 by 2 at least", err);
    pl_shape channels = pl_shape_of(1, s.out);
    for (int k = 2; k < 4; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [out]", err));
    PL_TRY(pl_expect_film(g, n, 4, &x->shape, s.out, err));
    pl_shape pooled = image_of(&x->shape, s.out_height / 2, s.out_width / 2, s.out);
    out[0] = (pl_out){pooled, x->dtype};
    out[1] = (pl_out){pooled, PL_DTYPE_U8};
    out[2] = (pl_out){image_of(&x->shape, s.out_height, 2, s.out), PL_DTYPE_F32};
    out[3] = (pl_out){image_of(&x->shape, s.out_height, s.out_width, s.out), x->dtype};
    return PL_OK;
}

/* dy of a y that is there. */
static pl_id spread_out(pl_gradient *g, const pl_node *n, pl_id to_pooled, pl_id spread)
{
    const pl_shape *y = &g->b->graph->value[n->out[3]].shape;
    pl_id out = PL_NONE;
    if (spread != PL_NONE)
        return pl_build_node(g->b, PL_OP_BATCH_NORM_SPREAD, NULL, 4, (pl_id[]){to_pooled, n->out[1], spread, n->out[3]},
                             1, &out);
    pl_attr size[] = {pl_attr_i(y->dim[1]), pl_attr_i(y->dim[2])};
    return pl_build_node(g->b, PL_OP_MAX_POOL_BWD, size, 2, (pl_id[]){to_pooled, n->out[1]}, 1, &out);
}

static pl_status gradient_conv2d_pool(pl_gradient *g, const pl_node *n)
{
    pl_id to_pooled = pl_gradient_of(g, n->out[0]), spread = PL_NONE, x = n->in[0], w = n->in[1];
    pl_id acc = pl_gradient_accumulator(g, w), bias = n->in[3];
    if (n->out[2] != PL_NONE) spread = pl_gradient_of(g, n->out[2]);
    if (to_pooled == PL_NONE) return PL_OK;
    if (n->out[1] == PL_NONE || n->out[3] == PL_NONE || pl_gradient_of(g, n->out[3]) != PL_NONE)
        return pl_fail(g->b->err, PL_E_INTERNAL,
                       "conv2d_pool in %s: its gradient needs the argmax and y, and nobody else may read y", n->scope);
    bool has_bias = spread == PL_NONE && bias != PL_NONE && pl_gradient_accumulator(g, bias) != PL_NONE;
    if (acc == PL_NONE && !pl_gradient_is_wanted(g, x) && !has_bias) return PL_OK;
    pl_id dy = spread_out(g, n, to_pooled, spread);
    if (has_bias) bias_gradient(g, bias, dy);
    weight_gradient(g, x, w, dy, n->attr + POOL_STRIDE);
    if (pl_gradient_is_wanted(g, x)) {
        const pl_shape *s = &g->b->graph->value[x].shape;
        pl_attr attr[] = {pl_attr_i(PL_ACT_NONE),  n->attr[POOL_STRIDE], n->attr[POOL_PAD],
                          n->attr[POOL_ALGORITHM], pl_attr_i(s->dim[1]), pl_attr_i(s->dim[2])};
        pl_id in[4] = {dy, w, pl_gradient_take(g, x), PL_NONE}, dx = PL_NONE;
        pl_build_node(g->b, PL_OP_CONV2D_DX, attr, 4, in, 1, &dx);
        pl_gradient_add(g, x, dx);
    }
    return g->b->status;
}

static double bytes_of_pixels(const pl_convolution_shape *s, pl_dtype dtype)
{
    return (double)s->batch * (double)s->out_height * (double)s->out_width * (double)s->out *
           (double)pl_dtype_bytes(dtype);
}

/* y that is not kept goes through memory in pieces. */
static pl_cost cost_conv2d_pool(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, n->attr + POOL_STRIDE);
    double y = bytes_of_pixels(&s, x->dtype), pooled = pl_value_bytes_f(&g->value[n->out[0]]);
    return cost_of(&s, n->attr[POOL_ALGORITHM].i, 1, pl_value_bytes_f(x) + pl_value_bytes_f(w) + 2 * y + 1.25 * pooled);
}

const pl_op_rule pl_rule_CONV2D_POOL = {shape_conv2d_pool, gradient_conv2d_pool, cost_conv2d_pool,
                                        .remade = 1u << 1 | 1u << 2 | 1u << 3};

/* ---- conv2d_pool_bwd: dpooled, argmax, spread, x, W, [bias], [dW] → [dx], [dW'] ----
 * batch_norm_spread, conv2d_dw and conv2d_dx, some samples at a time, whose y is made again: so neither y nor dy is
 * ever whole (rewrite/convolution.c). */
static pl_status shape_conv2d_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *to_pooled = pl_in(g, n, 0), *x = pl_in(g, n, 3), *w = pl_in(g, n, 4);
    if (!is_image(x)) return pl_fail_input(g, n, 3, "[batch, height, width, in]", err);
    PL_TRY(check_weight(g, n, 4, err));
    if (w->shape.dim[3] != x->shape.dim[3])
        return pl_fail_input(g, n, 4, "[out, kernel, kernel, in] with in = the input's channels", err);
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, n->attr + POOL_STRIDE);
    PL_TRY(check_window(n, &s, n->attr[POOL_ALGORITHM].i, err));
    pl_shape pooled = image_of(&x->shape, s.out_height / 2, s.out_width / 2, s.out);
    pl_shape rows = pl_shape_of(2, (int64_t)3, s.out), channels = pl_shape_of(1, s.out);
    PL_TRY(pl_expect_shape(g, n, 0, &pooled, "the shape of what the pool left", err));
    PL_TRY(pl_expect_shape(g, n, 1, &to_pooled->shape, "the shape of input 0, u8", err));
    if (pl_in(g, n, 1)->dtype != PL_DTYPE_U8) return pl_fail_input(g, n, 1, "u8", err);
    PL_TRY(pl_expect_shape(g, n, 2, &rows, "f32 [3, out]", err));
    PL_TRY(pl_expect_shape(g, n, 5, &channels, "f32 [out]", err));
    PL_TRY(pl_expect_shape(g, n, 6, &w->shape, "f32, the shape of the weight", err));
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = (pl_out){w->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_conv2d_pool_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 3), *w = pl_in(g, n, 4);
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, n->attr + POOL_STRIDE);
    double products = 1 + (n->out[0] != PL_NONE) + (n->out[1] != PL_NONE);
    return cost_of(&s, n->attr[POOL_ALGORITHM].i, products,
                   (2 + products) * bytes_of_pixels(&s, x->dtype) + products * pl_value_bytes_f(x) +
                       products * pl_value_bytes_f(w) + 1.25 * pl_value_bytes_f(pl_in(g, n, 0)));
}

/* Of some samples x has been read before their dx is written. */
const pl_op_rule pl_rule_CONV2D_POOL_BWD = {shape_conv2d_pool_bwd, NULL, cost_conv2d_pool_bwd};
