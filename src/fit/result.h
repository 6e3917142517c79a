/* What a search found: every choice that was looked at, the front, the chosen one; and when nothing fits, why. A plain
 * value, for report/ to show. */
#ifndef PL_FIT_RESULT_H
#define PL_FIT_RESULT_H

#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "base/words.h"
#include "fit/choice.h"

#define PL_FIT_NONE SIZE_MAX
enum { PL_FIT_WORDS_BYTES = 200 }; /* of an axis */

typedef struct pl_fit_point {
    pl_choice choice;
    uint32_t rank;             /* of its micro-batch in the established order */
    uint64_t least_bytes;      /* no plan of this choice is charged less */
    uint64_t charged_bytes;    /* by the real planner, with pages of 4 KiB; 0: not planned, for it could not matter */
    uint64_t huge_bytes;       /* with huge pages; 0: they do not pay */
    double seconds, low, high; /* of a step, predicted, and between which times it may lie; negative: not known */
    double estimated_seconds;  /* of these, what was not measured but follows from other kernels or rates */
    double work;               /* a step in seconds of a made-up machine: orders what was never measured */
    bool front;                /* nothing that was looked at is both faster and smaller */
    bool rough;                /* charged_bytes: placed quickly; what care could save beside it would change nothing */
} pl_fit_point;

/* A budget below the floor: no advice about the model helps there. `floor` formats the floor's bytes. */
#define PL_FIT_NO_MODEL(floor)                                                                                         \
    "no model fits: the process alone (program, libraries, stacks, heap, kernel) is charged " floor " bytes before "   \
                                                                                                    "any"

struct pl_plan;
struct pl_recompute_frontier;
enum { PL_FIT_FRONTIERS_MAX = 16 }; /* of each precision four forms by guessed times, and one by measured times */

/* Something that is not so now, and what it would bring. */
typedef struct pl_fit_permission {
    const char *key, *value; /* "fit.allow", "optimizer_8bit"; constants */
    bool fits;
    uint64_t charged_bytes; /* of the fastest plan that fits then, or of the smallest; 0: hopeless, none was made */
    double seconds, work;   /* of its step, predicted without measuring anything; seconds negative: not known */
} pl_fit_permission;

enum { PL_FIT_PERMISSIONS_MAX = 24 };

typedef struct pl_fit_result {
    pl_fit_point *point;
    size_t count;
    struct pl_recompute_frontier *frontier[PL_FIT_FRONTIERS_MAX]; /* whose decisions the points carry */
    size_t frontier_count;
    size_t chosen, least;     /* indices; PL_FIT_NONE. least: the fewest bytes, sought only when nothing fits */
    uint64_t budget_bytes;    /* UINT64_MAX: none */
    uint64_t floor_bytes;     /* what a process without any model is charged; 0: not known */
    struct pl_plan *smallest; /* the plan of `least`; the result's own */
    pl_fit_permission permission[PL_FIT_PERMISSIONS_MAX]; /* each alone, tried when nothing fits */
    size_t permission_count, cheapest;                    /* of those that make it fit the fastest; PL_FIT_NONE */
    bool huge_pages;                                      /* of the chosen plan */
    bool trained;                                         /* else: repeated for each micro-batch */
    int64_t batch, rows;                                  /* samples of a step; items of a sample: its rows, or one */
    const pl_words *words;                                /* of the system */
    int threads;                                          /* of the whole team */
    /* What bf16 would bring, when f32 was chosen: the fastest such plan that was looked at and may fit, or the chosen
     * one with 16 bits, from kernels that were measured before. Bytes at least; 0: not asked. */
    pl_fit_point narrow;
} pl_fit_result;

void pl_fit_result_deinit(pl_fit_result *);

/* ---- axes.c: the choice in words ---- */
size_t pl_fit_axis_count(void);
const char *pl_fit_axis_name(size_t axis); /* "micro-batch" */
bool pl_fit_axis_applies(size_t axis,
                         const pl_fit_result *); /* else it is an axis of training, and nothing is trained */
/* "4 samples at once, 8 times a step"; two choices are the same on an axis when its words are. */
void pl_fit_axis_say(size_t axis, const pl_fit_result *, const pl_choice *, pl_str *);
void pl_fit_axis_short(size_t axis, const pl_fit_result *, const pl_choice *, pl_str *); /* "4" */
bool pl_fit_axis_same(size_t axis, const pl_fit_result *, const pl_choice *, const pl_choice *);
/* In brief, without what is as in the first choice: "micro-batch 4, recompute nothing". */
void pl_fit_choice_say(const pl_fit_result *, const pl_choice *, pl_str *);

#endif
