/* Scalar reference of kernels/cpu/spectrum.c; sums in double, without the mirror images. */
#include "kernels/spectrum.h"

#include <stddef.h>

#include "kernels/kernels.h"

/* of 2π·lw/W for any pixel of the row */
static double cos_x(const pl_spectrum *s, int64_t w, int64_t l)
{
    return s->cos_x[(2 * w <= s->width ? w : s->width - w) * s->modes + l];
}

static double sin_x(const pl_spectrum *s, int64_t w, int64_t l)
{
    return 2 * w <= s->width ? s->sin_x[w * s->modes + l] : -s->sin_x[(s->width - w) * s->modes + l];
}

/* of 2π·kh/H for row r of the spectrum */
static double cos_y(const pl_spectrum *s, int64_t h, int64_t r)
{
    return s->cos_y[h * (s->modes + 1) + (r < s->modes ? r : 2 * s->modes - r)];
}

static double sin_y(const pl_spectrum *s, int64_t h, int64_t r)
{
    return r < s->modes ? s->sin_y[h * (s->modes + 1) + r] : -s->sin_y[h * (s->modes + 1) + 2 * s->modes - r];
}

/* Where channel 0 of the real part of column l of a line lies, in half and in the spectrum alike. */
static int64_t place(const pl_spectrum *s, int64_t line, int64_t l) { return (line * s->modes + l) * 2 * s->channels; }

void PL_KERNEL(spectrum_rows)(const pl_spectrum *s, int64_t begin, int64_t end, pl_real type, const void *x,
                              float *half)
{
    for (int64_t h = begin; h < end; h++)
        for (int64_t l = 0; l < s->modes; l++)
            for (int64_t c = 0; c < s->channels; c++) {
                double re = 0, im = 0;
                for (int64_t w = 0; w < s->width; w++) {
                    double v = pl_real_get(type, x, (h * s->width + w) * s->channels + c);
                    re += v * cos_x(s, w, l), im -= v * sin_x(s, w, l);
                }
                half[place(s, h, l) + c] = (float)re, half[place(s, h, l) + s->channels + c] = (float)im;
            }
}

void PL_KERNEL(spectrum_columns)(const pl_spectrum *s, int64_t begin, int64_t end, const float *half, float *spectrum)
{
    for (int64_t l = begin; l < end; l++)
        for (int64_t r = 0; r < 2 * s->modes; r++)
            for (int64_t c = 0; c < s->channels; c++) {
                double re = 0, im = 0, factor = pl_spectrum_factor(s, l);
                for (int64_t h = 0; h < s->height; h++) {
                    double a = half[place(s, h, l) + c], b = half[place(s, h, l) + s->channels + c];
                    re += a * cos_y(s, h, r) + b * sin_y(s, h, r), im += b * cos_y(s, h, r) - a * sin_y(s, h, r);
                }
                spectrum[place(s, r, l) + c] = (float)(factor * re);
                spectrum[place(s, r, l) + s->channels + c] = (float)(factor * im);
            }
}

void PL_KERNEL(spectrum_columns_back)(const pl_spectrum *s, int64_t begin, int64_t end, const float *spectrum,
                                      float *half)
{
    for (int64_t l = begin; l < end; l++)
        for (int64_t h = 0; h < s->height; h++)
            for (int64_t c = 0; c < s->channels; c++) {
                double re = 0, im = 0, factor = pl_spectrum_factor(s, l);
                for (int64_t r = 0; r < 2 * s->modes; r++) {
                    double a = spectrum[place(s, r, l) + c], b = spectrum[place(s, r, l) + s->channels + c];
                    re += a * cos_y(s, h, r) - b * sin_y(s, h, r), im += b * cos_y(s, h, r) + a * sin_y(s, h, r);
                }
                half[place(s, h, l) + c] = (float)(factor * re);
                half[place(s, h, l) + s->channels + c] = (float)(factor * im);
            }
}

void PL_KERNEL(spectrum_rows_back)(const pl_spectrum *s, int64_t begin, int64_t end, const float *half, pl_real type,
                                   const void *add, void *y)
{
    for (int64_t h = begin; h < end; h++)
        for (int64_t w = 0; w < s->width; w++)
            for (int64_t c = 0; c < s->channels; c++) {
                int64_t at = (h * s->width + w) * s->channels + c;
                double sum = add ? pl_real_get(type, add, at) : 0;
                for (int64_t l = 0; l < s->modes; l++)
                    sum += half[place(s, h, l) + c] * cos_x(s, w, l) -
                           half[place(s, h, l) + s->channels + c] * sin_x(s, w, l);
                pl_real_put(type, y, at, (float)sum);
            }
}

/* ---- a matrix a mode ---- */

static float *at(float *x, int64_t sample, const pl_spectral_linear *p, int64_t k, int64_t channels)
{
    return x + (sample * p->modes + k) * 2 * channels;
}

void PL_KERNEL(spectral_linear)(const pl_spectral_linear *p, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++)
        for (int64_t s = 0; s < p->samples; s++)
            for (int64_t o = 0; o < p->out; o++) {
                const float *x = at(p->x, s, p, k, p->in), *w = p->weight + k * p->in * 2 * p->out + o;
                double re = 0, im = 0;
                for (int64_t c = 0; c < p->in; c++) {
                    double wr = w[c * 2 * p->out], wi = w[(c * 2 + 1) * p->out];
                    re += wr * x[c] - wi * x[p->in + c], im += wi * x[c] + wr * x[p->in + c];
                }
                at(p->y, s, p, k, p->out)[o] = (float)re, at(p->y, s, p, k, p->out)[p->out + o] = (float)im;
            }
}

void PL_KERNEL(spectral_linear_dx)(const pl_spectral_linear *p, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++)
        for (int64_t s = 0; s < p->samples; s++)
            for (int64_t c = 0; c < p->in; c++) {
                const float *y = at(p->y, s, p, k, p->out), *w = p->weight + (k * p->in + c) * 2 * p->out;
                double re = 0, im = 0;
                for (int64_t o = 0; o < p->out; o++) {
                    double wr = w[o], wi = w[p->out + o];
                    re += wr * y[o] + wi * y[p->out + o], im += wr * y[p->out + o] - wi * y[o];
                }
                at(p->x, s, p, k, p->in)[c] = (float)re, at(p->x, s, p, k, p->in)[p->in + c] = (float)im;
            }
}

void PL_KERNEL(spectral_linear_dw)(const pl_spectral_linear *p, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++)
        for (int64_t c = 0; c < p->in; c++)
            for (int64_t o = 0; o < p->out; o++)
                for (int64_t s = 0; s < p->samples; s++) {
                    const float *x = at(p->x, s, p, k, p->in), *y = at(p->y, s, p, k, p->out);
                    float *w = p->weight + (k * p->in + c) * 2 * p->out + o;
                    w[0] += y[o] * x[c] + y[p->out + o] * x[p->in + c];
                    w[p->out] += y[p->out + o] * x[c] - y[o] * x[p->in + c];
                }
}
