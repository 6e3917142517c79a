/* The micro-kernels: an mr × nr tile of C lives in registers while k runs (Goto & van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication", 2008; Van Zee & van de Geijn, BLIS, 2015). avx512 12 × 32: 24 accumulators,
 * 2 registers of B, broadcasts of A; avx2 6 × 16: 12 + 2 + 2; baseline 4 × 8. Every smaller number of rows has a kernel
 * of its own, so that rows are cut evenly (11 + 11 + 10, never 12 + 12 + 8) and none is padded. Columns come in whole
 * vectors, 1 or 2: packed B is padded with zeros. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/singles.h"
#include "kernels/cpu/gemm_tiles.h"

#define TABLE(whole)                                                                                                   \
    {                                                                                                                  \
        .mr = PL_GEMM_MR, .nr = PL_GEMM_NR, .vector = PL_VW, .step = 1, .multiple = 1, .k_block = 384,                 \
        .k_block_packed = 384, .k_block_whole = (whole), .by_rows = by_rows, .by_rows_ahead = by_rows_ahead,           \
        .by_columns = by_columns, .pack = {pl_gemm_pack, pl_gemm_pack}, .finish = pl_gemm_finish,                      \
        .thin = pl_gemm_thin, .column_sum = pl_gemm_column_sum,                                                        \
    }

const pl_gemm_kernels PL_GEMM_NAME(pl_gemm_kernels) = TABLE(384);

#if defined(PL_LEVEL_avx512)
/* For processors whose second-level cache holds 2 MiB: all those with AMX. */
extern const pl_gemm_kernels pl_gemm_kernels_avx512_long;
const pl_gemm_kernels pl_gemm_kernels_avx512_long = TABLE(768);
#endif
