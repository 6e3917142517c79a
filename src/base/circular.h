/* A Gaussian low-pass filter on a ring of n points: exp(−f²·width²/2) over the frequencies f of the discrete Fourier
 * transform, in cycles a point. It is even and real, so in space it is a sum over neighbours with weights that are real
 * and the same to both sides; in two dimensions it is one such sum after the other. White noise filtered this way is
 * noise with a Gaussian spectrum, exactly as the inverse transform of filtered white modes, and needs no transform. */
#ifndef PL_BASE_CIRCULAR_H
#define PL_BASE_CIRCULAR_H

#include <stdint.h>

/* doubles of scratch for n points */
static inline int64_t pl_circular_scratch_elems(int64_t n) { return n + n / 2 + 1; }

/* Weights of the points at distance 0 … radius, into weight[n/2 + 1]; returns the radius, at most n/2. What lies
 * farther away is left out where that changes the result by less than 2e-7 of its standard deviation. Sum over
 * j in [−radius, radius] with weight[|j|], indices modulo n: the point opposite, which is there twice when n is even,
 * has half its weight. */
int64_t pl_circular_gaussian(int64_t n, double width, double *scratch, double *weight);

#endif
