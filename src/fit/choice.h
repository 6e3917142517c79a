/* What is decided about one plan: fit picks it, the passes of rewrite/ carry it out, in the order of passes.c. A
 * field belongs to one pass. Fields that change what is computed (not only when and where) say so. */
#ifndef PL_FIT_CHOICE_H
#define PL_FIT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/types.h"

typedef enum pl_choice_recompute {
    PL_CHOICE_STORE_ALL,
    PL_CHOICE_RECOMPUTE_CHEAP,   /* norms, activations and dropout are made again in the backward pass */
    PL_CHOICE_RECOMPUTE_FULL,    /* the classic: of each block only what leaves it is kept */
    PL_CHOICE_RECOMPUTE_PLANNED, /* `decision` says what is computed again, and where */
} pl_choice_recompute;

typedef enum pl_choice_optimizer_state {
    PL_CHOICE_STATE_F32,
    PL_CHOICE_STATE_BF16,
    PL_CHOICE_STATE_8BIT
} pl_choice_optimizer_state;

typedef struct pl_choice {
    int64_t micro_batch; /* sequences in memory at once */
    pl_choice_recompute recompute;
    const struct pl_recompute_decision *decision; /* of a frontier (fit/recompute.h), for this micro-batch; else NULL */
    bool huge_pages;
    int64_t layer_major;       /* blocks whose gradients are alive at once; 0: all, micro-batch by micro-batch */
    int64_t layer_major_keep;  /* of every so many such groups the input is kept; 0: of none */
    int64_t feed_forward_rows; /* rows of a feed-forward layer's hidden values in memory at once; 0: all, and kept */
    bool update_early;         /* a weight is updated as soon as its gradient is whole, not after the backward pass */
    pl_choice_optimizer_state optimizer_state; /* changes what is computed */
    int threads;                               /* that compute; 0: the whole team */
    pl_dtype precision; /* f32, bf16 or f16: of activations while training. Changes what is computed */
} pl_choice;

#endif
