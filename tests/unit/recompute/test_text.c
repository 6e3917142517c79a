/* .dag in, .sched and JSON out, and the judge. Every bad file gets its position and a sentence; every broken rule too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "plimsoll/recompute.h"
#include "support/program.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static pl_recompute_dag *read_dag(const char *text)
{
    pl_recompute_dag *dag;
    pl_error err = {0};
    if (pl_recompute_dag_parse(text, strlen(text), "t.dag", &dag, &err) != PL_OK) fail_msg("%s", err.text);
    return dag;
}

static void test_reads(void **state)
{
    (void)state;
    pl_recompute_dag *dag = read_dag("# a comment\n\ndag 3 three # it has a name\r\n  fixed 4096\n"
                                     "node 0 0 10 0 0\nnode 1 2.5 20 3 1 0 #  my \"node\" \n\n"
                                     "node 2 1e3 9007199254740993 0 2 1 0 #\nkeep 0 # and\nkeep 2 1");
    pl_recompute_problem p = pl_recompute_dag_problem(dag);
    assert_string_equal(pl_recompute_dag_name(dag), "three");
    assert_int_equal(p.node_count, 3);
    assert_int_equal(p.fixed, 4096);
    assert_int_equal(p.budget, PL_RECOMPUTE_NONE);
    assert_null(p.nodes[0].name);
    assert_string_equal(p.nodes[1].name, "my \"node\"");
    assert_true(p.nodes[1].cost == 2.5 && p.nodes[2].cost == 1000);
    assert_int_equal(p.nodes[1].work, 3);
    assert_int_equal(p.nodes[2].size, 9007199254740993);
    assert_int_equal(p.nodes[2].deps[0], 1);
    assert_true(p.nodes[0].keep && p.nodes[1].keep && p.nodes[2].keep);
    pl_recompute_dag_destroy(dag);
}

#define HEAD "dag 2 x\nnode 0 1 2 0 0\n"

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "t.dag: has no header; expected \"dag N NAME\""},
        {"node 0 1 2 0 0\n", "t.dag:1:1: a node before the header; expected \"dag N NAME\" first"},
        {"dog 2 x\n", "t.dag:1:1: a line begins with \"dog\"; expected dag, fixed, node or keep"},
        {"dag two x\n", "t.dag:1:5: the number of nodes is \"two\"; expected a whole number from 0 to"},
        {"dag 2\n", "t.dag:1:6: the line ends where a name was expected"},
        {"dag 2 x y\n", "t.dag:1:9: expected the end of the line, found \"y\""},
        {"dag 0 x\ndag 0 x\n", "t.dag:2:1: a second header; one file holds one dag"},
        {HEAD, "t.dag: ends after 1 nodes; the header promises 2"},
        {HEAD "node 2 1 2 0 0\n", "t.dag:3:6: node 2 stands where node 1 was expected; ids count from 0"},
        {"dag 0 x\nnode 0 1 2 0 0\n", "t.dag:2:6: node 0, but the header promises 0 nodes"},
        {HEAD "node 1 -1 2 0 0\n", "t.dag:3:8: the cost is \"-1\"; expected a finite number, not negative"},
        {HEAD "node 1 nan 2 0 0\n", "t.dag:3:8: the cost is \"nan\""},
        {HEAD "node 1 inf 2 0 0\n", "t.dag:3:8: the cost is \"inf\""},
        {HEAD "node 1 1 2.5 0 0\n", "t.dag:3:10: the size is \"2.5\"; expected a whole number"},
        {HEAD "node 1 1 -2 0 0\n", "t.dag:3:10: the size is \"-2\"; expected a whole number"},
        {HEAD "node 1 1 99999999999999999999 0 0\n", "t.dag:3:10: the size is \"99999999999999999999\""},
        {HEAD "node 1 1 2 x 0\n", "t.dag:3:12: the work bytes is \"x\"; expected a whole number"},
        {HEAD "node 1 1 2 0\n", "t.dag:3:13: the line ends where the number of inputs was expected"},
        {HEAD "node 1 1 2 0 2 0 0\n", "t.dag:3:14: the number of inputs is \"2\"; expected a whole number from 0 to 1"},
        {HEAD "node 1 1 2 0 1\n", "t.dag:3:15: the line ends where the id of an input was expected"},
        {HEAD "node 1 1 2 0 1 1\n", "t.dag:3:16: node 1 reads node 1; a node comes after what it reads"},
        {HEAD "node 1 1 2 0 1 0 0\n", "t.dag:3:18: expected the end of the line, found \"0\""},
        {HEAD "node 1 1 size=2 0 0\n", "t.dag:3:10: expected the size, found \"size=2\""},
        {HEAD "fixed 1\nfixed 1\n", "t.dag:4:1: \"fixed\" appears twice"},
        {HEAD "keep 1\n", "t.dag:3:6: \"1\" is to be kept; expected the id of a node above this line"},
        {HEAD "keep 0 x\n", "t.dag:3:8: \"x\" is to be kept"},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        pl_recompute_dag *dag;
        pl_error err = {0};
        assert_int_equal(pl_recompute_dag_parse(cases[k].text, strlen(cases[k].text), "t.dag", &dag, &err), PL_E_DATA);
        assert_null(dag);
        if (strncmp(err.text, cases[k].expected, strlen(cases[k].expected)) != 0)
            fail_msg("'%s' is not '%s'", err.text, cases[k].expected);
    }
}

static void test_missing_file(void **state)
{
    (void)state;
    pl_recompute_dag *dag;
    pl_error err = {0};
    assert_int_equal(pl_recompute_dag_read("/nowhere/x.dag", &dag, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "/nowhere/x.dag"));
}

#define C PL_RECOMPUTE_COMPUTE
#define F PL_RECOMPUTE_FREE

enum { STEPS_MAX = 8 };

static const char three[] = "dag 3 three\nfixed 100\nnode 0 1 10 0 0\nnode 1 2 20 5 1 0\nnode 2 4 1 0 1 1\nkeep 0\n";

static void test_judge(void **state)
{
    (void)state;
    static const struct {
        pl_recompute_step steps[STEPS_MAX];
        size_t count;
        const char *expected; /* NULL: right */
        double cost;
        uint64_t peak;
    } cases[] = {
        {{{C, 0}, {C, 1}, {C, 2}}, 3, NULL, 7, 135},
        {{{C, 0}, {C, 1}, {F, 1}, {C, 1}, {C, 2}, {F, 2}}, 6, NULL, 9, 135},
        {{{C, 0}, {C, 1}}, 2, "node 2 is never computed", 0, 0},
        {{{C, 1}}, 1, "step 1 computes node 1, but its input 0 is not resident", 0, 0},
        {{{C, 0}, {C, 0}}, 2, "step 2 computes node 0, which is resident", 0, 0},
        {{{C, 0}, {F, 1}}, 2, "step 2 frees node 1, which is not resident", 0, 0},
        {{{C, 0}, {F, 0}}, 2, "step 2 frees node 0, which is to be kept", 0, 0},
        {{{C, 0}, {C, 3}}, 2, "step 2 names node 3; there are 3", 0, 0},
        {{{C, 0}, {C, 1}, {F, 1}, {C, 2}}, 4, "step 4 computes node 2, but its input 1 is not resident", 0, 0},
    };
    pl_recompute_dag *dag = read_dag(three);
    pl_recompute_problem problem = pl_recompute_dag_problem(dag);
    for (size_t k = 0; k < COUNT(cases); k++) {
        pl_error err = {0};
        double cost;
        uint64_t peak;
        pl_status status = pl_recompute_validate(&problem, cases[k].steps, cases[k].count, &cost, &peak, &err);
        assert_int_equal(status, cases[k].expected ? PL_E_INTERNAL : PL_OK);
        assert_string_equal(err.text, cases[k].expected ? cases[k].expected : "");
        if (cases[k].expected) continue;
        assert_true(cost == cases[k].cost);
        assert_int_equal(peak, cases[k].peak);
    }
    pl_recompute_dag_destroy(dag);
}

static void test_prints(void **state)
{
    (void)state;
    pl_recompute_dag *dag = read_dag(three);
    pl_recompute_problem problem = pl_recompute_dag_problem(dag);
    pl_recompute_options options = pl_recompute_options_default();
    pl_recompute_solution s;
    pl_error err = {0};
    char *text;
    size_t bytes;
    problem.budget = 135;
    assert_int_equal(pl_recompute(&problem, &options, &s, &err), PL_OK);
    assert_int_equal(pl_recompute_print(&problem, &s, PL_RECOMPUTE_SCHED, &text, &bytes, &err), PL_OK);
    assert_string_equal(text, "C 0\nC 1\nC 2\nF 1\nF 2\n");
    pl_recompute_text_free(text);
    assert_int_equal(pl_recompute_print(&problem, &s, PL_RECOMPUTE_JSON, &text, &bytes, &err), PL_OK);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "plimsoll.recompute/1");
    assert_int_equal(json_integer_value(json_object_get(json, "peak_bytes")), 135);
    assert_int_equal(json_array_size(json_object_get(json, "schedule")), 5);
    json_decref(json);
    pl_recompute_text_free(text);
    assert_int_equal(pl_recompute_print(&problem, &s, (pl_recompute_form)9, &text, &bytes, &err), PL_E_USAGE);
    pl_recompute_solution_deinit(&s);
    pl_recompute_dag_destroy(dag);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads), cmocka_unit_test(test_bad_files), cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_judge), cmocka_unit_test(test_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
