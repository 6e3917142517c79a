/* The judge of the planners: Dijkstra over (which nodes ever ran, which results are resident), one computation or one
 * free a step, nothing clever. Slow, plain, and its own code. Costs are whole numbers, nodes at most 32. */
#ifndef PL_TESTS_RECOMPUTE_ORACLE_H
#define PL_TESTS_RECOMPUTE_ORACLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/recompute.h"

enum { ORACLE_TABLE = 1 << 21, ORACLE_COSTS = 4096 };
enum { ORACLE_IMPOSSIBLE = -1, ORACLE_TOO_LARGE = -2 };

typedef struct oracle {
    const pl_recompute_problem *problem;
    uint64_t key[ORACLE_TABLE]; /* ran and resident; 0: empty slot (nothing ever ran) */
    int cost[ORACLE_TABLE];
    uint32_t next[ORACLE_TABLE], before[ORACLE_TABLE]; /* slot + 1 of the neighbours in the bucket */
    uint32_t bucket[ORACLE_COSTS];
    uint32_t states;
} oracle;

/* A slot for this state; ORACLE_TABLE when the table is full. */
static inline uint32_t oracle_slot(oracle *o, uint64_t key)
{
    uint32_t slot = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 43);
    while (o->key[slot] && o->key[slot] != key) slot = (slot + 1) % ORACLE_TABLE;
    if (o->key[slot] == key) return slot;
    if (++o->states > ORACLE_TABLE / 4) return ORACLE_TABLE;
    o->key[slot] = key;
    o->cost[slot] = INT32_MAX;
    return slot;
}

static inline void oracle_unlink(oracle *o, uint32_t slot)
{
    uint32_t next = o->next[slot], before = o->before[slot];
    if (next) o->before[next - 1] = before;
    if (before)
        o->next[before - 1] = next;
    else
        o->bucket[o->cost[slot]] = next;
}

/* Queues the state, or moves it to a lower cost. 0: no room. */
static inline int oracle_reach(oracle *o, uint32_t ran, uint32_t resident, int cost)
{
    uint64_t key = (uint64_t)ran << 32 | resident;
    uint32_t slot = oracle_slot(o, key);
    if (slot == ORACLE_TABLE || cost >= ORACLE_COSTS) return 0;
    if (o->cost[slot] != INT32_MAX) {
        if (o->cost[slot] <= cost) return 1;
        oracle_unlink(o, slot);
    }
    o->cost[slot] = cost;
    o->before[slot] = 0;
    o->next[slot] = o->bucket[cost];
    if (o->next[slot]) o->before[o->next[slot] - 1] = slot + 1;
    o->bucket[cost] = slot + 1;
    return 1;
}

static inline int oracle_expand(oracle *o, uint32_t ran, uint32_t resident, int cost)
{
    const pl_recompute_problem *p = o->problem;
    uint64_t bytes = p->fixed;
    for (uint32_t v = 0; v < p->node_count; v++)
        if (resident >> v & 1) bytes += p->nodes[v].size;
    for (uint32_t v = 0; v < p->node_count; v++) {
        const pl_recompute_node *node = &p->nodes[v];
        uint32_t bit = UINT32_C(1) << v, missing = 0;
        if (resident & bit) {
            if (!node->keep && !oracle_reach(o, ran, resident & ~bit, cost)) return 0;
            continue;
        }
        for (size_t k = 0; k < node->dep_count; k++) missing |= ~resident >> node->deps[k] & 1;
        if (missing || bytes + node->size + node->work > p->budget) continue;
        if (!oracle_reach(o, ran | bit, resident | bit, cost + (int)node->cost)) return 0;
    }
    return 1;
}

/* The least cost of a schedule within the budget, or why there is none. */
static inline int oracle_solve(oracle *o, const pl_recompute_problem *problem)
{
    uint32_t all = (uint32_t)((UINT64_C(1) << problem->node_count) - 1);
    memset(o, 0, sizeof *o);
    o->problem = problem;
    if (!oracle_expand(o, 0, 0, 0)) return ORACLE_TOO_LARGE;
    for (int cost = 0; cost < ORACLE_COSTS; cost++) {
        while (o->bucket[cost]) {
            uint32_t slot = o->bucket[cost] - 1, ran = (uint32_t)(o->key[slot] >> 32);
            oracle_unlink(o, slot);
            if (ran == all) return cost;
            if (!oracle_expand(o, ran, (uint32_t)o->key[slot], cost)) return ORACLE_TOO_LARGE;
        }
    }
    return ORACLE_IMPOSSIBLE;
}

#endif
