/* Products of rows that come in blocks of Q8_0 with a weight in blocks (kernels/gemm_rounded.h): the threads. First all
 * of them make the rows ready, then each takes some columns after the other. A sum has one order, whatever is cut.
 *
 * Workspace: counter | rows, made ready | for each thread: a panel of the weight and the sums of its rows. */
#include <assert.h>
#include <stddef.h>

#include "backend/gemm_plan.h"
#include "backend/gemm_rounded.h"
#include "backend/parallel.h"
#include "base/size.h"

enum { UNIT_COLUMNS = 32, SERIAL_BELOW_MACS = 1 << 17 }; /* waking the team costs more than it saves */

typedef struct job {
    const pl_gemm_call *call;
    pl_rounded_product product;
    const pl_rounded_kernels *kernels;
    int threads, workers; /* workers: threads that can get a unit, with memory of their own */
    int64_t units;
    char *workspace;
    pl_rounded_group *x; /* in the workspace */
    uint64_t x_offset, threads_offset, thread_bytes;
} job;

static job job_of(const pl_rounded_kernels *kernels, const pl_gemm_call *c, void *workspace, pl_team team)
{
    const double macs = (double)c->m * (double)c->n * (double)c->k;
    job j = {.call = c,
             .product = {.m = c->m, .n = c->n, .k = c->k, .encoding = c->b_encoding, .w = c->b},
             .kernels = kernels,
             .units = pl_gemm_ceil_div(c->n, UNIT_COLUMNS),
             .workspace = workspace};
    assert(c->a_encoding == PL_ENCODING_Q8_0 && pl_encoding_block(c->b_encoding) > 1 && c->a_row == c->k &&
           c->b_row == 1 && c->b_col == c->k && c->k % pl_encoding_block(c->b_encoding) == 0 && !c->gated &&
           !c->accumulate);
    j.threads = macs < SERIAL_BELOW_MACS ? 1 : team.threads;
    j.workers = j.threads < j.units ? j.threads : (int)j.units;
    j.x_offset = pl_align_up(sizeof(pl_tickets), 64);
    j.threads_offset =
        j.x_offset + pl_align_up((uint64_t)(c->m * (c->k / PL_ROUNDED_GROUP)) * sizeof(pl_rounded_group), 64);
    j.thread_bytes = pl_align_up(kernels->scratch_bytes, 64);
    return j;
}

static uint64_t bytes_of(const job *j) { return j->threads_offset + (uint64_t)j->workers * j->thread_bytes; }

static pl_tickets *tickets_of(const job *j) { return (pl_tickets *)(void *)j->workspace; }

static void make_ready(const job *j, pl_range rows)
{
    const pl_gemm_call *c = j->call;
    const int64_t row_bytes = pl_encoding_row_bytes(c->a_encoding, c->k);
    for (int64_t g = 0; g < c->k / PL_ROUNDED_GROUP; g++)
        for (int64_t i = rows.begin; i < rows.end; i++)
            pl_rounded_prepare(c->b_encoding, (const char *)c->a + i * row_bytes, g, j->x + g * c->m + i);
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    make_ready(j, pl_range_of_part(j->call->m, 1, part, parts));
    pl_barrier();
    if (part >= j->workers) return;
    char *own = j->workspace + j->threads_offset + (uint64_t)part * j->thread_bytes;
    pl_share share = {.units = j->units, .threads = j->workers};
    while (pl_share_next(&share, tickets_of(j))) {
        const int64_t end = share.end * UNIT_COLUMNS;
        j->kernels->columns(&j->product, share.begin * UNIT_COLUMNS, end < j->call->n ? end : j->call->n, own);
    }
}

uint64_t pl_gemm_rounded_workspace_bytes(const pl_rounded_kernels *kernels, const pl_gemm_call *c, pl_team team)
{
    const job j = job_of(kernels, c, NULL, team);
    return bytes_of(&j);
}

void pl_gemm_rounded_exec(const pl_rounded_kernels *kernels, const pl_gemm_call *c, void *workspace, pl_team team)
{
    job j = job_of(kernels, c, workspace, team);
    j.product.x = j.x = (void *)(j.workspace + j.x_offset);
    j.product.epilogue = pl_gemm_epilogue_of(c);
    *tickets_of(&j) = (pl_tickets){0};
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
