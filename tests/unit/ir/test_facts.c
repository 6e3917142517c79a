/* What a graph is asked by its operators' rules, on graphs whose programs and values have no usual name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ir/facts.h"
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

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_loss_is_what_adds_to_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
