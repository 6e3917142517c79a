/* The rows of ops.def: names that tell operands apart, and nodes that are built by name as they are by position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ir/op.h"
#include "support/program.h"

static void check_names(const pl_signature *s)
{
    const pl_operand *const lists[] = {s->in, s->out, s->attr};
    static const char *const fields[] = {"region", "phase", "predicate", "queue", "wait", "dead", "scope", NULL};
    const uint8_t counts[] = {s->ins, s->outs, s->attrs};
    const char *seen[32];
    size_t names = 0;
    for (int l = 0; l < 3; l++) {
        int positions = 0;
        for (const pl_operand *o = lists[l]; o->name[0]; positions += o++->most) {
            if (o->kind == PL_OVER) continue;
            for (int i = 0; fields[i]; i++) assert_string_not_equal(o->name, fields[i]); /* of every node's line */
            for (size_t i = 0; i < names; i++)
                if (strcmp(seen[i], o->name) == 0) fail_msg("%s has two operands %s", s->name, o->name);
            seen[names++] = o->name;
            assert_true(o->least <= o->most);
        }
        if (positions != counts[l]) fail_msg("%s: %d positions are named, of %d", s->name, positions, counts[l]);
        assert_null(pl_operand_at(lists[l], positions));
        assert_false(pl_operand_is_required(lists[l], positions));
    }
}

static void test_names(void **state)
{
    (void)state;
    for (pl_op op = 0; op < PL_OP_COUNT; op++) {
        pl_op found;
        check_names(pl_signature_of(op));
        assert_int_equal(pl_op_parse(pl_op_name(op), &found), 0);
        assert_int_equal(found, op);
    }
}

static void test_built_by_name(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    pl_builder b = pl_builder_begin(g, pl_graph_add_region(g, "p", PL_NONE, 1), &err);
    const pl_shape rows = {.rank = 2, .dim = {3, 4}}, square = {.rank = 2, .dim = {5, 4}},
                   five = {.rank = 1, .dim = {5}};
    pl_linear_args a = pl_linear_none;
    a.x = pl_build_persistent(&b, PL_ROLE_INPUT, PL_DTYPE_F32, rows, "x");
    a.weight = pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, square, "w");
    a.bias = pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, five, "b");
    a.act = PL_ACT_RELU;
    const pl_id y = pl_build_linear(&b, &a);
    assert_int_equal(b.status, PL_OK);
    const pl_node *n = &g->node[0];
    assert_true(n->op == PL_OP_LINEAR && n->in[0] == a.x && n->in[1] == a.weight && n->in[2] == a.bias);
    assert_true(n->in[3] == PL_NONE && n->linear.residual == PL_NONE && n->in[PL_NODE_IN_MAX - 1] == PL_NONE);
    assert_true(n->out[0] == y && n->linear.y == y && a.y == y && n->out[1] == PL_NONE && n->attr[0].i == PL_ACT_RELU);

    pl_linear_args without = pl_linear_none;
    without.x = a.x;
    assert_int_equal(pl_build_linear(&b, &without), PL_NONE);
    assert_int_equal(b.status, PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "linear (): input weight is missing"));
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_built_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
