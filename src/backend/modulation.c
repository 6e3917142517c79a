/* Gates, blends, feature-wise affine maps, softmax pools. Positions or samples are shared out; the one sum over many
 * positions, that of film's gradient, is taken as norms take theirs: a sample's rows are cut into blocks by its own
 * size, each block leaves partial sums in the workspace, and these are added in block order. So the bits depend neither
 * on the team nor on how many samples a call has. A blend's gate has few rows: they are one thread's.
 *
 * film is a norm's second half, and its sums are those of a norm's backward pass, where the mean is 0: it has no
 * kernels of its own. */
#include "backend/modulation.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { GRAIN = 32, WAVE_BLOCKS = 64, LINE_FLOATS = 16, PIECE_CHANNELS = 64 };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Where it is not wanted, it is nowhere. */
static void *at_or_null(pl_real type, void *p, int64_t i) { return p ? pl_real_at(type, p, i) : NULL; }

typedef struct work {
    const void *call;
    const pl_kernels *kernels;
    float *scratch;
} work;

/* ---- gates ---- */

static void gate_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_gate_call *c = w->call;
    pl_range own = pl_range_of_part(c->positions, GRAIN, part, parts);
    int64_t at = own.begin * c->channels;
    w->kernels->gate(own.end - own.begin, c->channels, c->gates, c->type, pl_real_at(c->type, c->x, at),
                     pl_real_at(c->type, c->g, own.begin * c->gates), pl_real_at(c->type, c->y, at));
}

void pl_gate_exec(const pl_gate_call *c, pl_team team)
{
    assert(c->gates == 1 || c->gates == c->channels);
    work w = {c, pl_kernels_get(team.isa), NULL};
    pl_parallel(team, c->positions * c->channels, gate_part, &w);
}

static void gate_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_gate_bwd_call *c = w->call;
    pl_range own = pl_range_of_part(c->positions, GRAIN, part, parts);
    int64_t at = own.begin * c->channels, gate = own.begin * c->gates;
    w->kernels->gate_bwd(own.end - own.begin, c->channels, c->gates, c->type, pl_real_at(c->type, c->dy, at),
                         pl_real_at(c->type, c->x, at), pl_real_at(c->type, c->g, gate), at_or_null(c->type, c->dx, at),
                         at_or_null(c->type, c->dg, gate));
}

void pl_gate_bwd_exec(const pl_gate_bwd_call *c, pl_team team)
{
    assert(c->gates == 1 || c->gates == c->channels);
    work w = {c, pl_kernels_get(team.isa), NULL};
    pl_parallel(team, c->positions * c->channels, gate_bwd_part, &w);
}

/* ---- blends: forward by rows; backward by gates, whose rows are summed ---- */

static void blend_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_blend_call *c = w->call;
    pl_range own = pl_range_of_part(c->rows, 1, part, parts);
    w->kernels->blend(own.begin, own.end, c->shared, c->width, c->type, c->a, c->b, c->z, c->y, c->g);
}

void pl_blend_exec(const pl_blend_call *c, pl_team team)
{
    assert(c->shared > 0 && c->rows % c->shared == 0);
    work w = {c, pl_kernels_get(team.isa), NULL};
    pl_parallel(team, c->rows * c->width, blend_part, &w);
}

static void blend_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_blend_bwd_call *c = w->call;
    pl_range own = pl_range_of_part(c->rows / c->shared, 1, part, parts);
    w->kernels->blend_bwd(own.begin, own.end, c->shared, c->width, c->type, c->dy, c->a, c->b, c->z, c->da, c->db,
                          c->dz);
}

void pl_blend_bwd_exec(const pl_blend_bwd_call *c, pl_team team)
{
    assert(c->shared > 0 && c->rows % c->shared == 0);
    work w = {c, pl_kernels_get(team.isa), NULL};
    pl_parallel(team, c->rows * c->width, blend_bwd_part, &w);
}

/* ---- feature-wise affine maps ----
 * Workspace: [zeros: a number a channel][scales and shifts as f32, where they are not stored so] … */

typedef struct film_work {
    const void *call;
    const pl_kernels *kernels;
    int64_t ld;                       /* of what has a number a channel */
    float *zero;                      /* [ld] */
    const float *s;                   /* [samples, 2, channels] */
    int64_t block_rows, blocks, wave; /* backward: rows of a block, blocks of a sample, samples of a wave */
    float *sum, *partial;             /* of each sample of the wave, and of each block: two rows of ld */
} film_work;

static uint64_t begin_bytes(int64_t samples, int64_t channels, pl_real s_type)
{
    uint64_t ld = (uint64_t)divide_up(channels, LINE_FLOATS) * LINE_FLOATS;
    return (ld + (s_type == PL_REAL_F32 ? 0 : 2 * (uint64_t)samples * ld)) * sizeof(float);
}

/* The zeros and the numbers in f32; few, so one thread writes them. */
static film_work begin_film(const void *call, int64_t samples, int64_t channels, const void *s, pl_real s_type,
                            void *workspace, pl_team team)
{
    film_work w = {.call = call, .kernels = pl_kernels_get(team.isa), .zero = workspace, .s = s};
    w.ld = divide_up(channels, LINE_FLOATS) * LINE_FLOATS;
    memset(w.zero, 0, (size_t)w.ld * sizeof(float));
    if (s_type == PL_REAL_F32) return w;
    w.s = w.zero + w.ld;
    w.kernels->cast(2 * samples * channels, s_type, s, PL_REAL_F32, w.zero + w.ld);
    return w;
}

uint64_t pl_film_workspace_bytes(const pl_film_call *c, pl_team team)
{
    (void)team;
    return begin_bytes(c->samples, c->channels, c->s_type);
}

static void film_part(const void *context, int part, int parts)
{
    const film_work *w = context;
    const pl_film_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples * c->positions, 1, part, parts);
    for (int64_t p = own.begin, count; p < own.end; p += count) {
        int64_t sample = p / c->positions, left = (sample + 1) * c->positions - p, at = p * c->channels;
        const float *s = w->s + 2 * sample * c->channels;
        pl_channel_affine affine = {c->channels, PL_ACT_NONE, w->zero, s, s + c->channels, NULL};
        count = left < own.end - p ? left : own.end - p;
        w->kernels->channel_affine(&affine, count, c->type, pl_real_at(c->type, c->x, at), NULL,
                                   pl_real_at(c->type, c->y, at));
    }
}

void pl_film_exec(const pl_film_call *c, void *workspace, pl_team team)
{
    film_work w = begin_film(c, c->samples, c->channels, c->s, c->s_type, workspace, team);
    pl_parallel(team, c->samples * c->positions * c->channels, film_part, &w);
}

static void lay_out_sums(const pl_film_bwd_call *c, film_work *w)
{
    w->block_rows = divide_up(c->rows, WAVE_BLOCKS);
    w->blocks = divide_up(c->rows, w->block_rows);
    w->wave = WAVE_BLOCKS / w->blocks < c->samples ? WAVE_BLOCKS / w->blocks : c->samples;
}

uint64_t pl_film_bwd_workspace_bytes(const pl_film_bwd_call *c, pl_team team)
{
    (void)team;
    film_work w = {.ld = divide_up(c->channels, LINE_FLOATS) * LINE_FLOATS};
    lay_out_sums(c, &w);
    uint64_t sums = c->ds ? 2 * (uint64_t)(w.wave * w.ld) * (uint64_t)(1 + w.blocks) * sizeof(float) : 0;
    return begin_bytes(c->samples, c->channels, c->s_type) + sums;
}

/* The sums of a block of rows first: dx may take the place of what they are made of. */
static void do_block(const film_work *w, int64_t first, int64_t item)
{
    const pl_film_bwd_call *c = w->call;
    int64_t sample = first + item / w->blocks, row = item % w->blocks * w->block_rows;
    int64_t rows = c->rows - row < w->block_rows ? c->rows - row : w->block_rows;
    int64_t at = (sample * c->rows + row) * c->positions * c->channels;
    const void *dy = pl_real_at(c->type, c->dy, at), *x = pl_real_at(c->type, c->x, at);
    pl_channel_affine affine = {c->channels, PL_ACT_NONE, w->zero, w->s + 2 * sample * c->channels, w->zero, NULL};
    float *partial = w->partial + 2 * item * w->ld;
    if (c->ds) w->kernels->channel_bwd_sums(&affine, rows, c->positions, c->type, dy, x, partial + w->ld, partial);
    if (c->dx)
        w->kernels->channel_affine(&affine, rows * c->positions, c->type, dy, NULL, pl_real_at(c->type, c->dx, at));
}

/* A piece of the channels of a sample, the scale's or the shift's. */
static void finish_piece(const film_work *w, int64_t first, int64_t pieces, int64_t item)
{
    const pl_film_bwd_call *c = w->call;
    int64_t half = item / pieces, in_wave = half / 2, begin = item % pieces * PIECE_CHANNELS;
    int64_t count = c->channels - begin < PIECE_CHANNELS ? c->channels - begin : PIECE_CHANNELS;
    const float *partial = w->partial + (2 * in_wave * w->blocks + half % 2) * w->ld;
    float *sum = w->sum + half * w->ld;
    memset(sum + begin, 0, (size_t)count * sizeof *sum);
    w->kernels->add_blocks(begin, begin + count, w->blocks, 2 * w->ld, partial, sum);
    int64_t to = (2 * first + half) * c->channels + begin;
    w->kernels->cast(count, PL_REAL_F32, sum + begin, c->s_type, pl_real_at(c->s_type, c->ds, to));
}

static void film_bwd_part(const void *context, int part, int parts)
{
    const film_work *w = context;
    const pl_film_bwd_call *c = w->call;
    int64_t pieces = divide_up(c->channels, PIECE_CHANNELS);
    for (int64_t first = 0, samples; first < c->samples; first += samples) {
        samples = c->samples - first < w->wave ? c->samples - first : w->wave;
        if (first) pl_barrier(); /* the last wave's sums have been read */
        pl_range own = pl_range_of_part(samples * w->blocks, 1, part, parts);
        for (int64_t i = own.begin; i < own.end; i++) do_block(w, first, i);
        pl_barrier();
        own = pl_range_of_part(c->ds ? 2 * samples * pieces : 0, 1, part, parts);
        for (int64_t i = own.begin; i < own.end; i++) finish_piece(w, first, pieces, i);
    }
}

void pl_film_bwd_exec(const pl_film_bwd_call *c, void *workspace, pl_team team)
{
    assert(c->samples > 0 && c->rows > 0 && c->positions > 0);
    film_work w = begin_film(c, c->samples, c->channels, c->s, c->s_type, workspace, team);
    lay_out_sums(c, &w);
    w.sum = (float *)workspace + begin_bytes(c->samples, c->channels, c->s_type) / sizeof(float);
    w.partial = w.sum + 2 * w.wave * w.ld;
    pl_parallel(team, c->samples * c->rows * c->positions * c->channels, film_bwd_part, &w);
}

/* ---- softmax pools: workspace a number a time of each sample, backward two ---- */

uint64_t pl_softmax_pool_workspace_bytes(const pl_softmax_pool_call *c, pl_team team)
{
    (void)team;
    return (uint64_t)c->samples * (uint64_t)c->times * sizeof(float);
}

static void pool_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_softmax_pool_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t b = own.begin; b < own.end; b++)
        w->kernels->softmax_pool(c->times, c->channels, c->type, pl_real_at(c->type, c->x, b * c->times * c->channels),
                                 pl_real_at(c->type, c->e, b * c->times), w->scratch + b * c->times,
                                 pl_real_at(c->type, c->y, b * c->channels));
}

void pl_softmax_pool_exec(const pl_softmax_pool_call *c, void *workspace, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa), workspace};
    pl_parallel(team, c->samples * c->times * c->channels, pool_part, &w);
}

uint64_t pl_softmax_pool_bwd_workspace_bytes(const pl_softmax_pool_bwd_call *c, pl_team team)
{
    (void)team;
    return 2 * (uint64_t)c->samples * (uint64_t)c->times * sizeof(float);
}

static void pool_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_softmax_pool_bwd_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t b = own.begin; b < own.end; b++) {
        int64_t at = b * c->times * c->channels;
        w->kernels->softmax_pool_bwd(c->times, c->channels, c->type, pl_real_at(c->type, c->dy, b * c->channels),
                                     pl_real_at(c->type, c->x, at), pl_real_at(c->type, c->e, b * c->times),
                                     w->scratch + 2 * b * c->times, at_or_null(c->type, c->dx, at),
                                     at_or_null(c->type, c->de, b * c->times));
    }
}

void pl_softmax_pool_bwd_exec(const pl_softmax_pool_bwd_call *c, void *workspace, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa), workspace};
    pl_parallel(team, c->samples * c->times * c->channels, pool_bwd_part, &w);
}
