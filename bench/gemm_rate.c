#include "gemm_rate.h"

#include <stdlib.h>
#include <string.h>

#include "backend/calls.h"
#include "bench.h"

void bench_model_linears(const bench_model *m, bench_linear out[BENCH_LINEARS])
{
    out[0] = (bench_linear){3 * m->width, m->width, m->layers};
    out[1] = (bench_linear){m->width, m->width, m->layers};
    out[2] = (bench_linear){m->feed_forward, m->width, m->layers};
    out[3] = (bench_linear){m->width, m->feed_forward, m->layers};
    out[4] = (bench_linear){m->vocab, m->width, 1};
}

/* x[tokens, in], w[out, in], y[tokens, out] at `memory`, in the part that the product needs; the gradient of w is f32
 * for operands of any type. */
static pl_gemm_call call_of(bench_product product, const bench_linear *l, int64_t tokens, pl_real type, float *memory)
{
    float *x = memory, *w = x + tokens * l->in, *y = w + l->out * l->in;
    switch (product) {
    case BENCH_FORWARD:
        return (pl_gemm_call){.m = tokens,
                              .n = l->out,
                              .k = l->in,
                              .a_type = type,
                              .b_type = type,
                              .type = type,
                              .a = x,
                              .a_row = l->in,
                              .a_col = 1,
                              .b = w,
                              .b_row = 1,
                              .b_col = l->in,
                              .c = y,
                              .ldc = l->out,
                              .dots = tokens == 1};
    case BENCH_DX:
        return (pl_gemm_call){.m = tokens,
                              .n = l->in,
                              .k = l->out,
                              .a_type = type,
                              .b_type = type,
                              .type = type,
                              .a = y,
                              .a_row = l->out,
                              .a_col = 1,
                              .b = w,
                              .b_row = l->in,
                              .b_col = 1,
                              .c = x,
                              .ldc = l->in};
    default:
        return (pl_gemm_call){.m = l->out,
                              .n = l->in,
                              .k = tokens,
                              .a_type = type,
                              .b_type = type,
                              .a = y,
                              .a_row = 1,
                              .a_col = l->out,
                              .b = x,
                              .b_row = l->in,
                              .b_col = 1,
                              .c = w,
                              .ldc = l->in,
                              .accumulate = 1,
                              .k_sample = l->sample};
    }
}

static void ours(const pl_gemm_call *call, void *workspace, pl_team team) { pl_gemm_exec(call, workspace, team); }

/* Samples of about 2 ms each. */
static double median_seconds(const pl_gemm_call *call, void *context, pl_team team, bench_gemm_fn *exec)
{
    enum { SAMPLES = 15 };
    double samples[SAMPLES];
    int count = bench_samples(SAMPLES);
    exec(call, context, team);
    double start = bench_seconds();
    exec(call, context, team);
    int repeat = 1 + (int)(bench_sample_seconds(2e-3) / (bench_seconds() - start + 1e-9));
    for (int s = 0; s < count; s++) {
        start = bench_seconds();
        for (int r = 0; r < repeat; r++) exec(call, context, team);
        samples[s] = (bench_seconds() - start) / repeat;
    }
    qsort(samples, (size_t)count, sizeof samples[0], bench_ascending);
    return samples[count / 2];
}

/* Operands of a product, filled. */
static float *memory_of(const bench_linear *l, int64_t tokens, pl_real type)
{
    size_t elems = (size_t)(tokens * l->in + l->out * l->in + tokens * l->out);
    float *memory = aligned_alloc(64, (elems * sizeof(float) + 63) / 64 * 64);
    if (!memory) return NULL;
    memset(memory, 0, elems * sizeof(float));
    float *part[] = {memory, memory + tokens * l->in, memory + tokens * l->in + l->out * l->in};
    const int64_t count[] = {tokens * l->in, l->out * l->in, tokens * l->out};
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < count[k]; i++) pl_real_put(type, part[k], i, (float)(i % 17) * 0x1p-10f);
    return memory;
}

double bench_gemm_seconds(bench_product product, const bench_linear *l, int64_t tokens, pl_team team,
                          bench_gemm_fn *exec, void *context)
{
    float *memory = memory_of(l, tokens, PL_REAL_F32);
    if (!memory) return -1;
    pl_gemm_call call = call_of(product, l, tokens, PL_REAL_F32, memory);
    void *workspace = aligned_alloc(64, (pl_gemm_workspace_bytes(&call, team) + 63) / 64 * 64);
    double seconds = -1;
    if (workspace) seconds = median_seconds(&call, exec ? context : workspace, team, exec ? exec : ours);
    free(workspace);
    free(memory);
    return seconds;
}

double bench_gemm_ratio(bench_product product, const bench_linear *l, int64_t tokens, pl_team team, pl_real type)
{
    enum { TURNS = 3 };
    const pl_real types[2] = {PL_REAL_F32, type};
    float *memory[2] = {memory_of(l, tokens, types[0]), memory_of(l, tokens, types[1])};
    double ratio[TURNS], seconds[2];
    int turns = bench_samples(TURNS);
    for (int turn = 0; turn < turns; turn++) {
        for (int k = 0; k < 2 && memory[0] && memory[1]; k++) {
            pl_gemm_call call = call_of(product, l, tokens, types[k], memory[k]);
            void *workspace = aligned_alloc(64, (pl_gemm_workspace_bytes(&call, team) + 63) / 64 * 64);
            seconds[k] = workspace ? median_seconds(&call, workspace, team, ours) : -1;
            free(workspace);
        }
        ratio[turn] = memory[0] && memory[1] && seconds[0] > 0 && seconds[1] > 0 ? seconds[0] / seconds[1] : -1;
    }
    free(memory[0]);
    free(memory[1]);
    qsort(ratio, (size_t)turns, sizeof ratio[0], bench_ascending);
    return ratio[0] > 0 ? ratio[turns / 2] : -1;
}

/* Seconds for each token at the best number of tokens. */
static double best_seconds(bench_product product, const bench_linear *l, const int64_t *tokens, int count, pl_team team)
{
    double best = -1;
    for (int i = 0; i < count; i++) {
        double seconds = bench_gemm_seconds(product, l, tokens[i], team, NULL, NULL) / (double)tokens[i];
        if (seconds < 0) return -1;
        if (best < 0 || seconds < best) best = seconds;
    }
    return best;
}

double bench_gemm_rate(const bench_model *model, const int64_t *tokens, int count, pl_team team)
{
    bench_linear linears[BENCH_LINEARS];
    bench_model_linears(model, linears);
    double flops = 0, seconds = 0;
    for (int i = 0; i < BENCH_LINEARS; i++)
        for (int product = 0; product < BENCH_PRODUCT_COUNT; product++) {
            double best = best_seconds((bench_product)product, &linears[i], tokens, count, team);
            if (best < 0) return -1;
            flops += 2.0 * (double)(linears[i].out * linears[i].in * linears[i].times);
            seconds += best * (double)linears[i].times;
        }
    return flops / seconds;
}
