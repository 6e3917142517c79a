/* Recompute problems for the tests, from a seed: chains forward and backward (even and uneven), random graphs, blocks
 * as a transformer has, forward and backward, layers that read each other at random, and nodes that read some of the
 * last ones. */
#ifndef PL_TESTS_RECOMPUTE_CASES_H
#define PL_TESTS_RECOMPUTE_CASES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/recompute.h"

enum { CASE_NODES_MAX = 20000, CASE_DEPS_MAX = 8 };

typedef enum case_kind { CASE_CHAIN, CASE_UNEVEN_CHAIN, CASE_RANDOM, CASE_BLOCKS, CASE_KINDS } case_kind;
static const char *const case_kind_names[CASE_KINDS] = {"chain", "uneven chain", "random", "blocks"};

typedef struct recompute_case {
    pl_recompute_node nodes[CASE_NODES_MAX];
    uint32_t deps[CASE_NODES_MAX][CASE_DEPS_MAX];
    size_t count;
    uint64_t fixed, random;
} recompute_case;

static inline uint64_t case_random(recompute_case *c, uint64_t below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = c->random ^ (c->random >> 29);
    return (x * UINT64_C(0x9e3779b97f4a7c15) >> 33) % below;
}

static inline uint32_t case_add(recompute_case *c, double cost, uint64_t size)
{
    if (c->count == CASE_NODES_MAX) abort();
    c->nodes[c->count] = (pl_recompute_node){.cost = cost, .size = size, .deps = c->deps[c->count]};
    return (uint32_t)c->count++;
}

static inline void case_read(recompute_case *c, uint32_t reader, uint32_t input)
{
    pl_recompute_node *node = &c->nodes[reader];
    for (size_t k = 0; k < node->dep_count; k++)
        if (node->deps[k] == input) return;
    if (node->dep_count == CASE_DEPS_MAX) abort();
    c->deps[reader][node->dep_count++] = input;
}

static inline void case_begin(recompute_case *c, uint64_t seed)
{
    c->count = 0;
    c->fixed = 0;
    c->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static inline pl_recompute_problem case_problem(const recompute_case *c, uint64_t budget)
{
    return (pl_recompute_problem){.nodes = c->nodes, .node_count = c->count, .fixed = c->fixed, .budget = budget};
}

/* x0 … xn, then each gradient from the one behind it and the input of its layer. */
static inline void case_chain(recompute_case *c, uint32_t layers, bool uneven)
{
    for (uint32_t k = 0; k <= layers; k++) {
        uint32_t x = case_add(c,
                              k == 0   ? 0
                              : uneven ? 1 + (double)case_random(c, 9)
                                       : 1,
                              uneven ? 1 + case_random(c, 5) : 1);
        if (k > 0) case_read(c, x, x - 1);
    }
    for (uint32_t k = layers + 1; k-- > 0;) {
        uint32_t g = case_add(c, uneven ? 1 + (double)case_random(c, 9) : 1, uneven ? 1 + case_random(c, 5) : 1);
        case_read(c, g, g - 1);
        if (k > 0) case_read(c, g, k - 1);
    }
}

/* A chain forward with skips, and its backward pass: each gradient reads the one behind it, and its node's inputs. */
static inline void case_random_graph(recompute_case *c, uint32_t half)
{
    for (uint32_t k = 0; k < half; k++) {
        uint32_t v = case_add(c, (double)case_random(c, 10), 1 + case_random(c, 8));
        if (k > 0) case_read(c, v, case_random(c, 4) ? v - 1 : (uint32_t)case_random(c, v));
        if (k > 1 && case_random(c, 3) == 0) case_read(c, v, (uint32_t)case_random(c, v));
    }
    for (uint32_t k = half; k-- > 0;) {
        uint32_t g = case_add(c, 1 + (double)case_random(c, 12), 1 + case_random(c, 8));
        c->nodes[g].work = case_random(c, 3);
        case_read(c, g, case_random(c, 5) ? g - 1 : half - 1 + (uint32_t)case_random(c, g - half + 1));
        for (size_t d = 0; d < c->nodes[k].dep_count; d++) case_read(c, g, c->nodes[k].deps[d]);
        if (case_random(c, 3) == 0) case_read(c, g, k);
    }
}

/* Forward: norm, matrix, attention, sum, wide matrix, activation, matrix, sum. Backward the same from the end, each
 * with what it saved; gradients of weights are small, and nobody reads them (in one block there is one of them). */
static inline void case_blocks(recompute_case *c, uint32_t layers, uint64_t tensor)
{
    enum { PARTS = 6 };
    static const double costs[PARTS] = {1, 60, 20, 80, 2, 80};
    static const unsigned sizes[PARTS] = {1, 3, 1, 4, 4, 1};
    uint32_t x = case_add(c, 0, tensor);
    for (uint32_t l = 0; l < layers; l++) {
        uint32_t before = x;
        for (uint32_t k = 0; k < PARTS; k++) {
            uint32_t v = case_add(c, costs[k], sizes[k] * tensor);
            case_read(c, v, v - 1);
        }
        x = case_add(c, 1, tensor);
        case_read(c, x, x - 1);
        case_read(c, x, before);
    }
    uint32_t g = case_add(c, 40, tensor);
    case_read(c, g, x);
    for (uint32_t l = layers; l-- > 0;) {
        uint32_t first = 1 + l * (PARTS + 1), sum = g;
        for (uint32_t k = PARTS; k-- > 0;) {
            uint32_t saved = first + k - 1, d = case_add(c, 1 + costs[k], (k > 0 ? sizes[k - 1] : 1) * tensor);
            case_read(c, d, g);
            if (k != 1) case_read(c, d, saved);
            if (k % 2 && (layers > 1 || k == 1)) {
                uint32_t w = case_add(c, costs[k], 1 + tensor / 4);
                case_read(c, w, g);
                case_read(c, w, saved);
            }
            g = d;
        }
        uint32_t d = case_add(c, 2, tensor);
        case_read(c, d, g);
        case_read(c, d, sum);
        g = d;
    }
}

/* Each node reads some of the layer before: a greedy pass computes the same again and again, and may never end. One
 * node in `zeros` (0: none) has no bytes. */
static inline void case_layers(recompute_case *c, uint32_t layers, uint32_t width, uint32_t reads, uint64_t zeros)
{
    for (uint32_t l = 0; l < layers; l++)
        for (uint32_t k = 0; k < width; k++) {
            bool none = zeros && case_random(c, zeros) == 0;
            uint32_t v = case_add(c, 1 + (double)case_random(c, 50), none ? 0 : 1 + case_random(c, 100));
            for (uint32_t d = 0; l > 0 && d < reads; d++)
                case_read(c, v, (l - 1) * width + (uint32_t)case_random(c, width));
        }
}

/* Each node reads some of the few before it: next to nothing is gained by computing again, much by another order. */
static inline void case_window(recompute_case *c, uint32_t count, uint32_t window, uint32_t reads, uint64_t grain)
{
    for (uint32_t k = 0; k < count; k++) {
        uint32_t v = case_add(c, 1 + (double)case_random(c, 50), grain * (1 + case_random(c, 100)));
        for (uint32_t d = 0; v > 0 && d < reads; d++)
            case_read(c, v, v - 1 - (uint32_t)case_random(c, v < window ? v : window));
    }
}

/* A small problem of this kind, of at most 25 nodes. */
static inline void case_small(recompute_case *c, uint64_t seed, case_kind kind)
{
    case_begin(c, seed);
    switch (kind) {
    case CASE_CHAIN:
    case CASE_UNEVEN_CHAIN:
        case_chain(c, 3 + (uint32_t)case_random(c, 7), kind == CASE_UNEVEN_CHAIN);
        break;
    case CASE_RANDOM:
        case_random_graph(c, 4 + (uint32_t)case_random(c, 7));
        break;
    default:
        case_blocks(c, 1, 1 + case_random(c, 3));
    }
    if (case_random(c, 3) == 0) c->nodes[0].keep = true;
    if (case_random(c, 5) == 0) c->nodes[case_random(c, c->count)].keep = true;
    if (case_random(c, 4) == 0) c->fixed = 1 + case_random(c, 5);
}

#endif
