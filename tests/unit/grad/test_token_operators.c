/* The operators of tokens, and blends, one at a time, in the graph of around.h. */
#include "around.h"

/* ---- tokens ---- */

static pl_id make_positions(maker *m, pl_id x)
{
    pl_shape sample = pl_shape_of(3, (int64_t)H, (int64_t)W, (int64_t)C);
    return with(m, PL_OP_ADD_POSITIONS, x, weight(m, sample));
}

/* Of bytes, grey and not; nothing is learnt in front of them. */
static pl_id make_patches(maker *m, pl_id x)
{
    pl_id grey = input(m, PL_DTYPE_U8, pl_shape_of(3, (int64_t)B, (int64_t)(2 * H), (int64_t)(2 * W)), "grey");
    pl_id coloured = input(m, PL_DTYPE_U8, pl_shape_of(4, (int64_t)B, (int64_t)(3 * H), (int64_t)(3 * W), 3L), "rgb");
    pl_id in[2] = {node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(2), pl_attr_i(3), pl_attr_i(1)}, 1, &grey, 1),
                   node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(3), pl_attr_i(3), pl_attr_i(0)}, 1, &coloured, 1)};
    (void)x;
    return linear(m, node(m, PL_OP_CONCAT, NULL, 2, in, 1), C);
}

/* Of planes, which are numbers already. */
static pl_id make_planes(maker *m, pl_id x)
{
    pl_id planes = input(m, PL_DTYPE_F32, pl_shape_of(4, (int64_t)B, 3L, (int64_t)(2 * H), (int64_t)(2 * W)), "planes");
    (void)x;
    return linear(m, node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(2), pl_attr_i(3), pl_attr_i(1)}, 1, &planes, 1), C);
}

/* Numbers, some of them below 0 and above 1, as bytes; nothing is learnt in front of them. */
static pl_id make_pixels(maker *m, pl_id x)
{
    const pl_shape image = pl_shape_of(4, (int64_t)B, (int64_t)H, (int64_t)W, (int64_t)C);
    pl_id shown = input(m, PL_DTYPE_F32, image, "shown"), bytes = node(m, PL_OP_PIXELS, NULL, 1, &shown, 1);
    (void)x;
    return linear(m, node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(1), pl_attr_i(C), pl_attr_i(0)}, 1, &bytes, 1), 3);
}

/* Rows of tokens seen as an image of 14 by 14 again: windows of 5 by 4 and 5 by 5 pixels, which overlap. */
static pl_id make_pool_of_tokens(maker *m, pl_id x)
{
    pl_id page = input(m, PL_DTYPE_U8, pl_shape_of(3, (int64_t)B, 28L, 28L), "page");
    pl_id tokens = node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(2), pl_attr_i(1), pl_attr_i(0)}, 1, &page, 1);
    pl_id window = pl_build_view(&m->b, tokens, pl_shape_of(4, (int64_t)B, 14L, 14L, 4L), 0, NULL);
    (void)x;
    return linear(m, average(m, window, PL_OP_ADAPTIVE_AVG_POOL, 3, 4), C);
}

static pl_id gated(maker *m, pl_id x, int64_t hidden, int64_t out, int64_t rows, pl_id residual)
{
    pl_id wgu = weight(m, pl_shape_of(2, 2 * hidden, pl_shape_last(&value_of(m, x)->shape)));
    pl_id in[4] = {x, wgu, weight(m, pl_shape_of(2, out, hidden)), residual};
    return node(m, PL_OP_GATED_FEED_FORWARD, (pl_attr[]){pl_attr_i(PL_ACT_SILU), pl_attr_i(rows)}, 4, in, 1);
}

static pl_id make_gated(maker *m, pl_id x) { return gated(m, x, 7, C, 13, x); }
static pl_id make_gated_twice(maker *m, pl_id x)
{
    return gated(m, plus(m, x, gated(m, x, 3, C, 1000, PL_NONE)), 5, 3, 8, PL_NONE);
}

/* The gate alone, its hidden values whole. */
static pl_id make_gated_activation(maker *m, pl_id x)
{
    pl_id wide = linear(m, x, 14), silu[] = {wide};
    pl_id h = node(m, PL_OP_GATED_ACTIVATION, (pl_attr[]){pl_attr_i(PL_ACT_SILU)}, 1, silu, 1);
    pl_id again = linear(m, h, 6);
    return node(m, PL_OP_GATED_ACTIVATION, (pl_attr[]){pl_attr_i(PL_ACT_TANH)}, 1, &again, 1);
}

static pl_id capsules(maker *m, pl_id x, int64_t count, pl_id *attention)
{
    pl_id out[2] = {PL_NONE, PL_NONE}, in[2] = {x, linear(m, x, count)};
    pl_build_node(&m->b, PL_OP_CAPSULE_POOL, NULL, 2, in, attention ? 2 : 1, out);
    if (attention) *attention = out[1];
    return out[0];
}

static pl_id make_capsules(maker *m, pl_id x) { return capsules(m, x, 7, NULL); }

/* The loss reads the weights, too, and the tokens have another reader. */
static pl_id make_capsules_and_weights(maker *m, pl_id x)
{
    pl_id attention, y = capsules(m, x, 3, &attention);
    pl_id both[2] = {linear(m, y, 2), linear(m, attention, 2)};
    return node(m, PL_OP_CONCAT, NULL, 2, both, 1);
}

/* Tokens [B,2,3] from an image, those that weigh most in two capsules, one of them perhaps twice. */
static pl_id make_picked(maker *m, pl_id x)
{
    pl_id attention, t = capsules(m, x, 5, NULL), index;
    capsules(m, t, 2, &attention);
    index = node(m, PL_OP_TOP_K, (pl_attr[]){pl_attr_i(4)}, 1, &attention, 1);
    return plus(m, with(m, PL_OP_GATHER_ROWS, t, index),
                node(m, PL_OP_REPEAT, (pl_attr[]){pl_attr_i(4)}, 1, (pl_id[]){capsules(m, t, 2, NULL)}, 1));
}

/* Tokens [B,2,C]: a class token in front, which is dropped behind a layer that has seen it and the positions. */
static pl_id make_class_token(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 2, NULL), all = with(m, PL_OP_PREPEND_ROW, t, gain(m, t));
    all = with(m, PL_OP_ADD_POSITIONS, all, weight(m, pl_shape_of(2, 3L, (int64_t)C)));
    all = plus(m, all, capsules(m, all, 3, NULL));
    return plus(m, t, node(m, PL_OP_DROP_ROW, NULL, 1, &all, 1));
}

/* What stays in front is zeros; both have another reader, so that their gradients are sums. */
static pl_id make_rows_of_zeros(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 3, NULL), front = node(m, PL_OP_PREPEND_ROW, NULL, 1, &t, 1);
    pl_id rest = node(m, PL_OP_DROP_ROW, NULL, 1, &t, 1);
    pl_id both = plus(m, t, node(m, PL_OP_PREPEND_ROW, NULL, 1, &rest, 1));
    return plus(m, plus(m, front, linear(m, front, C)), node(m, PL_OP_PREPEND_ROW, NULL, 1, &both, 1));
}

/* The one weight of the tokens is their class: nothing is learnt in front of it. */
static pl_id make_class_of_data(maker *m, pl_id x)
{
    pl_id t = input(m, PL_DTYPE_F32, pl_shape_of(3, (int64_t)B, 2L, (int64_t)C), "patches");
    (void)x;
    return with(m, PL_OP_PREPEND_ROW, t, gain(m, t));
}

/* Two heads of 2, weights dropped; of 5 keys, which fill no whole number of blocks of the mask. */
static pl_id attend(maker *m, pl_id q, pl_id k, pl_id v, int64_t causal)
{
    pl_attr attr[PL_ATTR_MAX] = {pl_attr_i(2),   pl_attr_i(causal), pl_attr_f(0.7),
                                 pl_attr_f(0.4), pl_attr_i(7),      pl_attr_i(-8)};
    return node(m, PL_OP_ATTENTION, attr, 6, (pl_id[]){q, k, v, PL_NONE, m->step, m->first_sample}, 2);
}

static pl_id make_attention_dropout(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 5, NULL);
    return attend(m, linear(m, t, C), linear(m, t, C), t, 1);
}

static pl_id make_attention_dropout_across(maker *m, pl_id x) /* few queries, and all keys are seen */
{
    pl_id t = capsules(m, x, 5, NULL);
    return attend(m, capsules(m, x, 3, NULL), t, linear(m, t, C), 0);
}

static pl_id make_attention_dropout_fused(maker *m, pl_id x)
{
    pl_id qkv = linear(m, capsules(m, x, 5, NULL), 3 * C), part[3];
    for (int k = 0; k < 3; k++)
        part[k] = pl_build_view(&m->b, qkv, pl_shape_of(3, (int64_t)B, 5L, (int64_t)C), k * C,
                                (int64_t[]){5 * 3 * C, 3 * C, 1});
    return attend(m, part[0], part[1], part[2], 1);
}

static pl_id mean(maker *m, pl_id t) { return average(m, t, PL_OP_ADAPTIVE_AVG_POOL, 1, 1); }

/* The means of tokens, which have other readers, too, and of a few neighbours. */
static pl_id make_means(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 5, NULL), some = average(m, t, PL_OP_ADAPTIVE_AVG_POOL, 3, 1);
    return plus(m, plus(m, mean(m, t), mean(m, linear(m, t, C))), mean(m, some));
}

/* ---- other shapes, and what passes no gradient ---- */

static pl_id shaped(maker *m, pl_id x, pl_shape shape) { return pl_build_view(&m->b, x, shape, 0, NULL); }

/* Tokens [B,6,C] as three ways of two tokens, each with a layer of attention of its own, side by side; one of them is
 * left out. What reaches t comes in three shapes. */
static pl_id make_ways(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 6, NULL), qkv = linear(m, shaped(m, t, pl_shape_of(3, 3L * B, 2L, (long)C)), 3 * C);
    pl_id in[6] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    pl_attr attr[4] = {pl_attr_i(3), pl_attr_f(0.4), pl_attr_i(7), pl_attr_i(9)};
    for (int k = 0; k < 3; k++)
        in[k] = pl_build_view(&m->b, qkv, pl_shape_of(3, 3L * B, 2L, (long)C), (int64_t)k * C,
                              (int64_t[]){6 * C, 3 * C, 1});
    pl_attr drops[PL_ATTR_MAX] = {pl_attr_i(2), pl_attr_i(0),  pl_attr_f(0.7), pl_attr_f(0.3),
                                  pl_attr_i(7), pl_attr_i(11), pl_attr_i(3)};
    in[4] = m->step, in[5] = m->first_sample;
    pl_id o = node(m, PL_OP_ATTENTION, drops, 6, in, 2);
    pl_id ways = plus(m, t, shaped(m, o, pl_shape_of(3, (long)B, 6L, (long)C)));
    ways = node(m, PL_OP_PATH_DROPOUT, attr, 3, (pl_id[]){ways, m->step, m->first_sample}, 1);
    pl_id flat = linear(m, shaped(m, ways, pl_shape_of(2, (long)B, 6L * C)), 6 * C);
    return plus(m, ways, plus(m, shaped(m, flat, pl_shape_of(3, (long)B, 6L, (long)C)), t));
}

/* By a copy, so that both graphs have as many values, and with that the same inputs. */
static pl_id make_doubled(maker *m, pl_id x)
{
    pl_id y = pl_build_temporary(&m->b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, value_of(m, x)->shape, "copy");
    return plus(m, x, pl_build_node(&m->b, PL_OP_CAST, NULL, 1, &x, 1, &y));
}
static pl_id make_half_detached(maker *m, pl_id x) { return plus(m, x, node(m, PL_OP_DETACH, NULL, 1, &x, 1)); }
static pl_id make_detached_layers(maker *m, pl_id x)
{
    pl_id w = weight(m, pl_shape_of(2, (long)C, (long)C)), y = x;
    for (int i = 0; i < 3; i++) y = node(m, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 2, (pl_id[]){y, w}, 1);
    y = node(m, PL_OP_DETACH, NULL, 1, &y, 1);
    return node(m, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 2, (pl_id[]){plus(m, x, y), w}, 1);
}

static reference *gradients_of(make_op make, pl_graph **g)
{
    *g = differentiated("detach", make, 0);
    reference *r = reference_create(*g);
    set_inputs(*g, r);
    run(*g, r);
    return r;
}

/* Of x + detach(x) a gradient reaches x once, of x + x twice. A weight that is read behind the detached value, too, has
 * one reader that trains it, and so one sum. */
static void detached(void **unused)
{
    (void)unused;
    pl_graph *g[2];
    reference *r[2] = {gradients_of(make_half_detached, &g[0]), gradients_of(make_doubled, &g[1])};
    const double *half = reference_find(r[0], "grad.w0"), *whole = reference_find(r[1], "grad.w0");
    for (int i = 0; i < 3 * C; i++)
        if (half[i] == 0 || 2 * half[i] != whole[i]) fail_msg("w0[%d]: %.17g and %.17g", i, half[i], whole[i]);
    for (int i = 0; i < 2; i++) reference_destroy(r[i]), pl_graph_destroy(g[i]);
    g[0] = differentiated("detach", make_detached_layers, 0);
    assert_int_not_equal(pl_graph_find_value(g[0], "grad.w1"), PL_NONE);
    assert_int_equal(pl_graph_find_value(g[0], "sum.2.w1"), PL_NONE);
    pl_graph_destroy(g[0]);
}

/* ---- blends ---- */

static pl_id blend(maker *m, pl_id a, pl_id b, pl_id z) { return node(m, PL_OP_BLEND, NULL, 3, (pl_id[]){a, b, z}, 2); }

static pl_id make_blend(maker *m, pl_id x) { return blend(m, linear(m, x, 3), linear(m, x, 3), linear(m, x, 1)); }
static pl_id make_blend_of_itself(maker *m, pl_id x) { return blend(m, x, x, linear(m, x, 1)); }
static pl_id make_blend_by_sample(maker *m, pl_id x)
{
    return blend(m, linear(m, x, C), x, linear(m, average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1), 1));
}

/* A gate of what all tokens of a sample are in the mean. */
static pl_id make_blend_by_mean(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 3, NULL);
    return blend(m, linear(m, t, C), t, linear(m, mean(m, t), 1));
}

/* Nothing is learnt in front of the one or the other. */
static pl_id make_blend_with_data(maker *m, pl_id x)
{
    pl_shape shape = value_of(m, x)->shape;
    pl_id front = input(m, PL_DTYPE_F32, shape, "front"), behind = input(m, PL_DTYPE_F32, shape, "behind");
    return blend(m, blend(m, front, x, linear(m, x, 1)), behind, linear(m, x, 1));
}

static pl_id make_gates(maker *m, pl_id x)
{
    pl_id out[2] = {PL_NONE, PL_NONE}, in[3] = {x, linear(m, x, C), linear(m, x, 1)};
    pl_build_node(&m->b, PL_OP_BLEND, NULL, 3, in, 2, out);
    return out[1];
}

static void blends(void **unused)
{
    (void)unused;
    CHECK(blend), CHECK(blend_of_itself), CHECK(blend_by_sample), CHECK(blend_by_mean), CHECK(blend_with_data);
    check_refused(make_gates, "a loss may not read them");
}

static pl_id sigmoid_attention(maker *m, pl_id q, pl_id k, pl_id v, pl_id u)
{
    return node(m, PL_OP_SIGMOID_ATTENTION, (pl_attr[]){pl_attr_f(0.7)}, 4, (pl_id[]){q, k, v, u}, 1);
}

static pl_id make_sigmoid_attention(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 5, NULL);
    return sigmoid_attention(m, linear(m, t, 3), linear(m, t, 3), linear(m, t, 3), linear(m, t, 3));
}
/* One value is all four, and has another reader. */
static pl_id make_sigmoid_attention_of_itself(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 3, NULL);
    return plus(m, t, sigmoid_attention(m, t, t, t, t));
}
/* Some gradients alone are wanted. */
static pl_id make_sigmoid_attention_to_data(maker *m, pl_id x)
{
    pl_id t = capsules(m, x, 3, NULL), a = input(m, PL_DTYPE_F32, value_of(m, t)->shape, "a");
    return sigmoid_attention(m, sigmoid_attention(m, a, a, t, a), a, sigmoid_attention(m, a, t, a, t), a);
}

static void attention_of_sigmoids(void **unused)
{
    (void)unused;
    CHECK(sigmoid_attention), CHECK(sigmoid_attention_of_itself), CHECK(sigmoid_attention_to_data);
}

static void tokens(void **unused)
{
    (void)unused;
    CHECK(positions), CHECK(patches), CHECK(planes), CHECK(pixels), CHECK(pool_of_tokens), CHECK(gated),
        CHECK(gated_twice);
    CHECK(gated_activation);
    CHECK(capsules), CHECK(capsules_and_weights), CHECK(picked);
    CHECK(class_token), CHECK(rows_of_zeros), CHECK(class_of_data), CHECK(means), CHECK(ways);
    CHECK(attention_dropout), CHECK(attention_dropout_across), CHECK(attention_dropout_fused);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens), cmocka_unit_test(attention_of_sigmoids),
                                       cmocka_unit_test(detached), cmocka_unit_test(blends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
