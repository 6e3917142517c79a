/* Models against the figures of docs/sources: parameters of the documented sizes, shapes and names of the tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "models/model.h"
#include "reference/tiny.h"
#include "support/program.h"

static uint64_t parameters(const pl_graph *g)
{
    uint64_t total = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == PL_ROLE_WEIGHT) total += pl_shape_elems(&g->value[i].shape);
    return total;
}

static pl_graph *build(const pl_config *c, int64_t vocab)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_model_build(c, PL_FACT("vocab", vocab), &g, &err) != PL_OK) fail_msg("%s", err.text);
    tiny_check(g, PL_STAGE_MODEL);
    return g;
}

/* V·D [+ S·D] + L·(3D² [+ D²] [+ 4D] + 2·D·F [+ F + D] + 2 norms) [+ a norm] [+ V·D] */
static uint64_t expected(const pl_config *c, uint64_t vocab)
{
    const pl_config_model *m = &c->model;
    uint64_t d = (uint64_t)m->width, f = (uint64_t)pl_config_feed_forward(c),
             norm = m->norm == PL_NORM_RMS_NORM ? d : 2 * d;
    uint64_t block = 4 * d * d + (m->attention_bias ? 4 * d : 0) + 2 * d * f + (m->bias ? f + d : 0) + 2 * norm;
    if (!m->attention_output) block -= d * d + (m->attention_bias ? d : 0);
    const uint64_t places = m->positions ? (uint64_t)m->sequence * d : 0, last = m->final_norm ? norm : 0;
    return vocab * d * (m->tie_embeddings ? 1 : 2) + places + (uint64_t)m->layers * block + last;
}

static void the_gpt_of_the_book(void **state)
{
    (void)state;
    static pl_config c;
    pl_config_default(&c); /* D 256, L 6, H 8, F 1024, S 128: 4,967,424 for V 788 */
    pl_graph *g = build(&c, 788);
    assert_int_equal(parameters(g), expected(&c, 788));
    assert_int_equal(parameters(g), 4967424);
    pl_graph_destroy(g);
}

/* examples/words.yaml. */
static void the_model_of_the_source(void **state)
{
    (void)state;
    static pl_config c;
    pl_config_default(&c);
    c.model.attention_output = c.model.positions = c.model.final_norm = false;
    pl_graph *g = build(&c, 788);
    assert_int_equal(parameters(g), 4540928);
    assert_int_equal(pl_graph_find_value(g, "transformer.wpe.weight"), PL_NONE);
    assert_int_equal(pl_graph_find_value(g, "transformer.h.0.attn.c_proj.weight"), PL_NONE);
    assert_int_equal(pl_graph_find_value(g, "transformer.ln_f.weight"), PL_NONE);
    pl_graph_destroy(g);
}

static void every_switch_counts(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        tiny_random(&t, seed);
        t.config.model.arch = PL_ARCH_GPT;
        t.config.model.attention_output = seed % 2, t.config.model.positions = seed / 2 % 2;
        t.config.model.final_norm = seed / 4 % 2;
        pl_graph *g = build(&t.config, t.vocab);
        assert_int_equal(parameters(g), expected(&t.config, (uint64_t)t.vocab));
        pl_graph_destroy(g);
    }
}

static void an_mlp_is_a_stack_of_linears(void **state)
{
    (void)state;
    static pl_config c;
    pl_config_default(&c);
    c.model.arch = PL_ARCH_MLP;
    c.model.width = 10, c.model.window = 3, c.model.layers = 2;
    pl_graph *g = build(&c, 50);
    assert_int_equal(parameters(g), 50 * 10 + (30 * 10 + 10) + (10 * 10 + 10));
    pl_id w = pl_graph_find_value(g, "layers.0.weight");
    assert_true(w != PL_NONE && g->value[w].shape.dim[0] == 10 && g->value[w].shape.dim[1] == 30);
    pl_graph_destroy(g);
}

static void tensors_have_nanogpts_names(void **state)
{
    (void)state;
    static pl_config c;
    static const struct {
        const char *name;
        int64_t rows, columns;
    } wanted[] = {{"transformer.wte.weight", 100, 256},
                  {"transformer.wpe.weight", 128, 256},
                  {"transformer.h.0.attn.c_attn.weight", 768, 256},
                  {"transformer.h.5.attn.c_proj.weight", 256, 256},
                  {"transformer.h.5.mlp.c_fc.weight", 1024, 256},
                  {"transformer.h.5.mlp.c_proj.weight", 256, 1024},
                  {"lm_head.weight", 100, 256}};
    pl_config_default(&c);
    c.model.tie_embeddings = false;
    pl_graph *g = build(&c, 100);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        pl_id id = pl_graph_find_value(g, wanted[i].name);
        if (id == PL_NONE) fail_msg("no %s", wanted[i].name);
        assert_true(g->value[id].shape.dim[0] == wanted[i].rows && g->value[id].shape.dim[1] == wanted[i].columns);
    }
    pl_graph_destroy(g);
}

static void another_vocabulary_is_refused(void **state)
{
    (void)state;
    static pl_config c;
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_config_default(&c);
    c.model.vocab_size = 100;
    assert_int_equal(pl_model_build(&c, PL_FACT("vocab", 99), &g, &err), PL_E_CONFIG);
    assert_true(strstr(err.text, "100") && strstr(err.text, "99"));
    assert_null(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gpt_of_the_book),           cmocka_unit_test(the_model_of_the_source),
        cmocka_unit_test(the_model_of_the_source),       cmocka_unit_test(every_switch_counts),
        cmocka_unit_test(an_mlp_is_a_stack_of_linears),  cmocka_unit_test(tensors_have_nanogpts_names),
        cmocka_unit_test(another_vocabulary_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
