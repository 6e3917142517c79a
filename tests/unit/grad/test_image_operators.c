/* The operators of images, one at a time: an image goes through a linear layer, the operator and into the loss. Every
 * element of every weight is held to central differences of the interpreter, in double, and once more with every set of
 * weights frozen; and every value that the kernels make of the same graph, backward nodes too, is held to the
 * interpreter's, at each level of this machine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "base/convolution.h"
#include "base/regression.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

enum { B = 2, H = 4, W = 6, C = 4, V = 5 };

typedef struct maker {
    pl_builder b;
    pl_error err;
    pl_id step, first_sample;
    int weights;
    unsigned frozen; /* bit i: weight i is */
    pl_op loss;      /* of regression, or LINEAR_CE */
    pl_regression_kind kind;
} maker;

static const pl_value *value_of(const maker *m, pl_id id) { return &m->b.graph->value[id]; }

static pl_id weight(maker *m, pl_shape shape)
{
    pl_id id = pl_build_persistent(&m->b, PL_ROLE_WEIGHT, PL_DTYPE_F32, shape, "w%d", m->weights);
    assert_int_not_equal(id, PL_NONE);
    m->b.graph->value[id].frozen = m->frozen >> m->weights++ & 1;
    return id;
}

static pl_id gain(maker *m, pl_id x) { return weight(m, pl_shape_of(1, pl_shape_last(&value_of(m, x)->shape))); }

static pl_id input(maker *m, pl_dtype dtype, pl_shape shape, const char *name)
{
    return pl_build_persistent(&m->b, PL_ROLE_INPUT, dtype, shape, "%s", name);
}

/* Running statistics, which a test sets like weights: positive. */
static pl_id state(maker *m, pl_id x, const char *name)
{
    pl_shape shape = pl_shape_of(1, pl_shape_last(&value_of(m, x)->shape));
    pl_id id = pl_build_persistent(&m->b, PL_ROLE_STATE, PL_DTYPE_F32, shape, "%s", name);
    m->b.graph->value[id].inference = true;
    return id;
}

static pl_id node(maker *m, pl_op op, const pl_attr *attr, int ins, const pl_id *in, int outs)
{
    pl_id out[PL_NODE_OUT_MAX] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    return pl_build_node(&m->b, op, attr, ins, in, outs, out);
}

static pl_id linear(maker *m, pl_id x, int64_t n)
{
    pl_id w = weight(m, pl_shape_of(2, n, pl_shape_last(&value_of(m, x)->shape)));
    return node(m, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 2, (pl_id[]){x, w}, 1);
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

static pl_id plus(maker *m, pl_id x, pl_id y) { return node(m, PL_OP_ADD, NULL, 2, (pl_id[]){x, y}, 1); }
static pl_id max_pool(maker *m, pl_id x) { return node(m, PL_OP_MAX_POOL, NULL, 1, &x, 2); }
static pl_id upsample(maker *m, pl_id x) { return node(m, PL_OP_UPSAMPLE_BILINEAR, NULL, 1, &x, 1); }

static pl_id average(maker *m, pl_id x, pl_op op, int64_t a, int64_t b)
{
    return node(m, op, (pl_attr[]){pl_attr_i(a), pl_attr_i(b)}, 1, &x, 1);
}

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

static pl_id with(maker *m, pl_op op, pl_id x, pl_id other) { return node(m, op, NULL, 2, (pl_id[]){x, other}, 1); }

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
    pl_id in[2] = {node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(2), pl_attr_i(3)}, 1, &grey, 1),
                   node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(3), pl_attr_i(3)}, 1, &coloured, 1)};
    (void)x;
    return linear(m, node(m, PL_OP_CONCAT, NULL, 2, in, 1), C);
}

/* Rows of tokens seen as an image of 14 by 14 again: windows of 5 by 4 and 5 by 5 pixels, which overlap. */
static pl_id make_pool_of_tokens(maker *m, pl_id x)
{
    pl_id page = input(m, PL_DTYPE_U8, pl_shape_of(3, (int64_t)B, 28L, 28L), "page");
    pl_id tokens = node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(2), pl_attr_i(1)}, 1, &page, 1);
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

/* ---- the graph around them ---- */

typedef pl_id (*make_op)(maker *, pl_id x);

static void add_loss(maker *m, pl_id x, pl_id scale, pl_id loss)
{
    pl_shape rows = value_of(m, x)->shape;
    if (m->loss == PL_OP_LINEAR_CE) {
        pl_id w = weight(m, pl_shape_of(2, (int64_t)V, rows.dim[--rows.rank]));
        pl_id in[5] = {x, w, input(m, PL_DTYPE_I32, rows, "targets"), scale, loss};
        node(m, PL_OP_LINEAR_CE, (pl_attr[]){pl_attr_i(4)}, 5, in, 1);
        return;
    }
    pl_attr attr[7] = {pl_attr_i(m->kind), pl_attr_f(0.25), pl_attr_f(0.7), pl_attr_f(1.5),
                       pl_attr_f(1.75),    pl_attr_f(0.35), pl_attr_f(1.5)};
    pl_id in[4] = {x, input(m, PL_DTYPE_F32, pl_shape_of(2, (int64_t)B, (int64_t)(H * W)), "targets"), scale, loss};
    node(m, m->loss, attr, 4, in, 1);
}

static pl_graph *graph_around(make_op make, unsigned frozen, int *weights)
{
    maker m = {.frozen = frozen, .loss = PL_OP_LINEAR_CE};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    m.b = pl_builder_begin(g, pl_graph_add_region(g, "train", PL_NONE, 1), &m.err);
    pl_shape one = pl_shape_of(1, (int64_t)1);
    pl_id image = input(&m, PL_DTYPE_F32, pl_shape_of(4, (int64_t)B, (int64_t)H, (int64_t)W, (int64_t)3), "image");
    m.step = input(&m, PL_DTYPE_I64, one, "step");
    m.first_sample = input(&m, PL_DTYPE_I64, one, "first_sample");
    pl_id scale = input(&m, PL_DTYPE_F32, one, "scale");
    pl_id loss = pl_build_temporary(&m.b, PL_ROLE_OUTPUT, PL_DTYPE_F64, one, "loss"), out = loss;
    pl_build_node(&m.b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
    pl_builder_enter(&m.b, "under_test");
    pl_id x = make(&m, linear(&m, image, C));
    if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
    add_loss(&m, x, scale, loss);
    if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
    tiny_check(g, PL_STAGE_BOUND);
    *weights = m.weights;
    return g;
}

static void set_inputs(const pl_graph *g, reference *r)
{
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        bool integer = v->dtype == PL_DTYPE_I32 || v->dtype == PL_DTYPE_U8, is_state = v->role == PL_ROLE_STATE;
        if (v->program != PL_NONE || pl_value_root(g, (pl_id)i) != i) continue;
        for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++) {
            double u = tiny_uniform(5, i, e);
            reference_address(r, (pl_id)i)[e] = integer    ? floor((v->dtype == PL_DTYPE_U8 ? 256 : V) * u)
                                                : is_state ? (float)(0.5 + u)
                                                           : (float)(2 * u - 1);
        }
    }
    if (g->value[pl_graph_find_value(g, "targets")].dtype == PL_DTYPE_F32) /* one that is not counted */
        reference_find(r, "targets")[5] = NAN;
    *reference_find(r, "step") = 3;
    *reference_find(r, "first_sample") = 10;
    *reference_find(r, "scale") = 0.25;
}

static void set_states(const pl_graph *g, reference *r)
{
    for (size_t i = 0; i < g->value_count; i++)
        for (uint64_t e = 0; g->value[i].role == PL_ROLE_STATE && e < reference_elems(r, (pl_id)i); e++)
            reference_address(r, (pl_id)i)[e] = (float)(0.5 + tiny_uniform(5, pl_value_root(g, (pl_id)i), e));
}

static double run(const pl_graph *g, reference *r)
{
    set_states(g, r);
    reference_run_named(r, "train", NULL, NULL);
    return *reference_find(r, "loss") * 0.25;
}

static bool is_weight(const pl_graph *g, size_t i)
{
    return g->value[i].role == PL_ROLE_WEIGHT && g->value[i].view_of == PL_NONE;
}

static void check_weight(const pl_graph *g, reference *f, reference *b, pl_id id, const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "grad.%s", g->value[id].name);
    double *w = reference_address(f, id), *grad = reference_find(b, name);
    for (uint64_t e = 0; e < reference_elems(f, id); e++) {
        double old = w[e], step = 1e-5 * (1 + fabs(old));
        w[e] = old + step;
        double above = run(g, f);
        w[e] = old - step;
        double d = (above - run(g, f)) / (2 * step);
        w[e] = old;
        if (!(fabs(d - grad[e]) <= 1e-6 * fmax(fmax(fabs(d), fabs(grad[e])), 1e-2)))
            fail_msg("%s: %s[%llu] is %.12g, the difference is %.12g", of, name, (unsigned long long)e, grad[e], d);
    }
}

static pl_graph *differentiated(const char *name, make_op make, unsigned frozen)
{
    pl_error err = {0};
    int weights;
    pl_graph *g = graph_around(make, frozen, &weights);
    if (pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err) != PL_OK) fail_msg("%s: %s", name, err.text);
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s, frozen %x: %s", name, frozen, err.text);
    return g;
}

/* Trained weights get the gradient that they get when nothing is frozen, to the last bit; frozen ones none. */
static void check_frozen(const char *name, make_op make, reference *whole, unsigned frozen)
{
    pl_graph *g = differentiated(name, make, frozen);
    reference *r = reference_create(g);
    set_inputs(g, r);
    run(g, r);
    for (size_t i = 0; i < g->value_count; i++) {
        char grad[64];
        if (!is_weight(g, i)) continue;
        snprintf(grad, sizeof grad, "grad.%s", g->value[i].name);
        assert_int_equal(pl_graph_find_value(g, grad) == PL_NONE, g->value[i].frozen);
        if (!g->value[i].frozen)
            assert_memory_equal(reference_find(r, grad), reference_find(whole, grad),
                                reference_elems(r, (pl_id)i) * sizeof(double));
    }
    reference_destroy(r);
    pl_graph_destroy(g);
}

/* ---- the same graph by kernels, each value in a place of its own ---- */

static double number_at(pl_dtype dtype, const void *p, uint64_t e)
{
    switch (dtype) {
    case PL_DTYPE_F64:
        return ((const double *)p)[e];
    case PL_DTYPE_I64:
        return (double)((const int64_t *)p)[e];
    case PL_DTYPE_I32:
        return ((const int32_t *)p)[e];
    case PL_DTYPE_U8:
        return ((const uint8_t *)p)[e];
    default:
        return ((const float *)p)[e];
    }
}

static void put_number(pl_dtype dtype, void *p, uint64_t e, double x)
{
    if (dtype == PL_DTYPE_I64)
        ((int64_t *)p)[e] = (int64_t)x;
    else if (dtype == PL_DTYPE_I32)
        ((int32_t *)p)[e] = (int32_t)x;
    else if (dtype == PL_DTYPE_U8)
        ((uint8_t *)p)[e] = (uint8_t)x;
    else
        ((float *)p)[e] = (float)x;
}

static void run_kernels(const pl_graph *g, const pl_addresses *a, pl_team team)
{
    for (size_t i = 0; i < g->node_count; i++) {
        pl_error err = {0};
        pl_call call;
        uint64_t bytes;
        if (g->node[i].dead) continue;
        if (pl_backend_workspace_bytes(g, &g->node[i], team, &bytes, &err) != PL_OK) fail_msg("%s", err.text);
        void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
        assert_non_null(workspace);
        memset(workspace, 0xff, bytes);
        if (pl_backend_bind(g, &g->node[i], a, workspace, &call, &err) != PL_OK) fail_msg("%s", err.text);
        pl_backend_exec(&call, team);
        free(workspace);
    }
}

static void compare_value(const pl_graph *g, reference *r, const pl_addresses *a, pl_id id, const char *name)
{
    const double *want = reference_address(r, id);
    double largest = 0;
    for (uint64_t e = 0; e < reference_elems(r, id); e++) largest = fmax(largest, fabs(want[e]));
    for (uint64_t e = 0; e < reference_elems(r, id); e++) {
        double got = number_at(g->value[id].dtype, pl_address_of(g, a, id), e);
        if (isnan(got) && isnan(want[e])) continue;
        if (!(fabs(got - want[e]) <= 2e-5 * largest + 1e-7))
            fail_msg("%s: %s[%llu] is %.9g, the interpreter has %.9g", name, g->value[id].name, (unsigned long long)e,
                     got, want[e]);
    }
}

static void check_kernels(const char *name, const pl_graph *g, reference *r)
{
    uint64_t *offset = calloc(g->value_count, sizeof *offset), bytes = 0;
    assert_non_null(offset);
    for (size_t i = 0; i < g->value_count; i++) {
        offset[i] = bytes;
        if (pl_value_root(g, (pl_id)i) == i) bytes += (pl_value_bytes(g, (pl_id)i) + 63) / 64 * 64;
    }
    unsigned char *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        pl_addresses a = {.base = {memory}, .offset = offset};
        memset(memory, 0xff, bytes);
        set_inputs(g, r);
        set_states(g, r);
        for (size_t i = 0; i < g->value_count; i++)
            for (uint64_t e = 0; g->value[i].program == PL_NONE && e < reference_elems(r, (pl_id)i); e++)
                put_number(g->value[i].dtype, pl_address_of(g, &a, (pl_id)i), e, reference_address(r, (pl_id)i)[e]);
        run(g, r);
        run_kernels(g, &a, (pl_team){2, isa});
        for (size_t i = 0; i < g->value_count; i++)
            if (pl_value_root(g, (pl_id)i) == i) compare_value(g, r, &a, (pl_id)i, name);
    }
    free(memory);
    free(offset);
}

static void check_operator(const char *name, make_op make)
{
    int weights;
    pl_graph *forward = graph_around(make, 0, &weights), *backward = differentiated(name, make, 0);
    reference *f = reference_create(forward), *b = reference_create(backward);
    set_inputs(forward, f);
    set_inputs(backward, b); /* ids of the model stay */
    double loss = run(forward, f);
    assert_true(fabs(run(backward, b) - loss) < 1e-12);
    for (size_t i = 0; i < forward->value_count; i++)
        if (is_weight(forward, i)) check_weight(forward, f, b, (pl_id)i, name);
    for (unsigned frozen = 1; frozen < 1u << weights; frozen++) check_frozen(name, make, b, frozen);
    check_kernels(name, backward, b);
    reference_destroy(f);
    reference_destroy(b);
    pl_graph_destroy(forward);
    pl_graph_destroy(backward);
}

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

#define CHECK(what) check_operator(#what, make_##what)

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

static void tokens(void **unused)
{
    (void)unused;
    CHECK(positions), CHECK(patches), CHECK(pool_of_tokens), CHECK(gated), CHECK(gated_twice);
    CHECK(capsules), CHECK(capsules_and_weights), CHECK(picked);
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

static void refused(make_op make)
{
    pl_error err = {0};
    int weights;
    pl_graph *g = graph_around(make, 0, &weights);
    assert_int_equal(pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err), PL_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "one conv2d_pool"));
    pl_graph_destroy(g);
}

static void half_a_gradient_is_refused(void **unused)
{
    (void)unused;
    refused(make_pooled_read_twice), refused(make_two_norms), refused(make_other_moments);
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
                                       cmocka_unit_test(losses),         cmocka_unit_test(tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
