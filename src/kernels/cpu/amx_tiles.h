/* The tiles of AMX, written once for products of bf16 and of int8: at most 32 rows × 32 columns of sums of 32 bits, of
 * words of four bytes. Who includes this has defined
 *      AMX_TARGET             an attribute for the instructions beyond the level's
 *      MULTIPLY(sums, a, b)   the instruction that multiplies tiles a and b and adds to the tile of sums
 *      TILE_ARGUMENTS         the parameters of an entry of the table, with their types
 *      TILE_PASSED            the same, as they are passed on
 * and then, with tile() at hand, a function tile_of(rows, vectors, TILE_PASSED); TILES behind it are the functions of
 * all rows, ENTRIES those of the table [rows − 1][vectors − 1]. No guard: included once a kind. */
#include "kernels/cpu/gemm_amx.h"

enum { SIDE = PL_GEMM_AMX_WORDS, LINE_BYTES = 64, MR = 2 * SIDE };

typedef struct amx_tile { /* distances in bytes */
    int64_t words;
    const char *a;
    int64_t a_row;
    const char *b;
    int64_t b_row, b_right; /* to the next word, to the second vector of columns */
    char *d;
    int64_t d_row;
    int add; /* to what stands there */
} amx_tile;

AMX_TARGET PL_V_INLINE void amx_begin(int lower, int right, const amx_tile *t)
{
    if (!t->add) {
        PL_AMX_ZERO(0);
        if (right) PL_AMX_ZERO(1);
        if (lower) PL_AMX_ZERO(2);
        if (lower && right) PL_AMX_ZERO(3);
        return;
    }
    const char *below = t->d + SIDE * t->d_row;
    PL_AMX_LOAD(0, t->d, t->d_row);
    if (right) PL_AMX_LOAD(1, t->d + LINE_BYTES, t->d_row);
    if (lower) PL_AMX_LOAD(2, below, t->d_row);
    if (lower && right) PL_AMX_LOAD(3, below + LINE_BYTES, t->d_row);
}

AMX_TARGET PL_V_INLINE void amx_store(int lower, int right, const amx_tile *t)
{
    char *below = t->d + SIDE * t->d_row;
    PL_AMX_STORE(0, t->d, t->d_row);
    if (right) PL_AMX_STORE(1, t->d + LINE_BYTES, t->d_row);
    if (lower) PL_AMX_STORE(2, below, t->d_row);
    if (lower && right) PL_AMX_STORE(3, below + LINE_BYTES, t->d_row);
}

/* Tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B. */
AMX_TARGET PL_V_INLINE void amx_step(int lower, int right, const char *a, int64_t a_row, const char *b, int64_t b_row,
                                     int64_t b_right)
{
    PL_AMX_LOAD(6, b, b_row);
    PL_AMX_LOAD(4, a, a_row);
    MULTIPLY(0, 4, 6);
    if (right) {
        PL_AMX_LOAD(7, b + b_right, b_row);
        MULTIPLY(1, 4, 7);
    }
    if (lower) {
        PL_AMX_LOAD(5, a + SIDE * a_row, a_row);
        MULTIPLY(2, 5, 6);
    }
    if (lower && right) MULTIPLY(3, 5, 7);
}

/* The last words, fewer than a tile has, are copied, with zeros behind them: what is behind a panel or a row is
 * nobody's. */
AMX_TARGET PL_V_INLINE void amx_last_step(int rows, int lower, int right, int64_t words, const char *a, int64_t a_row,
                                          const char *b, int64_t b_row, int64_t b_right)
{
    enum { PANEL_BYTES = SIDE * LINE_BYTES };
    char own_a[MR * LINE_BYTES] = {0}, own_b[2 * PANEL_BYTES] = {0};
    for (int r = 0; r < rows; r++) memcpy(own_a + r * LINE_BYTES, a + r * a_row, (size_t)(4 * words));
    for (int v = 0; v <= right; v++)
        for (int64_t p = 0; p < words; p++)
            memcpy(own_b + v * PANEL_BYTES + p * LINE_BYTES, b + v * b_right + p * b_row, LINE_BYTES);
    amx_step(lower, right, own_a, LINE_BYTES, own_b, LINE_BYTES, PANEL_BYTES);
}

AMX_TARGET PL_V_INLINE void amx_run(int rows, int lower, int right, const amx_tile *t)
{
    const char *a = t->a, *b = t->b;
    int64_t words = t->words;
    amx_begin(lower, right, t);
    for (; words >= SIDE; words -= SIDE, a += LINE_BYTES, b += SIDE * t->b_row)
        amx_step(lower, right, a, t->a_row, b, t->b_row, t->b_right);
    if (words > 0) amx_last_step(rows, lower, right, words, a, t->a_row, b, t->b_row, t->b_right);
    amx_store(lower, right, t);
}

AMX_TARGET PL_V_INLINE void tile(int rows, int vectors, const amx_tile *t)
{
    pl_gemm_amx_shape(rows);
    if (rows > SIDE && vectors > 1)
        amx_run(rows, 1, 1, t);
    else if (rows > SIDE)
        amx_run(rows, 1, 0, t);
    else if (vectors > 1)
        amx_run(rows, 0, 1, t);
    else
        amx_run(rows, 0, 0, t);
}

#define TILE(rows, vectors)                                                                                            \
    static void tile_##rows##_##vectors(TILE_ARGUMENTS) { tile_of(rows, vectors, TILE_PASSED); }
#define EIGHT(each, first, second, third, fourth, fifth, sixth, seventh, eighth)                                       \
    each(first) each(second) each(third) each(fourth) each(fifth) each(sixth) each(seventh) each(eighth)
#define ALL_ROWS(each)                                                                                                 \
    EIGHT(each, 1, 2, 3, 4, 5, 6, 7, 8)                                                                                \
    EIGHT(each, 9, 10, 11, 12, 13, 14, 15, 16)                                                                         \
    EIGHT(each, 17, 18, 19, 20, 21, 22, 23, 24)                                                                        \
    EIGHT(each, 25, 26, 27, 28, 29, 30, 31, 32)
#define BOTH(rows)  TILE(rows, 1) TILE(rows, 2)
#define ENTRY(rows) [(rows)-1] = {tile_##rows##_1, tile_##rows##_2},
#define TILES       ALL_ROWS(BOTH)
#define ENTRIES     ALL_ROWS(ENTRY)
