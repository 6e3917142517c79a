/* Sizes of a product's pieces and the layout of its workspace. */
#include "backend/gemm_plan.h"

#include "base/size.h"

/* Multiply-adds below which waking the team costs more than it saves; a thin product waits for memory, not for them. */
static const double parallel_macs = 1 << 19, parallel_thin_macs = 1 << 17;

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* B's k contiguous or not, A's k contiguous: what the thin kernels take. */
static int is_thin(const pl_gemm_call *c, const pl_gemm_kernels *kernels)
{
    return c->m <= kernels->thin_rows && (c->a_col == 1 || kernels->nr == 1);
}

static void cut_k(pl_gemm_plan *p, const pl_gemm_call *c)
{
    int64_t count = pl_gemm_ceil_div(c->k, p->kernels->k_block);
    p->k_block = min_of(c->k, (pl_gemm_ceil_div(c->k, count) + 15) / 16 * 16);
    p->k_blocks = pl_gemm_ceil_div(c->k, p->k_block);
}

/* As many columns as fit beside one block of k, then as many blocks of k; each split evenly. */
static void cut_passes(pl_gemm_plan *p, const pl_gemm_call *c)
{
    int64_t nr = p->kernels->nr, panels = pl_gemm_ceil_div(c->n, nr), fit = PL_GEMM_B_ELEMS / (p->k_block * nr);
    int64_t pass_panels = pl_gemm_ceil_div(panels, pl_gemm_ceil_div(panels, fit));
    int64_t blocks = min_of(p->k_blocks, fit / pass_panels);
    p->pass_k_blocks = pl_gemm_ceil_div(p->k_blocks, pl_gemm_ceil_div(p->k_blocks, blocks));
    p->pass_columns = pass_panels * nr;
}

/* Groups of several panels read whole cache lines of a strided A; but every thread should get some strips. */
static void cut_groups(pl_gemm_plan *p, const pl_gemm_call *c)
{
    int64_t tiles = pl_gemm_ceil_div(c->m, p->kernels->mr) * pl_gemm_ceil_div(p->pass_columns, p->kernels->nr);
    int64_t group = tiles / (8 * (int64_t)p->threads);
    p->group = c->a_col == 1 || group < 1 ? 1 : min_of(group, PL_GEMM_GROUP_MAX);
    p->a_stride = p->k_block + 16;
}

static void lay_out(pl_gemm_plan *p)
{
    const pl_gemm_kernels *t = p->kernels;
    int64_t a_columns = p->group * t->mr * p->k_block, a_rows = t->mr * p->a_stride;
    p->b_offset = sizeof(pl_gemm_counters);
    p->b_bytes = pl_align_up((uint64_t)(p->pass_k_blocks * p->k_block * p->pass_columns) * sizeof(float), 64);
    p->sums_offset = p->b_offset + 2 * p->b_bytes;
    p->threads_offset = p->sums_offset + (p->k_blocks > 1 ? PL_GEMM_SUMS_ELEMS * sizeof(float) : 0);
    p->a_bytes = pl_align_up((uint64_t)(a_columns > a_rows ? a_columns : a_rows) * sizeof(float), 64);
    p->thread_bytes = p->a_bytes + (uint64_t)(t->mr * t->nr) * sizeof(float);
    p->bytes = p->threads_offset + (uint64_t)p->threads * p->thread_bytes;
}

pl_gemm_plan pl_gemm_plan_make(const pl_gemm_call *c, pl_team team)
{
    pl_gemm_plan p = {.kernels = pl_gemm_kernels_of(team.isa)};
    p.thin = is_thin(c, p.kernels);
    double macs = (double)c->m * (double)c->n * (double)c->k;
    p.threads = team.threads > 1 && macs >= (p.thin ? parallel_thin_macs : parallel_macs) ? team.threads : 1;
    p.bytes = sizeof(pl_gemm_counters);
    if (p.thin) return p;
    cut_k(&p, c);
    cut_passes(&p, c);
    cut_groups(&p, c);
    lay_out(&p);
    return p;
}
