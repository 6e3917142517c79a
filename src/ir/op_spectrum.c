/* The low modes of the Fourier transform of real images, and products with a complex matrix a mode: what a Fourier
 * neural operator (Li et al. 2021) is made of. Formulas and layout: kernels/spectrum.h. Images are [B,H,W,C] of any
 * real type; spectra, [B,2m,m,2,C], and the matrices are f32. */
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

static pl_cost cost_of(const pl_graph *g, const pl_node *n, const pl_value *image, int64_t modes)
{
    double m = (double)modes, lines = pl_value_elems_f(image) / (double)image->shape.dim[2], bytes = 0;
    for (int k = 0; k < 2; k++) bytes += pl_value_bytes_f(pl_in(g, n, k));
    /* a pixel and its mirror image together; rows ±k together */
    return (pl_cost){2 * m * pl_value_elems_f(image) + 8 * m * (m + 1) * lines,
                     bytes + pl_value_bytes_f(&g->value[n->out[0]])};
}

/* ---- rfft2: x → its modes; adjoint: of what irfft2 does, so with its factors ---- */
static pl_status shape_rfft2(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    int64_t modes = n->attr[0].i;
    if (!is_image(x)) return pl_fail_input(g, n, 0, "[batch, height, width, channels]", err);
    if (!modes_fit(x, modes))
        return pl_fail(err, PL_E_INTERNAL, "rfft2 in %s: %lld modes of an image of %lld x %lld; at most %lld are there",
                       n->scope, (long long)modes, (long long)x->dim[1], (long long)x->dim[2],
                       (long long)(x->dim[1] / 2 < x->dim[2] / 2 + 1 ? x->dim[1] / 2 : x->dim[2] / 2 + 1));
    out[0] = (pl_out){{5, x->symbolic & 1, {x->dim[0], 2 * modes, modes, 2, x->dim[3]}}, PL_DTYPE_F32};
    return PL_OK;
}

/* The gradient that has reached x by other paths is added to; without one, x says shape and type. */
static pl_status gradient_rfft2(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), dx = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_id taken = pl_gradient_take(g, n->in[0]), in[2] = {dy, taken != PL_NONE ? taken : n->in[0]};
    pl_attr attr[2] = {pl_attr_i(taken != PL_NONE), pl_attr_i(!n->attr[1].i)};
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_IRFFT2, attr, 2, in, 1, &dx));
    return g->b->status;
}

static pl_cost cost_rfft2(const pl_graph *g, const pl_node *n) { return cost_of(g, n, pl_in(g, n, 0), n->attr[0].i); }

const pl_op_rule pl_rule_RFFT2 = {shape_rfft2, gradient_rfft2, cost_rfft2};

/* ---- irfft2: modes, image → (image +) the image that has these modes and no others ----
 * Without add the image only says what shape and type the output has. adjoint: of what rfft2 does. */
static pl_status shape_irfft2(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape, *image = &pl_in(g, n, 1)->shape;
    if (!is_spectrum(x)) return pl_fail_input(g, n, 0, spectrum_shape, err);
    bool fits = is_image(image) && image->dim[0] == x->dim[0] && image->dim[3] == x->dim[4] &&
                (image->symbolic & 1) == (x->symbolic & 1);
    if (!fits || !modes_fit(image, x->dim[2]))
        return pl_fail_input(g, n, 1, "[batch, height, width, channels] of the spectrum, with as many modes", err);
    out[0] = (pl_out){*image, pl_in(g, n, 1)->dtype};
    return PL_OK;
}

static pl_status gradient_irfft2(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), dx = PL_NONE;
    if (dy == PL_NONE) return PL_OK;
    pl_attr attr[2] = {pl_attr_i(g->b->graph->value[n->in[0]].shape.dim[2]), pl_attr_i(!n->attr[1].i)};
    if (pl_gradient_is_wanted(g, n->in[0]))
        pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_RFFT2, attr, 1, &dy, 1, &dx));
    if (n->attr[0].i) pl_gradient_add(g, n->in[1], dy);
    return g->b->status;
}

static pl_cost cost_irfft2(const pl_graph *g, const pl_node *n)
{
    return cost_of(g, n, pl_in(g, n, 1), pl_in(g, n, 0)->shape.dim[2]);
}

const pl_op_rule pl_rule_IRFFT2 = {shape_irfft2, gradient_irfft2, cost_irfft2};

/* ---- spectral_linear: modes [B,2m,m,2,in], R [2m,m,in,2,out] → modes [B,2m,m,2,out], each times its matrix ---- */
static pl_shape weight_shape(const pl_shape *x, const pl_shape *y)
{
    return pl_shape_of(5, x->dim[1], x->dim[2], x->dim[4], (int64_t)2, y->dim[4]);
}

/* Input `spectrum` has channels at place `is` of the matrices; the output those at the other, `becomes`. */
static pl_status shape_product(const pl_graph *g, const pl_node *n, int is, int becomes, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape, *w = &pl_in(g, n, 1)->shape;
    if (!is_spectrum(x)) return pl_fail_input(g, n, 0, spectrum_shape, err);
    if (w->rank != 5 || w->dim[0] != x->dim[1] || w->dim[1] != x->dim[2] || w->dim[3] != 2 || w->dim[is] != x->dim[4])
        return pl_fail_input(g, n, 1, "f32 [2·modes, modes, in, 2, out] for the modes of the input", err);
    out[0] = (pl_out){*x, PL_DTYPE_F32};
    out[0].shape.dim[4] = w->dim[becomes];
    return PL_OK;
}

static pl_status shape_spectral_linear(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    return shape_product(g, n, 2, 4, out, err);
}

static pl_status gradient_spectral_linear(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], w = n->in[1], out = PL_NONE, dx = PL_NONE;
    if (dy == PL_NONE) return PL_OK;
    pl_id sum = pl_gradient_accumulator(g, w), in[3] = {dy, x, sum};
    if (sum != PL_NONE)
        pl_gradient_accumulated(g, w, pl_build_node(g->b, PL_OP_SPECTRAL_LINEAR_DW, NULL, 3, in, 1, &out));
    if (pl_gradient_is_wanted(g, x))
        pl_gradient_add(g, x, pl_build_node(g->b, PL_OP_SPECTRAL_LINEAR_DX, NULL, 2, (pl_id[]){dy, w}, 1, &dx));
    return g->b->status;
}

/* 4 real multiply-adds a complex one */
static pl_cost cost_product(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, n->op == PL_OP_SPECTRAL_LINEAR_DW ? 2 : 1);
    double bytes = pl_value_bytes_f(&g->value[n->out[0]]);
    for (int k = 0; k < 3; k++) bytes += pl_value_bytes_f(pl_in(g, n, k));
    return (pl_cost){4 * (double)x->shape.dim[0] * pl_value_elems_f(w), bytes};
}

const pl_op_rule pl_rule_SPECTRAL_LINEAR = {shape_spectral_linear, gradient_spectral_linear, cost_product};

/* ---- spectral_linear_dx: dy, R → dx ---- */
static pl_status shape_spectral_linear_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    return shape_product(g, n, 4, 2, out, err);
}

const pl_op_rule pl_rule_SPECTRAL_LINEAR_DX = {shape_spectral_linear_dx, NULL, cost_product};

/* ---- spectral_linear_dw: dy, x, dR → dR' ---- */
static pl_status shape_spectral_linear_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *dy = &pl_in(g, n, 0)->shape, *x = &pl_in(g, n, 1)->shape;
    if (!is_spectrum(dy)) return pl_fail_input(g, n, 0, spectrum_shape, err);
    pl_shape want = *dy;
    want.dim[4] = x->rank == 5 ? x->dim[4] : 0;
    PL_TRY(pl_expect_shape(g, n, 1, &want, "as many modes as the gradient", err));
    want = weight_shape(x, dy);
    PL_TRY(pl_expect_shape(g, n, 2, &want, "f32 [2·modes, modes, in, 2, out]", err));
    out[0] = (pl_out){want, PL_DTYPE_F32};
    return PL_OK;
}

const pl_op_rule pl_rule_SPECTRAL_LINEAR_DW = {shape_spectral_linear_dw, NULL, cost_product};
