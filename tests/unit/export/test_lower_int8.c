/* What layers in 8 bits become: the nodes, one by one, and the tensors that they read. Whether these compute the right
 * thing tests/cli/export_tests.py asks ONNX Runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/quantize.h"
#include "export/export.h"
#include "support/program.h"

/* Two layers of one site, the first with a bias; then one that reads the first one's weights again, elsewhere. */
static const char lines[] = "graph 1\n"
                            "region 0 \"infer\"\n"
                            "value 0 \"x\" f32 [%s8] temporary program=0\n"
                            "value 1 \"w.int8\" u8 [256] weight frozen=1\n"
                            "value 2 \"w.input.0\" f32 [2] weight\n"
                            "value 3 \"bias\" f32 [8] weight\n"
                            "value 4 \"v.int8\" u8 [256] weight frozen=1\n"
                            "value 5 \"w.input.1\" f32 [2] weight\n"
                            "value 6 \"a\" f32 [%s8] temporary program=0\n"
                            "value 7 \"b\" f32 [%s5] output program=0\n"
                            "value 8 \"c\" f32 [%s8] output program=0\n"
                            "node 0 load region=0 out=0\n"
                            "node 1 linear_int8 region=0 in=0,1,2,3 out=6 columns=8 act=none\n"
                            "node 2 linear_int8 region=0 in=0,4,2 out=7 columns=5 act=none\n"
                            "node 3 linear_int8 region=0 in=6,1,5,3,0 out=8 columns=8 act=none\n"
                            "node 4 store region=0 in=7,8\n"
                            "end graph\n";

static const pl_face face = {
    .program = "infer", .in = {{"x", NULL}}, .stored = {{"b", NULL}, {"c", NULL}}, .scored = {{NULL, NULL}}};

static const int8_t w[64] = {1, -127, 3}, v[40] = {5};
static const float scales[8] = {1, 2, 3, 4, 5, 6, 7, 8}, bias[8], ranges[2][2] = {{-1, 3}, {0, 2}};

typedef struct lowered {
    pl_graph *graph;
    pl_lowering *lowering;
    pl_onnx_model model;
} lowered;

static lowered lower(const char *dims)
{
    static pl_lower_weight weights[9];
    char text[2000];
    lowered l;
    pl_error err = {0};
    snprintf(text, sizeof text, lines, dims, dims, dims, dims);
    assert_int_equal(pl_graph_parse("test", text, strlen(text), &l.graph, &err), PL_OK);
    weights[1] = (pl_lower_weight){w, PL_DTYPE_U8, scales};
    weights[4] = (pl_lower_weight){v, PL_DTYPE_U8, scales};
    weights[2] = (pl_lower_weight){ranges[0], PL_DTYPE_F32, NULL};
    weights[5] = (pl_lower_weight){ranges[1], PL_DTYPE_F32, NULL};
    weights[3] = (pl_lower_weight){bias, PL_DTYPE_F32, NULL};
    const pl_lower_options o = {.graph = l.graph, .face = &face, .name = "test", .weights = weights};
    assert_int_equal(pl_lower(&o, &l.lowering, &err), PL_OK);
    l.model = pl_lowering_model(l.lowering);
    return l;
}

static void leave(lowered *l)
{
    pl_lowering_destroy(l->lowering);
    pl_graph_destroy(l->graph);
}

static void check_operators(const lowered *l, const char *expected)
{
    char found[1000] = "";
    for (size_t i = 0; i < l->model.nodes; i++) {
        strcat(found, i ? " " : "");
        strcat(found, l->model.node[i].op);
    }
    assert_string_equal(found, expected);
}

static const pl_onnx_tensor *tensor(const lowered *l, const char *name)
{
    const pl_onnx_tensor *found = NULL;
    for (size_t i = 0; i < l->model.tensors; i++) {
        if (strcmp(l->model.tensor[i].name, name) != 0) continue;
        assert_null(found); /* it is there once */
        found = &l->model.tensor[i];
    }
    assert_non_null(found);
    return found;
}

/* The site that two layers share is rounded once, and the matrix that two layers read is there once. */
static void three_dimensions(void **state)
{
    (void)state;
    lowered l = lower("1B,3,");
    check_operators(&l, "QuantizeLinear DequantizeLinear DequantizeLinear MatMul Add "
                        "DequantizeLinear MatMul "
                        "QuantizeLinear DequantizeLinear MatMul Add Add Identity Identity");
    const pl_onnx_tensor *matrix = tensor(&l, "v.int8"), *scale = tensor(&l, "v.int8.scale");
    assert_ptr_equal(matrix->data, v);
    assert_ptr_equal(scale->data, scales);
    assert_int_equal(matrix->dtype, PL_ONNX_I8);
    assert_int_equal(matrix->rank, 2);
    assert_int_equal(matrix->dim[0], 8);
    assert_int_equal(matrix->dim[1], 5);
    assert_int_equal(matrix->bytes, 40);
    assert_int_equal(scale->dim[0], 5);
    const pl_onnx_node *q = l.model.node;
    const pl_quantization of = pl_quantization_of(ranges[0][0], ranges[0][1]);
    assert_memory_equal(tensor(&l, q->in[1])->data, &of.scale, 4);
    assert_int_equal(*(const uint8_t *)tensor(&l, q->in[2])->data, of.zero);
    assert_int_equal(tensor(&l, q->in[2])->dtype, PL_ONNX_U8);
    leave(&l);
}

/* No Add meets a product of two dimensions: Gemm is not done in integers. */
static void two_dimensions(void **state)
{
    (void)state;
    lowered l = lower("1B,");
    check_operators(&l, "Reshape QuantizeLinear DequantizeLinear DequantizeLinear MatMul Add Reshape "
                        "DequantizeLinear MatMul Reshape "
                        "Reshape QuantizeLinear DequantizeLinear MatMul Add Reshape Add Identity Identity");
    static const int64_t apart[] = {0, 1, 8}, together[] = {0, 8};
    assert_memory_equal(tensor(&l, l.model.node[0].in[1])->data, apart, sizeof apart);
    assert_memory_equal(tensor(&l, l.model.node[6].in[1])->data, together, sizeof together);
    assert_int_equal(l.model.output[0].rank, 2);
    leave(&l);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(three_dimensions), cmocka_unit_test(two_dimensions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
