/* Placement: where in an arena each buffer goes, so that buffers alive at the same time never overlap and the arena is
 * as small as possible (dynamic storage allocation). A problem is a plain value: it knows nothing of graphs or tensors.
 *
 *     pl_place_buffer buffers[] = {pl_place_buffer_make(0, 4, 100), pl_place_buffer_make(2, 6, 50)};
 *     uint64_t offsets[2];
 *     pl_place_problem problem = {.buffers = buffers, .buffer_count = 2, .capacity = PL_PLACE_NONE};
 *     pl_place_solution solution = {.offsets = offsets};
 *     pl_place_options options = pl_place_options_default();
 *     pl_status status = pl_place(&problem, &options, &solution, &error);
 *
 * The answer does not depend on the order of the buffers, and without a time limit it is the same on every machine. */
#ifndef PLIMSOLL_PLACE_H
#define PLIMSOLL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PL_PLACE_NONE UINT64_MAX /* no capacity; no fixed offset; no work limit */

typedef struct pl_place_buffer {
    const char *id;        /* for messages and to tell twins apart; NULL: the index is its name */
    uint64_t lower, upper; /* alive during [lower, upper) */
    uint64_t size;         /* bytes; 0 is allowed and takes no room */
    uint64_t alignment;    /* its offset is a multiple of this power of two; 1 = anywhere */
    uint64_t fixed_offset; /* PL_PLACE_NONE: free; else it must lie exactly there */
} pl_place_buffer;

static inline pl_place_buffer pl_place_buffer_make(uint64_t lower, uint64_t upper, uint64_t size)
{
    pl_place_buffer buffer = {NULL, lower, upper, size, 1, PL_PLACE_NONE};
    return buffer;
}

typedef struct pl_place_problem {
    const pl_place_buffer *buffers;
    size_t buffer_count;
    uint64_t capacity; /* bytes of the arena; PL_PLACE_NONE: as small as can be found */
} pl_place_problem;

/* Every heuristic is a switch, so that each can be tested alone and in all combinations. None changes which
 * answers are right; they change how fast and how good an answer is found. */
typedef struct pl_place_options {
    /* greedy: one pass per order and per fit */
    bool by_size, by_area, by_duration, by_birth, by_conflicts;
    bool by_class;  /* by size rounded to a power of 2 or of 8, then by birth: similar sizes lie in lanes */
    bool by_moment; /* what is alive at the fullest moment first, the last to die lowest */
    bool first_fit, best_fit;
    bool skyline; /* lowest possible offset first, in three tie-breaking orders; up to 5,000 buffers */
    /* exact search */
    bool exact;
    bool time_decomposition;    /* parts of the time line that share no buffer are solved alone */
    bool floor_rise;            /* per moment: the floor rises to the lowest offset that a remaining buffer can have */
    bool section_bound;         /* per moment: what is left to place must fit above the lowest offsets open to it */
    bool dominance;             /* no gap into which an unplaced buffer would fit whole */
    bool twins;                 /* identical buffers are placed in one order only */
    bool memo;                  /* states that failed are remembered */
    bool dynamic_decomposition; /* like time_decomposition, after each placed buffer */
    bool fewest_answers;        /* decide first where the fewest buffers could come next */
    bool failure_weights;       /* and where the search has often failed */
    bool restarts;              /* many short attempts in differing orders, few long ones */
    bool squeaky_wheel;         /* what ended too high is placed earlier, repeatedly; for what the exact search left */
    uint64_t work_limit; /* elementary steps, roughly a nanosecond each; deterministic. PL_PLACE_NONE: no limit */
    /* Wall clock; 0: none (then the answer is reproducible). The work allowed is done first, then more for as long as
     * time is left and something can be improved. Every limit does the same things in the same order: more time is
     * never worse. */
    double time_limit_s;
} pl_place_options;

typedef enum pl_place_verdict {
    PL_PLACE_FITS,       /* peak ≤ capacity */
    PL_PLACE_IMPOSSIBLE, /* proven: no placement fits the capacity */
    PL_PLACE_NOT_FOUND,  /* none found within the limits; there may be one */
} pl_place_verdict;

typedef struct pl_place_solution {
    uint64_t *offsets; /* the caller's, buffer_count elements */
    uint64_t peak;     /* largest offset + size */
    /* no placement has a lower peak: the largest sum alive at once, alignment and fixed offsets included */
    uint64_t lower_bound;
    uint64_t bound_time; /* a moment at which the lower bound is reached */
    uint64_t peak_time;  /* a moment at which the peak is reached */
    bool optimal;        /* proven: peak = lower_bound, or everything below was searched */
    pl_place_verdict verdict;
    double seconds;
    uint64_t nodes, work;  /* of the exact search; of everything */
    const char *heuristic; /* which one won: "size first-fit", …, "exact search", a constant string */
} pl_place_solution;

/* Everything on, deterministic, at most about a second of work: what planning uses. */
PL_API pl_place_options pl_place_options_default(void);

/* Fills *solution. PL_E_BUDGET when the capacity is not met: the sentence says by how many bytes and when, the verdict
 * whether that is proven, and the offsets hold the best placement known all the same. */
PL_API PL_MUST_USE pl_status pl_place(const pl_place_problem *, const pl_place_options *, pl_place_solution *,
                                      pl_error *);

/* The judge: shares no code with the placer. PL_E_INTERNAL names what is wrong; *peak_bytes (or NULL) gets the peak.
 * Does not judge the capacity. n log n in the buffers; PL_E_NOMEM when memory is refused. */
PL_API PL_MUST_USE pl_status pl_place_validate(const pl_place_problem *, const uint64_t *offsets, uint64_t *peak_bytes,
                                               pl_error *);

/* A problem read from a CSV file: a header with the columns id, lower, upper, size in any order and, if wanted,
 * alignment and offset (fixed; an empty cell is free). Sizes may carry units. Owns its buffers and their ids. */
typedef struct pl_place_table pl_place_table;
PL_API PL_MUST_USE pl_status pl_place_table_read(const char *path, pl_place_table **, pl_error *); /* "-" = stdin */
PL_API PL_MUST_USE pl_status pl_place_table_parse(const char *text, size_t bytes, const char *name, pl_place_table **,
                                                  pl_error *);
/* A view into the table, without capacity. */
PL_API pl_place_problem pl_place_table_problem(const pl_place_table *);
PL_API void pl_place_table_destroy(pl_place_table *);

/* Text of a problem with its solution, in a block for pl_place_text_free. CSV: the rows in their order, with offset.
 * JSON: schema plimsoll.place/1. SVG: the arena, time × offset. */
typedef enum pl_place_form { PL_PLACE_CSV, PL_PLACE_JSON, PL_PLACE_SVG } pl_place_form;
PL_API PL_MUST_USE pl_status pl_place_print(const pl_place_problem *, const pl_place_solution *, pl_place_form,
                                            char **text, size_t *bytes, pl_error *);
PL_API void pl_place_text_free(char *text);

/* "500MB", "1MiB", "4096": 0 on success. Bare numbers are exact up to 64 bits. */
PL_API int pl_place_parse_size(const char *text, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
