/* The micro-kernels: an mr × nr tile of C lives in registers while k runs (Goto & van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication", 2008; Van Zee & van de Geijn, BLIS, 2015). avx512 12 × 32: 24 accumulators,
 * 2 registers of B, broadcasts of A; by rows also 9 × 48, 27 + 3 + 1, and 6 × 64. avx2 6 × 16: 12 + 2 + 2; baseline
 * 4 × 8. Every smaller number of rows has a kernel of its own, so that rows are cut evenly (11 + 11 + 10, never
 * 12 + 12 + 8) and none is padded. Columns come in whole vectors: packed B is padded with zeros. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/singles.h"
#define WIDE_TILES (PL_VW == 16)
#include "kernels/cpu/gemm_tiles.h"

const pl_gemm_kernels PL_GEMM_NAME(pl_gemm_kernels) = {
    .mr = PL_GEMM_MR,
    .nr = PL_GEMM_NR,
    .vector = PL_VW,
    .step = 1,
    .multiple = 1,
    .k_block = 384,
    .k_block_packed = 384,
    .k_block_widened = WIDE_TILES ? 768 : 384,
#if WIDE_TILES
    .wide_rows = {9, 6},
    .k_block_wide = 768,
#endif
    .by_rows = by_rows,
    .by_rows_ahead = by_rows_ahead,
    .by_columns = by_columns,
    .pack = {pl_gemm_pack, pl_gemm_pack},
    .finish = pl_gemm_finish,
    .thin = pl_gemm_thin,
    .strip_of_blocks = pl_gemm_strip_of_blocks,
    .rows_of_blocks = pl_gemm_rows_of_blocks,
    .column_sum = pl_gemm_column_sum,
};
