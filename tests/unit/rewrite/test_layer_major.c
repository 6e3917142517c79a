/* What the layer-major rewrite makes of models whose parts can be counted: which regions there are, how often a block's
 * forward pass runs, how much is kept; and what is refused. That the numbers stay is test_combinations.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

enum { LAYERS = 6, TRIPS = 3, MICRO = 2, WIDTH = 8, SEQUENCE = 4 };

static tiny model(int64_t blocks, int64_t keep)
{
    tiny t = {.seed = 1, .vocab = 7, .micro = MICRO, .trips = TRIPS, .update = true};
    pl_config_default(&t.config);
    t.config.model.width = WIDTH, t.config.model.heads = 2, t.config.model.layers = LAYERS;
    t.config.model.sequence = SEQUENCE;
    t.layer_major = blocks, t.layer_major_keep = keep;
    return t;
}

static int count(const pl_graph *g, const char *program, pl_op op)
{
    int nodes = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        pl_id of = pl_region_program(g, g->node[i].region);
        nodes += g->node[i].op == op && strcmp(g->region[of].name, program) == 0;
    }
    return nodes;
}

static uint64_t stack_elems(const pl_graph *g, pl_dtype dtype)
{
    uint64_t elems = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (strstr(g->value[i].name, ".stack") && g->value[i].dtype == dtype && g->value[i].view_of == PL_NONE)
            elems += pl_shape_elems(&g->value[i].shape);
    return elems;
}

/* blocks of a group, of every how many groups the input is kept; then: regions with nodes, attentions (one a block and
 * forward pass), stacks of activations or gradients. */
static const struct expected {
    int64_t blocks, keep;
    int regions, attentions, stacks;
} expected[] = {
    {6, 1, 1, 6, 0},             /* one group: nothing is tiled */
    {3, 1, 3, 6 + 3, 1},         /* 3 forward; 3; 3. The gradient goes over the kept input */
    {3, 0, 2, 6 + 3, 1},         /* 6 forward and backward; 3: only the gradient */
    {2, 1, 4, 6 + 4, 2},         /* 4 forward; 2; 2; 2 */
    {2, 2, 4, 4 + 2 + 4 + 2, 1}, /* the kept input is read by one group alone */
    {1, 1, 7, 6 + 5, 5},
    {1, 0, 6, 6 + 5 + 4 + 3 + 2 + 1, 1},
    {1, 3, 7, 3 + 3 + 2 + 1 + 3 + 2 + 1, 2},
};

static int count_regions(const pl_graph *g)
{
    int regions = 0;
    for (pl_id r = 0; r < g->region_count; r++) {
        bool used = false;
        for (size_t i = 0; i < g->node_count; i++) used |= g->node[i].region == r;
        bool of_train = g->region[r].parent != PL_NONE && strcmp(g->region[g->region[r].parent].name, "train") == 0;
        if (used && of_train) assert_int_equal(g->region[r].trip, TRIPS);
        regions += used && of_train;
    }
    return regions;
}

static void regions_and_stacks_are_those_expected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct expected *e = &expected[i];
        tiny t = model(e->blocks, e->keep);
        pl_graph *g = tiny_compiled(&t);
        uint64_t tile = MICRO * SEQUENCE * WIDTH;
        bool same = count_regions(g) == e->regions && count(g, "train", PL_OP_ATTENTION) == e->attentions &&
                    stack_elems(g, PL_DTYPE_F32) == TRIPS * tile * (uint64_t)e->stacks;
        if (!same)
            fail_msg("blocks %lld keep %lld: %d regions, %d attentions, %g stacks", (long long)e->blocks,
                     (long long)e->keep, count_regions(g), count(g, "train", PL_OP_ATTENTION),
                     (double)stack_elems(g, PL_DTYPE_F32) / (double)(TRIPS * tile));
        assert_int_equal(count(g, "train", PL_OP_LOAD), 1);
        assert_int_equal(count(g, "train", PL_OP_ATTENTION_BWD), LAYERS);
        pl_graph_destroy(g);
    }
}

/* Never more than the gradients of one group, and of what all share, are alive. */
static void gradients_of_one_group_are_alive(void **state)
{
    (void)state;
    uint64_t most[2];
    for (int tiled = 0; tiled < 2; tiled++) {
        tiny t = model(tiled, 1);
        pl_plan *p = tiny_plan(&t, (pl_team){1, PL_ISA_REF});
        most[tiled] = 0;
        for (size_t at = 0; at < p->graph->node_count; at++) {
            uint64_t sum = 0;
            for (size_t v = 0; v < p->graph->value_count; v++)
                if (p->graph->value[v].role == PL_ROLE_GRADIENT && p->value[v].first <= at && at < p->value[v].last)
                    sum += p->value[v].bytes;
            if (sum > most[tiled]) most[tiled] = sum;
        }
        pl_plan_destroy(p);
    }
    uint64_t block = 4 * (12 * WIDTH * WIDTH + 9 * WIDTH);
    assert_true(most[0] > LAYERS * block);
    assert_true(most[1] < 2 * block);
}

static void what_is_not_possible_is_said(void **state)
{
    (void)state;
    const char *why;
    tiny t = model(0, 0);
    t.config.train.grad_clip = 1;
    pl_graph *g = tiny_compiled(&t);
    assert_false(pl_rewrite_layer_major_possible(g, pl_graph_find_program(g, "train"), &why));
    assert_non_null(strstr(why, "grad_clip"));
    assert_false(pl_rewrite_layer_major_possible(g, pl_graph_find_program(g, "evaluate"), &why));
    pl_error err = {0};
    pl_layer_major one = {.blocks = 1, .keep_every = 1, .trips = 2};
    assert_int_equal(pl_rewrite_layer_major(g, pl_graph_find_program(g, "generate"), &one, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "no region"));
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(regions_and_stacks_are_those_expected),
                                       cmocka_unit_test(gradients_of_one_group_are_alive),
                                       cmocka_unit_test(what_is_not_possible_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
