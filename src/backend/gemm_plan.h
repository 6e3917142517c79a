/* How a product is cut, decided once per call from sizes alone.
 *
 *   rows      panels of mr or fewer rows, split evenly; a few neighbouring panels make a group
 *   columns   panels of nr; some of them make a pass
 *   k         blocks of at most k_block, split evenly; some of them make a pass
 *
 *            k ──▶                 n ──▶
 *      m  ┌──────────┐         ┌──────┬──────┐        A pass = k range × column range, whose part of B is packed
 *      │  │ A group  │    k    │ pass │ pass │        by all threads; then strips (row group × column panel) are
 *      ▼  ├──────────┤    │    ├──────┼──────┤        handed out. While the last strips of a pass are computed, the
 *         │          │    ▼    │ pass │ pass │        free threads pack the next pass into the other buffer:
 *         └──────────┘         └──────┴──────┘        one barrier a pass.
 *
 * Bits depend only on the k blocks: each block is one chain of multiply-adds per element, and blocks are added in
 * order. Partial sums wait in C. Where C's old content is still needed at the end (see pl_gemm_call), they wait in a
 * block of rows × columns in the workspace instead, and rows are cut into stretches that fit it.
 *
 * Workspace: counters | packed B, two buffers | waiting sums | per thread: packed A, one tile. */
#ifndef PL_BACKEND_GEMM_PLAN_H
#define PL_BACKEND_GEMM_PLAN_H

#include "backend/calls.h"
#include "backend/tickets.h"
#include "kernels/gemm.h"

enum {
    PL_GEMM_B_ELEMS = 98304,    /* of one buffer: 384 KiB */
    PL_GEMM_SUMS_ELEMS = 98304, /* of the waiting sums */
    PL_GEMM_GROUP_MAX = 4,      /* row panels in a group when A is packed by columns */
};

typedef struct pl_gemm_counters {
    pl_tickets strips[2], packs[2]; /* of even and odd passes */
} pl_gemm_counters;

typedef struct pl_gemm_plan {
    const pl_gemm_kernels *kernels;
    int thin;                  /* no packing: columns are simply shared out */
    int threads;               /* 1 where a team is not worth waking */
    int64_t k_blocks, k_block; /* all but the last are k_block long */
    int64_t pass_k_blocks, pass_columns;
    int64_t group;              /* row panels in a group, at most */
    int64_t a_stride;           /* packed by rows */
    uint64_t b_offset, b_bytes; /* of one buffer */
    uint64_t sums_offset, threads_offset, a_bytes, thread_bytes, bytes;
} pl_gemm_plan;

pl_gemm_plan pl_gemm_plan_make(const pl_gemm_call *, pl_team);

/* Panel i of `count` that split m evenly begins here (i = count gives m). */
static inline int64_t pl_gemm_split(int64_t m, int64_t count, int64_t i)
{
    return m / count * i + (i < m % count ? i : m % count);
}

static inline int64_t pl_gemm_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
