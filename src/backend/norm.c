/* Layer norm and RMS norm. Rows are shared out freely: each row's sums are its own. The gradients of gamma and beta sum
 * over all rows: rows are cut into at most MAX_BLOCKS blocks by their number alone, each block leaves a partial sum in
 * the workspace, and the partials are added in block order. So the bits do not depend on the team. */
#include <assert.h>
#include <stddef.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { MAX_BLOCKS = 64, MIN_BLOCK_ROWS = 32, LINE_FLOATS = 16 };

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
    assert(call->width > 0 && (!call->rms || (!call->mean && !call->beta)));
    norm_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->rows * call->width, norm_part, &work);
}

/* ---- backward ---- */

typedef struct norm_bwd_work {
    const pl_norm_bwd_call *call;
    const pl_kernels *kernels;
    int64_t block_rows, blocks, ld;
    float *partial; /* of gamma and block b at b·ld, of beta at (blocks + b)·ld */
} norm_bwd_work;

static norm_bwd_work norm_bwd_layout(const pl_norm_bwd_call *c)
{
    int64_t block_rows = divide_up(c->rows, MAX_BLOCKS);
    if (block_rows < MIN_BLOCK_ROWS) block_rows = MIN_BLOCK_ROWS;
    int64_t ld = divide_up(c->width, LINE_FLOATS) * LINE_FLOATS;
    return (norm_bwd_work){c, NULL, block_rows, divide_up(c->rows, block_rows), ld, NULL};
}

uint64_t pl_norm_bwd_workspace_bytes(const pl_norm_bwd_call *c, pl_team team)
{
    (void)team;
    norm_bwd_work w = norm_bwd_layout(c);
    return (uint64_t)(w.blocks * w.ld) * (c->rms ? 1 : 2) * sizeof(float);
}

static void norm_bwd_part(const void *work, int part, int parts)
{
    const norm_bwd_work *w = work;
    const pl_norm_bwd_call *c = w->call;
    float *partial_beta = w->partial + w->blocks * w->ld;
    pl_range blocks = pl_range_of_part(w->blocks, 1, part, parts);
    for (int64_t b = blocks.begin; b < blocks.end; b++) {
        int64_t end = (b + 1) * w->block_rows;
        w->kernels->norm_bwd_rows(b * w->block_rows, end < c->rows ? end : c->rows, c->width, c->rms, c->type, c->dy,
                                  c->x, c->gamma, c->mean, c->rstd, c->add, c->dx, w->partial + b * w->ld,
                                  c->dbeta ? partial_beta + b * w->ld : NULL);
    }
    pl_barrier();
    pl_range columns = pl_range_of_part(c->width, LINE_FLOATS, part, parts);
    w->kernels->add_blocks(columns.begin, columns.end, w->blocks, w->ld, w->partial, c->dgamma);
    if (c->dbeta) w->kernels->add_blocks(columns.begin, columns.end, w->blocks, w->ld, partial_beta, c->dbeta);
}

void pl_norm_bwd_exec(const pl_norm_bwd_call *call, void *workspace, pl_team team)
{
    assert(call->width > 0 && (!call->rms || !call->dbeta));
    norm_bwd_work work = norm_bwd_layout(call);
    work.kernels = pl_kernels_get(team.isa);
    work.partial = workspace;
    pl_parallel(team, call->rows * call->width, norm_bwd_part, &work);
}
