/* The components of a program: names against a table, and that every node has exactly one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ir/components.h"
#include "support/program.h"

static void names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"block.3/attention/qkv", "attention"},
        {"embedding", "embedding"},
        {"vit/layer.0/feed_forward", "vit"},
        {"cycle.0/block.11/feed_forward", "feed_forward"},
        {"frame.2/convolution1", "convolution1"},
        {"layer.7", "layer"},
        {"cycle.1/layer.7", "layer"},
        {"", ""},
        {"layer.", "layer."}, /* no number */
        {".5", ".5"},
        {"v1.x/head", "v1.x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes;
        const char *name = pl_component_name(cases[i][0], &bytes);
        if (bytes != strlen(cases[i][1]) || memcmp(name, cases[i][1], bytes) != 0)
            fail_msg("%s: %.*s, not %s", cases[i][0], (int)bytes, name, cases[i][1]);
    }
}

static pl_graph *parse(const pl_str *text)
{
    pl_graph *g = NULL;
    pl_error err = {0};
    if (pl_graph_parse("t", pl_str_text(text), text->bytes, &g, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

/* Two programs; scopes[i] of node i, which writes a value of its own. */
static pl_graph *graph_of(const char *const *scope, const pl_phase *phase, size_t count)
{
    pl_str s = {0};
    pl_str_append(&s, "graph 1\nregion 0 \"p\"\nregion 1 \"r\" in=0 trip=2\nregion 2 \"q\"\n");
    for (size_t i = 0; i <= count; i++)
        pl_str_printf(&s, "value %zu \"v%zu\" f32 [1] output program=%d\n", i, i, i < count ? 0 : 2);
    for (size_t i = 0; i <= count; i++)
        pl_str_printf(&s, "node %zu fill region=%d out=%zu value=0 phase=%s scope=\"%s\"\n", i,
                      i == count ? 2
                      : i % 2    ? 1
                                 : 0,
                      i, pl_phase_name(i < count ? phase[i] : PL_PHASE_FORWARD), i < count ? scope[i] : "elsewhere");
    pl_str_append(&s, "end graph\n");
    pl_graph *g = parse(&s);
    pl_str_deinit(&s);
    return g;
}

static void every_node_has_one(void **state)
{
    (void)state;
    static const char *const scope[] = {"data", "block.0/attention", "block.1/attention", "block.1/attention", "head"};
    static const pl_phase phase[] = {PL_PHASE_FORWARD, PL_PHASE_FORWARD, PL_PHASE_FORWARD, PL_PHASE_BACKWARD,
                                     PL_PHASE_UPDATE};
    static const int expected[] = {0, 1, 1, 2, 3, PL_COMPONENT_NONE};
    pl_graph *g = graph_of(scope, phase, 5);
    pl_components c;
    pl_error err = {0};
    assert_int_equal(pl_components_create(g, 0, &c, &err), PL_OK);
    assert_int_equal(c.count, 4);
    for (int i = 0; i < 6; i++) assert_int_equal(c.of[i], expected[i]);
    assert_true(c.item[2].phase == PL_PHASE_BACKWARD && c.item[2].bytes == 9);
    assert_memory_equal(c.item[3].name, "update", 6); /* whatever it changes */
    pl_components_deinit(&c);
    assert_int_equal(pl_components_create(g, PL_NONE, &c, &err), PL_OK);
    assert_true(c.count == 0 && c.of[0] == PL_COMPONENT_NONE);
    pl_components_deinit(&c);
    pl_graph_destroy(g);
}

static void too_many_are_others(void **state)
{
    (void)state;
    enum { COUNT = PL_COMPONENTS_MAX + 7 };
    static char text[COUNT][16];
    const char *scope[COUNT];
    pl_phase phase[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) snprintf(text[i], sizeof text[i], "part%d", i), scope[i] = text[i];
    pl_graph *g = graph_of(scope, phase, COUNT);
    pl_components c;
    pl_error err = {0};
    assert_int_equal(pl_components_create(g, 0, &c, &err), PL_OK);
    assert_int_equal(c.count, PL_COMPONENTS_MAX);
    for (int i = 0; i < COUNT; i++) assert_int_equal(c.of[i], i < PL_COMPONENTS_MAX ? i : PL_COMPONENTS_MAX - 1);
    assert_memory_equal(c.item[PL_COMPONENTS_MAX - 1].name, "others", 6);
    pl_components_deinit(&c);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(every_node_has_one),
        cmocka_unit_test(too_many_are_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
