/* A program: a plan bound to kernels and real addresses, as a flat array of calls that asks for no memory. All programs
 * of the plan (init, train, evaluate, generate) are bound at once, over the same memory. It knows no config, no file
 * and no model: where data comes from is the caller's hook. */
#ifndef PL_RUN_PROGRAM_H
#define PL_RUN_PROGRAM_H

#include "plimsoll/run.h"

#include "backend/backend.h"
#include "plan/plan.h"
#include "run/clock.h"

enum { PL_REGION_DEPTH_MAX = 8 };

/* trip[d] counts the trips of the d-th region around a node, the outermost first; depth: how many there are. */
typedef struct pl_trips {
    uint64_t trip[PL_REGION_DEPTH_MAX];
    uint32_t depth;
} pl_trips;

/* Of the innermost region. */
static inline uint64_t pl_trips_last(const pl_trips *t) { return t->depth ? t->trip[t->depth - 1] : 0; }

typedef struct pl_program_hooks {
    /* For each load node: fill the ports. For each store node: take them; they are there during the call. NULL: nothing
     * is done. What they return other than PL_OK ends the run of the program and is handed on. */
    pl_status (*load)(void *context, const pl_trips *, const pl_load_call *, pl_error *);
    pl_status (*store)(void *context, const pl_trips *, const pl_store_call *, pl_error *);
    void (*trip)(void *context); /* NULL, or called after each trip of a region */
    void *context;
    bool single_trip;                             /* every region once: to execute each kernel before "committed" */
    double *seconds;                              /* [nodes] or NULL: time spent in each node is added */
    pl_run_clock *clock;                          /* NULL, or told where the time of the program goes */
    void (*begins)(void *context, uint32_t node); /* NULL, or called before each node */
    /* NULL, or called after each node with its times (CLOCK_MONOTONIC, seconds). */
    pl_status (*timed)(void *context, uint32_t node, double begin, double end, pl_error *);
} pl_program_hooks;

/* An arena's memory: aligned to PL_PLAN_ALIGNMENT. */
typedef struct pl_program_memory {
    void *base;
    uint64_t bytes;
} pl_program_memory;

/* pl_program_create for plans of more than one space: memory as the plan's arenas. */
pl_status pl_program_create_in(const pl_plan *, const pl_program_memory memory[PL_SPACES_MAX], pl_program **,
                               pl_error *);
/* At addresses that nobody touches: for who only looks at the program. */
pl_status pl_program_create_nowhere(const pl_plan *, pl_program **, pl_error *);

double pl_run_now(void); /* CLOCK_MONOTONIC, seconds: the one clock of a run; never goes back, even if that does */

/* Runs one of the plan's programs (a root region) from its first node to its last. */
pl_status pl_program_run(pl_program *, pl_id program, const pl_program_hooks *, pl_error *);

/* How many trips its regions make in one run, all of them counted: so often is hooks->trip called. */
uint64_t pl_program_count_trips(const pl_program *, pl_id program);

/* One line an instruction: regions, calls, where their values lie in the arena. */
void pl_program_print(const pl_program *, pl_str *out);
void *pl_program_address(const pl_program *, pl_id value);

#endif
