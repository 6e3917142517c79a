/* The operators of images, one at a time, in the graph of around.h. */
#include "around.h"

/* Running statistics, which a test sets like weights: positive. */
static pl_id state(maker *m, pl_id x, const char *name)
{
    pl_shape shape = pl_shape_of(1, pl_shape_last(&value_of(m, x)->shape));
    pl_id id = pl_build_persistent(&m->b, PL_ROLE_STATE, PL_DTYPE_F32, shape, "%s", name);
    m->b.graph->value[id].inference = true;
    return id;
}

/* ---- the operators ---- */

static pl_id moments(maker *m, pl_id x) { return node(m, PL_OP_CHANNEL_MOMENTS, NULL, 1, &x, 1); }

static pl_id group_norm(maker *m, pl_id x, int64_t groups, pl_activation act, pl_id residual)
{
    pl_id in[5] = {x, moments(m, x), gain(m, x), gain(m, x), residual};
    return node(m, PL_OP_GROUP_NORM, (pl_attr[]){pl_attr_i(groups), pl_attr_f(1e-3), pl_attr_i(act)}, 5, in, 3);
}

static pl_id make_instance_norm(maker *m, pl_id x) { return group_norm(m, x, C, PL_ACT_NONE, PL_NONE); }
static pl_id make_group_norm_gelu(maker *m, pl_id x) { return group_norm(m, x, 2, PL_ACT_GELU, PL_NONE); }
static pl_id make_one_group(maker *m, pl_id x) { return group_norm(m, x, 1, PL_ACT_TANH, PL_NONE); }
static pl_id make_norm_of_its_residual(maker *m, pl_id x) { return group_norm(m, x, C, PL_ACT_SILU, x); }
static pl_id make_norm_with_residual(maker *m, pl_id x)
{
    return group_norm(m, linear(m, x, C), 2, PL_ACT_RELU, linear(m, x, C));
}

static pl_id make_batch_norm(maker *m, pl_id x)
{
    pl_id stats = moments(m, x), update[3] = {stats, state(m, x, "mean"), state(m, x, "variance")};
    pl_id in[5] = {x, stats, gain(m, x), gain(m, x), PL_NONE};
    node(m, PL_OP_BATCH_NORM_UPDATE, (pl_attr[]){pl_attr_f(0.25), pl_attr_i(W)}, 3, update, 2);
    return node(m, PL_OP_BATCH_NORM, (pl_attr[]){pl_attr_f(1e-3), pl_attr_i(PL_ACT_GELU)}, 5, in, 3);
}

static pl_id make_batch_norm_leaky(maker *m, pl_id x)
{
    pl_id in[5] = {x, moments(m, x), gain(m, x), gain(m, x), PL_NONE};
    return node(m, PL_OP_BATCH_NORM, (pl_attr[]){pl_attr_f(1e-3), pl_attr_i(PL_ACT_LEAKY_RELU)}, 5, in, 3);
}

static pl_id make_batch_norm_residual(maker *m, pl_id x)
{
    pl_id in[5] = {x, moments(m, x), gain(m, x), gain(m, x), x};
    return node(m, PL_OP_BATCH_NORM, (pl_attr[]){pl_attr_f(1e-3), pl_attr_i(PL_ACT_NONE)}, 5, in, 3);
}

static pl_id make_batch_norm_eval(maker *m, pl_id x)
{
    pl_id in[6] = {x, state(m, x, "mean"), state(m, x, "variance"), gain(m, x), gain(m, x), x};
    return node(m, PL_OP_BATCH_NORM_EVAL, (pl_attr[]){pl_attr_f(1e-3), pl_attr_i(PL_ACT_GELU)}, 6, in, 1);
}

static pl_id transpose(maker *m, pl_id x, int64_t kernel, int64_t stride, pl_id bias, pl_id residual)
{
    pl_id w = weight(m, pl_shape_of(4, pl_shape_last(&value_of(m, x)->shape), kernel, kernel, (int64_t)3));
    return node(m, PL_OP_CONV_TRANSPOSE2D, (pl_attr[]){pl_attr_i(stride)}, 4, (pl_id[]){x, w, bias, residual}, 1);
}

static pl_id make_conv_transpose(maker *m, pl_id x)
{
    return transpose(m, x, 2, 2, weight(m, pl_shape_of(1, (int64_t)3)), PL_NONE);
}
static pl_id make_conv_transpose_overlapping(maker *m, pl_id x) { return transpose(m, x, 3, 2, PL_NONE, PL_NONE); }
static pl_id make_conv_transpose_residual(maker *m, pl_id x)
{
    pl_id in[2] = {x, x}, twice = node(m, PL_OP_UPSAMPLE_BILINEAR, NULL, 1, &x, 1);
    return transpose(m, node(m, PL_OP_CONCAT, NULL, 2, in, 1), 2, 2, PL_NONE, linear(m, twice, 3));
}

static pl_id dropped(maker *m, pl_id x)
{
    pl_attr attr[3] = {pl_attr_f(0.4), pl_attr_i(7), pl_attr_i(8)};
    return node(m, PL_OP_CHANNEL_DROPOUT, attr, 3, (pl_id[]){x, m->step, m->first_sample}, 1);
}

static pl_id max_pool(maker *m, pl_id x) { return node(m, PL_OP_MAX_POOL, NULL, 1, &x, 2); }
static pl_id upsample(maker *m, pl_id x) { return node(m, PL_OP_UPSAMPLE_BILINEAR, NULL, 1, &x, 1); }

static pl_id slice(maker *m, pl_id x, int64_t first, int64_t count)
{
    return node(m, PL_OP_SLICE, (pl_attr[]){pl_attr_i(first), pl_attr_i(count)}, 1, &x, 1);
}

static pl_id make_max_pool(maker *m, pl_id x) { return max_pool(m, x); }
static pl_id make_max_pool_of_odd(maker *m, pl_id x) { return max_pool(m, average(m, x, PL_OP_AVG_POOL, 2, 1)); }
static pl_id make_avg_pool(maker *m, pl_id x) { return average(m, x, PL_OP_AVG_POOL, 2, 2); }
static pl_id make_avg_pool_overlapping(maker *m, pl_id x) { return average(m, x, PL_OP_AVG_POOL, 3, 1); }
static pl_id make_avg_pool_with_gaps(maker *m, pl_id x) { return average(m, x, PL_OP_AVG_POOL, 1, 3); }
static pl_id make_adaptive_pool(maker *m, pl_id x) { return average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 3, 4); }
static pl_id make_adaptive_pool_to_one(maker *m, pl_id x) { return average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1); }
static pl_id make_adaptive_pool_to_more(maker *m, pl_id x) { return average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 7, 11); }
static pl_id make_upsample(maker *m, pl_id x) { return upsample(m, x); }
static pl_id make_concat(maker *m, pl_id x)
{
    pl_id in[4] = {x, linear(m, x, 3), x, linear(m, x, 1)};
    return node(m, PL_OP_CONCAT, NULL, 4, in, 1);
}
static pl_id make_coordinates(maker *m, pl_id x) { return node(m, PL_OP_APPEND_COORDINATES, NULL, 1, &x, 1); }
static pl_id make_slices(maker *m, pl_id x) { return plus(m, slice(m, x, 0, 3), slice(m, x, 1, 3)); }
static pl_id make_channel_dropout(maker *m, pl_id x) { return dropped(m, x); }

/* A small U-Net: what reaches x comes by two ways, and the gradient of the one is added to that of the other. */
static pl_id make_skips(maker *m, pl_id x)
{
    pl_id low = upsample(m, dropped(m, max_pool(m, x))), means = average(m, x, PL_OP_ADAPTIVE_AVG_POOL, H, W);
    pl_id in[3] = {low, x, average(m, plus(m, means, x), PL_OP_AVG_POOL, 1, 1)};
    return slice(m, node(m, PL_OP_CONCAT, NULL, 3, in, 1), 1, 3 * C - 2);
}

/* ---- one value steers another ---- */

static pl_id make_gate(maker *m, pl_id x) { return with(m, PL_OP_GATE, linear(m, x, 3), linear(m, x, 3)); }
static pl_id make_gate_of_all_channels(maker *m, pl_id x) { return with(m, PL_OP_GATE, x, linear(m, x, 1)); }
static pl_id make_gate_of_itself(maker *m, pl_id x) { return with(m, PL_OP_GATE, x, x); }

/* [B,1,1,n] from an image. */
static pl_id row_of(maker *m, pl_id x, int64_t n) { return linear(m, average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1), n); }

static pl_id make_film(maker *m, pl_id x) { return with(m, PL_OP_FILM, x, row_of(m, x, 2 * C)); }

/* film(leaky_relu(batch norm(convolution))), pooled, the pool first. */
static pl_id pooled(maker *m, pl_id x, int64_t out_channels, int64_t kernel, pl_convolution_algorithm how, pl_id film)
{
    const pl_shape channels = pl_shape_of(1, out_channels);
    const int64_t pad = kernel / 3;
    pl_id w = weight(m, pl_shape_of(4, out_channels, kernel, kernel, pl_shape_last(&value_of(m, x)->shape)));
    pl_id gamma = weight(m, channels), in[5] = {x, w, gamma, weight(m, channels), film};
    pl_id out[4] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    pl_build_node(&m->b, PL_OP_CONV2D_POOL, (pl_attr[]){pl_attr_i(1), pl_attr_i(pad), pl_attr_i(how)}, 5, in, 4, out);
    if (m->b.status != PL_OK) fail_msg("%s", m->err.text);
    const pl_attr attr[] = {pl_attr_f(1e-3), pl_attr_i(PL_ACT_LEAKY_RELU),
                            pl_attr_i(value_of(m, out[3])->shape.dim[2])};
    return node(m, PL_OP_POOLED_BATCH_NORM, attr, 5, (pl_id[]){out[0], out[2], gamma, weight(m, channels), film}, 3);
}

static pl_id make_pooled(maker *m, pl_id x) { return pooled(m, x, 3, 3, PL_CONVOLUTION_WINOGRAD4, PL_NONE); }
static pl_id make_pooled_of_odd(maker *m, pl_id x) { return pooled(m, x, 3, 2, PL_CONVOLUTION_DIRECT, PL_NONE); }
static pl_id make_pooled_film(maker *m, pl_id x)
{
    return pooled(m, slice(m, x, 1, 1), 3, 3, PL_CONVOLUTION_DIRECT, row_of(m, x, 2 * 3));
}
/* Whole vectors, and a rest. */
static pl_id make_pooled_wide(maker *m, pl_id x)
{
    return pooled(m, x, 71, 3, PL_CONVOLUTION_DIRECT, row_of(m, x, 2 * 71));
}

static pl_id make_softmax_pool(maker *m, pl_id x)
{
    pl_id in[3] = {row_of(m, x, C), average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1), row_of(m, x, C)};
    return with(m, PL_OP_SOFTMAX_POOL, node(m, PL_OP_CONCAT, NULL, 3, in, 1), row_of(m, x, 3));
}

static pl_id make_softmax_pool_of_one(maker *m, pl_id x)
{
    return with(m, PL_OP_SOFTMAX_POOL, row_of(m, x, C), row_of(m, x, 1));
}

static pl_id make_concat_of_nine(maker *m, pl_id x)
{
    pl_id in[9] = {x, x, x, x, linear(m, x, 2), x, x, x, x};
    return node(m, PL_OP_CONCAT, NULL, 9, in, 1);
}

/* ---- losses: the kind is told to what builds the loss, one number a pixel ---- */

static pl_id numbers(maker *m, pl_id x, pl_op loss, pl_regression_kind kind)
{
    m->loss = loss, m->kind = kind;
    return linear(m, x, 1);
}

#define LOSS(name, KIND)                                                                                               \
    static pl_id make_##name(maker *m, pl_id x) { return numbers(m, x, PL_OP_REGRESSION_LOSS, PL_REGRESSION_##KIND); } \
    static pl_id make_mined_##name(maker *m, pl_id x)                                                                  \
    {                                                                                                                  \
        return numbers(m, x, PL_OP_MINED_REGRESSION_LOSS, PL_REGRESSION_##KIND);                                       \
    }
LOSS(mse, MSE)
LOSS(mae, MAE)
LOSS(huber, HUBER)
LOSS(mse_mae, MSE_MAE)
LOSS(huber_mae, HUBER_MAE)
LOSS(weighted_huber, WEIGHTED_HUBER)
LOSS(weighted_huber_mae, WEIGHTED_HUBER_MAE)

/* The same once more, the convolution's output made again in the backward pass. */
static void check_chunked(const char *name, make_op make)
{
    pl_error err = {0};
    pl_graph *g = differentiated(name, make, 0), *chunked = differentiated(name, make, 0);
    assert_int_equal(pl_rewrite_chunk_convolutions(chunked, pl_graph_find_program(g, "train"), 1, &err), PL_OK);
    assert_int_equal(pl_graph_check(chunked, PL_STAGE_BOUND, &err), PL_OK);
    size_t fused = 0;
    for (size_t i = 0; i < chunked->node_count; i++) fused += chunked->node[i].op == PL_OP_CONV2D_POOL_BWD;
    assert_int_equal(fused, 1);
    reference *whole = reference_create(g), *r = reference_create(chunked);
    set_inputs(g, whole);
    set_inputs(chunked, r);
    run(g, whole);
    run(chunked, r);
    for (size_t i = 0; i < g->value_count; i++) {
        char grad[64];
        if (!is_weight(g, i)) continue;
        snprintf(grad, sizeof grad, "grad.%s", g->value[i].name);
        assert_memory_equal(reference_find(r, grad), reference_find(whole, grad),
                            reference_elems(whole, (pl_id)i) * sizeof(double));
    }
    check_kernels(name, chunked, r);
    reference_destroy(whole);
    reference_destroy(r);
    pl_graph_destroy(g);
    pl_graph_destroy(chunked);
}

static void norms(void **unused)
{
    (void)unused;
    CHECK(instance_norm), CHECK(group_norm_gelu), CHECK(one_group), CHECK(norm_of_its_residual);
    CHECK(norm_with_residual), CHECK(batch_norm), CHECK(batch_norm_residual), CHECK(batch_norm_eval);
    CHECK(batch_norm_leaky);
}

static void pools_and_sizes(void **unused)
{
    (void)unused;
    CHECK(max_pool), CHECK(max_pool_of_odd), CHECK(avg_pool), CHECK(avg_pool_overlapping), CHECK(avg_pool_with_gaps);
    CHECK(adaptive_pool), CHECK(adaptive_pool_to_one), CHECK(adaptive_pool_to_more), CHECK(upsample);
    CHECK(conv_transpose), CHECK(conv_transpose_overlapping), CHECK(conv_transpose_residual);
}

static void whole_channels(void **unused)
{
    (void)unused;
    CHECK(concat), CHECK(concat_of_nine), CHECK(coordinates), CHECK(slices), CHECK(channel_dropout), CHECK(skips);
}

static void steered(void **unused)
{
    (void)unused;
    CHECK(gate), CHECK(gate_of_all_channels), CHECK(gate_of_itself), CHECK(film), CHECK(softmax_pool);
    CHECK(softmax_pool_of_one);
}

/* What the pool left is read by something else, too; two norms share the moments; they are of another operator. */
static pl_id make_pooled_read_twice(maker *m, pl_id x)
{
    pl_id normed = make_pooled(m, x);
    const pl_node *n = &m->b.graph->node[m->b.graph->node_count - 1];
    return plus(m, normed, n->in[0]);
}

static pl_id make_two_norms(maker *m, pl_id x)
{
    pl_id normed = make_pooled(m, x), in[4];
    const pl_node n = m->b.graph->node[m->b.graph->node_count - 1];
    memcpy(in, n.in, sizeof in);
    return plus(m, normed, node(m, PL_OP_POOLED_BATCH_NORM, n.attr, 4, in, 3));
}

static pl_id make_other_moments(maker *m, pl_id x)
{
    const pl_attr attr[] = {pl_attr_f(1e-3), pl_attr_i(PL_ACT_NONE), pl_attr_i(W)};
    pl_id in[4] = {max_pool(m, x), moments(m, x), gain(m, x), gain(m, x)};
    return node(m, PL_OP_POOLED_BATCH_NORM, attr, 4, in, 3);
}

static void half_a_gradient_is_refused(void **unused)
{
    (void)unused;
    check_refused(make_pooled_read_twice, "one conv2d_pool"), check_refused(make_two_norms, "one conv2d_pool");
    check_refused(make_other_moments, "one conv2d_pool");
}

static void pools_in_front(void **unused)
{
    (void)unused;
    CHECK(pooled), CHECK(pooled_of_odd), CHECK(pooled_film);
    check_chunked("pooled", make_pooled), check_chunked("pooled_of_odd", make_pooled_of_odd);
    check_chunked("pooled_film", make_pooled_film);
    check_chunked("pooled_wide", make_pooled_wide);
}

static void losses(void **unused)
{
    (void)unused;
    CHECK(mse), CHECK(mae), CHECK(huber), CHECK(mse_mae), CHECK(huber_mae), CHECK(weighted_huber);
    CHECK(weighted_huber_mae), CHECK(mined_mse), CHECK(mined_mae), CHECK(mined_huber), CHECK(mined_mse_mae);
    CHECK(mined_huber_mae), CHECK(mined_weighted_huber), CHECK(mined_weighted_huber_mae);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(norms),          cmocka_unit_test(pools_and_sizes),
                                       cmocka_unit_test(whole_channels), cmocka_unit_test(steered),
                                       cmocka_unit_test(pools_in_front), cmocka_unit_test(half_a_gradient_is_refused),
                                       cmocka_unit_test(losses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
