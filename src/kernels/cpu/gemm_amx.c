/* Matrix products of bf16 by AMX: tdpbf16ps multiplies a tile of 16 rows × 16 words of A by one of 16 words × 16
 * columns of B, 8192 multiply-adds in 16 cycles. Operands are those of gemm_pairs.c with A by rows (as it is, or
 * turned), k filled up with zeros to whole tiles. Four tiles of sums, two of A and two of B are all eight there are: 32
 * × 32 of C. Within a tile the first halves of the words and the second ones are two chains, which are then added to
 * the element: the bits depend on where k is cut, which here is always at a multiple of 32. Subnormal operands and sums
 * count as zero. Nothing of this is called where the system has not granted tiles (pl_isa_of_machine). */
#include "kernels/cpu/gemm_level.h"

#if defined(PL_LEVEL_avx512)
#include "kernels/cpu/gemm_amx.h"

#define AMX_TARGET __attribute__((target("amx-tile,amx-bf16")))

enum { SIDE = 16, LINE_BYTES = 64, TILES = 8 };

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
    for (int i = 0; i < TILES; i++) {
        c.row_bytes[i] = LINE_BYTES;
        c.rows[i] = (uint8_t)(i < 2 || i == 4 ? upper : i < 4 || i == 5 ? lower : SIDE);
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
    shaped_for = rows;
}

#define MULTIPLY(sums, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

AMX_TARGET PL_V_INLINE void start(int lower, int right, const float *d, int64_t bytes, int add)
{
    if (!add) {
        PL_AMX_ZERO(0);
        if (right) PL_AMX_ZERO(1);
        if (lower) PL_AMX_ZERO(2);
        if (lower && right) PL_AMX_ZERO(3);
        return;
    }
    const char *below = (const char *)d + SIDE * bytes;
    PL_AMX_LOAD(0, d, bytes);
    if (right) PL_AMX_LOAD(1, d + SIDE, bytes);
    if (lower) PL_AMX_LOAD(2, below, bytes);
    if (lower && right) PL_AMX_LOAD(3, below + LINE_BYTES, bytes);
}

AMX_TARGET PL_V_INLINE void store(int lower, int right, float *d, int64_t bytes)
{
    char *below = (char *)d + SIDE * bytes;
    PL_AMX_STORE(0, d, bytes);
    if (right) PL_AMX_STORE(1, d + SIDE, bytes);
    if (lower) PL_AMX_STORE(2, below, bytes);
    if (lower && right) PL_AMX_STORE(3, below + LINE_BYTES, bytes);
}

AMX_TARGET PL_V_INLINE void tile(int lower, int right, int64_t words, const char *a, int64_t a_bytes, const char *b,
                                 int64_t b_bytes, float *d, int64_t d_bytes, int add)
{
    start(lower, right, d, d_bytes, add);
    for (int64_t p = 0; p < words; p += SIDE, a += LINE_BYTES, b += SIDE * b_bytes) {
        PL_AMX_LOAD(6, b, b_bytes);
        PL_AMX_LOAD(4, a, a_bytes);
        MULTIPLY(0, 4, 6);
        if (right) {
            PL_AMX_LOAD(7, b + LINE_BYTES, b_bytes);
            MULTIPLY(1, 4, 7);
        }
        if (lower) {
            PL_AMX_LOAD(5, a + SIDE * a_bytes, a_bytes);
            MULTIPLY(2, 5, 6);
        }
        if (lower && right) MULTIPLY(3, 5, 7);
    }
    store(lower, right, d, d_bytes);
}

AMX_TARGET static void tile_of(int rows, int vectors, int64_t words, const void *a, int64_t a_stride, const void *b,
                               int64_t b_stride, float *d, int64_t ldd, int add)
{
    const int64_t word = sizeof(uint32_t), a_bytes = a_stride * word, b_bytes = b_stride * word, d_bytes = ldd * word;
    pl_gemm_amx_shape(rows);
    if (rows > SIDE && vectors > 1)
        tile(1, 1, words, a, a_bytes, b, b_bytes, d, d_bytes, add);
    else if (rows > SIDE)
        tile(1, 0, words, a, a_bytes, b, b_bytes, d, d_bytes, add);
    else if (vectors > 1)
        tile(0, 1, words, a, a_bytes, b, b_bytes, d, d_bytes, add);
    else
        tile(0, 0, words, a, a_bytes, b, b_bytes, d, d_bytes, add);
}

#define TILE(rows, vectors)                                                                                            \
    static void tile_##rows##_##vectors(int64_t words, const void *a, int64_t a_stride, const void *b,                 \
                                        int64_t b_stride, float *d, int64_t ldd, int add)                              \
    {                                                                                                                  \
        tile_of(rows, vectors, words, a, a_stride, b, b_stride, d, ldd, add);                                          \
    }
#define EIGHT(each, first, second, third, fourth, fifth, sixth, seventh, eighth)                                       \
    each(first) each(second) each(third) each(fourth) each(fifth) each(sixth) each(seventh) each(eighth)
#define ALL_ROWS(each)                                                                                                 \
    EIGHT(each, 1, 2, 3, 4, 5, 6, 7, 8)                                                                                \
    EIGHT(each, 9, 10, 11, 12, 13, 14, 15, 16)                                                                         \
    EIGHT(each, 17, 18, 19, 20, 21, 22, 23, 24)                                                                        \
    EIGHT(each, 25, 26, 27, 28, 29, 30, 31, 32)
#define BOTH(rows)  TILE(rows, 1) TILE(rows, 2)
#define ENTRY(rows) [(rows)-1] = {tile_##rows##_1, tile_##rows##_2},
/* clang-format off: it takes the macros for types */
ALL_ROWS(BOTH)

pl_gemm_tile_row pl_gemm_amx_tiles[PL_GEMM_MR_MAX] = {ALL_ROWS(ENTRY)};
/* clang-format on */
#endif
