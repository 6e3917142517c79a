/* The passes find their programs by what these do: under other names the same graph comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grad/differentiate.h"
#include "ir/properties.h"
#include "reference/tiny.h"
#include "support/program.h"

static pl_graph *differentiated(const tiny *t)
{
    pl_error err = {0};
    pl_graph *g = tiny_model(t);
    pl_id train = pl_graph_find_program(g, "train");
    assert_int_equal(pl_graph_find_trained(g), PL_NONE);
    assert_int_equal(pl_grad_differentiate(g, train, &err), PL_OK);
    pl_grad_update u = {
        .epsilon = 1e-8, .lr = pl_graph_find_value(g, "input.lr"), .step = pl_graph_find_value(g, "input.step")};
    assert_int_equal(pl_grad_add_update(g, train, &u, &err), PL_OK);
    return g;
}

static const char *const names[][2] = {{"train", "learn"}, {"evaluate", "look"}, {"generate", "write"}};

static void rename_programs(pl_graph *g, int from)
{
    for (size_t i = 0; i < g->region_count; i++)
        for (int k = 0; k < 3; k++)
            if (strcmp(g->region[i].name, names[k][from]) == 0) g->region[i].name = names[k][!from];
}

/* As text, under the usual names again. */
static char *rewritten(const tiny *t, const pl_rewrites *r, bool renamed)
{
    pl_error err = {0};
    pl_str text = {0};
    pl_graph *g = differentiated(t);
    if (renamed) rename_programs(g, 0);
    if (pl_rewrite_passes(g, r, 0, PL_PASS_COUNT, &err) != PL_OK) fail_msg("%s", err.text);
    tiny_check(g, PL_STAGE_BOUND);
    assert_string_equal(g->region[pl_graph_find_trained(g)].name, renamed ? "learn" : "train");
    if (renamed) rename_programs(g, 1);
    pl_graph_print(g, &text);
    char *copy = strdup(pl_str_text(&text));
    pl_str_deinit(&text);
    pl_graph_destroy(g);
    return copy;
}

static void programs_may_have_any_name(void **state)
{
    (void)state;
    static const pl_rewrites how[] = {
        {.precision = PL_DTYPE_BF16, .feed_forward_rows = 3, .recompute = PL_RECOMPUTE_CHEAP},
        {.layer_major = 1, .layer_major_keep = 1, .feed_forward_rows = 2, .moments = PL_DTYPE_BF16},
        {.precision = PL_DTYPE_F16, .recompute = PL_RECOMPUTE_FULL},
        {.update_early = true}};
    static tiny t;
    tiny_random(&t, 11);
    t.config.model.arch = PL_ARCH_GPT;
    t.config.model.layers = 2;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        pl_rewrites r = how[i];
        r.micro_batch = 2, r.trips = 3;
        char *usual = rewritten(&t, &r, false), *other = rewritten(&t, &r, true);
        if (strcmp(usual, other) != 0) fail_msg("rewrites %zu: another graph under other names", i);
        free(usual);
        free(other);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_may_have_any_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
