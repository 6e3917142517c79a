/* One operator at a time: x = E[tokens] goes through it and into the loss, and every element of every weight is held to
 * central differences in double. With it: gradients that meet, windows on one value in every arrangement; each of them
 * once more with every set of its weights frozen; and what has no gradient is refused with a sentence, never left out
 * in silence. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/convolution.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "reference/tiny.h"
#include "support/program.h"

enum { B = 2, T = 3, D = 4, V = 5 };

typedef struct maker {
    pl_builder b;
    pl_error err;
    pl_id step, first_sample, tokens;
    int weights;
    unsigned frozen; /* bit i: weight i is */
} maker;

static pl_id weight_of(maker *m, pl_shape shape)
{
    pl_id id = pl_build_persistent(&m->b, PL_ROLE_WEIGHT, PL_DTYPE_F32, shape, "w%d", m->weights);
    assert_int_not_equal(id, PL_NONE);
    m->b.graph->value[id].frozen = m->frozen >> m->weights++ & 1;
    return id;
}

static pl_id weight(maker *m, int64_t n, int64_t k) { return weight_of(m, pl_shape_of(2, n, k)); }
static pl_id gain(maker *m, int64_t n) { return weight_of(m, pl_shape_of(1, n)); }

static pl_id node(maker *m, pl_op op, pl_attr attr, pl_id a, pl_id b, pl_id c, pl_id d, int outs, pl_id *out)
{
    pl_attr attrs[PL_ATTR_MAX] = {attr, pl_attr_i(7), pl_attr_i(8)};
    for (int i = 0; i < outs; i++) out[i] = PL_NONE;
    return pl_build_node(&m->b, op, attrs, 4, (pl_id[]){a, b, c, d}, outs, out);
}

static pl_id linear(maker *m, pl_id x, int64_t n)
{
    pl_id out[2];
    return node(m, PL_OP_LINEAR, pl_attr_i(PL_ACT_NONE), x, weight(m, n, pl_shape_last(&m->b.graph->value[x].shape)),
                PL_NONE, PL_NONE, 1, out);
}

static pl_id attend(maker *m, pl_id q, pl_id k, pl_id v, int64_t causal)
{
    pl_id out[2] = {PL_NONE, PL_NONE};
    return pl_build_node(&m->b, PL_OP_ATTENTION,
                         (pl_attr[PL_ATTR_MAX]){pl_attr_i(2), pl_attr_i(causal), pl_attr_f(0.7)}, 3, (pl_id[]){q, k, v},
                         2, out);
}

/* Columns [first, first + width) of a [B,T,·] value. */
static pl_id columns(maker *m, pl_id of, int64_t first, int64_t width)
{
    int64_t all = pl_shape_last(&m->b.graph->value[of].shape), stride[3] = {T * all, all, 1};
    return pl_build_view(&m->b, of, pl_shape_of(3, (int64_t)B, (int64_t)T, width), first, stride);
}

/* ---- the operators ---- */

static pl_id make_nothing(maker *m, pl_id x)
{
    (void)m;
    return x;
}
static pl_id make_linear(maker *m, pl_id x) { return linear(m, x, D); }

static pl_id make_linear_bias_residual(maker *m, pl_id x)
{
    pl_id out[2];
    return node(m, PL_OP_LINEAR, pl_attr_i(PL_ACT_NONE), x, weight(m, D, D), gain(m, D), x, 1, out);
}

static pl_id make_linear_with_activation(maker *m, pl_id x)
{
    pl_id out[2], sum[1];
    node(m, PL_OP_LINEAR, pl_attr_i(PL_ACT_GELU), x, weight(m, D, D), PL_NONE, PL_NONE, 2, out);
    return node(m, PL_OP_ADD, pl_attr_i(0), out[0], out[1], PL_NONE, PL_NONE, 1, sum);
}

/* Inputs x, W1, W2, then what is asked for: biases, and x as residual. */
static pl_id feed_forward(maker *m, pl_id x, pl_id b1, pl_id b2, pl_id residual)
{
    enum { HIDDEN = 7, ROWS = 4 };
    pl_id out = PL_NONE, w1 = weight(m, HIDDEN, D), w2 = weight(m, D, HIDDEN), in[6] = {x, w1, w2, b1, b2, residual};
    return pl_build_node(&m->b, PL_OP_FEED_FORWARD, (pl_attr[]){pl_attr_i(PL_ACT_GELU), pl_attr_i(ROWS)}, 6, in, 1,
                         &out);
}

static pl_id make_feed_forward(maker *m, pl_id x) { return feed_forward(m, x, PL_NONE, PL_NONE, PL_NONE); }
static pl_id make_feed_forward_all(maker *m, pl_id x) { return feed_forward(m, x, gain(m, 7), gain(m, D), x); }
static pl_id make_feed_forward_between(maker *m, pl_id x) /* its input has another reader */
{
    pl_id out[1], y = feed_forward(m, x, gain(m, 7), PL_NONE, PL_NONE);
    return node(m, PL_OP_ADD, pl_attr_i(0), y, linear(m, x, D), PL_NONE, PL_NONE, 1, out);
}

static pl_id make_shared_weight(maker *m, pl_id x)
{
    pl_id out[1], w = weight(m, D, D);
    for (int i = 0; i < 2; i++) x = node(m, PL_OP_LINEAR, pl_attr_i(PL_ACT_NONE), x, w, PL_NONE, PL_NONE, 1, out);
    return x;
}

static pl_id act(maker *m, pl_id x, pl_activation a)
{
    pl_id out[1];
    return node(m, PL_OP_ACTIVATION, pl_attr_i(a), x, PL_NONE, PL_NONE, PL_NONE, 1, out);
}

static pl_id make_gelu(maker *m, pl_id x) { return act(m, x, PL_ACT_GELU); }
static pl_id make_silu(maker *m, pl_id x) { return act(m, x, PL_ACT_SILU); }
static pl_id make_tanh(maker *m, pl_id x) { return act(m, x, PL_ACT_TANH); }
static pl_id make_relu(maker *m, pl_id x) { return act(m, x, PL_ACT_RELU); }
static pl_id make_sigmoid(maker *m, pl_id x) { return act(m, x, PL_ACT_SIGMOID); }
static pl_id make_quick_gelu(maker *m, pl_id x) { return act(m, x, PL_ACT_QUICK_GELU); }
static pl_id make_scale(maker *m, pl_id x)
{
    pl_scale_args a = pl_scale_none;
    a.x = x, a.factor = -1.7;
    return pl_build_scale(&m->b, &a);
}
static pl_id make_gelu_tanh(maker *m, pl_id x) { return act(m, x, PL_ACT_GELU_TANH); }
static pl_id make_identity(maker *m, pl_id x) { return act(m, x, PL_ACT_NONE); }

static pl_id make_layer_norm(maker *m, pl_id x)
{
    pl_id out[3];
    return node(m, PL_OP_LAYER_NORM, pl_attr_f(1e-3), x, gain(m, D), gain(m, D), PL_NONE, 3, out);
}

static pl_id make_layer_norm_without_beta(maker *m, pl_id x)
{
    pl_id out[3];
    return node(m, PL_OP_LAYER_NORM, pl_attr_f(1e-3), x, gain(m, D), PL_NONE, PL_NONE, 3, out);
}

static pl_id make_rms_norm(maker *m, pl_id x)
{
    pl_id out[2];
    return node(m, PL_OP_RMS_NORM, pl_attr_f(1e-3), x, gain(m, D), PL_NONE, PL_NONE, 2, out);
}

static pl_id make_rms_norm_without_gain(maker *m, pl_id x)
{
    pl_id out[2];
    return node(m, PL_OP_RMS_NORM, pl_attr_f(1e-3), x, PL_NONE, PL_NONE, PL_NONE, 2, out);
}

static pl_id make_rms_norm_of_residual_without_gain(maker *m, pl_id x)
{
    pl_id out[1], y = linear(m, make_rms_norm_without_gain(m, x), D);
    return make_rms_norm_without_gain(m, node(m, PL_OP_ADD, pl_attr_i(0), y, x, PL_NONE, PL_NONE, 1, out));
}

static pl_id make_norm_of_residual(maker *m, pl_id x) /* the stream goes around a norm and through it */
{
    pl_id out[1], y = linear(m, make_rms_norm(m, x), D);
    return node(m, PL_OP_ADD, pl_attr_i(0), y, x, PL_NONE, PL_NONE, 1, out);
}

static pl_id make_add_twice(maker *m, pl_id x)
{
    pl_id out[1];
    return node(m, PL_OP_ADD, pl_attr_i(0), x, x, PL_NONE, PL_NONE, 1, out);
}

static pl_id make_three_ways(maker *m, pl_id x)
{
    pl_id out[1], y = node(m, PL_OP_ADD, pl_attr_i(0), make_tanh(m, x), linear(m, x, D), PL_NONE, PL_NONE, 1, out);
    return node(m, PL_OP_ADD, pl_attr_i(0), y, make_gelu(m, x), PL_NONE, PL_NONE, 1, out);
}

static pl_id make_dropout(maker *m, pl_id x)
{
    pl_id out[1];
    return node(m, PL_OP_DROPOUT, pl_attr_f(0.4), x, m->step, m->first_sample, PL_NONE, 1, out);
}

static pl_id make_dropout_residual(maker *m, pl_id x)
{
    pl_id out[1];
    return node(m, PL_OP_DROPOUT, pl_attr_f(0.4), make_tanh(m, x), m->step, m->first_sample, x, 1, out);
}

static pl_id make_attention(maker *m, pl_id x)
{
    return attend(m, linear(m, x, D), linear(m, x, D), linear(m, x, D), 1);
}
static pl_id make_attention_full(maker *m, pl_id x)
{
    return attend(m, linear(m, x, D), linear(m, x, D), linear(m, x, D), 0);
}
static pl_id make_attention_of_itself(maker *m, pl_id x) { return attend(m, x, x, x, 1); }

static pl_id rope(maker *m, pl_id x, int64_t heads, int64_t rotated, int64_t adjoint)
{
    pl_attr attr[] = {pl_attr_i(heads), pl_attr_i(rotated), pl_attr_f(7.5), pl_attr_i(adjoint)};
    pl_id out = PL_NONE;
    return pl_build_node(&m->b, PL_OP_ROPE, attr, 1, &x, 1, &out);
}

static pl_id make_rope(maker *m, pl_id x) { return rope(m, x, 1, 1, 0); }
static pl_id make_rope_adjoint(maker *m, pl_id x) { return rope(m, linear(m, x, 3 * D), 3, 2, 1); }
static pl_id make_attention_rope(maker *m, pl_id x)
{
    return attend(m, rope(m, linear(m, x, D), 2, 2, 0), rope(m, x, 2, 2, 0), linear(m, x, D), 1);
}
static pl_id make_attention_rope_fused(maker *m, pl_id x)
{
    pl_id qkv = rope(m, linear(m, x, 3 * D), 6, 4, 0);
    return attend(m, columns(m, qkv, 0, D), columns(m, qkv, D, D), columns(m, qkv, 2 * D, D), 1);
}

static pl_id make_attention_fused(maker *m, pl_id x)
{
    pl_id qkv = linear(m, x, 3 * D);
    return attend(m, columns(m, qkv, 0, D), columns(m, qkv, D, D), columns(m, qkv, 2 * D, D), 1);
}

static pl_id make_attention_fused_in_another_order(maker *m, pl_id x)
{
    pl_id qkv = linear(m, x, 3 * D);
    return attend(m, columns(m, qkv, 2 * D, D), columns(m, qkv, 0, D), columns(m, qkv, D, D), 1);
}

static pl_id make_attention_two_on_one(maker *m, pl_id x)
{
    pl_id out[1], qkv = linear(m, x, 3 * D),
                  a = attend(m, columns(m, qkv, 0, D), columns(m, qkv, D, D), columns(m, qkv, 2 * D, D), 1);
    pl_id b = attend(m, columns(m, qkv, D, D), columns(m, qkv, 0, D), columns(m, qkv, 2 * D, D), 0);
    return node(m, PL_OP_ADD, pl_attr_i(0), a, b, PL_NONE, PL_NONE, 1, out);
}

static pl_id make_attention_windows_on_two(maker *m, pl_id x)
{
    pl_id qk = linear(m, x, 2 * D), v = linear(m, x, D + 3);
    return attend(m, columns(m, qk, 0, D), columns(m, qk, D, D), columns(m, v, 2, D), 1);
}

static pl_id make_attention_windows_with_a_gap(maker *m, pl_id x)
{
    pl_id qkv = linear(m, x, 3 * D + 2);
    return attend(m, columns(m, qkv, 0, D), columns(m, qkv, D + 1, D), columns(m, qkv, 2 * D + 2, D), 1);
}

static pl_id make_attention_overlapping_windows(maker *m, pl_id x)
{
    pl_id qkv = linear(m, x, 3 * D);
    return attend(m, columns(m, qkv, 0, D), columns(m, qkv, 2, D), columns(m, qkv, 2, D), 1);
}

static pl_id make_attention_one_window(maker *m, pl_id x)
{
    pl_id wide = linear(m, x, D + 2);
    return attend(m, x, columns(m, wide, 1, D), linear(m, x, D), 1);
}

/* An image that weights have a part in, [B,height,width,channels]: of its own numbers, not of the tokens. */
static pl_id image(maker *m, int64_t height, int64_t width, int64_t channels)
{
    pl_id x = pl_build_temporary(&m->b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, pl_shape_of(4, (int64_t)B, height, width, 2L),
                                 "image%d", m->weights);
    pl_build_node(&m->b, PL_OP_NORMAL, (pl_attr[]){pl_attr_f(1), pl_attr_i(3), pl_attr_i(m->weights)}, 0, NULL, 1, &x);
    return linear(m, x, channels);
}

/* Makes [B,T,1,out], or what a loss over B·T rows can take. */
static pl_id convolve(maker *m, pl_id x, pl_id bias, pl_id residual, int64_t out, const int64_t window[3],
                      pl_activation act, pl_convolution_algorithm algorithm)
{
    int64_t in = pl_shape_last(&m->b.graph->value[x].shape), kernel = window[0];
    pl_attr attr[] = {pl_attr_i(act), pl_attr_i(window[1]), pl_attr_i(window[2]), pl_attr_i(algorithm)};
    pl_id y[2] = {PL_NONE, PL_NONE}, sum = PL_NONE, w = weight_of(m, pl_shape_of(4, out, kernel, kernel, in));
    pl_build_node(&m->b, PL_OP_CONV2D, attr, 4, (pl_id[]){x, w, bias, residual}, act ? 2 : 1, y);
    return act ? pl_build_node(&m->b, PL_OP_ADD, NULL, 2, y, 1, &sum) : y[0];
}

static pl_id make_conv2d(maker *m, pl_id x)
{
    (void)x;
    return convolve(m, image(m, 4, 2, 3), PL_NONE, PL_NONE, D, (int64_t[]){2, 1, 0}, PL_ACT_NONE,
                    PL_CONVOLUTION_DIRECT);
}

static pl_id make_conv2d_all(maker *m, pl_id x)
{
    (void)x;
    return convolve(m, image(m, 5, 2, 3), gain(m, D), image(m, 3, 1, D), D, (int64_t[]){3, 2, 1}, PL_ACT_GELU,
                    PL_CONVOLUTION_DIRECT);
}

static pl_id make_conv2d_twice(maker *m, pl_id x) /* of one image, and of what came of it */
{
    (void)x;
    pl_id y = image(m, 3, 1, 2), sum = PL_NONE;
    pl_id z = convolve(m, y, PL_NONE, y, 2, (int64_t[]){3, 1, 1}, PL_ACT_NONE, PL_CONVOLUTION_DIRECT);
    pl_id both[] = {convolve(m, y, PL_NONE, PL_NONE, D, (int64_t[]){1, 1, 0}, PL_ACT_NONE, PL_CONVOLUTION_DIRECT),
                    convolve(m, z, PL_NONE, PL_NONE, D, (int64_t[]){5, 1, 2}, PL_ACT_TANH, PL_CONVOLUTION_DIRECT)};
    return pl_build_node(&m->b, PL_OP_ADD, NULL, 2, both, 1, &sum);
}

static pl_id make_conv2d_patches(maker *m, pl_id x) /* with a row and columns that no window sees */
{
    (void)x;
    return convolve(m, image(m, 7, 3, 2), gain(m, D), PL_NONE, D, (int64_t[]){2, 2, 0}, PL_ACT_NONE,
                    PL_CONVOLUTION_DIRECT);
}

/* The modes of an image times their matrices, back to an image, from which a convolution makes [B,T,1,D]; added to
 * another image, or alone. */
static pl_id fourier(maker *m, int64_t height, int64_t width, int64_t modes, int64_t window, int64_t add)
{
    pl_id x = image(m, height, width, 3), like = add ? image(m, height, width, 2) : x, y = PL_NONE;
    pl_id r = weight_of(m, pl_shape_of(5, 2 * modes, modes, 3L, 2L, add ? 2L : 3L)), spectrum = PL_NONE,
          mixed = PL_NONE;
    pl_build_node(&m->b, PL_OP_RFFT2, (pl_attr[]){pl_attr_i(modes), pl_attr_i(0)}, 1, &x, 1, &spectrum);
    pl_build_node(&m->b, PL_OP_SPECTRAL_LINEAR, NULL, 2, (pl_id[]){spectrum, r}, 1, &mixed);
    pl_build_node(&m->b, PL_OP_IRFFT2, (pl_attr[]){pl_attr_i(add), pl_attr_i(0)}, 2, (pl_id[]){mixed, like}, 1, &y);
    return convolve(m, y, PL_NONE, PL_NONE, D, (int64_t[]){window, 2, 0}, PL_ACT_NONE, PL_CONVOLUTION_DIRECT);
}

static pl_id make_fourier(maker *m, pl_id x)
{
    (void)x;
    return fourier(m, 7, 4, 3, 3, 1); /* the last column stands for one, the one before it for two */
}

static pl_id make_fourier_alone(maker *m, pl_id x) /* the image says no more than the shape */
{
    (void)x;
    return fourier(m, 6, 2, 1, 2, 0);
}

/* An image that is read beside its transform: its gradient is added to. */
static pl_id make_fourier_residual(maker *m, pl_id x)
{
    (void)x;
    pl_id y = image(m, 7, 3, 2), spectrum = PL_NONE, out = PL_NONE;
    pl_build_node(&m->b, PL_OP_RFFT2, (pl_attr[]){pl_attr_i(2), pl_attr_i(0)}, 1, &y, 1, &spectrum);
    pl_build_node(&m->b, PL_OP_IRFFT2, (pl_attr[]){pl_attr_i(1), pl_attr_i(0)}, 2, (pl_id[]){spectrum, y}, 1, &out);
    return convolve(m, out, PL_NONE, PL_NONE, D, (int64_t[]){3, 2, 0}, PL_ACT_NONE, PL_CONVOLUTION_DIRECT);
}

static pl_id embedding(maker *m, int64_t window, pl_id table, pl_id places)
{
    pl_id out[1];
    return node(m, PL_OP_EMBEDDING, pl_attr_i(window), m->tokens, table, places, PL_NONE, 1, out);
}

static pl_id plus(maker *m, pl_id x, pl_id y)
{
    pl_id out[1];
    return node(m, PL_OP_ADD, pl_attr_i(0), x, y, PL_NONE, PL_NONE, 1, out);
}

static pl_id make_places(maker *m, pl_id x)
{
    return plus(m, x, embedding(m, 1, weight(m, V, D), weight(m, T + 1, D)));
}
static pl_id make_window(maker *m, pl_id x)
{
    return plus(m, x, linear(m, embedding(m, 3, weight(m, V, 3), PL_NONE), D));
}
static pl_id make_weight_added(maker *m, pl_id x)
{
    return plus(m, x, weight_of(m, pl_shape_of(3, (int64_t)B, (int64_t)T, (int64_t)D)));
}

static pl_id make_weight_window(maker *m, pl_id x)
{
    pl_id out[2], half = pl_build_view(&m->b, weight(m, 2 * D, D), pl_shape_of(2, (int64_t)D, (int64_t)D), D * D, NULL);
    return node(m, PL_OP_LINEAR, pl_attr_i(PL_ACT_NONE), x, half, PL_NONE, PL_NONE, 1, out);
}

static pl_id make_window_into_linear(maker *m, pl_id x)
{
    pl_id twice =
        pl_build_view(&m->b, linear(m, x, 2 * D), pl_shape_of(3, (int64_t)B, (int64_t)T, (int64_t)D), D, NULL);
    return linear(m, twice, D);
}

/* ---- the graph around them ---- */

typedef pl_id (*make_op)(maker *, pl_id x);

static pl_graph *graph_around(make_op make, unsigned frozen, int *weights)
{
    maker m = {.frozen = frozen};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    m.b = pl_builder_begin(g, pl_graph_add_region(g, "train", PL_NONE, 1), &m.err);
    pl_id tokens = m.tokens =
        pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_I32, pl_shape_of(2, (int64_t)B, (int64_t)T), "tokens");
    pl_id targets =
        pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_I32, pl_shape_of(2, (int64_t)B, (int64_t)T), "targets");
    m.step = pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_I64, pl_shape_of(1, (int64_t)1), "step");
    m.first_sample = pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_I64, pl_shape_of(1, (int64_t)1), "first_sample");
    pl_id scale = pl_build_persistent(&m.b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(1, (int64_t)1), "scale");
    pl_id loss = pl_build_temporary(&m.b, PL_ROLE_OUTPUT, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "loss"), out = loss;
    pl_build_node(&m.b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
    pl_builder_enter(&m.b, "under_test");
    pl_id x = make(&m, node(&m, PL_OP_EMBEDDING, pl_attr_i(1), tokens, weight(&m, V, D), PL_NONE, PL_NONE, 1, &out));
    assert_int_equal(m.b.status, PL_OK);
    pl_id w = weight(&m, V, pl_shape_last(&g->value[x].shape));
    out = PL_NONE;
    pl_build_node(&m.b, PL_OP_LINEAR_CE, (pl_attr[]){pl_attr_i(4), pl_attr_f(0)}, 5,
                  (pl_id[]){x, w, targets, scale, loss}, 1, &out);
    if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
    tiny_check(g, PL_STAGE_BOUND);
    *weights = m.weights;
    return g;
}

static double run(reference *r)
{
    static const double tokens[B * T] = {0, 1, 2, 3, 4, 1}, targets[B * T] = {1, 4, -1, 0, 2, 3};
    memcpy(reference_find(r, "tokens"), tokens, sizeof tokens);
    memcpy(reference_find(r, "targets"), targets, sizeof targets);
    *reference_find(r, "step") = 3;
    *reference_find(r, "first_sample") = 10;
    *reference_find(r, "scale") = 0.2f;
    reference_run_named(r, "train", NULL, NULL);
    return *reference_find(r, "loss") * 0.2f;
}

static void set_weights(const pl_graph *g, reference *r)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == PL_ROLE_WEIGHT && g->value[i].view_of == PL_NONE)
            for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++)
                reference_address(r, (pl_id)i)[e] = 2 * tiny_uniform(5, i, e) - 1;
}

static void check_weight(reference *f, reference *b, const pl_value *v, pl_id id, const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "grad.%s", v->name);
    double *w = reference_address(f, id), *g = reference_find(b, name);
    for (uint64_t e = 0; e < reference_elems(f, id); e++) {
        double old = w[e], step = 1e-5 * (1 + fabs(old));
        w[e] = old + step;
        double above = run(f);
        w[e] = old - step;
        double d = (above - run(f)) / (2 * step);
        w[e] = old;
        if (!(fabs(d - g[e]) <= 1e-6 * fmax(fmax(fabs(d), fabs(g[e])), 1e-2)))
            fail_msg("%s: %s[%llu] is %.12g, the difference is %.12g", of, name, (unsigned long long)e, g[e], d);
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

static bool is_read(const pl_graph *g, pl_id root)
{
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (g->node[i].in[k] != PL_NONE && pl_value_root(g, g->node[i].in[k]) == root) return true;
    return false;
}

/* Every gradient that is computed is one of a trained weight, or goes into one: so nothing is done for frozen ones. */
static void check_needed(const pl_graph *g, const char *name, unsigned frozen)
{
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_OUT_MAX && g->node[i].phase == PL_PHASE_BACKWARD; k++) {
            if (g->node[i].out[k] == PL_NONE || g->node[i].op == PL_OP_ATTENTION_BWD) continue;
            pl_id root = pl_value_root(g, g->node[i].out[k]);
            bool wanted = g->value[root].role == PL_ROLE_GRADIENT || g->value[root].role == PL_ROLE_OUTPUT;
            if (!wanted && !is_read(g, root))
                fail_msg("%s, frozen %x: nobody wants %s", name, frozen, g->value[root].name);
        }
}

/* Trained weights get the gradient that they get when nothing is frozen, to the last bit; frozen ones none. */
static void check_frozen(const char *name, make_op make, reference *whole, unsigned frozen)
{
    pl_graph *g = differentiated(name, make, frozen);
    reference *r = reference_create(g);
    set_weights(g, r);
    run(r);
    check_needed(g, name, frozen);
    for (size_t i = 0; i < g->value_count; i++) {
        char grad[64];
        if (g->value[i].role != PL_ROLE_WEIGHT || g->value[i].view_of != PL_NONE) continue;
        snprintf(grad, sizeof grad, "grad.%s", g->value[i].name);
        assert_int_equal(pl_graph_find_value(g, grad) == PL_NONE, g->value[i].frozen);
        if (!g->value[i].frozen)
            assert_memory_equal(reference_find(r, grad), reference_find(whole, grad),
                                reference_elems(r, (pl_id)i) * sizeof(double));
    }
    reference_destroy(r);
    pl_graph_destroy(g);
}

static void check_operator(const char *name, make_op make)
{
    int weights;
    pl_graph *forward = graph_around(make, 0, &weights), *backward = differentiated(name, make, 0);
    reference *f = reference_create(forward), *b = reference_create(backward);
    set_weights(forward, f);
    set_weights(backward, b); /* ids of the model stay */
    double loss = run(f);
    assert_true(fabs(run(b) - loss) < 1e-12);
    for (size_t i = 0; i < forward->value_count; i++)
        if (forward->value[i].role == PL_ROLE_WEIGHT && forward->value[i].view_of == PL_NONE)
            check_weight(f, b, &forward->value[i], (pl_id)i, name);
    for (unsigned frozen = 1; frozen < 1u << weights; frozen++) check_frozen(name, make, b, frozen);
    reference_destroy(f);
    reference_destroy(b);
    pl_graph_destroy(forward);
    pl_graph_destroy(backward);
}

#define CHECK(what) check_operator(#what, make_##what)

static void operators_agree_with_finite_differences(void **state)
{
    (void)state;
    CHECK(nothing), CHECK(linear), CHECK(linear_bias_residual), CHECK(shared_weight);
    CHECK(feed_forward), CHECK(feed_forward_all), CHECK(feed_forward_between);
    CHECK(gelu), CHECK(silu), CHECK(tanh), CHECK(relu), CHECK(identity), CHECK(sigmoid), CHECK(quick_gelu);
    CHECK(gelu_tanh), CHECK(scale);
    CHECK(layer_norm), CHECK(layer_norm_without_beta), CHECK(rms_norm), CHECK(rms_norm_without_gain);
    CHECK(rms_norm_of_residual_without_gain);
    CHECK(dropout), CHECK(dropout_residual), CHECK(places), CHECK(window);
    CHECK(conv2d), CHECK(conv2d_all), CHECK(conv2d_twice), CHECK(conv2d_patches);
    CHECK(fourier), CHECK(fourier_alone), CHECK(fourier_residual);
    CHECK(attention), CHECK(attention_full), CHECK(attention_fused);
    CHECK(rope), CHECK(rope_adjoint), CHECK(attention_rope), CHECK(attention_rope_fused);
}

static void gradients_that_meet_are_added(void **state)
{
    (void)state;
    CHECK(norm_of_residual), CHECK(add_twice), CHECK(three_ways), CHECK(attention_of_itself);
}

static void windows_in_any_arrangement(void **state)
{
    (void)state;
    CHECK(attention_fused_in_another_order), CHECK(attention_two_on_one), CHECK(attention_windows_on_two);
    CHECK(attention_windows_with_a_gap), CHECK(attention_overlapping_windows), CHECK(attention_one_window);
}

static void a_linear_with_activation_has_two_gradients(void **state)
{
    (void)state;
    CHECK(linear_with_activation);
}

static void check_refused(make_op make, const char *words)
{
    pl_error err = {0};
    int weights;
    pl_graph *g = graph_around(make, 0, &weights);
    assert_int_equal(pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err), PL_E_UNSUPPORTED);
    if (!strstr(err.text, words)) fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    pl_graph_destroy(g);
}

/* What only a pretrained decoder that is used has. */
static pl_id attend_as_decoders(maker *m, pl_id x, int64_t key_heads, int64_t window, double cap)
{
    pl_attention_args a = pl_attention_none;
    a.q = linear(m, x, 4), a.k = linear(m, x, key_heads ? 2 : 4), a.v = linear(m, x, key_heads ? 2 : 4);
    a.heads = 2, a.causal = 1, a.scale = 1, a.key_heads = key_heads, a.window = window, a.cap = cap;
    return pl_build_attention(&m->b, &a);
}

static pl_id make_few_key_heads(maker *m, pl_id x) { return attend_as_decoders(m, x, 1, 0, 0); }
static pl_id make_attention_window(maker *m, pl_id x) { return attend_as_decoders(m, x, 0, 2, 0); }
static pl_id make_cap(maker *m, pl_id x) { return attend_as_decoders(m, x, 0, 0, 2); }

static pl_id make_turned_by_table(maker *m, pl_id x)
{
    pl_rope_table_args t = pl_rope_table_none;
    pl_rope_args a = pl_rope_none;
    a.x = linear(m, x, 4);
    t.positions = m->b.graph->value[x].shape.dim[1], t.half = 1, t.theta = 9;
    pl_build_rope_table(&m->b, &t);
    a.cosine = t.cosine, a.sine = t.sine, a.heads = a.rotated = 2;
    return pl_build_rope(&m->b, &a);
}

static pl_id make_gate_of_two(maker *m, pl_id x)
{
    pl_gated_activation_args a = pl_gated_activation_none;
    a.x = linear(m, x, 4), a.up = linear(m, x, 4), a.act = PL_ACT_SILU;
    return pl_build_gated_activation(&m->b, &a);
}

static void what_has_no_gradient_is_refused(void **state)
{
    (void)state;
    check_refused(make_few_key_heads, "fewer key heads"), check_refused(make_attention_window, "a window");
    check_refused(make_cap, "a cap"), check_refused(make_turned_by_table, "by a table");
    check_refused(make_gate_of_two, "of two values");
    check_refused(make_weight_added, "w1");
    check_refused(make_weight_window, "window");
    check_refused(make_window_into_linear, "window");
}

static pl_id convolved_twice(maker *m, pl_convolution_algorithm algorithm)
{
    pl_id y = convolve(m, image(m, 18, 16, 16), PL_NONE, PL_NONE, 16, (int64_t[]){3, 1, 1}, PL_ACT_NONE, algorithm);
    return convolve(m, y, PL_NONE, PL_NONE, D, (int64_t[]){16, 1, 0}, PL_ACT_NONE, PL_CONVOLUTION_DIRECT);
}

static pl_id make_winograd2(maker *m, pl_id x) { return (void)x, convolved_twice(m, PL_CONVOLUTION_WINOGRAD2); }
static pl_id make_winograd4(maker *m, pl_id x) { return (void)x, convolved_twice(m, PL_CONVOLUTION_WINOGRAD4); }

static void check_algorithm(make_op make, pl_convolution_algorithm algorithm)
{
    pl_graph *g = differentiated("winograd", make, 0);
    int seen = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != PL_OP_CONV2D_DW) continue;
        assert_int_equal(n->conv2d_dw.algorithm,
                         pl_value_at(g, n->conv2d_dw.dweight)->shape.dim[1] == 3 ? algorithm : PL_CONVOLUTION_DIRECT);
        seen++;
    }
    assert_int_equal(seen, 2);
    pl_graph_destroy(g);
}

static void gradients_of_weights_take_the_algorithm(void **state)
{
    (void)state;
    check_algorithm(make_winograd2, PL_CONVOLUTION_WINOGRAD2);
    check_algorithm(make_winograd4, PL_CONVOLUTION_WINOGRAD4);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_agree_with_finite_differences),
        cmocka_unit_test(gradients_that_meet_are_added),
        cmocka_unit_test(windows_in_any_arrangement),
        cmocka_unit_test(a_linear_with_activation_has_two_gradients),
        cmocka_unit_test(what_has_no_gradient_is_refused),
        cmocka_unit_test(gradients_of_weights_take_the_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
