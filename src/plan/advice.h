/* What a plan says about its work beside the figures: which of its stages bounds the time, what single changes would
 * bring, what may go wrong, and which options are safe. Made where a command's work is known as a whole (plan/work.h);
 * a plain value, in one block of pl_alloc, for reports. The lock file of a plan does not have it. */
#ifndef PL_PLAN_ADVICE_H
#define PL_PLAN_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Filling goes on next to the work, results are copied between two runs of it. */
typedef enum pl_advice_stage_id {
    PL_ADVICE_FILL,
    PL_ADVICE_WORK,
    PL_ADVICE_WRITE,
    PL_ADVICE_STAGES
} pl_advice_stage_id;
enum { PL_ADVICE_CORES = PL_ADVICE_STAGES }; /* as what bounds the time */

typedef struct pl_advice_stage {
    char name[32]; /* "": the work has no such stage */
    uint32_t threads;
    double per_second; /* samples, where no other stage takes its cores; negative: not known */
    double cores;      /* that it keeps busy at that rate; waiting for a disk takes none */
    char basis[96];    /* how that is known, or why not */
} pl_advice_stage;

/* What a change does to the results. */
typedef enum pl_advice_effect { PL_ADVICE_SAME, PL_ADVICE_BITS, PL_ADVICE_OTHER } pl_advice_effect;

typedef struct pl_advice_change {
    char options[96]; /* as typed behind the command */
    pl_advice_effect effect;
    bool fits;              /* the budget */
    bool at_best;           /* per_second is a bound, not a prediction */
    bool measured;          /* its kernels were, at their shapes */
    uint32_t cores;         /* that it is with, for it needs more than there are; 0: those that there are */
    uint64_t charged_bytes; /* 0: not known */
    double per_second;      /* samples, of all stages together; negative: not known */
} pl_advice_change;

typedef struct pl_advice_risk {
    const char
        *name;      /* "results", "disk", "cache", "memory", "time limit" or what the samples are called; a constant */
    bool is_bad;    /* else it was looked at and is well, or nothing can be done about it */
    char text[500]; /* a sentence or two */
} pl_advice_risk;

enum { PL_ADVICE_CHANGES_MAX = 16, PL_ADVICE_RISKS_MAX = 6 };

typedef struct pl_advice {
    uint64_t samples; /* of all the work */
    uint64_t done;    /* of them, as the file of results says: the seconds are of the rest */
    double seconds;   /* of it at the rate of all stages together; negative: not known */
    double cores;     /* of this machine, that the process may use */
    pl_advice_stage stage[PL_ADVICE_STAGES];
    double per_second;              /* samples, of all stages together; negative: not known */
    int bound;                      /* the slowest stage; PL_ADVICE_CORES; −1: one is not known */
    double share[PL_ADVICE_STAGES]; /* of the seconds that the work takes; negative: not known */
    const char *cache_key;          /* where what is filled can be kept; NULL: nowhere */
    double cache_share;             /* of the seconds, that this saves at most; negative: not known */
    bool of_largest;                /* changes were planned for the largest shape alone */
    pl_advice_change change[PL_ADVICE_CHANGES_MAX];
    size_t changes;
    bool is_too_deep; /* for changes to be tried: each is planned */
    pl_advice_risk risk[PL_ADVICE_RISKS_MAX];
    size_t risks;
    /* What fits memory and disk. Where the work as it was asked for does: no options. */
    bool has_safe;
    char safe_options[200];
    uint64_t safe_charged_bytes, safe_disk_bytes;
    uint64_t safe_parts; /* of which the options do one; 1: it is all of the work */
    double safe_seconds; /* negative: not known */
} pl_advice;

#endif
