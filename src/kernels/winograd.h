/* The transforms of Winograd's minimal filtering F(m×m, 3×3), m = 2 or 4 (Lavin & Gray 2016): a window of t × t pixels,
 * t = m + 2, gives m × m outputs as Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A. Each of the t² points of the transformed domain is a
 * product of matrices [windows, in]·[in, out] on the tiles of gemm.h; transforms and products are f32. Everything runs
 * along channels, which lie side by side, so nothing is summed across the lanes of a vector.
 *
 * The gradient of the weights is the same sum of products with weights and outputs in each other's place:
 * Gᵀ[(Bᵀ d B) ⊙ (A dy Aᵀ)]G, whose products [out, windows]·[windows, in] may be summed up over windows before Gᵀ. */
#ifndef PL_KERNELS_WINOGRAD_H
#define PL_KERNELS_WINOGRAD_H

#include <stdint.h>

#include "base/isa.h"
#include "base/narrow.h"

enum { PL_WINOGRAD_POINTS_MAX = 36 };

/* Points are counted down the columns of the transformed window: point (y, x) is number t·x + y. F(4×4) may be computed
 * in two halves, the left three columns of points and then the right three, with half of the memory for windows and
 * sums; what the left half adds to a window's outputs is kept meanwhile. The bits are those of the whole. */
typedef enum pl_winograd_part { PL_WINOGRAD_WHOLE, PL_WINOGRAD_LEFT, PL_WINOGRAD_RIGHT } pl_winograd_part;

enum { PL_WINOGRAD_KEPT = 12 }; /* vectors for each of the sums' */

typedef struct pl_winograd_kernels {
    /* v[point·p + c] for the points of the part, its first being p = 0: of a window whose pixel (y, x) is at row·y +
     * pixel·x elements. */
    void (*input)(pl_winograd_part part, pl_real type, int64_t channels, const void *window, int64_t row, int64_t pixel,
                  float *v, int64_t point);
    /* u[point·p + c], all points: of `columns` neighbouring weights, tap (y, x) at tap·(3y + x) elements, or turned
     * around: at tap·(8 − 3y − x). Whole vectors are written, zeros behind the columns. */
    void (*weights)(pl_real type, int64_t columns, const void *weight, int64_t tap, int turned, float *u,
                    int64_t point);
    /* y[row·i + pixel·j + c], i and j below m, of the sums at point·p + c, p = 0 being the part's first: so many
     * vectors of columns. The left half writes kept[point·q + c], q < PL_WINOGRAD_KEPT, instead; the right one reads
     * it. */
    void (*output)(pl_winograd_part part, int vectors, const float *sums, int64_t point, float *kept, float *y,
                   int64_t row, int64_t pixel);
    /* For the gradient of the weights, where a window of x and the m × m pixels of dy that it gave are multiplied:
     * u[point·p + c], c < count, all points: of pixels of dy, (y, x) at row·y + pixel·x elements. `count` is at most a
     * vector; `held` channels may be read, not fewer. */
    void (*gradient)(pl_real type, const void *dy, int64_t row, int64_t pixel, int64_t held, int64_t count, float *u,
                     int64_t point);
    /* dw[tap·(3y + x) + c] += the weights that the sums of these products at point·p + c stand for, c < columns. Sums
     * are read by whole vectors. */
    void (*add_weights)(int64_t columns, const float *sums, int64_t point, float *dw, int64_t tap);
} pl_winograd_kernels;

/* m is 2 or 4; of the level, or the best one below it that is built. */
const pl_winograd_kernels *pl_winograd_kernels_of(pl_isa, int m);

#endif
