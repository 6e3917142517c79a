/* Checks on a user's own config that the mathematics does not depend on what was chosen to make a plan fit.
 *
 * The same two steps of training (same weights, same batches) are made by the plain plan, which keeps everything and
 * takes the whole batch at once where that fits, and by plans with the choices that save memory or time, alone and
 * combined. The losses, every gradient, and the bits of weights and optimizer state are compared; each plan is run
 * twice.
 *
 * Plans that agree may all be wrong in the same way, so the update of each is also computed separately, from its own
 * gradients and in double, by the optimizer's definition: weights, averages, moments of any storage and copies of
 * weights in 16 bits must equal that result, except for the roundings of f32 and what the storage's own rounding then
 * makes of it.
 *
 * Sixteen bits round, so the plain plan of each mixed precision has bounds of its own against the plain plan in f32,
 * and the choices with that precision are compared with it, as those in f32 are with theirs. What else changes numbers
 * on purpose (train.optimizer_state) is the same in all plans, as the config says. */
#ifndef PLIMSOLL_VERIFY_H
#define PLIMSOLL_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where sums have another order, a gradient may differ by this share of the largest number of its tensor. */
#define PL_VERIFY_GRADIENT_SHARE 0x1p-12
/* … and a loss by this share of it. */
#define PL_VERIFY_LOSS_SHARE 0x1p-16
/* Against f32, with n values rounded to 16 bits one after the other: by this times √n·u of the norm of all gradients,
 * and of the loss or of one nat, whichever is larger. u is the largest relative error of one rounding, 2^-8 in bf16 and
 * 2^-11 in fp16. Roundings go up as often as down, so that n of them make an error of about √n·u, not n·u, and one
 * above λ√n·u is as rare as e^(−λ²/2) (Higham & Mary 2019, "A new approach to probabilistic rounding error analysis").
 * Numbers below 2^-14 have fewer digits in fp16, and below 2^-25 none: there u is what the value's own norm makes of
 * it, as measured in the first step; a value that is all 0 counts as lost.
 *
 * relu has no derivative at 0: a value that rounds to the other side takes its whole term with it, and one in 1/(√n·u)
 * does. Then it is this times √(√n·u). Of the loss only the first step's is bounded: AdamW divides a gradient by its
 * size, so where rounding flips the sign of a small one, the update differs. */
#define PL_VERIFY_ROUNDINGS 4.0

typedef struct pl_verify_row {
    /* "micro_batch 1, gradient_checkpointing full": what differs from the row it is compared with. That is the plain
     * one, or, where the text begins with "mixed_precision bf16, ", the row of mixed_precision bf16 alone. In the
     * first row: what the plain plan is */
    const char *choices;
    const char *refused; /* why there is no such plan, and then nothing below holds; else NULL */
    uint64_t arena_bytes;
    double loss;                /* of the first step */
    double loss_difference;     /* the larger of the two steps' (mixed precision alone: of the first), absolute */
    double gradient_difference; /* the largest, absolute; NaN when the state that tells it is not f32 */
    double gradient_share;      /* the largest, of its tensor's largest number; mixed precision alone: norm by norm */
    double bound;               /* for that share; 0: the plain plan itself */
    const char *gradient;       /* the weight with that share; "" when there is none, or all are meant */
    /* the largest distance of what an update leaves from the update computed apart, as a share of what roundings
     * explain: above 1 it is wrong. For stored codes: 1 plus how many it is off */
    double update_share;
    const char *update; /* the value with that share: a weight, or "m." or "v." and its name */
    bool same_bits;     /* losses, weights and optimizer state after two steps */
    bool repeats;       /* a second run gave the same bits */
    bool within;        /* the verdict: it repeats, updates by definition, and has the same bits or is within bounds */
} pl_verify_row;

typedef struct pl_verify_options {
    const char *checkpoint;   /* a folder to start from; NULL: the run's best or latest, else first weights */
    bool everything;          /* every combination; else all combinations of one or two changes */
    const volatile int *stop; /* when it becomes nonzero, ends with PL_E_STOPPED after the row; may be NULL */
    void (*row)(void *context, const pl_verify_row *); /* the first is the plain one */
    void *context;
} pl_verify_options;

typedef struct pl_verify_result {
    /* plans: those that were run; within: within bounds, but not the same bits */
    uint64_t plans, same_bits, within, refused;
    uint64_t failed;
} pl_verify_result;

/* Like pl_command_check_options, for a comparison: it reads what a training reads, except the keys for the samples that
 * a training writes between its steps (train.sample_every), since it writes none. */
PL_API PL_MUST_USE pl_status pl_verify_check_options(const pl_config *, pl_error *);
/* The data must be prepared; nothing is written. PL_E_MISMATCH when a row is not within its bounds. */
PL_API PL_MUST_USE pl_status pl_verify(const pl_config *, const pl_verify_options *, pl_verify_result *, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
