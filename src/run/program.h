/* A program: a plan bound to kernels and real addresses, as a flat array of calls that asks for no memory. All programs of
 * the plan (init, train, evaluate, generate) are bound at once, over the same memory. It knows no config, no file and no
 * model: where data comes from is the caller's hook. */
#ifndef PL_RUN_PROGRAM_H
#define PL_RUN_PROGRAM_H

#include "backend/backend.h"
#include "plan/plan.h"

typedef struct pl_program pl_program;

/* Called for each load node: fill call->tokens and call->targets. `iteration` counts the trips of its region. What it
 * returns other than PL_OK ends the run of the program and is handed on. */
typedef struct pl_program_hooks {
    pl_status (*load)(void *context, uint64_t iteration, const pl_load_call *call, pl_error *);
    void *context;
    bool single_trip;  /* every region once: to execute each kernel before "committed" */
    double *seconds;   /* [nodes] or NULL: time spent in each node is added */
} pl_program_hooks;

/* The plan is legal (pl_plan_check). memory: at least plan->arena_bytes, aligned to PL_PLAN_ALIGNMENT, the caller's; the plan must outlive the program. */
pl_status pl_program_create(const pl_plan *, void *memory, uint64_t bytes, pl_program **, pl_error *);
void pl_program_destroy(pl_program *);

/* Runs one of the plan's programs (a root region) from its first node to its last. */
pl_status pl_program_run(pl_program *, pl_id program, const pl_program_hooks *, pl_error *);

/* The bytes of a value by name; NULL when the graph has none or no node touches it. */
void *pl_program_find(const pl_program *, const char *name);
void *pl_program_address(const pl_program *, pl_id value);

#endif
