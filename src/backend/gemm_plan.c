/* Sizes of a product's pieces and the layout of its workspace. */
#include "backend/gemm_plan.h"

#include <assert.h>

#include "base/size.h"

/* Multiply-adds below which waking the team costs more than it saves; a thin product waits for memory, not for them. */
static const double parallel_macs = 1 << 19, parallel_thin_macs = 1 << 17;

enum {
    GROUP_ROWS = 48,
    CROWDED_ROWS = 8,    /* rows 2 KiB·n apart share a few sets of the first-level cache, which has 8 ways or more */
    ROWS_IN_L2 = 528,    /* of A, while one packed panel of B after the other passes by */
    CROWDED_IN_L2 = 192, /* the same of crowded rows */
    B_IN_L2_ELEMS = 1 << 17,
    FAR_BYTES = 1280, /* from one row of B to the next, where B is no longer read as it lies */
    FAR_BYTES_WIDE = 2048,
    STRIP_COLUMNS = 8,         /* column panels of a unit when A is packed */
    PACKED_STRIP_WORDS = 8192, /* of B, whose panels are packed side by side: 32 KiB */
    STRIP_K_BLOCK = 128,       /* so that a strip is some lines of memory wide */
    WIDENED_COLUMNS = 3,       /* column panels of a unit whose sums wait, where A is widened in long blocks */
    UNITS_PER_THREAD = 4,      /* at least, where the product is large enough */
    TURNED_SIDE = 128,         /* columns and rows of a weight whose gradient tiles of AMX make of samples of a … */
    LEAST_SIDE = 32,           /* … quarter of 32 tokens, and of half of them */
    TURNED_K_BLOCK = 256,      /* such products: blocks of k, … */
    TURNED_COLUMNS = 24,       /* … column panels of a unit, and … */
    TURNED_UNITS = 2,          /* … units for each thread, at least: both operands are packed for each unit again */
    LONG_BLOCKS = 4,  /* of k: more of them and the rows of a unit are not in the second-level cache, so that … */
    LONG_COLUMNS = 3, /* … as many column panels take each block of k together */
};

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* Thin products. (The scalar reference makes all of them so.) */
static int is_thin(const pl_gemm_call *c, const pl_gemm_kernels *kernels)
{
    int one_type = c->a_type == c->b_type || c->a_type == PL_REAL_F32;
    int dots = c->dots && c->a_col == 1 && c->b_row == 1 && !c->accumulate && one_type;
    return kernels->nr == 1 || dots;
}

/* A as tiles read it, where it is not packed by columns. Tiles that take whole lines do not come back to them. */
static int is_crowded(const pl_gemm_call *c, const pl_gemm_kernels *kernels)
{
    return kernels->multiple == 1 && c->a_col == 1 && c->a_row * pl_real_bytes(c->a_type) % 2048 == 0;
}

/* A is read where it is, by tiles of whole lines (AMX). */
static int in_lines(const pl_gemm_plan *p) { return p->a_form == PL_GEMM_IN_PLACE && p->kernels->multiple > 1; }

/* Rows of B that are read as they lie are so many bytes apart: each second or third step of k is another page, and
 * where powers of two are in that the same few sets of each cache. (Tiles of 16 words hide more of it behind their
 * arithmetic. Gradient of x, Zen 3 and Sapphire Rapids, widths of 384 and 512 to 3072: packed it is 1.1 to 1.4 times as
 * fast, up to 3 times where the last panel is ragged.) Of one panel of rows each number of B is read once, and packing
 * is one time more. */
static int is_far_apart(const pl_gemm_plan *p, const pl_gemm_call *c)
{
    int64_t bytes = c->b_row * (int64_t)sizeof(float);
    return p->a_form == PL_GEMM_IN_PLACE && c->m > p->mr &&
           bytes >= (p->kernels->vector < 16 ? FAR_BYTES : FAR_BYTES_WIDE);
}

/* Where both strides are 1 there is one row or one column: the gradient of a weight with one output, whose tokens are
 * added in their order. */
static int is_by_columns(const pl_gemm_call *c) { return c->a_col != 1 || c->a_row == 1; }

/* Are the zeros that fill a sample up, and the packing, worth the tiles? The shape of the model alone decides, not the
 * number of samples: bits follow from it. Measured with weights of 768 × 768, tiles against operands widened to f32: 12
 * of 32 tokens 2.8 times as fast, 17 of 32 3.5 times, 197 of 224 5 times; of 64 × 64 0.9 to 1.4, 1.1 and 1.8 times. */
static int fills_groups(const pl_gemm_call *c)
{
    const int64_t filled = pl_gemm_whole_groups(c->k_sample), side = min_of(c->m, c->n);
    return c->k_sample > 0 &&
           (side >= TURNED_SIDE ? 4 * c->k_sample >= filled : side >= LEAST_SIDE && 2 * c->k_sample >= filled);
}

/* The gradient of a weight that is a plain sum in f32, of samples that may be filled up. */
static int is_sum_of_samples(const pl_gemm_call *c)
{
    const int plain = c->type == PL_REAL_F32 && !c->bias && !c->residual && !c->act_out && !c->grad_of && !c->act_again;
    return is_by_columns(c) && c->b_col == 1 && plain && !c->gated && !c->dots && fills_groups(c);
}

static int is_turned(const pl_gemm_call *c, pl_isa isa)
{
    const pl_gemm_packers *pack = pl_gemm_kernels_by_rows(isa, c->a_type, c->b_type)->pack[0];
    return is_sum_of_samples(c) && pack && pack[c->a_type].a_turned;
}

static const pl_gemm_kernels *kernels_of(const pl_gemm_call *c, pl_isa isa)
{
    return is_by_columns(c) && !is_turned(c, isa) ? pl_gemm_kernels_of(isa, c->a_type, c->b_type)
                                                  : pl_gemm_kernels_by_rows(isa, c->a_type, c->b_type);
}

/* Elements of k that tiles take at a time. */
static int64_t step_of(const pl_gemm_kernels *kernels) { return (int64_t)kernels->step * kernels->multiple; }

/* Words are read where the caller has them if they are f32, or pairs that no row cuts. */
static pl_gemm_form form_of_a(const pl_gemm_call *c, const pl_gemm_kernels *kernels, pl_isa isa)
{
    if (is_by_columns(c)) return is_turned(c, isa) ? PL_GEMM_TURNED : PL_GEMM_BY_COLUMNS;
    int in_place = kernels->step == 1 ? c->a_type == PL_REAL_F32 : c->a_row % 2 == 0 && c->k % step_of(kernels) == 0;
    return in_place ? PL_GEMM_IN_PLACE : PL_GEMM_BY_ROWS;
}

enum { WIDE_VECTORS = 12 }; /* of C, from which on a narrower tile at its edge is little */

/* Vectors of a tile; 2 where wide tiles would be of no use. */
static int vectors_of(const pl_gemm_plan *p, const pl_gemm_call *c)
{
    const pl_gemm_kernels *t = p->kernels;
    const int64_t vectors = c->n / t->vector;
    const int b_as_strips = c->b_col != 1 || c->b_type == PL_REAL_F32; /* or not packed at all */
    if (!t->wide_rows[0] || p->a_form != PL_GEMM_IN_PLACE || !b_as_strips || c->n % t->vector != 0) return 2;
    if (c->gated) return vectors > 1 ? 4 : 2;
    return vectors % 3 == 0 || vectors >= WIDE_VECTORS ? 3 : 2;
}

static void choose_tile(pl_gemm_plan *p, const pl_gemm_call *c)
{
    const int vectors = vectors_of(p, c);
    p->wide = vectors > 2;
    p->mr = p->wide ? p->kernels->wide_rows[vectors - 3] : p->kernels->mr;
    p->nr = p->wide ? vectors * p->kernels->vector : p->kernels->nr;
}

/* The gradient of a weight in f32, k = tokens. */
static int is_gradient(const pl_gemm_plan *p, const pl_gemm_call *c)
{
    return p->a_form == PL_GEMM_BY_COLUMNS && c->b_col == 1 && c->a_type == PL_REAL_F32 && c->b_type == PL_REAL_F32;
}

/* Both are packed, B some panels at a time: one at a time would be a line or two of each page. */
static int packs_strips(const pl_gemm_plan *p, const pl_gemm_call *c)
{
    int far_apart = c->b_row * (int64_t)sizeof(float) % 4096 == 0;
    return is_gradient(p, c) && far_apart && (p->kernels->vector < 16 || c->k * c->n > B_IN_L2_ELEMS);
}

/* A of 16 bits becomes f32, in blocks of k so long that most products have one. */
static int in_long_blocks(const pl_gemm_plan *p)
{
    return p->a_form == PL_GEMM_BY_ROWS && p->kernels->k_block_widened > p->kernels->k_block_packed;
}

static int packs_both(const pl_gemm_plan *p) { return p->a_form != PL_GEMM_IN_PLACE && p->pack_b; }

/* Words of a row of A, and of its copy by rows: an odd number of lines, lest all rows fall into the same sets. */
static int64_t words_of(const pl_gemm_plan *p, int64_t k)
{
    return pl_gemm_ceil_div(k, step_of(p->kernels)) * p->kernels->multiple;
}

static int64_t copied_row_words(int64_t words) { return pl_gemm_ceil_div(words, 32) * 32 + 16; }

/* Where A is packed, shorter blocks leave room for more rows to meet each panel of B. Sums of a gated product cannot
 * wait in C, where there is half the room, and in the thread's memory only those of few rows can: one block that is at
 * most so long spares it that (2 to 3 % of the rate with a second-level cache of 2 MB). */
enum { GATED_K_BLOCK = 768 };

/* Tokens and zeros of all samples. */
static int64_t filled_up(const pl_gemm_call *c)
{
    const int64_t end = c->k_first + c->k;
    assert(c->k_first % PL_GEMM_TOKEN_GROUP == 0 && c->k_first < c->k_sample);
    return end / c->k_sample * pl_gemm_whole_groups(c->k_sample) + pl_gemm_whole_groups(end % c->k_sample) - c->k_first;
}

static void cut_k(pl_gemm_plan *p, const pl_gemm_call *c)
{
    const int whole = c->gated && p->kernels->step == 1 && c->k <= GATED_K_BLOCK;
    int64_t limit = whole ? GATED_K_BLOCK : p->kernels->k_block, count;
    if (p->a_form != PL_GEMM_IN_PLACE) limit = p->kernels->k_block_packed;
    if (in_long_blocks(p)) limit = p->kernels->k_block_widened;
    if (p->a_form == PL_GEMM_TURNED) limit = TURNED_K_BLOCK;
    if (p->wide) limit = p->kernels->k_block_wide;
    if (packs_strips(p, c) && c->k > limit) limit = STRIP_K_BLOCK;
    p->k = p->a_form == PL_GEMM_TURNED ? filled_up(c) : c->k;
    count = pl_gemm_ceil_div(p->k, limit);
    int64_t round = max_of(max_of(16, step_of(p->kernels)), pl_encoding_block(c->b_encoding));
    p->k_block = min_of(p->k, pl_gemm_ceil_div(pl_gemm_ceil_div(p->k, count), round) * round);
    p->k_blocks = pl_gemm_ceil_div(p->k, p->k_block);
}

static void cut_panels(pl_gemm_plan *p, const pl_gemm_call *c)
{
    int crowded = p->a_form == PL_GEMM_IN_PLACE && is_crowded(c, p->kernels);
    int64_t mr = crowded ? min_of(p->mr, CROWDED_ROWS) : p->mr;
    p->row_panels = pl_gemm_ceil_div(c->m, mr);
    p->panel_columns = c->gated ? p->nr / 2 : p->nr;
    p->column_panels = pl_gemm_ceil_div(c->n, p->panel_columns);
    p->pack_b = p->b_in_blocks || c->gated || c->b_col != 1 || c->b_type != PL_REAL_F32 || is_far_apart(p, c) ||
                packs_strips(p, c);
    p->strip = packs_strips(p, c) ? max_of(1, PACKED_STRIP_WORDS / (p->k_block * p->nr)) : 1;
    p->ragged = c->n % p->kernels->vector != 0; /* the last panel of B is packed in any case: with zeros behind it */
    p->a_stride =
        p->a_form == PL_GEMM_IN_PLACE ? c->a_row / p->kernels->step : copied_row_words(words_of(p, p->k_block));
}

/* Words of a packed panel of A. */
static int64_t panel_words(const pl_gemm_plan *p)
{
    return p->mr * (p->a_form == PL_GEMM_BY_COLUMNS ? words_of(p, p->k_block) : p->a_stride);
}

/* Words in which sums wait where they cannot in C. A wide panel of B is dear to pack, so that more rows meet it; those
 * of a gated product leave no room for that. */
static int64_t sums_room(const pl_gemm_plan *p)
{
    if (p->a_form == PL_GEMM_TURNED) return 0; /* they wait in C */
    if (in_long_blocks(p)) return p->k_blocks > 1 ? PL_GEMM_SUMS_WORDS_WIDE : 0;
    return p->wide && p->panel_columns == p->nr ? PL_GEMM_SUMS_WORDS_WIDE : PL_GEMM_SUMS_WORDS;
}

/* Row panels of A that are packed at a time: what the thread's memory leaves, and three cache lines of rows where
 * packing them is all there is to be repaid. */
static int64_t group_of(const pl_gemm_plan *p, const pl_gemm_call *c)
{
    const pl_gemm_kernels *t = p->kernels;
    if (p->a_form == PL_GEMM_IN_PLACE) return 1;
    int narrow = c->a_type != PL_REAL_F32 || c->b_type != PL_REAL_F32;
    int64_t block = narrow || p->strip > 1 ? p->k_block : t->k_block_packed;
    int twice = narrow && (t->step == 1 || p->a_form == PL_GEMM_TURNED);
    int64_t room = twice ? PL_GEMM_THREAD_WORDS_TWO : PL_GEMM_THREAD_WORDS;
    if (in_long_blocks(p)) room = PL_GEMM_THREAD_WORDS_LONG;
    room -= sums_room(p) + p->mr * p->nr + (p->pack_b || p->ragged ? p->strip * words_of(p, block) * p->nr : 0);
    if (p->strip > 1) return min_of(PL_GEMM_GROUP_MAX, room / panel_words(p));
    if (!narrow) return min_of(GROUP_ROWS / p->mr, room / (t->k_block_packed * p->mr));
    const int64_t most = packs_both(p) ? min_of(PL_GEMM_GROUP_MAX, p->row_panels) : GROUP_ROWS / p->mr;
    return min_of(most, room / panel_words(p));
}

/* Shapes that suit the caches. */
static void shape_units(pl_gemm_plan *p, const pl_gemm_call *c)
{
    int64_t nr = p->nr;
    p->group = group_of(p, c);
    if (p->a_form != PL_GEMM_IN_PLACE) {
        p->unit_rows = p->group;
        p->unit_columns = p->a_form == PL_GEMM_TURNED ? TURNED_COLUMNS : STRIP_COLUMNS;
        if (is_gradient(p, c) && p->k_blocks > 1) { /* a block of B stays for all rows: it comes from far but once */
            int64_t wanted = p->threads == 1 ? 1 : UNITS_PER_THREAD * (int64_t)p->threads;
            p->unit_rows = max_of(p->group, pl_gemm_ceil_div(p->row_panels, wanted));
            p->unit_columns = max_of(STRIP_COLUMNS, B_IN_L2_ELEMS / (p->k_block * nr));
        }
    } else if (p->pack_b) {
        p->unit_rows = (is_crowded(c, p->kernels) ? CROWDED_IN_L2 / CROWDED_ROWS : ROWS_IN_L2 / p->mr);
        p->unit_columns = in_lines(p) && p->k_blocks > LONG_BLOCKS ? LONG_COLUMNS : 1;
    } else {
        p->unit_columns = max_of(1, B_IN_L2_ELEMS / (c->k * nr));
        p->unit_rows = max_of(1, STRIP_COLUMNS / p->unit_columns);
    }
}

static void count_units(pl_gemm_plan *p)
{
    p->row_units = pl_gemm_ceil_div(p->row_panels, min_of(p->unit_rows, p->row_panels));
    p->column_units = pl_gemm_ceil_div(p->column_panels, min_of(p->unit_columns, p->column_panels));
}

/* Smaller where the threads would otherwise get too few. */
static void share_units(pl_gemm_plan *p)
{
    const int turned = p->a_form == PL_GEMM_TURNED;
    int64_t wanted = p->threads == 1 ? 1 : (turned ? TURNED_UNITS : UNITS_PER_THREAD) * (int64_t)p->threads;
    p->unit_columns = min_of(p->unit_columns, p->column_panels);
    for (count_units(p); p->row_units * p->column_units < wanted; count_units(p)) {
        if (p->unit_columns > 2 && !(turned && min_of(p->unit_rows, p->row_panels) > p->unit_columns))
            p->unit_columns = min_of(p->unit_columns, p->column_panels) / 2;
        else if (p->unit_rows > 4 || (!p->pack_b && p->unit_rows > 1))
            p->unit_rows = min_of(p->unit_rows, p->row_panels) / 2;
        else
            break;
        p->unit_rows = max_of(p->unit_rows, 1), p->unit_columns = max_of(p->unit_columns, 1);
    }
}

static int64_t sums_words(const pl_gemm_plan *p)
{
    int64_t unit = min_of(p->unit_rows, p->row_panels) * p->unit_columns; /* a row of sums is as long as the unit's */
    return in_lines(p) ? unit * p->mr * p->nr : sums_room(p);
}

static void fit_sums(pl_gemm_plan *p)
{
    if (in_lines(p)) return;
    int64_t tiles = sums_room(p) / (p->mr * p->nr);
    p->unit_columns = min_of(p->unit_columns, in_long_blocks(p) ? WIDENED_COLUMNS : tiles);
    p->unit_rows = min_of(p->unit_rows, tiles / p->unit_columns);
    count_units(p);
}

static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

static void lay_out(pl_gemm_plan *p)
{
    p->threads_offset = sizeof(pl_tickets);
    p->b_offset = p->a_form != PL_GEMM_IN_PLACE ? words_bytes(p->group * panel_words(p)) : 0;
    p->sums_offset = p->b_offset;
    if (p->pack_b || p->ragged) p->sums_offset += words_bytes(p->strip * words_of(p, p->k_block) * p->nr);
    p->tile_offset = p->sums_offset + (p->k_blocks > 1 ? words_bytes(sums_words(p)) : 0);
    p->thread_bytes = p->tile_offset + words_bytes(p->mr * p->nr);
    p->bytes = p->threads_offset + (uint64_t)p->workers * p->thread_bytes;
}

/* What calls.h demands of a B in blocks. */
static int fits_blocks(const pl_gemm_call *c)
{
    const int rows = c->b_row == 1 ? c->b_col == c->k : c->b_col == 1 && c->b_row == c->n;
    const int64_t width = c->b_row == 1 ? c->k : c->n;
    return rows && width % pl_encoding_block(c->b_encoding) == 0 && c->a_col == 1 && c->a_type == PL_REAL_F32 &&
           c->b_type == PL_REAL_F32;
}

pl_gemm_plan pl_gemm_plan_make(const pl_gemm_call *c, pl_team team, int sums_apart)
{
    pl_gemm_plan p = {.kernels = kernels_of(c, team.isa), .bytes = sizeof(pl_tickets)};
    p.b_in_blocks = pl_encoding_block(c->b_encoding) > 1;
    assert(!p.b_in_blocks || fits_blocks(c));
    p.thin = is_thin(c, p.kernels);
    double macs = (double)c->m * (double)c->n * (double)c->k * (c->gated ? 2 : 1);
    p.threads = team.threads > 1 && macs >= (p.thin ? parallel_thin_macs : parallel_macs) ? team.threads : 1;
    if (p.thin) return p;
    p.a_form = form_of_a(c, p.kernels, team.isa);
    choose_tile(&p, c);
    cut_k(&p, c);
    cut_panels(&p, c);
    shape_units(&p, c);
    share_units(&p);
    p.workers = (int)min_of(p.threads, p.row_units * p.column_units);
    if (sums_apart && p.k_blocks > 1) fit_sums(&p);
    lay_out(&p);
    return p;
}
