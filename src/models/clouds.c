/* Cloud heights from sequences of images and the place of the sun: the model of docs/clouds.md (arch clouds), under the
 * tensor names of the project that it comes from (MultimodalRegressionModel; images are N,H,W,C here, so a weight of a
 * convolution is [out,kernel,kernel,in]):
 *
 *   spatial_attention.conv1, .conv2                           x·σ(conv2(relu(conv1(x)))), one channel
 *   cnn_layers.0, .5, .10 and .1, .6, .11                     three convolutions, and their batch norms
 *   film_layers.0.film_mlp.0, .2                              what scales and shifts the first one's channels
 *   temporal_attention.fc1, .fc2                              a number for each frame, and the softmax of all
 *   dense_layers.0, .4 and .1, .5, output                     the head, and its batch norms
 *
 *   x = the frame, with attention;  three times x = dropout(pool(leaky_relu(norm(conv(x))))), the first time with FiLM
 *   in front of the pool (which goes first, as conv2d_pool says: what is between the two keeps or turns round the order
 *   of numbers);  v_t = the mean over the pixels;  v = Σ softmax(e)_t·v_t, e_t = fc2(relu(fc1(v_t)));
 *   twice v = dropout(leaky_relu(norm(linear(v))));  height = output(v)
 *
 * architecture.name cnn: one frame, the mean of all, and so v = v_0.
 *
 * Each frame is a scope of its own, "frame.0" …, of which nothing but v_t is read elsewhere: what recompute calls a
 * block. Its norms have the statistics of that frame of the whole batch; the running ones are changed frame by frame,
 * by nodes that nothing repeats. What the angles say to FiLM is the same for all frames, and is computed once.
 *
 * One graph holds three programs: init, train, evaluate. Ports of the data, in this order: "images" f32 [B,T,H,W],
 * "angles" f32 [B,2], "target" f32 [B,1]. Outputs: "train.loss", "evaluate.loss" f64 [1] (sums); "evaluate" stores
 * the predictions, f32 [B,1]. Of the data it takes the extents "height" and "width" of a frame. */
#include <inttypes.h>
#include <math.h>

#include "base/convolution.h"
#include "base/philox.h"
#include "models/model.h"

enum { LAYERS = 3, DENSE = 2, ANGLES = 2, FILM_WIDTH = 256, KERNEL = 3, LEAST_SIDE = 1 << LAYERS };
enum { JOINED_MAX = PL_NODE_IN_MAX, FRAMES_MAX = 64 };
#define NORM_EPS          1e-5
#define NORM_MOMENTUM     0.1
#define OUTPUT_STD        0.5
#define OUTPUT_BIAS       0.1
#define CONVOLUTION_DROPS 0.25
static const double dense_drops[DENSE] = {0.5, 0.3};

typedef struct affine { /* a convolution or a linear layer */
    pl_id weight, bias;
} affine;

typedef struct norm {
    pl_id weight, bias;
    pl_id mean, variance; /* the running ones, as the nodes so far have left them */
} norm;

typedef struct clouds {
    pl_model *m;
    int64_t frames, height, width;
    int64_t channels[LAYERS], dense[DENSE];
    const char *program;
    pl_id images, angles, target;
    affine gate[2], convolution[LAYERS], score[2], head[DENSE], output;
    norm convolution_norm[LAYERS], head_norm[DENSE];
    pl_id film; /* [B,2·channels]: scales, and shifts behind them */
} clouds;

/* ---- sizes ---- */

static bool has_temporal_attention(const pl_config *c)
{
    return c->clouds.use_temporal_attention && c->architecture.name == PL_CONFIG_ARCHITECTURE_TRANSFORMER;
}

static int64_t channels_of(const pl_config *c, int layer)
{
    const int64_t usual = c->clouds.memory_optimized ? 32 : 64;
    return c->clouds.channels.count ? (int64_t)c->clouds.channels.item[layer] : usual << layer;
}

static int64_t dense_of(const pl_config *c, int layer)
{
    const int64_t usual = c->clouds.memory_optimized ? 128 : 256;
    return c->clouds.dense.count ? (int64_t)c->clouds.dense.item[layer] : usual >> layer;
}

/* A builder that has failed gives values that are none. */
static int64_t size_of(const clouds *k, pl_id x, int axis)
{
    return x == PL_NONE ? 1 : k->m->b.graph->value[x].shape.dim[axis];
}

/* ---- what lasts: made in a scope that says whose it is, before any frame ---- */

static affine make_convolution(const clouds *k, int64_t in, int64_t out, int64_t kernel, const char *name)
{
    const double bound = 1 / sqrt((double)(in * kernel * kernel));
    return (affine){pl_model_normal(k->m, sqrt(2.0 / (double)(out * kernel * kernel)),
                                    pl_shape_of(4, out, kernel, kernel, in), "%s.weight", name),
                    pl_model_uniform(k->m, PL_DTYPE_F32, -bound, bound, pl_shape_of(1, out), "%s.bias", name)};
}

static affine make_linear(const clouds *k, int64_t in, int64_t out, const char *name)
{
    return (affine){pl_model_normal(k->m, sqrt(2.0 / (double)(in + out)), pl_shape_of(2, out, in), "%s.weight", name),
                    pl_model_constant(k->m, 0, pl_shape_of(1, out), "%s.bias", name)};
}

static norm make_norm(const clouds *k, int64_t channels, const char *list, int place)
{
    const pl_shape s = pl_shape_of(1, channels);
    return (norm){pl_model_constant(k->m, 1, s, "%s.%d.weight", list, place),
                  pl_model_constant(k->m, 0, s, "%s.%d.bias", list, place),
                  pl_model_state(k->m, 0, s, "%s.%d.running_mean", list, place),
                  pl_model_state(k->m, 1, s, "%s.%d.running_var", list, place)};
}

static void make_convolutions(clouds *k)
{
    static const char *const names[LAYERS] = {"cnn_layers.0", "cnn_layers.5", "cnn_layers.10"};
    pl_builder *b = &k->m->b;
    if (k->m->config->clouds.use_spatial_attention) {
        pl_builder_enter(b, "spatial_attention");
        k->gate[0] = make_convolution(k, 1, 1, KERNEL, "spatial_attention.conv1");
        k->gate[1] = make_convolution(k, 1, 1, 1, "spatial_attention.conv2");
        pl_builder_leave(b);
    }
    for (int i = 0; i < LAYERS; i++) {
        pl_builder_enter(b, "convolution%d", i + 1);
        k->convolution[i] = make_convolution(k, i ? k->channels[i - 1] : 1, k->channels[i], KERNEL, names[i]);
        k->convolution_norm[i] = make_norm(k, k->channels[i], "cnn_layers", 5 * i + 1);
        pl_builder_leave(b);
    }
}

static void make_head(clouds *k)
{
    static const char *const names[DENSE] = {"dense_layers.0", "dense_layers.4"};
    pl_model *m = k->m;
    const int64_t features = k->channels[LAYERS - 1], last = k->dense[DENSE - 1];
    if (has_temporal_attention(m->config)) {
        pl_builder_enter(&m->b, "temporal_attention");
        k->score[0] = make_linear(k, features, features > 1 ? features / 2 : 1, "temporal_attention.fc1");
        k->score[1] = make_linear(k, features > 1 ? features / 2 : 1, 1, "temporal_attention.fc2");
        pl_builder_leave(&m->b);
    }
    pl_builder_enter(&m->b, "head");
    for (int i = 0; i < DENSE; i++) {
        k->head[i] = make_linear(k, i ? k->dense[i - 1] : features, k->dense[i], names[i]);
        k->head_norm[i] = make_norm(k, k->dense[i], "dense_layers", 4 * i + 1);
    }
    k->output.weight = pl_model_normal(m, OUTPUT_STD, pl_shape_of(2, (int64_t)1, last), "output.weight");
    k->output.bias = pl_model_constant(m, OUTPUT_BIAS, pl_shape_of(1, (int64_t)1), "output.bias");
    pl_builder_leave(&m->b);
}

/* ---- layers ---- */

static pl_id activate(const clouds *k, pl_activation act, pl_id x)
{
    pl_id out = PL_NONE;
    return pl_build_node(&k->m->b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(act)}, 1, &x, 1, &out);
}

static pl_id linear(const clouds *k, pl_id x, affine a) { return pl_model_linear(k->m, x, a.weight, a.bias, PL_NONE); }

/* Stride 1, as large as x. */
static pl_convolution_shape shape_of(const clouds *k, pl_id x, affine a)
{
    const int64_t height = size_of(k, x, 1), width = size_of(k, x, 2), kernel = size_of(k, a.weight, 1);
    return (pl_convolution_shape){.batch = 1,
                                  .height = height,
                                  .width = width,
                                  .in = size_of(k, x, 3),
                                  .out_height = height,
                                  .out_width = width,
                                  .out = size_of(k, a.weight, 0),
                                  .kernel = kernel,
                                  .stride = 1,
                                  .pad = kernel / 2};
}

static pl_id convolve(const clouds *k, pl_id x, affine a)
{
    const pl_convolution_shape s = shape_of(k, x, a);
    const pl_attr attr[] = {pl_attr_i(PL_ACT_NONE), pl_attr_i(s.stride), pl_attr_i(s.pad),
                            pl_attr_i(pl_convolution_choose(&s))};
    pl_id out = PL_NONE;
    return pl_build_node(&k->m->b, PL_OP_CONV2D, attr, 3, (pl_id[]){x, a.weight, a.bias}, 1, &out);
}

/* A norm while training: the statistics of this batch come from the moments of rows of `positions`; the running ones
 * come nearer to them. */
static void update_running(const clouds *k, pl_id moments, int64_t positions, norm *n)
{
    const pl_attr how[] = {pl_attr_f(NORM_MOMENTUM), pl_attr_i(positions)};
    pl_id running[2] = {PL_NONE, PL_NONE};
    pl_build_node(&k->m->b, PL_OP_BATCH_NORM_UPDATE, how, 3, (pl_id[]){moments, n->mean, n->variance}, 2, running);
    n->mean = running[0], n->variance = running[1];
}

/* leaky_relu(norm(x)) with the running statistics. */
static pl_id normalise_by_running(const clouds *k, pl_id x, const norm *n)
{
    const pl_attr attr[] = {pl_attr_f(NORM_EPS), pl_attr_i(PL_ACT_LEAKY_RELU)};
    pl_id out = PL_NONE;
    return pl_build_node(&k->m->b, PL_OP_BATCH_NORM_EVAL, attr, 5,
                         (pl_id[]){x, n->mean, n->variance, n->weight, n->bias}, 1, &out);
}

/* pool(film(leaky_relu(norm(conv(x))))), the pool first. */
static pl_id convolve_and_pool(const clouds *k, pl_id x, affine a, norm *n, pl_id film)
{
    pl_builder *b = &k->m->b;
    const pl_convolution_shape s = shape_of(k, x, a);
    const pl_attr how[] = {pl_attr_i(s.stride), pl_attr_i(s.pad), pl_attr_i(pl_convolution_choose(&s))};
    const pl_attr attr[] = {pl_attr_f(NORM_EPS), pl_attr_i(PL_ACT_LEAKY_RELU), pl_attr_i(s.out_width)};
    pl_id out[4] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE}, in[5] = {x, a.weight, n->weight, a.bias, film};
    pl_build_node(b, PL_OP_CONV2D_POOL, how, 5, in, k->m->training ? 4 : 1, out);
    if (!k->m->training) {
        pl_id scaled = PL_NONE, normed_x = normalise_by_running(k, out[0], n);
        if (film == PL_NONE) return normed_x;
        return pl_build_node(b, PL_OP_FILM, NULL, 2, (pl_id[]){normed_x, film}, 1, &scaled);
    }
    update_running(k, out[2], s.out_width, n);
    pl_id normed[3] = {PL_NONE, PL_NONE, PL_NONE};
    return pl_build_node(b, PL_OP_POOLED_BATCH_NORM, attr, 5, (pl_id[]){out[0], out[2], n->weight, n->bias, film}, 3,
                         normed);
}

/* leaky_relu(norm(x)) of the head's rows. */
static pl_id normalise(const clouds *k, pl_id x, norm *n)
{
    pl_builder *b = &k->m->b;
    const pl_attr attr[] = {pl_attr_f(NORM_EPS), pl_attr_i(PL_ACT_LEAKY_RELU)};
    pl_id moments = PL_NONE, out[3] = {PL_NONE, PL_NONE, PL_NONE};
    if (!k->m->training) return normalise_by_running(k, x, n);
    pl_build_node(b, PL_OP_CHANNEL_MOMENTS, NULL, 1, &x, 1, &moments);
    update_running(k, moments, size_of(k, x, 2), n);
    return pl_build_node(b, PL_OP_BATCH_NORM, attr, 4, (pl_id[]){x, moments, n->weight, n->bias}, 3, out);
}

static pl_id drop(const clouds *k, pl_op op, double probability, pl_id x)
{
    pl_model *m = k->m;
    const pl_attr attr[] = {pl_attr_f(probability), pl_attr_i((int64_t)m->seed),
                            pl_attr_i((int64_t)pl_stream_id(m->b.scope))};
    pl_id out = PL_NONE;
    if (!m->training) return x;
    return pl_build_node(&m->b, op, attr, 3, (pl_id[]){x, m->input[PL_INPUT_STEP], m->input[PL_INPUT_FIRST_SAMPLE]}, 1,
                         &out);
}

/* The mean over all pixels. */
static pl_id mean_of(const clouds *k, pl_id x)
{
    pl_id out = PL_NONE;
    return pl_build_node(&k->m->b, PL_OP_ADAPTIVE_AVG_POOL, (pl_attr[]){pl_attr_i(1), pl_attr_i(1)}, 1, &x, 1, &out);
}

/* ---- a frame ---- */

static pl_shape image_of(const clouds *k) { return pl_shape_of(4, PL_B(1), k->height, k->width, (int64_t)1); }

/* A copy of frame t, where the precision begins that the pass of that name may narrow. */
static pl_id take_frame(const clouds *k, int64_t t)
{
    pl_builder *b = &k->m->b;
    const int64_t pixels = k->height * k->width, stride[PL_RANK_MAX] = {k->frames * pixels, k->width, 1, 1};
    pl_id window = pl_build_view(b, k->images, image_of(k), t * pixels, stride);
    pl_id frame =
        pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, image_of(k), "%s.frame.%" PRId64, k->program, t);
    return pl_build_node(b, PL_OP_CAST, NULL, 1, &window, 1, &frame);
}

/* Of a pixel the frames are the rows of an image whose channels are the pixels. */
static pl_id take_mean_frame(const clouds *k)
{
    pl_builder *b = &k->m->b;
    pl_id rows =
        pl_build_view(b, k->images, pl_shape_of(4, PL_B(1), k->frames, (int64_t)1, k->height * k->width), 0, NULL);
    pl_id mean = mean_of(k, rows);
    pl_id window = pl_build_view(b, mean, image_of(k), 0, NULL);
    pl_id frame = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, image_of(k), "%s.frame.mean", k->program);
    return pl_build_node(b, PL_OP_CAST, NULL, 1, &window, 1, &frame);
}

static pl_id attend_to_pixels(const clouds *k, pl_id x)
{
    pl_builder *b = &k->m->b;
    pl_id out = PL_NONE;
    if (!k->m->config->clouds.use_spatial_attention) return x;
    pl_builder_enter(b, "spatial_attention");
    pl_id map = activate(k, PL_ACT_RELU, convolve(k, x, k->gate[0]));
    pl_build_node(b, PL_OP_GATE, NULL, 2, (pl_id[]){x, convolve(k, map, k->gate[1])}, 1, &out);
    pl_builder_leave(b);
    return out;
}

static pl_id layer(clouds *k, pl_id x, int i)
{
    pl_builder *b = &k->m->b;
    pl_builder_enter(b, "convolution%d", i + 1);
    x = convolve_and_pool(k, x, k->convolution[i], &k->convolution_norm[i], i == 0 ? k->film : PL_NONE);
    x = drop(k, PL_OP_CHANNEL_DROPOUT, CONVOLUTION_DROPS, x);
    pl_builder_leave(b);
    return x;
}

/* v_t [B,1,1,channels], in f32 whatever the precision is: the head is small. */
static pl_id through_frame(clouds *k, int64_t t)
{
    pl_builder *b = &k->m->b;
    const bool is_mean = k->m->config->architecture.name == PL_CONFIG_ARCHITECTURE_CNN;
    const pl_shape features = pl_shape_of(4, PL_B(1), (int64_t)1, (int64_t)1, k->channels[LAYERS - 1]);
    pl_builder_enter(b, "frame.%" PRId64, t);
    pl_id x = attend_to_pixels(k, is_mean ? take_mean_frame(k) : take_frame(k, t));
    for (int i = 0; i < LAYERS; i++) x = layer(k, x, i);
    pl_id v = mean_of(k, x);
    pl_id wide =
        pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, features, "%s.features.%" PRId64, k->program, t);
    v = pl_build_node(b, PL_OP_CAST, NULL, 1, &v, 1, &wide);
    pl_builder_leave(b);
    return v;
}

/* ---- frames together ---- */

/* Side by side, in their order; a node takes no more than so many at once. */
static pl_id join(const clouds *k, pl_id *part, int64_t count)
{
    while (count > 1) {
        int64_t joined = 0;
        for (int64_t i = 0; i < count; joined++) {
            const int64_t n = count - i < JOINED_MAX ? count - i : JOINED_MAX;
            pl_id out = PL_NONE;
            part[joined] = n == 1 ? part[i] : pl_build_node(&k->m->b, PL_OP_CONCAT, NULL, (int)n, part + i, 1, &out);
            i += n;
        }
        count = joined;
    }
    return part[0];
}

/* Without attention all frames have the same score. */
static pl_id scores_of(const clouds *k, const pl_id *v)
{
    pl_builder *b = &k->m->b;
    const pl_shape shape = pl_shape_of(4, PL_B(1), (int64_t)1, (int64_t)1, k->frames);
    pl_id e[FRAMES_MAX];
    if (!has_temporal_attention(k->m->config)) {
        pl_id same = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, shape, "%s.scores", k->program);
        return pl_build_node(b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &same);
    }
    for (int64_t t = 0; t < k->frames; t++)
        e[t] = linear(k, activate(k, PL_ACT_RELU, linear(k, v[t], k->score[0])), k->score[1]);
    return join(k, e, k->frames);
}

static pl_id through_frames(clouds *k)
{
    pl_builder *b = &k->m->b;
    pl_id v[FRAMES_MAX], out = PL_NONE;
    if (k->m->config->architecture.name == PL_CONFIG_ARCHITECTURE_CNN) return through_frame(k, 0);
    for (int64_t t = 0; t < k->frames; t++) v[t] = through_frame(k, t);
    pl_builder_enter(b, "temporal_attention");
    pl_id e = scores_of(k, v);
    pl_build_node(b, PL_OP_SOFTMAX_POOL, NULL, 2, (pl_id[]){join(k, v, k->frames), e}, 1, &out);
    pl_builder_leave(b);
    return out;
}

static pl_id film_of(const clouds *k)
{
    pl_builder *b = &k->m->b;
    pl_builder_enter(b, "film");
    const affine first = make_linear(k, ANGLES, FILM_WIDTH, "film_layers.0.film_mlp.0");
    const affine second = make_linear(k, FILM_WIDTH, 2 * k->channels[0], "film_layers.0.film_mlp.2");
    pl_id film = linear(k, activate(k, PL_ACT_RELU, linear(k, k->angles, first)), second);
    pl_builder_leave(b);
    return film;
}

static pl_id through_head(clouds *k, pl_id v)
{
    pl_builder *b = &k->m->b;
    pl_builder_enter(b, "head");
    for (int i = 0; i < DENSE; i++) {
        pl_builder_enter(b, "dense%d", i + 1);
        v = drop(k, PL_OP_DROPOUT, dense_drops[i], normalise(k, linear(k, v, k->head[i]), &k->head_norm[i]));
        pl_builder_leave(b);
    }
    v = linear(k, v, k->output);
    pl_builder_leave(b);
    return v;
}

/* ---- programs ---- */

static void give_out(const clouds *k, pl_id prediction)
{
    pl_builder *b = &k->m->b;
    pl_id rows = pl_build_view(b, prediction, pl_shape_of(2, PL_B(1), (int64_t)1), 0, NULL);
    pl_builder_enter(b, "results");
    pl_build_node(b, PL_OP_STORE, NULL, 1, &rows, 0, NULL);
    pl_builder_leave(b);
}

static pl_status build_program(clouds *k, const char *name, bool training)
{
    pl_model *m = k->m;
    const pl_model_port ports[] = {{"images", PL_DTYPE_F32, pl_shape_of(4, PL_B(1), k->frames, k->height, k->width)},
                                   {"angles", PL_DTYPE_F32, pl_shape_of(2, PL_B(1), (int64_t)ANGLES)},
                                   {"target", PL_DTYPE_F32, pl_shape_of(2, PL_B(1), (int64_t)1)}};
    pl_id program = pl_model_begin_program(m, name), load[3];
    m->training = training;
    k->program = name;
    pl_id loss = pl_model_loss(m, name);
    PL_TRY(pl_model_begin_micro(m, program, ports, 3, load));
    k->images = load[0], k->angles = load[1], k->target = load[2];
    make_convolutions(k);
    make_head(k);
    k->film = film_of(k);
    pl_id prediction = through_head(k, through_frames(k));
    pl_builder_enter(&m->b, "loss");
    pl_model_regression_loss(m, prediction, k->target, loss);
    pl_builder_leave(&m->b);
    if (!training) give_out(k, prediction);
    return m->b.status;
}

/* All that a step makes, some eight values of each size, far below what 64 bits count. */
static pl_status check_size(const clouds *k)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config *c = k->m->config;
    double channels = 1;
    for (int i = 0; i < LAYERS; i++) channels += ldexp((double)k->channels[i], -2 * i);
    const double bytes = 8 * sizeof(float) * channels * (double)k->height * (double)k->width * (double)k->frames *
                         (double)c->train.batch_size;
    if (bytes <= 0x1p60) return PL_OK;
    return pl_fail(k->m->err, PL_E_CONFIG,
                   "%s: train.batch_size %" PRId64 " times temporal_frames %" PRId64 " times frames of %" PRId64
                   " × %" PRId64 " pixels with %" PRId64 " channels exceed 2^60 bytes; take smaller numbers",
                   pl_config_blame(c, "train.batch_size", "channels", where), c->train.batch_size, k->frames, k->height,
                   k->width, k->channels[0]);
}

static pl_status check_frame(const clouds *k)
{
    if (k->height >= LEAST_SIDE && k->width >= LEAST_SIDE) return check_size(k);
    return pl_fail(k->m->err, PL_E_CONFIG,
                   "frames of %" PRId64 " × %" PRId64
                   " pixels are too small for three halvings; take data with at least %d × %d, or more rows of them "
                   "with swath_slice",
                   k->height, k->width, LEAST_SIDE, LEAST_SIDE);
}

static pl_status build(pl_model *m)
{
    static const pl_input inputs[] = {PL_INPUT_LR, PL_INPUT_STEP, PL_INPUT_ITEM_SCALE, PL_INPUT_FIRST_SAMPLE};
    const pl_config *c = m->config;
    clouds k = {.m = m,
                .frames = c->clouds.temporal_frames,
                .height = (int64_t)pl_facts_value(m->extents, "height", 0),
                .width = (int64_t)pl_facts_value(m->extents, "width", 0)};
    for (int i = 0; i < LAYERS; i++) k.channels[i] = channels_of(c, i);
    for (int i = 0; i < DENSE; i++) k.dense[i] = dense_of(c, i);
    PL_TRY(check_frame(&k));
    pl_model_inputs(m, inputs, sizeof inputs / sizeof *inputs);
    PL_TRY(m->b.status);
    PL_TRY(build_program(&k, "train", true));
    return build_program(&k, "evaluate", false);
}

/* ---- its part of a config ---- */

/* Of one sample there is no variance. */
static pl_status check(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (c->train.batch_size >= 2) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: train.batch_size 1 leaves batch norm nothing to compare a sample with; take at least 2",
                   pl_config_where(c, "train.batch_size", where, sizeof where));
}

const pl_arch pl_arch_clouds = {.build = build, .check = check, .plan_bytes_per_layer = 1 << 10};
