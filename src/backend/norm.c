/* Layer norm and RMS norm. Rows are shared out freely: each row's sums are its own. Gradients of gamma and beta sum
 * over all rows: a sequence is cut into blocks by its length alone, each block leaves a partial sum in the workspace,
 * and the partials are added in block order, WAVE blocks at a time. So the bits depend neither on the team nor on how
 * many sequences the call has. */
#include <assert.h>
#include <stddef.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { WAVE = 64, MIN_BLOCK_ROWS = 32, LINE_FLOATS = 16 };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

typedef struct norm_work {
    const pl_norm_call *call;
    const pl_kernels *kernels;
} norm_work;

static void norm_part(const void *work, int part, int parts)
{
    const norm_work *w = work;
    const pl_norm_call *c = w->call;
    pl_range rows = pl_range_of_part(c->rows, 1, part, parts);
    w->kernels->norm_rows(rows.begin, rows.end, c->width, c->rms, c->eps, c->type, c->x, c->gamma, c->beta, c->y,
                          c->mean, c->rstd);
}

void pl_norm_exec(const pl_norm_call *call, pl_team team)
{
    assert(call->width > 0 && (call->rms ? !call->mean && !call->beta : call->gamma != NULL));
    norm_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->rows * call->width, norm_part, &work);
}

/* ---- backward ---- */

typedef struct norm_bwd_work {
    const pl_norm_bwd_call *call;
    const pl_kernels *kernels;
    int64_t per_sequence, blocks, wave; /* blocks of a sequence, of all, of those whose sums are kept at once */
    int64_t ld;
    float *partial, *partial_beta; /* of block b at b % wave·ld */
} norm_bwd_work;

static norm_bwd_work norm_bwd_layout(const pl_norm_bwd_call *c)
{
    norm_bwd_work w = {.call = c, .per_sequence = c->tokens < MIN_BLOCK_ROWS ? 1 : c->tokens / MIN_BLOCK_ROWS};
    w.blocks = c->rows == 0 ? 0 : c->rows / c->tokens * w.per_sequence;
    w.wave = !c->gamma ? 0 : w.blocks < WAVE ? w.blocks : WAVE;
    w.ld = divide_up(c->width, LINE_FLOATS) * LINE_FLOATS;
    return w;
}

uint64_t pl_norm_bwd_workspace_bytes(const pl_norm_bwd_call *c, pl_team team)
{
    (void)team;
    norm_bwd_work w = norm_bwd_layout(c);
    return (uint64_t)(w.wave * w.ld) * (c->rms ? 1 : 2) * sizeof(float);
}

static int64_t first_row(const norm_bwd_work *w, int64_t block)
{
    int64_t tokens = w->call->tokens;
    return block / w->per_sequence * tokens + block % w->per_sequence * tokens / w->per_sequence;
}

static void norm_bwd_block(const norm_bwd_work *w, int64_t block)
{
    const pl_norm_bwd_call *c = w->call;
    int64_t at = c->gamma ? block % w->wave * w->ld : 0;
    w->kernels->norm_bwd_rows(first_row(w, block), first_row(w, block + 1), c->width, c->rms, c->type, c->dy, c->x,
                              c->gamma, c->mean, c->rstd, c->add, c->dx, c->gamma ? w->partial + at : NULL,
                              c->dbeta ? w->partial_beta + at : NULL);
}

/* Without a gain nothing is summed over rows, and threads need not wait for each other. */
static void norm_bwd_part_alone(const void *work, int part, int parts)
{
    const norm_bwd_work *w = work;
    pl_range own = pl_range_of_part(w->blocks, 1, part, parts);
    for (int64_t b = own.begin; b < own.end; b++) norm_bwd_block(w, b);
}

static void norm_bwd_part(const void *work, int part, int parts)
{
    const norm_bwd_work *w = work;
    const pl_norm_bwd_call *c = w->call;
    pl_range columns = pl_range_of_part(c->width, LINE_FLOATS, part, parts);
    for (int64_t first = 0, count; first < w->blocks; first += count) {
        if (first) pl_barrier(); /* the last wave's sums have been added */
        count = w->blocks - first < w->wave ? w->blocks - first : w->wave;
        pl_range own = pl_range_of_part(count, 1, part, parts);
        for (int64_t b = own.begin; b < own.end; b++) norm_bwd_block(w, first + b);
        pl_barrier();
        if (c->dgamma) w->kernels->add_blocks(columns.begin, columns.end, count, w->ld, w->partial, c->dgamma);
        if (c->dbeta) w->kernels->add_blocks(columns.begin, columns.end, count, w->ld, w->partial_beta, c->dbeta);
    }
}

void pl_norm_bwd_exec(const pl_norm_bwd_call *call, void *workspace, pl_team team)
{
    assert(call->width > 0 && (!call->rms || !call->dbeta) && (call->rows == 0 || call->rows % call->tokens == 0));
    assert(call->gamma || (call->rms && !call->dgamma));
    norm_bwd_work work = norm_bwd_layout(call);
    work.kernels = pl_kernels_get(team.isa);
    work.partial = workspace;
    work.partial_beta = work.partial + work.wave * work.ld;
    pl_parallel(team, call->rows * call->width, call->gamma ? norm_bwd_part : norm_bwd_part_alone, &work);
}
