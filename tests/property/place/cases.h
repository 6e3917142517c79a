/* Placement problems for the tests: small random ones, tilings with a known optimum (of the kind that defeats greedy
 * orders) and training steps of a transformer. All from a seed. */
#ifndef PL_TESTS_PLACE_CASES_H
#define PL_TESTS_PLACE_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/place.h"

enum { CASE_MAX = 32768 };

typedef struct place_case {
    pl_place_buffer buffers[CASE_MAX];
    char ids[CASE_MAX][16];
    uint64_t offsets[CASE_MAX];
    size_t count;
    uint64_t random;
} place_case;

static inline uint64_t case_random(place_case *c, uint64_t below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = c->random ^ (c->random >> 29);
    return (x * UINT64_C(0x9e3779b97f4a7c15) >> 33) % below;
}

static inline pl_place_buffer *case_add(place_case *c, uint64_t lower, uint64_t upper, uint64_t size)
{
    if (c->count == CASE_MAX) abort();
    pl_place_buffer *b = &c->buffers[c->count];
    *b = pl_place_buffer_make(lower, upper, size);
    snprintf(c->ids[c->count], sizeof c->ids[0], "b%zu", c->count);
    b->id = c->ids[c->count++];
    return b;
}

static inline void case_begin(place_case *c, uint64_t seed)
{
    c->count = 0;
    c->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static inline pl_place_problem case_problem(const place_case *c)
{
    return (pl_place_problem){.buffers = c->buffers, .buffer_count = c->count, .capacity = PL_PLACE_NONE};
}

/* Cuts the rectangle in two, again and again: time × offset is tiled without a hole, so the optimum is the height. */
static inline void case_cut(place_case *c, uint64_t lower, uint64_t upper, uint64_t size, unsigned pieces,
                            uint64_t step)
{
    uint64_t times = upper - lower, heights = size / step;
    if (pieces <= 1 || (times < 2 && heights < 2)) {
        case_add(c, lower, upper, size);
        return;
    }
    unsigned first = pieces / 2 - (unsigned)case_random(c, pieces / 4 + 1) + (unsigned)case_random(c, pieces / 4 + 1);
    if (!first) first = 1;
    double share = 0.25 + 0.5 * (double)case_random(c, 1000) / 1000;
    if (heights < 2 || (times >= 2 && case_random(c, 2))) {
        uint64_t cut = (uint64_t)((double)times * share);
        cut = cut ? cut : 1;
        case_cut(c, lower, lower + cut, size, first, step);
        case_cut(c, lower + cut, upper, size, pieces - first, step);
    } else {
        uint64_t cut = (uint64_t)((double)heights * share);
        cut = (cut ? cut : 1) * step;
        case_cut(c, lower, upper, cut, first, step);
        case_cut(c, lower, upper, size - cut, pieces - first, step);
    }
}

/* A tiling of about so many pieces, of which `drop_percent` are left out where that leaves some moment full. */
static inline void case_tiling(place_case *c, uint64_t seed, unsigned pieces, uint64_t height, unsigned drop_percent)
{
    case_begin(c, seed);
    case_cut(c, 0, 1000000, height, pieces, 1024);
    uint64_t keep = 1 + case_random(c, 999998); /* nothing alive here is left out */
    size_t out = 0;
    for (size_t i = 0; i < c->count; i++) {
        pl_place_buffer b = c->buffers[i];
        bool here = b.lower <= keep && keep < b.upper;
        if (!here && case_random(c, 100) < drop_percent) continue;
        b.id = c->ids[out];
        c->buffers[out++] = b;
    }
    c->count = out;
}

/* One step of a transformer that saves its activations: forward layer by layer, backward in reverse; gradients of the
 * weights live to the end. tensor = bytes of one [batch, sequence, width]. */
static inline void case_transformer(place_case *c, unsigned layers, uint64_t tensor, bool naive)
{
    static const struct {
        unsigned quarters, born, uses;
    } saved[] = {{4, 1, 1}, {12, 2, 2}, {4, 4, 2}, {4, 5, 1}, {4, 6, 1}, {16, 7, 2}, {16, 8, 2}, {4, 10, 1}};
    enum { STEPS = 12 };
    uint64_t half = (uint64_t)layers * STEPS + 2, end = 2 * half + 4;
    case_begin(c, 1);
    case_add(c, 0, end - 1, tensor);
    for (unsigned l = 0; l < layers; l++) {
        uint64_t t = 1 + (uint64_t)l * STEPS, back = end - 2 - t;
        for (size_t k = 0; k < sizeof saved / sizeof *saved; k++) {
            uint64_t size = tensor / 4 * saved[k].quarters;
            case_add(c, t + saved[k].born, back - saved[k].born + saved[k].uses, size);
            case_add(c, back - saved[k].born - 1, back - saved[k].born + 1, size); /* its gradient */
        }
        case_add(c, t + 1, back, tensor / 128); /* statistics of a norm */
        if (naive) case_add(c, t + 3, back - 2, 4 * tensor);
        case_add(c, t + 4, t + 6, tensor);
        case_add(c, back - 6, end, tensor / 8); /* gradient of a matrix */
        case_add(c, back - 9, end, tensor / 32);
    }
    case_add(c, half, half + 3, 3 * tensor);
}

/* A training step as the compiler of an accelerator hands it over: what the forward pass saves dies in the backward
 * pass, much of it in the reverse order, temporaries beside it; statistics of a few hundred bytes among tensors of
 * megabytes; all sizes multiples of 512. It is fullest in the middle. */
static inline void case_training(place_case *c, uint64_t seed, unsigned layers)
{
    uint64_t half = 4 * (uint64_t)layers;
    case_begin(c, seed);
    for (unsigned l = 0; l < layers; l++) {
        uint64_t t = 4 * (uint64_t)l, back = 2 * half - t;
        uint64_t saved = 512 * (1 + case_random(c, UINT64_C(1) << case_random(c, 13)));
        case_add(c, t, half + 1 + (half - t) * (100 - case_random(c, 80)) / 100, saved);
        uint64_t birth = t + case_random(c, 4);
        case_add(c, birth, back - case_random(c, 4), 512 * (1 + case_random(c, 4)));
        for (unsigned k = 0; k < 4 && l + 3 < layers; k++) { /* temporaries, there and on the way back */
            uint64_t size = 512 * (1 + case_random(c, UINT64_C(1) << case_random(c, 13)));
            uint64_t first = t + case_random(c, 4), length = 1 + case_random(c, 6);
            case_add(c, first, first + length, size);
            case_add(c, 2 * half - first - length, 2 * half - first, size);
        }
    }
}

/* What a large program looks like: many short lives, few long ones, sizes over four orders of magnitude. */
static inline void case_large(place_case *c, uint64_t seed, unsigned count)
{
    case_begin(c, seed);
    for (unsigned i = 0; i < count; i++) {
        uint64_t length = 1 + case_random(c, UINT64_C(1) << case_random(c, 13));
        uint64_t lower = case_random(c, 20000), size = 64 * (1 + case_random(c, UINT64_C(1) << case_random(c, 14)));
        case_add(c, lower, lower + length, size);
    }
}

/* Few buffers, all kinds: alignment, fixed offsets (never contradictory: at multiples of 64 one above the other),
 * twins. */
static inline void case_small(place_case *c, uint64_t seed, unsigned most)
{
    case_begin(c, seed);
    unsigned count = 1 + (unsigned)case_random(c, most);
    bool aligned = case_random(c, 3) == 0, fixed = case_random(c, 3) == 0, coarse = case_random(c, 2);
    uint64_t floor = 0;
    while (c->count < count) {
        uint64_t lower = case_random(c, 8), upper = lower + 1 + case_random(c, 5);
        pl_place_buffer *b = case_add(c, lower, upper, (1 + case_random(c, 9)) * (coarse ? 10 : 1) + case_random(c, 3));
        if (case_random(c, 20) == 0) b->size = 0;
        if (aligned && case_random(c, 2)) b->alignment = UINT64_C(1) << case_random(c, 6);
        if (fixed && case_random(c, 3) == 0) {
            b->fixed_offset = floor = (floor + 63) / 64 * 64;
            floor += b->size;
        }
        if (c->count < count && case_random(c, 4) == 0) { /* a twin */
            pl_place_buffer copy = *b;
            pl_place_buffer *twin = case_add(c, copy.lower, copy.upper, copy.size);
            twin->alignment = copy.alignment;
        }
    }
}

#endif
