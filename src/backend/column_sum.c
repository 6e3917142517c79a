/* Column sums. Columns are shared out; each is one chain of additions down the rows from what is there, so the bits
 * depend neither on the team nor on how the rows of a batch are dealt to calls. */
#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/gemm.h"

enum { LINE_FLOATS = 16 };

static const int64_t parallel_elems = 1 << 15;

typedef struct job {
    const pl_column_sum_call *call;
    const pl_gemm_kernels *kernels;
} job;

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const pl_column_sum_call *c = j->call;
    pl_range own = pl_range_of_part(c->columns, LINE_FLOATS, part, parts);
    const void *x = pl_real_at(c->type, c->x, own.begin);
    j->kernels->column_sum(c->type, x, c->ld, c->rows, own.end - own.begin, c->out + own.begin, c->accumulate);
}

void pl_column_sum_exec(const pl_column_sum_call *c, pl_team team)
{
    job j = {c, pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32)};
    pl_parallel(team, c->rows * c->columns < parallel_elems ? 0 : INT64_MAX, work, &j);
}
