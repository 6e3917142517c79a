/* All of the work of a command, as it was looked over before anything ran: what is done in groups with a plan each
 * (stream/data.h), and the trainings of a config, one after the other. A plain value, for reports; the lock file of a
 * plan does not have it. */
#ifndef PL_PLAN_WORK_H
#define PL_PLAN_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pl_work_group {
    char *text;     /* what makes its shapes: "num_layers 4, base_channels 64"; the training's name. NULL: none */
    uint64_t items; /* that are made in it: operators, steps */
    uint64_t charged_bytes; /* placed quickly: its own plan is no larger, but for steps of 64 KiB of the heap */
    double seconds;         /* of all its items, predicted; negative: not known */
    double low, high;       /* between which that may lie */
    bool measured;          /* by kernels of its very shapes; else some follow from measured ones of other sizes */
} pl_work_group;

typedef struct pl_work {
    pl_work_group *group;
    size_t count, largest, measured; /* largest: the one that is charged most */
    uint64_t items;
    char said[400];       /* what it is done on: "30 texts: lines of t.txt"; "": nothing is said */
    double seconds;       /* negative: not known */
    double low, high;     /* between which that may lie */
    double busy;          /* so many times as long runs took when kernels were measured; 1: on a quiet machine */
    uint64_t done;        /* items whose results are there already */
    double left_seconds;  /* of the others, by all stages where they are known; negative: not known */
    double limit_seconds; /* a run ends by itself after so long; 0: none */
    /* Of trainings: the steps of an epoch of the only one (0: they are several), evaluations and checkpoints of all. */
    bool trains;
    uint64_t epoch_steps, evaluations, checkpoints;
    uint64_t
        patience; /* it ends early after so many evaluations without a better loss, of several the most; 0: all steps */
    double error; /* of what follows from other sizes, as a share; negative: not known */
} pl_work;

void pl_work_destroy(pl_work *); /* NULL is fine */

#endif
