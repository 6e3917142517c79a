/* Whole channels: copies of stretches of each position, and a factor a channel. Positions are shared out; nothing is
 * summed, so the cut does not show. */
#include "backend/channels.h"

#include <stddef.h>
#include <string.h>

#include "backend/parallel.h"
#include "base/philox.h"
#include "kernels/kernels.h"

typedef struct work {
    const void *call;
    const pl_kernels *kernels;
    float *scale; /* dropout: [samples, channels] */
} work;

/* `count` channels of each position, from channel `at` of `channels` to channel `to_at` of `to_channels`. */
static void copy_channels(pl_range positions, pl_real type, int64_t count, const void *from, int64_t channels,
                          int64_t at, void *to, int64_t to_channels, int64_t to_at)
{
    for (int64_t p = positions.begin; p < positions.end; p++)
        memcpy(pl_real_at(type, to, p * to_channels + to_at), pl_real_at(type, from, p * channels + at),
               (size_t)(count * pl_real_bytes(type)));
}

static int64_t width_of(const pl_concat_call *c)
{
    int64_t sum = 0;
    for (int k = 0; k < c->inputs; k++) sum += c->channels[k];
    return sum;
}

static void concat_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_concat_call *c = w->call;
    pl_range own = pl_range_of_part(c->positions, 1, part, parts);
    for (int64_t k = 0, at = 0; k < c->inputs; at += c->channels[k++])
        copy_channels(own, c->type, c->channels[k], c->x[k], c->channels[k], 0, c->y, width_of(c), at);
}

void pl_concat_exec(const pl_concat_call *c, pl_team team)
{
    work w = {.call = c};
    pl_parallel(team, c->positions * width_of(c), concat_part, &w);
}

static void slice_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_slice_call *c = w->call;
    copy_channels(pl_range_of_part(c->positions, 1, part, parts), c->type, c->count, c->x, c->channels, c->first, c->y,
                  c->count, 0);
}

void pl_slice_exec(const pl_slice_call *c, pl_team team)
{
    work w = {.call = c};
    pl_parallel(team, c->positions * c->count, slice_part, &w);
}

static void slice_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_slice_bwd_call *c = w->call;
    pl_range own = pl_range_of_part(c->positions, 1, part, parts);
    for (int64_t p = own.begin; p < own.end; p++) {
        void *to = pl_real_at(c->type, c->dx, p * c->channels), *window = pl_real_at(c->type, to, c->first);
        const void *dy = pl_real_at(c->type, c->dy, p * c->count);
        size_t bytes = (size_t)(c->channels * pl_real_bytes(c->type));
        if (c->add && c->add != c->dx) memcpy(to, pl_real_at(c->type, c->add, p * c->channels), bytes);
        if (!c->add) memset(to, 0, bytes);
        if (c->add)
            w->kernels->add(c->count, c->type, window, dy, window);
        else
            memcpy(window, dy, (size_t)(c->count * pl_real_bytes(c->type)));
    }
}

void pl_slice_bwd_exec(const pl_slice_bwd_call *c, pl_team team)
{
    work w = {.call = c, .kernels = pl_kernels_get(team.isa)};
    pl_parallel(team, c->positions * c->channels, slice_bwd_part, &w);
}

static float place_of(int64_t i, int64_t n) { return n > 1 ? (float)i / (float)(n - 1) : 0; }

static void coordinates_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_append_coordinates_call *c = w->call;
    const int64_t to = c->channels + 2;
    pl_range own = pl_range_of_part(c->samples * c->height * c->width, 1, part, parts);
    copy_channels(own, c->type, c->channels, c->x, c->channels, 0, c->y, to, 0);
    for (int64_t p = own.begin; p < own.end; p++) {
        pl_real_put(c->type, c->y, p * to + c->channels, place_of(p / c->width % c->height, c->height));
        pl_real_put(c->type, c->y, p * to + c->channels + 1, place_of(p % c->width, c->width));
    }
}

void pl_append_coordinates_exec(const pl_append_coordinates_call *c, pl_team team)
{
    work w = {.call = c};
    pl_parallel(team, c->samples * c->height * c->width * (c->channels + 2), coordinates_part, &w);
}

/* ---- dropout ---- */

uint64_t pl_channel_dropout_workspace_bytes(const pl_channel_dropout_call *c, pl_team team)
{
    (void)team;
    return (uint64_t)c->samples * (uint64_t)c->channels * sizeof(float);
}

static void draw(const pl_channel_dropout_call *c, int64_t sample, float *scale)
{
    pl_philox philox = pl_philox_init(c->seed, c->stream);
    uint32_t bits[4];
    for (int64_t i = 0; i < c->channels; i++) {
        if (i % 4 == 0)
            pl_philox_block(&philox, (uint32_t)*c->step, (uint64_t)(*c->first_sample + sample), (uint32_t)(i / 4),
                            bits);
        scale[i] = pl_uniform_f32(bits[i % 4]) >= c->probability ? 1 / (1 - c->probability) : 0;
    }
}

static void dropout_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_channel_dropout_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t s = own.begin; s < own.end; s++) draw(c, s, w->scale + s * c->channels);
    pl_barrier();
    own = pl_range_of_part(c->samples * c->positions, 1, part, parts);
    for (int64_t p = own.begin, count; p < own.end; p += count) {
        int64_t s = p / c->positions, left = (s + 1) * c->positions - p, at = p * c->channels;
        count = left < own.end - p ? left : own.end - p;
        w->kernels->channel_scale(count, c->channels, c->type, w->scale + s * c->channels,
                                  pl_real_at(c->type, c->x, at), pl_real_at(c->type, c->y, at));
    }
}

void pl_channel_dropout_exec(const pl_channel_dropout_call *c, void *workspace, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa), workspace};
    pl_parallel(team, c->samples * c->positions * c->channels, dropout_part, &w);
}

static int keeps(const pl_path_dropout_call *c, int64_t part)
{
    pl_philox philox = pl_philox_init(c->seed, c->stream);
    uint32_t bits[4];
    const int64_t path = part % c->paths;
    pl_philox_block(&philox, (uint32_t)*c->step, (uint64_t)(*c->first_sample + part / c->paths), (uint32_t)(path / 4),
                    bits);
    return pl_uniform_f32(bits[path % 4]) >= c->probability;
}

static void path_dropout_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_path_dropout_call *c = w->call;
    const size_t bytes = (size_t)(c->elems * pl_real_bytes(c->type));
    const pl_range own = pl_range_of_part(c->samples * c->paths, 1, part, parts);
    for (int64_t i = own.begin; i < own.end; i++) {
        void *to = pl_real_at(c->type, c->y, i * c->elems);
        const void *from = pl_real_at(c->type, c->x, i * c->elems);
        if (!keeps(c, i))
            memset(to, 0, bytes);
        else if (to != from)
            memcpy(to, from, bytes);
    }
}

void pl_path_dropout_exec(const pl_path_dropout_call *c, pl_team team)
{
    work w = {.call = c};
    pl_parallel(team, c->samples * c->paths * c->elems, path_dropout_part, &w);
}
