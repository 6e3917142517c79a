/* The tiles of words.h, written once for every kind of dot. Who includes this has defined
 *      TILE_TARGET       an attribute for instructions beyond the level's
 *      MR, PANELS        of the largest tile that is not wide
 *      WIDE_ROWS         perhaps: the most rows with three panels
 *      CHAINS(rows)      sums of an element that run side by side, where one would wait for its own latency
 *      BLOCK             words after which a running sum is full
 *      TERMS             parts of a dot; k is run through once for each, so that few registers are in use
 *      PLANE_BYTES(words)         from what one part takes of a row of x to what the next one takes
 *      part_of_w(t, w)            what part t takes of a vector of w
 *      word_of_x(t, x)            likewise of the word at x, in every lane
 *      add_dot(word, part, sum)   the running sum with their dot added
 *      sum_of(sum)                a running sum as int32
 * and finds the table `tiles`, [rows − 1][panels − 1]. No guard: included once a kind. */
enum {
    VECTORS = PL_WORDS_PANEL / PL_VW,                       /* of a panel's line */
    CHAINED_ROWS = CHAINS(1) * 2 > MR ? CHAINS(1) * 2 : MR, /* at most; those of few rows run side by side */
#if defined(WIDE_ROWS)
    MOST_VECTORS = PL_WORDS_PANELS_MAX * VECTORS,
#else
    MOST_VECTORS = PANELS * VECTORS,
#endif
};

typedef struct tile_rows { /* four pointers and one stride for twelve rows, as x86 addresses them */
    const char *at[4];
    int64_t stride;
} tile_rows;

/* Part t of one word of k: of all rows with all columns. */
TILE_TARGET PL_V_INLINE void tile_step(int t, int rows, int panels, const tile_rows *x, int64_t offset, const char *w,
                                       int64_t panel_bytes, pl_vi (*sums)[MOST_VECTORS])
{
    const int vectors = panels * VECTORS;
    pl_vi part[MOST_VECTORS];
    PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        const char *at = w + v / VECTORS * panel_bytes + v % VECTORS * PL_V_BYTES;
        part[v] = part_of_w(t, *(const pl_vi_unaligned *)(const void *)at);
    }
    PL_V_UNROLL for (int r = 0; r < rows; r++)
    {
        const pl_vi word = word_of_x(t, x->at[r / 3] + offset + r % 3 * x->stride);
        PL_V_UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = add_dot(word, part[v], sums[r][v]);
    }
}

/* Part t of words [p, end). */
TILE_TARGET PL_V_INLINE void tile_run(int t, int rows, int panels, int64_t p, int64_t end, const tile_rows *x,
                                      const char *w, int64_t panel_bytes, pl_vi (*sums)[MOST_VECTORS])
{
    const int chains = CHAINS(rows);
#pragma GCC unroll 2
    for (; p + chains <= end; p += chains)
        PL_V_UNROLL for (int c = 0; c < chains; c++)
            tile_step(t, rows, panels, x, 4 * (p + c), w + (p + c) * PL_WORDS_LINE_BYTES, panel_bytes, sums + c * rows);
    for (; p < end; p++) tile_step(t, rows, panels, x, 4 * p, w + p * PL_WORDS_LINE_BYTES, panel_bytes, sums);
}

TILE_TARGET PL_V_INLINE void tile_store(int rows, int panels, pl_vi (*sums)[MOST_VECTORS], int32_t *d, int add)
{
    const int chains = CHAINS(rows), vectors = panels * VECTORS;
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++)
    {
        pl_vi_unaligned *to = (void *)(d + r * PL_WORDS_TILE_COLUMNS + v * PL_VW);
        PL_V_UNROLL for (int c = 1; c < chains; c++) sums[r][v] += sums[c * rows + r][v];
        pl_vi sum = sum_of(sums[r][v]);
        if (add) sum += *to;
        *to = sum;
    }
}

TILE_TARGET PL_V_INLINE void tile_of(int rows, int panels, int64_t words, const char *x, int64_t stride, const char *w,
                                     int64_t panel_bytes, int32_t *d)
{
    const int chained = CHAINS(rows) * rows, vectors = panels * VECTORS;
    for (int64_t first = 0, end; first < words; first = end) {
        pl_vi sums[CHAINED_ROWS][MOST_VECTORS];
        end = words - first < BLOCK ? words : first + BLOCK;
        PL_V_UNROLL for (int r = 0; r < chained; r++) PL_V_UNROLL for (int v = 0; v < vectors; v++) sums[r][v] =
            (pl_vi){0};
        PL_V_UNROLL for (int t = 0; t < TERMS; t++)
        {
            const char *plane = x + t * PLANE_BYTES(words);
            const tile_rows at = {{plane, plane + 3 * stride, plane + 6 * stride, plane + 9 * stride}, stride};
            tile_run(t, rows, panels, first, end, &at, w, panel_bytes, sums);
        }
        tile_store(rows, panels, sums, d, first > 0);
    }
}

#define TILE(rows, panels)                                                                                             \
    TILE_TARGET static void tile_##rows##_##panels(int64_t words, const char *x, int64_t stride, const char *w,        \
                                                   int64_t panel_bytes, int32_t *d)                                    \
    {                                                                                                                  \
        tile_of(rows, panels, words, x, stride, w, panel_bytes, d);                                                    \
    }
/* clang-format off: it takes the macros for types */
#if PANELS > 1
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define ENTRY(rows) {tile_##rows##_1, tile_##rows##_2},
#else
#define TILES(rows) TILE(rows, 1)
#define ENTRY(rows) {tile_##rows##_1},
#endif
#if MR == 12
#define ALL(each) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10) each(11) each(12)
#elif MR == 6
#define ALL(each) each(1) each(2) each(3) each(4) each(5) each(6)
#elif MR == 3
#define ALL(each) each(1) each(2) each(3)
#else
#define ALL(each) each(1) each(2)
#endif
ALL(TILES)
#if defined(WIDE_ROWS)
#define WIDE_TILE(rows)  TILE(rows, 3)
#define WIDE_ENTRY(rows) {tile_##rows##_1, tile_##rows##_2, tile_##rows##_3},
#define NINE(each)       each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9)
NINE(WIDE_TILE)
static pl_words_tile_row tiles[] = {NINE(WIDE_ENTRY) ENTRY(10) ENTRY(11) ENTRY(12)};
#else
static pl_words_tile_row tiles[] = {ALL(ENTRY)};
#endif
/* clang-format on */
