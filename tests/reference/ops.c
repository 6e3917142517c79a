/* The table of operators, and those that need no file of their own: tables, first values, dropout, the optimizer. */
#include <math.h>

#include "base/philox.h"
#include "reference/state.h"

static void outside(operands *o) { (void)o; } /* the interpreter calls the caller's hook instead */

/* y[r, j·D …] = E[token[r − j]] (zeros before the beginning and for token −1) + P[position + t] */
static void embedding(operands *o)
{
    const pl_shape *tokens = &operand(o, 0)->shape;
    int64_t window = o->node->attr[0].i, width = operand(o, 1)->shape.dim[1], first = 0;
    const int64_t positions = o->in[3] ? operand(o, 3)->shape.dim[0] : 0;
    double *y = scratch(o, (uint64_t)(tokens->dim[0] * tokens->dim[1] * window * width)), *at = y;
    for (int64_t b = 0; b < tokens->dim[0]; b++)
        for (int64_t t = 0; t < tokens->dim[1]; t++)
            for (int64_t j = 0; j < window; j++)
                for (int64_t d = 0; d < width; d++, at++) {
                    int64_t token = j <= t ? (int64_t)o->in[0][b * tokens->dim[1] + t - j] : -1;
                    if (positions) first = (int64_t)o->in[3][positions > 1 ? b : 0];
                    *at = (token >= 0 ? o->in[1][token * width + d] : 0) +
                          (o->in[2] ? o->in[2][(first + t) * width + d] : 0);
                }
    put(o, 0, y);
}

static void embedding_bwd(operands *o)
{
    const pl_shape *tokens = &operand(o, 0)->shape;
    int64_t window = o->node->attr[0].i, width = operand(o, o->in[2] ? 2 : 3)->shape.dim[1];
    const double *dy = o->in[1];
    for (int64_t b = 0; b < tokens->dim[0]; b++)
        for (int64_t t = 0; t < tokens->dim[1]; t++)
            for (int64_t j = 0; j < window; j++)
                for (int64_t d = 0; d < width; d++, dy++) {
                    int64_t token = j <= t ? (int64_t)o->in[0][b * tokens->dim[1] + t - j] : -1;
                    if (o->in[2] && token >= 0) o->in[2][token * width + d] += *dy;
                    if (o->in[3]) o->in[3][t * width + d] += *dy;
                }
    if (o->in[2]) put(o, 0, o->in[2]);
    if (o->in[3]) put(o, 1, o->in[3]);
}

/* Element e of sample s is kept when uniform(bits of (step, first + s, e)) ≥ p; kept elements are scaled by 1/(1 − p).
 */
static void dropout(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    uint64_t samples = (uint64_t)s->dim[0], elems = pl_shape_elems(s) / samples;
    float p = (float)o->node->attr[0].f;
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[1].i, (uint64_t)o->node->attr[2].i);
    for (uint64_t i = 0; i < samples; i++)
        for (uint64_t e = 0; e < elems; e++) {
            uint32_t bits[4];
            pl_philox_block(&philox, (uint32_t)o->in[1][0], (uint64_t)o->in[2][0] + i, (uint32_t)(e / 4), bits);
            double *x = &o->in[0][i * elems + e];
            *x = pl_uniform_f32(bits[e % 4]) >= p ? *x / (1 - (double)p) : 0;
            if (o->in[3]) *x += o->in[3][i * elems + e];
        }
    put(o, 0, o->in[0]);
}

static void add(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[0][i] += o->in[1][i];
    put(o, 0, o->in[0]);
}

static void scale(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[0][i] *= o->node->scale.factor;
    put(o, 0, o->in[0]);
}

/* Numbers are double here, however they are stored: a cast is a copy, and what rounding costs shows in comparisons. */
static void cast(operands *o) { put(o, 0, o->in[0]); }

static void fill(operands *o)
{
    uint64_t n = reference_elems(o->r, o->node->out[0]);
    double *y = scratch(o, n);
    for (uint64_t i = 0; i < n; i++) y[i] = o->node->attr[0].f;
    put(o, 0, y);
}

static void normal(operands *o)
{
    uint64_t n = reference_elems(o->r, o->node->out[0]);
    double *y = scratch(o, n);
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[1].i, (uint64_t)o->node->attr[2].i);
    for (uint64_t i = 0; i < n; i++) {
        float z;
        pl_philox_normal_f32(&philox, 0, 0, i, i + 1, &z);
        y[i] = z * (float)o->node->attr[0].f;
    }
    put(o, 0, y);
}

/* By halving: the place below which erf has the uniform number's share of what lies within two deviations. */
static void truncated_normal(operands *o)
{
    uint64_t n = reference_elems(o->r, o->node->out[0]);
    double *y = scratch(o, n), within = erf(sqrt(2));
    double left = sqrt(1 - 4 * exp(-2) / sqrt(2 * acos(-1)) / within); /* deviation of what is within */
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[1].i, (uint64_t)o->node->attr[2].i);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits[4];
        double low = -2, high = 2;
        pl_philox_block(&philox, 0, 0, (uint32_t)(i / 4), bits);
        const double share = ((bits[i % 4] >> 8) / 8388608.0 - 1) * within;
        for (int k = 0; k < 60; k++) {
            const double middle = (low + high) / 2;
            *(erf(middle / sqrt(2)) < share ? &low : &high) = middle;
        }
        y[i] = low * o->node->attr[0].f / left;
    }
    put(o, 0, y);
}

static void uniform(operands *o)
{
    uint64_t n = reference_elems(o->r, o->node->out[0]);
    double *y = scratch(o, n);
    double low = o->node->attr[0].f, high = o->node->attr[1].f;
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[2].i, (uint64_t)o->node->attr[3].i);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits[4];
        pl_philox_block(&philox, 0, o->in[0] ? (uint64_t)o->in[0][0] : 0, (uint32_t)(i / 4), bits);
        y[i] = low + (bits[i % 4] >> 8) / 16777216.0 * (high - low);
    }
    put(o, 0, y);
}

static void sum_squares(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[1][0] += o->in[0][i] * o->in[0][i];
    put(o, 0, o->in[1]);
}

/* g *= min(1, c/(norm + 1e-6)), where g was multiplied with a loss scale: and divided by it; an update with a norm that
 * is not finite is skipped */
static void clip_scale(operands *o)
{
    double s = o->in[1] ? o->in[1][0] : 1, finite = isfinite(o->in[0][0]), c = o->node->attr[0].f;
    double scale = c > 0 ? c / (sqrt(o->in[0][0]) / s + 1e-6) : 1;
    scale = !finite ? 0 : (scale < 1 ? scale : 1) / s;
    put(o, 0, &scale);
    put(o, 1, &finite);
    double skipped = (o->in[2] ? o->in[2][0] : 0) + !finite;
    if (o->in[2]) put(o, 2, &skipped);
}

static void loss_scale(operands *o)
{
    bool finite = o->in[0][0] != 0, grows = finite && o->in[2][0] + 1 >= (double)o->node->attr[0].i;
    double scale = !finite ? fmax(o->in[1][0] / 2, 1) : grows ? o->in[1][0] * 2 : o->in[1][0];
    double good = finite && !grows ? o->in[2][0] + 1 : 0;
    put(o, 0, &scale);
    put(o, 1, &good);
}

/* Moments are never rounded here, whatever form they have: of rows of 8-bit blocks the first elements are used.
 * m = b1 m + (1−b1) g; v = b2 v + (1−b2) g²; w −= lr·wd·w; w −= lr·(m/(1−b1ᵗ))/(√(v/(1−b2ᵗ)) + eps) */
static void adamw(operands *o)
{
    double *w = o->in[0], *m = o->in[2], *v = o->in[3], lr = o->in[4][0],
           t = o->in[5][0] - (o->in[7] ? o->in[7][0] : 0), scale = o->in[6] ? o->in[6][0] : 1;
    double b1 = (float)o->node->attr[0].f, b2 = (float)o->node->attr[1].f, eps = o->node->attr[2].f,
           wd = o->node->attr[3].f;
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) {
        double g = o->in[1][i] * scale;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        w[i] -= lr * wd * w[i];
        w[i] -= lr * (m[i] / (1 - pow(b1, t))) / (sqrt(v[i] / (1 - pow(b2, t))) + eps);
        if (o->node->attr[6].f > 0) w[i] = fmax(-o->node->attr[6].f, fmin(w[i], o->node->attr[6].f));
    }
    put(o, 0, w);
    put(o, 1, m);
    put(o, 2, v);
}

/* Likewise, but w −= lr·atan2(m/(1−b1ᵗ), √(v/(1−b2ᵗ))) */
static void adam_atan2(operands *o)
{
    double *w = o->in[0], *m = o->in[2], *v = o->in[3], lr = o->in[4][0],
           t = o->in[5][0] - (o->in[7] ? o->in[7][0] : 0), scale = o->in[6] ? o->in[6][0] : 1;
    double b1 = (float)o->node->attr[0].f, b2 = (float)o->node->attr[1].f, wd = o->node->attr[2].f;
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) {
        double g = o->in[1][i] * scale;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        w[i] -= lr * wd * w[i];
        w[i] -= lr * atan2(m[i] / (1 - pow(b1, t)), sqrt(v[i] / (1 - pow(b2, t))));
        if (o->node->attr[5].f > 0) w[i] = fmax(-o->node->attr[5].f, fmin(w[i], o->node->attr[5].f));
    }
    put(o, 0, w);
    put(o, 1, m);
    put(o, 2, v);
}

static void ema(operands *o)
{
    double *average = o->in[0], rate = (float)o->node->attr[0].f;
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) average[i] = rate * average[i] + (1 - rate) * o->in[1][i];
    put(o, 0, average);
}

const reference_op reference_ops[PL_OP_COUNT] = {
    [PL_OP_LOAD] = outside,
    [PL_OP_STORE] = outside,
    [PL_OP_EMBEDDING] = embedding,
    [PL_OP_EMBEDDING_BWD] = embedding_bwd,
    [PL_OP_LAYER_NORM] = reference_layer_norm,
    [PL_OP_LAYER_NORM_BWD] = reference_layer_norm_bwd,
    [PL_OP_RMS_NORM] = reference_rms_norm,
    [PL_OP_RMS_NORM_BWD] = reference_rms_norm_bwd,
    [PL_OP_CHANNEL_MOMENTS] = reference_channel_moments,
    [PL_OP_GROUP_NORM] = reference_group_norm,
    [PL_OP_GROUP_NORM_BWD] = reference_group_norm_bwd,
    [PL_OP_BATCH_NORM] = reference_batch_norm,
    [PL_OP_BATCH_NORM_BWD] = reference_batch_norm_bwd,
    [PL_OP_POOLED_BATCH_NORM] = reference_pooled_batch_norm,
    [PL_OP_POOLED_BATCH_NORM_BWD] = reference_pooled_batch_norm_bwd,
    [PL_OP_BATCH_NORM_SPREAD] = reference_batch_norm_spread,
    [PL_OP_CONV2D_POOL] = reference_conv2d_pool,
    [PL_OP_CONV2D_POOL_BWD] = reference_conv2d_pool_bwd,
    [PL_OP_BATCH_NORM_UPDATE] = reference_batch_norm_update,
    [PL_OP_BATCH_NORM_EVAL] = reference_batch_norm_eval,
    [PL_OP_BATCH_NORM_EVAL_BWD] = reference_batch_norm_eval_bwd,
    [PL_OP_MAX_POOL] = reference_max_pool,
    [PL_OP_MAX_POOL_BWD] = reference_max_pool_bwd,
    [PL_OP_AVG_POOL] = reference_avg_pool,
    [PL_OP_AVG_POOL_BWD] = reference_avg_pool_bwd,
    [PL_OP_ADAPTIVE_AVG_POOL] = reference_adaptive_avg_pool,
    [PL_OP_ADAPTIVE_AVG_POOL_BWD] = reference_adaptive_avg_pool_bwd,
    [PL_OP_UPSAMPLE_BILINEAR] = reference_upsample_bilinear,
    [PL_OP_UPSAMPLE_BILINEAR_BWD] = reference_upsample_bilinear_bwd,
    [PL_OP_CONCAT] = reference_concat,
    [PL_OP_SLICE] = reference_slice,
    [PL_OP_SLICE_BWD] = reference_slice_bwd,
    [PL_OP_APPEND_COORDINATES] = reference_append_coordinates,
    [PL_OP_CHANNEL_DROPOUT] = reference_channel_dropout,
    [PL_OP_PATH_DROPOUT] = reference_path_dropout,
    [PL_OP_CARRY_READ] = reference_carry_read,
    [PL_OP_CARRY_WRITE] = reference_carry_write,
    [PL_OP_HALT] = reference_halt,
    [PL_OP_RAMP] = reference_ramp,
    [PL_OP_NEAREST_CODE] = reference_nearest_code,
    [PL_OP_CODE_SUM] = reference_code_sum,
    [PL_OP_CODE_UPDATE] = reference_code_update,
    [PL_OP_STRAIGHT_THROUGH] = reference_straight_through,
    [PL_OP_GATE] = reference_gate,
    [PL_OP_GATE_BWD] = reference_gate_bwd,
    [PL_OP_BLEND] = reference_blend,
    [PL_OP_BLEND_BWD] = reference_blend_bwd,
    [PL_OP_FILM] = reference_film,
    [PL_OP_FILM_BWD] = reference_film_bwd,
    [PL_OP_SOFTMAX_POOL] = reference_softmax_pool,
    [PL_OP_SOFTMAX_POOL_BWD] = reference_softmax_pool_bwd,
    [PL_OP_SIGMOID_ATTENTION] = reference_sigmoid_attention,
    [PL_OP_SIGMOID_ATTENTION_BWD] = reference_sigmoid_attention_bwd,
    [PL_OP_PATCHES] = reference_patches,
    [PL_OP_PIXELS] = reference_pixels,
    [PL_OP_LINEAR_INT8] = reference_linear_int8,
    [PL_OP_HIDDEN_INT8] = reference_hidden_int8,
    [PL_OP_OBSERVE_DIFFERENCE] = reference_observe_difference,
    [PL_OP_OBSERVE_EXTREMES] = reference_observe_extremes,
    [PL_OP_OBSERVE_SPREAD] = reference_observe_spread,
    [PL_OP_OVERWRITE] = reference_overwrite,
    [PL_OP_PERTURB] = reference_perturb,
    [PL_OP_SHIFT] = reference_shift,
    [PL_OP_ADD_POSITIONS] = reference_add_positions,
    [PL_OP_PREPEND_ROW] = reference_prepend_row,
    [PL_OP_DROP_ROW] = reference_drop_row,
    [PL_OP_ROPE] = reference_rope,
    [PL_OP_ROPE_TABLE] = reference_rope_table,
    [PL_OP_CAPSULE_POOL] = reference_capsule_pool,
    [PL_OP_CAPSULE_POOL_BWD] = reference_capsule_pool_bwd,
    [PL_OP_TOP_K] = reference_top_k,
    [PL_OP_GATHER_ROWS] = reference_gather_rows,
    [PL_OP_GATHER_ROWS_BWD] = reference_gather_rows_bwd,
    [PL_OP_REPEAT] = reference_repeat,
    [PL_OP_REPEAT_BWD] = reference_repeat_bwd,
    [PL_OP_LINEAR] = reference_linear,
    [PL_OP_LINEAR_DX] = reference_linear_dx,
    [PL_OP_LINEAR_DW] = reference_linear_dw,
    [PL_OP_FEED_FORWARD] = reference_feed_forward,
    [PL_OP_FEED_FORWARD_BWD] = reference_feed_forward_bwd,
    [PL_OP_GATED_ACTIVATION] = reference_gated_activation,
    [PL_OP_GATED_ACTIVATION_BWD] = reference_gated_activation_bwd,
    [PL_OP_PACK_SIGNS] = reference_pack_signs,
    [PL_OP_LINEAR_BINARY] = reference_linear_binary,
    [PL_OP_LINEAR_BINARY_DX] = reference_linear_binary_dx,
    [PL_OP_LINEAR_BINARY_DW] = reference_linear_binary_dw,
    [PL_OP_LATENT_GRADIENT] = reference_latent_gradient,
    [PL_OP_GATED_FEED_FORWARD] = reference_gated_feed_forward,
    [PL_OP_GATED_FEED_FORWARD_BWD] = reference_gated_feed_forward_bwd,
    [PL_OP_COLUMN_SUM] = reference_column_sum,
    [PL_OP_CONV2D] = reference_conv2d,
    [PL_OP_CONV2D_DX] = reference_conv2d_dx,
    [PL_OP_CONV2D_DW] = reference_conv2d_dw,
    [PL_OP_CONV_TRANSPOSE2D] = reference_conv_transpose2d,
    [PL_OP_ACTIVATION] = reference_activation,
    [PL_OP_ACTIVATION_BWD] = reference_activation_bwd,
    [PL_OP_ATTENTION] = reference_attention,
    [PL_OP_ATTENTION_BWD] = reference_attention_bwd,
    [PL_OP_CACHE_WRITE] = reference_cache_write,
    [PL_OP_LINEAR_CE] = reference_linear_ce,
    [PL_OP_LINEAR_CE_BWD] = reference_linear_ce_bwd,
    [PL_OP_REGRESSION_LOSS] = reference_regression_loss,
    [PL_OP_REGRESSION_LOSS_BWD] = reference_regression_loss_bwd,
    [PL_OP_MINED_REGRESSION_LOSS] = reference_regression_loss,
    [PL_OP_MINED_REGRESSION_LOSS_BWD] = reference_regression_loss_bwd,
    [PL_OP_CROSS_ENTROPY] = reference_row_loss,
    [PL_OP_CROSS_ENTROPY_BWD] = reference_row_loss,
    [PL_OP_COUNT_RIGHT] = reference_count_right,
    [PL_OP_BCE_WITH_LOGITS] = reference_row_loss,
    [PL_OP_BCE_WITH_LOGITS_BWD] = reference_row_loss,
    [PL_OP_COSINE_LOSS] = reference_row_loss,
    [PL_OP_COSINE_LOSS_BWD] = reference_row_loss,
    [PL_OP_SQUARED_ERROR] = reference_row_loss,
    [PL_OP_SQUARED_ERROR_BWD] = reference_row_loss,
    [PL_OP_NORM_PENALTY] = reference_row_loss,
    [PL_OP_NORM_PENALTY_BWD] = reference_row_loss,
    [PL_OP_DROPOUT] = dropout,
    [PL_OP_ADD] = add,
    [PL_OP_DETACH] = cast,
    [PL_OP_SCALE] = scale,
    [PL_OP_CAST] = cast,
    [PL_OP_ADD_TO] = add,
    [PL_OP_REPLACE] = cast,
    [PL_OP_FILL] = fill,
    [PL_OP_NORMAL] = normal,
    [PL_OP_TRUNCATED_NORMAL] = truncated_normal,
    [PL_OP_UNIFORM] = uniform,
    [PL_OP_SUM_SQUARES] = sum_squares,
    [PL_OP_CLIP_SCALE] = clip_scale,
    [PL_OP_LOSS_SCALE] = loss_scale,
    [PL_OP_ADAMW] = adamw,
    [PL_OP_ADAM_ATAN2] = adam_atan2,
    [PL_OP_EMA] = ema,
    [PL_OP_NOISE] = reference_noise,
    [PL_OP_EVOLVE] = reference_evolve,
    [PL_OP_FIELD_METRICS] = reference_field_metrics,
    [PL_OP_RFFT2] = reference_rfft2,
    [PL_OP_IRFFT2] = reference_irfft2,
    [PL_OP_SPECTRAL_LINEAR] = reference_spectral_linear,
    [PL_OP_SPECTRAL_LINEAR_DX] = reference_spectral_linear_dx,
    [PL_OP_SPECTRAL_LINEAR_DW] = reference_spectral_linear_dw,
};
