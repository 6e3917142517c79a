/* Matrix products of bf16 by AMX: tdpbf16ps multiplies a tile of 16 rows × 16 words of A by one of 16 words × 16
 * columns of B, 8192 multiply-adds in 16 cycles. Operands are those of gemm_pairs.c with A by rows (as it is, or
 * turned), k filled up with zeros to whole tiles. Four tiles of sums, two of A and two of B are all eight there are: 32
 * × 32 of C. Within a tile the first halves of the words and the second ones are two chains, which are then added to
 * the element: the bits depend on where k is cut, which here is always at a multiple of 32. Subnormal operands and sums
 * count as zero. Nothing of this is called where the system has not granted tiles (pl_isa_of_machine). */
#include "kernels/cpu/gemm_level.h"

#if defined(PL_LEVEL_avx512)
#define AMX_TARGET           __attribute__((target("amx-tile,amx-bf16")))
#define MULTIPLY(sums, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)
#define TILE_ARGUMENTS                                                                                                 \
    int64_t words, const void *a, int64_t a_stride, const void *b, int64_t b_stride, float *d, int64_t ldd, int add,   \
        pl_gemm_ahead *next
#define TILE_PASSED words, a, a_stride, b, b_stride, d, ldd, add, next
#include "kernels/cpu/amx_tiles.h"

enum { TILES_OF_THREAD = 8 };

/* As ldtilecfg reads it. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((aligned(64))) tile_config;

/* Shapes of this thread's tiles in the call at work, by the number of rows of C that they were made for; 0: none were.
 * To say them again for each tile of C would take an eighth of the time. */
static _Thread_local int shaped_for __attribute__((tls_model("initial-exec")));

void pl_gemm_amx_enter(void) { shaped_for = 0; }

AMX_TARGET void pl_gemm_amx_leave(void)
{
    if (shaped_for) __asm__ volatile("tilerelease");
    shaped_for = 0;
}

AMX_TARGET void pl_gemm_amx_shape(int rows)
{
    if (shaped_for == rows) return;
    const int upper = rows < SIDE ? rows : SIDE, lower = rows > SIDE ? rows - SIDE : SIDE;
    tile_config c = {.palette = 1};
    for (int i = 0; i < TILES_OF_THREAD; i++) {
        c.row_bytes[i] = LINE_BYTES;
        c.rows[i] = (uint8_t)(i < 2 || i == 4 ? upper : i < 4 || i == 5 ? lower : SIDE);
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
    shaped_for = rows;
}

AMX_TARGET static void tile_of(int rows, int vectors, TILE_ARGUMENTS)
{
    const int64_t word = sizeof(uint32_t);
    const amx_tile t = {.words = words,
                        .a = a,
                        .a_row = a_stride * word,
                        .b = b,
                        .b_row = b_stride * word,
                        .b_right = LINE_BYTES,
                        .d = (char *)d,
                        .d_row = ldd * word,
                        .add = add};
    pl_gemm_ahead_tile_steps(next, words); /* a tile of 256 words is soon done */
    tile(rows, vectors, &t);
}

/* clang-format off: it takes the macros for types */
TILES

pl_gemm_tile_row pl_gemm_amx_tiles[PL_GEMM_MR_MAX] = {ENTRIES};
/* clang-format on */
#endif
