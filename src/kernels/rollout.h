/* What the noise and the update of a rollout are for one sample at one step, all choices made. */
#ifndef PL_KERNELS_ROLLOUT_H
#define PL_KERNELS_ROLLOUT_H

#include <stdint.h>

#include "base/circular.h"
#include "base/philox.h"
#include "base/rollout.h"

/* Channel c of pixel p is element e = p·C' + c, where C' is the number of channels rounded up to 4, so that four
 * neighbouring channels share a block, with the counter (step, sample, e/4) of base/philox.h. Its words a … d give
 *   gaussian  r·cos(v), r·sin(v) with r = √(−2·log u), u = (f32(a) + ½)·2^−32 in f32, v = 2π·b·2^−32; c and d likewise
 *   laplace   each word w: −log u with u = (f32(w/2) + ½)·2^−31, negative where w is odd
 *   dropout2d of pixel 0 alone, for all pixels: the channel is dropped when the word/2^32 < scale
 * Correlated, the first three kinds: these numbers over the pixels, filtered by exp(−f²(correlation·H)²/2) with f in
 * cycles a pixel (base/circular.h), divided by the standard deviation (over n − 1) that each channel then has; times √2
 * for laplace, which has as much before. */
typedef struct pl_noise {
    pl_philox philox;
    uint32_t step;
    uint64_t sample; /* operator·2^32 + realisation */
    pl_noise_kind kind;
    float scale;        /* of this step */
    double correlation; /* width of the filter in pixels: correlation·H; 0: none */
    int64_t height, width, channels;
} pl_noise;

enum { PL_NOISE_STRIP = 16 }; /* channels that are filtered together */

/* The work space of a strip. */
typedef struct pl_noise_workspace {
    double *scratch, *exact; /* of base/circular.h: for the weights; the weights */
    float *weight;           /* the weights of one direction */
    float *line;             /* pixels of a line, its end once more before it and its beginning behind it */
    float *strip;            /* [H, W, PL_NOISE_STRIP] */
    uint64_t bytes;
} pl_noise_workspace;

static inline pl_noise_workspace pl_noise_lay_out(int64_t height, int64_t width, void *memory)
{
    int64_t n = height > width ? height : width, half = n / 2 + 1;
    int64_t scratch = pl_circular_scratch_elems(n), line = (n + 2 * half) * PL_NOISE_STRIP;
    int64_t doubles = (scratch + half + 7) / 8 * 8, weights = (half + 15) / 16 * 16;
    pl_noise_workspace w = {.scratch = memory, .bytes = (uint64_t)doubles * sizeof(double)};
    w.bytes += (uint64_t)(weights + line + height * width * PL_NOISE_STRIP) * sizeof(float);
    if (!memory) return w;
    w.exact = w.scratch + scratch;
    w.weight = (float *)(w.scratch + doubles);
    w.line = w.weight + weights;
    w.strip = w.line + line;
    return w;
}

typedef struct pl_evolve {
    pl_update_policy policy;
    float dt, alpha;
    pl_post_process post_process;
    float clamp_low, clamp_high;
} pl_evolve;

#endif
