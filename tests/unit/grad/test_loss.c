/* Which loss a program has the gradients of: one value, whatever it and the program are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "grad/differentiate.h"
#include "support/program.h"

static pl_status differentiate(const char *second, pl_error *err)
{
    char text[2000];
    pl_graph *g = NULL;
    snprintf(text, sizeof text,
             "graph 1\n"
             "region 0 \"learn\" batch=2\n"
             "value 0 \"ids\" i32 [2,3] input\n"
             "value 1 \"table\" f32 [7,4] weight\n"
             "value 2 \"scale\" f32 [1] input\n"
             "value 3 \"wrong\" f64 [1] output program=0\n"
             "value 4 \"other\" f64 [1] output program=0\n"
             "value 5 \"x\" f32 [2,3,4] temporary program=0\n"
             "value 6 \"wrong.1\" f64 [1] output program=0 update=3\n"
             "%s"
             "end graph\n",
             second);
    if (pl_graph_parse("text", text, strlen(text), &g, err) != PL_OK) fail_msg("%s", err->text);
    if (pl_graph_check(g, PL_STAGE_MODEL, err) != PL_OK) fail_msg("%s", err->text);
    pl_status status = pl_grad_differentiate(g, 0, err);
    if (status == PL_OK) assert_int_not_equal(pl_graph_find_value(g, "grad.table"), PL_NONE);
    pl_graph_destroy(g);
    return status;
}

static void there_is_one_loss(void **state)
{
    (void)state;
    pl_error err = {0};
    const char one[] = "node 0 fill out=3 region=0\n"
                       "node 1 embedding in=0,1 out=5 region=0 window=1\n"
                       "node 2 linear_ce in=5,1,0,2,3 out=6 region=0 chunk_rows=4\n";
    const char two[] = "value 7 \"other.1\" f64 [1] output program=0 update=4\n"
                       "node 0 fill out=3 region=0\n"
                       "node 1 fill out=4 region=0\n"
                       "node 2 embedding in=0,1 out=5 region=0 window=1\n"
                       "node 3 linear_ce in=5,1,0,2,3 out=6 region=0 chunk_rows=4\n"
                       "node 4 linear_ce in=5,1,0,2,4 out=7 region=0 chunk_rows=4\n";
    const char none[] = "node 0 embedding in=0,1 out=5 region=0 window=1\n";
    assert_int_equal(differentiate(one, &err), PL_OK);
    assert_int_equal(differentiate(two, &err), PL_E_UNSUPPORTED);
    assert_string_equal(err.text, "the program learn has two losses, wrong and other; add both to one value");
    assert_int_equal(differentiate(none, &err), PL_E_UNSUPPORTED);
    assert_string_equal(err.text, "the program learn has no loss to differentiate");
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_is_one_loss)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
