/* What a graph is asked by its operators' rules, on graphs whose programs and values have no usual name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ir/properties.h"
#include "support/program.h"

/* "learn" adds to its loss twice, the second time to what the first left; "look" has none. */
static const char text[] = "graph 1\n"
                           "region 0 \"learn\" batch=2\n"
                           "region 1 \"look\"\n"
                           "value 0 \"ids\" i32 [2,3] input\n"
                           "value 1 \"table\" f32 [7,4] weight\n"
                           "value 2 \"small\" f32 [5,4] weight\n"
                           "value 3 \"scale\" f32 [1] input\n"
                           "value 4 \"wrong\" f64 [1] output program=0\n"
                           "value 5 \"x\" f32 [2,3,4] temporary program=0\n"
                           "value 6 \"wrong.1\" f64 [1] output program=0 update=4\n"
                           "value 7 \"wrong.2\" f64 [1] output program=0 update=6\n"
                           "value 8 \"y\" f32 [2,3,4] temporary program=1\n"
                           "node 0 fill out=4 region=0\n"
                           "node 1 embedding in=0,1 out=5 region=0 window=1\n"
                           "node 2 linear_ce in=5,1,0,3,4 out=6 region=0 chunk_rows=4\n"
                           "node 3 linear_ce in=5,2,0,3,6 out=7 region=0 chunk_rows=4\n"
                           "node 4 embedding in=0,1 out=8 region=1 window=1\n"
                           "end graph\n";

static pl_graph *parse(const char *from)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_graph_parse("text", from, strlen(from), &g, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_graph_check(g, PL_STAGE_MODEL, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

static void the_loss_is_what_adds_to_it(void **state)
{
    (void)state;
    pl_graph *g = parse(text);
    assert_int_equal(pl_graph_find_loss(g, 0), 4);
    assert_int_equal(pl_graph_find_loss(g, 1), PL_NONE);
    g->node[2].dead = g->node[3].dead = true;
    assert_int_equal(pl_graph_find_loss(g, 0), PL_NONE);
    pl_graph_destroy(g);
}

/* The ids are taken by a table of 7 rows and by an output of 5, and by nobody in the graph without losses. */
static void ids_are_below_the_fewest_rows(void **state)
{
    (void)state;
    int64_t below = 0;
    pl_graph *g = parse(text);
    assert_true(pl_graph_find_id_limit(g, 0, &below));
    assert_int_equal(below, 5);
    g->node[3].dead = true;
    assert_true(pl_graph_find_id_limit(g, 0, &below));
    assert_int_equal(below, 7);
    for (pl_id other = 1; other <= 8; other++) assert_false(pl_graph_find_id_limit(g, other, &below));
    pl_graph_destroy(g);
}

/* What is looked at through a window is read as ids, too. */
static void ids_are_followed_through_windows(void **state)
{
    (void)state;
    static const char windows[] = "graph 1\n"
                                  "region 0 \"p\" batch=2\n"
                                  "value 0 \"batch\" i32 [2,6] temporary program=0\n"
                                  "value 1 \"first\" i32 [2,3] temporary program=0 view=0 offset=0 strides=6,1\n"
                                  "value 2 \"table\" f32 [9,4] weight\n"
                                  "value 3 \"dtable\" f32 [4,4] gradient program=0\n"
                                  "value 4 \"dtable.1\" f32 [4,4] gradient program=0 update=3\n"
                                  "value 5 \"x\" f32 [2,3,4] temporary program=0\n"
                                  "node 0 load region=0 out=0\n"
                                  "node 1 fill region=0 out=3\n"
                                  "node 2 embedding region=0 in=1,2 out=5 window=1\n"
                                  "node 3 embedding_bwd region=0 in=1,5,3 out=4 window=1 phase=backward\n"
                                  "end graph\n";
    int64_t below = 0;
    pl_graph *g = parse(windows);
    assert_true(pl_graph_find_id_limit(g, 0, &below));
    assert_int_equal(below, 4);
    assert_int_equal(pl_node_find_ids(g, &g->node[2], &below), 1);
    assert_int_equal(below, 9);
    assert_int_equal(pl_node_find_ids(g, &g->node[0], &below), PL_NONE);
    pl_graph_destroy(g);
}

/* Of tokens [2,5,4] five can be picked in each sample, not two. */
static void places_are_below_the_positions(void **state)
{
    (void)state;
    static const char picks[] = "graph 1\n"
                                "region 0 \"p\"\n"
                                "value 0 \"t\" f32 [2,5,4] temporary program=0\n"
                                "value 1 \"index\" i32 [2,3] temporary program=0\n"
                                "value 2 \"y\" f32 [2,3,4] temporary program=0\n"
                                "node 0 load region=0 out=0,1\n"
                                "node 1 gather_rows region=0 in=0,1 out=2\n"
                                "end graph\n";
    int64_t below = 0;
    pl_graph *g = parse(picks);
    assert_int_equal(pl_node_find_ids(g, &g->node[1], &below), 1);
    assert_int_equal(below, 5);
    assert_int_equal(pl_node_find_ids(g, &g->node[0], &below), PL_NONE);
    pl_graph_destroy(g);
}

/* A label is a column of the logits. */
static void labels_are_below_the_width(void **state)
{
    (void)state;
    static const char labels[] = "graph 1\n"
                                 "region 0 \"p\"\n"
                                 "value 0 \"logits\" f32 [2,5,4] temporary program=0\n"
                                 "value 1 \"label\" i32 [2,5] temporary program=0\n"
                                 "value 2 \"y\" f32 [2,3] temporary program=0\n"
                                 "node 0 load region=0 out=0,1\n"
                                 "node 1 count_right region=0 in=0,1 out=2\n"
                                 "end graph\n";
    int64_t below = 0;
    pl_graph *g = parse(labels);
    assert_int_equal(pl_node_find_ids(g, &g->node[1], &below), 1);
    assert_int_equal(below, 4);
    pl_graph_destroy(g);
}

static void programs_are_what_their_nodes_do(void **state)
{
    (void)state;
    pl_graph *g = parse(text);
    assert_int_equal(pl_graph_find_trained(g), PL_NONE);
    g->node[4].phase = PL_PHASE_BACKWARD;
    assert_int_equal(pl_graph_find_trained(g), 1);
    assert_false(pl_program_is_trained(g, 0));
    assert_true(pl_program_is_trained(g, 1));
    g->node[2].phase = PL_PHASE_UPDATE;
    assert_int_equal(pl_graph_find_trained(g), 0);
    g->node[2].dead = g->node[4].dead = true;
    assert_int_equal(pl_graph_find_trained(g), PL_NONE);
    assert_false(pl_program_is_trained(g, 0));
    assert_false(pl_program_loads(g, 0));
    g->node[3].op = PL_OP_LOAD;
    assert_true(pl_program_loads(g, 0));
    assert_false(pl_program_loads(g, 1));
    pl_graph_destroy(g);
}

/* A layer of 3 from 4 in signs and one of 5 from 3 in numbers, for 2·6 tokens in each of 7 micro-batches; the signs are
 * packed once, and what else a node does is counted as its operator says. */
static void the_share_of_signs(void **state)
{
    (void)state;
    pl_graph *g = parse("graph 1\n"
                        "region 0 \"run\" batch=2\n"
                        "region 1 \"micro\" in=0 trip=7\n"
                        "region 2 \"other\"\n"
                        "value 0 \"x\" f32 [2,6,4] input\n"
                        "value 1 \"w\" f32 [3,4] weight latent=1\n"
                        "value 2 \"v\" f32 [5,3] weight\n"
                        "value 3 \"signs\" u8 [128] weight program=0\n"
                        "value 4 \"h\" f32 [2,6,3] temporary program=0\n"
                        "value 5 \"y\" f32 [2,6,5] output program=0\n"
                        "value 6 \"z\" f32 [5,4] output program=2\n"
                        "node 0 pack_signs in=1 out=3 region=0\n"
                        "node 1 linear_binary in=0,3 out=4 region=1 columns=3\n"
                        "node 2 linear in=4,2 out=5 region=1 act=none\n"
                        "node 3 fill out=6 region=2 value=0\n"
                        "end graph\n");
    const double binary = 7 * 2.0 * 12 * 3 * 4, real = 7 * 2.0 * 12 * 5 * 3, packing = 2 * 12;
    pl_work_share share = pl_program_binary_share(g, 0);
    assert_true(share.binary_flops == binary && share.flops == binary + real + packing);
    assert_true(pl_program_binary_share(g, 2).binary_flops == 0);
    g->node[1].dead = true;
    share = pl_program_binary_share(g, 0);
    assert_true(share.binary_flops == 0 && share.flops == real + packing);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_loss_is_what_adds_to_it),
                                       cmocka_unit_test(ids_are_below_the_fewest_rows),
                                       cmocka_unit_test(ids_are_followed_through_windows),
                                       cmocka_unit_test(places_are_below_the_positions),
                                       cmocka_unit_test(labels_are_below_the_width),
                                       cmocka_unit_test(programs_are_what_their_nodes_do),
                                       cmocka_unit_test(the_share_of_signs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
