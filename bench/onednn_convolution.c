#include "onednn_convolution.h"

#ifdef PL_HAVE_ONEDNN

#include <math.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench.h"

enum { IMAGE, WEIGHTS, OUTPUT, TENSORS };

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description, forward; /* the backward passes need the forward one as a hint */
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[TENSORS];
    void *block[TENSORS];
} peer;

static int describe(peer *p, int which, const pl_convolution_shape *s, dnnl_data_type_t type, dnnl_alg_kind_t algorithm)
{
    dnnl_dims_t x = {s->batch, s->in, s->height, s->width}, w = {s->out, s->in, s->kernel, s->kernel};
    dnnl_dims_t y = {s->batch, s->out, s->out_height, s->out_width}, stride = {s->stride, s->stride},
                pad = {s->pad, s->pad};
    dnnl_memory_desc_t d[TENSORS];
    dnnl_convolution_desc_t c;
    if (dnnl_memory_desc_init_by_tag(&d[IMAGE], 4, x, type, dnnl_format_tag_any) ||
        dnnl_memory_desc_init_by_tag(&d[WEIGHTS], 4, w, type, dnnl_format_tag_any) ||
        dnnl_memory_desc_init_by_tag(&d[OUTPUT], 4, y, type, dnnl_format_tag_any) ||
        dnnl_convolution_forward_desc_init(&c, dnnl_forward_training, algorithm, &d[IMAGE], &d[WEIGHTS], NULL,
                                           &d[OUTPUT], stride, pad, pad) ||
        dnnl_primitive_desc_create(&p->forward, &c, NULL, p->engine, NULL))
        return -1;
    if (which == 0) return dnnl_primitive_desc_clone(&p->description, p->forward);
    int failed = which == 1 ? dnnl_convolution_backward_data_desc_init(&c, algorithm, &d[IMAGE], &d[WEIGHTS],
                                                                       &d[OUTPUT], stride, pad, pad)
                            : dnnl_convolution_backward_weights_desc_init(&c, algorithm, &d[IMAGE], &d[WEIGHTS], NULL,
                                                                          &d[OUTPUT], stride, pad, pad);
    return failed || dnnl_primitive_desc_create(&p->description, &c, NULL, p->engine, p->forward);
}

static int allocate(peer *p, int which)
{
    static const dnnl_query_t queries[3][TENSORS] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    for (int i = 0; i < TENSORS; i++) {
        const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(p->description, queries[which][i], 0);
        size_t bytes = (dnnl_memory_desc_get_size(d) + 63) / 64 * 64;
        p->block[i] = aligned_alloc(64, bytes);
        if (!p->block[i] || dnnl_memory_create(&p->memory[i], d, p->engine, p->block[i])) return -1;
        for (size_t k = 0; k < bytes; k++) ((unsigned char *)p->block[i])[k] = (unsigned char)(k & 1 ? 60 : k % 17);
    }
    return dnnl_primitive_create(&p->primitive, p->description);
}

static int execute(peer *p, int which)
{
    static const int names[3][TENSORS] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                          {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                          {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    dnnl_exec_arg_t arguments[TENSORS];
    for (int i = 0; i < TENSORS; i++) arguments[i] = (dnnl_exec_arg_t){names[which][i], p->memory[i]};
    return dnnl_primitive_execute(p->primitive, p->stream, TENSORS, arguments) || dnnl_stream_wait(p->stream);
}

static double best_of(peer *p, int which)
{
    double best = INFINITY, begin = bench_seconds();
    if (execute(p, which)) return -1;
    for (int i = 0; i < bench_samples(5) || bench_seconds() - begin < bench_sample_seconds(0.5); i++) {
        double start = bench_seconds();
        if (execute(p, which)) return -1;
        best = fmin(best, bench_seconds() - start);
    }
    return best;
}

static void destroy(peer *p)
{
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->description) dnnl_primitive_desc_destroy(p->description);
    if (p->forward) dnnl_primitive_desc_destroy(p->forward);
    for (int i = 0; i < TENSORS; i++) {
        if (p->memory[i]) dnnl_memory_destroy(p->memory[i]);
        free(p->block[i]);
    }
    if (p->stream) dnnl_stream_destroy(p->stream);
    if (p->engine) dnnl_engine_destroy(p->engine);
}

double bench_onednn_convolution(int which, const pl_convolution_shape *s, pl_real type,
                                pl_convolution_algorithm algorithm, pl_team team)
{
    static const dnnl_cpu_isa_t isas[PL_ISA_COUNT] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                                      dnnl_cpu_isa_avx512_core, dnnl_cpu_isa_avx512_core_bf16};
    static const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};
    dnnl_set_max_cpu_isa(isas[team.isa]); /* counts before the first primitive only */
    omp_set_num_threads(team.threads);
    peer p = {0};
    int failed = dnnl_engine_create(&p.engine, dnnl_cpu, 0) || dnnl_stream_create(&p.stream, p.engine, 0) ||
                 describe(&p, which, s, types[type],
                          algorithm == PL_CONVOLUTION_DIRECT ? dnnl_convolution_direct : dnnl_convolution_winograd) ||
                 allocate(&p, which);
    double seconds = failed ? -1 : best_of(&p, which);
    destroy(&p);
    return seconds;
}

#else

double bench_onednn_convolution(int which, const pl_convolution_shape *s, pl_real type,
                                pl_convolution_algorithm algorithm, pl_team team)
{
    (void)which, (void)s, (void)type, (void)algorithm, (void)team;
    return -1;
}

#endif
