/* Tiles: one of a stack for each trip of the region that uses them. What is legal, what is refused, text and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "ir/op.h"
#include "support/program.h"

/* Region 1 loads three tiles; region 2 normalises what belongs to each and puts that over its stack. */
static const char legal[] = "graph 2\n"
                            "region 0 \"p\" batch=2\n"
                            "region 1 \"first\" in=0 trip=3\n"
                            "region 2 \"second\" in=0 trip=3\n"
                            "value 0 \"gain\" f32 [4] weight\n"
                            "value 1 \"tokens\" i32 [6,5] saved program=0\n"
                            "value 2 \"tokens.1\" i32 [2,5] saved program=0 view=1 offset=0 strides=5,1 tile=1\n"
                            "value 3 \"targets\" i32 [2,5] temporary program=0\n"
                            "value 4 \"sample\" i64 [3] saved program=0\n"
                            "value 5 \"sample.1\" i64 [1] saved program=0 view=4 offset=0 strides=1 tile=1\n"
                            "value 6 \"x\" f32 [6,4] saved program=0\n"
                            "value 7 \"x.1\" f32 [2,4] saved program=0 view=6 offset=0 strides=4,1 tile=1\n"
                            "value 8 \"x.2\" f32 [2,4] saved program=0 view=6 offset=0 strides=4,1 tile=1\n"
                            "value 9 \"x.3\" f32 [2,4] saved program=0 view=6 offset=0 strides=4,1 tile=1\n"
                            "value 10 \"rstd\" f32 [2] temporary program=0\n"
                            "value 11 \"y\" f32 [2,4] temporary program=0\n"
                            "value 12 \"tokens.2\" i32 [2,5] saved program=0 view=1 offset=0 strides=5,1 tile=1\n"
                            "node 0 load region=1 port=2,3,5\n"
                            "node 1 fill region=1 y=7 value=1\n"
                            "node 2 rms_norm region=2 x=8 gamma=0 y=9 rstd=10 eps=0.001\n"
                            "node 3 activation region=2 x=9 y=11 act=gelu\n"
                            "end graph\n";

static pl_graph *parse(const char *text)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

static void refuse(const char *what, const char *with, const char *sentence)
{
    char text[sizeof legal + 200];
    pl_error err = {0};
    const char *at = strstr(legal, what);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - legal), legal, with, at + strlen(what));
    pl_graph *g = parse(text);
    pl_status status = pl_graph_check(g, PL_STAGE_BOUND, &err);
    pl_graph_destroy(g);
    if (status != PL_E_INTERNAL || !strstr(err.text, sentence)) fail_msg("%s: %s", with, err.text);
}

static void a_stack_goes_from_region_to_region(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_str printed = {0};
    pl_graph *g = parse(legal);
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    pl_graph_print(g, &printed);
    assert_string_equal(pl_str_text(&printed), legal);
    for (size_t i = 0; i < 3; i++) assert_true(pl_node_uses_tile(g, &g->node[i]));
    pl_str_deinit(&printed);
    pl_graph_destroy(g);
}

static void what_is_no_tile(void **state)
{
    (void)state;
    refuse("\"first\" in=0 trip=3", "\"first\" in=0 trip=4", "more trips than the stack has tiles");
    refuse("\"second\" in=0 trip=3", "\"second\" in=0 trip=4", "more trips than the stack has tiles");
    refuse("view=6 offset=0 strides=4,1 tile=1\nvalue 8", "view=6 offset=4 strides=4,1 tile=1\nvalue 8", "more trips");
    refuse("view=6 offset=0 strides=4,1 tile=1\nvalue 8", "view=6 offset=0 strides=8,1 tile=1\nvalue 8", "contiguous");
    refuse("\"x.2\" f32 [2,4] saved program=0 view=6", "\"x.2\" f32 [2,4] saved program=0 view=7", "a view of a tile");
    refuse("\"y\" f32 [2,4] temporary program=0", "\"y\" f32 [2,4] temporary program=0 view=9 offset=0 strides=4,1",
           "a view of a tile");
}

static void what_was_written_over_is_not_read(void **state)
{
    (void)state;
    refuse("activation region=2 x=9", "activation region=2 x=8", "already written over");
}

/* An operand that a product reads again and again cannot lie where it writes. */
static void an_operand_is_not_written_over(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g =
        parse("graph 2\nregion 0 \"p\"\nregion 1 \"r\" in=0 trip=2\nvalue 0 \"w\" f32 [4,4] weight\n"
              "value 1 \"x\" f32 [4,4] saved program=0\n"
              "value 2 \"x.1\" f32 [2,4] saved program=0 view=1 offset=0 strides=4,1 tile=1\n"
              "value 3 \"x.2\" f32 [2,4] saved program=0 view=1 offset=0 strides=4,1 tile=1\n"
              "node 0 fill region=0 y=1 value=0\nnode 1 linear region=1 x=2 weight=0 y=3 act=none\nend graph\n");
    assert_int_equal(pl_graph_check(g, PL_STAGE_BOUND, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "overwrites an input"));
    pl_graph_destroy(g);
}

static void only_a_view_is_a_tile(void **state)
{
    (void)state;
    static const char text[] = "graph 2\nregion 0 \"p\"\nvalue 0 \"x\" f32 [2] input program=0 tile=1\nend graph\n";
    pl_error err = {0};
    pl_graph *g = NULL;
    assert_int_equal(pl_graph_parse("t", text, strlen(text), &g, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "only a view"));
    g = parse(legal);
    g->value[11].tile = true;
    assert_int_equal(pl_graph_check(g, PL_STAGE_BOUND, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "not a view"));
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_goes_from_region_to_region), cmocka_unit_test(what_is_no_tile),
        cmocka_unit_test(what_was_written_over_is_not_read), cmocka_unit_test(an_operand_is_not_written_over),
        cmocka_unit_test(only_a_view_is_a_tile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
