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
#include <stdio.h>
#include <string.h>

#include "base/regression.h"
#include "models/model.h"

enum { LAYERS = 3, DENSE = 2, ANGLES = 2, FILM_WIDTH = 256, KERNEL = 3, LEAST_SIDE = 1 << LAYERS };
enum { JOINED_MAX = PL_INS_OF_CONCAT, FRAMES_MAX = 64 };
#define OUTPUT_STD        0.5
#define OUTPUT_BIAS       0.1
#define CONVOLUTION_DROPS 0.25
static const double dense_drops[DENSE] = {0.5, 0.3};

typedef struct clouds {
    pl_model *m;
    int64_t frames, height, width;
    int64_t channels[LAYERS], dense[DENSE];
    const char *program;
    pl_id images, angles, target;
    pl_affine gate[2], convolution[LAYERS], score[2], head[DENSE], output;
    pl_batch_norm convolution_norm[LAYERS], head_norm[DENSE];
    pl_id film; /* [B,2·channels]: scales, then shifts */
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

/* ---- what lasts: made in a scope that says whose it is, before any frame ---- */

static pl_affine make_convolution(clouds *k, int64_t in, int64_t out, int64_t kernel, const char *name)
{
    pl_affine_init init = pl_affine_torch(PL_DTYPE_F32, in * kernel * kernel);
    init.weight = pl_init_normal(sqrt(2.0 / (double)(out * kernel * kernel)));
    return pl_net_affine(&k->m->net, &init, pl_shape_of(4, out, kernel, kernel, in), name);
}

static pl_affine make_linear(clouds *k, int64_t in, int64_t out, const char *name)
{
    const pl_affine_init init = {.weight = pl_init_normal(sqrt(2.0 / (double)(in + out))), .bias = pl_init_all(0)};
    return pl_net_affine(&k->m->net, &init, pl_shape_of(2, out, in), name);
}

static pl_batch_norm make_norm(clouds *k, int64_t channels, const char *list, int place)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%d", list, place);
    return pl_net_make_batch_norm(&k->m->net, channels, name);
}

static void make_convolutions(clouds *k)
{
    static const char *const names[LAYERS] = {"cnn_layers.0", "cnn_layers.5", "cnn_layers.10"};
    pl_builder *b = &k->m->net.b;
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
        pl_builder_enter(&m->net.b, "temporal_attention");
        k->score[0] = make_linear(k, features, features > 1 ? features / 2 : 1, "temporal_attention.fc1");
        k->score[1] = make_linear(k, features > 1 ? features / 2 : 1, 1, "temporal_attention.fc2");
        pl_builder_leave(&m->net.b);
    }
    pl_builder_enter(&m->net.b, "head");
    for (int i = 0; i < DENSE; i++) {
        k->head[i] = make_linear(k, i ? k->dense[i - 1] : features, k->dense[i], names[i]);
        k->head_norm[i] = make_norm(k, k->dense[i], "dense_layers", 4 * i + 1);
    }
    const pl_affine_init output = {.weight = pl_init_normal(OUTPUT_STD), .bias = pl_init_all(OUTPUT_BIAS)};
    k->output = pl_net_affine(&m->net, &output, pl_shape_of(2, (int64_t)1, last), "output");
    pl_builder_leave(&m->net.b);
}

/* ---- layers ---- */

static pl_id linear(const clouds *k, pl_id x, pl_affine w) { return pl_net_linear(&k->m->net, x, w, PL_NONE); }

static pl_id relu(const clouds *k, pl_id x) { return pl_net_activate(&k->m->net, PL_ACT_RELU, x); }

static pl_id drop_channels(const clouds *k, double probability, pl_id x)
{
    pl_net *n = &k->m->net;
    pl_channel_dropout_args a = pl_channel_dropout_none;
    if (!n->training) return x;
    a.x = x, a.step = n->input[PL_INPUT_STEP], a.first_sample = n->input[PL_INPUT_FIRST_SAMPLE];
    a.probability = probability, a.seed = n->dropout_seed, a.stream = pl_net_stream(n, "");
    return pl_build_channel_dropout(&n->b, &a);
}

/* ---- a frame ---- */

static pl_shape image_of(const clouds *k) { return pl_shape_of(4, PL_B(1), k->height, k->width, (int64_t)1); }

/* A copy of frame t, where the precision begins that the pass of that name may narrow. */
static pl_id take_frame(const clouds *k, int64_t t)
{
    pl_net *n = &k->m->net;
    const int64_t pixels = k->height * k->width, stride[PL_RANK_MAX] = {k->frames * pixels, k->width, 1, 1};
    pl_id frame = pl_build_view(&n->b, k->images, image_of(k), t * pixels, stride);
    return pl_net_cast(n, frame, PL_DTYPE_F32, "%s.frame.%" PRId64, k->program, t);
}

/* For the mean, frames are the rows of an image whose channels are the pixels. */
static pl_id take_mean_frame(const clouds *k)
{
    pl_net *n = &k->m->net;
    const pl_shape rows = pl_shape_of(4, PL_B(1), k->frames, (int64_t)1, k->height * k->width);
    pl_id mean = pl_net_mean_of_grid(n, pl_build_view(&n->b, k->images, rows, 0, NULL), 1, 1);
    return pl_net_cast(n, pl_build_view(&n->b, mean, image_of(k), 0, NULL), PL_DTYPE_F32, "%s.frame.mean", k->program);
}

static pl_id attend_to_pixels(const clouds *k, pl_id x)
{
    pl_builder *b = &k->m->net.b;
    pl_gate_args a = pl_gate_none;
    if (!k->m->config->clouds.use_spatial_attention) return x;
    pl_builder_enter(b, "spatial_attention");
    pl_id hidden = relu(k, pl_net_convolve(&k->m->net, x, k->gate[0], 1, PL_CONVOLUTION_BY_RULE, NULL));
    a.x = x, a.gate = pl_net_convolve(&k->m->net, hidden, k->gate[1], 1, PL_CONVOLUTION_BY_RULE, NULL);
    pl_build_gate(b, &a);
    pl_builder_leave(b);
    return a.y;
}

static pl_id layer(clouds *k, pl_id x, int i)
{
    pl_builder *b = &k->m->net.b;
    pl_builder_enter(b, "convolution%d", i + 1);
    x = pl_net_convolve_and_pool(&k->m->net, x, k->convolution[i], &k->convolution_norm[i], PL_ACT_LEAKY_RELU,
                                 i == 0 ? k->film : PL_NONE);
    x = drop_channels(k, CONVOLUTION_DROPS, x);
    pl_builder_leave(b);
    return x;
}

/* v_t [B,1,1,channels], in f32 whatever the precision is: the head is small. */
static pl_id through_frame(clouds *k, int64_t t)
{
    pl_builder *b = &k->m->net.b;
    const bool is_mean = k->m->config->architecture.name == PL_CONFIG_ARCHITECTURE_CNN;
    pl_builder_enter(b, "frame.%" PRId64, t);
    pl_id x = attend_to_pixels(k, is_mean ? take_mean_frame(k) : take_frame(k, t));
    for (int i = 0; i < LAYERS; i++) x = layer(k, x, i);
    x = pl_net_mean_of_grid(&k->m->net, x, 1, 1);
    x = pl_net_cast(&k->m->net, x, PL_DTYPE_F32, "%s.features.%" PRId64, k->program, t);
    pl_builder_leave(b);
    return x;
}

/* ---- frames together ---- */

static pl_id concat(const clouds *k, const pl_id *part, int64_t count)
{
    pl_concat_args a = pl_concat_none;
    memcpy(a.part, part, (size_t)count * sizeof *part);
    return count == 1 ? *part : pl_build_concat(&k->m->net.b, &a);
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
    const int64_t one = 1;
    pl_id e[FRAMES_MAX];
    if (!has_temporal_attention(k->m->config))
        return pl_net_fill(&k->m->net, PL_DTYPE_F32, 0, pl_shape_of(4, PL_B(1), one, one, k->frames), "%s.scores",
                           k->program);
    for (int64_t t = 0; t < k->frames; t++) e[t] = linear(k, relu(k, linear(k, v[t], k->score[0])), k->score[1]);
    return join(k, e, k->frames);
}

static pl_id through_frames(clouds *k)
{
    pl_builder *b = &k->m->net.b;
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

static pl_id film_of(clouds *k)
{
    pl_builder *b = &k->m->net.b;
    pl_builder_enter(b, "film");
    const pl_affine first = make_linear(k, ANGLES, FILM_WIDTH, "film_layers.0.film_mlp.0");
    const pl_affine second = make_linear(k, FILM_WIDTH, 2 * k->channels[0], "film_layers.0.film_mlp.2");
    pl_id film = linear(k, relu(k, linear(k, k->angles, first)), second);
    pl_builder_leave(b);
    return film;
}

static pl_id through_head(clouds *k, pl_id v)
{
    pl_net *n = &k->m->net;
    pl_builder *b = &n->b;
    pl_builder_enter(b, "head");
    for (int i = 0; i < DENSE; i++) {
        pl_builder_enter(b, "dense%d", i + 1);
        v = pl_net_batch_norm(n, linear(k, v, k->head[i]), &k->head_norm[i], PL_ACT_LEAKY_RELU, n->training);
        v = pl_net_dropout(n, dense_drops[i], v, PL_NONE);
        pl_builder_leave(b);
    }
    v = linear(k, v, k->output);
    pl_builder_leave(b);
    return v;
}

/* ---- the loss ---- */

static pl_regression_kind kind_of(pl_config_regression_loss loss)
{
    static const pl_regression_kind table[] = {[PL_CONFIG_LOSS_HUBER] = PL_REGRESSION_HUBER,
                                               [PL_CONFIG_LOSS_MSE_MAE] = PL_REGRESSION_MSE_MAE,
                                               [PL_CONFIG_LOSS_HUBER_MAE] = PL_REGRESSION_HUBER_MAE,
                                               [PL_CONFIG_LOSS_WEIGHTED_HUBER] = PL_REGRESSION_WEIGHTED_HUBER,
                                               [PL_CONFIG_LOSS_WEIGHTED_HUBER_MAE] = PL_REGRESSION_WEIGHTED_HUBER_MAE};
    return table[loss];
}

_Static_assert(offsetof(pl_mined_regression_loss_args, loss) == offsetof(pl_regression_loss_args, loss) &&
                   offsetof(pl_mined_regression_loss_args, under_weight) ==
                       offsetof(pl_regression_loss_args, under_weight),
               "the one's args are the other's");

/* loss += Σ over the samples of what base/regression.h says, by the keys of the config; an item whose target is not a
 * number counts nothing. While training the hardest items of the batch may count more. */
static void add_regression_loss(clouds *k, pl_id prediction, pl_id loss)
{
    pl_net *n = &k->m->net;
    const pl_config_clouds *c = &k->m->config->clouds;
    const bool mined = n->training && c->hard_mining_k > 0 && c->hard_mining_factor != 1;
    pl_mined_regression_loss_args a = pl_mined_regression_loss_none;
    a.prediction = prediction, a.target = k->target, a.scale = n->input[PL_INPUT_ITEM_SCALE], a.loss = loss;
    a.kind = kind_of(c->loss_type), a.delta = c->huber_delta, a.alpha = c->loss_alpha, a.gamma = c->gamma;
    a.under_weight = c->under_weight, a.share = c->hard_mining_k, a.factor = c->hard_mining_factor;
    pl_builder_enter(&n->b, "loss");
    if (mined)
        pl_build_mined_regression_loss(&n->b, &a);
    else
        pl_build_regression_loss(&n->b, (pl_regression_loss_args *)&a);
    pl_builder_leave(&n->b);
}

/* ---- programs ---- */

static void give_out(const clouds *k, pl_id prediction)
{
    pl_builder *b = &k->m->net.b;
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
    m->net.training = training;
    k->program = name;
    pl_id loss = pl_model_loss(m, name);
    PL_TRY(pl_model_begin_micro(m, program, ports, 3, load));
    k->images = load[0], k->angles = load[1], k->target = load[2];
    make_convolutions(k);
    make_head(k);
    k->film = film_of(k);
    pl_id prediction = through_head(k, through_frames(k));
    add_regression_loss(k, prediction, loss);
    if (!training) give_out(k, prediction);
    return m->net.b.status;
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
    return pl_fail(k->m->net.err, PL_E_CONFIG,
                   "%s: train.batch_size %" PRId64 " times temporal_frames %" PRId64 " times frames of %" PRId64
                   " × %" PRId64 " pixels with %" PRId64 " channels exceed 2^60 bytes; take smaller numbers",
                   pl_config_blame(c, "train.batch_size", "channels", where), c->train.batch_size, k->frames, k->height,
                   k->width, k->channels[0]);
}

static pl_status check_frame(const clouds *k)
{
    if (k->height >= LEAST_SIDE && k->width >= LEAST_SIDE) return check_size(k);
    if (k->m->config->clouds.samples_from == PL_CONFIG_SAMPLES_ARRAYS)
        return pl_fail(k->m->net.err, PL_E_CONFIG,
                       "arrays.images: frames of %" PRId64 " × %" PRId64
                       " pixels are too small for three halvings; take images of at least %d × %d",
                       k->height, k->width, LEAST_SIDE, LEAST_SIDE);
    return pl_fail(k->m->net.err, PL_E_CONFIG,
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
    PL_TRY(m->net.b.status);
    PL_TRY(build_program(&k, "train", true));
    return build_program(&k, "evaluate", false);
}

/* ---- its part of a config ---- */

/* One sample has no variance. */
static pl_status check(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (c->train.batch_size >= 2) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: train.batch_size 1 leaves batch norm nothing to compare a sample with; take at least 2",
                   pl_config_where(c, "train.batch_size", where, sizeof where));
}

const pl_arch pl_arch_clouds = {.build = build, .check = check, .plan_bytes_per_layer = 1 << 10};
