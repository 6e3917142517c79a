#include "onednn_gemm.h"

#ifdef PL_HAVE_ONEDNN

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "backend/calls.h"

typedef struct peer { /* a matmul of one shape; memory objects are pointed at the operands of the call */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, c;
    int failed;
} peer;

static int matrix(dnnl_memory_desc_t *d, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    dnnl_dims_t dims = {rows, columns}, strides = {row, column};
    return dnnl_memory_desc_init_by_strides(d, 2, dims, dnnl_f32, strides) != dnnl_success;
}

static int build(peer *p, const pl_gemm_call *c)
{
    dnnl_memory_desc_t a, b, d;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    int failed = dnnl_engine_create(&p->engine, dnnl_cpu, 0) || dnnl_stream_create(&p->stream, p->engine, 0) ||
                 matrix(&a, c->m, c->k, c->a_row, c->a_col) || matrix(&b, c->k, c->n, c->b_row, c->b_col) ||
                 matrix(&d, c->m, c->n, c->ldc, 1) || dnnl_matmul_desc_init(&matmul, &a, &b, NULL, &d) ||
                 dnnl_primitive_attr_create(&attributes);
    if (!failed && c->accumulate) {
        dnnl_post_ops_t ops;
        failed = dnnl_post_ops_create(&ops) || dnnl_post_ops_append_sum(ops, 1.0f) ||
                 dnnl_primitive_attr_set_post_ops(attributes, ops) || dnnl_post_ops_destroy(ops);
    }
    failed = failed || dnnl_primitive_desc_create(&description, &matmul, attributes, p->engine, NULL) ||
             dnnl_primitive_create(&p->primitive, description) || dnnl_memory_create(&p->a, &a, p->engine, NULL) ||
             dnnl_memory_create(&p->b, &b, p->engine, NULL) || dnnl_memory_create(&p->c, &d, p->engine, NULL);
    if (description) dnnl_primitive_desc_destroy(description);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return failed;
}

static void destroy(peer *p)
{
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->a) dnnl_memory_destroy(p->a);
    if (p->b) dnnl_memory_destroy(p->b);
    if (p->c) dnnl_memory_destroy(p->c);
    if (p->stream) dnnl_stream_destroy(p->stream);
    if (p->engine) dnnl_engine_destroy(p->engine);
}

/* Built at the first call, which the timing leaves out. */
static void exec(const pl_gemm_call *c, void *context, pl_team team)
{
    peer *p = context;
    (void)team;
    if (p->failed || (!p->primitive && (p->failed = build(p, c)))) return;
    dnnl_memory_set_data_handle(p->a, (void *)(uintptr_t)c->a);
    dnnl_memory_set_data_handle(p->b, (void *)(uintptr_t)c->b);
    dnnl_memory_set_data_handle(p->c, c->c);
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, p->a}, {DNNL_ARG_WEIGHTS, p->b}, {DNNL_ARG_DST, p->c}};
    p->failed = dnnl_primitive_execute(p->primitive, p->stream, 3, arguments) || dnnl_stream_wait(p->stream);
}

int bench_onednn_available(void) { return 1; }

double bench_onednn_seconds(bench_product product, const bench_linear *l, int64_t tokens, pl_team team)
{
    static const dnnl_cpu_isa_t isas[PL_ISA_COUNT] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                                      dnnl_cpu_isa_all, dnnl_cpu_isa_all};
    dnnl_set_max_cpu_isa(isas[team.isa]); /* counts before the first primitive only */
    omp_set_num_threads(team.threads);
    peer p = {0};
    double seconds = bench_gemm_seconds(product, l, tokens, team, exec, &p);
    if (p.failed) seconds = -1;
    destroy(&p);
    return seconds;
}

#else

int bench_onednn_available(void) { return 0; }

double bench_onednn_seconds(bench_product product, const bench_linear *l, int64_t tokens, pl_team team)
{
    (void)product, (void)l, (void)tokens, (void)team;
    return -1;
}

#endif
