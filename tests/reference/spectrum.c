/* Low modes of the Fourier transform, every term of the double sum by itself (kernels/spectrum.h). */
#include <math.h>

#include "reference/state.h"

typedef struct shape {
    int64_t samples, height, width, channels, modes;
} shape;

static shape shape_of(const pl_value *image, int64_t modes)
{
    const int64_t *dim = image->shape.dim;
    return (shape){dim[0], dim[1], dim[2], dim[3], modes};
}

/* The angle between pixel (h, w) and the mode of row r and column l. */
static double angle(const shape *s, int64_t r, int64_t l, int64_t h, int64_t w)
{
    int64_t k = r < s->modes ? r : s->height - 2 * s->modes + r;
    double turns = (double)(k * h % s->height) / (double)s->height + (double)(l * w % s->width) / (double)s->width;
    return 2 * acos(-1) * turns;
}

/* irfft2's, and its adjoint's */
static double factor(const shape *s, int64_t l)
{
    return (l == 0 || 2 * l == s->width ? 1 : 2) / (double)(s->height * s->width);
}

static int64_t pixel(const shape *s, int64_t b, int64_t h, int64_t w)
{
    return ((b * s->height + h) * s->width + w) * s->channels;
}
static int64_t mode(const shape *s, int64_t b, int64_t r, int64_t l)
{
    return ((b * 2 * s->modes + r) * s->modes + l) * 2 * s->channels;
}

/* Adds one term there or back, for all channels. */
static void add_term(const shape *s, double cosine, double sine, double *image, double *spectrum, bool back)
{
    for (int64_t c = 0; c < s->channels; c++) {
        if (back) {
            image[c] += spectrum[c] * cosine - spectrum[s->channels + c] * sine;
        } else {
            spectrum[c] += image[c] * cosine;
            spectrum[s->channels + c] -= image[c] * sine;
        }
    }
}

static void transform(const shape *s, double *image, double *spectrum, bool back, bool factors)
{
    for (int64_t b = 0; b < s->samples; b++)
        for (int64_t r = 0; r < 2 * s->modes; r++)
            for (int64_t l = 0; l < s->modes; l++)
                for (int64_t h = 0; h < s->height; h++)
                    for (int64_t w = 0; w < s->width; w++) {
                        double f = factors ? factor(s, l) : 1, a = angle(s, r, l, h, w);
                        add_term(s, f * cos(a), f * sin(a), image + pixel(s, b, h, w), spectrum + mode(s, b, r, l),
                                 back);
                    }
}

void reference_rfft2(operands *o)
{
    shape s = shape_of(operand(o, 0), o->node->attr[0].i);
    double *spectrum = scratch(o, reference_elems(o->r, o->node->out[0]));
    transform(&s, o->in[0], spectrum, false, o->node->attr[1].i != 0);
    put(o, 0, spectrum);
}

void reference_irfft2(operands *o)
{
    shape s = shape_of(operand(o, 1), operand(o, 0)->shape.dim[2]);
    uint64_t elems = reference_elems(o->r, o->node->out[0]);
    double *image = scratch(o, elems);
    for (uint64_t i = 0; i < elems && o->node->attr[0].i; i++) image[i] = o->in[1][i];
    transform(&s, image, o->in[0], true, o->node->attr[1].i == 0);
    put(o, 0, image);
}

/* ---- y[k] = x[k]·R[k]; dx = dy·conj(R)ᵀ; dR += conj(x)ᵀ·dy ---- */

typedef struct product {
    int64_t samples, modes, in, out;
    double *x, *weight, *y;
} product;

typedef enum pass { FORWARD, DX, DW } pass;

/* One complex multiply-add: channel c in, channel o out, at mode k of sample b. */
static void multiply(const product *p, pass which, int64_t b, int64_t k, int64_t c, int64_t o)
{
    double *x = p->x + (b * p->modes + k) * 2 * p->in, *xr = x + c, *xi = xr + p->in;
    double *y = p->y + (b * p->modes + k) * 2 * p->out, *yr = y + o, *yi = yr + p->out;
    double *wr = p->weight + (k * p->in + c) * 2 * p->out + o, *wi = wr + p->out;
    if (which == FORWARD) *yr += *xr * *wr - *xi * *wi, *yi += *xr * *wi + *xi * *wr;
    if (which == DX) *xr += *yr * *wr + *yi * *wi, *xi += *yi * *wr - *yr * *wi;
    if (which == DW) *wr += *yr * *xr + *yi * *xi, *wi += *yi * *xr - *yr * *xi;
}

static void multiply_all(const product *p, pass which)
{
    for (int64_t b = 0; b < p->samples; b++)
        for (int64_t k = 0; k < p->modes; k++)
            for (int64_t c = 0; c < p->in; c++)
                for (int64_t o = 0; o < p->out; o++) multiply(p, which, b, k, c, o);
}

static product product_of(const pl_value *x, int64_t in, int64_t out)
{
    return (product){x->shape.dim[0], x->shape.dim[1] * x->shape.dim[2], in, out, NULL, NULL, NULL};
}

void reference_spectral_linear(operands *o)
{
    product p = product_of(operand(o, 0), operand(o, 1)->shape.dim[2], operand(o, 1)->shape.dim[4]);
    p.x = o->in[0], p.weight = o->in[1], p.y = scratch(o, reference_elems(o->r, o->node->out[0]));
    multiply_all(&p, FORWARD);
    put(o, 0, p.y);
}

void reference_spectral_linear_dx(operands *o)
{
    product p = product_of(operand(o, 0), operand(o, 1)->shape.dim[2], operand(o, 1)->shape.dim[4]);
    p.y = o->in[0], p.weight = o->in[1], p.x = scratch(o, reference_elems(o->r, o->node->out[0]));
    multiply_all(&p, DX);
    put(o, 0, p.x);
}

void reference_spectral_linear_dw(operands *o)
{
    product p = product_of(operand(o, 0), operand(o, 1)->shape.dim[4], operand(o, 0)->shape.dim[4]);
    p.y = o->in[0], p.x = o->in[1], p.weight = o->in[2];
    multiply_all(&p, DW);
    put(o, 0, p.weight);
}
