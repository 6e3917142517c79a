/* The tiles, written once for every kind of word (kernels/gemm.h). Who includes this has defined
 *      word, words                      one word in memory, a vector of PL_VW of them
 *      load_words, set_word             from memory; one word in every lane
 *      multiply_add(words a, words b, pl_vf sums)
 *      TILE_TARGET                      an attribute for instructions beyond the level's
 *      WIDE_TILES                       1 where wide tiles are wanted by rows (9 × 3 and 6 × 4), else 0
 * and finds the tables by_rows, by_rows_ahead and by_columns, [rows − 1][vectors − 1], of which by_rows alone ask for
 * what a caller wants asked for. No guard: included once a kind. */

/* Words of k until memory is asked for again. */
PL_V_INLINE int64_t stretch_at(int64_t begin, int64_t k)
{
    return k - begin < PL_GEMM_AHEAD_WORDS ? k - begin : PL_GEMM_AHEAD_WORDS;
}

/* One step of k: row r of the tile takes a(r, p) from base pointer r/3 at offset r%3 strides, so that x86 addressing
 * needs four pointers and one index for twelve rows. */
#define STEP(r, value)                                                                                                 \
    if (rows > (r)) {                                                                                                  \
        words x = set_word(value);                                                                                     \
        acc[r][0] = multiply_add(x, b0, acc[r][0]);                                                                    \
        if (vectors > 1) acc[r][1] = multiply_add(x, b1, acc[r][1]);                                                   \
        if (vectors > 2) acc[r][2] = multiply_add(x, b2, acc[r][2]);                                                   \
        if (vectors > 3) acc[r][3] = multiply_add(x, b3, acc[r][3]);                                                   \
    }

/* From zero, or from where the sums stand so far. */
TILE_TARGET PL_V_INLINE void start_tile(int rows, int vectors, pl_vf acc[][PL_GEMM_VECTORS_MAX], const float *d,
                                        int64_t ldd, int add)
{
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) acc[r][v] = add ? pl_v_load(d + r * ldd + v * PL_VW) : pl_v_zero();
}

TILE_TARGET PL_V_INLINE void store_tile(int rows, int vectors, pl_vf acc[][PL_GEMM_VECTORS_MAX], float *d, int64_t ldd)
{
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) pl_v_store(d + r * ldd + v * PL_VW, acc[r][v]);
}

/* A step of k's share of what lies so many words behind b, into the second-level cache. */
PL_V_INLINE void fetch_words(int vectors, const word *b, int64_t behind)
{
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) __builtin_prefetch(b + behind + v * PL_VW, 0, 2);
}

TILE_TARGET PL_V_INLINE void tile_by_rows(int rows, int vectors, int ahead, int64_t k, const word *a, int64_t s,
                                          const word *b, int64_t ldb, float *d, int64_t ldd, int add,
                                          pl_gemm_ahead *next)
{
    const int64_t all = k * ldb;
    pl_vf acc[12][PL_GEMM_VECTORS_MAX];
    start_tile(rows, vectors, acc, d, ldd, add);
    const word *a0 = a, *a3 = a + 3 * s, *a6 = a + 6 * s, *a9 = a + 9 * s;
    for (int64_t begin = 0, stretch; begin < k; begin += stretch) {
        stretch = next ? stretch_at(begin, k) : k;
        pl_gemm_ahead_step(next);
#pragma GCC unroll 4
        for (int64_t p = 0; p < stretch; p++, b += ldb, a0++, a3++, a6++, a9++) {
            words b0 = load_words(b), b1 = vectors > 1 ? load_words(b + PL_VW) : b0;
            words b2 = vectors > 2 ? load_words(b + 2 * PL_VW) : b0, b3 = vectors > 3 ? load_words(b + 3 * PL_VW) : b0;
            if (ahead) fetch_words(vectors, b, all);
            STEP(0, a0[0])
            STEP(1, a0[s])
            STEP(2, a0[2 * s])
            STEP(3, a3[0])
            STEP(4, a3[s])
            STEP(5, a3[2 * s])
            STEP(6, a6[0])
            STEP(7, a6[s])
            STEP(8, a6[2 * s])
            STEP(9, a9[0])
            STEP(10, a9[s])
            STEP(11, a9[2 * s])
        }
    }
    store_tile(rows, vectors, acc, d, ldd);
}

TILE_TARGET PL_V_INLINE void tile_by_columns(int rows, int vectors, int64_t k, const word *a, const word *b,
                                             int64_t ldb, float *d, int64_t ldd, int add)
{
    pl_vf acc[12][PL_GEMM_VECTORS_MAX];
    start_tile(rows, vectors, acc, d, ldd, add);
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; p++, b += ldb, a += rows) {
        words b0 = load_words(b), b1 = vectors > 1 ? load_words(b + PL_VW) : b0, b2 = b0, b3 = b0;
        STEP(0, a[0])
        STEP(1, a[1])
        STEP(2, a[2])
        STEP(3, a[3])
        STEP(4, a[4])
        STEP(5, a[5])
        STEP(6, a[6])
        STEP(7, a[7])
        STEP(8, a[8])
        STEP(9, a[9])
        STEP(10, a[10])
        STEP(11, a[11])
    }
    store_tile(rows, vectors, acc, d, ldd);
}

#define TILE(rows, vectors)                                                                                            \
    TILE_TARGET static void by_rows_##rows##_##vectors(int64_t k, const void *a, int64_t s, const void *b,             \
                                                       int64_t ldb, float *d, int64_t ldd, int add,                    \
                                                       pl_gemm_ahead *next)                                            \
    {                                                                                                                  \
        tile_by_rows(rows, vectors, 0, k, a, s, b, ldb, d, ldd, add, next);                                            \
    }                                                                                                                  \
    TILE_TARGET static void by_rows_ahead_##rows##_##vectors(int64_t k, const void *a, int64_t s, const void *b,       \
                                                             int64_t ldb, float *d, int64_t ldd, int add,              \
                                                             pl_gemm_ahead *next)                                      \
    {                                                                                                                  \
        (void)next;                                                                                                    \
        tile_by_rows(rows, vectors, 1, k, a, s, b, ldb, d, ldd, add, NULL);                                            \
    }                                                                                                                  \
    TILE_TARGET static void by_columns_##rows##_##vectors(int64_t k, const void *a, int64_t s, const void *b,          \
                                                          int64_t ldb, float *d, int64_t ldd, int add,                 \
                                                          pl_gemm_ahead *next)                                         \
    {                                                                                                                  \
        (void)s, (void)next;                                                                                           \
        tile_by_columns(rows, vectors, k, a, b, ldb, d, ldd, add);                                                     \
    }
#define WIDE_TILE(rows, vectors)                                                                                       \
    TILE_TARGET static void by_rows_##rows##_##vectors(int64_t k, const void *a, int64_t s, const void *b,             \
                                                       int64_t ldb, float *d, int64_t ldd, int add,                    \
                                                       pl_gemm_ahead *next)                                            \
    {                                                                                                                  \
        tile_by_rows(rows, vectors, 0, k, a, s, b, ldb, d, ldd, add, next);                                            \
    }
/* clang-format off: it takes the macros for types */
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
#if PL_GEMM_MR >= 6
TILES(5)
TILES(6)
#endif
#if PL_GEMM_MR >= 12
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)
#endif

#define ENTRY(form, rows)                                                                                              \
    {                                                                                                                  \
        form##_##rows##_1, form##_##rows##_2                                                                           \
    }
#define FOUR(form) ENTRY(form, 1), ENTRY(form, 2), ENTRY(form, 3), ENTRY(form, 4)
#define SIX(form)  FOUR(form), ENTRY(form, 5), ENTRY(form, 6)
#define TWELVE(form)                                                                                                   \
    SIX(form), ENTRY(form, 7), ENTRY(form, 8), ENTRY(form, 9), ENTRY(form, 10), ENTRY(form, 11), ENTRY(form, 12)
#if PL_GEMM_MR >= 12
#define ALL(form) TWELVE(form)
#elif PL_GEMM_MR >= 6
#define ALL(form) SIX(form)
#else
#define ALL(form) FOUR(form)
#endif
#if WIDE_TILES
#define THREE(rows) WIDE_TILE(rows, 3)
#define BOTH(rows)  THREE(rows) WIDE_TILE(rows, 4)
BOTH(1)
BOTH(2)
BOTH(3)
BOTH(4)
BOTH(5)
BOTH(6)
THREE(7)
THREE(8)
THREE(9)
#define WITH_3(rows)                                                                                                   \
    {                                                                                                                  \
        by_rows_##rows##_1, by_rows_##rows##_2, by_rows_##rows##_3                                                     \
    }
#define WITH_4(rows)                                                                                                   \
    {                                                                                                                  \
        by_rows_##rows##_1, by_rows_##rows##_2, by_rows_##rows##_3, by_rows_##rows##_4                                 \
    }
static pl_gemm_tile_row by_rows[] = {WITH_4(1), WITH_4(2),          WITH_4(3),          WITH_4(4),
                                     WITH_4(5), WITH_4(6),          WITH_3(7),          WITH_3(8),
                                     WITH_3(9), ENTRY(by_rows, 10), ENTRY(by_rows, 11), ENTRY(by_rows, 12)};
#else
static pl_gemm_tile_row by_rows[] = {ALL(by_rows)};
#endif
static pl_gemm_tile_row by_rows_ahead[] = {ALL(by_rows_ahead)};
static pl_gemm_tile_row by_columns[] = {ALL(by_columns)};
/* clang-format on */
