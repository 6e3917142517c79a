/* The serial pieces of the matrix product, one table per instruction-set level. backend/gemm.c cuts the product into
 * tiles of at most mr × nr elements, has the threads pack operands and calls these; nothing here knows of threads.
 *
 * Operands are f32, bf16 or f16; sums are f32. Tiles read words of 32 bits, and a word holds `step` neighbours in k:
 *   step 1   one f32; operands of 16 bits are widened while they are packed
 *   step 2   two bf16, multiplied and added by one instruction (the table for AVX512-BF16), which adds the product of
 *            the high halves first; where k is odd the last word is filled up with a zero
 *            or sixteen such words at a time (AMX), k filled up with zeros to a multiple of 32
 * B is read by rows of nr words, word (p, j) at b[p·stride + j]: as the caller holds it where n is contiguous and a
 * word is an element (and rows are not far apart), else from panels of nr columns that are packed (stride nr; columns
 * past n are zero, or a wide panel ends there). A is read in either of two forms, a panel of `rows` ≤ mr rows at a
 * time:
 *   by rows     word (r, p) at a[r·stride + p]: as the caller holds it where k is contiguous, or widened
 *   by columns  word (r, p) at a[p·rows + r]: packed
 * and where the caller holds its columns, but tiles take rows (AMX), it is turned while it is packed.
 * Every element is one chain of fused multiply-adds in ascending k (separate rounding at baseline). A tile starts it
 * at zero or goes on where d stands, so the bits depend on no cut, neither into rows and columns nor along k. Within
 * pairs the order is the other where A is by rows, as memory has it; where A is by columns the earlier one is packed
 * into the high half, and even a cut at an odd k changes nothing. */
#ifndef PL_KERNELS_GEMM_H
#define PL_KERNELS_GEMM_H

#include <stdint.h>

#include "base/isa.h"
#include "base/activation.h"
#include "base/encoding.h"
#include "base/narrow.h"
#include "kernels/gemm_ahead.h"

/* What happens to an element once its sum is complete; the order is that of pl_gemm_call. Pointers are of element (0,
 * 0) of C; NULL = absent. What is declared void is of this type. */
typedef struct pl_gemm_epilogue {
    pl_real type;
    void *c;
    int64_t ldc;
    int accumulate;
    const float *bias;
    const void *residual;
    int64_t ld_residual;
    pl_activation act;
    void *act_out;
    int64_t ld_act_out;
    const void *grad_of;
    int64_t ld_grad_of;
    void *act_again;
    int64_t ld_act_again;
    int gated; /* sums come in pairs of vectors: C = act(first)·second */
} pl_gemm_epilogue;

/* A product with few rows (fields as in pl_gemm_call); A and B are of one type, or A is f32, except for the scalar
 * reference. */
typedef struct pl_gemm_thin_product {
    int64_t m, n, k;
    pl_real a_type, b_type;
    pl_encoding a_encoding, b_encoding; /* a_encoding: of the scalar reference alone */
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    pl_gemm_epilogue epilogue;
} pl_gemm_thin_product;

/* d[r, j] = (d[r, j] + … or 0 + …) a(r, 0)·b(0, j) + a(r, 1)·b(1, j) + … over `words` of k, all rows of the tile and
 * all columns of so many vectors. Strides are in words. Meanwhile tiles by rows (those of by_rows
 * alone) ask for memory, in so many steps as pl_gemm_ahead_steps(words) says; NULL: for none. */
typedef void pl_gemm_tile_fn(int64_t words, const void *a, int64_t a_stride, const void *b, int64_t b_stride, float *d,
                             int64_t ldd, int add, pl_gemm_ahead *);

/* Copies of an operand of one type in the order in which tiles read it; ld in elements of the source, everything about
 * the copy in words. */
typedef struct pl_gemm_packers {
    /* A where k is contiguous (src[r·ld + p]): `rows` rows, row r at dst + r·stride. NULL: always read in place. */
    void (*a_rows)(const void *src, int64_t ld, int64_t rows, int64_t k, void *dst, int64_t stride);
    /* A where rows are contiguous (src[p·ld + r]): `panels` panels of `rows` rows, panel i at dst + i·panel_words. */
    void (*a_columns)(const void *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, void *dst,
                      int64_t panel_words);
    /* k × columns of B into panels of nr, the first row of panel j at dst + j·panel_words. */
    void (*b)(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words);
    /* The same where k is contiguous in B (src[j·ld + p]). */
    void (*b_transposed)(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words);
    /* One vector of columns of B where k is contiguous: word (p, j) to dst + p·stride + j. NULL: no wide tiles. */
    void (*b_strip)(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t stride);
    /* One wide panel of B, whole vectors of columns: word (p, j) to dst + p·stride + j. NULL: no wide tiles. */
    void (*b_rows)(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t stride);
    /* As b_transposed, one panel, of two sources: `columns` ≤ one vector of the first and, behind it, of the second. */
    void (*b_pair)(const void *first, const void *second, int64_t ld, int64_t k, int64_t columns, void *dst);
    /* As a_columns, into rows: row r at dst + r·stride, its words filled up to `multiple` with zeros. NULL: none. */
    void (*a_turned)(const void *src, int64_t ld, int64_t rows, int64_t k, void *dst, int64_t stride);
} pl_gemm_packers;

enum { PL_GEMM_MR_MAX = 32, PL_GEMM_NR_MAX = 32, PL_GEMM_REALS = PL_REAL_F16 + 1 };
enum { PL_GEMM_VECTORS_MAX = 4 };

/* [rows − 1][vectors − 1]; NULL where there is none. */
typedef pl_gemm_tile_fn *const pl_gemm_tile_row[PL_GEMM_VECTORS_MAX];

typedef struct pl_gemm_kernels {
    int mr, nr, vector;              /* largest tile, words in a vector (nr = 2 vectors) */
    int step;                        /* elements of k in a word */
    int64_t k_block, k_block_packed; /* longest stretch of k of one tile call; where A is packed */
    int64_t k_block_widened;         /* where A is packed by rows and becomes f32 */
    /* Wide tiles by rows: the most rows with 3 and with 4 vectors; 0: there are none. They read less for each
     * multiply-add, A once for more columns: 9 × 3 takes 12 numbers for 27 vectors, 12 × 2 takes 14 for 24. */
    int wide_rows[PL_GEMM_VECTORS_MAX - 2];
    int64_t k_block_wide; /* likewise of these */
    int multiple;         /* words of k are a multiple of so many: zeros fill them up */
    pl_gemm_tile_row *by_rows, *by_columns;
    pl_gemm_tile_row *by_rows_ahead; /* the words that lie behind B are asked for */
    const pl_gemm_packers *pack[2];  /* [A is read by columns][type of the operand] */
    /* What a thread does before its first tile of a call and behind its last one; NULL: nothing. */
    void (*enter)(void);
    void (*leave)(void);
    /* Applies the epilogue to rows × columns sums at s for the elements of C from (i, j) on. */
    void (*finish)(const pl_gemm_epilogue *, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                   int64_t columns);
    /* Columns [begin, end) of a product whose operands both have k contiguous, epilogue included, for few rows: sums
     * run along vectors, so they have other last bits than a tile's. (The scalar reference takes any product.) */
    void (*thin)(const pl_gemm_thin_product *, int64_t begin, int64_t end);
    /* One vector of columns of a B in blocks, `row_bytes` from column to column: number (p, j) to dst + p·stride + j;
     * lanes past `columns` become zero. NULL: every product is thin. */
    void (*strip_of_blocks)(pl_encoding, const void *blocks, int64_t row_bytes, int64_t k, int64_t columns, float *dst,
                            int64_t stride);
    /* Columns [begin, begin + columns) of a B whose rows are blocks, both multiples of a vector, as b_rows. */
    void (*rows_of_blocks)(pl_encoding, const void *blocks, int64_t row_bytes, int64_t k, int64_t begin,
                           int64_t columns, float *dst, int64_t stride);
    /* out[j] (+)= Σ_i x[i, j]; rows in ascending order. */
    void (*column_sum)(pl_real type, const void *x, int64_t ld, int64_t rows, int64_t columns, float *out, int add);
} pl_gemm_kernels;

/* The table for operands of these types at a level; on a processor family without that level, the best one below it. */
const pl_gemm_kernels *pl_gemm_kernels_of(pl_isa, pl_real a, pl_real b);

/* The same where k is contiguous in A, or A is turned: a table that may have no tiles by columns. Not for a product
 * whose k a caller may cut anywhere (gradients of weights, k = tokens of samples of unknown length): AMX's bits depend
 * on where it is. */
const pl_gemm_kernels *pl_gemm_kernels_by_rows(pl_isa, pl_real a, pl_real b);

#endif
