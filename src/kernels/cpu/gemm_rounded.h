/* Products of words for rows of 8 bits and a weight of blocks (kernels/gemm_rounded.h), written once for every kind of
 * dot. Some columns of the weight are taken apart, some groups of k at a time: codes as words of four neighbours in k,
 * beside them what codes are multiplied with. Each group's sum is a whole number and exact; becomes f32 and is added
 * to those before it, in the order of k. Who includes this has defined
 *      ROUNDED_TARGET    an attribute for instructions beyond the level's
 *      add_dots(x, w, is_byte, sum)   the sums with the dots of a word of x (s8) and of w (u8) added; is_byte: w has
 *                        codes of 8 bits, else of 6 at most
 *      TABLE, NAME       of the kernels
 * No guard: included once a kind. */
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/gemm_transpose.h"
#include "kernels/cpu/vec_real.h"
#include "kernels/gemm_rounded.h"

enum {
    VECTORS = 2,
    COLUMNS = VECTORS * PL_VW,
    WORDS = PL_GROUP / 4,
    GROUPS = 12, /* of k, taken apart at a time: they stay in the first-level cache */
    ROWS = PL_VW == 16 ? 6 : 2,
    AT_ONCE = 192,            /* rows whose sums wait: a multiple of ROWS */
    PIECES = PL_V_BYTES / 16, /* of a vector: half a group each */
    MOST_GROUPS = GROUPS + 1  /* a vector of codes may have a group more than there are */
};

/* A group of k, for all columns. */
typedef struct panel {
    pl_vi code[WORDS][VECTORS];
    pl_vf by[2][VECTORS], least[VECTORS]; /* two where half a group has a scale of its own (Q6_K) */
} panel;

typedef struct scratch {
    panel group[MOST_GROUPS];
    float sums[AT_ONCE * COLUMNS];
} scratch;

/* ---- a panel of the weight ---- */

typedef struct source { /* of columns; beyond the last one it stands again */
    const uint8_t *row[COLUMNS];
    int64_t row_bytes, first, groups; /* of k */
} source;

PL_V_INLINE const uint8_t *block_of(pl_encoding e, const source *s, int column, int64_t group)
{
    return s->row[column] + group / pl_groups_of(e) * pl_block_bytes_of(e);
}

/* Codes as bytes from 0 on: those of Q8_0 have their sign turned. */
PL_V_INLINE pl_vb unsigned_codes(pl_encoding e, const uint8_t *b, int64_t group, int half)
{
    const pl_vb codes = pl_codes_of(e, b, group % pl_groups_of(e), half);
    return e == PL_ENCODING_Q8_0 ? codes ^ 0x80 : codes;
}

/* Codes of PL_VW columns, PIECES half groups from `half` on, and the next columns' asked for. */
PL_V_INLINE void take_square(pl_encoding e, const source *s, int first_column, int64_t half, panel *to)
{
    uint8_t bytes[PL_VW][PL_V_BYTES] __attribute__((aligned(64)));
    pl_vf v[PL_VW];
    for (int j = 0; j < PL_VW; j++) PL_V_UNROLL for (int p = 0; p < PIECES; p++)
        {
            const int64_t group = s->first + (half + p) / 2;
            if (group >= s->groups) {
                memset(bytes[j] + 16 * p, 0, 16);
                continue;
            }
            const uint8_t *b = block_of(e, s, first_column + j, group);
            const pl_vb codes = unsigned_codes(e, b, group, (int)((half + p) % 2));
            memcpy(bytes[j] + 16 * p, &codes, sizeof codes);
            if (p == 0) __builtin_prefetch(b + COLUMNS * s->row_bytes, 0, 2);
        }
#if PL_VW == 16
    pl_gemm_load_transposed((const char *)bytes, PL_V_BYTES, v);
#else
    PL_V_UNROLL for (int j = 0; j < PL_VW; j++) memcpy(&v[j], bytes[j], sizeof v[j]);
    pl_gemm_transpose(v);
#endif
    PL_V_UNROLL for (int w = 0; w < PL_VW; w++)
    {
        const int64_t word = half * 4 + w;
        to[word / WORDS].code[word % WORDS][first_column / PL_VW] = (pl_vi)v[w];
    }
}

/* Scales and minima of a group of short blocks: f16, side by side. */
PL_V_INLINE void take_short_scales(pl_encoding e, const source *s, int64_t group, panel *to)
{
    uint16_t half[2][COLUMNS] __attribute__((aligned(64)));
    for (int j = 0; j < COLUMNS; j++) {
        const uint8_t *b = block_of(e, s, j, group);
        memcpy(&half[0][j], b, 2);
        if (pl_has_least(e)) memcpy(&half[1][j], b + 2, 2);
    }
    PL_V_UNROLL for (int v = 0; v < VECTORS; v++)
    {
        to->by[0][v] = pl_v_get(PL_REAL_F16, half[0], v * PL_VW, PL_VW);
        if (pl_has_least(e)) to->least[v] = pl_v_get(PL_REAL_F16, half[1], v * PL_VW, PL_VW);
    }
}

/* The same of long blocks, for each of the groups [from, end) of one column. */
PL_V_INLINE void take_long_scales(pl_encoding e, const source *s, int column, int64_t from, int64_t end, panel *to)
{
    for (int64_t group = from; group < end;) {
        pl_block_scales scales;
        pl_scales_of(e, block_of(e, s, column, group), &scales);
        do {
            const int64_t g = group % pl_groups_of(e);
            panel *p = &to[group - from];
            const int v = column / PL_VW, lane = column % PL_VW;
            if (e == PL_ENCODING_Q6_K) {
                ((float *)&p->by[0][v])[lane] = scales.bys[2 * g];
                ((float *)&p->by[1][v])[lane] = scales.bys[2 * g + 1];
            } else {
                ((float *)&p->by[0][v])[lane] = scales.bys[g];
                ((float *)&p->least[v])[lane] = scales.leasts[g];
            }
        } while (++group < end && group % pl_groups_of(e));
    }
}

PL_V_INLINE void take_columns(pl_encoding e, const source *s, int64_t count, panel *to)
{
    for (int v = 0; v < VECTORS; v++)
        for (int64_t half = 0; half < 2 * count; half += PIECES) take_square(e, s, v * PL_VW, half, to);
    if (e < PL_ENCODING_Q4_K)
        for (int64_t g = 0; g < count; g++) take_short_scales(e, s, s->first + g, &to[g]);
    else
        for (int j = 0; j < COLUMNS; j++) take_long_scales(e, s, j, s->first, s->first + count, to);
}

PL_V_CALL void take_panel(pl_encoding e, const source *s, int64_t count, panel *to)
{
    PL_BLOCKS_EACH(e, take_columns(ENCODING, s, count, to));
}

/* ---- tiles ---- */

typedef enum form { FORM_PLAIN, FORM_LEAST, FORM_HALVES, FORM_BYTES, FORM_COUNT } form;

static form form_of(pl_encoding e)
{
    if (e == PL_ENCODING_Q8_0) return FORM_BYTES;
    return e == PL_ENCODING_Q6_K ? FORM_HALVES : pl_has_least(e) ? FORM_LEAST : FORM_PLAIN;
}

/* Words [begin, end) of a group, in whole numbers, and then what they stand for. */
ROUNDED_TARGET PL_V_INLINE void add_words(form f, int rows, int half, int begin, int end, const panel *w,
                                          const pl_rounded_group *x, pl_vf acc[][VECTORS])
{
    pl_vi sum[ROWS][VECTORS];
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] =
        pl_v_set_i32(x[r].start[half]);
    PL_V_UNROLL for (int p = begin; p < end; p++) PL_V_UNROLL for (int r = 0; r < rows; r++)
    {
        int32_t word;
        memcpy(&word, x[r].code + 4 * p, sizeof word);
        const pl_vi all = pl_v_set_i32(word);
        PL_V_UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] =
            add_dots(all, w->code[p][v], f == FORM_BYTES, sum[r][v]);
    }
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] =
        pl_v_fma(__builtin_convertvector(sum[r][v], pl_vf) * w->by[half][v], pl_v_set(x[r].by), acc[r][v]);
}

ROUNDED_TARGET PL_V_INLINE void add_groups(form f, int rows, int64_t count, const panel *w, const pl_rounded_group *x,
                                           int64_t x_rows, float *s, int is_first)
{
    pl_vf acc[ROWS][VECTORS];
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] =
        is_first ? pl_v_zero() : pl_v_load(s + r * COLUMNS + v * PL_VW);
    for (int64_t g = 0; g < count; g++, x += x_rows) {
        add_words(f, rows, 0, 0, f == FORM_HALVES ? WORDS / 2 : WORDS, w + g, x, acc);
        if (f == FORM_HALVES) add_words(f, rows, 1, WORDS / 2, WORDS, w + g, x, acc);
        if (f == FORM_LEAST)
            PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] =
                pl_v_fma(w[g].least[v], pl_v_set(x[r].total), acc[r][v]);
    }
    PL_V_UNROLL for (int r = 0; r < rows; r++) PL_V_UNROLL for (int v = 0; v < VECTORS; v++)
        pl_v_store(s + r * COLUMNS + v * PL_VW, acc[r][v]);
}

typedef void tile_fn(int64_t count, const panel *w, const pl_rounded_group *x, int64_t x_rows, float *s, int is_first);

#define TILE(name, form, rows)                                                                                         \
    ROUNDED_TARGET static void name(int64_t count, const panel *w, const pl_rounded_group *x, int64_t x_rows,          \
                                    float *s, int is_first)                                                            \
    {                                                                                                                  \
        add_groups(form, rows, count, w, x, x_rows, s, is_first);                                                      \
    }
#define TILES(name, form) TILE(name##_one, form, 1) TILE(name##_some, form, ROWS)
/* clang-format off: it takes the macros for types */
TILES(plain, FORM_PLAIN)
TILES(least, FORM_LEAST)
TILES(halves, FORM_HALVES)
TILES(byte, FORM_BYTES)
/* clang-format on */

static tile_fn *const tiles[FORM_COUNT][2] = {[FORM_PLAIN] = {plain_one, plain_some},
                                              [FORM_LEAST] = {least_one, least_some},
                                              [FORM_HALVES] = {halves_one, halves_some},
                                              [FORM_BYTES] = {byte_one, byte_some}};

/* ---- columns of C ---- */

/* Sums of rows [i, i + rows). */
static void sum_rows(const pl_rounded_product *t, source *s, int64_t i, int64_t rows, scratch *own)
{
    tile_fn *const *tile = tiles[form_of(t->encoding)];
    for (s->first = 0; s->first < s->groups; s->first += GROUPS) {
        const int64_t left = s->groups - s->first, count = left < GROUPS ? left : GROUPS;
        const pl_rounded_group *x = t->x + s->first * t->m + i;
        take_panel(t->encoding, s, count, own->group);
        for (int64_t r = 0, step; r < rows; r += step) {
            step = rows - r < ROWS ? 1 : ROWS;
            tile[step > 1](count, own->group, x + r, t->m, own->sums + r * COLUMNS, s->first == 0);
        }
    }
}

static void product_of_columns(const pl_rounded_product *t, int64_t begin, int64_t end, void *memory)
{
    scratch *own = memory;
    source s = {.row_bytes = pl_encoding_row_bytes(t->encoding, t->k), .groups = t->k / PL_GROUP};
    for (int64_t j = begin; j < end; j += COLUMNS) {
        const int64_t columns = end - j < COLUMNS ? end - j : COLUMNS;
        for (int64_t c = 0; c < COLUMNS; c++)
            s.row[c] = (const uint8_t *)t->w + (j + (c < columns ? c : columns - 1)) * s.row_bytes;
        for (int64_t i = 0; i < t->m; i += AT_ONCE) {
            const int64_t rows = t->m - i < AT_ONCE ? t->m - i : AT_ONCE;
            sum_rows(t, &s, i, rows, own);
            pl_gemm_finish(&t->epilogue, own->sums, COLUMNS, i, j, rows, columns);
        }
    }
}

extern const pl_rounded_kernels TABLE;
const pl_rounded_kernels TABLE = {.name = NAME, .scratch_bytes = sizeof(scratch), .columns = product_of_columns};
