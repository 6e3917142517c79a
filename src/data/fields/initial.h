/* The field X_0 that a rollout begins with: [H, W, C] f32, a pure function of (seed, operator, realisation), so that
 * threads fill fields in any order and any share of a job has the same ones.
 *
 * A field is one of a list of choices, drawn by their weights:
 *   random    for each length l of the choice a Gaussian random field with the power spectrum exp(−k²l²/2) (covariance
 *             exp(−r²/2l²)), k in radians and l in parts of the domain's height, periodic; each without its mean and
 *             of variance 1; their sum, per channel, has exactly the choice's variance. (The mean is left out since
 *             of a long field it would be most of the power, and a constant is no pattern.)
 *   stripes   `count` times sin(2π·f·(x·cos a + y·sin a)/H) in one channel, f uniform in [low, high), a in [0, 2π),
 *             the channel any; x, y in pixels
 *   blobs     `count` times exp(−r²/2w²), w uniform in [low, high) pixels of a field of height 128 (of others in
 *             proportion), its centre anywhere, times 2·N(0, 1) in each channel
 *
 * Draws, from Philox(seed, stream "initial_field"), sample operator·2^32 + realisation: step 0, block 0, first word:
 * the choice. Stripes and blobs: step 1, block i: f, a, channel, or x, y, w of the i-th (words·2^−32); amplitudes: step
 * 2, normal number i·C + channel. Random: step 1 + i, normal number channel·H·W + pixel, filtered for length i. */
#ifndef PL_DATA_INITIAL_H
#define PL_DATA_INITIAL_H

#include <stdint.h>

#include "base/error.h"

enum { PL_INITIAL_CHOICES = 32, PL_INITIAL_LENGTHS = 8, PL_INITIAL_DOCUMENTED = 10 };

typedef enum pl_initial_kind { PL_INITIAL_RANDOM, PL_INITIAL_STRIPES, PL_INITIAL_BLOBS } pl_initial_kind;

typedef struct pl_initial_choice {
    const char *name; /* for messages: the caller's */
    pl_initial_kind kind;
    double weight;
    double variance;  /* random */
    uint32_t lengths; /* random: of these */
    double length[PL_INITIAL_LENGTHS];
    uint32_t count; /* stripes, blobs */
    double low, high;
} pl_initial_choice;

typedef struct pl_initial {
    int64_t height, width, channels;
    uint64_t seed;
    uint32_t choices;
    pl_initial_choice choice[PL_INITIAL_CHOICES];
} pl_initial;

/* The ten choices of the documented config, gaussian_random_field_v0 to localized, with its weights. */
extern const pl_initial_choice pl_initial_documented[PL_INITIAL_DOCUMENTED];

/* PL_E_CONFIG, naming the choice: weights that are negative or do not sum to 1, lengths outside (0, 1], … */
pl_status pl_initial_check(const pl_initial *, pl_error *);
uint64_t pl_initial_scratch_bytes(const pl_initial *);
uint32_t pl_initial_pick(const pl_initial *, uint32_t operator_number, uint32_t realisation);
/* scratch: aligned to 8, left dirty. What pl_initial_check refuses must not come here. */
void pl_initial_fill(const pl_initial *, uint32_t operator_number, uint32_t realisation, void *scratch, float *field);

#endif
