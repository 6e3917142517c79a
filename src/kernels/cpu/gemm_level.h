/* Tile sizes and symbol names of the level that is being built. */
#ifndef PL_KERNELS_CPU_GEMM_LEVEL_H
#define PL_KERNELS_CPU_GEMM_LEVEL_H

#include "kernels/cpu/vec.h"
#include "kernels/gemm.h"

#define PL_GEMM_PASTE_(name, suffix) name##_##suffix
#define PL_GEMM_PASTE(name, suffix)  PL_GEMM_PASTE_(name, suffix)
#define PL_GEMM_NAME(name)           PL_GEMM_PASTE(name, PL_SUFFIX) /* pack_b → pack_b_avx512 */

#define PL_GEMM_NR (2 * PL_VW)
#define PL_GEMM_MR (PL_VW == 16 ? 12 : PL_VW == 8 ? 6 : 4)

extern const pl_gemm_kernels PL_GEMM_NAME(pl_gemm_kernels);

#define pl_gemm_pack            PL_GEMM_NAME(pl_gemm_pack)
#define pl_gemm_finish          PL_GEMM_NAME(pl_gemm_finish)
#define pl_gemm_thin            PL_GEMM_NAME(pl_gemm_thin)
#define pl_gemm_column_sum      PL_GEMM_NAME(pl_gemm_column_sum)
#define pl_gemm_thin_blocks     PL_GEMM_NAME(pl_gemm_thin_blocks)
#define pl_gemm_rows_of_blocks  PL_GEMM_NAME(pl_gemm_rows_of_blocks)
#define pl_gemm_strip_of_blocks PL_GEMM_NAME(pl_gemm_strip_of_blocks)

extern const pl_gemm_packers pl_gemm_pack[PL_GEMM_REALS]; /* into words of f32 */

void pl_gemm_finish(const pl_gemm_epilogue *, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                    int64_t columns);
void pl_gemm_thin(const pl_gemm_thin_product *, int64_t begin, int64_t end);
void pl_gemm_thin_blocks(const pl_gemm_thin_product *, int64_t begin, int64_t end);
void pl_gemm_strip_of_blocks(pl_encoding, const void *blocks, int64_t row_bytes, int64_t k, int64_t columns, float *dst,
                             int64_t stride);
void pl_gemm_rows_of_blocks(pl_encoding, const void *blocks, int64_t row_bytes, int64_t k, int64_t begin,
                            int64_t columns, float *dst, int64_t stride);
void pl_gemm_column_sum(pl_real type, const void *x, int64_t ld, int64_t rows, int64_t columns, float *out, int add);

#endif
