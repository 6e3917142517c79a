/* The states of the exact search: a table found by hash, and a heap of those to look at. A state is two sets of nodes,
 * `ran` (ever) and `held` (resident), with the least known cost to get there and the step that did. */
#ifndef PL_PLAN_RECOMPUTE_STATES_H
#define PL_PLAN_RECOMPUTE_STATES_H

#include "graph.h"

enum { STATE_WORDS_MAX = RECOMPUTE_EXACT_NODES_MAX / 64 };

#define STATE_NONE UINT32_MAX

typedef struct state_record {
    double cost, to_come;  /* so far; from here to the end, at least */
    uint32_t parent, node; /* the state before, and what was computed from there; STATE_NONE: the beginning */
} state_record;

typedef struct states states;

static inline double state_estimate(const state_record *r) { return r->cost + r->to_come; }

states *states_create(uint32_t words, size_t most); /* NULL when memory is refused */
void states_destroy(states *);

typedef enum states_answer { STATES_KEPT, STATES_KNOWN, STATES_FULL, STATES_NO_MEMORY } states_answer;
/* Books a way to (ran, held); a way that is no cheaper than a known one is forgotten. */
states_answer states_offer(states *, const uint64_t *ran, const uint64_t *held, state_record);

/* STATE_NONE: it was never met. */
uint32_t states_find(const states *, const uint64_t *ran, const uint64_t *held);

/* Takes the state with the least estimate, among equals the one that ran most nodes; STATE_NONE when none is left. */
uint32_t states_take(states *);
/* The least estimate of those not taken; infinite when there is none. */
double states_least(const states *);

const state_record *states_record(const states *, uint32_t state);
const uint64_t *states_ran(const states *, uint32_t state);
const uint64_t *states_held(const states *, uint32_t state);

#endif
