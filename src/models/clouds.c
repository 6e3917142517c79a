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
#include <string.h>

#include "base/convolution.h"
#include "models/model.h"

enum { LAYERS = 3, DENSE = 2, ANGLES = 2, FILM_WIDTH = 256, KERNEL = 3, LEAST_SIDE = 1 << LAYERS };
enum { JOINED_MAX = PL_INS_OF_CONCAT, FRAMES_MAX = 64 };
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
    pl_activation_args a = pl_activation_none;
    a.x = x, a.act = act;
    return pl_build_activation(&k->m->b, &a);
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
    pl_conv2d_args c = pl_conv2d_none;
    c.x = x, c.weight = a.weight, c.bias = a.bias;
    c.act = PL_ACT_NONE, c.stride = s.stride, c.pad = s.pad, c.algorithm = pl_convolution_choose(&s);
    return pl_build_conv2d(&k->m->b, &c);
}

/* A norm while training: the statistics of this batch come from the moments of rows of `positions`; the running ones
 * come nearer to them. */
static void update_running(const clouds *k, pl_id moments, int64_t positions, norm *n)
{
    pl_batch_norm_update_args a = pl_batch_norm_update_none;
    a.moments = moments, a.mean = n->mean, a.variance = n->variance;
    a.momentum = NORM_MOMENTUM, a.positions = positions;
    pl_build_batch_norm_update(&k->m->b, &a);
    n->mean = a.mean_new, n->variance = a.variance_new;
}

/* leaky_relu(norm(x)) with the running statistics. */
static pl_id normalise_by_running(const clouds *k, pl_id x, const norm *n)
{
    pl_batch_norm_eval_args a = pl_batch_norm_eval_none;
    a.x = x, a.mean = n->mean, a.variance = n->variance, a.gamma = n->weight, a.beta = n->bias;
    a.eps = NORM_EPS, a.act = PL_ACT_LEAKY_RELU;
    return pl_build_batch_norm_eval(&k->m->b, &a);
}

/* film(leaky_relu(norm(x))) with the running statistics, where there is FiLM. */
static pl_id modulate_by_running(const clouds *k, pl_id x, const norm *n, pl_id film)
{
    pl_film_args a = pl_film_none;
    a.x = normalise_by_running(k, x, n), a.film = film;
    return film == PL_NONE ? a.x : pl_build_film(&k->m->b, &a);
}

/* Likewise with those of the batch. */
static pl_id modulate_by_batch(const clouds *k, const pl_conv2d_pool_args *x, int64_t positions, norm *n)
{
    pl_pooled_batch_norm_args a = pl_pooled_batch_norm_none;
    update_running(k, x->moments, positions, n);
    a.x = x->pooled, a.moments = x->moments, a.gamma = n->weight, a.beta = n->bias, a.film = x->film;
    a.mean = a.rstd = PL_NONE;
    a.eps = NORM_EPS, a.act = PL_ACT_LEAKY_RELU, a.positions = positions;
    return pl_build_pooled_batch_norm(&k->m->b, &a);
}

/* pool(film(leaky_relu(norm(conv(x))))), the pool first. */
static pl_id convolve_and_pool(const clouds *k, pl_id x, affine a, norm *n, pl_id film)
{
    const pl_convolution_shape s = shape_of(k, x, a);
    pl_conv2d_pool_args c = pl_conv2d_pool_none;
    c.x = x, c.weight = a.weight, c.gamma = n->weight, c.bias = a.bias, c.film = film;
    c.stride = s.stride, c.pad = s.pad, c.algorithm = pl_convolution_choose(&s);
    if (k->m->training) c.argmax = c.moments = c.y = PL_NONE;
    pl_build_conv2d_pool(&k->m->b, &c);
    return k->m->training ? modulate_by_batch(k, &c, s.out_width, n) : modulate_by_running(k, c.pooled, n, film);
}

/* leaky_relu(norm(x)) of the head's rows. */
static pl_id normalise(const clouds *k, pl_id x, norm *n)
{
    pl_builder *b = &k->m->b;
    pl_channel_moments_args moments = pl_channel_moments_none;
    pl_batch_norm_args a = pl_batch_norm_none;
    if (!k->m->training) return normalise_by_running(k, x, n);
    moments.x = x;
    pl_build_channel_moments(b, &moments);
    update_running(k, moments.moments, size_of(k, x, 2), n);
    a.x = x, a.moments = moments.moments, a.gamma = n->weight, a.beta = n->bias;
    a.mean = a.rstd = PL_NONE;
    a.eps = NORM_EPS, a.act = PL_ACT_LEAKY_RELU;
    return pl_build_batch_norm(b, &a);
}

static pl_id drop(const clouds *k, double probability, pl_id x)
{
    return k->m->training ? pl_model_drop(k->m, probability, x, PL_NONE) : x;
}

static pl_id drop_channels(const clouds *k, double probability, pl_id x)
{
    pl_model *m = k->m;
    pl_channel_dropout_args a = pl_channel_dropout_none;
    if (!m->training) return x;
    a.x = x, a.step = m->input[PL_INPUT_STEP], a.first_sample = m->input[PL_INPUT_FIRST_SAMPLE];
    a.probability = probability, a.seed = (int64_t)m->seed, a.stream = pl_model_stream(m, "");
    return pl_build_channel_dropout(&m->b, &a);
}

/* The mean over all pixels. */
static pl_id mean_of(const clouds *k, pl_id x)
{
    pl_adaptive_avg_pool_args a = pl_adaptive_avg_pool_none;
    a.x = x, a.height = a.width = 1;
    return pl_build_adaptive_avg_pool(&k->m->b, &a);
}

/* ---- a frame ---- */

static pl_shape image_of(const clouds *k) { return pl_shape_of(4, PL_B(1), k->height, k->width, (int64_t)1); }

/* A copy of frame t, where the precision begins that the pass of that name may narrow. */
static pl_id take_frame(const clouds *k, int64_t t)
{
    pl_builder *b = &k->m->b;
    const int64_t pixels = k->height * k->width, stride[PL_RANK_MAX] = {k->frames * pixels, k->width, 1, 1};
    pl_cast_args a = pl_cast_none;
    a.x = pl_build_view(b, k->images, image_of(k), t * pixels, stride);
    a.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, image_of(k), "%s.frame.%" PRId64, k->program, t);
    return pl_build_cast(b, &a);
}

/* Of a pixel the frames are the rows of an image whose channels are the pixels. */
static pl_id take_mean_frame(const clouds *k)
{
    pl_builder *b = &k->m->b;
    pl_id rows =
        pl_build_view(b, k->images, pl_shape_of(4, PL_B(1), k->frames, (int64_t)1, k->height * k->width), 0, NULL);
    pl_cast_args a = pl_cast_none;
    a.x = pl_build_view(b, mean_of(k, rows), image_of(k), 0, NULL);
    a.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, image_of(k), "%s.frame.mean", k->program);
    return pl_build_cast(b, &a);
}

static pl_id attend_to_pixels(const clouds *k, pl_id x)
{
    pl_builder *b = &k->m->b;
    pl_gate_args a = pl_gate_none;
    if (!k->m->config->clouds.use_spatial_attention) return x;
    pl_builder_enter(b, "spatial_attention");
    a.x = x, a.gate = convolve(k, activate(k, PL_ACT_RELU, convolve(k, x, k->gate[0])), k->gate[1]);
    pl_build_gate(b, &a);
    pl_builder_leave(b);
    return a.y;
}

static pl_id layer(clouds *k, pl_id x, int i)
{
    pl_builder *b = &k->m->b;
    pl_builder_enter(b, "convolution%d", i + 1);
    x = convolve_and_pool(k, x, k->convolution[i], &k->convolution_norm[i], i == 0 ? k->film : PL_NONE);
    x = drop_channels(k, CONVOLUTION_DROPS, x);
    pl_builder_leave(b);
    return x;
}

/* v_t [B,1,1,channels], in f32 whatever the precision is: the head is small. */
static pl_id through_frame(clouds *k, int64_t t)
{
    pl_builder *b = &k->m->b;
    const bool is_mean = k->m->config->architecture.name == PL_CONFIG_ARCHITECTURE_CNN;
    const pl_shape features = pl_shape_of(4, PL_B(1), (int64_t)1, (int64_t)1, k->channels[LAYERS - 1]);
    pl_cast_args v = pl_cast_none;
    pl_builder_enter(b, "frame.%" PRId64, t);
    pl_id x = attend_to_pixels(k, is_mean ? take_mean_frame(k) : take_frame(k, t));
    for (int i = 0; i < LAYERS; i++) x = layer(k, x, i);
    v.x = mean_of(k, x);
    v.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, features, "%s.features.%" PRId64, k->program, t);
    pl_build_cast(b, &v);
    pl_builder_leave(b);
    return v.y;
}

/* ---- frames together ---- */

static pl_id concat(const clouds *k, const pl_id *part, int64_t count)
{
    pl_concat_args a = pl_concat_none;
    memcpy(a.part, part, (size_t)count * sizeof *part);
    return count == 1 ? *part : pl_build_concat(&k->m->b, &a);
}

/* Side by side, in their order; a node takes no more than so many at once. */
static pl_id join(const clouds *k, pl_id *part, int64_t count)
{
    while (count > 1) {
        int64_t joined = 0;
        for (int64_t i = 0; i < count; joined++) {
            const int64_t n = count - i < JOINED_MAX ? count - i : JOINED_MAX;
            part[joined] = concat(k, part + i, n);
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
    pl_fill_args same = pl_fill_none;
    pl_id e[FRAMES_MAX];
    if (!has_temporal_attention(k->m->config)) {
        same.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, shape, "%s.scores", k->program);
        return pl_build_fill(b, &same);
    }
    for (int64_t t = 0; t < k->frames; t++)
        e[t] = linear(k, activate(k, PL_ACT_RELU, linear(k, v[t], k->score[0])), k->score[1]);
    return join(k, e, k->frames);
}

static pl_id through_frames(clouds *k)
{
    pl_builder *b = &k->m->b;
    pl_id v[FRAMES_MAX];
    pl_softmax_pool_args pool = pl_softmax_pool_none;
    if (k->m->config->architecture.name == PL_CONFIG_ARCHITECTURE_CNN) return through_frame(k, 0);
    for (int64_t t = 0; t < k->frames; t++) v[t] = through_frame(k, t);
    pl_builder_enter(b, "temporal_attention");
    pool.logits = scores_of(k, v);
    pool.x = join(k, v, k->frames);
    pl_build_softmax_pool(b, &pool);
    pl_builder_leave(b);
    return pool.y;
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
        v = drop(k, dense_drops[i], normalise(k, linear(k, v, k->head[i]), &k->head_norm[i]));
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
    pl_store_args store = pl_store_none;
    store.port[0] = pl_build_view(b, prediction, pl_shape_of(2, PL_B(1), (int64_t)1), 0, NULL);
    pl_builder_enter(b, "results");
    pl_build_store(b, &store);
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
    if (k->m->config->clouds.samples_from == PL_CONFIG_SAMPLES_ARRAYS)
        return pl_fail(k->m->err, PL_E_CONFIG,
                       "arrays.images: frames of %" PRId64 " × %" PRId64
                       " pixels are too small for three halvings; take images of at least %d × %d",
                       k->height, k->width, LEAST_SIDE, LEAST_SIDE);
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
