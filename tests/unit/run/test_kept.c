/* Which values of a graph a checkpoint holds, and in which of its files: by what they are for, never by their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "run/session_impl.h"
#include "support/program.h"

static const char text[] = "graph 2\n"
                           "space \"ram\"\n"
                           "queue \"main\"\n"
                           "queue \"loader\"\n"
                           "region 0 \"learn\"\n"
                           "value 0 \"mean\" f32 [4] state inference=1\n"
                           "value 1 \"count\" i64 [1] state\n"
                           "value 2 \"table\" f32 [7,4] weight frozen=1\n"
                           "value 3 \"w\" f32 [3,4] weight\n"
                           "value 4 \"w.1\" f32 [3,4] weight update=3\n"
                           "value 5 \"moment\" bf16 [3,4] optimizer\n"
                           "value 6 \"cache\" f32 [9] state program=0\n"
                           "value 7 \"lr\" f32 [1] input\n"
                           "value 8 \"narrow\" bf16 [3,4] weight program=0\n"
                           "value 9 \"window\" f32 [4] weight view=3 offset=4 strides=1\n"
                           "value 10 \"update.skipped_steps\" i32 [1] state\n"
                           "end graph\n";

static pl_graph *parse(const char *from)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_graph_parse("text", from, strlen(from), &g, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

static void each_file_holds_what_it_is_for(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_st_entry *model, *kept;
    size_t models, states;
    pl_graph *g = parse(text);
    assert_int_equal(pl_session_lists(g, NULL, &model, &models, &kept, &states, &err), PL_OK);
    assert_int_equal(models, 3);
    assert_string_equal(model[0].name, "table");
    assert_string_equal(model[1].name, "w");
    assert_string_equal(model[2].name, "mean");
    assert_false(model[2].optional);
    assert_int_equal(states, 2);
    assert_string_equal(kept[0].name, "moment");
    assert_false(kept[0].optional);
    assert_string_equal(kept[1].name, "count");
    assert_int_equal(kept[1].dtype, PL_ST_I64);
    assert_true(kept[1].optional);
    pl_free(model);
    pl_free(kept);
    g->value[1].dtype = PL_DTYPE_I16;
    assert_int_equal(pl_session_lists(g, NULL, &model, &models, &kept, &states, &err), PL_E_UNSUPPORTED);
    pl_free(model);
    pl_free(kept);
    pl_graph_destroy(g);
}

static void what_it_is_for_is_in_the_text(void **state)
{
    (void)state;
    pl_str printed = {0};
    pl_graph *g = parse(text);
    pl_graph_print(g, &printed);
    if (strcmp(pl_str_text(&printed), text) != 0) fail_msg("%s", pl_str_text(&printed));
    pl_str_deinit(&printed);
    pl_graph_destroy(g);
}

/* The data that verify --gradients writes beside the gradients may be of any type that a file can name. */
static void a_tensor_is_called_what_it_is(void **state)
{
    (void)state;
    static const pl_dtype dtypes[] = {PL_DTYPE_F32, PL_DTYPE_BF16, PL_DTYPE_U8, PL_DTYPE_I32, PL_DTYPE_I64};
    static const pl_st_dtype as[] = {PL_ST_F32, PL_ST_BF16, PL_ST_U8, PL_ST_I32, PL_ST_I64};
    pl_error err = {0};
    pl_st_entry e;
    pl_graph *g = parse(text);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        g->value[6].dtype = dtypes[i];
        assert_int_equal(pl_session_fill_entry(g, NULL, 6, &e, &err), PL_OK);
        assert_int_equal(e.dtype, as[i]);
        assert_int_equal(e.bytes, 9 * pl_dtype_bytes(dtypes[i]));
        assert_int_equal(e.shape[0], 9);
    }
    g->value[6].dtype = PL_DTYPE_I16;
    assert_int_equal(pl_session_fill_entry(g, NULL, 6, &e, &err), PL_E_UNSUPPORTED);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_tensor_is_called_what_it_is),
                                       cmocka_unit_test(each_file_holds_what_it_is_for),
                                       cmocka_unit_test(what_it_is_for_is_in_the_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
