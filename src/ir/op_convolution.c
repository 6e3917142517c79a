/* Two-dimensional convolution over N,H,W,C images, its two derivatives and its transpose; the gradient of a bias is
 * column_sum. Pixels outside the image count as zero. The algorithm is an attribute, decided when the model is built
 * (base/convolution.h): it decides bits, so it must not depend on the machine. A node's activations have one type, f32,
 * bf16 or f16; biases, moments and sums of gradients are f32. */
#include "base/convolution.h"
#include "ir/op.h"

/* ---- shapes common to the three ---- */

static bool is_image(const pl_value *v) { return v->shape.rank == 4 && !(v->shape.symbolic & ~1u); }

/* Sizes that can be calculated with; check_window refuses the rest. */
static bool is_possible(const pl_convolution_shape *s)
{
    bool small = s->height <= INT32_MAX && s->width <= INT32_MAX && s->kernel <= INT32_MAX && s->stride <= INT32_MAX;
    return small && s->stride >= 1 && s->pad >= 0 && s->pad < s->kernel;
}

static pl_convolution_shape shape_between(const pl_shape *x, const pl_shape *w, int64_t stride, int64_t pad)
{
    pl_convolution_shape s = {.batch = x->dim[0],
                              .height = x->dim[1],
                              .width = x->dim[2],
                              .in = x->dim[3],
                              .out = w->dim[0],
                              .kernel = w->dim[1],
                              .stride = stride,
                              .pad = pad};
    if (!is_possible(&s)) return s;
    s.out_height = pl_convolution_outputs(s.height, s.kernel, s.stride, s.pad);
    s.out_width = pl_convolution_outputs(s.width, s.kernel, s.stride, s.pad);
    return s;
}

/* The algorithm's number of products, and bytes. */
static pl_cost cost_of(const pl_convolution_shape *s, int64_t algorithm, double products, double bytes)
{
    const double flops =
        products * 2 * (double)s->batch * pl_convolution_products(s, (pl_convolution_algorithm)algorithm);
    return (pl_cost){flops, bytes, flops};
}

static pl_status check_image(const pl_graph *g, const pl_node *n, const pl_id *image, const char *expected,
                             pl_error *err)
{
    return is_image(&g->value[*image]) ? PL_OK : pl_fail_operand(g, n, image, expected, err);
}

static pl_status check_weight(const pl_graph *g, const pl_node *n, const pl_id *weight, pl_error *err)
{
    const pl_shape *w = &g->value[*weight].shape;
    if (w->rank != 4 || w->symbolic || w->dim[1] != w->dim[2])
        return pl_fail_operand(g, n, weight, "[out, kernel, kernel, in] with a square kernel", err);
    return PL_OK;
}

/* An image, and a weight with as many channels. */
static pl_status check_factors(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *weight, pl_error *err)
{
    PL_TRY(check_image(g, n, x, "[batch, height, width, in]", err));
    PL_TRY(check_weight(g, n, weight, err));
    if (g->value[*weight].shape.dim[3] != g->value[*x].shape.dim[3])
        return pl_fail_operand(g, n, weight, "[out, kernel, kernel, in] with in = the input's channels", err);
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

/* ---- conv2d: x [B,H,W,C], weight [N,k,k,C], bias [N], residual [B,Ho,Wo,N] → y [B,Ho,Wo,N], act(y), moments ----
 * With act, y is the pre-activation and the second output is act(y). moments f32 [B,Ho,2,N] are those that
 * channel_moments makes of y; no gradient passes through them: a norm's own rule accounts for them. */
static pl_status shape_conv2d(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_conv2d_args *a = &n->conv2d;
    const pl_value *x = &g->value[a->x], *bias = pl_value_at(g, a->bias);
    PL_TRY(check_factors(g, n, &a->x, &a->weight, err));
    pl_convolution_shape s = shape_between(&x->shape, &g->value[a->weight].shape, a->stride, a->pad);
    PL_TRY(check_window(n, &s, a->algorithm, err));
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != s.out))
        return pl_fail_operand(g, n, &a->bias, "f32 [out]", err);
    pl_shape y = image_of(&x->shape, s.out_height, s.out_width, s.out);
    PL_TRY(pl_expect_operand(g, n, &a->residual, &y, "the shape of the output", err));
    out[PL_OUT_OF(conv2d, y)] = out[PL_OUT_OF(conv2d, act_y)] = (pl_out){y, x->dtype};
    out[PL_OUT_OF(conv2d, moments)] = (pl_out){image_of(&x->shape, s.out_height, 2, s.out), PL_DTYPE_F32};
    return PL_OK;
}

/* The backward pass of a convolution of x; dx holds its output's gradient, its weight and how it was computed. */
static void weight_gradient(pl_gradient *g, pl_id x, const pl_conv2d_dx_args *dx)
{
    const pl_value *v = g->b->graph->value;
    pl_conv2d_dw_args b = pl_conv2d_dw_none;
    b.dy = dx->dy, b.x = x, b.dweight = pl_gradient_accumulator(g, dx->weight);
    b.stride = dx->stride, b.pad = dx->pad;
    if (b.dweight == PL_NONE) return;
    pl_convolution_shape s = shape_between(&v[x].shape, &v[dx->weight].shape, dx->stride, dx->pad);
    b.algorithm = pl_convolution_choose_dw(&s, (pl_convolution_algorithm)dx->algorithm);
    pl_gradient_accumulated(g, dx->weight, pl_build_conv2d_dw(g->b, &b));
}

/* As in linear, dW comes before dx, so that x is dead when dx is born. */
static void gradient_of_factors(pl_gradient *g, pl_id x, pl_conv2d_dx_args *dx)
{
    weight_gradient(g, x, dx);
    if (!pl_gradient_is_wanted(g, x)) return;
    const pl_shape *s = &g->b->graph->value[x].shape;
    dx->partial = pl_gradient_take(g, x), dx->height = s->dim[1], dx->width = s->dim[2];
    pl_gradient_add(g, x, pl_build_conv2d_dx(g->b, dx));
}

static pl_status gradient_conv2d(pl_gradient *g, const pl_node *n)
{
    const pl_conv2d_args *a = &n->conv2d;
    pl_activation_bwd_args pass = pl_activation_bwd_none;
    pl_conv2d_dx_args dx = pl_conv2d_dx_none;
    pass.x = a->y, pass.dy = pl_gradient_of(g, a->act_y), pass.act = a->act;
    if (pass.dy != PL_NONE) pl_gradient_add(g, a->y, pl_build_activation_bwd(g->b, &pass));
    dx.dy = pl_gradient_of(g, a->y), dx.weight = a->weight;
    dx.stride = a->stride, dx.pad = a->pad, dx.algorithm = a->algorithm;
    if (dx.dy == PL_NONE) return g->b->status;
    pl_gradient_add_bias(g, a->bias, dx.dy);
    gradient_of_factors(g, a->x, &dx);
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, dx.dy);
    return g->b->status;
}

static pl_cost cost_conv2d(const pl_graph *g, const pl_node *n)
{
    const pl_conv2d_args *a = &n->conv2d;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight];
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, a->stride, a->pad);
    double batch = (double)s.batch, outputs = a->act_y == PL_NONE ? 1 : 2;
    double y = batch * (double)s.out_height * (double)s.out_width * (double)s.out * (double)pl_dtype_bytes(x->dtype);
    return cost_of(&s, a->algorithm, 1,
                   pl_value_bytes_f(x) + pl_value_bytes_f(w) + y * outputs +
                       pl_value_bytes_f(pl_value_at(g, a->residual)));
}

const pl_op_rule pl_rule_CONV2D = {shape_conv2d, gradient_conv2d, cost_conv2d,
                                   .remade = 1u << PL_OUT_OF(conv2d, moments)};

/* ---- conv2d_dx: dy [B,Ho,Wo,N], weight [N,k,k,C], partial [B,H,W,C], u [B,H,W,C] → dx [B,H,W,C], act(u) ----
 * dx = gradient (+ partial) (· act'(u)); with u the second output, if wanted, is act(u), recomputed. H and W are
 * attributes: with a stride, images of several sizes have gradients dy of the same size. */
static pl_convolution_shape shape_of_dx(const pl_graph *g, const pl_conv2d_dx_args *a)
{
    const pl_shape *w = &g->value[a->weight].shape;
    pl_shape x = image_of(&g->value[a->dy].shape, a->height, a->width, w->dim[3]);
    return shape_between(&x, w, a->stride, a->pad);
}

static pl_status shape_conv2d_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_conv2d_dx_args *a = &n->conv2d_dx;
    const pl_value *dy = &g->value[a->dy];
    PL_TRY(check_image(g, n, &a->dy, "[batch, height, width, out]", err));
    PL_TRY(check_weight(g, n, &a->weight, err));
    if (a->height < 1 || a->width < 1 || a->height > INT32_MAX || a->width > INT32_MAX)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: an image of %lld × %lld has no gradient", pl_op_name(n->op),
                       n->scope, (long long)a->height, (long long)a->width);
    pl_convolution_shape s = shape_of_dx(g, a);
    PL_TRY(check_window(n, &s, a->algorithm, err));
    pl_shape y = image_of(&dy->shape, s.out_height, s.out_width, s.out);
    PL_TRY(
        pl_expect_operand(g, n, &a->dy, &y, "the output of the convolution of an image of that height and width", err));
    pl_shape x = image_of(&dy->shape, s.height, s.width, s.in);
    PL_TRY(pl_expect_operand(g, n, &a->partial, &x, "the shape of the output", err));
    PL_TRY(pl_expect_operand(g, n, &a->u, &x, "the shape of the output", err));
    out[PL_OUT_OF(conv2d_dx, dx)] = out[PL_OUT_OF(conv2d_dx, act_u)] = (pl_out){x, dy->dtype};
    return PL_OK;
}

static pl_cost cost_conv2d_dx(const pl_graph *g, const pl_node *n)
{
    const pl_conv2d_dx_args *a = &n->conv2d_dx;
    const pl_value *dy = &g->value[a->dy], *w = &g->value[a->weight];
    pl_convolution_shape s = shape_of_dx(g, a);
    double x = (double)s.batch * (double)s.height * (double)s.width * (double)s.in * (double)pl_dtype_bytes(dy->dtype);
    return cost_of(&s, a->algorithm, 1,
                   pl_value_bytes_f(dy) + pl_value_bytes_f(w) + x + pl_value_bytes_f(pl_value_at(g, a->partial)) +
                       pl_value_bytes_f(pl_value_at(g, a->u)));
}

const pl_op_rule pl_rule_CONV2D_DX = {shape_conv2d_dx, NULL, cost_conv2d_dx};

/* ---- conv2d_dw: dy [B,Ho,Wo,N], x [B,H,W,C], dweight [N,k,k,C] ---- */
static pl_status shape_conv2d_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_conv2d_dw_args *a = &n->conv2d_dw;
    const pl_shape *x = &g->value[a->x].shape, *sum = &g->value[a->dweight].shape;
    (void)out;
    PL_TRY(check_image(g, n, &a->dy, "[batch, height, width, out]", err));
    PL_TRY(check_image(g, n, &a->x, "[batch, height, width, in]", err));
    PL_TRY(check_weight(g, n, &a->dweight, err));
    pl_convolution_shape s = shape_between(x, sum, a->stride, a->pad);
    PL_TRY(check_window(n, &s, a->algorithm, err));
    pl_shape y = image_of(x, s.out_height, s.out_width, s.out);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &y, "the output of the convolution", err));
    return sum->dim[3] == s.in ? PL_OK : pl_fail_operand(g, n, &a->dweight, "f32 [out, kernel, kernel, in]", err);
}

static pl_cost cost_conv2d_dw(const pl_graph *g, const pl_node *n)
{
    const pl_conv2d_dw_args *a = &n->conv2d_dw;
    const pl_value *dy = &g->value[a->dy], *x = &g->value[a->x], *sum = &g->value[a->dweight];
    pl_convolution_shape s = shape_between(&x->shape, &sum->shape, a->stride, a->pad);
    return cost_of(&s, a->algorithm, 1, pl_value_bytes_f(dy) + pl_value_bytes_f(x) + 2 * pl_value_bytes_f(sum));
}

const pl_op_rule pl_rule_CONV2D_DW = {shape_conv2d_dw, NULL, cost_conv2d_dw};

/* ---- conv_transpose2d: x [B,H,W,N], weight [N,k,k,C], bias [C], residual [B,Ho,Wo,C] → y [B,Ho,Wo,C] ----
 * What conv2d_dx does to a gradient: each pixel of x is spread over k × k pixels of y, `stride` apart, and Ho is (H −
 * 1)·stride + k. So its own derivatives are a convolution, and conv2d_dw with x and dy swapped. */
static pl_convolution_shape shape_of_transpose(const pl_shape *x, const pl_shape *w, int64_t stride)
{
    pl_convolution_shape s = {.stride = stride, .kernel = w->dim[1]};
    if (stride < 1 || stride > INT32_MAX || s.kernel < 1 || s.kernel > INT32_MAX || x->dim[1] > INT32_MAX ||
        x->dim[2] > INT32_MAX)
        return s;
    int64_t height = (x->dim[1] - 1) * stride + s.kernel, width = (x->dim[2] - 1) * stride + s.kernel;
    pl_shape y = image_of(x, height, width, w->dim[3]);
    return shape_between(&y, w, stride, 0);
}

static pl_status shape_conv_transpose2d(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_conv_transpose2d_args *a = &n->conv_transpose2d;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight], *bias = pl_value_at(g, a->bias);
    PL_TRY(check_image(g, n, &a->x, "[batch, height, width, in]", err));
    PL_TRY(check_weight(g, n, &a->weight, err));
    if (w->shape.dim[0] != x->shape.dim[3])
        return pl_fail_operand(g, n, &a->weight, "[in, kernel, kernel, out] with in = the input's channels", err);
    pl_convolution_shape s = shape_of_transpose(&x->shape, &w->shape, a->stride);
    PL_TRY(check_window(n, &s, PL_CONVOLUTION_DIRECT, err));
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != s.in))
        return pl_fail_operand(g, n, &a->bias, "f32 [out]", err);
    pl_shape y = image_of(&x->shape, s.height, s.width, s.in);
    PL_TRY(pl_expect_operand(g, n, &a->residual, &y, "the shape of the output", err));
    *out = (pl_out){y, x->dtype};
    return PL_OK;
}

static pl_status gradient_conv_transpose2d(pl_gradient *g, const pl_node *n)
{
    const pl_conv_transpose2d_args *a = &n->conv_transpose2d;
    const pl_id dy = pl_gradient_of(g, a->y);
    pl_conv2d_dw_args dw = pl_conv2d_dw_none;
    pl_conv2d_args dx = pl_conv2d_none;
    if (dy == PL_NONE) return PL_OK;
    pl_gradient_add_bias(g, a->bias, dy);
    dw.dy = a->x, dw.x = dy, dw.dweight = pl_gradient_accumulator(g, a->weight);
    dw.stride = a->stride, dw.algorithm = PL_CONVOLUTION_DIRECT;
    if (dw.dweight != PL_NONE) pl_gradient_accumulated(g, a->weight, pl_build_conv2d_dw(g->b, &dw));
    if (pl_gradient_is_wanted(g, a->x)) {
        dx.x = dy, dx.weight = a->weight, dx.residual = pl_gradient_take(g, a->x);
        dx.stride = a->stride, dx.algorithm = PL_CONVOLUTION_DIRECT;
        pl_gradient_add(g, a->x, pl_build_conv2d(g->b, &dx));
    }
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, dy);
    return g->b->status;
}

static pl_cost cost_conv_transpose2d(const pl_graph *g, const pl_node *n)
{
    const pl_conv_transpose2d_args *a = &n->conv_transpose2d;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight];
    pl_convolution_shape s = shape_of_transpose(&x->shape, &w->shape, a->stride);
    return cost_of(&s, PL_CONVOLUTION_DIRECT, 1,
                   pl_value_bytes_f(x) + pl_value_bytes_f(w) + pl_value_bytes_f(pl_value_at(g, a->residual)) +
                       pl_value_bytes_f(&g->value[a->y]));
}

const pl_op_rule pl_rule_CONV_TRANSPOSE2D = {shape_conv_transpose2d, gradient_conv_transpose2d, cost_conv_transpose2d};

/* ---- conv2d_pool: x, weight, gamma, bias [N], film [B,2N] → pooled [B,Ho/2,Wo/2,N], argmax, moments, y ----
 * y = conv2d(x, weight, bias), and from each 2×2 of it the number that what follows turns into the largest: a norm with
 * gains gamma [N], a non-decreasing activation, and film's scales. All of them keep or reverse the order of numbers, as
 * the sign of gamma·scale says, so the pool may come first, and what follows has a quarter of the numbers. Where the
 * sign is 0, all become equal and the first is taken. moments are those of the whole y; y need not exist whole.
 *
 * The gradient of moments is pooled_batch_norm_bwd's spread. Since the statistics remove whatever all numbers of a
 * channel have in common, the bias's gradient is then exactly zero. */
static void give_conv2d_pool(const pl_value *x, const pl_convolution_shape *s, pl_out out[])
{
    pl_shape pooled = image_of(&x->shape, s->out_height / 2, s->out_width / 2, s->out);
    out[PL_OUT_OF(conv2d_pool, pooled)] = (pl_out){pooled, x->dtype};
    out[PL_OUT_OF(conv2d_pool, argmax)] = (pl_out){pooled, PL_DTYPE_U8};
    out[PL_OUT_OF(conv2d_pool, moments)] = (pl_out){image_of(&x->shape, s->out_height, 2, s->out), PL_DTYPE_F32};
    out[PL_OUT_OF(conv2d_pool, y)] = (pl_out){image_of(&x->shape, s->out_height, s->out_width, s->out), x->dtype};
}

static pl_status shape_conv2d_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_conv2d_pool_args *a = &n->conv2d_pool;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_factors(g, n, &a->x, &a->weight, err));
    pl_convolution_shape s = shape_between(&x->shape, &g->value[a->weight].shape, a->stride, a->pad);
    PL_TRY(check_window(n, &s, a->algorithm, err));
    if (s.out_height < 2 || s.out_width < 2)
        return pl_fail_operand(g, n, &a->x, "an image whose convolution is 2 by 2 at least", err);
    pl_shape channels = pl_shape_of(1, s.out);
    PL_TRY(pl_expect_operand(g, n, &a->gamma, &channels, "f32 [out]", err));
    PL_TRY(pl_expect_operand(g, n, &a->bias, &channels, "f32 [out]", err));
    PL_TRY(pl_expect_film(g, n, &a->film, &x->shape, s.out, err));
    give_conv2d_pool(x, &s, out);
    return PL_OK;
}

/* dy of a y that is kept. */
static pl_id spread_out(pl_gradient *g, const pl_conv2d_pool_args *a, pl_id to_pooled, pl_id spread)
{
    const pl_shape *y = &g->b->graph->value[a->y].shape;
    pl_batch_norm_spread_args all = pl_batch_norm_spread_none;
    pl_max_pool_bwd_args few = pl_max_pool_bwd_none;
    all.dpooled = few.dy = to_pooled, all.argmax = few.argmax = a->argmax;
    all.spread = spread, all.y = a->y, few.height = y->dim[1], few.width = y->dim[2];
    return spread == PL_NONE ? pl_build_max_pool_bwd(g->b, &few) : pl_build_batch_norm_spread(g->b, &all);
}

static pl_status gradient_conv2d_pool(pl_gradient *g, const pl_node *n)
{
    const pl_conv2d_pool_args *a = &n->conv2d_pool;
    const pl_id to_pooled = pl_gradient_of(g, a->pooled), spread = pl_gradient_of(g, a->moments);
    pl_conv2d_dx_args dx = pl_conv2d_dx_none;
    if (to_pooled == PL_NONE) return PL_OK;
    if (a->argmax == PL_NONE || a->y == PL_NONE || pl_gradient_of(g, a->y) != PL_NONE)
        return pl_fail(g->b->err, PL_E_INTERNAL,
                       "conv2d_pool in %s: its gradient needs the argmax and y, and nobody else may read y", n->scope);
    bool has_bias = spread == PL_NONE && pl_gradient_accumulator(g, a->bias) != PL_NONE;
    if (pl_gradient_accumulator(g, a->weight) == PL_NONE && !pl_gradient_is_wanted(g, a->x) && !has_bias) return PL_OK;
    dx.dy = spread_out(g, a, to_pooled, spread), dx.weight = a->weight;
    dx.stride = a->stride, dx.pad = a->pad, dx.algorithm = a->algorithm;
    if (has_bias) pl_gradient_add_bias(g, a->bias, dx.dy);
    gradient_of_factors(g, a->x, &dx);
    return g->b->status;
}

static double bytes_of_pixels(const pl_convolution_shape *s, pl_dtype dtype)
{
    return (double)s->batch * (double)s->out_height * (double)s->out_width * (double)s->out *
           (double)pl_dtype_bytes(dtype);
}

/* A y that is not kept goes through memory in pieces. */
static pl_cost cost_conv2d_pool(const pl_graph *g, const pl_node *n)
{
    const pl_conv2d_pool_args *a = &n->conv2d_pool;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight];
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, a->stride, a->pad);
    double y = bytes_of_pixels(&s, x->dtype), pooled = pl_value_bytes_f(&g->value[a->pooled]);
    return cost_of(&s, a->algorithm, 1, pl_value_bytes_f(x) + pl_value_bytes_f(w) + 2 * y + 1.25 * pooled);
}

const pl_op_rule pl_rule_CONV2D_POOL = {shape_conv2d_pool, gradient_conv2d_pool, cost_conv2d_pool,
                                        .remade = 1u << PL_OUT_OF(conv2d_pool, argmax) |
                                                  1u << PL_OUT_OF(conv2d_pool, moments) |
                                                  1u << PL_OUT_OF(conv2d_pool, y)};

/* ---- conv2d_pool_bwd: dpooled, argmax, spread, x, weight, bias, dweight → dx ----
 * batch_norm_spread, conv2d_dw and conv2d_dx, some samples at a time, with y recomputed: so neither y nor dy is ever
 * whole (rewrite/convolution.c). */
static pl_status shape_conv2d_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_conv2d_pool_bwd_args *a = &n->conv2d_pool_bwd;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight];
    PL_TRY(check_factors(g, n, &a->x, &a->weight, err));
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, a->stride, a->pad);
    PL_TRY(check_window(n, &s, a->algorithm, err));
    pl_shape pooled = image_of(&x->shape, s.out_height / 2, s.out_width / 2, s.out);
    pl_shape rows = pl_shape_of(2, (int64_t)3, s.out), channels = pl_shape_of(1, s.out);
    PL_TRY(pl_expect_operand(g, n, &a->dpooled, &pooled, "the shape of what the pool left", err));
    PL_TRY(pl_expect_operand(g, n, &a->argmax, &pooled, "the shape of dpooled, u8", err));
    if (g->value[a->argmax].dtype != PL_DTYPE_U8) return pl_fail_operand(g, n, &a->argmax, "u8", err);
    PL_TRY(pl_expect_operand(g, n, &a->spread, &rows, "f32 [3, out]", err));
    PL_TRY(pl_expect_operand(g, n, &a->bias, &channels, "f32 [out]", err));
    PL_TRY(pl_expect_operand(g, n, &a->dweight, &w->shape, "f32, the shape of the weight", err));
    out[PL_OUT_OF(conv2d_pool_bwd, dx)] = pl_out_like(x);
    return PL_OK;
}

static pl_cost cost_conv2d_pool_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_conv2d_pool_bwd_args *a = &n->conv2d_pool_bwd;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight];
    pl_convolution_shape s = shape_between(&x->shape, &w->shape, a->stride, a->pad);
    double products = 1 + (a->dx != PL_NONE) + (a->dweight_new != PL_NONE);
    return cost_of(&s, a->algorithm, products,
                   (2 + products) * bytes_of_pixels(&s, x->dtype) + products * pl_value_bytes_f(x) +
                       products * pl_value_bytes_f(w) + 1.25 * pl_value_bytes_f(&g->value[a->dpooled]));
}

/* The x of some samples is read before their dx is written. */
const pl_op_rule pl_rule_CONV2D_POOL_BWD = {shape_conv2d_pool_bwd, NULL, cost_conv2d_pool_bwd};
