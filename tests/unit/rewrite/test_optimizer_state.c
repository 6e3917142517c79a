/* Moments in fewer bits: which values change and how, that everything else stays, that the graph is legal and survives
 * its text, and that what is computed stays near: a few steps against the same steps with f32 moments. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

enum { WIDTH = 66, VOCAB = 71, STEPS = 6 }; /* 4686 elements: 19 blocks of 256, the last not full */
static tiny model;

static tiny *make_model(pl_dtype moments)
{
    tiny_random(&model, 4);
    model.config.model.arch = PL_ARCH_GPT;
    model.config.model.width = WIDTH;
    model.config.model.heads = 2;
    model.config.model.layers = 1;
    model.config.model.dropout = 0;
    model.config.model.tie_embeddings = true;
    model.config.train.grad_clip = 0.5;
    model.vocab = VOCAB;
    model.update = true;
    model.moments = moments;
    return &model;
}

static bool is_large(const pl_graph *g, pl_id weight) { return pl_shape_elems(&g->value[weight].shape) >= 4096; }

static void check_moment(const pl_graph *g, pl_id weight, pl_id moment, pl_dtype dtype, pl_encoding small)
{
    const pl_value *w = &g->value[weight], *m = &g->value[moment];
    bool blocks = dtype == PL_DTYPE_U8 && is_large(g, weight);
    uint64_t elems = pl_shape_elems(&w->shape);
    assert_int_equal(m->dtype, dtype == PL_DTYPE_U8 ? PL_DTYPE_F32 : dtype);
    assert_int_equal(m->encoding, blocks ? small : PL_ENCODING_F32);
    assert_true(pl_shape_equal(&m->shape, &w->shape));
    assert_int_equal(pl_value_bytes(g, moment),
                     blocks ? (elems + 255) / 256 * 260 : elems * (dtype == PL_DTYPE_BF16 ? 2 : 4));
    assert_true(pl_value_is_contiguous(m));
}

static void check_dtype(pl_dtype dtype)
{
    pl_graph *plain = tiny_compiled(make_model(PL_DTYPE_F32)), *g = tiny_compiled(make_model(dtype)), *again;
    pl_error err = {0};
    pl_str first = {0}, second = {0};
    size_t updates = 0, large = 0;
    assert_int_equal(g->value_count, plain->value_count);
    assert_int_equal(g->node_count, plain->node_count);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != PL_OP_ADAMW) continue;
        updates++, large += is_large(g, n->in[0]);
        for (int k = 2; k <= 3; k++) {
            const pl_encoding small = k == 2 ? PL_ENCODING_SIGNED8 : PL_ENCODING_ROOT8;
            check_moment(g, n->in[0], n->in[k], dtype, small);
            check_moment(g, n->in[0], n->out[k - 1], dtype, small);
        }
    }
    assert_true(updates > large && large >= 2);
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role != PL_ROLE_OPTIMIZER) {
            assert_true(g->value[i].dtype == plain->value[i].dtype);
            assert_true(pl_shape_equal(&g->value[i].shape, &plain->value[i].shape));
        }
    pl_graph_print(g, &first);
    assert_int_equal(pl_graph_parse("g", first.data, first.bytes, &again, &err), PL_OK);
    pl_graph_print(again, &second);
    assert_string_equal(pl_str_text(&first), pl_str_text(&second));
    pl_str_deinit(&first), pl_str_deinit(&second);
    pl_graph_destroy(again), pl_graph_destroy(plain), pl_graph_destroy(g);
}

static void test_graph(void **state)
{
    (void)state;
    check_dtype(PL_DTYPE_BF16);
    check_dtype(PL_DTYPE_U8);
}

/* ---- a few steps ---- */

typedef struct outcome {
    float *weight;
    uint64_t elems;
} outcome;

static outcome train(pl_dtype moments, pl_team team)
{
    outcome o = {0};
    const tiny *t = make_model(moments);
    tiny_run r = tiny_run_begin(t, team);
    const pl_graph *g = r.plan->graph;
    tiny_run_weights(t, &r);
    for (uint64_t step = 1; step <= STEPS; step++) tiny_run_step(t, &r, "train", step);
    for (size_t i = 0; i < g->value_count; i++) {
        if (g->value[i].role != PL_ROLE_WEIGHT || pl_value_root(g, (pl_id)i) != i) continue;
        uint64_t elems = pl_shape_elems(&g->value[i].shape);
        o.weight = realloc(o.weight, (o.elems + elems) * sizeof *o.weight);
        assert_non_null(o.weight);
        memcpy(o.weight + o.elems, pl_program_address(r.program, (pl_id)i), elems * sizeof *o.weight);
        o.elems += elems;
    }
    tiny_run_end(&r);
    return o;
}

/* A step moves a weight by about lr = 0.01. Moments are off by half a percent (bf16) or some percent (8 bits), at
 * random: on average over the weights the distance is a small part of what they moved. */
static void check_near(const outcome *plain, pl_dtype moments, double bound)
{
    outcome o = train(moments, (pl_team){1, pl_isa_of_machine()}),
            two = train(moments, (pl_team){2, pl_isa_of_machine()});
    double sum = 0;
    assert_int_equal(o.elems, plain->elems);
    assert_memory_equal(o.weight, two.weight, o.elems * sizeof *o.weight);
    assert_true(memcmp(o.weight, plain->weight, o.elems * sizeof *o.weight) != 0);
    for (uint64_t i = 0; i < o.elems; i++) {
        assert_true(fabsf(o.weight[i] - plain->weight[i]) < 0.01f * STEPS);
        sum += fabs((double)o.weight[i] - plain->weight[i]);
    }
    assert_true(sum / (double)o.elems < bound * 0.01 * STEPS);
    free(o.weight), free(two.weight);
}

static void test_steps(void **state)
{
    (void)state;
    outcome plain = train(PL_DTYPE_F32, (pl_team){1, pl_isa_of_machine()});
    check_near(&plain, PL_DTYPE_BF16, 0.003);
    check_near(&plain, PL_DTYPE_U8, 0.02);
    free(plain.weight);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graph), cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
