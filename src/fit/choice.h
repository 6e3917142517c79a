/* What is decided about one plan: fit picks it, the passes of rewrite/ carry it out, in the order of candidate.c. A
 * field belongs to one pass. Fields that change what is computed (not only when and where) say so. */
#ifndef PL_FIT_CHOICE_H
#define PL_FIT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/types.h"

typedef enum pl_choice_recompute {
    PL_CHOICE_STORE_ALL,
    PL_CHOICE_RECOMPUTE_CHEAP, /* norms, activations and dropout are made again in the backward pass */
} pl_choice_recompute;

typedef struct pl_choice {
    int64_t micro_batch; /* sequences in memory at once */
    pl_choice_recompute recompute;
    bool huge_pages;
    pl_dtype precision; /* f32, bf16 or f16: of activations while training. Changes what is computed */
} pl_choice;

#endif
