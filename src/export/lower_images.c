/* Images. They lie as [B,H,W,C] here and as [B,C,H,W] there: what slides a window over them stands between two
 * transpositions, and a runtime takes out those that meet. */
#include "export/lower.h"

static const int64_t to_planes[4] = {0, 3, 1, 2}, to_pixels[4] = {0, 2, 3, 1};

static const char *planes(pl_lowering *l, const char *x) { return pl_emit_transpose(l, x, 4, to_planes); }
static const char *pixels(pl_lowering *l, const char *x) { return pl_emit_transpose(l, x, 4, to_pixels); }

/* Of a convolution [out,k,k,in]: [out,in,k,k]; once for all that read it. */
static const char *window_of(pl_lowering *l, pl_id weight)
{
    if (l->status != PL_OK) return "";
    if (!l->turned[weight]) l->turned[weight] = planes(l, pl_lower_value(l, weight));
    return l->turned[weight];
}

/* ---- convolutions ---- */

static const char *convolved(pl_lowering *l, const char *x, pl_id weight, int64_t stride, int64_t pad, const char *bias)
{
    const pl_onnx_attribute *a =
        PL_ATTRIBUTES(PL_LIST("strides", 2, stride, stride), PL_LIST("pads", 4, pad, pad, pad, pad));
    const char *w = window_of(l, weight);
    return pl_emit(l, "Conv", a, bias ? (const char *const[]){x, w, bias, NULL} : PL_IN(x, w));
}

/* Moments, a further output, are only for norms, which find their own. */
void pl_lower_conv2d(pl_lowering *l, const pl_node *n)
{
    const pl_conv2d_args *a = &n->conv2d;
    const char *x = planes(l, pl_lower_value(l, a->x)), *bias = pl_lower_value(l, a->bias);
    const char *y = pixels(l, convolved(l, x, a->weight, a->stride, a->pad, bias));
    y = pl_emit_add(l, y, pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, y);
    if (a->act_y != PL_NONE) pl_lower_output(l, n, a->act_y, pl_emit_activation(l, y, (pl_activation)a->act));
}

void pl_lower_conv_transpose2d(pl_lowering *l, const pl_node *n)
{
    const pl_conv_transpose2d_args *a = &n->conv_transpose2d;
    const char *x = planes(l, pl_lower_value(l, a->x)), *w = window_of(l, a->weight);
    const char *bias = pl_lower_value(l, a->bias);
    const char *y = pl_emit(l, "ConvTranspose", PL_ATTRIBUTES(PL_LIST("strides", 2, a->stride, a->stride)),
                            bias ? (const char *const[]){x, w, bias, NULL} : PL_IN(x, w));
    y = pl_emit_add(l, pixels(l, y), pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, y);
}

static const char *largest(pl_lowering *l, const char *x)
{
    return pl_emit(l, "MaxPool", PL_ATTRIBUTES(PL_LIST("kernel_shape", 2, 2, 2), PL_LIST("strides", 2, 2, 2)),
                   PL_IN(x));
}

/* Of 2×2 pixels the one that norm and scale behind the pool make the largest: where their product is below 0, the
 * least. */
void pl_lower_conv2d_pool(pl_lowering *l, const pl_node *n)
{
    const pl_conv2d_pool_args *a = &n->conv2d_pool;
    const int64_t channels = pl_lower_shape(l, a->weight)->dim[0];
    if (a->y != PL_NONE && l->wanted[a->y]) return pl_lower_refuse(l, n, "its whole image is read");
    const char *y =
        convolved(l, planes(l, pl_lower_value(l, a->x)), a->weight, a->stride, a->pad, pl_lower_value(l, a->bias));
    const char *sign = pl_lower_value(l, a->gamma);
    if (a->film != PL_NONE)
        sign = pl_emit(l, "Mul", NULL, PL_IN(sign, pl_emit_slice(l, pl_lower_value(l, a->film), 1, 0, channels)));
    sign = pl_emit(l, "Reshape", NULL, PL_IN(sign, pl_emit_integers(l, 4, (const int64_t[]){-1, channels, 1, 1})));
    const char *least = pl_emit(l, "Neg", NULL, PL_IN(largest(l, pl_emit(l, "Neg", NULL, PL_IN(y)))));
    const char *falls = pl_emit(l, "Less", NULL, PL_IN(sign, pl_emit_number(l, 0)));
    y = pixels(l, pl_emit(l, "Where", NULL, PL_IN(falls, least, largest(l, y))));
    pl_lower_output(l, n, a->pooled, y);
}

/* ---- norms of channels ---- */

/* act(x·gamma + beta) */
static const char *scaled(pl_lowering *l, const char *x, pl_id gamma, pl_id beta, pl_activation act)
{
    x = pl_emit(l, "Mul", NULL, PL_IN(x, pl_lower_value(l, gamma)));
    return pl_emit_activation(l, pl_emit_add(l, x, pl_lower_value(l, beta)), act);
}

/* A group of channels is one instance. */
void pl_lower_group_norm(pl_lowering *l, const pl_node *n)
{
    const pl_group_norm_args *a = &n->group_norm;
    const pl_shape *s = pl_lower_shape(l, a->x);
    const int64_t groups = a->groups, channels = pl_shape_last(s);
    if (s->rank != 4) return pl_lower_refuse(l, n, "its input is no image");
    float one[256], zero[256] = {0};
    if (groups > 256) return pl_lower_refuse(l, n, "it has more than 256 groups");
    for (int64_t i = 0; i < groups; i++) one[i] = 1;
    const char *x = planes(l, pl_lower_value(l, a->x));
    x = pl_emit(l, "Reshape", NULL, PL_IN(x, pl_emit_integers(l, 3, (const int64_t[]){0, groups, -1})));
    x = pl_emit(l, "InstanceNormalization", PL_ATTRIBUTES(PL_REAL("epsilon", a->eps)),
                PL_IN(x, pl_emit_numbers(l, (size_t)groups, one), pl_emit_numbers(l, (size_t)groups, zero)));
    x = pl_emit(l, "Reshape", NULL,
                PL_IN(x, pl_emit_integers(l, 4, (const int64_t[]){0, channels, s->dim[1], s->dim[2]})));
    x = scaled(l, pixels(l, x), a->gamma, a->beta, (pl_activation)a->act);
    x = pl_emit_add(l, x, pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, x);
}

void pl_lower_batch_norm_eval(pl_lowering *l, const pl_node *n)
{
    const pl_batch_norm_eval_args *a = &n->batch_norm_eval;
    const char *x = pl_emit(l, "Sub", NULL, PL_IN(pl_lower_value(l, a->x), pl_lower_value(l, a->mean)));
    const char *variance = pl_emit_add(l, pl_lower_value(l, a->variance), pl_emit_number(l, a->eps));
    x = pl_emit(l, "Div", NULL, PL_IN(x, pl_emit(l, "Sqrt", NULL, PL_IN(variance))));
    x = scaled(l, x, a->gamma, a->beta, (pl_activation)a->act);
    x = pl_emit_add(l, x, pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, x);
}

/* What only norms read, which find it themselves. */
void pl_lower_unread(pl_lowering *l, const pl_node *n) { (void)l, (void)n; }

/* ---- pools and sizes ---- */

void pl_lower_max_pool(pl_lowering *l, const pl_node *n)
{
    const pl_max_pool_args *a = &n->max_pool;
    if (a->argmax != PL_NONE && l->wanted[a->argmax]) return pl_lower_refuse(l, n, "its places are read");
    pl_lower_output(l, n, a->y, pixels(l, largest(l, planes(l, pl_lower_value(l, a->x)))));
}

void pl_lower_avg_pool(pl_lowering *l, const pl_node *n)
{
    const pl_avg_pool_args *a = &n->avg_pool;
    const int64_t kernel = a->kernel, stride = a->stride;
    const char *y =
        pl_emit(l, "AveragePool",
                PL_ATTRIBUTES(PL_LIST("kernel_shape", 2, kernel, kernel), PL_LIST("strides", 2, stride, stride)),
                PL_IN(planes(l, pl_lower_value(l, a->x))));
    pl_lower_output(l, n, a->y, pixels(l, y));
}

void pl_lower_upsample_bilinear(pl_lowering *l, const pl_node *n)
{
    static const float twice[4] = {1, 1, 2, 2};
    const char *y = pl_emit(
        l, "Resize", PL_ATTRIBUTES(PL_TEXT("mode", "linear"), PL_TEXT("coordinate_transformation_mode", "half_pixel")),
        PL_IN(planes(l, pl_lower_value(l, n->upsample_bilinear.x)), "", pl_emit_numbers(l, 4, twice)));
    pl_lower_output(l, n, n->upsample_bilinear.y, pixels(l, y));
}

/* ---- channels ---- */

/* Two more, each pixel's place from 0 to 1: a table, once for each sample. */
void pl_lower_append_coordinates(pl_lowering *l, const pl_node *n)
{
    const pl_shape *s = pl_lower_shape(l, n->append_coordinates.x);
    const int64_t height = s->dim[1], width = s->dim[2];
    const pl_shape places = pl_shape_of(4, (int64_t)1, height, width, (int64_t)2);
    float *table = pl_alloc((size_t)(height * width * 2), sizeof *table);
    if (!table) return (void)pl_lower_nomem(l);
    for (int64_t i = 0; i < height * width; i++) {
        table[2 * i] = height > 1 ? (float)(i / width) / (float)(height - 1) : 0;
        table[2 * i + 1] = width > 1 ? (float)(i % width) / (float)(width - 1) : 0;
    }
    const char *x = pl_lower_value(l, n->append_coordinates.x), *one = pl_emit_table(l, &places, table);
    pl_free(table);
    const char *batch = pl_emit(l, "Shape", PL_ATTRIBUTES(PL_INT("start", 0), PL_INT("end", 1)), PL_IN(x));
    const char *size = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 0)),
                               PL_IN(batch, pl_emit_integers(l, 3, (const int64_t[]){height, width, 2})));
    const char *all = pl_emit(l, "Expand", NULL, PL_IN(one, size));
    const char *y = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", -1)), PL_IN(x, all));
    pl_lower_output(l, n, n->append_coordinates.y, y);
}

void pl_lower_gate(pl_lowering *l, const pl_node *n)
{
    const pl_gate_args *a = &n->gate;
    const char *gate = pl_emit(l, "Sigmoid", NULL, PL_IN(pl_lower_value(l, a->gate)));
    pl_lower_output(l, n, a->y, pl_emit(l, "Mul", NULL, PL_IN(pl_lower_value(l, a->x), gate)));
}

/* Scales, then shifts, the same for all pixels of a sample. */
void pl_lower_film(pl_lowering *l, const pl_node *n)
{
    const pl_film_args *a = &n->film;
    const pl_shape *x = pl_lower_shape(l, a->x), *s = pl_lower_shape(l, a->film);
    pl_shape wide = *x;
    for (uint32_t i = 1; i + 1 < wide.rank; i++) wide.dim[i] = 1;
    wide.dim[wide.rank - 1] *= 2;
    const char *both = pl_emit_reshape(l, pl_lower_value(l, a->film), s, &wide);
    const int64_t axis = wide.rank - 1, channels = pl_shape_last(x);
    const char *scale = pl_emit_slice(l, both, axis, 0, channels);
    const char *shift = pl_emit_slice(l, both, axis, channels, 2 * channels);
    const char *y = pl_emit(l, "Mul", NULL, PL_IN(pl_lower_value(l, a->x), scale));
    pl_lower_output(l, n, a->y, pl_emit_add(l, y, shift));
}

/* Pictures are bytes here and planes from 0 to 1 there, so they are rounded as bytes would be. */
void pl_lower_pixels(pl_lowering *l, const pl_node *n)
{
    const char *full = pl_emit_number(l, 255), *x = pl_lower_value(l, n->pixels.x);
    if (pl_lower_shape(l, n->pixels.x)->rank != 4) return pl_lower_refuse(l, n, "its input is no image");
    x = pl_emit(l, "Clip", NULL, PL_IN(pl_emit(l, "Mul", NULL, PL_IN(x, full)), pl_emit_number(l, 0), full));
    x = pl_emit(l, "Div", NULL, PL_IN(pl_emit(l, "Round", NULL, PL_IN(x)), full));
    pl_lower_output(l, n, n->pixels.y, planes(l, x));
}
