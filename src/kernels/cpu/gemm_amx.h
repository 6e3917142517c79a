/* The tiles of gemm_amx.c for the table in gemm_pairs.c, whose operands they share, and for attention_amx.c. How those
 * of all products are loaded, multiplied and stored stands in amx_tiles.h. */
#ifndef PL_KERNELS_CPU_GEMM_AMX_H
#define PL_KERNELS_CPU_GEMM_AMX_H

#include "kernels/gemm.h"

enum { PL_GEMM_AMX_WORDS = 16 }; /* a tile's share of k */

/* Tiles belong to the thread, which may be somebody else's, who uses them, too: none are taken for shaped from one call
 * to the next, and none are left behind. Between these two alone. */
void pl_gemm_amx_enter(void);
void pl_gemm_amx_leave(void);
/* Tiles for so many rows of C, at most 32: 0 to 3 for sums (upper left, upper right, lower left, lower right), 4 and 5
 * for upper and lower rows of A, 6 and 7 for B. */
void pl_gemm_amx_shape(int rows);

/* Of the tile with that number. */
#define PL_AMX_LOAD(tile, at, stride)                                                                                  \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(at), "r"((int64_t)(stride)) : "memory")
#define PL_AMX_STORE(tile, at, stride)                                                                                 \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(at), "r"((int64_t)(stride)) : "memory")
#define PL_AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)

extern pl_gemm_tile_row pl_gemm_amx_tiles[PL_GEMM_MR_MAX];

#endif
