/* Rows of a sample are read off the graph, whatever a sample is, and of a model they are what its config says; and
 * which micro-batch follows from them where nothing is to be chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"
#include "fit/fit.h"
#include "grad/differentiate.h"
#include "ir/parse.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

/* Pictures of 3 x 5 places and then one row each; what is generated has no batch, and what is no product does not
 * count: neither 99 rows nor 40. */
static const char pictures[] = "graph 1\n"
                               "region 0 \"train\"\n"
                               "region 1 \"micro\" in=0\n"
                               "region 2 \"generate\"\n"
                               "value 0 \"w\" f32 [4,4] weight\n"
                               "value 1 \"places\" f32 [B,3,5,4] temporary program=0\n"
                               "value 2 \"mixed\" f32 [B,3,5,4] temporary program=0\n"
                               "value 3 \"wide\" f32 [B,40,4] temporary program=0\n"
                               "value 4 \"active\" f32 [B,40,4] temporary program=0\n"
                               "value 5 \"pooled\" f32 [B,4] temporary program=0\n"
                               "value 6 \"class\" f32 [B,4] temporary program=0\n"
                               "value 7 \"prompt\" f32 [99,4] temporary program=2\n"
                               "value 8 \"answer\" f32 [99,4] temporary program=2\n"
                               "node 0 load region=1 out=1,3,5\n"
                               "node 1 linear region=1 in=1,0 out=2 act=none\n"
                               "node 2 activation region=1 in=3 out=4 act=gelu\n"
                               "node 3 linear region=1 in=5,0 out=6 act=none\n"
                               "node 4 load region=2 out=7\n"
                               "node 5 linear region=2 in=7,0 out=8 act=none\n"
                               "end graph\n";

static pl_graph *parse(const char *text)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_graph_parse("pictures", text, strlen(text), &g, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

static void test_of_any_sample(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = parse(pictures);
    assert_int_equal(pl_fit_rows(g), 15);
    assert_int_equal(pl_rewrite_bind_batch(g, pl_graph_find_program(g, "train"), 6, "micro", 1, &err), PL_OK);
    assert_int_equal(pl_fit_rows(g), 6 * 15);
    pl_graph_destroy(g);
}

static void test_without_products_there_is_one(void **state)
{
    (void)state;
    pl_graph *g = parse("graph 1\nregion 0 \"train\"\nvalue 0 \"x\" f32 [B,7,4] temporary program=0\n"
                        "value 1 \"y\" f32 [B,7,4] temporary program=0\nnode 0 load region=0 out=0\n"
                        "node 1 activation region=0 in=0 out=1 act=gelu\nend graph\n");
    assert_int_equal(pl_fit_rows(g), 1);
    pl_graph_destroy(g);
}

static void check_model(pl_config_arch arch, int64_t sequence, bool differentiated)
{
    static pl_config c;
    pl_error err = {0};
    pl_graph *g;
    pl_config_default(&c);
    c.model.arch = arch, c.model.width = 8, c.model.heads = 2, c.model.layers = 2, c.model.feed_forward = 16;
    c.model.sequence = sequence, c.model.window = sequence < 4 ? sequence : 4;
    assert_int_equal(pl_model_build(&c, PL_FACT("vocab", 20), &g, &err), PL_OK);
    if (differentiated) assert_int_equal(pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err), PL_OK);
    assert_int_equal(pl_fit_rows(g), sequence);
    pl_graph_destroy(g);
}

static void test_of_a_text_they_are_its_tokens(void **state)
{
    (void)state;
    static const pl_config_arch archs[] = {PL_ARCH_GPT, PL_ARCH_MLP};
    for (int i = 0; i < 2; i++)
        for (int64_t sequence = 1; sequence < 700; sequence += sequence / 3 + 1) {
            check_model(archs[i], sequence, false);
            check_model(archs[i], sequence, true);
        }
}

static int64_t given(const pl_graph *g, int64_t batch, pl_choice decided)
{
    return pl_fit_given_micro_batch(g, &(pl_fit_options){.batch = batch, .given = decided});
}

static void test_micro_batch_of_training(void **state)
{
    (void)state;
    pl_graph *g = parse(pictures);
    g->node[g->node_count - 1].phase = PL_PHASE_BACKWARD; /* which makes it a program that is trained */
    assert_int_equal(given(g, 60, (pl_choice){0}), 0);
    assert_int_equal(given(g, 60, (pl_choice){.micro_batch = 4, .update_early = true}), 4);
    assert_int_equal(given(g, 60, (pl_choice){.update_early = true}), 60);
    assert_int_equal(given(g, 60, (pl_choice){.update_early = true, .layer_major = 1}), 0);
    pl_graph_destroy(g);
}

/* The smallest divisor of the batch with 256 rows, of 15 each; else the batch. */
static void test_micro_batch_without_gradients(void **state)
{
    (void)state;
    pl_error err = {0};
    static const char *const names[] = {"generate"};
    pl_graph *g = parse(pictures);
    char text[sizeof pictures];
    strcpy(text, pictures);
    memcpy(strstr(text, "train"), "other", 5);
    pl_graph *evaluate = parse(text);
    assert_int_equal(given(evaluate, 60, (pl_choice){0}), 20);
    assert_int_equal(given(evaluate, 36, (pl_choice){0}), 18);
    assert_int_equal(given(evaluate, 17, (pl_choice){0}), 17);
    assert_int_equal(given(evaluate, 60, (pl_choice){.micro_batch = 3}), 3);
    assert_int_equal(pl_rewrite_keep_programs(g, names, 1, &err), PL_OK);
    assert_int_equal(given(g, 4, (pl_choice){.update_early = true}), 4); /* there is nothing to update */
    pl_graph_destroy(evaluate);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_any_sample), cmocka_unit_test(test_without_products_there_is_one),
        cmocka_unit_test(test_of_a_text_they_are_its_tokens), cmocka_unit_test(test_micro_batch_of_training),
        cmocka_unit_test(test_micro_batch_without_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
