/* The transforms of Winograd's minimal filtering F(m×m, 3×3), m = 2 or 4 (Lavin & Gray 2016): a window of t × t pixels,
 * t = m + 2, gives m × m outputs as Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A. Each of the t² points of the transformed domain is a
 * product of matrices [windows, in]·[in, out] on the tiles of gemm.h; transforms and products are f32. Everything runs
 * along channels, which lie side by side, so nothing is summed across the lanes of a vector. */
#ifndef PL_KERNELS_WINOGRAD_H
#define PL_KERNELS_WINOGRAD_H

#include <stdint.h>

#include "base/isa.h"
#include "base/narrow.h"

enum { PL_WINOGRAD_POINTS_MAX = 36 };

typedef struct pl_winograd_kernels {
    /* v[point·p + c], p = 0 … t² − 1: of a window whose pixel (y, x) is at row·y + pixel·x elements. */
    void (*input)(pl_real type, int64_t channels, const void *window, int64_t row, int64_t pixel, float *v,
                  int64_t point);
    /* u[point·p + c]: of `columns` neighbouring weights, tap (y, x) at tap·(3y + x) elements, or turned around: at
     * tap·(8 − 3y − x). Whole vectors are written, zeros behind the columns. */
    void (*weights)(pl_real type, int64_t columns, const void *weight, int64_t tap, int turned, float *u,
                    int64_t point);
    /* y[row·i + pixel·j + c], i and j below m, of the sums at point·p + c: so many vectors of columns. */
    void (*output)(int vectors, const float *sums, int64_t point, float *y, int64_t row, int64_t pixel);
} pl_winograd_kernels;

/* m is 2 or 4; of the level, or the best one below it that is built. */
const pl_winograd_kernels *pl_winograd_kernels_of(pl_isa, int m);

#endif
