/* The losses of rows, alone and several that add to one value, in the graph of around.h. */
#include "around.h"

#include "base/row_loss.h"

/* What is compared, the loss's own scale, and the loss so far, which becomes what comes out. */
static void loss_of(maker *m, pl_op op, const pl_attr *attr, pl_id a, pl_id b, pl_id counted)
{
    pl_id in[6] = {a, b};
    int count = 0, at = b == PL_NONE ? 1 : 2;
    for (size_t i = 0; i < m->b.graph->value_count; i++) count += strncmp(m->b.graph->value[i].name, "weight.", 7) == 0;
    in[at] = pl_build_persistent(&m->b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(1, 1L), "weight.%d", count);
    in[at + 1] = m->sum;
    in[at + 2] = PL_NONE, in[at + 3] = counted;
    m->sum = node(m, op, attr, counted == PL_NONE ? at + 2 : at + 4, in, 1);
    m->has_losses = true;
}

static void loss(maker *m, pl_op op, const pl_attr *attr, pl_id a, pl_id b) { loss_of(m, op, attr, a, b, PL_NONE); }

static pl_id labels(maker *m)
{
    return input(m, PL_DTYPE_I32, pl_shape_of(3, (int64_t)B, (int64_t)H, (int64_t)W), "labels");
}

static void cross_entropy(maker *m, pl_id logits, pl_id target, pl_cross_entropy_kind kind)
{
    loss(m, PL_OP_CROSS_ENTROPY, (pl_attr[]){pl_attr_i(kind)}, logits, target);
}

/* Are all labels of a sample right? The target is a column of the counts, the logit a slice of a row of each sample. */
static void halting(maker *m, pl_id x, pl_id logits, pl_id target)
{
    pl_id right = with(m, PL_OP_COUNT_RIGHT, logits, target);
    pl_id all = pl_build_view(&m->b, right, pl_shape_of(2, (int64_t)B, 1L), 2, (int64_t[]){3, 1});
    pl_id q = linear(m, average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1), 3);
    loss(m, PL_OP_BCE_WITH_LOGITS, NULL, node(m, PL_OP_SLICE, (pl_attr[]){pl_attr_i(0), pl_attr_i(1)}, 1, &q, 1), all);
}

static pl_id data(maker *m, pl_id x) { return input(m, PL_DTYPE_F32, value_of(m, x)->shape, "data"); }

static pl_id make_softmax(maker *m, pl_id x)
{
    cross_entropy(m, linear(m, x, V), labels(m), PL_CROSS_ENTROPY_SOFTMAX);
    return x;
}

static pl_id make_stablemax(maker *m, pl_id x)
{
    cross_entropy(m, linear(m, x, V), labels(m), PL_CROSS_ENTROPY_STABLEMAX);
    return x;
}

static pl_id make_halting(maker *m, pl_id x)
{
    halting(m, x, linear(m, x, V), labels(m));
    return x;
}

#define PAIR(name, OP)                                                                                                 \
    static pl_id make_##name(maker *m, pl_id x)                                                                        \
    {                                                                                                                  \
        loss(m, OP, NULL, linear(m, x, 3), linear(m, x, 3));                                                           \
        return x;                                                                                                      \
    }                                                                                                                  \
    static pl_id make_##name##_of_itself(maker *m, pl_id x)                                                            \
    {                                                                                                                  \
        loss(m, OP, NULL, x, x);                                                                                       \
        return x;                                                                                                      \
    }                                                                                                                  \
    static pl_id make_##name##_with_data(maker *m, pl_id x)                                                            \
    {                                                                                                                  \
        loss(m, OP, NULL, x, data(m, x));                                                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    static pl_id make_data_with_##name(maker *m, pl_id x)                                                              \
    {                                                                                                                  \
        loss(m, OP, NULL, data(m, x), x);                                                                              \
        return x;                                                                                                      \
    }
PAIR(cosine, PL_OP_COSINE_LOSS)
PAIR(squared_error, PL_OP_SQUARED_ERROR)

static pl_id make_norms(maker *m, pl_id x)
{
    loss(m, PL_OP_NORM_PENALTY, NULL, linear(m, x, 3), PL_NONE);
    return x;
}

/* As 2.10 has it: everything of one x, the logits read by two, the column by a third. */
static pl_id make_all(maker *m, pl_id x)
{
    pl_id logits = linear(m, x, V), target = labels(m), sketch = linear(m, x, C);
    cross_entropy(m, logits, target, PL_CROSS_ENTROPY_STABLEMAX);
    halting(m, x, logits, target);
    loss(m, PL_OP_COSINE_LOSS, NULL, x, sketch);
    loss(m, PL_OP_SQUARED_ERROR, NULL, linear(m, x, C), sketch);
    loss(m, PL_OP_NORM_PENALTY, NULL, sketch, PL_NONE);
    return x;
}

/* A number each sample, a column of three, some of them 0: those samples count nothing. (Of -1 … 1 about half.) */
static pl_id counts(maker *m, int64_t column)
{
    char name[16];
    snprintf(name, sizeof name, "counts.%d", (int)column);
    pl_id x = input(m, PL_DTYPE_F32, pl_shape_of(2, (int64_t)B, 3L), name), y = PL_NONE;
    pl_build_node(&m->b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(PL_ACT_RELU)}, 1, &x, 1, &y);
    return pl_build_view(&m->b, y, pl_shape_of(2, (int64_t)B, 1L), column, (int64_t[]){3, 1});
}

static pl_id make_some_count(maker *m, pl_id x)
{
    pl_id right = with(m, PL_OP_COUNT_RIGHT, linear(m, x, V), labels(m));
    pl_id y = pl_build_view(&m->b, right, pl_shape_of(2, (int64_t)B, 1L), 2, (int64_t[]){3, 1});
    pl_id q = linear(m, average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1), 1), sketch = linear(m, x, C);
    for (int64_t column = 0; column < 3; column++) {
        pl_id counted = counts(m, column);
        loss_of(m, PL_OP_BCE_WITH_LOGITS, NULL, q, y, counted);
        loss_of(m, PL_OP_COSINE_LOSS, NULL, x, sketch, counted);
        loss_of(m, PL_OP_SQUARED_ERROR, NULL, x, sketch, counted);
        loss_of(m, PL_OP_NORM_PENALTY, NULL, sketch, PL_NONE, counted);
    }
    return x;
}

/* The one in the middle has no part of what is learnt, so it stays where it is, in front of the others. */
static pl_id make_around_data(maker *m, pl_id x)
{
    loss(m, PL_OP_NORM_PENALTY, NULL, linear(m, x, 3), PL_NONE);
    loss(m, PL_OP_NORM_PENALTY, NULL, data(m, x), PL_NONE);
    cross_entropy(m, linear(m, x, V), labels(m), PL_CROSS_ENTROPY_SOFTMAX);
    return x;
}

static void one_loss(void **unused)
{
    (void)unused;
    CHECK(softmax), CHECK(stablemax), CHECK(halting), CHECK(norms);
    CHECK(cosine), CHECK(cosine_of_itself), CHECK(cosine_with_data), CHECK(data_with_cosine);
    CHECK(squared_error), CHECK(squared_error_of_itself), CHECK(squared_error_with_data),
        CHECK(data_with_squared_error);
}

static void several_losses(void **unused)
{
    (void)unused;
    CHECK(all), CHECK(around_data), CHECK(some_count);
}

/* Each version of the loss is made by the node in front of the one that reads it, and the last one is the last. */
static void versions_follow_each_other(void **unused)
{
    (void)unused;
    pl_graph *g = differentiated("all", make_all, 0);
    pl_id version = PL_NONE;
    int losses = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const pl_op_rule *rule = pl_op_rule_of(n->op);
        if (n->dead || !rule->loss) continue;
        pl_id before = n->in[pl_node_alias(n, 0).update];
        assert_true(losses++ == 0 ? g->value[before].update_of == PL_NONE : before == version);
        assert_int_equal(n->phase, PL_PHASE_BACKWARD);
        version = n->out[0];
        assert_int_equal(g->value[version].update_of, before);
        assert_int_equal(g->value[version].producer, i);
    }
    assert_int_equal(losses, 5);
    for (size_t i = 0; i < g->value_count; i++) assert_int_not_equal(g->value[i].update_of, version);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_loss), cmocka_unit_test(several_losses),
                                       cmocka_unit_test(versions_follow_each_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
