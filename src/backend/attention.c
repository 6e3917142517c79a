/* Attention over all heads with a team. Tasks are handed out one at a time by an atomic counter, which lies in the
 * workspace: a task's result depends on its place alone, so it does not matter who takes it. Forward: a task is a block
 * of queries of one head, the longest (latest under a causal mask) first. Backward: a task is a head.
 *
 *   workspace:  [ counter, 64 bytes ][ thread 0 ][ thread 1 ] …  each as the kernel asks, a multiple of 64 bytes */
#include <omp.h>
#include <stdatomic.h>
#include <stddef.h>

#include "backend/calls.h"
#include "kernels/kernels.h"

enum { COUNTER_BYTES = 64 };

typedef _Atomic int64_t counter;

static int useful_threads(int64_t tasks, pl_team team) { return tasks < 2 ? 1 : team.threads; }

static uint64_t workspace_bytes(uint64_t per_thread, int64_t tasks, pl_team team)
{
    return COUNTER_BYTES + per_thread * (uint64_t)useful_threads(tasks, team);
}

static int64_t blocks_of(const pl_attention_call *c, const pl_kernels *kernels)
{
    int64_t block = kernels->attention_block_queries();
    return (c->tq + block - 1) / block;
}

uint64_t pl_attention_workspace_bytes(const pl_attention_call *c, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    int64_t tasks = c->batch * c->heads * blocks_of(c, kernels);
    return workspace_bytes(kernels->attention_workspace_bytes(c->head_width), tasks, team);
}

static void run_task(const pl_attention_call *c, const pl_kernels *kernels, int64_t task, void *workspace)
{
    int64_t pairs = c->batch * c->heads, block = kernels->attention_block_queries();
    int64_t part = blocks_of(c, kernels) - 1 - task / pairs, b = task % pairs / c->heads, h = task % c->heads;
    int64_t inside = h * c->head_width, begin = part * block, end = begin + block < c->tq ? begin + block : c->tq;
    pl_attention_head head = {.tq = c->tq,
                              .tk = c->position ? *c->position + c->tq : c->tk,
                              .head_width = c->head_width,
                              .causal = c->causal,
                              .scale = c->scale,
                              .q = c->q + b * c->sq.batch + inside,
                              .k = c->k + b * c->sk.batch + inside,
                              .v = c->v + b * c->sv.batch + inside,
                              .ldq = c->sq.token,
                              .ldk = c->sk.token,
                              .ldv = c->sv.token,
                              .ldo = c->so.token,
                              .o = c->o + b * c->so.batch + inside,
                              .lse = c->lse ? c->lse + (b * c->heads + h) * c->tq : NULL};
    kernels->attention(&head, begin, end, workspace);
}

void pl_attention_exec(const pl_attention_call *c, void *workspace, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    uint64_t each = kernels->attention_workspace_bytes(c->head_width);
    int64_t tasks = c->batch * c->heads * blocks_of(c, kernels);
    int threads = useful_threads(tasks, team);
    counter *next = workspace;
    atomic_init(next, 0);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        char *mine = (char *)workspace + COUNTER_BYTES + each * (uint64_t)omp_get_thread_num();
        for (int64_t t; (t = atomic_fetch_add_explicit(next, 1, memory_order_relaxed)) < tasks;)
            run_task(c, kernels, t, mine);
    }
}

uint64_t pl_attention_bwd_workspace_bytes(const pl_attention_bwd_call *c, pl_team team)
{
    uint64_t each = pl_kernels_get(team.isa)->attention_bwd_workspace_bytes(c->head_width);
    return workspace_bytes(each, c->batch * c->heads, team);
}

static void run_bwd_task(const pl_attention_bwd_call *c, const pl_kernels *kernels, int64_t task, void *workspace)
{
    int64_t b = task / c->heads, h = task % c->heads, inside = h * c->head_width;
    pl_attention_bwd_head head = {.tq = c->tq,
                                  .tk = c->tk,
                                  .head_width = c->head_width,
                                  .causal = c->causal,
                                  .scale = c->scale,
                                  .q = c->q + b * c->sq.batch + inside,
                                  .k = c->k + b * c->sk.batch + inside,
                                  .v = c->v + b * c->sv.batch + inside,
                                  .o = c->o + b * c->so.batch + inside,
                                  .d_o = c->d_o + b * c->sdo.batch + inside,
                                  .lse = c->lse + task * c->tq,
                                  .ldq = c->sq.token,
                                  .ldk = c->sk.token,
                                  .ldv = c->sv.token,
                                  .ldo = c->so.token,
                                  .lddo = c->sdo.token,
                                  .dq = c->dq + b * c->sdq.batch + inside,
                                  .dk = c->dk + b * c->sdk.batch + inside,
                                  .dv = c->dv + b * c->sdv.batch + inside,
                                  .lddq = c->sdq.token,
                                  .lddk = c->sdk.token,
                                  .lddv = c->sdv.token};
    kernels->attention_bwd(&head, workspace);
}

void pl_attention_bwd_exec(const pl_attention_bwd_call *c, void *workspace, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    uint64_t each = kernels->attention_bwd_workspace_bytes(c->head_width);
    int64_t tasks = c->batch * c->heads;
    int threads = useful_threads(tasks, team);
    counter *next = workspace;
    atomic_init(next, 0);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        char *mine = (char *)workspace + COUNTER_BYTES + each * (uint64_t)omp_get_thread_num();
        for (int64_t t; (t = atomic_fetch_add_explicit(next, 1, memory_order_relaxed)) < tasks;)
            run_bwd_task(c, kernels, t, mine);
    }
}
