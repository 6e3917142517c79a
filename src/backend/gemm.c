/* C = A·B with epilogue: the threads. How the product is cut and why the bits never depend on the team: gemm_plan.h.
 * One parallel region per call; inside, atomic tickets hand out the work and one barrier separates the passes. A team
 * smaller than asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC) only takes more tickets each. */
#include "backend/gemm_ahead.h"
#include "backend/gemm_plan.h"
#include "backend/parallel.h"

enum { FETCH_AHEAD_ELEMS = 3 << 18 }; /* of A: 3 MiB */

typedef struct job {
    const pl_gemm_call *call;
    pl_gemm_plan plan;
    pl_gemm_epilogue epilogue;
    int has_epilogue; /* more than storing or adding to C */
    int sums_apart;   /* partial sums wait in the workspace */
    int fetch_ahead;  /* A is too large to be in a cache already */
    int64_t stretch;  /* rows of one stretch: m unless sums_apart */
    int64_t stretches, column_passes, k_passes;
    char *workspace;
} job;

typedef struct pass {
    int64_t index;
    int64_t row_begin, row_end, row_panels, groups; /* the stretch */
    int64_t column_begin, columns, panels;
    int64_t first_block, blocks, k_begin, k; /* k blocks */
    float *b;                                /* packed */
} pass;

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the call, once ---- */

static pl_gemm_epilogue epilogue_of(const pl_gemm_call *c)
{
    return (pl_gemm_epilogue){.c = c->c,
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
                              .ld_act_again = c->ld_act_again};
}

static job job_of(const pl_gemm_call *c, void *workspace, pl_team team)
{
    job j = {.call = c, .plan = pl_gemm_plan_make(c, team), .epilogue = epilogue_of(c), .workspace = workspace};
    const pl_gemm_plan *p = &j.plan;
    if (p->thin) return j;
    j.has_epilogue = c->bias || c->residual || c->act_out || c->grad_of || c->act_again;
    j.sums_apart = j.has_epilogue && p->k_blocks > 1 && (c->accumulate || c->residual == c->c || c->grad_of == c->c);
    j.fetch_ahead = c->m * c->k >= FETCH_AHEAD_ELEMS;
    j.stretch = j.sums_apart ? min_of(c->m, PL_GEMM_SUMS_ELEMS / p->pass_columns) : c->m;
    j.stretches = pl_gemm_ceil_div(c->m, j.stretch);
    j.column_passes = pl_gemm_ceil_div(c->n, p->pass_columns);
    j.k_passes = pl_gemm_ceil_div(p->k_blocks, p->pass_k_blocks);
    return j;
}

static pl_gemm_counters *counters_of(const job *j)
{
    return (pl_gemm_counters *)(void *)j->workspace;
}

/* ---- passes: stretches of rows, then columns, then k ---- */

static pass pass_of(const job *j, int64_t index)
{
    const pl_gemm_plan *p = &j->plan;
    int64_t k_pass = index % j->k_passes, rest = index / j->k_passes;
    pass s = {.index = index};
    s.row_begin = pl_gemm_split(j->call->m, j->stretches, rest / j->column_passes);
    s.row_end = pl_gemm_split(j->call->m, j->stretches, rest / j->column_passes + 1);
    s.row_panels = pl_gemm_ceil_div(s.row_end - s.row_begin, p->kernels->mr);
    s.groups = pl_gemm_ceil_div(s.row_panels, p->group);
    s.column_begin = rest % j->column_passes * p->pass_columns;
    s.columns = min_of(p->pass_columns, j->call->n - s.column_begin);
    s.panels = pl_gemm_ceil_div(s.columns, p->kernels->nr);
    s.first_block = k_pass * p->pass_k_blocks;
    s.blocks = min_of(p->pass_k_blocks, p->k_blocks - s.first_block);
    s.k_begin = s.first_block * p->k_block;
    s.k = min_of(s.blocks * p->k_block, j->call->k - s.k_begin);
    s.b = (float *)(void *)(j->workspace + p->b_offset + (uint64_t)(index & 1) * p->b_bytes);
    return s;
}

enum { PACK_ROWS = 8, PACK_DEPTH = 64 }; /* rows of a unit; depth of a unit of one panel */

static void pack_unit(const job *j, const pass *s, int64_t unit)
{
    const pl_gemm_call *c = j->call;
    const pl_gemm_kernels *t = j->plan.kernels;
    const float *from = c->b + s->k_begin * c->b_row + s->column_begin * c->b_col;
    int64_t panel_elems = s->k * t->nr;
    if (c->b_col == 1) {
        int64_t k = unit * PACK_ROWS;
        t->pack_b(from + k * c->b_row, c->b_row, min_of(PACK_ROWS, s->k - k), s->columns, s->b + k * t->nr,
                  panel_elems);
        return;
    }
    int64_t panel = unit % s->panels, k = unit / s->panels * PACK_DEPTH, column = panel * t->nr;
    t->pack_b_transposed(from + column * c->b_col + k, c->b_col, min_of(PACK_DEPTH, s->k - k),
                         min_of(t->nr, s->columns - column), s->b + panel * panel_elems + k * t->nr, panel_elems);
}

static void pack_pass(const job *j, int64_t index, pl_tickets *tickets)
{
    pass s = pass_of(j, index);
    int64_t units =
        j->call->b_col == 1 ? pl_gemm_ceil_div(s.k, PACK_ROWS) : s.panels * pl_gemm_ceil_div(s.k, PACK_DEPTH);
    pl_share share = {.units = units, .threads = j->plan.threads};
    while (pl_share_next(&share, tickets))
        for (int64_t unit = share.begin; unit < share.end; unit++) pack_unit(j, &s, unit);
}

/* ---- tiles ---- */

typedef struct rows_of_a { /* one panel of rows, one block of k */
    int64_t begin, count;
    const float *a;
    int64_t stride;
    int by_columns;
} rows_of_a;

typedef struct tile {
    const rows_of_a *rows;
    const float *b;
    int64_t k, column, columns;
    int add, last; /* sums wait already; the sum is complete after this block */
} tile;

/* Where partial sums of C(i, j) wait. */
static float *sums_at(const job *j, const pass *s, int64_t row, int64_t column, int64_t *ld)
{
    if (!j->sums_apart) return *ld = j->call->ldc, j->call->c + row * j->call->ldc + column;
    *ld = j->plan.pass_columns;
    return (float *)(void *)(j->workspace + j->plan.sums_offset) + (row - s->row_begin) * *ld + column -
           s->column_begin;
}

static void fetch_for_epilogue(const pl_gemm_call *c, const tile *t)
{
    int64_t i = t->rows->begin, j = t->column, rows = t->rows->count;
    if (c->residual) pl_gemm_ahead_tile(c->residual + i * c->ld_residual + j, c->ld_residual, rows, t->columns);
    if (c->grad_of) pl_gemm_ahead_tile(c->grad_of + i * c->ld_grad_of + j, c->ld_grad_of, rows, t->columns);
}

static void compute_tile(const job *j, const pass *s, const tile *t, float *scratch)
{
    const pl_gemm_kernels *kernels = j->plan.kernels;
    const rows_of_a *r = t->rows;
    int vectors = t->columns > kernels->vector ? 2 : 1, whole = t->columns == vectors * kernels->vector;
    pl_gemm_tile_fn *sum = (r->by_columns ? kernels->by_columns : kernels->by_rows)[r->count - 1][vectors - 1];
    int finish = t->last && j->has_epilogue;
    if (finish) fetch_for_epilogue(j->call, t);
    if (finish && !t->add) { /* one block of k: from registers to the epilogue */
        sum(t->k, r->a, r->stride, t->b, scratch, kernels->nr, 0);
        kernels->finish(&j->epilogue, scratch, kernels->nr, r->begin, t->column, r->count, t->columns);
        return;
    }
    int64_t ld;
    float *sums = sums_at(j, s, r->begin, t->column, &ld);
    if (whole) {
        sum(t->k, r->a, r->stride, t->b, sums, ld, t->add);
    } else {
        pl_gemm_epilogue store = {.c = sums, .ldc = ld, .accumulate = t->add};
        sum(t->k, r->a, r->stride, t->b, scratch, kernels->nr, 0);
        kernels->finish(&store, scratch, kernels->nr, 0, 0, r->count, t->columns);
    }
    if (finish) kernels->finish(&j->epilogue, sums, ld, r->begin, t->column, r->count, t->columns);
}

/* Rows whose distance is a multiple of 2 KiB fall on the same few sets of the first-level cache and push each other
 * out; those are copied. */
static int is_crowded(int64_t stride)
{
    return stride * (int64_t)sizeof(float) % 2048 == 0;
}

static int64_t panel_begin(const pass *s, int64_t panel)
{
    return s->row_begin + pl_gemm_split(s->row_end - s->row_begin, s->row_panels, panel);
}

/* `count` panels of a strided A at once: they come in one or two sizes, and those of one size are neighbours. */
static void take_columns(const job *j, rows_of_a *rows, int64_t count, int64_t k, float *to)
{
    const pl_gemm_call *c = j->call;
    int64_t panel_elems = j->plan.kernels->mr * k;
    for (int64_t r = 0, same; r < count; r += same) {
        for (same = 1; r + same < count && rows[r + same].count == rows[r].count;) same++;
        j->plan.kernels->pack_a_columns(rows[r].a, c->a_col, rows[r].count, same, k, to + r * panel_elems, panel_elems);
        for (int64_t i = r; i < r + same; i++) rows[i].a = to + i * panel_elems;
    }
}

/* Panels [first, first + count) of rows for one block of k, packed where that pays. */
static void take_rows(const job *j, const pass *s, int64_t first, int64_t count, int64_t k_begin, int64_t k,
                      int64_t uses, float *to, rows_of_a *rows)
{
    const pl_gemm_call *c = j->call;
    for (int64_t i = 0; i < count; i++) {
        rows_of_a *r = rows + i;
        *r = (rows_of_a){.begin = panel_begin(s, first + i), .stride = c->a_row, .by_columns = c->a_col != 1};
        r->count = panel_begin(s, first + i + 1) - r->begin;
        r->a = c->a + r->begin * c->a_row + k_begin * c->a_col;
        if (!r->by_columns && is_crowded(c->a_row) && r->count > 2 && uses > 1) {
            j->plan.kernels->pack_a_rows(r->a, c->a_row, r->count, k, to, j->plan.a_stride);
            r->a = to, r->stride = j->plan.a_stride;
        }
    }
    if (c->a_col != 1) take_columns(j, rows, count, k, to);
}

/* What A will be read next: the next block of k of the same group, else the first of the next group; in `tiles` steps.
 */
static pl_gemm_ahead a_ahead(const job *j, const pass *s, int64_t group, int64_t block, int64_t tiles)
{
    const pl_gemm_call *c = j->call;
    if (++block == s->first_block + s->blocks) block = s->first_block, group++;
    if (!j->fetch_ahead || group >= s->groups) return (pl_gemm_ahead){0};
    int64_t k_begin = block * j->plan.k_block, k = min_of(j->plan.k_block, c->k - k_begin);
    int64_t first = panel_begin(s, pl_gemm_split(s->row_panels, s->groups, group));
    int64_t rows = panel_begin(s, pl_gemm_split(s->row_panels, s->groups, group + 1)) - first;
    const float *at = c->a + first * c->a_row + k_begin * c->a_col;
    return c->a_col == 1 ? pl_gemm_ahead_of(at, c->a_row, rows, k, tiles)
                         : pl_gemm_ahead_of(at, c->a_col, k, rows, tiles);
}

/* Column panels [begin, end) of one group of rows, all k of the pass. */
static void compute_group(const job *j, const pass *s, int64_t group, int64_t begin, int64_t end, char *own)
{
    const pl_gemm_plan *p = &j->plan;
    float *a = (float *)(void *)own, *scratch = (float *)(void *)(own + p->a_bytes);
    int64_t first = pl_gemm_split(s->row_panels, s->groups, group);
    int64_t count = pl_gemm_split(s->row_panels, s->groups, group + 1) - first;
    rows_of_a rows[PL_GEMM_GROUP_MAX];
    for (int64_t block = s->first_block; block < s->first_block + s->blocks; block++) {
        int64_t k_begin = block * p->k_block, k = min_of(p->k_block, j->call->k - k_begin);
        take_rows(j, s, first, count, k_begin, k, end - begin, a, rows);
        pl_gemm_ahead ahead = a_ahead(j, s, group, block, count * (end - begin));
        tile t = {.k = k, .last = block + 1 == p->k_blocks};
        t.add = block > 0 || (j->call->accumulate && !j->has_epilogue);
        for (int64_t panel = begin; panel < end; panel++) {
            t.b = s->b + panel * s->k * p->kernels->nr + (k_begin - s->k_begin) * p->kernels->nr;
            t.column = s->column_begin + panel * p->kernels->nr;
            t.columns = min_of(p->kernels->nr, s->column_begin + s->columns - t.column);
            for (int64_t r = 0; r < count; r++) {
                pl_gemm_ahead_step(&ahead);
                t.rows = rows + r;
                compute_tile(j, s, &t, scratch);
            }
        }
    }
}

static void compute_pass(const job *j, int64_t index, pl_tickets *tickets, char *own)
{
    pass s = pass_of(j, index);
    pl_share share = {.units = s.groups * s.panels, .threads = j->plan.threads};
    while (pl_share_next(&share, tickets))
        for (int64_t strip = share.begin; strip < share.end;) {
            int64_t group = strip / s.panels, stop = min_of(share.end, (group + 1) * s.panels);
            compute_group(j, &s, group, strip - group * s.panels, stop - group * s.panels, own);
            strip = stop;
        }
}

/* ---- what every thread runs ---- */

static void work_packed(const job *j, int thread)
{
    pl_gemm_counters *counters = counters_of(j);
    char *own = j->workspace + j->plan.threads_offset + (uint64_t)thread * j->plan.thread_bytes;
    int64_t passes = j->stretches * j->column_passes * j->k_passes;
    pack_pass(j, 0, &counters->packs[0]);
    for (int64_t i = 0; i < passes; i++) {
        pl_barrier();
        if (thread == 0) { /* nobody is in pass i − 1 any more */
            counters->strips[(i + 1) & 1].next = 0;
            counters->packs[i & 1].next = 0;
        }
        compute_pass(j, i, &counters->strips[i & 1], own);
        if (i + 1 < passes) pack_pass(j, i + 1, &counters->packs[(i + 1) & 1]);
    }
}

enum { THIN_UNIT = 64 };

static void work_thin(const job *j)
{
    const pl_gemm_call *c = j->call;
    pl_gemm_thin_product product = {c->m, c->n, c->k, c->a, c->a_row, c->a_col, c->b, c->b_row, c->b_col, j->epilogue};
    pl_share share = {.units = pl_gemm_ceil_div(c->n, THIN_UNIT), .threads = j->plan.threads};
    while (pl_share_next(&share, &counters_of(j)->strips[0]))
        j->plan.kernels->thin(&product, share.begin * THIN_UNIT, min_of(share.end * THIN_UNIT, c->n));
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    (void)parts;
    if (j->plan.thin)
        work_thin(j);
    else
        work_packed(j, part);
}

uint64_t pl_gemm_workspace_bytes(const pl_gemm_call *call, pl_team team)
{
    return pl_gemm_plan_make(call, team).bytes;
}

void pl_gemm_exec(const pl_gemm_call *call, void *workspace, pl_team team)
{
    job j = job_of(call, workspace, team);
    *counters_of(&j) = (pl_gemm_counters){0};
    pl_parallel((pl_team){.threads = j.plan.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
