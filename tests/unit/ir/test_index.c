/* What passes ask about who reads a value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ir/index.h"
#include "support/program.h"

enum { X, U, HALF, TWICE, ONCE, SUM, SUM_1, LATER };

/* u is looked at through a window, and read twice by one node; sum.1 goes on with sum. */
static const char text[] = "graph 1\n"
                           "region 0 \"p\"\n"
                           "value 0 \"x\" f32 [2,4] input\n"
                           "value 1 \"u\" f32 [2,4] temporary program=0\n"
                           "value 2 \"u.half\" f32 [2,2] temporary program=0 view=1 offset=0 strides=4,1\n"
                           "value 3 \"twice\" f32 [2,4] temporary program=0\n"
                           "value 4 \"once\" f32 [2,4] temporary program=0\n"
                           "value 5 \"sum\" f32 [2,4] temporary program=0\n"
                           "value 6 \"sum.1\" f32 [2,4] temporary program=0 update=5\n"
                           "value 7 \"later\" f32 [2,4] temporary program=0\n"
                           "node 0 activation region=0 in=0 out=1 act=relu\n"
                           "node 1 add region=0 in=1,1 out=3\n"
                           "node 2 activation region=0 in=3 out=4 act=relu\n"
                           "node 3 activation region=0 in=4 out=5 act=relu\n"
                           "node 4 activation region=0 in=5 out=7 act=relu\n"
                           "end graph\n";

typedef struct indexed {
    pl_graph *g;
    pl_readers readers;
} indexed;

static void index_text(indexed *t)
{
    pl_error err = {0};
    if (pl_graph_parse("text", text, strlen(text), &t->g, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_readers_init(&t->readers, t->g, &err) != PL_OK) fail_msg("%s", err.text);
}

static void release(indexed *t)
{
    pl_readers_deinit(&t->readers);
    pl_graph_destroy(t->g);
}

/* A window, what it looks at, and what goes on with another value have readers that no list has. */
static void readers_know_what_is_read_whole(void **state)
{
    (void)state;
    static const bool known[] = {[X] = true,    [U] = false,  [HALF] = false,  [TWICE] = true,
                                 [ONCE] = true, [SUM] = true, [SUM_1] = false, [LATER] = true};
    indexed t;
    index_text(&t);
    for (pl_id i = X; i <= LATER; i++) assert_int_equal(pl_readers_know(&t.readers, t.g, i), known[i]);
    release(&t);
}

/* Of what came after the index was made nothing is known. */
static void readers_do_not_know_what_came_later(void **state)
{
    (void)state;
    indexed t;
    index_text(&t);
    t.readers.value_count = LATER;
    assert_false(pl_readers_know(&t.readers, t.g, LATER));
    assert_true(pl_readers_know(&t.readers, t.g, ONCE));
    release(&t);
}

static void a_node_that_reads_twice_is_not_one_reader(void **state)
{
    (void)state;
    static const bool one[] = {[X] = true,    [U] = false,  [HALF] = false,  [TWICE] = true,
                               [ONCE] = true, [SUM] = true, [SUM_1] = false, [LATER] = false};
    indexed t;
    index_text(&t);
    for (pl_id i = X; i <= LATER; i++) assert_int_equal(pl_readers_have_one(&t.readers, t.g, i), one[i]);
    release(&t);
}

/* Entries stay behind when a pass kills a node or takes its input away. */
static void who_is_dead_or_reads_no_more_is_no_reader(void **state)
{
    (void)state;
    indexed t;
    index_text(&t);
    t.g->node[1].in[1] = X;
    assert_true(pl_node_reads(&t.g->node[1], U));
    t.g->node[2].dead = true;
    assert_false(pl_node_reads(&t.g->node[2], TWICE));
    assert_false(pl_readers_have_one(&t.readers, t.g, TWICE));
    t.g->node[3].in[0] = X;
    assert_false(pl_readers_have_one(&t.readers, t.g, ONCE));
    release(&t);
}

/* Node 2's value is read by node 3: it may be made by a node at 2, not by one at 3. */
static void a_node_may_wait_until_its_first_reader(void **state)
{
    (void)state;
    indexed t;
    index_text(&t);
    assert_true(pl_readers_may_wait(&t.readers, t.g, 2, 2));
    assert_false(pl_readers_may_wait(&t.readers, t.g, 2, 3));
    assert_true(pl_readers_may_wait(&t.readers, t.g, PL_NONE, 3));
    assert_true(pl_readers_may_wait(&t.readers, t.g, 4, 4));
    t.g->node[3].dead = true;
    assert_true(pl_readers_may_wait(&t.readers, t.g, 2, 3));
    release(&t);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_know_what_is_read_whole),
        cmocka_unit_test(readers_do_not_know_what_came_later),
        cmocka_unit_test(a_node_that_reads_twice_is_not_one_reader),
        cmocka_unit_test(who_is_dead_or_reads_no_more_is_no_reader),
        cmocka_unit_test(a_node_may_wait_until_its_first_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
