/* Products C[m,n] = x[m,k] Wᵀ of rows that are rounded to blocks of Q8_0, with a weight in blocks: whole numbers of 8
 * bits are multiplied, which processors do several times as fast as f32. Nothing else is rounded: but for the order of
 * sums in f32, one for each group of 32 (Q6_K: 16) of k, it is the product of what both stand for. */
#ifndef PL_KERNELS_GEMM_ROUNDED_H
#define PL_KERNELS_GEMM_ROUNDED_H

#include <stdint.h>

#include "base/encoding.h"
#include "base/isa.h"
#include "kernels/gemm.h"

enum { PL_ROUNDED_GROUP = 32 };

/* A block of a row of x, ready for codes of the weight from 0 on: what stands for 0 there is taken off before. */
typedef struct pl_rounded_group {
    float by, total;  /* scale, and the sum of the numbers */
    int32_t start[2]; /* of the sums of codes: for the group (Q6_K: its first half), and for the second half */
    int8_t code[PL_ROUNDED_GROUP];
} pl_rounded_group;

typedef struct pl_rounded_product {
    int64_t m, n, k;
    const pl_rounded_group *x; /* [k/32, m] */
    pl_encoding encoding;      /* of W, whose rows lie one behind the other */
    const void *w;
    pl_gemm_epilogue epilogue;
} pl_rounded_product;

typedef struct pl_rounded_kernels {
    const char *name;
    uint64_t scratch_bytes; /* a thread's, aligned to 64 */
    /* Columns [begin, end). Bits depend neither on m nor on which columns come together. */
    void (*columns)(const pl_rounded_product *, int64_t begin, int64_t end, void *scratch);
} pl_rounded_kernels;

/* The table of a level, not of the scalar reference, and of the extras that may be used (pl_isa_extras, or fewer). */
const pl_rounded_kernels *pl_rounded_kernels_of(pl_isa, int extras);

/* Group g of a row of blocks, for a weight of that encoding. */
void pl_rounded_prepare(pl_encoding, const void *row, int64_t g, pl_rounded_group *);

#endif
