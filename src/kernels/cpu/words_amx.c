/* Products of int8 by AMX: tdpbusd multiplies a tile of 16 rows × 16 words of x by one of 16 words × 16 columns of w,
 * four u8 by four s8 in each word, and adds to 32 bits: 16,384 multiply-adds in 16 cycles. A panel of packed weights is
 * a column of such tiles as it lies, and x is read where it is. Tiles are used and shaped as for bf16
 * (amx_tiles.h). Nothing of this is called where the system has not granted tiles (pl_isa_extras). */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

#if defined(PL_LEVEL_avx512)
#define AMX_TARGET           __attribute__((target("amx-tile,amx-int8")))
#define MULTIPLY(sums, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)
#define TILE_ARGUMENTS       int64_t words, const char *x, int64_t stride, const char *w, int64_t apart, int32_t *d
#define TILE_PASSED          words, x, stride, w, apart, d
#include "kernels/cpu/amx_tiles.h"

/* Rows of which a tile is so empty that VNNI, which such a processor has, too, is faster (bench_int8: one row of 768
 * numbers takes half of the time). */
enum { FEW = 4 };

_Static_assert((int)SIDE == (int)PL_WORDS_PANEL && (int)MR <= (int)PL_WORDS_MR_MAX, "a panel is a column of tiles");

extern const pl_words_kernels pl_int8_kernels_avx512_vnni;

AMX_TARGET static void tile_of(int rows, int vectors, TILE_ARGUMENTS)
{
    if (rows <= FEW) {
        pl_int8_kernels_avx512_vnni.tiles[rows - 1][vectors - 1](words, x, stride, w, apart, d);
        return;
    }
    const amx_tile t = {.words = words,
                        .a = x,
                        .a_row = stride,
                        .b = w,
                        .b_row = PL_WORDS_LINE_BYTES,
                        .b_right = apart,
                        .d = (char *)d,
                        .d_row = (int64_t)PL_WORDS_TILE_COLUMNS * (int64_t)sizeof *d};
    tile(rows, vectors, &t);
}

/* clang-format off: it takes the macros for types */
TILES

static pl_words_tile_row tiles[] = {ENTRIES};
/* clang-format on */

extern const pl_words_kernels pl_int8_kernels_amx;
const pl_words_kernels pl_int8_kernels_amx = {.name = "amx",
                                              .mr = MR,
                                              .panels = 2,
                                              .x_bytes = 4,
                                              .prepare = pl_words_copy,
                                              .tiles = tiles,
                                              .enter = pl_gemm_amx_enter,
                                              .leave = pl_gemm_amx_leave};
#endif
