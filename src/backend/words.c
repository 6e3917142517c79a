/* Products of words: the threads. C is cut into units of some panels of rows × some tiles' columns, small enough that
 * the weights of a unit stay in the second-level cache while its rows pass by; tickets hand them out. Sums of a tile
 * run over all of k at once, so nothing waits between tiles but x where it had to be prepared, a panel of rows at a
 * time. Sums are exact: no cut changes a bit.
 *
 * Workspace: counter | for each thread: a prepared panel of rows. */
#include "backend/words.h"

#include <stddef.h>

#include "backend/gemm_plan.h"
#include "backend/parallel.h"
#include "backend/tickets.h"
#include "base/size.h"
#include "kernels/gemm_ahead.h"
#include "kernels/kernels.h"

enum {
    UNIT_WEIGHTS_BYTES = 192 << 10,
    UNIT_ROWS_BYTES = 256 << 10,
    FETCH_AHEAD_BYTES = 1 << 20, /* of x: it is in no cache of a core */
    UNITS_PER_THREAD = 4,        /* at least, where the product is large enough */
    SERIAL_BELOW_WORDS = 1 << 17 /* multiplied: waking the team costs more than it saves */
};

typedef struct plan {
    int threads, workers, prepared, mr, panels; /* workers: threads that can get a unit, with memory of their own */
    int64_t tile_columns, row_panels, column_tiles;
    int64_t row_units, column_units;
    uint64_t thread_bytes, bytes;
} plan;

typedef struct job {
    const pl_words_product *product;
    plan plan;
    char *workspace;
} job;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* Columns of W for each of C. */
static int64_t sides_of(const pl_words_product *w) { return w->epilogue.gated ? 2 : 1; }

static void cut_units(plan *p, const pl_words_product *w)
{
    const int64_t columns = w->words * 4 * p->tile_columns * sides_of(w), rows = w->words * 4 * p->mr;
    p->column_units = pl_gemm_ceil_div(p->column_tiles, max_of(1, UNIT_WEIGHTS_BYTES / columns));
    p->row_units = pl_gemm_ceil_div(p->row_panels, max_of(1, UNIT_ROWS_BYTES / rows));
    const int64_t wanted = p->threads > 1 ? (int64_t)UNITS_PER_THREAD * p->threads : 1;
    if (p->column_units * p->row_units < wanted)
        p->row_units = min_of(p->row_panels, pl_gemm_ceil_div(wanted, p->column_units));
    if (p->column_units * p->row_units < wanted)
        p->column_units = min_of(p->column_tiles, pl_gemm_ceil_div(wanted, p->row_units));
}

/* Wide ones where they fit; of gated columns a tile has one panel of each side. */
static void choose_tile(plan *p, const pl_words_product *w)
{
    const pl_words_kernels *k = w->kernels;
    const int gated = w->epilogue.gated != 0, wide = k->wide_rows && !gated && w->n % PL_WORDS_TILE_COLUMNS == 0;
    p->mr = wide ? k->wide_rows : k->mr;
    p->panels = wide ? PL_WORDS_PANELS_MAX : k->panels;
    p->tile_columns = (int64_t)(gated ? 1 : p->panels) * PL_WORDS_PANEL;
}

static plan plan_of(const pl_words_product *w, int threads)
{
    const pl_words_kernels *k = w->kernels;
    const int large = (double)w->m * (double)(w->n * sides_of(w)) * (double)w->words >= SERIAL_BELOW_WORDS;
    plan p = {.threads = large ? threads : 1, .prepared = k->x_bytes != 4 || w->row_bytes % 4 != 0};
    choose_tile(&p, w);
    p.row_panels = pl_gemm_ceil_div(w->m, p.mr);
    p.column_tiles = pl_gemm_ceil_div(w->n, p.tile_columns);
    if (p.prepared) p.thread_bytes = pl_align_up((uint64_t)(p.mr * w->words * k->x_bytes), 64);
    cut_units(&p, w);
    p.workers = (int)min_of(p.threads, p.row_units * p.column_units);
    p.bytes = sizeof(pl_tickets) + (uint64_t)p.workers * p.thread_bytes;
    return p;
}

/* ---- a unit ---- */

static const char *take_rows(const job *j, int64_t begin, int64_t count, char *own, int64_t *stride)
{
    const pl_words_product *w = j->product;
    const char *x = w->x + begin * w->stride;
    if (!j->plan.prepared) return *stride = w->stride, x;
    *stride = w->words * w->kernels->x_bytes;
    for (int64_t r = 0; r < count; r++) w->kernels->prepare(w->row_bytes, x + r * w->stride, own + r * *stride);
    return own;
}

/* The sums of so many panels, each `apart` bytes behind the one before; of a gate's two sides one by one where a tile
 * has one panel. */
static void sum_tile(const job *j, int64_t count, const char *x, int64_t stride, int64_t panels, const char *at,
                     int64_t apart, int32_t *sums)
{
    const pl_words_product *w = j->product;
    if (panels <= j->plan.panels) {
        w->kernels->tiles[count - 1][panels - 1](w->words, x, stride, at, apart, sums);
        return;
    }
    w->kernels->tiles[count - 1][0](w->words, x, stride, at, 0, sums);
    w->kernels->tiles[count - 1][0](w->words, x, stride, at + apart, 0, sums + PL_WORDS_PANEL);
}

/* What the epilogue will read and write, asked for while the sums are made. */
static void fetch_tile(const pl_words_epilogue *e, int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    const int64_t f32 = sizeof(float), bytes = columns * f32;
    if (e->residual) pl_gemm_ahead_tile(e->residual + i * e->ld_residual + j, e->ld_residual * f32, rows, bytes);
    if (e->c && e->c != e->residual) pl_gemm_ahead_tile(e->c + i * e->ldc + j, e->ldc * f32, rows, bytes);
}

static void compute_tile(const job *j, int64_t begin, int64_t count, const char *x, int64_t stride, int64_t tile)
{
    const pl_words_product *w = j->product;
    const int64_t column = tile * j->plan.tile_columns, columns = min_of(j->plan.tile_columns, w->n - column);
    const int64_t gated = w->epilogue.gated, panels = gated ? 2 : pl_gemm_ceil_div(columns, PL_WORDS_PANEL);
    const int64_t apart = (int64_t)pl_words_at(w->words, 0, gated ? gated : PL_WORDS_PANEL);
    int32_t sums[PL_WORDS_MR_MAX * PL_WORDS_TILE_COLUMNS];
    fetch_tile(&w->epilogue, begin, column, count, columns);
    sum_tile(j, count, x, stride, panels, w->panels + pl_words_at(w->words, 0, column), apart, sums);
    pl_kernels_get(w->isa)->words_finish(&w->epilogue, sums, PL_WORDS_TILE_COLUMNS, begin, column, count, columns);
}

static int64_t row_of_panel(const job *j, int64_t panel)
{
    return pl_gemm_split(j->product->m, j->plan.row_panels, panel);
}

/* Of x, the rows of a panel, to be fetched in so many steps; nothing where x is in a cache already. */
static pl_gemm_ahead panel_ahead(const job *j, int64_t panel, int64_t tiles)
{
    const pl_words_product *w = j->product;
    if (w->m * w->row_bytes < FETCH_AHEAD_BYTES || panel >= j->plan.row_panels) return (pl_gemm_ahead){0};
    const int64_t begin = row_of_panel(j, panel), count = row_of_panel(j, panel + 1) - begin;
    return pl_gemm_ahead_of(w->x + begin * w->stride, w->stride, count, w->row_bytes, tiles);
}

/* Neighbours share weights. */
static void compute_unit(const job *j, int64_t index, char *own)
{
    const plan *p = &j->plan;
    const int64_t row = index % p->row_units, column = index / p->row_units;
    const int64_t first = pl_gemm_split(p->column_tiles, p->column_units, column),
                  last = pl_gemm_split(p->column_tiles, p->column_units, column + 1);
    for (int64_t panel = pl_gemm_split(p->row_panels, p->row_units, row);
         panel < pl_gemm_split(p->row_panels, p->row_units, row + 1); panel++) {
        const int64_t begin = row_of_panel(j, panel), count = row_of_panel(j, panel + 1) - begin;
        int64_t stride;
        const char *x = take_rows(j, begin, count, own, &stride);
        pl_gemm_ahead next = panel_ahead(j, panel + 1, last - first);
        for (int64_t tile = first; tile < last; tile++) {
            pl_gemm_ahead_step(&next); /* a few lines, at once */
            compute_tile(j, begin, count, x, stride, tile);
        }
    }
}

static pl_tickets *tickets_of(const job *j) { return (pl_tickets *)(void *)j->workspace; }

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const plan *p = &j->plan;
    if (j->product->make_rows) {
        const pl_range rows = pl_range_of_part(j->product->m, 1, part, parts);
        j->product->make_rows(j->product, rows.begin, rows.end);
        pl_barrier();
    }
    if (part >= p->workers) return;
    char *own = j->workspace + sizeof(pl_tickets) + (uint64_t)part * p->thread_bytes;
    const pl_words_kernels *k = j->product->kernels;
    pl_share share = {.units = p->row_units * p->column_units, .threads = p->workers};
    if (k->enter) k->enter();
    while (pl_share_next(&share, tickets_of(j)))
        for (int64_t index = share.begin; index < share.end; index++) compute_unit(j, index, own);
    if (k->leave) k->leave();
}

uint64_t pl_words_workspace_bytes(const pl_words_product *w, int threads) { return plan_of(w, threads).bytes; }

void pl_words_exec(const pl_words_product *w, void *workspace, int threads)
{
    job j = {.product = w, .plan = plan_of(w, threads), .workspace = workspace};
    *tickets_of(&j) = (pl_tickets){0};
    pl_parallel((pl_team){.threads = j.plan.threads, .isa = w->isa}, INT64_MAX, work, &j);
}
