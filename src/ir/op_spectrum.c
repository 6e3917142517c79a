/* The low modes of the Fourier transform of real images, and products with a complex matrix per mode: the parts of a
 * Fourier neural operator (Li et al. 2021). Formulas and layout: kernels/spectrum.h. Images are [B,H,W,C] of any real
 * type; spectra, [B,2m,m,2,C], and the matrices are f32. */
#include "ir/op.h"

static bool is_image(const pl_shape *s) { return s->rank == 4 && pl_shape_elems(s) > 0; }

static bool is_spectrum(const pl_shape *s)
{
    return s->rank == 5 && pl_shape_elems(s) > 0 && s->dim[3] == 2 && s->dim[1] == 2 * s->dim[2];
}

static const char spectrum_shape[] = "f32 [batch, 2·modes, modes, 2, channels]";

/* Rows m … H − m must not be taken twice, and columns end in the middle. */
static bool modes_fit(const pl_shape *image, int64_t modes)
{
    return modes >= 1 && modes <= image->dim[1] / 2 && modes - 1 <= image->dim[2] / 2;
}

static pl_cost cost_of(const pl_value *image, int64_t modes, double bytes)
{
    double m = (double)modes, lines = pl_value_elems_f(image) / (double)image->shape.dim[2];
    /* a pixel and its mirror image together; rows ±k together */
    return (pl_cost){2 * m * pl_value_elems_f(image) + 8 * m * (m + 1) * lines, bytes};
}

/* ---- rfft2: x → y, its modes; adjoint: that of irfft2, so with its factors ---- */
static pl_status shape_rfft2(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_rfft2_args *a = &n->rfft2;
    const pl_shape *x = &g->value[a->x].shape;
    const int64_t modes = a->modes;
    if (!is_image(x)) return pl_fail_operand(g, n, &a->x, "[batch, height, width, channels]", err);
    if (!modes_fit(x, modes))
        return pl_fail(err, PL_E_INTERNAL, "rfft2 in %s: %lld modes of an image of %lld x %lld; at most %lld are there",
                       n->scope, (long long)modes, (long long)x->dim[1], (long long)x->dim[2],
                       (long long)(x->dim[1] / 2 < x->dim[2] / 2 + 1 ? x->dim[1] / 2 : x->dim[2] / 2 + 1));
    *out = (pl_out){{5, x->symbolic & 1, {x->dim[0], 2 * modes, modes, 2, x->dim[3]}}, PL_DTYPE_F32};
    return PL_OK;
}

/* Adds to the gradient that has reached x by other paths; without one, x gives shape and type. */
static pl_status gradient_rfft2(pl_gradient *g, const pl_node *n)
{
    const pl_rfft2_args *a = &n->rfft2;
    pl_irfft2_args b = pl_irfft2_none;
    b.spectrum = pl_gradient_of(g, a->y);
    if (b.spectrum == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.image = pl_gradient_take(g, a->x), b.add = b.image != PL_NONE, b.adjoint = !a->adjoint;
    if (!b.add) b.image = a->x;
    pl_gradient_add(g, a->x, pl_build_irfft2(g->b, &b));
    return g->b->status;
}

static pl_cost cost_rfft2(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->rfft2.x], *y = &g->value[n->rfft2.y];
    return cost_of(x, n->rfft2.modes, pl_value_bytes_f(x) + pl_value_bytes_f(y));
}

const pl_op_rule pl_rule_RFFT2 = {shape_rfft2, gradient_rfft2, cost_rfft2};

/* ---- irfft2: spectrum, image → y, (the image +) the image that has these modes and no others ----
 * Without add, the image only gives the output's shape and type. adjoint: that of rfft2. */
static pl_status shape_irfft2(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_irfft2_args *a = &n->irfft2;
    const pl_shape *x = &g->value[a->spectrum].shape, *image = &g->value[a->image].shape;
    if (!is_spectrum(x)) return pl_fail_operand(g, n, &a->spectrum, spectrum_shape, err);
    bool fits = is_image(image) && image->dim[0] == x->dim[0] && image->dim[3] == x->dim[4] &&
                (image->symbolic & 1) == (x->symbolic & 1);
    if (!fits || !modes_fit(image, x->dim[2]))
        return pl_fail_operand(g, n, &a->image, "[batch, height, width, channels] of the spectrum, with as many modes",
                               err);
    *out = (pl_out){*image, g->value[a->image].dtype};
    return PL_OK;
}

static pl_status gradient_irfft2(pl_gradient *g, const pl_node *n)
{
    const pl_irfft2_args *a = &n->irfft2;
    pl_rfft2_args b = pl_rfft2_none;
    b.x = pl_gradient_of(g, a->y);
    if (b.x == PL_NONE) return PL_OK;
    b.modes = g->b->graph->value[a->spectrum].shape.dim[2], b.adjoint = !a->adjoint;
    if (pl_gradient_is_wanted(g, a->spectrum)) pl_gradient_add(g, a->spectrum, pl_build_rfft2(g->b, &b));
    if (a->add) pl_gradient_add(g, a->image, b.x);
    return g->b->status;
}

static pl_cost cost_irfft2(const pl_graph *g, const pl_node *n)
{
    const pl_irfft2_args *a = &n->irfft2;
    const pl_value *spectrum = &g->value[a->spectrum], *image = &g->value[a->image];
    return cost_of(image, spectrum->shape.dim[2],
                   pl_value_bytes_f(spectrum) + pl_value_bytes_f(image) + pl_value_bytes_f(&g->value[a->y]));
}

const pl_op_rule pl_rule_IRFFT2 = {shape_irfft2, gradient_irfft2, cost_irfft2};

/* ---- spectral_linear: modes x [B,2m,m,2,in], weight [2m,m,in,2,out] → y [B,2m,m,2,out], each times its matrix ---- */
static pl_shape weight_shape(const pl_shape *x, const pl_shape *y)
{
    return pl_shape_of(5, x->dim[1], x->dim[2], x->dim[4], (int64_t)2, y->dim[4]);
}

_Static_assert(offsetof(pl_spectral_linear_args, weight) == offsetof(pl_spectral_linear_dx_args, weight) &&
                   offsetof(pl_spectral_linear_args, y) == offsetof(pl_spectral_linear_dx_args, dx),
               "one rule reads both");

/* The first input's channels are dimension `is` of the matrices; the output's are the other, `becomes`. */
static pl_status shape_product(const pl_graph *g, const pl_node *n, int is, int becomes, pl_out out[], pl_error *err)
{
    const pl_spectral_linear_args *a = &n->spectral_linear;
    const pl_shape *x = &g->value[a->x].shape, *w = &g->value[a->weight].shape;
    if (!is_spectrum(x)) return pl_fail_operand(g, n, &a->x, spectrum_shape, err);
    if (w->rank != 5 || w->dim[0] != x->dim[1] || w->dim[1] != x->dim[2] || w->dim[3] != 2 || w->dim[is] != x->dim[4])
        return pl_fail_operand(g, n, &a->weight, "f32 [2·modes, modes, in, 2, out] for the modes of the input", err);
    *out = (pl_out){*x, PL_DTYPE_F32};
    out->shape.dim[4] = w->dim[becomes];
    return PL_OK;
}

static pl_status shape_spectral_linear(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    return shape_product(g, n, 2, 4, out, err);
}

static pl_status gradient_spectral_linear(pl_gradient *g, const pl_node *n)
{
    const pl_spectral_linear_args *a = &n->spectral_linear;
    pl_spectral_linear_dw_args dw = pl_spectral_linear_dw_none;
    pl_spectral_linear_dx_args dx = pl_spectral_linear_dx_none;
    dw.dy = dx.dy = pl_gradient_of(g, a->y);
    if (dw.dy == PL_NONE) return PL_OK;
    dw.x = a->x, dw.dweight = pl_gradient_accumulator(g, a->weight), dx.weight = a->weight;
    if (dw.dweight != PL_NONE) pl_gradient_accumulated(g, a->weight, pl_build_spectral_linear_dw(g->b, &dw));
    if (pl_gradient_is_wanted(g, a->x)) pl_gradient_add(g, a->x, pl_build_spectral_linear_dx(g->b, &dx));
    return g->b->status;
}

/* 4 real multiply-adds per complex one */
static double product_flops(const pl_value *x, const pl_value *w)
{
    return 4 * (double)x->shape.dim[0] * pl_value_elems_f(w);
}

static pl_cost cost_product(const pl_graph *g, const pl_node *n)
{
    const pl_spectral_linear_args *a = &n->spectral_linear;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight], *y = &g->value[a->y];
    return (pl_cost){product_flops(x, w), pl_value_bytes_f(y) + pl_value_bytes_f(x) + pl_value_bytes_f(w)};
}

const pl_op_rule pl_rule_SPECTRAL_LINEAR = {shape_spectral_linear, gradient_spectral_linear, cost_product};

/* ---- spectral_linear_dx: dy, weight → dx ---- */
static pl_status shape_spectral_linear_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    return shape_product(g, n, 4, 2, out, err);
}

const pl_op_rule pl_rule_SPECTRAL_LINEAR_DX = {shape_spectral_linear_dx, NULL, cost_product};

/* ---- spectral_linear_dw: dy, x, dweight ---- */
static pl_status shape_spectral_linear_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_spectral_linear_dw_args *a = &n->spectral_linear_dw;
    const pl_shape *dy = &g->value[a->dy].shape, *x = &g->value[a->x].shape;
    (void)out;
    if (!is_spectrum(dy)) return pl_fail_operand(g, n, &a->dy, spectrum_shape, err);
    pl_shape want = *dy;
    want.dim[4] = x->rank == 5 ? x->dim[4] : 0;
    PL_TRY(pl_expect_operand(g, n, &a->x, &want, "as many modes as the gradient", err));
    want = weight_shape(x, dy);
    return pl_expect_operand(g, n, &a->dweight, &want, "f32 [2·modes, modes, in, 2, out]", err);
}

static pl_cost cost_spectral_linear_dw(const pl_graph *g, const pl_node *n)
{
    const pl_spectral_linear_dw_args *a = &n->spectral_linear_dw;
    const pl_value *dy = &g->value[a->dy], *x = &g->value[a->x], *sum = &g->value[a->dweight];
    return (pl_cost){product_flops(dy, sum),
                     pl_value_bytes_f(sum) + pl_value_bytes_f(dy) + pl_value_bytes_f(x) + pl_value_bytes_f(sum)};
}

const pl_op_rule pl_rule_SPECTRAL_LINEAR_DW = {shape_spectral_linear_dw, NULL, cost_spectral_linear_dw};
