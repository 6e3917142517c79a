/* Norms of images, forward. First the statistics: blocks of whole groups of a sample are shared out, and merged from
 * the moments of its rows in their order. Then, behind a barrier, positions are. Each number is made by one thread from
 * its own sample, so the bits depend neither on the team nor on how many samples the call has. */
#include "backend/channel_norm.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { LINE_FLOATS = 16, BLOCK_CHANNELS = 64 };

typedef struct moments_work {
    const pl_channel_moments_call *call;
    const pl_kernels *kernels;
} moments_work;

static void moments_part(const void *work, int part, int parts)
{
    const moments_work *w = work;
    const pl_channel_moments_call *c = w->call;
    pl_range rows = pl_range_of_part(c->rows, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const void *x = pl_real_at(c->type, c->x, r * c->positions * c->channels);
        float *moments = c->moments + 2 * r * c->channels;
        w->kernels->row_moments(c->positions, c->channels, c->channels, c->type, x, moments, moments + c->channels);
    }
}

void pl_channel_moments_exec(const pl_channel_moments_call *call, pl_team team)
{
    assert(call->positions > 0 && call->channels > 0);
    moments_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->rows * call->positions * call->channels, moments_part, &work);
}

/* ---- norm ---- */

typedef struct norm_work {
    const pl_channel_norm_call *call;
    const pl_kernels *kernels;
    int64_t width, block_groups, blocks; /* channels of a group; groups of a block, blocks of a sample */
    int64_t rows, positions;             /* of a sample, that the moments are of */
    int64_t ld;
    float *mean, *scale; /* of each sample ld numbers: what its channels are normalised with */
} norm_work;

static norm_work norm_layout(const pl_channel_norm_call *c, void *workspace)
{
    norm_work w = {.call = c, .width = c->channels / c->groups};
    w.block_groups = w.width < BLOCK_CHANNELS ? BLOCK_CHANNELS / w.width : 1;
    w.blocks = (c->groups + w.block_groups - 1) / w.block_groups;
    w.rows = c->moment_rows ? c->moment_rows : c->rows;
    w.positions = c->moment_rows ? c->moment_positions : c->positions;
    w.ld = (c->channels + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    w.mean = workspace;
    if (workspace) w.scale = w.mean + c->samples * w.ld;
    return w;
}

uint64_t pl_channel_norm_workspace_bytes(const pl_channel_norm_call *c, pl_team team)
{
    (void)team;
    return 2 * (uint64_t)c->samples * (uint64_t)norm_layout(c, NULL).ld * sizeof(float);
}

/* The moments of a group's channels, which lie in mean and scale, become those of the group: all at once, since every
 * channel has as many positions as the other. */
static void finish_group(const norm_work *w, int64_t sample, int64_t group)
{
    const pl_channel_norm_call *c = w->call;
    int64_t first = group * w->width, at = sample * w->ld;
    double sum = 0, squares = 0, positions = (double)(w->rows * w->positions);
    for (int64_t i = first; i < first + w->width; i++) sum += w->mean[at + i];
    double mean = sum / (double)w->width;
    for (int64_t i = first; i < first + w->width; i++) {
        double d = w->mean[at + i] - mean;
        squares += w->scale[at + i] + positions * d * d;
    }
    float rstd = (float)(1 / sqrt(squares / (positions * (double)w->width) + (double)c->eps));
    for (int64_t i = first; i < first + w->width; i++) {
        w->mean[at + i] = (float)mean;
        w->scale[at + i] = c->gamma[i] * rstd;
    }
    if (c->mean) c->mean[sample * c->groups + group] = (float)mean;
    if (c->rstd) c->rstd[sample * c->groups + group] = rstd;
}

static void use_fixed(const norm_work *w, int64_t begin, int64_t end)
{
    const pl_channel_norm_call *c = w->call;
    for (int64_t i = begin; i < end; i++) {
        float rstd = (float)(1 / sqrt((double)c->fixed_variance[i] + (double)c->eps));
        w->mean[i] = c->fixed_mean[i];
        w->scale[i] = c->gamma[i] * rstd;
        if (c->mean) c->mean[i] = c->fixed_mean[i];
        if (c->rstd) c->rstd[i] = rstd;
    }
}

static void find_statistics(const norm_work *w, int64_t item)
{
    const pl_channel_norm_call *c = w->call;
    int64_t sample = item / w->blocks, group = item % w->blocks * w->block_groups;
    int64_t end = group + w->block_groups < c->groups ? group + w->block_groups : c->groups;
    if (!c->moments) {
        use_fixed(w, group, end);
        return;
    }
    w->kernels->merge_moments(group * w->width, end * w->width, w->rows, w->positions, c->channels,
                              c->moments + 2 * sample * w->rows * c->channels, w->mean + sample * w->ld,
                              w->scale + sample * w->ld);
    for (; group < end; group++) finish_group(w, sample, group);
}

/* Positions [own.begin, own.end) of all samples, each with its sample's statistics and its image's film. */
static void normalise(const norm_work *w, pl_range own)
{
    const pl_channel_norm_call *c = w->call;
    int64_t of_sample = c->rows * c->positions, of_image = c->film ? of_sample / c->images : of_sample;
    for (int64_t p = own.begin, count; p < own.end; p += count) {
        int64_t image = p / of_image, sample = p / of_sample, left = (image + 1) * of_image - p, at = p * c->channels;
        pl_channel_affine affine = {.channels = c->channels,
                                    .act = c->act,
                                    .mean = w->mean + sample * w->ld,
                                    .scale = w->scale + sample * w->ld,
                                    .beta = c->beta,
                                    .film = c->film ? c->film + image * 2 * c->channels : NULL};
        count = left < own.end - p ? left : own.end - p;
        w->kernels->channel_affine(&affine, count, c->type, pl_real_at(c->type, c->x, at),
                                   c->residual ? pl_real_at(c->type, c->residual, at) : NULL,
                                   pl_real_at(c->type, c->y, at));
    }
}

static void norm_part(const void *work, int part, int parts)
{
    const norm_work *w = work;
    const pl_channel_norm_call *c = w->call;
    pl_range items = pl_range_of_part(c->samples * w->blocks, 1, part, parts);
    for (int64_t i = items.begin; i < items.end; i++) find_statistics(w, i);
    pl_barrier();
    normalise(w, pl_range_of_part(c->samples * c->rows * c->positions, 1, part, parts));
}

void pl_channel_norm_exec(const pl_channel_norm_call *c, void *workspace, pl_team team)
{
    assert(c->groups > 0 && c->channels % c->groups == 0 && c->rows > 0 && c->positions > 0);
    assert(c->moments || (c->samples == 1 && c->groups == c->channels));
    norm_work work = norm_layout(c, workspace);
    work.kernels = pl_kernels_get(team.isa);
    pl_parallel(team, c->samples * c->rows * c->positions * c->channels, norm_part, &work);
}

/* ---- running statistics of batch norm ---- */

typedef struct update_work {
    const pl_batch_norm_update_call *call;
    const pl_kernels *kernels;
    float *mean, *squares; /* [channels] */
} update_work;

uint64_t pl_batch_norm_update_workspace_bytes(const pl_batch_norm_update_call *c, pl_team team)
{
    (void)team;
    return 2 * (uint64_t)c->channels * sizeof(float);
}

static void update_part(const void *work, int part, int parts)
{
    const update_work *w = work;
    const pl_batch_norm_update_call *c = w->call;
    pl_range own = pl_range_of_part(c->channels, LINE_FLOATS, part, parts);
    double count = (double)(c->rows * c->positions), free = count > 1 ? count - 1 : 1, momentum = c->momentum;
    w->kernels->merge_moments(own.begin, own.end, c->rows, c->positions, c->channels, c->moments, w->mean, w->squares);
    for (int64_t i = own.begin; i < own.end; i++) {
        c->mean[i] = (float)((1 - momentum) * c->mean[i] + momentum * w->mean[i]);
        c->variance[i] = (float)((1 - momentum) * c->variance[i] + momentum * (w->squares[i] / free));
    }
}

void pl_batch_norm_update_exec(const pl_batch_norm_update_call *c, void *workspace, pl_team team)
{
    update_work work = {c, pl_kernels_get(team.isa), workspace, (float *)workspace + c->channels};
    pl_parallel(team, c->rows * c->channels, update_part, &work);
}
