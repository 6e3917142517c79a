/* Models small enough to interpret, from a seed, and the road from config to plan with the legality check between all
 * passes. Tokens, targets and starting weights are pure functions of (seed, step, sample, place), so the same data
 * reaches any micro-batch, the interpreter and the compiled program alike. */
#ifndef PL_TESTS_REFERENCE_TINY_H
#define PL_TESTS_REFERENCE_TINY_H

#include "config/config.h"
#include "plan/plan.h"
#include "reference/interpret.h"
#include "rewrite/passes.h"
#include "run/program.h"

typedef struct tiny {
    pl_config config;
    uint64_t seed, rolls;
    int64_t vocab, micro;
    uint64_t trips;
    uint64_t missing;               /* sequences that the last micro-batch has not: nothing is counted there */
    bool recompute, fuse, in_place; /* which rewrites */
    bool update_early;
    int64_t layer_major, layer_major_keep; /* 0: off */
    int64_t feed_forward_rows;             /* 0: off */
    bool update;                           /* with the optimizer's nodes */
    pl_dtype precision;                    /* of activations */
    pl_dtype moments;                      /* and their state in this form (rewrite/optimizer_state.c); 0: f32 */
    bool keep_gradients;                   /* as outputs: they are still there when the program has run */
    int frozen;                            /* about so many in a hundred weights are, by seed and name */
    const pl_recompute_decision *decision; /* instead of what is cheap; for tiny_differentiated */
} tiny;

/* A gpt or mlp with every switch of the model drawn from the seed; all rewrites on, no optimizer. */
void tiny_random(tiny *, uint64_t seed);
int64_t tiny_roll(tiny *, int64_t low, int64_t high);       /* both included; the next number of the seed */
double tiny_uniform(uint64_t seed, uint64_t a, uint64_t b); /* [0, 1), a function of its arguments */
void tiny_print(const tiny *);                              /* what this seed is, to stderr: before a failure */
bool tiny_is_frozen(const tiny *, const char *weight);

int32_t tiny_token(const tiny *, uint64_t step, uint64_t sample, int64_t place);
int32_t tiny_target(const tiny *, uint64_t step, uint64_t sample, int64_t place); /* sometimes −1 */
double tiny_token_scale(const tiny *, uint64_t step);                             /* 1 / counted tokens of the step */

/* ---- graphs; each fails the running test when a pass fails or leaves the graph illegal ---- */
void tiny_check(const pl_graph *, pl_graph_stage);
pl_graph *tiny_model(const tiny *);          /* as the model builds it */
pl_graph *tiny_forward(const tiny *);        /* that, all programs bound */
pl_graph *tiny_differentiated(const tiny *); /* as recompute finds it: tiled, nothing else rewritten or bound */
pl_graph *tiny_compiled(const tiny *);       /* differentiated, rewritten, bound */
pl_plan *tiny_plan(const tiny *, pl_team);   /* of that */

/* ---- the interpreter ---- */
/* Every weight gets its first value by "init" and is then moved, so that biases and gains are not all 0 and 1. */
void tiny_reference_weights(const tiny *, reference *);
void tiny_reference_step(const tiny *, reference *, const char *program, uint64_t step);

/* ---- the compiled program, over memory filled with not-a-number ---- */
typedef struct tiny_run {
    pl_plan *plan;
    pl_program *program;
    unsigned char *memory;
} tiny_run;
tiny_run tiny_run_begin(const tiny *, pl_team);
void tiny_run_weights(const tiny *, tiny_run *); /* the same as the interpreter's, rounded */
void tiny_run_step(const tiny *, tiny_run *, const char *program, uint64_t step);
void tiny_run_end(tiny_run *);

#endif
