/* The U-Net that takes noise out of pages (docs/hybrid.md), and its training: a page in three colours, each number
 * noisy by itself, comes out as the page was. `depth` levels down, each of two convolutions, a batch norm and a relu
 * after each, and a pool that halves the grid, with twice the channels of the one before; as many up again, a
 * transposed convolution that doubles the grid, joined with what the level had on the way down, and two convolutions.
 * Last a convolution of one pixel back to three colours.
 *
 *   denoiser.encoders.L.0, .1, .3, .4     convolution, norm, convolution, norm of level L
 *   denoiser.bottleneck.0, .1, .3, .4
 *   denoiser.upconvs.L, denoiser.decoders.L.0, .1, .3, .4
 *   denoiser.final_conv
 *
 * Weights of convolutions are [out,k,k,in] here, those of the transposed ones [in,k,k,out].
 *
 * What is to come out is the same page with other noise of as large a deviation, or the clean page: the mean of
 * the noise is zero, so both have the same best answer (Noise2Noise, Lehtinen 2018). The norms see a whole batch
 * at a time. */
#include <math.h>
#include <stdio.h>

#include "base/colours.h"
#include "base/rollout.h"
#include "models/hybrid.h"

enum { DEPTH_MAX = 8, KERNEL = 3, UP = 2 };

/* In front of towers it stays as it is. */
static bool learns(const pl_hybrid *k) { return k->n->training && k->m->config->denoiser.only; }

/* ---- layers, begun as PyTorch begins them ---- */

static pl_id convolve(const pl_hybrid *k, pl_id x, int64_t out, int64_t kernel, const char *name)
{
    const int64_t in = pl_net_last_extent(k->n, x);
    const pl_affine_init init = pl_affine_torch(PL_DTYPE_F32, in * kernel * kernel);
    const pl_affine w = pl_net_affine(k->n, &init, pl_shape_of(4, out, kernel, kernel, in), name);
    return pl_net_convolve(k->n, x, w, 1, PL_CONVOLUTION_BY_RULE, NULL);
}

/* PyTorch takes the outputs of a transposed convolution's kernel for its inputs when it scales first values. */
static pl_id double_grid(const pl_hybrid *k, pl_id x, const char *name)
{
    const int64_t in = pl_net_last_extent(k->n, x), out = in / 2, up = UP;
    const pl_init init = pl_init_within(1 / sqrt((double)(out * up * up)));
    pl_conv_transpose2d_args a = pl_conv_transpose2d_none;
    a.x = x, a.stride = up;
    a.weight = pl_net_weight(k->n, init, PL_DTYPE_F32, pl_shape_of(4, in, up, up, out), "%s.weight", name);
    a.bias = pl_net_weight(k->n, init, PL_DTYPE_F32, pl_shape_of(1, out), "%s.bias", name);
    return pl_build_conv_transpose2d(&k->n->b, &a);
}

/* relu(norm(x)) */
static pl_id normalise(const pl_hybrid *k, pl_id x, const char *name)
{
    pl_batch_norm norm = pl_net_make_batch_norm(k->n, pl_net_last_extent(k->n, x), name);
    return pl_net_batch_norm(k->n, x, &norm, PL_ACT_RELU, learns(k));
}

static pl_id block(const pl_hybrid *k, pl_id x, int64_t channels, const char *name)
{
    char part[96];
    for (int i = 0; i < 2; i++) {
        snprintf(part, sizeof part, "%s.%d", name, 3 * i);
        x = convolve(k, x, channels, KERNEL, part);
        snprintf(part, sizeof part, "%s.%d", name, 3 * i + 1);
        x = normalise(k, x, part);
    }
    return x;
}

static pl_id halve_grid(const pl_hybrid *k, pl_id x)
{
    pl_max_pool_args pool = pl_max_pool_none;
    pool.x = x;
    if (learns(k)) pool.argmax = PL_NONE;
    return pl_build_max_pool(&k->n->b, &pool);
}

/* ---- the network ---- */

static pl_id go_down(const pl_hybrid *k, pl_id x, int64_t channels, int level, pl_id *skip)
{
    char name[64];
    pl_builder_enter(&k->n->b, "down.%d", level);
    snprintf(name, sizeof name, "denoiser.encoders.%d", level);
    *skip = block(k, x, channels, name);
    x = halve_grid(k, *skip);
    pl_builder_leave(&k->n->b);
    return x;
}

static pl_id go_up(const pl_hybrid *k, pl_id x, int64_t channels, int level, pl_id skip)
{
    char name[64];
    pl_builder_enter(&k->n->b, "up.%d", level);
    snprintf(name, sizeof name, "denoiser.upconvs.%d", level);
    x = pl_net_join(k->n, double_grid(k, x, name), skip);
    snprintf(name, sizeof name, "denoiser.decoders.%d", level);
    x = block(k, x, channels, name);
    pl_builder_leave(&k->n->b);
    return x;
}

pl_id pl_hybrid_denoise(const pl_hybrid *k, pl_id x)
{
    const pl_config_denoiser *c = &k->m->config->denoiser;
    pl_id skip[DEPTH_MAX];
    const int depth = (int)c->depth;
    for (int i = 0; i < depth; i++) x = go_down(k, x, c->channels << i, i, &skip[i]);
    pl_builder_enter(&k->n->b, "bottom");
    x = block(k, x, c->channels << depth, "denoiser.bottleneck");
    pl_builder_leave(&k->n->b);
    for (int i = depth - 1; i >= 0; i--) x = go_up(k, x, c->channels << i, i, skip[i]);
    pl_builder_enter(&k->n->b, "out");
    x = convolve(k, x, PL_COLOURS, 1, "denoiser.final_conv");
    pl_builder_leave(&k->n->b);
    return x;
}

/* ---- pages ---- */

pl_shape pl_hybrid_image(const pl_hybrid *k, int64_t copies)
{
    return pl_shape_of(4, PL_B(copies), k->side, k->side, (int64_t)PL_COLOURS);
}

pl_id pl_hybrid_colour(const pl_hybrid *k, pl_id pages, int64_t copies)
{
    pl_patches_args rows = pl_patches_none;
    rows.image = pages, rows.patch = 1, rows.channels = PL_COLOURS;
    return pl_net_view(k->n, pl_build_patches(&k->n->b, &rows), pl_hybrid_image(k, copies));
}

pl_id pl_hybrid_noisy(const pl_hybrid *k, pl_id x, const char *which)
{
    pl_noise_args noise = pl_noise_none;
    noise.x = x, noise.parameters = k->noise, noise.ids = k->numbers;
    noise.step = pl_hybrid_fill(k, PL_DTYPE_I64, 0, pl_shape_of(1, (int64_t)1));
    noise.seed = k->n->dropout_seed, noise.stream = pl_net_stream(k->n, which);
    return pl_build_noise(&k->n->b, &noise);
}

/* ---- in front of the towers ---- */

bool pl_hybrid_is_denoised(const pl_config *c)
{
    return !c->denoiser.only && c->dataset.use_denoiser && c->dataset.denoiser_path[0];
}

bool pl_hybrid_has_policy(const pl_config *c)
{
    return c->dataset.use_policy && pl_hybrid_makes_pages(c) && pl_hybrid_is_denoised(c);
}

bool pl_hybrid_keeps_pages(const pl_config *c)
{
    return c->dataset.cache_images && pl_hybrid_makes_pages(c) && pl_hybrid_is_denoised(c);
}

static bool is_noisy(const pl_config *c) { return c->reading.noise > 0; }

bool pl_hybrid_makes_pages(const pl_config *c)
{
    const pl_hybrid_aim aim = pl_hybrid_aim_of(c);
    const bool sees = aim == PL_HYBRID_READS || aim == PL_HYBRID_ADAPTS;
    return sees && (pl_hybrid_is_denoised(c) || is_noisy(c));
}

/* Through the denoiser, which counts as much as the policy says. */
static pl_id clean_up(const pl_hybrid *k, pl_id x, pl_id strength)
{
    pl_id cleaned = pl_hybrid_denoise(k, pl_hybrid_cast(k, x));
    return strength == PL_NONE ? cleaned : pl_hybrid_blend(k, pl_hybrid_cast(k, cleaned), x, strength, NULL);
}

pl_id pl_hybrid_make_pages(const pl_hybrid *k, pl_id pages)
{
    pl_pixels_args bytes = pl_pixels_none;
    const size_t first = pl_hybrid_node_count(k);
    if (!k->coloured) return pages;
    pl_builder_enter(&k->n->b, "denoiser");
    const bool before = pl_net_freeze(k->n, true);
    pl_id strength = PL_NONE;
    if (pl_hybrid_has_policy(k->m->config)) pages = pl_hybrid_draw_best(k, pages, &strength);
    pl_id x = pl_hybrid_colour(k, pages, 1);
    if (is_noisy(k->m->config)) x = pl_hybrid_noisy(k, x, "page");
    if (pl_hybrid_is_denoised(k->m->config)) x = clean_up(k, x, strength);
    bytes.x = x;
    pl_id made = pl_hybrid_make_once(k, first, pl_build_pixels(&k->n->b, &bytes), k->denoised);
    pl_builder_leave(&k->n->b);
    pl_net_thaw(k->n, before);
    return made;
}

/* ---- its training ---- */

static void tell(const pl_hybrid *k, pl_id clean, pl_id made_noisy, pl_id cleaned)
{
    const pl_shape page = pl_hybrid_image(k, 1);
    pl_concat_args row = pl_concat_none;
    pl_store_args store = pl_store_none;
    pl_builder_enter(&k->n->b, "told");
    row.part[0] = pl_hybrid_apart(k, made_noisy, clean, page);
    row.part[1] = pl_hybrid_apart(k, pl_hybrid_cast(k, cleaned), clean, page);
    row.part[2] = pl_hybrid_spread(k, PL_NONE);
    store.port[0] = pl_build_concat(&k->n->b, &row);
    pl_build_store(&k->n->b, &store);
    pl_builder_leave(&k->n->b);
}

void pl_hybrid_learn_to_denoise(pl_hybrid *k, pl_id pages, pl_id *loss)
{
    const bool training = k->n->training, from_clean = k->m->config->denoiser.target == PL_CONFIG_DENOISED_CLEAN;
    const int64_t numbers = k->side * k->side * PL_COLOURS;
    pl_builder_enter(&k->n->b, "denoiser");
    pl_id clean = pl_hybrid_colour(k, pages, 1), first = pl_hybrid_noisy(k, clean, "first");
    pl_id target = !training || from_clean ? clean : pl_hybrid_noisy(k, clean, "second");
    pl_id cleaned = pl_hybrid_denoise(k, pl_hybrid_cast(k, first));
    k->counted = pl_hybrid_count_words(k);
    pl_id scale = training ? pl_hybrid_scale(k, 1, numbers) : pl_hybrid_number(k, 1 / (double)numbers);
    const pl_loss_term term = pl_hybrid_term(k, scale, *loss);
    *loss = pl_net_squared_error(k->n, cleaned, pl_hybrid_cast(k, target), &term);
    if (!training) tell(k, clean, first, cleaned);
    pl_builder_leave(&k->n->b);
}
