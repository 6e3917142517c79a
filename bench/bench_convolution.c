/* bench_convolution [--threads N] [--isa LEVEL] [--channels C] [--out N] [--size S] [--width W] [--batch B] [--brief]:
 * convolutions of 3 × 3 at the operators' shapes (64, 128, 256 channels, images of 128 × 128), or with these channels,
 * output channels, heights and so on, forward, dX and dW, f32 and bf16, by each algorithm, over the multiply-add peak
 * of f32. Rates count the multiply-adds of the definition, so Winograd's may be above the peak; bf16 that is multiplied
 * as pairs (avx512_bf16) has a peak of its own, printed first. Where oneDNN was found at build time, its rate stands
 * beside ours. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "bench.h"
#include "fma_peak.h"
#include "onednn_convolution.h"

typedef struct options {
    pl_team team;
    int64_t channels, size;    /* 0: the usual ones */
    int64_t out, width, batch; /* 0: channels, size, 1 */
} options;

typedef struct bench {
    pl_convolution_call forward;
    pl_convolution_dx_call dx;
    pl_convolution_dw_call dw;
    void *workspace;
    pl_team team;
} bench;

typedef enum which { FORWARD, DX, DW, WHICH } which;
static const char *const which_names[WHICH] = {"forward", "dX", "dW"};

static int64_t *number_named(options *o, const char *name)
{
    static const char *const names[] = {"--channels", "--size", "--out", "--width", "--batch"};
    int64_t *const numbers[] = {&o->channels, &o->size, &o->out, &o->width, &o->batch};
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) return numbers[i];
    return NULL;
}

static int parse(int argc, char **argv, options *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        int64_t *number = number_named(o, argv[i]);
        if (number)
            *number = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0)
            o->team.threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--isa") != 0 || pl_isa_parse(argv[i + 1], &o->team.isa) != 0)
            return -1;
        if (number && (*number < 0 || *number > 4096)) return -1;
    }
    return argc % 2 == 1 && o->team.isa <= pl_isa_of_machine() && o->team.threads >= 1 ? 0 : -1;
}

static void *alloc_or_exit(uint64_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (p) return p;
    fprintf(stderr, "bench_convolution: not enough memory\n");
    exit(1);
}

static void *filled(pl_real type, int64_t count)
{
    void *p = alloc_or_exit((uint64_t)(count * pl_real_bytes(type)));
    for (int64_t i = 0; i < count; i++) pl_real_put(type, p, i, (float)(i % 17 - 8) * 0x1p-10f);
    return p;
}

static uint64_t workspace_bytes(const bench *b, which w)
{
    if (w == FORWARD) return pl_convolution_workspace_bytes(&b->forward, b->team);
    return w == DX ? pl_convolution_dx_workspace_bytes(&b->dx, b->team)
                   : pl_convolution_dw_workspace_bytes(&b->dw, b->team);
}

static void run(const bench *b, which w)
{
    if (w == FORWARD) pl_convolution_exec(&b->forward, b->workspace, b->team);
    if (w == DX) pl_convolution_dx_exec(&b->dx, b->workspace, b->team);
    if (w == DW) pl_convolution_dw_exec(&b->dw, b->workspace, b->team);
}

typedef struct figures {
    double seconds; /* the best */
    double ratio;   /* of the rate to the peak right before and behind it: the median */
} figures;

/* Single runs between short measurements of the peak, until half a second or seven of them are over: whoever else uses
 * the machine, and the clock that its cores have just now, then changes both. */
static figures sample(bench *b, which w, double flops)
{
    enum { SAMPLES = 200 };
    double ratio[SAMPLES], begin = bench_seconds(), before = bench_fma_rate(b->team), least = INFINITY;
    int count = 0;
    b->workspace = alloc_or_exit(workspace_bytes(b, w));
    run(b, w);
    while (count < SAMPLES && (count < bench_samples(7) || bench_seconds() - begin < bench_sample_seconds(0.5))) {
        double start = bench_seconds();
        run(b, w);
        double seconds = bench_seconds() - start, behind = bench_fma_rate(b->team);
        least = fmin(least, seconds);
        ratio[count++] = 2 * flops / seconds / (before + behind);
        before = behind;
    }
    free(b->workspace);
    qsort(ratio, (size_t)count, sizeof ratio[0], bench_ascending);
    return (figures){least, ratio[count / 2]};
}

static void print_line(bench *b, which w, pl_convolution_algorithm algorithm)
{
    const pl_convolution_shape *s = &b->forward.shape;
    double flops = 2 * pl_convolution_macs(s) * (double)s->batch;
    b->forward.algorithm = b->dx.algorithm = b->dw.algorithm = algorithm;
    figures f = sample(b, w, flops);
    printf(
        "%-7s %-9s %-4s %4ld to %4ld channels, %ld × %4ld × %-4ld %7.1f GFLOP/s  %.2f of the peak  workspace %5.2f MB",
        which_names[w], pl_convolution_algorithm_name(algorithm), b->forward.type == PL_REAL_F32 ? "f32" : "bf16",
        (long)s->in, (long)s->out, (long)s->batch, (long)s->height, (long)s->width, flops / f.seconds * 1e-9, f.ratio,
        (double)workspace_bytes(b, w) * 1e-6);
    double theirs = bench_onednn_convolution((int)w, s, b->forward.type, algorithm, b->team);
    if (theirs > 0) printf("  oneDNN %7.1f  ratio %.3f", flops / theirs * 1e-9, theirs / f.seconds);
    printf("\n");
}

static void measure(const options *o, int64_t channels, int64_t size, pl_real type)
{
    pl_convolution_shape s = {.batch = o->batch ? o->batch : 1, .height = size, .in = channels};
    s.width = o->width ? o->width : size, s.out = o->out ? o->out : channels;
    s.out_height = s.height, s.out_width = s.width, s.kernel = 3, s.stride = 1, s.pad = 1;
    int64_t pixels = s.batch * s.height * s.width, weights = 9 * s.in * s.out;
    void *x = filled(type, pixels * s.in), *w = filled(type, weights), *y = filled(type, pixels * s.out);
    float *dw = filled(PL_REAL_F32, weights);
    bench b = {.team = o->team};
    b.forward = (pl_convolution_call){.shape = s, .type = type, .x = x, .weight = w, .y = y};
    b.dx = (pl_convolution_dx_call){.shape = s, .type = type, .dy = y, .weight = w, .dx = x};
    b.dw = (pl_convolution_dw_call){.shape = s, .type = type, .dy = y, .x = x, .dw = dw};
    for (int w_of = FORWARD; w_of < WHICH; w_of++)
        for (int a = 0; a < PL_CONVOLUTION_ALGORITHM_COUNT; a++)
            if (pl_convolution_allows(&s, (pl_convolution_algorithm)a))
                print_line(&b, (which)w_of, (pl_convolution_algorithm)a);
    void *all[] = {x, w, y, dw};
    for (int i = 0; i < 4; i++) free(all[i]);
}

int main(int argc, char **argv)
{
    static const int64_t usual[] = {64, 128, 256};
    options o = {.team = {.threads = 1, .isa = pl_isa_of_machine()}};
    bench_begin(&argc, argv,
                "bench_convolution [--threads N] [--isa baseline|avx2|avx512|avx512_bf16|amx] [--channels C] [--out N] "
                "[--size S] "
                "[--width W] [--batch B] [--brief]");
    if (parse(argc, argv, &o)) return bench_refuse();
    setvbuf(stdout, NULL, _IOLBF, 0);
    double peak = bench_fma_peak(o.team), pairs = bench_pairs_peak(o.team);
    printf("%s, %d threads, multiply-add peak %.1f GFLOP/s", pl_isa_name(o.team.isa), o.team.threads, peak * 1e-9);
    if (pairs > 0) printf(", of pairs of bf16 %.2f times that", pairs / peak);
    printf("\n");
    int64_t size = o.size ? o.size : bench_is_brief() ? 16 : 128;
    for (int type = PL_REAL_F32; type <= PL_REAL_BF16; type++)
        for (int i = 0; i < (o.channels ? 1 : 3); i++)
            measure(&o, o.channels ? o.channels : usual[i], size, (pl_real)type);
    return 0;
}
