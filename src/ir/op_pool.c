/* Pools and resizing of images [B,H,W,C]. Their backward nodes do not read x, so its size is an attribute of theirs,
 * `height` and `width`, where that of dy does not determine it.
 *
 * Adaptive averages take rows [B,N,D] as images of one column: height=1 width=1 gives the mean over the rows of each
 * sample, [B,1,D]. */
#include "ir/op.h"

/* So that the product of two sizes fits 64 bits. */
static bool is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }

static bool is_adaptive(const pl_node *n)
{
    return n->op == PL_OP_ADAPTIVE_AVG_POOL || n->op == PL_OP_ADAPTIVE_AVG_POOL_BWD;
}

/* Dimensions 1 to 3 of an image are known numbers; only the samples may be counted in B. */
static pl_status check_image(const pl_graph *g, const pl_node *n, const pl_id *image, pl_error *err)
{
    const pl_shape *s = &g->value[*image].shape;
    bool fine = (s->rank == 4 || (s->rank == 3 && is_adaptive(n))) && !(s->symbolic & ~1u);
    for (uint32_t i = 0; fine && i < s->rank; i++) fine = is_size(s->dim[i]);
    if (fine) return PL_OK;
    return pl_fail_operand(g, n, image,
                           is_adaptive(n) ? "[samples, height, width, channels] or [samples, positions, width]"
                                          : "[samples, height, width, channels]",
                           err);
}

static pl_status refuse(const pl_node *n, const char *why, pl_error *err)
{
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: %s", pl_op_name(n->op), n->scope, why);
}

static pl_shape resized(pl_shape s, int64_t height, int64_t width)
{
    s.dim[1] = height;
    if (s.rank == 4) s.dim[2] = width;
    return s;
}

/* The result costs a pass over its input and one over itself. */
static pl_cost cost_moved(const pl_graph *g, const pl_node *n)
{
    double elems = 0, bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        elems += pl_value_elems_f(pl_value_at(g, n->in[k])), bytes += pl_value_bytes_f(pl_value_at(g, n->in[k]));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) bytes += pl_value_bytes_f(pl_value_at(g, n->out[k]));
    return (pl_cost){4 * elems, bytes};
}

/* dx of an image of that size; includes what has already reached it. */
static pl_status give_dx(const pl_graph *g, const pl_node *n, const pl_value *dy, const pl_id *add, int64_t height,
                         int64_t width, pl_out out[], pl_error *err)
{
    pl_shape s = resized(dy->shape, height, width);
    PL_TRY(pl_expect_operand(g, n, add, &s, "the shape of the pool's input", err));
    *out = (pl_out){s, dy->dtype};
    return PL_OK;
}

/* ---- max_pool: x → y, argmax: 2×2, stride 2 ---- */
static pl_status shape_max_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_max_pool_args *a = &n->max_pool;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_image(g, n, &a->x, err));
    if (x->shape.dim[1] < 2 || x->shape.dim[2] < 2)
        return pl_fail_operand(g, n, &a->x, "an image of 2 by 2 at least", err);
    pl_shape s = resized(x->shape, x->shape.dim[1] / 2, x->shape.dim[2] / 2);
    out[PL_OUT_OF(max_pool, y)] = (pl_out){s, x->dtype};
    out[PL_OUT_OF(max_pool, argmax)] = (pl_out){s, PL_DTYPE_U8};
    return PL_OK;
}

static pl_status gradient_max_pool(pl_gradient *g, const pl_node *n)
{
    const pl_max_pool_args *a = &n->max_pool;
    const pl_shape *x = &g->b->graph->value[a->x].shape;
    pl_max_pool_bwd_args b = pl_max_pool_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.argmax = a->argmax, b.height = x->dim[1], b.width = x->dim[2];
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    if (b.argmax == PL_NONE)
        return pl_fail(g->b->err, PL_E_INTERNAL, "max_pool in %s: its gradient needs its second output, the argmax",
                       n->scope);
    b.add = pl_gradient_take(g, a->x);
    pl_gradient_add(g, a->x, pl_build_max_pool_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_MAX_POOL = {shape_max_pool, gradient_max_pool, cost_moved, .recompute = true,
                                     .remade = 1u << PL_OUT_OF(max_pool, argmax)};

/* ---- max_pool_bwd: dy, argmax, add → dx ---- */
static pl_status shape_max_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_max_pool_bwd_args *a = &n->max_pool_bwd;
    const pl_value *dy = &g->value[a->dy];
    PL_TRY(check_image(g, n, &a->dy, err));
    if (g->value[a->argmax].dtype != PL_DTYPE_U8) return pl_fail_operand(g, n, &a->argmax, "u8", err);
    PL_TRY(pl_expect_operand(g, n, &a->argmax, &dy->shape, "the shape of the pool's result", err));
    if (a->height / 2 != dy->shape.dim[1] || a->width / 2 != dy->shape.dim[2])
        return refuse(n, "height and width are not twice those of its result", err);
    return give_dx(g, n, dy, &a->add, a->height, a->width, out, err);
}

const pl_op_rule pl_rule_MAX_POOL_BWD = {shape_max_pool_bwd, NULL, cost_moved};

/* ---- averages: x → y ---- */
/* How many windows of `kernel` fit into n, `stride` apart; 0 where none does. */
static int64_t windows(int64_t kernel, int64_t stride, int64_t of)
{
    return kernel < 1 || stride < 1 || kernel > of ? 0 : (of - kernel) / stride + 1;
}

static pl_status give_average(const pl_node *n, const pl_value *x, int64_t height, int64_t width, pl_out out[],
                              pl_error *err)
{
    if (!is_size(height) || !is_size(width)) return refuse(n, "its windows do not fit the image, or it has none", err);
    if (x->shape.rank == 3 && width != 1) return refuse(n, "rows are one column, so that its width must be 1", err);
    *out = (pl_out){resized(x->shape, height, width), x->dtype};
    return PL_OK;
}

static pl_status shape_avg_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_avg_pool_args *a = &n->avg_pool;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_image(g, n, &a->x, err));
    return give_average(n, x, windows(a->kernel, a->stride, x->shape.dim[1]),
                        windows(a->kernel, a->stride, x->shape.dim[2]), out, err);
}

static pl_status gradient_avg_pool(pl_gradient *g, const pl_node *n)
{
    const pl_avg_pool_args *a = &n->avg_pool;
    const pl_shape *x = &g->b->graph->value[a->x].shape;
    pl_avg_pool_bwd_args b = pl_avg_pool_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.kernel = a->kernel, b.stride = a->stride;
    b.height = x->dim[1], b.width = x->dim[2];
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.add = pl_gradient_take(g, a->x);
    pl_gradient_add(g, a->x, pl_build_avg_pool_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_AVG_POOL = {shape_avg_pool, gradient_avg_pool, cost_moved, .recompute = true};

static pl_status shape_adaptive_avg_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_adaptive_avg_pool_args *a = &n->adaptive_avg_pool;
    PL_TRY(check_image(g, n, &a->x, err));
    return give_average(n, &g->value[a->x], a->height, a->width, out, err);
}

static pl_status gradient_adaptive_avg_pool(pl_gradient *g, const pl_node *n)
{
    const pl_adaptive_avg_pool_args *a = &n->adaptive_avg_pool;
    const pl_shape *x = &g->b->graph->value[a->x].shape;
    pl_adaptive_avg_pool_bwd_args b = pl_adaptive_avg_pool_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.height = x->dim[1], b.width = x->rank == 4 ? x->dim[2] : 1;
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.add = pl_gradient_take(g, a->x);
    pl_gradient_add(g, a->x, pl_build_adaptive_avg_pool_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_ADAPTIVE_AVG_POOL = {shape_adaptive_avg_pool, gradient_adaptive_avg_pool, cost_moved,
                                              .recompute = true};

/* ---- …_bwd: dy, add → dx ---- */
static pl_status check_size(const pl_node *n, const pl_value *dy, int64_t height, int64_t width, pl_error *err)
{
    if (!is_size(height) || !is_size(width)) return refuse(n, "height and width are no sizes of an image", err);
    if (dy->shape.rank == 3 && width != 1) return refuse(n, "rows are one column, so that its width must be 1", err);
    return PL_OK;
}

static pl_status shape_avg_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_avg_pool_bwd_args *a = &n->avg_pool_bwd;
    const pl_value *dy = &g->value[a->dy];
    PL_TRY(check_image(g, n, &a->dy, err));
    PL_TRY(check_size(n, dy, a->height, a->width, err));
    if (windows(a->kernel, a->stride, a->height) != dy->shape.dim[1] ||
        windows(a->kernel, a->stride, a->width) != dy->shape.dim[2])
        return refuse(n, "height and width are not those of an image with such a result", err);
    return give_dx(g, n, dy, &a->add, a->height, a->width, out, err);
}

const pl_op_rule pl_rule_AVG_POOL_BWD = {shape_avg_pool_bwd, NULL, cost_moved};

static pl_status shape_adaptive_avg_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_adaptive_avg_pool_bwd_args *a = &n->adaptive_avg_pool_bwd;
    const pl_value *dy = &g->value[a->dy];
    PL_TRY(check_image(g, n, &a->dy, err));
    PL_TRY(check_size(n, dy, a->height, a->width, err));
    return give_dx(g, n, dy, &a->add, a->height, a->width, out, err);
}

const pl_op_rule pl_rule_ADAPTIVE_AVG_POOL_BWD = {shape_adaptive_avg_pool_bwd, NULL, cost_moved};

/* ---- upsample_bilinear: x → y, twice as high and wide; the middles of pixels stay where they are ---- */
static pl_status shape_upsample(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_upsample_bilinear_args *a = &n->upsample_bilinear;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_image(g, n, &a->x, err));
    *out = (pl_out){resized(x->shape, 2 * x->shape.dim[1], 2 * x->shape.dim[2]), x->dtype};
    return PL_OK;
}

static pl_status gradient_upsample(pl_gradient *g, const pl_node *n)
{
    const pl_upsample_bilinear_args *a = &n->upsample_bilinear;
    pl_upsample_bilinear_bwd_args b = pl_upsample_bilinear_bwd_none;
    b.dy = pl_gradient_of(g, a->y);
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.add = pl_gradient_take(g, a->x);
    pl_gradient_add(g, a->x, pl_build_upsample_bilinear_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_UPSAMPLE_BILINEAR = {shape_upsample, gradient_upsample, cost_moved, .recompute = true};

/* ---- upsample_bilinear_bwd: dy, add → dx ---- */
static pl_status shape_upsample_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_upsample_bilinear_bwd_args *a = &n->upsample_bilinear_bwd;
    const pl_value *dy = &g->value[a->dy];
    PL_TRY(check_image(g, n, &a->dy, err));
    if (dy->shape.dim[1] % 2 || dy->shape.dim[2] % 2)
        return pl_fail_operand(g, n, &a->dy, "an even height and width", err);
    pl_shape s = resized(dy->shape, dy->shape.dim[1] / 2, dy->shape.dim[2] / 2);
    PL_TRY(pl_expect_operand(g, n, &a->add, &s, "half the height and width of dy", err));
    *out = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_UPSAMPLE_BILINEAR_BWD = {shape_upsample_bwd, NULL, cost_moved};
