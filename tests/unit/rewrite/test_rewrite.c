/* Each rewrite on graphs made by hand where the careless version would go wrong: two activations of one value, readers
 * between what is fused, values that must outlast their node. After each: legal, and the interpreter finds the same
 * loss and gradients as before, to 1e-12. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

enum { B = 2, T = 3, D = 4, V = 5 };

typedef struct maker {
    pl_builder b;
    pl_error err;
    int weights;
} maker;

static pl_id node(maker *m, pl_op op, pl_attr attr, pl_id a, pl_id b, pl_id c)
{
    pl_attr attrs[PL_ATTR_MAX] = {attr};
    pl_id out[3] = {PL_NONE, PL_NONE, PL_NONE};
    int outs = op == PL_OP_RMS_NORM ? 2 : 1;
    return pl_build_node(&m->b, op, attrs, 3, (pl_id[]){a, b, c}, outs, out);
}

static pl_id weight(maker *m, pl_shape shape)
{
    return pl_build_persistent(&m->b, PL_ROLE_WEIGHT, PL_DTYPE_F32, shape, "w%d", m->weights++);
}
static pl_id linear_by(maker *m, pl_id x, pl_id w)
{
    return node(m, PL_OP_LINEAR, pl_attr_i(PL_ACT_NONE), x, w, PL_NONE);
}
static pl_id linear(maker *m, pl_id x) { return linear_by(m, x, weight(m, pl_shape_of(2, (int64_t)D, (int64_t)D))); }
static pl_id act(maker *m, pl_id x, pl_activation a)
{
    return node(m, PL_OP_ACTIVATION, pl_attr_i(a), x, PL_NONE, PL_NONE);
}
static pl_id add(maker *m, pl_id a, pl_id b) { return node(m, PL_OP_ADD, pl_attr_i(0), a, b, PL_NONE); }
static pl_id norm(maker *m, pl_id x)
{
    return node(m, PL_OP_RMS_NORM, pl_attr_f(1e-3), x, weight(m, pl_shape_of(1, (int64_t)D)), PL_NONE);
}

typedef pl_id (*make_model)(maker *, pl_id x);

/* ---- models ---- */

static pl_id make_plain(maker *m, pl_id x) { return linear(m, act(m, linear(m, x), PL_ACT_GELU)); }

/* One pre-activation through two functions, each read by a linear. */
static pl_id make_two_activations(maker *m, pl_id x)
{
    pl_id u = linear(m, x);
    return add(m, linear(m, act(m, u, PL_ACT_GELU)), linear(m, act(m, u, PL_ACT_SILU)));
}

static pl_id make_two_identities(maker *m, pl_id x)
{
    pl_id u = linear(m, x);
    return add(m, linear(m, act(m, u, PL_ACT_NONE)), linear(m, act(m, u, PL_ACT_NONE)));
}

/* What the activation gives is read by a norm too, whose derivative wants it before the fused node. */
static pl_id make_norm_of_activation(maker *m, pl_id x)
{
    pl_id a = act(m, linear(m, x), PL_ACT_TANH);
    return add(m, linear(m, a), linear(m, norm(m, a)));
}

static pl_id make_norm_first(maker *m, pl_id x)
{
    pl_id a = act(m, linear(m, x), PL_ACT_TANH);
    return add(m, linear(m, norm(m, a)), linear(m, a));
}

/* The value below the activation is itself made again in the backward pass. */
static pl_id make_activation_of_norm(maker *m, pl_id x)
{
    return linear(m, act(m, norm(m, linear(m, x)), PL_ACT_GELU));
}

/* Two weight gradients go into one accumulator, in an order that fusing must keep. */
static pl_id make_shared_weight(maker *m, pl_id x)
{
    pl_id w = weight(m, pl_shape_of(2, (int64_t)D, (int64_t)D));
    x = linear_by(m, act(m, linear_by(m, x, w), PL_ACT_GELU), w);
    return linear_by(m, act(m, x, PL_ACT_SILU), w);
}

static pl_id make_activations_in_a_row(maker *m, pl_id x)
{
    return linear(m, act(m, act(m, linear(m, x), PL_ACT_TANH), PL_ACT_GELU));
}

static pl_graph *graph_of(make_model make)
{
    maker m = {.b = {0}};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    m.b = pl_builder_begin(g, pl_graph_add_region(g, "train", PL_NONE, 1), &m.err);
    pl_shape rows = pl_shape_of(2, (int64_t)B, (int64_t)T), one = pl_shape_of(1, (int64_t)1);
    pl_id tokens = pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_I32, rows, "tokens");
    pl_id targets = pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_I32, rows, "targets");
    pl_id scale = pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_F32, one, "scale");
    pl_id loss = pl_build_temporary(&m.b, PL_ROLE_OUTPUT, PL_DTYPE_F64, one, "loss"), out = loss;
    pl_build_node(&m.b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
    pl_id x = make(&m, node(&m, PL_OP_EMBEDDING, pl_attr_i(1), tokens,
                            weight(&m, pl_shape_of(2, (int64_t)V, (int64_t)D)), PL_NONE));
    pl_id w = weight(&m, pl_shape_of(2, (int64_t)V, (int64_t)D));
    out = PL_NONE;
    pl_build_node(&m.b, PL_OP_LINEAR_CE, (pl_attr[]){pl_attr_i(4), pl_attr_f(0)}, 5,
                  (pl_id[]){x, w, targets, scale, loss}, 1, &out);
    if (m.b.status != PL_OK || pl_grad_differentiate(g, 0, &m.err) != PL_OK) fail_msg("%s", m.err.text);
    tiny_check(g, PL_STAGE_BOUND);
    return g;
}

/* ---- before and after ---- */

static reference *run(const pl_graph *g)
{
    static const double tokens[B * T] = {0, 1, 2, 3, 4, 1}, targets[B * T] = {1, 4, -1, 0, 2, 3};
    reference *r = reference_create(g);
    memcpy(reference_find(r, "tokens"), tokens, sizeof tokens);
    memcpy(reference_find(r, "targets"), targets, sizeof targets);
    *reference_find(r, "scale") = 0.25;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == PL_ROLE_WEIGHT)
            for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++)
                reference_address(r, (pl_id)i)[e] = 2 * tiny_uniform(3, pl_stream_id(g->value[i].name), e) - 1;
    reference_run_named(r, "train", NULL, NULL);
    return r;
}

static void check_same(const char *name, const pl_graph *before, const pl_graph *after)
{
    reference *a = run(before), *b = run(after);
    for (size_t i = 0; i < before->value_count; i++) {
        const pl_value *v = &before->value[i];
        if ((v->role != PL_ROLE_GRADIENT && v->role != PL_ROLE_OUTPUT) || pl_value_root(before, (pl_id)i) != i)
            continue;
        for (uint64_t e = 0; e < reference_elems(a, (pl_id)i); e++) {
            double x = reference_address(a, (pl_id)i)[e], y = reference_find(b, v->name)[e];
            if (!(fabs(x - y) <= 1e-12 * (1 + fabs(x))))
                fail_msg("%s: %s[%llu] was %.15g and is %.15g", name, v->name, (unsigned long long)e, x, y);
        }
    }
    reference_destroy(a);
    reference_destroy(b);
}

static void check_legal(const char *name, const char *pass, const pl_graph *g)
{
    pl_error err = {0};
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s after %s: %s", name, pass, err.text);
}

static void check_rewrites(const char *name, make_model make)
{
    pl_error err = {0};
    pl_graph *before = graph_of(make);
    for (int which = 1; which < 8; which++) {
        pl_graph *g = pl_graph_copy(before);
        assert_non_null(g);
        if (which & 1) assert_int_equal(pl_rewrite_recompute_cheap(g, 0, &err), PL_OK);
        check_legal(name, "recompute", g);
        if (which & 2) assert_int_equal(pl_rewrite_fuse(g, &err), PL_OK);
        check_legal(name, "fuse", g);
        if (which & 4) assert_int_equal(pl_rewrite_in_place(g, &err), PL_OK);
        check_legal(name, "in place", g);
        check_same(name, before, g);
        pl_graph_destroy(g);
    }
    pl_graph_destroy(before);
}

#define CHECK(what) check_rewrites(#what, make_##what)

static void rewrites_keep_loss_and_gradients(void **state)
{
    (void)state;
    CHECK(plain), CHECK(norm_of_activation), CHECK(norm_first), CHECK(activation_of_norm), CHECK(shared_weight),
        CHECK(activations_in_a_row);
}

static void one_value_through_two_activations(void **state)
{
    (void)state;
    CHECK(two_activations), CHECK(two_identities);
}

static void plain_is_fused_both_ways(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = graph_of(make_plain);
    assert_int_equal(pl_rewrite_recompute_cheap(g, 0, &err), PL_OK);
    assert_int_equal(pl_rewrite_fuse(g, &err), PL_OK);
    for (size_t i = 0; i < g->node_count; i++)
        assert_true(g->node[i].op != PL_OP_ACTIVATION && g->node[i].op != PL_OP_ACTIVATION_BWD);
    pl_graph_destroy(g);
}

/* ---- what goes out ---- */

static void what_is_stored_is_made_once_and_kept(void **state)
{
    (void)state;
    static const char text[] = "graph 1\nregion 0 \"p\"\n"
                               "value 0 \"data\" f32 [2] temporary program=0\n"
                               "value 1 \"out\" f32 [2] temporary program=0\n"
                               "value 2 \"unread\" f32 [2] temporary program=0\n"
                               "node 0 load region=0 out=0\n"
                               "node 1 activation region=0 in=0 out=1 act=gelu\n"
                               "node 2 activation region=0 in=0 out=2 act=gelu\n"
                               "node 3 store region=0 in=1\n"
                               "end graph\n";
    pl_error err = {0};
    pl_graph *g;
    bool may[4];
    assert_int_equal(pl_graph_parse("stored", text, sizeof text - 1, &g, &err), PL_OK);
    assert_int_equal(pl_graph_check(g, PL_STAGE_BOUND, &err), PL_OK);
    assert_int_equal(pl_recompute_find_repeatable(g, may, &err), PL_OK);
    assert_true(!may[0] && may[1] && !may[3]);
    assert_int_equal(pl_rewrite_drop_unread(g, 0, &err), PL_OK);
    assert_int_equal(g->node_count, 3); /* all but node 2 */
    assert_true(g->node[1].op == PL_OP_ACTIVATION && g->node[2].op == PL_OP_STORE);
    pl_graph_destroy(g);
}

/* ---- in place: what must outlast the node, or the program, keeps its own storage ---- */

static void check_not_in_place(pl_role in, pl_role out)
{
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    pl_builder b = pl_builder_begin(g, pl_graph_add_region(g, "p", PL_NONE, 1), &err);
    pl_shape s = pl_shape_of(2, (int64_t)2, (int64_t)4);
    pl_id x = pl_build_temporary(&b, in, PL_DTYPE_F32, s, "x"), y = pl_build_temporary(&b, out, PL_DTYPE_F32, s, "y");
    pl_build_node(&b, PL_OP_FILL, (pl_attr[]){pl_attr_f(1)}, 0, NULL, 1, &x);
    pl_build_node(&b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(PL_ACT_GELU)}, 1, &x, 1, &y);
    assert_int_equal(b.status, PL_OK);
    assert_int_equal(pl_rewrite_in_place(g, &err), PL_OK);
    bool shared = g->value[y].update_of != PL_NONE;
    pl_graph_destroy(g);
    assert_int_equal(shared, in == PL_ROLE_TEMPORARY && out == PL_ROLE_TEMPORARY);
}

static void what_must_last_keeps_its_storage(void **state)
{
    (void)state;
    check_not_in_place(PL_ROLE_TEMPORARY, PL_ROLE_TEMPORARY);
    check_not_in_place(PL_ROLE_STATE, PL_ROLE_TEMPORARY);
    check_not_in_place(PL_ROLE_INPUT, PL_ROLE_TEMPORARY);
    check_not_in_place(PL_ROLE_OUTPUT, PL_ROLE_TEMPORARY);
    check_not_in_place(PL_ROLE_TEMPORARY, PL_ROLE_OUTPUT);
    check_not_in_place(PL_ROLE_TEMPORARY, PL_ROLE_STATE);
}

static void a_batch_out_of_range_is_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = graph_of(make_plain);
    assert_int_equal(pl_rewrite_bind_batch(g, 0, 0, NULL, 1, &err), PL_E_USAGE);
    assert_int_equal(pl_rewrite_bind_batch(g, 0, INT64_C(1) << 40, NULL, 1, &err), PL_E_USAGE);
    assert_non_null(strstr(err.text, "1099511627776"));
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites_keep_loss_and_gradients), cmocka_unit_test(one_value_through_two_activations),
        cmocka_unit_test(plain_is_fused_both_ways),         cmocka_unit_test(what_is_stored_is_made_once_and_kept),
        cmocka_unit_test(what_must_last_keeps_its_storage), cmocka_unit_test(a_batch_out_of_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
