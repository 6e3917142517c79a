/* bench_gemm [--threads N] [--isa LEVEL] [--tokens M] [--sample T] [--width D] [--onednn] [--narrow] [--brief]: rates
 * of the matrix products of the language model of the demo (width 256, feed-forward 1024, vocabulary 788, 6 layers), or
 * of one of another width D and feed-forward 4 D (768: the vision systems), against the multiply-add peak measured in
 * the same run, with --onednn beside oneDNN's matmul on the same strides, and with --narrow how many times as fast they
 * are with operands of 16 bits. With --brief (bench.h) the numbers of tokens are small. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/calls.h"
#include "bench.h"
#include "fma_peak.h"
#include "gemm_rate.h"
#include "onednn_gemm.h"

typedef struct options {
    pl_team team;
    int64_t tokens; /* 0: some that are usual */
    int64_t width;
    int64_t sample; /* tokens of a sample; 0: not told */
    int onednn, narrow;
} options;

enum { SIZES = 4, TOKENS_MAX = 1 << 30, WIDTH_MAX = 1 << 14 };

static const char *const product_names[BENCH_PRODUCT_COUNT] = {"forward", "dX", "dW"};

static int parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--onednn") == 0)
            o->onednn = 1;
        else if (strcmp(argv[i], "--narrow") == 0)
            o->narrow = 1;
        else if (value && strcmp(argv[i], "--threads") == 0)
            o->team.threads = atoi(value), i++;
        else if (value && strcmp(argv[i], "--tokens") == 0)
            o->tokens = atoll(value), i++;
        else if (value && strcmp(argv[i], "--sample") == 0)
            o->sample = atoll(value), i++;
        else if (value && strcmp(argv[i], "--width") == 0)
            o->width = atoll(value), i++;
        else if (value && strcmp(argv[i], "--isa") == 0 && pl_isa_parse(value, &o->team.isa) == 0)
            i++;
        else
            return -1;
    }
    bool possible = o->tokens >= 0 && o->tokens <= TOKENS_MAX && o->sample >= 0 && o->width >= 1 &&
                    o->width <= WIDTH_MAX && o->team.isa <= pl_isa_of_machine();
    return o->team.threads >= 1 && possible ? 0 : -1;
}

static int refuse_memory(void)
{
    fprintf(stderr, "bench_gemm: not enough memory\n");
    return 1;
}

static void print_onednn(double flops, double ours, double seconds)
{
    if (seconds > 0)
        printf("  oneDNN %7.1f  ratio %.3f", flops / seconds * 1e-9, ours * seconds / flops);
    else
        printf("  oneDNN failed");
}

static int print_product(bench_product product, const bench_linear *l, int64_t tokens, const options *o, double peak)
{
    double flops = 2.0 * (double)(l->out * l->in * tokens), bf16 = 0, f16 = 0;
    double seconds = bench_gemm_seconds(product, l, tokens, o->team, NULL, NULL);
    if (o->narrow) {
        bf16 = bench_gemm_ratio(product, l, tokens, o->team, PL_REAL_BF16);
        f16 = bench_gemm_ratio(product, l, tokens, o->team, PL_REAL_F16);
    }
    if (seconds < 0 || bf16 < 0 || f16 < 0) return refuse_memory();
    double rate = flops / seconds;
    printf("%-8s out %4ld in %4ld tokens %5ld  %7.1f GFLOP/s  %5.1f %% of peak", product_names[product], (long)l->out,
           (long)l->in, (long)tokens, rate * 1e-9, 100 * rate / peak);
    if (o->onednn) print_onednn(flops, rate, bench_onednn_seconds(product, l, tokens, o->team));
    if (o->narrow) printf("  bf16 × %.2f  f16 × %.2f", bf16, f16);
    printf("\n");
    return 0;
}

static int print_products(const bench_linear *linears, int64_t tokens, const options *o, double peak)
{
    int failed = 0;
    for (int p = 0; p < BENCH_PRODUCT_COUNT && !failed; p++)
        for (int i = 0; i < BENCH_LINEARS && !failed; i++)
            failed = print_product((bench_product)p, &linears[i], tokens, o, peak);
    return failed;
}

static int print_thin(const options *o)
{
    static const bench_linear one[] = {{788, 256, 1}, {1024, 256, 1}, {256, 1024, 1}, {4096, 4096, 1}};
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
        double seconds = bench_gemm_seconds(BENCH_FORWARD, &one[i], 1, o->team, NULL, NULL);
        if (seconds < 0) return refuse_memory();
        printf("one row  out %4ld in %4ld  %6.2f us  %6.1f GB/s of weights\n", (long)one[i].out, (long)one[i].in,
               seconds * 1e6, (double)(one[i].out * one[i].in) * 4e-9 / seconds);
    }
    return 0;
}

static int print_model_rate(const bench_model *model, const int64_t *tokens, const options *o, double peak)
{
    double rate = bench_gemm_rate(model, tokens, SIZES, o->team);
    if (rate < 0) return refuse_memory();
    printf("rate of the model (best tokens each) %.1f GFLOP/s, %.1f %% of peak\n", rate * 1e-9, 100 * rate / peak);
    return 0;
}

int main(int argc, char **argv)
{
    static const int64_t usual[SIZES] = {128, 256, 512, 4096}, small[SIZES] = {16, 32, 64, 128};
    options o = {.team = {.threads = 2, .isa = pl_isa_of_machine()}, .width = 256};
    bench_begin(&argc, argv,
                "bench_gemm [--threads N] [--isa baseline|avx2|avx512|avx512_bf16|amx] [--tokens M] [--sample T] "
                "[--width D] [--onednn] "
                "[--narrow] [--brief]");
    if (parse(argc, argv, &o)) return bench_refuse();
    if (o.onednn && !bench_onednn_available()) fprintf(stderr, "bench_gemm: built without oneDNN\n"), o.onednn = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* it takes a minute: through a pipe, too, each line when it is known */
    const bench_model model = {.width = o.width, .feed_forward = 4 * o.width, .vocab = 788, .layers = 6};
    const int64_t *all = bench_is_brief() ? small : usual;
    bench_linear linears[BENCH_LINEARS];
    bench_model_linears(&model, linears);
    for (int i = 0; i < BENCH_LINEARS; i++) linears[i].sample = o.sample;
    double peak = bench_fma_peak(o.team);
    printf("%s, %d threads, multiply-add peak %.1f GFLOP/s\n", pl_isa_name(o.team.isa), o.team.threads, peak * 1e-9);
    for (int t = 0; t < (o.tokens ? 1 : SIZES); t++)
        if (print_products(linears, o.tokens ? o.tokens : all[t], &o, peak)) return 1;
    return print_thin(&o) || print_model_rate(&model, all, &o, peak);
}
