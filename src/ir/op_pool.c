/* Pools and changes of size of images [B,H,W,C]. Their backward nodes do not read x, so
 * that its size is an attribute of theirs where that of dy does not tell it: `height` and `width`.
 *
 * For adaptive averages tokens [B,N,D] are images of one column: with height=1 width=1 they give the mean over the
 * tokens of each sample, [B,1,D]. */
#include "ir/op.h"

/* So that products of two of them fit 64 bits. */
static bool is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }

static bool is_adaptive(const pl_node *n)
{
    return n->op == PL_OP_ADAPTIVE_AVG_POOL || n->op == PL_OP_ADAPTIVE_AVG_POOL_BWD;
}

/* Dimensions 1 to 3 of an image are known numbers; only the samples may be counted in B. */
static pl_status check_image(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, k)->shape;
    bool fine = (s->rank == 4 || (s->rank == 3 && is_adaptive(n))) && !(s->symbolic & ~1u);
    for (uint32_t i = 0; fine && i < s->rank; i++) fine = is_size(s->dim[i]);
    if (fine) return PL_OK;
    return pl_fail_input(g, n, k,
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

/* The result costs a pass over what it is made of and one over itself. */
static pl_cost cost_moved(const pl_graph *g, const pl_node *n)
{
    double elems = 0, bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        elems += pl_value_elems_f(pl_in(g, n, k)), bytes += pl_value_bytes_f(pl_in(g, n, k));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) bytes += pl_value_bytes_f(&g->value[n->out[k]]);
    return (pl_cost){4 * elems, bytes};
}

/* dx into what is added to it, the last input. */
/* A backward node of dy, [something of the forward node], [what has reached x]; its attributes say how large x is where
 * `sized` of them stand before. */
static pl_status build_bwd(pl_gradient *g, const pl_node *n, pl_op bwd, pl_id kept, int sized)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0];
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, x)) return PL_OK;
    const pl_shape *s = &g->b->graph->value[x].shape;
    pl_attr attr[PL_ATTR_MAX] = {n->attr[0], n->attr[1]};
    attr[sized] = pl_attr_i(s->dim[1]), attr[sized + 1] = pl_attr_i(s->rank == 4 ? s->dim[2] : 1);
    bool has_kept = kept != PL_NONE;
    pl_id in[3] = {dy, has_kept ? kept : pl_gradient_take(g, x), has_kept ? pl_gradient_take(g, x) : PL_NONE};
    pl_id out = PL_NONE;
    pl_gradient_add(g, x, pl_build_node(g->b, bwd, attr, has_kept ? 3 : 2, in, 1, &out));
    return g->b->status;
}

/* ---- max_pool: x → y, argmax: 2×2, stride 2 ---- */
static pl_status shape_max_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    if (x->shape.dim[1] < 2 || x->shape.dim[2] < 2) return pl_fail_input(g, n, 0, "an image of 2 by 2 at least", err);
    pl_shape s = resized(x->shape, x->shape.dim[1] / 2, x->shape.dim[2] / 2);
    out[0] = (pl_out){s, x->dtype};
    out[1] = (pl_out){s, PL_DTYPE_U8};
    return PL_OK;
}

static pl_status gradient_max_pool(pl_gradient *g, const pl_node *n)
{
    if (n->out[1] == PL_NONE && pl_gradient_of(g, n->out[0]) != PL_NONE && pl_gradient_is_wanted(g, n->in[0]))
        return pl_fail(g->b->err, PL_E_INTERNAL, "max_pool in %s: its gradient needs its second output, the argmax",
                       n->scope);
    return build_bwd(g, n, PL_OP_MAX_POOL_BWD, n->out[1], 0);
}

const pl_op_rule pl_rule_MAX_POOL = {shape_max_pool, gradient_max_pool, cost_moved, .recompute = true,
                                     .remade = 1u << 1};

/* ---- max_pool_bwd: dy, argmax, [add] → dx ---- */
static pl_status shape_max_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_value *dy = pl_in(g, n, 0);
    int64_t height = n->attr[0].i, width = n->attr[1].i;
    if (pl_in(g, n, 1)->dtype != PL_DTYPE_U8) return pl_fail_input(g, n, 1, "u8", err);
    PL_TRY(pl_expect_shape(g, n, 1, &dy->shape, "the shape of the pool's result", err));
    if (height / 2 != dy->shape.dim[1] || width / 2 != dy->shape.dim[2])
        return refuse(n, "height and width are not twice those of its result", err);
    pl_shape s = resized(dy->shape, height, width);
    PL_TRY(pl_expect_shape(g, n, 2, &s, "the shape of the pool's input", err));
    out[0] = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_MAX_POOL_BWD = {shape_max_pool_bwd, NULL, cost_moved};

/* ---- averages: x → y ---- */
/* How many windows of `kernel` fit into n, `stride` apart; 0 where none does. */
static int64_t windows(const pl_node *n, int64_t of)
{
    int64_t kernel = n->attr[0].i, stride = n->attr[1].i;
    return kernel < 1 || stride < 1 || kernel > of ? 0 : (of - kernel) / stride + 1;
}

static pl_status shape_average(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    int64_t height = is_adaptive(n) ? n->attr[0].i : windows(n, x->shape.dim[1]);
    int64_t width = is_adaptive(n) ? n->attr[1].i : windows(n, x->shape.dim[2]);
    if (!is_size(height) || !is_size(width)) return refuse(n, "its windows do not fit the image, or it has none", err);
    if (x->shape.rank == 3 && width != 1) return refuse(n, "tokens are one column, so that its width must be 1", err);
    out[0] = (pl_out){resized(x->shape, height, width), x->dtype};
    return PL_OK;
}

static pl_status gradient_average(pl_gradient *g, const pl_node *n)
{
    if (is_adaptive(n)) return build_bwd(g, n, PL_OP_ADAPTIVE_AVG_POOL_BWD, PL_NONE, 0);
    return build_bwd(g, n, PL_OP_AVG_POOL_BWD, PL_NONE, 2);
}

const pl_op_rule pl_rule_AVG_POOL = {shape_average, gradient_average, cost_moved, .recompute = true};
const pl_op_rule pl_rule_ADAPTIVE_AVG_POOL = {shape_average, gradient_average, cost_moved, .recompute = true};

/* ---- …_bwd: dy, [add] → dx ---- */
static pl_status shape_average_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_value *dy = pl_in(g, n, 0);
    int first = is_adaptive(n) ? 0 : 2;
    int64_t height = n->attr[first].i, width = n->attr[first + 1].i;
    if (!is_size(height) || !is_size(width)) return refuse(n, "height and width are no sizes of an image", err);
    if (dy->shape.rank == 3 && width != 1) return refuse(n, "tokens are one column, so that its width must be 1", err);
    if (!is_adaptive(n) && (windows(n, height) != dy->shape.dim[1] || windows(n, width) != dy->shape.dim[2]))
        return refuse(n, "height and width are not those of an image with such a result", err);
    pl_shape s = resized(dy->shape, height, width);
    PL_TRY(pl_expect_shape(g, n, 1, &s, "the shape of the pool's input", err));
    out[0] = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_AVG_POOL_BWD = {shape_average_bwd, NULL, cost_moved};
const pl_op_rule pl_rule_ADAPTIVE_AVG_POOL_BWD = {shape_average_bwd, NULL, cost_moved};

/* ---- upsample_bilinear: x → y, twice as high and wide; the middles of pixels stay where they are ---- */
static pl_status shape_upsample(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    out[0] = (pl_out){resized(x->shape, 2 * x->shape.dim[1], 2 * x->shape.dim[2]), x->dtype};
    return PL_OK;
}

static pl_status gradient_upsample(pl_gradient *g, const pl_node *n)
{
    return build_bwd(g, n, PL_OP_UPSAMPLE_BILINEAR_BWD, PL_NONE, 0);
}

const pl_op_rule pl_rule_UPSAMPLE_BILINEAR = {shape_upsample, gradient_upsample, cost_moved, .recompute = true};

/* ---- upsample_bilinear_bwd: dy, [add] → dx ---- */
static pl_status shape_upsample_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_value *dy = pl_in(g, n, 0);
    if (dy->shape.dim[1] % 2 || dy->shape.dim[2] % 2) return pl_fail_input(g, n, 0, "an even height and width", err);
    pl_shape s = resized(dy->shape, dy->shape.dim[1] / 2, dy->shape.dim[2] / 2);
    PL_TRY(pl_expect_shape(g, n, 1, &s, "half the height and width of input 0", err));
    out[0] = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_UPSAMPLE_BILINEAR_BWD = {shape_upsample_bwd, NULL, cost_moved};
