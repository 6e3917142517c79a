/* Products of int8 by AMX: tdpbusd multiplies a tile of 16 rows × 16 words of x by one of 16 words × 16 columns of w,
 * four u8 by four s8 in each word, and adds to 32 bits: 16,384 multiply-adds in 16 cycles. A panel of packed weights is
 * a column of such tiles as it lies, and x is read where it is. Tiles are used and shaped as for bf16 (gemm_amx.h).
 * Words that fill no tile are copied first, with zeros behind them: what is behind the panel or the row is nobody's.
 * Nothing of this is called where the system has not granted tiles (pl_isa_extras). */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

#if defined(PL_LEVEL_avx512)
#include "kernels/cpu/gemm_amx.h"

#define AMX_TARGET __attribute__((target("amx-tile,amx-int8")))

/* FEW: rows of which a tile is so empty that VNNI, which such a processor has, too, is faster (bench_int8: one row of
 * 768 numbers takes half of the time). */
enum { SIDE = PL_GEMM_AMX_WORDS, MR = 2 * SIDE, D_BYTES = PL_WORDS_TILE_COLUMNS * 4, FEW = 4 };

_Static_assert((int)SIDE == (int)PL_WORDS_PANEL && (int)MR <= (int)PL_WORDS_MR_MAX, "a panel is a column of tiles");

#define MULTIPLY(sums, x, w) __asm__ volatile("tdpbusd %%tmm" #w ", %%tmm" #x ", %%tmm" #sums : :)

/* Tiles 0 to 3 are sums, 4 and 5 of x, 6 and 7 of w. */
AMX_TARGET PL_V_INLINE void step(int lower, int right, const char *x, int64_t stride, const char *w,
                                 int64_t panel_bytes)
{
    PL_AMX_LOAD(6, w, PL_WORDS_LINE_BYTES);
    PL_AMX_LOAD(4, x, stride);
    MULTIPLY(0, 4, 6);
    if (right) {
        PL_AMX_LOAD(7, w + panel_bytes, PL_WORDS_LINE_BYTES);
        MULTIPLY(1, 4, 7);
    }
    if (lower) {
        PL_AMX_LOAD(5, x + SIDE * stride, stride);
        MULTIPLY(2, 5, 6);
    }
    if (lower && right) MULTIPLY(3, 5, 7);
}

/* The last words, fewer than a tile has. */
AMX_TARGET PL_V_INLINE void last_step(int rows, int lower, int right, int64_t words, const char *x, int64_t stride,
                                      const char *w, int64_t panel_bytes)
{
    enum { PANEL_BYTES = SIDE * PL_WORDS_LINE_BYTES };
    char own_x[MR * PL_WORDS_LINE_BYTES] = {0}, own_w[PL_WORDS_PANELS_MAX * PANEL_BYTES] = {0};
    for (int r = 0; r < rows; r++) memcpy(own_x + r * PL_WORDS_LINE_BYTES, x + r * stride, (size_t)(4 * words));
    for (int v = 0; v <= right; v++)
        memcpy(own_w + v * PANEL_BYTES, w + v * panel_bytes, (size_t)(words * PL_WORDS_LINE_BYTES));
    step(lower, right, own_x, PL_WORDS_LINE_BYTES, own_w, PANEL_BYTES);
}

AMX_TARGET PL_V_INLINE void store(int lower, int right, int32_t *d)
{
    char *at = (char *)d, *below = at + SIDE * D_BYTES;
    PL_AMX_STORE(0, at, D_BYTES);
    if (right) PL_AMX_STORE(1, at + PL_WORDS_LINE_BYTES, D_BYTES);
    if (lower) PL_AMX_STORE(2, below, D_BYTES);
    if (lower && right) PL_AMX_STORE(3, below + PL_WORDS_LINE_BYTES, D_BYTES);
}

AMX_TARGET PL_V_INLINE void tile(int rows, int lower, int right, int64_t words, const char *x, int64_t stride,
                                 const char *w, int64_t panel_bytes, int32_t *d)
{
    PL_AMX_ZERO(0);
    PL_AMX_ZERO(1);
    PL_AMX_ZERO(2);
    PL_AMX_ZERO(3);
    for (; words >= SIDE; words -= SIDE, x += 4 * SIDE, w += SIDE * PL_WORDS_LINE_BYTES)
        step(lower, right, x, stride, w, panel_bytes);
    if (words > 0) last_step(rows, lower, right, words, x, stride, w, panel_bytes);
    store(lower, right, d);
}

extern const pl_words_kernels pl_int8_kernels_avx512_vnni;

AMX_TARGET static void tile_of(int rows, int panels, int64_t words, const char *x, int64_t stride, const char *w,
                               int64_t panel_bytes, int32_t *d)
{
    if (rows <= FEW) {
        pl_int8_kernels_avx512_vnni.tiles[rows - 1][panels - 1](words, x, stride, w, panel_bytes, d);
        return;
    }
    pl_gemm_amx_shape(rows);
    if (rows > SIDE && panels > 1)
        tile(rows, 1, 1, words, x, stride, w, panel_bytes, d);
    else if (rows > SIDE)
        tile(rows, 1, 0, words, x, stride, w, panel_bytes, d);
    else if (panels > 1)
        tile(rows, 0, 1, words, x, stride, w, panel_bytes, d);
    else
        tile(rows, 0, 0, words, x, stride, w, panel_bytes, d);
}

#define TILE(rows, panels)                                                                                             \
    static void tile_##rows##_##panels(int64_t words, const char *x, int64_t stride, const char *w,                    \
                                       int64_t panel_bytes, int32_t *d)                                                \
    {                                                                                                                  \
        tile_of(rows, panels, words, x, stride, w, panel_bytes, d);                                                    \
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

static pl_words_tile_row tiles[] = {ALL_ROWS(ENTRY)};
/* clang-format on */

extern const pl_words_kernels pl_int8_kernels_amx;
const pl_words_kernels pl_int8_kernels_amx = {.name = "amx",
                                              .mr = MR,
                                              .panels = PL_WORDS_PANELS_MAX,
                                              .x_bytes = 4,
                                              .prepare = pl_words_copy,
                                              .tiles = tiles,
                                              .enter = pl_gemm_amx_enter,
                                              .leave = pl_gemm_amx_leave};
#endif
