#include "gemm_rate.h"

#include <stdlib.h>
#include <string.h>

#include "backend/calls.h"
#include "fma_peak.h"

void bench_model_linears(const bench_model *m, bench_linear out[BENCH_LINEARS])
{
    out[0] = (bench_linear){3 * m->width, m->width, m->layers};
    out[1] = (bench_linear){m->width, m->width, m->layers};
    out[2] = (bench_linear){m->feed_forward, m->width, m->layers};
    out[3] = (bench_linear){m->width, m->feed_forward, m->layers};
    out[4] = (bench_linear){m->vocab, m->width, 1};
}

/* x[tokens, in], w[out, in], y[tokens, out] at `memory`, in the part that the product needs. */
static pl_gemm_call call_of(bench_product product, const bench_linear *l, int64_t tokens, float *memory)
{
    float *x = memory, *w = x + tokens * l->in, *y = w + l->out * l->in;
    switch (product) {
    case BENCH_FORWARD:
        return (pl_gemm_call){.m = tokens,
                              .n = l->out,
                              .k = l->in,
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
                              .a = y,
                              .a_row = 1,
                              .a_col = l->out,
                              .b = x,
                              .b_row = l->in,
                              .b_col = 1,
                              .c = w,
                              .ldc = l->in,
                              .accumulate = 1};
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void ours(const pl_gemm_call *call, void *workspace, pl_team team) { pl_gemm_exec(call, workspace, team); }

/* Samples of about 2 ms each. */
static double median_seconds(const pl_gemm_call *call, void *context, pl_team team, bench_gemm_fn *exec)
{
    enum { SAMPLES = 15 };
    double samples[SAMPLES];
    exec(call, context, team);
    double start = bench_seconds();
    exec(call, context, team);
    int repeat = 1 + (int)(2e-3 / (bench_seconds() - start + 1e-9));
    for (int s = 0; s < SAMPLES; s++) {
        start = bench_seconds();
        for (int r = 0; r < repeat; r++) exec(call, context, team);
        samples[s] = (bench_seconds() - start) / repeat;
    }
    qsort(samples, SAMPLES, sizeof samples[0], ascending);
    return samples[SAMPLES / 2];
}

double bench_gemm_seconds(bench_product product, const bench_linear *l, int64_t tokens, pl_team team,
                          bench_gemm_fn *exec, void *context)
{
    size_t elems = (size_t)(tokens * l->in + l->out * l->in + tokens * l->out);
    float *memory = aligned_alloc(64, (elems * sizeof(float) + 63) / 64 * 64);
    if (!memory) return -1;
    for (size_t i = 0; i < elems; i++) memory[i] = (float)(i % 17) * 0x1p-10f;
    pl_gemm_call call = call_of(product, l, tokens, memory);
    void *workspace = aligned_alloc(64, (pl_gemm_workspace_bytes(&call, team) + 63) / 64 * 64);
    double seconds = -1;
    if (workspace) seconds = median_seconds(&call, exec ? context : workspace, team, exec ? exec : ours);
    free(workspace);
    free(memory);
    return seconds;
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
