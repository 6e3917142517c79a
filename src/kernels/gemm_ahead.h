/* Asking for memory before it is needed: what the next tiles read is fetched into the second-level cache a few lines at
 * a time, as a hardware prefetcher does not follow a dozen short rows. Measured on Zen 4: 2 to 4 % of the rate at 4096
 * tokens, minus 1 % where A is in a cache already. A core has room for a dozen lines under way; who asks for more at
 * once waits for them, so that tiles ask in between: on Sapphire Rapids 6 % of an encoder's time with one thread, 1 %
 * with two. */
#ifndef PL_KERNELS_GEMM_AHEAD_H
#define PL_KERNELS_GEMM_AHEAD_H

#include <stdint.h>

enum { PL_CACHE_LINE_BYTES = 64, PL_GEMM_AHEAD_WORDS = 32 /* of k, from one step to the next within a tile */ };

/* Into the second-level cache. The empty assembly is an effect: a function that does nothing but ask for memory is one
 * without effect to gcc, which drops the calls of it. */
static inline void pl_gemm_ahead_line(const void *at)
{
    __builtin_prefetch(at, 0, 2);
    __asm__ volatile("");
}

typedef struct pl_gemm_ahead { /* rows of so many cache lines, ld bytes apart */
    const char *row;
    int64_t ld, lines_per_row;
    int64_t line, left, per_step; /* of the row the next to ask for, and how many in all there are still */
    struct pl_gemm_ahead *also;   /* a step here is one there, too; NULL: nowhere */
} pl_gemm_ahead;

/* Steps that a tile over so many words takes. */
static inline int64_t pl_gemm_ahead_steps(int64_t k)
{
    return (k + PL_GEMM_AHEAD_WORDS - 1) / PL_GEMM_AHEAD_WORDS;
}

/* A matrix of rows of so many bytes each, to be fetched in `steps` steps. */
static inline pl_gemm_ahead pl_gemm_ahead_of(const void *at, int64_t ld_bytes, int64_t rows, int64_t row_bytes,
                                             int64_t steps)
{
    pl_gemm_ahead a = {.row = at, .ld = ld_bytes, .lines_per_row = row_bytes / PL_CACHE_LINE_BYTES + 1};
    a.left = rows * a.lines_per_row;
    a.per_step = a.left / steps + 1;
    return a;
}

static inline void pl_gemm_ahead_step(pl_gemm_ahead *a)
{
    for (; a; a = a->also) {
        const int64_t count = a->per_step < a->left ? a->per_step : a->left;
        a->left -= count;
        for (int64_t i = 0; i < count; i++) {
            pl_gemm_ahead_line(a->row + a->line * PL_CACHE_LINE_BYTES);
            if (++a->line == a->lines_per_row) a->line = 0, a->row += a->ld;
        }
    }
}

/* All steps of a tile over so many words at once. */
static inline void pl_gemm_ahead_tile_steps(pl_gemm_ahead *a, int64_t k)
{
    for (int64_t i = a ? pl_gemm_ahead_steps(k) : 0; i > 0; i--) pl_gemm_ahead_step(a);
}

/* The lines of a tile that the epilogue will read when the sums are there. */
static inline void pl_gemm_ahead_tile(const void *at, int64_t ld_bytes, int64_t rows, int64_t row_bytes)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < row_bytes; j += PL_CACHE_LINE_BYTES)
            pl_gemm_ahead_line((const char *)at + r * ld_bytes + j);
}

#endif
