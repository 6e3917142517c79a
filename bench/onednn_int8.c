#include "onednn_int8.h"

#include <stddef.h>

#ifdef PL_HAVE_ONEDNN

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

struct bench_onednn_int8 {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_memory_t x, w, y, packed;
};

static int describe(dnnl_memory_desc_t *d, int64_t rows, int64_t columns, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    const dnnl_dims_t dims = {rows, columns};
    return dnnl_memory_desc_init_by_tag(d, 2, dims, type, tag) != dnnl_success;
}

static int reorder_weights(bench_onednn_int8 *p)
{
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t reorder = NULL;
    const dnnl_memory_desc_t *from, *to;
    const int failed = dnnl_memory_get_memory_desc(p->w, &from) || dnnl_memory_get_memory_desc(p->packed, &to) ||
                       dnnl_reorder_primitive_desc_create(&description, from, p->engine, to, p->engine, NULL) ||
                       dnnl_primitive_create(&reorder, description) ||
                       dnnl_primitive_execute(reorder, p->stream, 2,
                                              (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, p->w}, {DNNL_ARG_TO, p->packed}}) ||
                       dnnl_stream_wait(p->stream);
    if (reorder) dnnl_primitive_destroy(reorder);
    if (description) dnnl_primitive_desc_destroy(description);
    return failed;
}

static int build(bench_onednn_int8 *p, int64_t m, int64_t n, int64_t k, void *x, void *w, void *y)
{
    dnnl_memory_desc_t a, b, any, c;
    dnnl_matmul_desc_t matmul;
    int failed = dnnl_engine_create(&p->engine, dnnl_cpu, 0) || dnnl_stream_create(&p->stream, p->engine, 0) ||
                 describe(&a, m, k, dnnl_u8, dnnl_ab) || describe(&b, k, n, dnnl_s8, dnnl_ba) ||
                 describe(&any, k, n, dnnl_s8, dnnl_format_tag_any) || describe(&c, m, n, dnnl_s32, dnnl_ab) ||
                 dnnl_matmul_desc_init(&matmul, &a, &any, NULL, &c) ||
                 dnnl_primitive_desc_create(&p->description, &matmul, NULL, p->engine, NULL) ||
                 dnnl_primitive_create(&p->primitive, p->description);
    if (failed) return failed;
    const dnnl_memory_desc_t *packed = dnnl_primitive_desc_query_md(p->description, dnnl_query_weights_md, 0);
    return dnnl_memory_create(&p->x, &a, p->engine, x) || dnnl_memory_create(&p->w, &b, p->engine, w) ||
           dnnl_memory_create(&p->y, &c, p->engine, y) ||
           dnnl_memory_create(&p->packed, packed, p->engine, DNNL_MEMORY_ALLOCATE) || reorder_weights(p);
}

int bench_onednn_int8_available(void) { return 1; }

bench_onednn_int8 *bench_onednn_int8_create(int64_t m, int64_t n, int64_t k, void *x, void *w, void *y, pl_team team)
{
    bench_onednn_int8 *p = calloc(1, sizeof *p);
    dnnl_set_max_cpu_isa(team.isa >= PL_ISA_AVX512 ? dnnl_cpu_isa_all : dnnl_cpu_isa_avx2); /* before the first only */
    omp_set_num_threads(team.threads);
    if (p && build(p, m, n, k, x, w, y)) bench_onednn_int8_destroy(p), p = NULL;
    return p;
}

void bench_onednn_int8_exec(bench_onednn_int8 *p)
{
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->packed}, {DNNL_ARG_DST, p->y}};
    dnnl_primitive_execute(p->primitive, p->stream, 3, arguments);
    dnnl_stream_wait(p->stream);
}

void bench_onednn_int8_destroy(bench_onednn_int8 *p)
{
    if (!p) return;
    dnnl_memory_t all[] = {p->x, p->w, p->y, p->packed};
    for (int i = 0; i < 4; i++)
        if (all[i]) dnnl_memory_destroy(all[i]);
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->description) dnnl_primitive_desc_destroy(p->description);
    if (p->stream) dnnl_stream_destroy(p->stream);
    if (p->engine) dnnl_engine_destroy(p->engine);
    free(p);
}

#else

int bench_onednn_int8_available(void) { return 0; }

bench_onednn_int8 *bench_onednn_int8_create(int64_t m, int64_t n, int64_t k, void *x, void *w, void *y, pl_team team)
{
    return (void)m, (void)n, (void)k, (void)x, (void)w, (void)y, (void)team, NULL;
}

void bench_onednn_int8_exec(bench_onednn_int8 *p) { (void)p; }
void bench_onednn_int8_destroy(bench_onednn_int8 *p) { (void)p; }

#endif
