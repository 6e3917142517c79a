/* The serial pieces of the f32 matrix product, one table per instruction-set level. backend/gemm.c cuts the product
 * into tiles of at most mr × nr elements, has the threads pack operands and calls these; nothing here knows of threads.
 *
 * B is read by rows of nr floats, element (p, j) at b[p·stride + j]: as the caller holds it where n is contiguous, else
 * from panels of nr columns that are packed (stride nr; columns past n are zero). A is read in either of two forms, a
 * panel of `rows` ≤ mr rows at a time:
 *   by rows     element (r, p) at a[r·stride + p]: as the caller holds it where k is contiguous
 *   by columns  element (r, p) at a[p·rows + r]: packed
 * Every element is one chain of fused multiply-adds in ascending p (separate rounding at baseline). A tile starts
 * it at zero or goes on where d stands, so the bits depend on no cut, neither into rows and columns nor along k. */
#ifndef PL_KERNELS_GEMM_H
#define PL_KERNELS_GEMM_H

#include <stdint.h>

#include "base/isa.h"
#include "base/activation.h"

/* What happens to an element once its sum is complete; the order is that of pl_gemm_call. Pointers are of element (0,
 * 0) of C; NULL = absent. */
typedef struct pl_gemm_epilogue {
    float *c;
    int64_t ldc;
    int accumulate;
    const float *bias;
    const float *residual;
    int64_t ld_residual;
    pl_activation act;
    float *act_out;
    int64_t ld_act_out;
    const float *grad_of;
    int64_t ld_grad_of;
    float *act_again;
    int64_t ld_act_again;
} pl_gemm_epilogue;

/* A product with few rows (fields as in pl_gemm_call). */
typedef struct pl_gemm_thin_product {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;
    const float *b;
    int64_t b_row, b_col;
    pl_gemm_epilogue epilogue;
} pl_gemm_thin_product;

/* d[r, j] = (d[r, j] or 0) + a(r, 0)·b(0, j) + a(r, 1)·b(1, j) + …, all rows of the tile and all columns of 1 or 2
 * vectors. */
typedef void pl_gemm_tile_fn(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_stride, float *d,
                             int64_t ldd, int add);

enum { PL_GEMM_MR_MAX = 12, PL_GEMM_NR_MAX = 32 };

typedef struct pl_gemm_kernels {
    int mr, nr, vector;                          /* largest tile, floats in a vector (nr = 2 vectors) */
    int64_t k_block;                             /* longest stretch of k of one tile call */
    pl_gemm_tile_fn *by_rows[PL_GEMM_MR_MAX][2]; /* [rows − 1][vectors − 1] */
    pl_gemm_tile_fn *by_columns[PL_GEMM_MR_MAX][2];
    /* A where rows are contiguous (src[p·ld + r]): `panels` panels of `rows` rows, panel i at dst + i·panel_elems. */
    void (*pack_a_columns)(const float *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, float *dst,
                           int64_t panel_elems);
    /* k × columns of B into panels of nr, the first row of panel j at dst + j·panel_elems. */
    void (*pack_b)(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst, int64_t panel_elems);
    /* The same where k is contiguous in B (src[j·ld + p]). */
    void (*pack_b_transposed)(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst,
                              int64_t panel_elems);
    /* Applies the epilogue to rows × columns sums at s for the elements of C from (i, j) on. */
    void (*finish)(const pl_gemm_epilogue *, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                   int64_t columns);
    /* Columns [begin, end) of a product whose operands both have k contiguous, epilogue included, for few rows: sums
     * run along vectors, so they have other last bits than a tile's. (The scalar reference takes any product.) */
    void (*thin)(const pl_gemm_thin_product *, int64_t begin, int64_t end);
    /* out[j] (+)= Σ_i x[i, j]; rows in ascending order. */
    void (*column_sum)(const float *x, int64_t ld, int64_t rows, int64_t columns, float *out, int add);
} pl_gemm_kernels;

/* The table of a level; on a processor family without that level, the best one below it. */
const pl_gemm_kernels *pl_gemm_kernels_of(pl_isa);

#endif
