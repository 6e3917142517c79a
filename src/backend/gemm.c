/* C = A·B with epilogue: the threads. How the product is cut and why the bits never depend on the team: gemm_plan.h.
 * One parallel region per call; inside, atomic tickets hand out the units. A team smaller than asked for
 * (OMP_THREAD_LIMIT, OMP_DYNAMIC) only takes more tickets each. */
#include <stddef.h>

#include "backend/gemm_plan.h"
#include "backend/gemm_rounded.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/gemm_ahead.h"

enum { FETCH_AHEAD_BYTES = 3 << 20, FETCH_B_AHEAD_BYTES = 1 << 20 }; /* of A, of B */

typedef struct job {
    const pl_gemm_call *call;
    pl_gemm_plan plan;
    pl_gemm_epilogue epilogue;
    int has_epilogue; /* more than storing f32 in C or going on from there */
    int sums_apart;   /* partial sums wait in the workspace */
    int fetch_ahead;  /* A is read in place and too large to be in a cache already */
    int fetch_b;      /* k is contiguous in B, which is packed and as large */
    char *workspace;
} job;

typedef struct unit { /* half-open ranges of panels, and the first element of C */
    int64_t row_begin, row_end, column_begin, column_end, row, column;
    int64_t row_unit;
    int fresh; /* this thread has not just read these rows of A */
} unit;

typedef struct block { /* of k */
    int64_t begin, k, words;
    int first, last;
} block;

typedef struct scratch { /* a thread's part of the workspace */
    void *a, *b;
    float *sums, *tile;
} scratch;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the call, once ---- */

pl_gemm_epilogue pl_gemm_epilogue_of(const pl_gemm_call *c)
{
    return (pl_gemm_epilogue){.type = c->type,
                              .c = c->c,
                              .ldc = c->ldc,
                              .accumulate = c->accumulate,
                              .bias = c->bias,
                              .residual = c->residual,
                              .ld_residual = c->ld_residual,
                              .act = c->act,
                              .act_out = c->act_out,
                              .ld_act_out = c->ld_act_out,
                              .grad_of = c->grad_of,
                              .ld_grad_of = c->ld_grad_of,
                              .act_again = c->act_again,
                              .ld_act_again = c->ld_act_again,
                              .gated = c->gated};
}

/* So many bytes are k numbers of B that lie one behind the other. */
static int64_t b_bytes(const pl_gemm_call *c, int64_t k)
{
    return c->b_encoding ? pl_encoding_row_bytes(c->b_encoding, k) : k * pl_real_bytes(c->b_type);
}

static job job_of(const pl_gemm_call *c, void *workspace, pl_team team)
{
    job j = {.call = c, .epilogue = pl_gemm_epilogue_of(c), .workspace = workspace};
    int narrow = c->type != PL_REAL_F32; /* no place for sums */
    j.has_epilogue = c->bias || c->residual || c->act_out || c->grad_of || c->act_again || c->gated || narrow;
    int old_c = c->accumulate || c->residual == c->c || c->grad_of == c->c || c->gated || narrow;
    j.plan = pl_gemm_plan_make(c, team, j.has_epilogue && old_c);
    j.fetch_ahead = j.plan.a_form == PL_GEMM_IN_PLACE && c->m * c->k * pl_real_bytes(c->a_type) >= FETCH_AHEAD_BYTES;
    j.fetch_b = j.plan.pack_b && c->b_col != 1 && c->n * b_bytes(c, c->k) >= FETCH_B_AHEAD_BYTES;
    j.sums_apart = j.has_epilogue && old_c && j.plan.k_blocks > 1;
    return j;
}

static pl_tickets *tickets_of(const job *j) { return (pl_tickets *)(void *)j->workspace; }

static scratch scratch_of(const job *j, int thread)
{
    const pl_gemm_plan *p = &j->plan;
    char *at = j->workspace + p->threads_offset + (uint64_t)thread * p->thread_bytes;
    return (scratch){at, at + p->b_offset, (float *)(void *)(at + p->sums_offset),
                     (float *)(void *)(at + p->tile_offset)};
}

static int64_t row_of(const job *j, int64_t panel) { return pl_gemm_split(j->call->m, j->plan.row_panels, panel); }

/* Neighbours share what is dear to fetch: rows of A where B is packed, else columns of B. */
static unit unit_of(const job *j, int64_t index)
{
    const pl_gemm_plan *p = &j->plan;
    int64_t row = p->pack_b ? index / p->column_units : index % p->row_units;
    int64_t column = p->pack_b ? index % p->column_units : index / p->row_units;
    unit u = {.row_unit = row,
              .row_begin = pl_gemm_split(p->row_panels, p->row_units, row),
              .row_end = pl_gemm_split(p->row_panels, p->row_units, row + 1),
              .column_begin = pl_gemm_split(p->column_panels, p->column_units, column),
              .column_end = pl_gemm_split(p->column_panels, p->column_units, column + 1)};
    u.row = row_of(j, u.row_begin);
    u.column = u.column_begin * p->panel_columns;
    return u;
}

static block block_of(const job *j, int64_t index)
{
    const pl_gemm_plan *p = &j->plan;
    block b = {.begin = index * p->k_block, .first = index == 0, .last = index + 1 == p->k_blocks};
    b.k = min_of(p->k_block, p->k - b.begin);
    b.words = pl_gemm_ceil_div(b.k, (int64_t)p->kernels->step * p->kernels->multiple) * p->kernels->multiple;
    return b;
}

/* The chain of sums does not begin with this block. */
static int goes_on(const job *j, const block *b) { return !b->first || (j->call->accumulate && !j->has_epilogue); }

/* ---- operands: in place or packed ---- */

typedef struct rows_of_a { /* one panel */
    int64_t begin, count;
    const void *a;
} rows_of_a;

static const pl_gemm_packers *packers_of(const job *j, pl_real type)
{
    return &j->plan.kernels->pack[j->plan.a_form == PL_GEMM_BY_COLUMNS][type];
}

static void *words_from(void *words, int64_t count) { return (uint32_t *)words + count; }

static const void *a_at(const pl_gemm_call *c, int64_t row, int64_t p)
{
    return pl_real_at(c->a_type, c->a, row * c->a_row + p * c->a_col);
}

static const void *b_at(const pl_gemm_call *c, int64_t p, int64_t column)
{
    if (c->b_encoding && c->b_row == 1) return (const char *)c->b + column * b_bytes(c, c->k) + b_bytes(c, p);
    if (c->b_encoding) return (const char *)c->b + p * b_bytes(c, c->n); /* the row's first block */
    return pl_real_at(c->b_type, c->b, p * c->b_row + column * c->b_col);
}

/* Panels come in one or two sizes, and those of one size are neighbours. */
static void pack_columns(const job *j, rows_of_a *rows, int64_t count, int64_t k, void *to)
{
    const pl_gemm_kernels *t = j->plan.kernels;
    int64_t panel_words = t->mr * pl_gemm_ceil_div(k, t->step); /* by columns words are never filled up */
    for (int64_t r = 0, same; r < count; r += same, to = words_from(to, same * panel_words)) {
        for (same = 1; r + same < count && rows[r + same].count == rows[r].count;) same++;
        packers_of(j, j->call->a_type)->a_columns(rows[r].a, j->call->a_col, rows[r].count, same, k, to, panel_words);
        for (int64_t i = 0; i < same; i++) rows[r + i].a = words_from(to, i * panel_words);
    }
}

static void pack_rows(const job *j, rows_of_a *rows, int64_t count, int64_t k, void *to)
{
    const pl_gemm_call *c = j->call;
    int64_t first = rows[0].begin, all = rows[count - 1].begin + rows[count - 1].count - first;
    packers_of(j, c->a_type)->a_rows(rows[0].a, c->a_row, all, k, to, j->plan.a_stride);
    for (int64_t i = 0; i < count; i++) rows[i].a = words_from(to, (rows[i].begin - first) * j->plan.a_stride);
}

/* A block of turned A may have tokens of several samples, each with zeros behind it. */
typedef struct stretch {
    int64_t row, count, filled; /* tokens of one sample, and with the zeros behind them */
} stretch;

/* What begins `done` elements, as tiles count them, behind the block's first. */
static stretch stretch_of(const job *j, const block *b, int64_t done)
{
    const pl_gemm_call *c = j->call;
    const int64_t at = c->k_first + b->begin + done, filled = pl_gemm_whole_groups(c->k_sample), begin = at % filled;
    stretch s = {.row = at / filled * c->k_sample + begin - c->k_first};
    s.count = min_of(min_of(c->k_sample - begin, b->k - done), c->k - s.row);
    s.filled = pl_gemm_whole_groups(s.count);
    return s;
}

static void turn_rows(const job *j, rows_of_a *rows, int64_t count, const block *b, void *to)
{
    const pl_gemm_call *c = j->call;
    const int64_t first = rows[0].begin, all = rows[count - 1].begin + rows[count - 1].count - first;
    stretch s;
    for (int64_t done = 0; done < b->k; done += s.filled) {
        s = stretch_of(j, b, done);
        packers_of(j, c->a_type)
            ->a_turned(a_at(c, first, s.row), c->a_col, all, s.count, words_from(to, done / j->plan.kernels->step),
                       j->plan.a_stride);
    }
    for (int64_t i = 0; i < count; i++) rows[i].a = words_from(to, (rows[i].begin - first) * j->plan.a_stride);
}

static void take_rows(const job *j, int64_t first, int64_t count, const block *b, const scratch *own, rows_of_a *rows)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = row_of(j, first + i);
        rows[i] = (rows_of_a){begin, row_of(j, first + i + 1) - begin, NULL};
        if (j->plan.a_form != PL_GEMM_TURNED) rows[i].a = a_at(j->call, begin, b->begin);
    }
    if (j->plan.a_form == PL_GEMM_TURNED) turn_rows(j, rows, count, b, own->a);
    if (j->plan.a_form == PL_GEMM_BY_COLUMNS) pack_columns(j, rows, count, b->k, own->a);
    if (j->plan.a_form == PL_GEMM_BY_ROWS) pack_rows(j, rows, count, b->k, own->a);
}

typedef struct columns_of_b { /* one panel */
    int64_t begin, count, stride;
    const void *b;
} columns_of_b;

/* A panel of rows as they lie, or vector by vector; of a gated product one of the gates and one of what they are
 * multiplied with, in turn. */
static void pack_wide(const job *j, const columns_of_b *s, const block *b, const scratch *own)
{
    const pl_gemm_call *c = j->call;
    const int64_t vector = j->plan.kernels->vector;
    if (c->b_col == 1 && !c->gated) {
        packers_of(j, c->b_type)->b_rows(s->b, c->b_row, b->k, s->count, own->b, j->plan.nr);
        return;
    }
    const int sides = c->gated ? 2 : 1;
    for (int64_t v = 0; v < s->count / vector * sides; v++) {
        const int64_t column = v / sides * vector + v % sides * c->n;
        packers_of(j, c->b_type)
            ->b_strip(pl_real_at(c->b_type, s->b, column * c->b_col), c->b_col, b->k, vector,
                      words_from(own->b, v * vector), j->plan.nr);
    }
}

/* A panel of blocks: rows as they lie, or vector by vector, of a gated product in turn as above. */
static void pack_blocks(const job *j, const columns_of_b *s, const block *b, const scratch *own)
{
    const pl_gemm_call *c = j->call;
    const int64_t vector = j->plan.kernels->vector, sides = c->gated ? 2 : 1;
    if (c->b_row != 1) {
        j->plan.kernels->rows_of_blocks(c->b_encoding, b_at(c, b->begin, 0), b_bytes(c, c->n), b->k, s->begin, s->count,
                                        own->b, j->plan.nr);
        return;
    }
    for (int64_t v = 0; v < pl_gemm_ceil_div(s->count, vector) * sides; v++) {
        const int64_t first = v / sides * vector;
        j->plan.kernels->strip_of_blocks(c->b_encoding, b_at(c, b->begin, s->begin + first + v % sides * c->n),
                                         b_bytes(c, c->k), b->k, min_of(vector, s->count - first),
                                         words_from(own->b, v * vector), j->plan.nr);
    }
}

/* Panels of B, where A is turned. */
static void pack_stretches(const job *j, int64_t column, int64_t columns, const block *b, void *to)
{
    const pl_gemm_call *c = j->call;
    stretch s;
    for (int64_t done = 0; done < b->k; done += s.filled) {
        s = stretch_of(j, b, done);
        packers_of(j, c->b_type)
            ->b(pl_real_at(c->b_type, c->b, s.row * c->b_row + column), c->b_row, s.count, columns,
                words_from(to, done / j->plan.kernels->step * j->plan.nr), b->words * j->plan.nr);
    }
}

/* Panel `panel` of a unit that has columns [begin, end); where several are packed at a time, with those behind it. */
static columns_of_b take_columns(const job *j, const unit *u, int64_t panel, const block *b, const scratch *own)
{
    const pl_gemm_call *c = j->call;
    const pl_gemm_kernels *t = j->plan.kernels;
    columns_of_b s = {.begin = panel * j->plan.panel_columns, .stride = c->b_row};
    s.count = min_of(j->plan.panel_columns, c->n - s.begin);
    const int turned = j->plan.a_form == PL_GEMM_TURNED;
    s.b = turned ? NULL : b_at(c, b->begin, s.begin);
    if (!j->plan.pack_b && s.count % t->vector == 0) return s;
    int64_t at = (panel - u->column_begin) % j->plan.strip, words = b->words * j->plan.nr;
    int64_t columns = min_of(min_of(panel + j->plan.strip, u->column_end) * j->plan.nr, c->n) - s.begin;
    if (j->plan.b_in_blocks)
        pack_blocks(j, &s, b, own);
    else if (turned && at == 0)
        pack_stretches(j, s.begin, columns, b, own->b);
    else if (j->plan.wide)
        pack_wide(j, &s, b, own);
    else if (c->gated)
        packers_of(j, c->b_type)
            ->b_pair(s.b, pl_real_at(c->b_type, s.b, c->n * c->b_col), c->b_col, b->k, s.count, own->b);
    else if (c->b_col != 1)
        packers_of(j, c->b_type)->b_transposed(s.b, c->b_col, b->k, s.count, own->b, 0);
    else if (!turned && at == 0)
        packers_of(j, c->b_type)->b(s.b, c->b_row, b->k, columns, own->b, words);
    s.b = words_from(own->b, at * words), s.stride = j->plan.nr;
    return s;
}

/* ---- tiles ---- */

/* Where the sums of C(i, j) are while k is not done. */
static float *sums_at(const job *j, const unit *u, const scratch *own, int64_t row, int64_t column, int64_t *ld)
{
    if (!j->sums_apart) return *ld = j->call->ldc, (float *)j->call->c + row * j->call->ldc + column;
    *ld = j->plan.unit_columns * j->plan.nr;
    return own->sums + (row - u->row) * *ld + (column - u->column) * (j->call->gated ? 2 : 1);
}

/* The tile's lines of all that the epilogue reads or writes: what comes from memory arrives meanwhile. */
static void fetch_tile(const pl_gemm_call *c, const rows_of_a *r, const columns_of_b *s)
{
    const int64_t bytes = pl_real_bytes(c->type);
    const struct {
        const void *at;
        int64_t ld;
    } used[] = {{c->c, c->ldc},
                {c->residual, c->ld_residual},
                {c->grad_of, c->ld_grad_of},
                {c->act_out, c->ld_act_out},
                {c->act_again, c->ld_act_again}};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        if (used[i].at)
            pl_gemm_ahead_tile(pl_real_at(c->type, used[i].at, r->begin * used[i].ld + s->begin), used[i].ld * bytes,
                               r->count, s->count * bytes);
}

/* A tile that goes on where C stands needs C at once: it is asked for while the tile before is under way. */
static void fetch_sums(const job *j, const block *b, int64_t row_panel, int64_t column_panel)
{
    const pl_gemm_call *c = j->call;
    int64_t begin = row_of(j, row_panel), column = column_panel * j->plan.nr;
    if (!b->first || !goes_on(j, b) || column >= c->n) return;
    pl_gemm_ahead_tile((float *)c->c + begin * c->ldc + column, c->ldc * (int64_t)sizeof(float),
                       row_of(j, row_panel + 1) - begin, min_of(j->plan.nr, c->n - column) * (int64_t)sizeof(float));
}

static pl_gemm_tile_fn *tile_of(const job *j, int64_t rows, int vectors)
{
    const pl_gemm_kernels *t = j->plan.kernels;
    return (j->plan.a_form == PL_GEMM_BY_COLUMNS ? t->by_columns : t->by_rows)[rows - 1][vectors - 1];
}

/* A tile at the right edge of C, in the thread's own memory, where its rows are whole vectors long. */
static void compute_ragged(const job *j, const block *b, const rows_of_a *r, const columns_of_b *s, float *sums,
                           int64_t ld, int add, pl_gemm_tile_fn *sum, float *tile, pl_gemm_ahead *ahead)
{
    int64_t nr = j->plan.nr;
    pl_gemm_epilogue store = {.c = sums, .ldc = ld};
    for (int64_t i = 0; i < r->count * nr && add; i++) tile[i] = i % nr < s->count ? sums[i / nr * ld + i % nr] : 0;
    sum(b->words, r->a, j->plan.a_stride, s->b, s->stride, tile, nr, add, ahead);
    j->plan.kernels->finish(&store, tile, nr, 0, 0, r->count, s->count);
}

static void compute_tile(const job *j, const unit *u, const block *b, const rows_of_a *r, const columns_of_b *s,
                         const scratch *own, pl_gemm_ahead *ahead)
{
    const pl_gemm_kernels *kernels = j->plan.kernels;
    const int vectors = (int)pl_gemm_ceil_div(s->count, kernels->vector) * (j->call->gated ? 2 : 1);
    int finish = b->last && j->has_epilogue, add = goes_on(j, b);
    pl_gemm_tile_fn *sum = tile_of(j, r->count, vectors);
    int64_t ld, stride = j->plan.a_stride;
    if (b->first && (j->has_epilogue || !add)) fetch_tile(j->call, r, s);
    if (finish && !add) { /* one block of k: from registers to the epilogue */
        sum(b->words, r->a, stride, s->b, s->stride, own->tile, j->plan.nr, 0, ahead);
        kernels->finish(&j->epilogue, own->tile, j->plan.nr, r->begin, s->begin, r->count, s->count);
        return;
    }
    float *sums = sums_at(j, u, own, r->begin, s->begin, &ld);
    if (j->call->gated || s->count == vectors * kernels->vector)
        sum(b->words, r->a, stride, s->b, s->stride, sums, ld, add, ahead);
    else
        compute_ragged(j, b, r, s, sums, ld, add, sum, own->tile, ahead);
    if (finish) kernels->finish(&j->epilogue, sums, ld, r->begin, s->begin, r->count, s->count);
}

/* ---- units ---- */

/* Row panel `panel` of A, to be fetched while so many tiles are made. */
static pl_gemm_ahead ahead_of(const job *j, int64_t panel, const block *b, int64_t tiles)
{
    const pl_gemm_call *c = j->call;
    if (!j->fetch_ahead || panel >= j->plan.row_panels) return (pl_gemm_ahead){0};
    int64_t begin = row_of(j, panel), end = row_of(j, panel + 1);
    int64_t bytes = pl_real_bytes(c->a_type);
    return pl_gemm_ahead_of(a_at(c, begin, b->begin), c->a_row * bytes, end - begin, b->k * bytes,
                            tiles * pl_gemm_ahead_steps(b->words));
}

/* Column panel `panel` of B at block `k` in so many steps, or its gates and with them what they are multiplied with. */
static void panel_ahead(const job *j, int64_t panel, int64_t k, int64_t steps, pl_gemm_ahead ahead[2])
{
    const pl_gemm_call *c = j->call;
    const int64_t column = panel * j->plan.panel_columns;
    ahead[0] = ahead[1] = (pl_gemm_ahead){0};
    if (!j->fetch_b || column >= c->n) return;
    block b = block_of(j, k);
    for (int i = 0; i < (c->gated ? 2 : 1); i++)
        ahead[i] = pl_gemm_ahead_of(b_at(c, b.begin, i * c->n + column), b_bytes(c, c->b_col),
                                    min_of(j->plan.panel_columns, c->n - column), b_bytes(c, b.k), steps);
}

/* What is packed after a unit's panel: the next of its panels, or its first of the next block of k; behind both
 * probably the next unit's first. */
static void next_panel_ahead(const job *j, const unit *u, const block *b, int64_t panel, pl_gemm_ahead ahead[2])
{
    const int64_t steps = (u->row_end - u->row_begin) * pl_gemm_ahead_steps(b->words), k = b->begin / j->plan.k_block;
    if (panel + 1 < u->column_end)
        panel_ahead(j, panel + 1, k, steps, ahead);
    else if (!b->last)
        panel_ahead(j, u->column_begin, k + 1, steps, ahead);
    else
        panel_ahead(j, panel + 1, 0, steps, ahead);
}

/* B is packed: a panel of columns meets all rows of the unit, which stay in the second-level cache. */
static void compute_columns(const job *j, const unit *u, const block *b, const scratch *own)
{
    rows_of_a rows;
    for (int64_t panel = u->column_begin; panel < u->column_end; panel++) {
        columns_of_b s = take_columns(j, u, panel, b, own);
        pl_gemm_ahead next[2];
        next_panel_ahead(j, u, b, panel, next);
        next[0].also = &next[1];
        for (int64_t r = u->row_begin; r < u->row_end; r++) {
            pl_gemm_ahead ahead = ahead_of(j, u->fresh ? r + 1 : j->plan.row_panels, b, 1);
            ahead.also = next;
            take_rows(j, r, 1, b, own, &rows);
            compute_tile(j, u, b, &rows, &s, own, &ahead);
        }
    }
}

/* Else a few rows, packed or not, meet all columns of the unit. */
static void compute_rows(const job *j, const unit *u, const block *b, const scratch *own)
{
    rows_of_a rows[PL_GEMM_GROUP_MAX];
    int64_t group = j->plan.a_form == PL_GEMM_IN_PLACE ? 1 : j->plan.group;
    for (int64_t first = u->row_begin; first < u->row_end; first += group) {
        int64_t count = min_of(group, u->row_end - first);
        pl_gemm_ahead ahead = ahead_of(j, first + count, b, u->column_end - u->column_begin);
        fetch_sums(j, b, first, u->column_begin);
        take_rows(j, first, count, b, own, rows);
        for (int64_t panel = u->column_begin; panel < u->column_end; panel++) {
            columns_of_b s = take_columns(j, u, panel, b, own);
            for (int64_t r = 0; r < count; r++) {
                int last = r + 1 == count;
                fetch_sums(j, b, last ? first : first + r + 1, panel + last);
                compute_tile(j, u, b, rows + r, &s, own, r == 0 ? &ahead : NULL);
            }
        }
    }
}

static void compute_unit(const job *j, const unit *u, const scratch *own)
{
    for (int64_t k = 0; k < j->plan.k_blocks; k++) {
        block b = block_of(j, k);
        if (j->plan.pack_b && j->plan.a_form == PL_GEMM_IN_PLACE)
            compute_columns(j, u, &b, own);
        else
            compute_rows(j, u, &b, own);
    }
}

static void work_units(const job *j, int thread)
{
    scratch own = scratch_of(j, thread);
    pl_share share = {.units = j->plan.row_units * j->plan.column_units, .threads = j->plan.workers};
    int64_t last_row_unit = -1;
    while (pl_share_next(&share, tickets_of(j)))
        for (int64_t index = share.begin; index < share.end; index++) {
            unit u = unit_of(j, index);
            u.fresh = u.row_unit != last_row_unit;
            last_row_unit = u.row_unit;
            compute_unit(j, &u, &own);
        }
}

enum { THIN_UNIT = 64 };

static void work_thin(const job *j)
{
    const pl_gemm_call *c = j->call;
    pl_gemm_thin_product product = {c->m, c->n,     c->k,     c->a_type, c->b_type, c->a_encoding, c->b_encoding,
                                    c->a, c->a_row, c->a_col, c->b,      c->b_row,  c->b_col,      j->epilogue};
    pl_share share = {.units = pl_gemm_ceil_div(c->n, THIN_UNIT), .threads = j->plan.threads};
    while (pl_share_next(&share, tickets_of(j)))
        j->plan.kernels->thin(&product, share.begin * THIN_UNIT, min_of(share.end * THIN_UNIT, c->n));
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    (void)parts;
    if (j->plan.thin) {
        work_thin(j);
        return;
    }
    const pl_gemm_kernels *kernels = j->plan.kernels;
    if (part >= j->plan.workers) return;
    if (kernels->enter) kernels->enter();
    work_units(j, part);
    if (kernels->leave) kernels->leave();
}

/* NULL: a product of numbers. */
static const pl_rounded_kernels *rounded_kernels_of(const pl_gemm_call *c, pl_isa isa)
{
    const int whole = c->a_encoding && !c->dots && isa != PL_ISA_REF;
    return whole ? pl_rounded_kernels_of(isa, pl_isa_extras(isa)) : NULL;
}

/* Few rows in blocks are widened first: a product of them is as fast as the weight can be read and taken apart, and
 * whole numbers would have it turned besides (SmolLM2 in Q4_1 on AVX-512 VNNI: 99 tokens a second after 82). */
static int widens_rows(const pl_gemm_call *c, pl_isa isa) { return c->a_encoding && c->dots && isa != PL_ISA_REF; }

static uint64_t wide_bytes(const pl_gemm_call *c) { return pl_align_up((uint64_t)(c->m * c->k) * sizeof(float), 64); }

static pl_gemm_call with_wide_rows(const pl_gemm_call *c, const float *rows)
{
    pl_gemm_call wide = *c;
    wide.a = rows, wide.a_encoding = PL_ENCODING_F32;
    return wide;
}

uint64_t pl_gemm_workspace_bytes(const pl_gemm_call *call, pl_team team)
{
    const pl_rounded_kernels *rounded = rounded_kernels_of(call, team.isa);
    if (rounded) return pl_gemm_rounded_workspace_bytes(rounded, call, team);
    if (widens_rows(call, team.isa)) {
        const pl_gemm_call wide = with_wide_rows(call, NULL);
        return wide_bytes(call) + pl_gemm_plan_make(&wide, team, 0).bytes;
    }
    return pl_gemm_plan_make(call, team, 0).bytes;
}

void pl_gemm_exec(const pl_gemm_call *call, void *workspace, pl_team team)
{
    const pl_rounded_kernels *rounded = rounded_kernels_of(call, team.isa);
    if (rounded) {
        pl_gemm_rounded_exec(rounded, call, workspace, team);
        return;
    }
    if (widens_rows(call, team.isa)) {
        const pl_gemm_call wide = with_wide_rows(call, workspace);
        pl_encoding_widen(call->a_encoding, call->a, call->m * call->k, workspace);
        pl_gemm_exec(&wide, (char *)workspace + wide_bytes(call), team);
        return;
    }
    job j = job_of(call, workspace, team);
    *tickets_of(&j) = (pl_tickets){0};
    pl_parallel((pl_team){.threads = j.plan.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
