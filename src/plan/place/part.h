/* The placer's own view of a problem: items sorted by intrinsic keys (so that the order of the rows cannot matter),
 * time compressed to sections, and cut into parts that share no buffer.
 *
 *     time      0  1  2  3  4  5  6     A section is a largest set of items alive together: only there can the sum be
 *     a         |--------|              largest. Here {a, b} and {b, c}: two sections. An item spans the half-open
 *     b            |-----------|        range [first, last) of sections; two items conflict exactly when their ranges
 *     c                  |-----|        overlap: a ends where c begins, they do not. */
#ifndef PL_PLAN_PLACE_PART_H
#define PL_PLAN_PLACE_PART_H

#include "plimsoll/place.h"
#include "base/error.h"

#define PLACE_NO_ITEM UINT32_MAX

enum { PLACE_WHEEL_STARTS = 8 };

typedef struct place_item {
    uint64_t lower, upper, size, alignment, fixed; /* fixed: PL_PLACE_NONE = free */
    const char *id;
    uint32_t first, last; /* sections [first, last) of its part */
    uint32_t buffer;      /* index in the problem */
} place_item;

typedef struct place_part {
    place_item *items; /* sorted; not owned */
    uint32_t count, section_count;
    uint64_t *row_begin; /* conflicts of item i: row[row_begin[i] … row_begin[i+1]) */
    uint32_t *row; /* NULL before place_part_link or when there would be too many: then they are found by scanning */
    uint32_t *scratch;
    uint32_t *degree;       /* number of conflicts */
    uint64_t *section_sum;  /* sum of sizes alive */
    uint64_t *section_time; /* a moment inside the section */
    uint64_t lower_bound, bound_time;
    uint64_t grain; /* divides every offset and peak of a placement in which all buffers rest on something */
    uint64_t span;  /* time from the first birth to the last end */
} place_part;

/* part.c */
pl_status place_part_init(place_part *, place_item *items, uint32_t count, pl_error *);
void place_part_deinit(place_part *);
/* Builds the lists of conflicts, unless they would be too long: for those who ask for them often. */
pl_status place_part_link(place_part *, pl_error *);
/* The conflicts of an item; valid until the next call. */
const uint32_t *place_part_conflicts(const place_part *, uint32_t item, uint32_t *count);

/* items.c: the checked, sorted items of a problem (without the empty ones), for pl_free. */
pl_status place_items_build(const pl_place_problem *, place_item **items, uint32_t *count, pl_error *);
/* How many items from the first on belong to the first part of the time line. */
uint32_t place_items_part_length(const place_item *items, uint32_t count);

/* What all methods share while they work on a part. */
typedef struct place_run {
    const pl_place_options *options;
    uint64_t work, work_limit; /* elementary steps done and allowed, over all parts */
    uint64_t nodes;
    uint64_t attempts;  /* of the exact search, at all capacities */
    double deadline;    /* of pl_place_now, 0 = none */
    uint64_t next_look; /* work at which to look at the clock again */
    bool last_part;     /* time left may be spent: no other part needs it */
    bool out_of_time;
} place_run;

double place_now(void);
/* Books work and says whether the limits are passed. */
bool place_run_spend(place_run *, uint64_t work);

/* The best placement of a part so far. */
typedef struct place_best {
    uint64_t *offsets; /* by item */
    uint64_t *trial;   /* by item: where methods build theirs */
    uint64_t peak;
    uint64_t target; /* good enough: stop there */
    const char *heuristic;
    uint32_t turns;                     /* of the squeaky wheel so far */
    uint64_t least[PLACE_WHEEL_STARTS]; /* what each start of the wheel has led to */
} place_best;

/* quick.c: a first placement that takes next to no time; for best->peak that is PL_PLACE_NONE. */
pl_status place_quick(const place_part *, place_best *, pl_error *);
/* greedy.c: all passes that the options ask for, until the target is met. */
pl_status place_greedy(place_part *, place_run *, place_best *, pl_error *);
/* squeaky.c: places again and again, what ended too high earlier each time; goes on where its last call ended. */
pl_status place_squeaky(const place_part *, place_run *, place_best *, uint64_t work_limit, bool endless, pl_error *);

/* fit.c: places items in this order; returns the peak, or PL_PLACE_NONE as soon as it would not be below `ceiling` or a
 * limit is passed. Without a ceiling there is always a placement: out of time, the rest is stacked up. */
#define PLACE_NO_CEILING (PL_PLACE_NONE - 1) /* any peak will do, but so will none */
typedef struct place_fitter place_fitter;
place_fitter *place_fitter_create(const place_part *); /* NULL when memory is refused */
void place_fitter_destroy(place_fitter *);
uint64_t place_fitter_run(place_fitter *, place_run *, const uint32_t *order, bool best_fit, uint64_t ceiling,
                          uint64_t *offsets);

/* exact.c: is there a placement with a peak of at most `capacity`? */
typedef enum place_answer { PLACE_YES, PLACE_NO, PLACE_UNKNOWN } place_answer;
typedef struct place_search place_search;
place_search *place_search_create(const place_part *, place_run *); /* NULL when memory is refused */
void place_search_destroy(place_search *);
/* From now on some attempts try first what lies lowest in this placement (by item; it may change between tries). */
void place_search_follow(place_search *, const uint64_t *offsets);
/* On yes `offsets` (by item) holds it. PL_E_NOMEM when memory was refused on the way. */
pl_status place_search_try(place_search *, uint64_t capacity, uint64_t work_limit, uint64_t *offsets,
                           place_answer *answer, pl_error *);

#endif
