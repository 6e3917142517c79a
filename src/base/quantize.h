/* Eight bits for a number, as ONNX's QuantizeLinear has it, and the range that they are to span, found from how the
 * numbers of a calibration are distributed (docs/quantize.md; the conventions of ONNX Runtime's calibrators).
 *
 *   q = min(max(round(x / scale) + zero, 0), 255), halves to even;   x' = (q − zero)·scale
 *
 * Numbers come twice, since what a histogram spans must be known first: their extremes, then how many lie where. Both
 * are made of comparisons and counts, so the order in which numbers come and how they are cut does not show. */
#ifndef PL_BASE_QUANTIZE_H
#define PL_BASE_QUANTIZE_H

#include <stdint.h>

typedef struct pl_quantization {
    float scale;
    int32_t zero; /* what 0 becomes */
} pl_quantization;

/* Of [least, largest], which are finite, widened so that 0 is one of the 256 numbers exactly; scale 1 where both are 0.
 */
pl_quantization pl_quantization_of(float least, float largest);
uint8_t pl_quantize(pl_quantization, float x); /* of NaN: 0, as kernels do */
float pl_dequantize(pl_quantization, uint8_t q);

/* ---- packed weights ---- */

/* Matrices of n rows of k numbers of 8 bits lie as products read them, on every processor: the rows' scales f32, their
 * sums i32, and panels of PL_INT8_PANEL rows, in which four neighbours of one row lie behind those of the row before
 * (kernels/words.h). Rows are filled up to whole panels, their numbers to whole fours. */
#define PL_INT8_PACKED ".int8" /* behind the name of a weight that is packed */
enum { PL_INT8_PANEL = 16, PL_INT8_K_MAX = 65536 };
static inline uint64_t pl_int8_packed_bytes(int64_t n, int64_t k)
{
    const uint64_t rows = (uint64_t)(n + PL_INT8_PANEL - 1) / PL_INT8_PANEL * PL_INT8_PANEL;
    return rows * (sizeof(float) + sizeof(int32_t) + (uint64_t)(k + 3) / 4 * 4);
}

/* ---- what was seen ---- */

/* Zeroed: of nothing. 0 always counts as seen, since every range has it. */
typedef struct pl_extremes {
    float least, largest; /* of what is finite */
    float not_finite;     /* how many are not, at least (a float counts to 2^24) */
} pl_extremes;
void pl_extremes_add(pl_extremes *, const float *x, uint64_t count);
/* Of both together. */
void pl_extremes_join(pl_extremes *, const pl_extremes *);
/* The larger size of the two. */
float pl_extremes_limit(const pl_extremes *);

enum { PL_SPREAD_HALF = 2048, PL_SPREAD_BINS = 2 * PL_SPREAD_HALF };

/* How many lie in each of equal bins from −limit to limit. What is not finite enters none. */
void pl_spread_add(int64_t bin[PL_SPREAD_BINS], float limit, const float *x, uint64_t count);
void pl_spread_join(int64_t bin[PL_SPREAD_BINS], const int64_t other[PL_SPREAD_BINS]);

/* ---- the range ---- */

typedef enum pl_span_method { PL_SPAN_MINMAX, PL_SPAN_PERCENTILE, PL_SPAN_ENTROPY } pl_span_method;

typedef struct pl_span {
    float least, largest;
    uint64_t clipped; /* numbers outside of it, at the least: of bins that lie outside as a whole */
} pl_span;

/* MINMAX: the extremes (bins and scratch may be NULL).
 * PERCENTILE: without the share (1 − percentile/100)/2 at either end.
 * ENTROPY: [−T, T] of the extremes, where the numbers of |x| < T, all larger ones counted with the last bin, are told
 * best by 128 levels: the least Kullback-Leibler divergence among T = 128 … 2048 bins; `scratch` has room for
 * PL_SPAN_SCRATCH numbers.
 * Bins are those of the extremes' limit. Nothing seen: [0, 0]. */
enum { PL_SPAN_SCRATCH = 2 * PL_SPREAD_HALF };
pl_span pl_span_of(pl_span_method, double percentile, const pl_extremes *, const int64_t *bin, double *scratch);

#endif
