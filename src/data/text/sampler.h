/* Which tokens a step trains on: a pure function of (seed, step, row), with no state beside.
 *
 *      tokens   0 ─────────────── train ───────────────┊── validation ── count
 *      windows  |← T →|← T →|← T →| … |short|          ┊|← T →| … |short|
 *
 * A window is T inputs and, as targets, the same shifted by one; windows do not overlap (but for that one token), and
 * none crosses from train into validation. The last window of a part may be short: its missing targets are −1. In each
 * epoch every window of the training part comes exactly once, in an order drawn from (seed, epoch) by a permutation
 * that is computed place by place (base/permutation.h). Validation goes from front to back.
 *
 * A text that is only judged is a validation part as a whole; then two tokens are enough.
 *
 * A step has `batch` rows; the last step of an epoch may have rows left over, which count nothing. */
#ifndef PL_DATA_SAMPLER_H
#define PL_DATA_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/permutation.h"
#include "stream/source.h"

typedef struct pl_sampler_options {
    uint64_t tokens; /* of the file */
    uint32_t sequence, batch;
    double validation_fraction; /* 0 ≤ … < 1: the tail of the file */
    bool whole;                 /* validation is all of the file, and there is nothing to train on */
    uint64_t seed;
} pl_sampler_options;

typedef struct pl_sampler {
    uint64_t begin, end; /* tokens of this part */
    uint64_t windows, steps_per_epoch;
    uint32_t sequence, batch;
    int shuffled;
    pl_permutation order; /* of the windows */
} pl_sampler;

typedef struct pl_window {
    uint64_t start;   /* first token */
    uint32_t counted; /* targets: tokens start + 1 … start + counted; 0 for a row left over */
} pl_window;

/* PL_E_DATA when the part is shorter than one sequence and its last target; PL_E_CONFIG for absurd numbers. */
pl_status pl_sampler_init(pl_sampler *, const pl_sampler_options *, pl_part, pl_error *);
/* The window of a row (0 … batch − 1) of a step (from 0, over all epochs). */
pl_window pl_sampler_window(const pl_sampler *, uint64_t step, uint32_t row);
/* Targets that count in a whole step: known before its first micro-batch. */
uint64_t pl_sampler_step_tokens(const pl_sampler *, uint64_t step);
/* The targets of the first `steps` steps of an epoch that is not shuffled (0: of all) are one range of tokens. */
void pl_sampler_targets(const pl_sampler *, uint64_t steps, uint64_t *begin, uint64_t *end);
/* Targets of an epoch. */
uint64_t pl_sampler_epoch_tokens(const pl_sampler *);
/* The place in the file's order of the index-th window of an epoch. */
uint64_t pl_sampler_shuffle(const pl_sampler *, uint64_t epoch, uint64_t index);

#endif
