/* Fourier modes of images (kernels/spectrum.h) as sums over tables of angles, along the rows and then along the
 * columns: what is kept are a few modes, so a whole transform, which opset 17 has for one dimension, would be more
 * work. */
#include <math.h>

#include "export/lower.h"

static float *table_of(pl_lowering *l, int64_t elems)
{
    float *t = l->status == PL_OK ? pl_alloc((size_t)elems, sizeof *t) : NULL;
    if (!t) pl_lower_nomem(l);
    return t;
}

static const char *keep_table(pl_lowering *l, float *t, pl_shape s)
{
    const char *name = t ? pl_emit_table(l, &s, t) : "";
    pl_free(t);
    return name;
}

/* Of exp(−iθ) of column mode j at pixel w, θ = 2πjw/W: [m,2,W], times what the mode counts. */
static const char *columns(pl_lowering *l, int64_t modes, int64_t width, double scale, bool both_sides)
{
    float *t = table_of(l, modes * 2 * width);
    for (int64_t j = 0; t && j < modes; j++)
        for (int64_t w = 0; w < width; w++) {
            const double angle = 2 * M_PI * (double)(j * w % width) / (double)width;
            const double counts = both_sides && j != 0 && 2 * j != width ? 2 * scale : scale;
            t[(j * 2 + 0) * width + w] = (float)(counts * cos(angle));
            t[(j * 2 + 1) * width + w] = (float)(-counts * sin(angle));
        }
    return keep_table(l, t, pl_shape_of(3, modes, (int64_t)2, width));
}

/* The product with exp(−iθ) of row mode k at pixel h, as a matrix of real and imaginary parts: [2m,2,2,H]. Taken the
 * other way about it is that with exp(iθ). */
static const char *rows(pl_lowering *l, int64_t modes, int64_t height)
{
    float *t = table_of(l, 2 * modes * 4 * height);
    for (int64_t r = 0; t && r < 2 * modes; r++)
        for (int64_t h = 0; h < height; h++) {
            const int64_t k = r < modes ? r : height + r - 2 * modes;
            const double angle = 2 * M_PI * (double)(k * h % height) / (double)height;
            float *at = t + r * 4 * height + h;
            at[0] = at[3 * height] = (float)cos(angle);
            at[1 * height] = (float)sin(angle);
            at[2 * height] = (float)-sin(angle);
        }
    return keep_table(l, t, pl_shape_of(4, 2 * modes, (int64_t)2, (int64_t)2, height));
}

static const char *sum(pl_lowering *l, const char *how, const char *x, const char *y)
{
    return pl_emit(l, "Einsum", PL_ATTRIBUTES(PL_TEXT("equation", how)), PL_IN(x, y));
}

void pl_lower_rfft2(pl_lowering *l, const pl_node *n)
{
    const pl_rfft2_args *a = &n->rfft2;
    const pl_shape *s = pl_lower_shape(l, a->x);
    if (a->adjoint) return pl_lower_refuse(l, n, "it is the adjoint");
    const char *x = sum(l, "bhwc,jpw->bhjpc", pl_lower_value(l, a->x), columns(l, a->modes, s->dim[2], 1, false));
    pl_lower_output(l, n, a->y, sum(l, "bhjpc,kqph->bkjqc", x, rows(l, a->modes, s->dim[1])));
}

void pl_lower_irfft2(pl_lowering *l, const pl_node *n)
{
    const pl_irfft2_args *a = &n->irfft2;
    const pl_shape *s = pl_lower_shape(l, a->image);
    const int64_t modes = pl_lower_shape(l, a->spectrum)->dim[2];
    const double scale = 1 / ((double)s->dim[1] * (double)s->dim[2]);
    if (a->adjoint) return pl_lower_refuse(l, n, "it is the adjoint");
    const char *x = sum(l, "bkjqc,kqph->bhjpc", pl_lower_value(l, a->spectrum), rows(l, modes, s->dim[1]));
    const char *y = sum(l, "bhjpc,jpw->bhwc", x, columns(l, modes, s->dim[2], scale, true));
    pl_lower_output(l, n, a->y, pl_emit_add(l, y, a->add ? pl_lower_value(l, a->image) : NULL));
}

/* (x0 + i·x1)·(R0 + i·R1), a matrix for each mode: x0·[R0, R1] + x1·[−R1, R0]. */
void pl_lower_spectral_linear(pl_lowering *l, const pl_node *n)
{
    static const char each[] = "bkji,kjiro->bkjro";
    const int64_t axis = 3;
    const char *part[2], *by = pl_lower_value(l, n->spectral_linear.weight);
    for (int64_t p = 0; p < 2; p++) {
        const char *x = pl_emit_slice(l, pl_lower_value(l, n->spectral_linear.x), 3, p, p + 1);
        part[p] = sum(l, each, pl_emit(l, "Squeeze", NULL, PL_IN(x, pl_emit_integers(l, 1, &axis))), by);
    }
    const char *real = pl_emit_slice(l, part[1], 3, 0, 1), *imaginary = pl_emit_slice(l, part[1], 3, 1, 2);
    const char *turned =
        pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 3)), PL_IN(pl_emit(l, "Neg", NULL, PL_IN(imaginary)), real));
    pl_lower_output(l, n, n->spectral_linear.y, pl_emit_add(l, part[0], turned));
}
