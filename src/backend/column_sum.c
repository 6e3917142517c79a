/* Column sums. Rows are cut into blocks (a number that depends on `rows` alone), summed apart and then added in order;
 * columns in stretches, so that the partial sums have a bounded place:
 * workspace: counters | PARTS × min(columns, STRETCH) floats. */
#include "backend/calls.h"
#include "backend/parallel.h"
#include "backend/tickets.h"
#include "kernels/gemm.h"

enum { PARTS = 16, STRETCH = 1024, PART_ROWS_MIN = 32, UNIT_COLUMNS = 128 };

static const int64_t parallel_elems = 1 << 15;

typedef struct sum_counters {
    pl_tickets parts[2]; /* of even and odd stretches */
} sum_counters;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t part_count(const pl_column_sum_call *c)
{
    int64_t wanted = c->rows / PART_ROWS_MIN;
    return wanted < 1 ? 1 : min_of(wanted, PARTS);
}

static int64_t stretch_of(const pl_column_sum_call *c) { return min_of(c->columns, STRETCH); }

uint64_t pl_column_sum_workspace_bytes(const pl_column_sum_call *c, pl_team team)
{
    (void)team;
    return sizeof(sum_counters) + (uint64_t)(part_count(c) * stretch_of(c)) * sizeof(float);
}

typedef struct job {
    const pl_column_sum_call *call;
    const pl_gemm_kernels *kernels;
    sum_counters *counters;
    float *partial; /* [parts, stretch] */
    int64_t parts, stretch;
    int threads;
} job;

static void sum_part(const job *j, int64_t part, int64_t column, int64_t columns)
{
    const pl_column_sum_call *c = j->call;
    int64_t begin = c->rows * part / j->parts, end = c->rows * (part + 1) / j->parts;
    float *out = j->partial + part * j->stretch + column % j->stretch;
    const void *x = pl_real_at(c->type, c->x, begin * c->ld + column);
    j->kernels->column_sum(c->type, x, c->ld, end - begin, columns, out, 0);
}

/* Units are (part, piece of the stretch). */
static void sum_parts(const job *j, int64_t column, int64_t columns, pl_tickets *tickets)
{
    int64_t pieces = (columns + UNIT_COLUMNS - 1) / UNIT_COLUMNS;
    pl_share share = {.units = j->parts * pieces, .threads = j->threads};
    while (pl_share_next(&share, tickets))
        for (int64_t unit = share.begin; unit < share.end; unit++) {
            int64_t at = unit % pieces * UNIT_COLUMNS;
            sum_part(j, unit / pieces, column + at, min_of(UNIT_COLUMNS, columns - at));
        }
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const pl_column_sum_call *c = j->call;
    int odd = 0;
    (void)parts;
    for (int64_t column = 0; column < c->columns; column += j->stretch, odd ^= 1) {
        int64_t columns = min_of(j->stretch, c->columns - column);
        sum_parts(j, column, columns, &j->counters->parts[odd]);
        pl_barrier();
        if (part == 0) {
            j->kernels->column_sum(PL_REAL_F32, j->partial, j->stretch, j->parts, columns, c->out + column,
                                   c->accumulate);
            j->counters->parts[odd ^ 1].next = 0;
        }
        pl_barrier();
    }
}

void pl_column_sum_exec(const pl_column_sum_call *c, void *workspace, pl_team team)
{
    job j = {.call = c, .kernels = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32), .counters = workspace};
    j.partial = (float *)(void *)((char *)workspace + sizeof(sum_counters));
    j.parts = part_count(c), j.stretch = stretch_of(c);
    j.threads = team.threads > 1 && c->rows * c->columns >= parallel_elems ? team.threads : 1;
    *j.counters = (sum_counters){0};
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
