/* How a product is cut, decided once per call.
 *
 *   rows      panels of at most mr rows, split evenly
 *   columns   panels of nr
 *   k         blocks of at most k_block, split evenly
 *   unit      a rectangle of C, some row panels × some column panels: what a thread takes at a time
 *
 *               n ──▶              For each block of k a thread packs, into memory of its own, only what it cannot
 *      m  ┌──────┬──────┬───┐      read in place:         f32                   pairs of bf16         widened
 *      │  │ unit │ unit │   │        forward  y = x Wᵀ   B (k contiguous)      B                     A and B
 *      ▼  ├──────┼──────┼───┤        dx = dy W           B, if its rows are    B                     A and B
 *         │      │      │   │                            far apart
 *         │ unit │ unit │   │        dW += dyᵀ x         A (rows contiguous)   A and B               A and B
 *         └──────┴──────┴───┘
 *   B packed        one panel at a time, many rows that stay in the second-level cache
 *   A packed        a few panels, many columns; one block of k for all rows of the unit, then the next one
 *   both            all rows of the unit, then one panel of columns after the other (f32: A as above, some panels of B
 *                   at a time; where rows of B are pages apart)
 *   A turned        the same for dW += dyᵀ x by AMX: A's columns become rows while they are packed (below)
 *
 * Threads share nothing but the ticket counter: no barrier, no traffic between caches. Packing the same thing twice
 * costs 1 to 3 %.
 *
 * Bits depend on no cut: an element is one chain of multiply-adds along k (with AMX of sums over 32 of k), which a
 * block takes up where the last one left it. So the shape of units may follow the number of threads. Between blocks
 * the sums are in C. Where C's old content is still needed at the end (see pl_gemm_call), they wait in the thread's own
 * memory instead, and units are kept small enough. (Tiles of AMX are so fast that a unit may not be small: it has room
 * for its own sums.)
 *
 * dW += dyᵀ x by AMX. A call may end wherever a micro-batch does, between samples, and no sum over 32 tokens may reach
 * across. So each sample's tokens are filled up with zeros to a multiple of 32, in the packed copies alone; k is then
 * counted with them, and a block of k may have tokens of several samples. Zeros cost time: where a sample has fewer
 * than 8 or, of a small weight, 16 of 32 tokens, or nobody says how many, operands are widened as for f16. The choice
 * is the model's, never that of batch, micro-batch or team. Packed for each unit again, both operands are dear: a unit
 * is as large as 256 KiB for A and B and a second-level cache of 2 MB for C allow. Measured on Emerald Rapids, both
 * threads of a core, width 768, feed-forward 3072, samples of 196 and 197: 1200 to 1500 GFLOP/s after 275 (widened), of
 * 2460 that tiles without memory reach.
 *
 * Workspace: counter | per thread: packed A, packed B, waiting sums, one tile. At most 128 KiB a thread; 256 KiB where
 * both operands are packed as f32, where tiles are wide, and for AMX. Threads beyond the number of units have none.
 *
 * Where operands of 16 bits become f32, each panel of B that is packed must meet many rows, or packing it is a quarter
 * of the time. Of AVX-512's processors the second-level cache has 1 MiB or more: there blocks of k are 768 long, so
 * that most products have one and no sums wait, and a thread may have 512 KiB. Measured on an encoder of width 768
 * (Emerald Rapids, bf16): 6.4 texts a second became 8.1.
 *
 * Wide tiles (kernels/gemm.h) are for A in place by rows and f32: 3 vectors where they leave no or little rest, and 4,
 * two pairs of them, for a gated product. Measured beside 12 × 2 on Ice Lake: 10 to 14 % more. */
#ifndef PL_BACKEND_GEMM_PLAN_H
#define PL_BACKEND_GEMM_PLAN_H

#include "backend/calls.h"
#include "backend/tickets.h"
#include "kernels/gemm.h"

enum {
    PL_GEMM_SUMS_WORDS = 8192,        /* waiting sums of a thread: 32 KiB; what a unit needs where A is read in lines */
    PL_GEMM_SUMS_WORDS_WIDE = 20480,  /* likewise, where tiles are wide or long: 80 KiB */
    PL_GEMM_THREAD_WORDS = 32768,     /* all of a thread's memory, where A is packed: 128 KiB */
    PL_GEMM_THREAD_WORDS_TWO = 65536, /* where operands of 16 bits become f32, or A is turned */
    PL_GEMM_THREAD_WORDS_LONG = 131072, /* the same, in long blocks of k: 512 KiB */
    PL_GEMM_GROUP_MAX = 48              /* row panels of A that are packed at a time */
};

/* How tiles read A; turned: the caller has its columns, tiles its rows. */
typedef enum pl_gemm_form { PL_GEMM_IN_PLACE, PL_GEMM_BY_ROWS, PL_GEMM_BY_COLUMNS, PL_GEMM_TURNED } pl_gemm_form;

typedef struct pl_gemm_plan {
    const pl_gemm_kernels *kernels;
    int thin;    /* no units: columns are simply shared out */
    int threads; /* 1 where a team is not worth waking */
    int workers; /* of them, that have memory of their own: no more than there are units */
    pl_gemm_form a_form;
    int pack_b, ragged;
    int b_in_blocks;           /* packed in any case */
    int64_t k;                 /* as tiles count it: where A is turned, every sample filled up with zeros */
    int64_t k_blocks, k_block; /* all but the last are k_block long */
    int64_t mr, nr;            /* of the largest tile, in words */
    int wide;                  /* of more than the two vectors that packers of panels know */
    int64_t row_panels, column_panels;
    int64_t panel_columns;           /* of C; of a gated product half of those that B has */
    int64_t group;                   /* row panels packed at a time */
    int64_t strip;                   /* column panels packed at a time */
    int64_t a_stride;                /* words from row to row, as tiles read A by rows */
    int64_t unit_rows, unit_columns; /* panels, at most */
    int64_t row_units, column_units;
    uint64_t threads_offset, b_offset, sums_offset, tile_offset, thread_bytes, bytes;
} pl_gemm_plan;

/* sums_apart: partial sums must not touch C; changes the shape of units only, never the workspace or a bit. */
pl_gemm_plan pl_gemm_plan_make(const pl_gemm_call *, pl_team, int sums_apart);

pl_gemm_epilogue pl_gemm_epilogue_of(const pl_gemm_call *);

/* Panel i of `count` that split m evenly begins here (i = count gives m). */
static inline int64_t pl_gemm_split(int64_t m, int64_t count, int64_t i)
{
    return m / count * i + (i < m % count ? i : m % count);
}

static inline int64_t pl_gemm_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Of so many tokens as many as tiles take. */
static inline int64_t pl_gemm_whole_groups(int64_t tokens)
{
    return pl_gemm_ceil_div(tokens, PL_GEMM_TOKEN_GROUP) * PL_GEMM_TOKEN_GROUP;
}

#endif
