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

enum { ACT, STRIDE, PAD };

static const char *convolved(pl_lowering *l, const char *x, const pl_node *n, const pl_attr *window, const char *bias)
{
    const int64_t stride = window[0].i, pad = window[1].i;
    const pl_onnx_attribute *a =
        PL_ATTRIBUTES(PL_LIST("strides", 2, stride, stride), PL_LIST("pads", 4, pad, pad, pad, pad));
    const char *w = window_of(l, n->in[1]);
    return pl_emit(l, "Conv", a, bias ? (const char *const[]){x, w, bias, NULL} : PL_IN(x, w));
}

/* Moments, a further output, are only for norms, which find their own. */
void pl_lower_conv2d(pl_lowering *l, const pl_node *n)
{
    const char *x = planes(l, pl_lower_input(l, n, 0));
    const char *y = pixels(l, convolved(l, x, n, n->attr + STRIDE, pl_lower_input(l, n, 2)));
    y = pl_emit_add(l, y, pl_lower_input(l, n, 3));
    pl_lower_output(l, n, 0, y);
    if (n->out[1] != PL_NONE) pl_lower_output(l, n, 1, pl_emit_activation(l, y, (pl_activation)n->attr[ACT].i));
}

void pl_lower_conv_transpose2d(pl_lowering *l, const pl_node *n)
{
    const int64_t stride = n->attr[0].i;
    const char *x = planes(l, pl_lower_input(l, n, 0)), *w = window_of(l, n->in[1]), *bias = pl_lower_input(l, n, 2);
    const char *y = pl_emit(l, "ConvTranspose", PL_ATTRIBUTES(PL_LIST("strides", 2, stride, stride)),
                            bias ? (const char *const[]){x, w, bias, NULL} : PL_IN(x, w));
    pl_lower_output(l, n, 0, pl_emit_add(l, pixels(l, y), pl_lower_input(l, n, 3)));
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
    const int64_t channels = pl_lower_shape(l, n, 1)->dim[0];
    if (n->out[3] != PL_NONE && l->wanted[n->out[3]]) return pl_lower_refuse(l, n, "its whole image is read");
    const char *y = convolved(l, planes(l, pl_lower_input(l, n, 0)), n, n->attr, pl_lower_input(l, n, 3));
    const char *sign = pl_lower_input(l, n, 2);
    if (n->in[4] != PL_NONE)
        sign = pl_emit(l, "Mul", NULL, PL_IN(sign, pl_emit_slice(l, pl_lower_input(l, n, 4), 1, 0, channels)));
    sign = pl_emit(l, "Reshape", NULL, PL_IN(sign, pl_emit_integers(l, 4, (const int64_t[]){-1, channels, 1, 1})));
    const char *least = pl_emit(l, "Neg", NULL, PL_IN(largest(l, pl_emit(l, "Neg", NULL, PL_IN(y)))));
    const char *falls = pl_emit(l, "Less", NULL, PL_IN(sign, pl_emit_number(l, 0)));
    pl_lower_output(l, n, 0, pixels(l, pl_emit(l, "Where", NULL, PL_IN(falls, least, largest(l, y)))));
}

/* ---- norms of channels ---- */

/* act(x·gain + offset) (+ residual), inputs k to k + 2. */
static void finish(pl_lowering *l, const pl_node *n, const char *x, int k, pl_activation act)
{
    x = pl_emit(l, "Mul", NULL, PL_IN(x, pl_lower_input(l, n, k)));
    x = pl_emit_activation(l, pl_emit_add(l, x, pl_lower_input(l, n, k + 1)), act);
    pl_lower_output(l, n, 0, pl_emit_add(l, x, pl_lower_input(l, n, k + 2)));
}

/* A group of channels is one instance. */
void pl_lower_group_norm(pl_lowering *l, const pl_node *n)
{
    const pl_shape *s = pl_lower_shape(l, n, 0);
    const int64_t groups = n->attr[0].i, channels = pl_shape_last(s);
    if (s->rank != 4) return pl_lower_refuse(l, n, "its input is no image");
    float one[256], zero[256] = {0};
    if (groups > 256) return pl_lower_refuse(l, n, "it has more than 256 groups");
    for (int64_t i = 0; i < groups; i++) one[i] = 1;
    const char *x = planes(l, pl_lower_input(l, n, 0));
    x = pl_emit(l, "Reshape", NULL, PL_IN(x, pl_emit_integers(l, 3, (const int64_t[]){0, groups, -1})));
    x = pl_emit(l, "InstanceNormalization", PL_ATTRIBUTES(PL_REAL("epsilon", n->attr[1].f)),
                PL_IN(x, pl_emit_numbers(l, (size_t)groups, one), pl_emit_numbers(l, (size_t)groups, zero)));
    x = pl_emit(l, "Reshape", NULL,
                PL_IN(x, pl_emit_integers(l, 4, (const int64_t[]){0, channels, s->dim[1], s->dim[2]})));
    finish(l, n, pixels(l, x), 2, (pl_activation)n->attr[2].i);
}

void pl_lower_batch_norm_eval(pl_lowering *l, const pl_node *n)
{
    const char *x = pl_emit(l, "Sub", NULL, PL_IN(pl_lower_input(l, n, 0), pl_lower_input(l, n, 1)));
    const char *variance = pl_emit_add(l, pl_lower_input(l, n, 2), pl_emit_number(l, n->attr[0].f));
    x = pl_emit(l, "Div", NULL, PL_IN(x, pl_emit(l, "Sqrt", NULL, PL_IN(variance))));
    finish(l, n, x, 3, (pl_activation)n->attr[1].i);
}

/* What only norms read, which find it themselves. */
void pl_lower_unread(pl_lowering *l, const pl_node *n) { (void)l, (void)n; }

/* ---- pools and sizes ---- */

void pl_lower_max_pool(pl_lowering *l, const pl_node *n)
{
    if (n->out[1] != PL_NONE && l->wanted[n->out[1]]) return pl_lower_refuse(l, n, "its places are read");
    pl_lower_output(l, n, 0, pixels(l, largest(l, planes(l, pl_lower_input(l, n, 0)))));
}

void pl_lower_avg_pool(pl_lowering *l, const pl_node *n)
{
    const int64_t kernel = n->attr[0].i, stride = n->attr[1].i;
    const char *y =
        pl_emit(l, "AveragePool",
                PL_ATTRIBUTES(PL_LIST("kernel_shape", 2, kernel, kernel), PL_LIST("strides", 2, stride, stride)),
                PL_IN(planes(l, pl_lower_input(l, n, 0))));
    pl_lower_output(l, n, 0, pixels(l, y));
}

void pl_lower_upsample_bilinear(pl_lowering *l, const pl_node *n)
{
    static const float twice[4] = {1, 1, 2, 2};
    const char *y = pl_emit(
        l, "Resize", PL_ATTRIBUTES(PL_TEXT("mode", "linear"), PL_TEXT("coordinate_transformation_mode", "half_pixel")),
        PL_IN(planes(l, pl_lower_input(l, n, 0)), "", pl_emit_numbers(l, 4, twice)));
    pl_lower_output(l, n, 0, pixels(l, y));
}

/* ---- channels ---- */

/* Two more, each pixel's place from 0 to 1: a table, once for each sample. */
void pl_lower_append_coordinates(pl_lowering *l, const pl_node *n)
{
    const pl_shape *s = pl_lower_shape(l, n, 0);
    const int64_t height = s->dim[1], width = s->dim[2];
    const pl_shape places = pl_shape_of(4, (int64_t)1, height, width, (int64_t)2);
    float *table = pl_alloc((size_t)(height * width * 2), sizeof *table);
    if (!table) return (void)pl_lower_nomem(l);
    for (int64_t i = 0; i < height * width; i++) {
        table[2 * i] = height > 1 ? (float)(i / width) / (float)(height - 1) : 0;
        table[2 * i + 1] = width > 1 ? (float)(i % width) / (float)(width - 1) : 0;
    }
    const char *x = pl_lower_input(l, n, 0), *one = pl_emit_table(l, &places, table);
    pl_free(table);
    const char *batch = pl_emit(l, "Shape", PL_ATTRIBUTES(PL_INT("start", 0), PL_INT("end", 1)), PL_IN(x));
    const char *size = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 0)),
                               PL_IN(batch, pl_emit_integers(l, 3, (const int64_t[]){height, width, 2})));
    const char *all = pl_emit(l, "Expand", NULL, PL_IN(one, size));
    pl_lower_output(l, n, 0, pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", -1)), PL_IN(x, all)));
}

void pl_lower_gate(pl_lowering *l, const pl_node *n)
{
    const char *gate = pl_emit(l, "Sigmoid", NULL, PL_IN(pl_lower_input(l, n, 1)));
    pl_lower_output(l, n, 0, pl_emit(l, "Mul", NULL, PL_IN(pl_lower_input(l, n, 0), gate)));
}

/* Scales, then shifts, the same for all pixels of a sample. */
void pl_lower_film(pl_lowering *l, const pl_node *n)
{
    const pl_shape *x = pl_lower_shape(l, n, 0), *s = pl_lower_shape(l, n, 1);
    pl_shape wide = *x;
    for (uint32_t i = 1; i + 1 < wide.rank; i++) wide.dim[i] = 1;
    wide.dim[wide.rank - 1] *= 2;
    const char *both = pl_emit_reshape(l, pl_lower_input(l, n, 1), s, &wide);
    const int64_t axis = wide.rank - 1, channels = pl_shape_last(x);
    const char *scale = pl_emit_slice(l, both, axis, 0, channels);
    const char *shift = pl_emit_slice(l, both, axis, channels, 2 * channels);
    const char *y = pl_emit(l, "Mul", NULL, PL_IN(pl_lower_input(l, n, 0), scale));
    pl_lower_output(l, n, 0, pl_emit_add(l, y, shift));
}

/* Pictures are bytes here and planes from 0 to 1 there, so they are rounded as bytes would be. */
void pl_lower_pixels(pl_lowering *l, const pl_node *n)
{
    const char *full = pl_emit_number(l, 255), *x = pl_lower_input(l, n, 0);
    if (pl_lower_shape(l, n, 0)->rank != 4) return pl_lower_refuse(l, n, "its input is no image");
    x = pl_emit(l, "Clip", NULL, PL_IN(pl_emit(l, "Mul", NULL, PL_IN(x, full)), pl_emit_number(l, 0), full));
    x = pl_emit(l, "Div", NULL, PL_IN(pl_emit(l, "Round", NULL, PL_IN(x)), full));
    pl_lower_output(l, n, 0, planes(l, x));
}
