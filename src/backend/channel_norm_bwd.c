/* Norms of images, backward. Gradients of gamma and beta, and with them what the statistics pass on to dx, are sums
 * over all positions of a sample: its rows are cut into blocks by its own size, each block leaves partial sums in the
 * workspace, and these are added in block order. Samples go through in waves of as many blocks as keep a team busy; a
 * wave is what the workspace holds. So the bits depend neither on the team nor on how many samples the call has. */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "backend/channel_norm.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { WAVE_BLOCKS = 64, LINE_FLOATS = 16, PIECE_CHANNELS = 64 };

typedef struct bwd_work {
    const pl_channel_norm_bwd_call *call;
    const pl_kernels *kernels;
    int64_t width, piece_groups;      /* channels of a group; groups of a piece of channels */
    int64_t block_rows, blocks, wave; /* rows of a block, blocks of a sample, samples of a wave */
    int64_t ld;                       /* of each array below, all of which have a row for each sample of the wave … */
    float *mean, *scale;              /* what z is made with */
    float *sum, *sum_x;               /* Σ dz and Σ dz·(x − mean); then shift and slope of dx */
    float *partial;                   /* … and this two rows, one of each sum, for each block; four with film */
    int64_t sums;                     /* so many */
    int64_t images, image_rows, image_blocks; /* of a sample: with film blocks end where images do, else it is one */
} bwd_work;

/* The rows of arrays, in the order of the workspace. */
enum { ARRAYS = 4 };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static bwd_work bwd_layout(const pl_channel_norm_bwd_call *c, void *workspace)
{
    bwd_work w = {.call = c, .width = c->channels / c->groups};
    w.piece_groups = w.width < PIECE_CHANNELS ? PIECE_CHANNELS / w.width : 1;
    w.sums = c->film ? 4 : 2;
    w.images = c->film ? c->images : 1, w.image_rows = c->rows / w.images;
    w.block_rows = divide_up(w.image_rows, w.images < WAVE_BLOCKS ? WAVE_BLOCKS / w.images : 1);
    w.image_blocks = divide_up(w.image_rows, w.block_rows);
    w.blocks = w.images * w.image_blocks;
    w.wave = WAVE_BLOCKS / w.blocks < c->samples ? WAVE_BLOCKS / w.blocks : c->samples;
    if (w.wave < 1) w.wave = 1;
    w.ld = divide_up(c->channels, LINE_FLOATS) * LINE_FLOATS;
    if (!workspace) return w;
    float *base = workspace;
    w.mean = base, w.scale = base + w.wave * w.ld;
    w.sum = base + 2 * w.wave * w.ld, w.sum_x = base + 3 * w.wave * w.ld;
    w.partial = base + ARRAYS * w.wave * w.ld;
    return w;
}

uint64_t pl_channel_norm_bwd_workspace_bytes(const pl_channel_norm_bwd_call *c, pl_team team)
{
    (void)team;
    bwd_work w = bwd_layout(c, NULL);
    return (uint64_t)(w.wave * w.ld) * (uint64_t)(ARRAYS + w.sums * w.blocks) * sizeof(float);
}

static float rstd_of(const pl_channel_norm_bwd_call *c, int64_t sample, int64_t group)
{
    if (c->variance) return (float)(1 / sqrt((double)c->variance[group] + (double)c->eps));
    return c->rstd[sample * c->groups + group];
}

/* Is there anything that the sums over positions go into? */
static bool needs_sums(const pl_channel_norm_bwd_call *c)
{
    return c->dgamma || c->dbeta || c->spread || c->dfilm || (c->dx && !c->variance && !c->whole);
}

/* Of image `image` of all that the call has. */
static pl_channel_affine affine_of(const bwd_work *w, int64_t in_wave, int64_t image)
{
    const pl_channel_norm_bwd_call *c = w->call;
    return (pl_channel_affine){.channels = c->channels,
                               .act = c->act,
                               .mean = w->mean + in_wave * w->ld,
                               .scale = w->scale + in_wave * w->ld,
                               .beta = c->beta,
                               .film = c->film ? c->film + image * 2 * c->channels : NULL};
}

/* Group `item` of the wave's samples: its statistics, a number a channel. */
static void spread(const bwd_work *w, int64_t first, int64_t item)
{
    const pl_channel_norm_bwd_call *c = w->call;
    int64_t in_wave = item / c->groups, group = item % c->groups, at = in_wave * w->ld;
    float mean = c->variance ? c->mean[group] : c->mean[(first + in_wave) * c->groups + group];
    float rstd = rstd_of(c, first + in_wave, group);
    for (int64_t i = group * w->width; i < (group + 1) * w->width; i++) {
        w->mean[at + i] = mean;
        w->scale[at + i] = c->gamma[i] * rstd;
    }
}

static void sum_block(const bwd_work *w, int64_t first, int64_t item)
{
    const pl_channel_norm_bwd_call *c = w->call;
    int64_t in_wave = item / w->blocks, block = item % w->blocks, row = block % w->image_blocks * w->block_rows;
    int64_t image = (first + in_wave) * w->images + block / w->image_blocks;
    int64_t rows = w->image_rows - row < w->block_rows ? w->image_rows - row : w->block_rows;
    int64_t at = (image * w->image_rows + row) * c->positions * c->channels;
    const void *dy = pl_real_at(c->type, c->dy, at), *x = pl_real_at(c->type, c->x, at);
    pl_channel_affine affine = affine_of(w, in_wave, image);
    float *partial = w->partial + w->sums * item * w->ld;
    if (c->film)
        w->kernels->channel_film_sums(&affine, rows, c->positions, c->type, dy, x, partial, w->ld);
    else
        w->kernels->channel_bwd_sums(&affine, rows, c->positions, c->type, dy, x, partial, partial + w->ld);
}

/* The gradient of film for channels [begin, end): sums over the blocks of each image of sample `s` of the wave. */
static void finish_film(const bwd_work *w, int64_t first, int64_t s, int64_t begin, int64_t end)
{
    const pl_channel_norm_bwd_call *c = w->call;
    for (int64_t image = 0; image < w->images; image++)
        for (int64_t half = 0; half < 2; half++) {
            float *to = c->dfilm + (((first + s) * w->images + image) * 2 + half) * c->channels;
            int64_t block = s * w->blocks + image * w->image_blocks;
            memset(to + begin, 0, (size_t)(end - begin) * sizeof *to);
            w->kernels->add_blocks(begin, end, w->image_blocks, w->sums * w->ld,
                                   w->partial + (w->sums * block + 2 + half) * w->ld, to);
        }
}

/* What the statistics make of dx is for all of the image that x was taken from. */
static void pass_on(const pl_channel_norm_bwd_call *c, int64_t channel, float *shift, float *slope, float mean)
{
    if (c->spread) {
        c->spread[channel] = *shift;
        c->spread[c->channels + channel] = *slope;
        c->spread[2 * c->channels + channel] = mean;
    }
    *shift = *slope = 0;
}

/* dx = r·(g − ⟨g⟩ − x̂⟨g·x̂⟩) = scale·dz + shift + (x − mean)·slope, where g = dz·gamma. */
static void finish_group(const bwd_work *w, int64_t sample, int64_t in_wave, int64_t group)
{
    const pl_channel_norm_bwd_call *c = w->call;
    float *sum = w->sum + in_wave * w->ld, *sum_x = w->sum_x + in_wave * w->ld, rstd = rstd_of(c, sample, group);
    double g = 0, gx = 0, count = (double)(w->width * (c->whole ? c->whole : c->rows * c->positions));
    for (int64_t i = group * w->width; i < (group + 1) * w->width; i++) {
        if (c->dgamma) c->dgamma[i] += sum_x[i] * rstd;
        if (c->dbeta) c->dbeta[i] += sum[i];
        g += (double)sum[i] * c->gamma[i];
        gx += (double)sum_x[i] * c->gamma[i];
    }
    if (c->variance) g = gx = 0;
    for (int64_t i = group * w->width; i < (group + 1) * w->width; i++) {
        sum[i] = (float)(-g / count * rstd);
        sum_x[i] = (float)(-gx / count * rstd * rstd * rstd);
        if (c->whole) pass_on(c, i, sum + i, sum_x + i, w->mean[in_wave * w->ld + i]);
    }
}

/* A piece of channels, sample after sample. */
static void finish_piece(const bwd_work *w, int64_t first, int64_t samples, int64_t piece)
{
    const pl_channel_norm_bwd_call *c = w->call;
    int64_t group = piece * w->piece_groups, left = c->groups - group;
    int64_t end = group + (left < w->piece_groups ? left : w->piece_groups);
    int64_t channel = group * w->width, channels = (end - group) * w->width;
    for (int64_t s = 0; s < samples; s++) {
        float *partial = w->partial + w->sums * s * w->blocks * w->ld, *sum = w->sum + s * w->ld,
              *sum_x = w->sum_x + s * w->ld;
        memset(sum + channel, 0, (size_t)channels * sizeof *sum);
        memset(sum_x + channel, 0, (size_t)channels * sizeof *sum_x);
        if (needs_sums(c)) {
            w->kernels->add_blocks(channel, channel + channels, w->blocks, w->sums * w->ld, partial, sum);
            w->kernels->add_blocks(channel, channel + channels, w->blocks, w->sums * w->ld, partial + w->ld, sum_x);
        }
        if (c->dfilm) finish_film(w, first, s, channel, channel + channels);
        for (int64_t k = group; k < end; k++) finish_group(w, first + s, s, k);
    }
}

/* Positions [own.begin, own.end) of the wave. */
static void write_dx(const bwd_work *w, int64_t first, pl_range own)
{
    const pl_channel_norm_bwd_call *c = w->call;
    int64_t of_sample = c->rows * c->positions, of_image = of_sample / w->images;
    for (int64_t p = own.begin, count; p < own.end; p += count) {
        int64_t image = p / of_image, s = p / of_sample, left = (image + 1) * of_image - p;
        int64_t at = (first * of_sample + p) * c->channels;
        pl_channel_slope slope = {affine_of(w, s, first * w->images + image), w->sum + s * w->ld, w->sum_x + s * w->ld};
        count = left < own.end - p ? left : own.end - p;
        w->kernels->channel_bwd(&slope, count, c->type, pl_real_at(c->type, c->dy, at), pl_real_at(c->type, c->x, at),
                                c->add ? pl_real_at(c->type, c->add, at) : NULL, pl_real_at(c->type, c->dx, at));
    }
}

static void bwd_part(const void *work, int part, int parts)
{
    const bwd_work *w = work;
    const pl_channel_norm_bwd_call *c = w->call;
    for (int64_t first = 0, samples; first < c->samples; first += samples) {
        samples = c->samples - first < w->wave ? c->samples - first : w->wave;
        if (first) pl_barrier(); /* the last wave's statistics have been read */
        pl_range own = pl_range_of_part(samples * c->groups, 1, part, parts);
        for (int64_t i = own.begin; i < own.end; i++) spread(w, first, i);
        pl_barrier();
        own = pl_range_of_part(needs_sums(c) ? samples * w->blocks : 0, 1, part, parts);
        for (int64_t i = own.begin; i < own.end; i++) sum_block(w, first, i);
        pl_barrier();
        own = pl_range_of_part(divide_up(c->groups, w->piece_groups), 1, part, parts);
        for (int64_t i = own.begin; i < own.end; i++) finish_piece(w, first, samples, i);
        pl_barrier();
        if (c->dx) write_dx(w, first, pl_range_of_part(samples * c->rows * c->positions, 1, part, parts));
    }
}

void pl_channel_norm_bwd_exec(const pl_channel_norm_bwd_call *c, void *workspace, pl_team team)
{
    assert(c->groups > 0 && c->channels % c->groups == 0 && c->samples > 0 && c->rows > 0 && c->positions > 0);
    assert(!c->variance || c->groups == c->channels);
    bwd_work work = bwd_layout(c, workspace);
    work.kernels = pl_kernels_get(team.isa);
    pl_parallel(team, c->samples * c->rows * c->positions * c->channels, bwd_part, &work);
}
