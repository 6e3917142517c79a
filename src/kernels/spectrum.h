/* The low modes of the two-dimensional Fourier transform of real images, there and back. Of the transform
 *
 *   X[k,l] = Σ_{h,w} x[h,w]·exp(−2πi(kh/H + lw/W))
 *
 * the rows k = 0 … m−1 and −m … −1 and the columns l = 0 … m−1 are kept: as f32 [2m, m, 2, C], row r being k = r, or
 * r − 2m from m on; the 2 are real and imaginary part. Back:
 *
 *   y[h,w] = scale·Σ_{k,l} c_l·Re(X[k,l]·exp(+2πi(kh/H + lw/W)))
 *
 * with c_l = 2, or 1 where column l is its own opposite (0 and W/2), and scale 1/(HW): what an inverse real transform
 * makes when the other modes are 0. There and back are sums over the same terms, so that each, with the other's c_l and
 * scale, is the other's adjoint.
 *
 * With a dozen modes of 128 this is two small products, along the rows, then along the columns; a pixel and its mirror
 * image share theirs. The time is about that of a fast transform of all modes, for any size, in one fixed order. */
#ifndef PL_KERNELS_SPECTRUM_H
#define PL_KERNELS_SPECTRUM_H

#include <stdint.h>

typedef struct pl_spectrum {
    int64_t height, width, channels, modes;
    float scale;
    int both_sides;             /* c_l as above, else 1 */
    const float *cos_x, *sin_x; /* [W/2 + 1, m]: of 2π·lw/W */
    const float *cos_y, *sin_y; /* [H, m + 1]: of 2π·kh/H */
} pl_spectrum;

static inline float pl_spectrum_factor(const pl_spectrum *s, int64_t column)
{
    return s->both_sides && column != 0 && 2 * column != s->width ? 2 * s->scale : s->scale;
}

/* y[k] = x[k]·R[k], complex: a matrix for each of `modes` modes; x [samples, modes, 2, in], R [modes, in, 2, out], y
 * [samples, modes, 2, out]. Which of them is written the kernel says; none of them overlap. */
typedef struct pl_spectral_linear {
    int64_t samples, modes, in, out;
    float *x, *weight, *y;
} pl_spectral_linear;

#endif
