/* What a pretrained model holds, and how fast it is, in contexts of several lengths, each planned by itself. A plain
 * value, in one block of pl_alloc, for reports. The lock file of a plan does not have it. */
#ifndef PL_PLAN_CONTEXTS_H
#define PL_PLAN_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_CONTEXTS_MAX = 8 };

typedef struct pl_context {
    uint64_t length;                                 /* in items */
    uint64_t weight_bytes, cache_bytes, other_bytes; /* other: the rest of the arena */
    uint64_t charged_bytes;                          /* all of the process */
    bool fits;                                       /* the budget and the machine */
    double item_seconds;                             /* of one more item at the end of the context */
} pl_context;

typedef struct pl_contexts {
    pl_context row[PL_CONTEXTS_MAX];
    size_t count, own;     /* own: the row of this plan */
    uint64_t room_bytes;   /* that there are */
    const char *room;      /* what allows it: "the budget"; a constant */
    uint64_t prompt;       /* items of a prompt … */
    double prompt_seconds; /* … until the first new one is there */
    char basis[160];       /* what the seconds rest on */
} pl_contexts;

#endif
