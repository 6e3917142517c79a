/* What the tests of int8 and binary products share: random numbers, and outputs with gaps between their rows. */
#ifndef PL_TESTS_WORDS_CASES_H
#define PL_TESTS_WORDS_CASES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend/words.h"
#include "support/guarded.h"

static uint64_t draw_state;

static inline uint64_t draw(void)
{
    draw_state += 0x9e3779b97f4a7c15u;
    uint64_t z = (draw_state ^ (draw_state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
static inline int chance(int percent) { return below(100) < percent; }
static inline float draw_real(float scale) { return scale * ((float)below(1 << 20) * 0x1p-19f - 1.0f); }

static inline int64_t random_size(int64_t limit)
{
    const int64_t kind = below(4);
    return kind == 0 ? 1 : kind == 1 ? 1 + below(20) : 1 + below(limit);
}

/* Rows of `columns` elements, `ld` apart, between guards; everything starts as bytes of 0xff. */
typedef struct rows_of {
    int64_t rows, columns, ld, size;
    void *at; /* NULL = absent */
} rows_of;

static inline rows_of rows_create(int64_t rows, int64_t columns, int64_t size)
{
    rows_of r = {rows, columns, columns + (chance(50) ? 0 : below(70)), size, NULL};
    r.at = guarded_bytes((uint64_t)(rows * r.ld * size), (uint64_t)(below(4) * size));
    memset(r.at, 0xff, (size_t)(rows * r.ld * size));
    return r;
}

static inline rows_of rows_of_reals(int64_t rows, int64_t columns, float scale)
{
    rows_of r = rows_create(rows, columns, sizeof(float));
    for (int64_t i = 0; i < rows * r.ld; i++) ((float *)r.at)[i] = draw_real(scale);
    return r;
}

static inline rows_of rows_copy(const rows_of *from)
{
    rows_of r = *from;
    if (!from->at) return r;
    r.at = guarded_bytes((uint64_t)(r.rows * r.ld * r.size), 0);
    memcpy(r.at, from->at, (size_t)(r.rows * r.ld * r.size));
    return r;
}

static inline float real_at(const rows_of *r, int64_t i, int64_t j) { return ((const float *)r->at)[i * r->ld + j]; }

static inline int rows_equal(const rows_of *a, const rows_of *b)
{
    return !a->at || memcmp(a->at, b->at, (size_t)(a->rows * a->ld * a->size)) == 0;
}

/* What is between the rows is as it was. */
static inline int gaps_untouched(const rows_of *now, const rows_of *before)
{
    for (int64_t i = 0; now->at && i < now->rows; i++) {
        const int64_t from = (i * now->ld + now->columns) * now->size, count = (now->ld - now->columns) * now->size;
        if (memcmp((char *)now->at + from, (char *)before->at + from, (size_t)count) != 0) return 0;
    }
    return 1;
}

static inline int same_float(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Activations that are one comparison or product, so have the same bits everywhere. */
static inline int is_exact(pl_activation act)
{
    return act == PL_ACT_NONE || act == PL_ACT_RELU || act == PL_ACT_LEAKY_RELU;
}

static inline double activate(pl_activation act, float x)
{
    switch (act) {
    case PL_ACT_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2)));
    case PL_ACT_SILU:
        return x / (1 + exp(-x));
    case PL_ACT_TANH:
        return tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? x : 0;
    case PL_ACT_LEAKY_RELU:
        return x > 0 ? x : 0.01f * x;
    case PL_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case PL_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    case PL_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

/* y as act(x): its bits, or as closely as the vector functions come (4e-7·max(1, |x|)). */
static inline int is_activation(pl_activation act, float x, float y)
{
    const double wanted = activate(act, x);
    return is_exact(act) ? y == (float)wanted : fabs(y - wanted) <= 4e-7 * fmax(1, fabs((double)x));
}

static inline int quantized(float x, float scale, int zero)
{
    const double q = nearbyint((double)(x / scale)) + zero;
    return q > 255 ? 255 : q > 0 ? (int)q : 0;
}

#endif
