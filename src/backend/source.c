/* First values: constants and normal numbers from Philox, and the rows of the key-value cache. Elements are shared out
 * statically; each is a function of its index alone. */
#include <math.h>
#include <string.h>

#include "backend/backend.h"
#include "base/philox.h"
#include "kernels/kernels.h"

void pl_fill_value_exec(const pl_fill_value_call *c, pl_team team)
{
    float *y = c->y;
    int32_t *id = c->y;
    (void)team;
    for (uint64_t i = 0; i < c->count; i++)
        if (c->ids)
            id[i] = (int32_t)c->value;
        else
            y[i] = (float)c->value;
}

enum { NORMAL_CHUNK = 4096 };

/* Numbers are made in f32 and rounded once: a chunk that lies in 16 bits is made beside its place. */
static float *place_of(pl_real type, void *y, uint64_t begin, float made[NORMAL_CHUNK])
{
    return type == PL_REAL_F32 ? (float *)y + begin : made;
}

static void put_chunk(pl_real type, void *y, uint64_t begin, uint64_t end, const float *made)
{
    for (uint64_t i = begin; type != PL_REAL_F32 && i < end; i++) pl_real_put(type, y, (int64_t)i, made[i - begin]);
}

static void normal_chunk(const pl_normal_call *c, const pl_philox *philox, uint64_t chunk)
{
    float made[NORMAL_CHUNK];
    uint64_t begin = chunk * NORMAL_CHUNK, end = begin + NORMAL_CHUNK < c->count ? begin + NORMAL_CHUNK : c->count;
    float *to = place_of(c->type, c->y, begin, made);
    pl_philox_normal_f32(philox, 0, 0, begin, end, to);
    for (uint64_t i = begin; i < end; i++) to[i - begin] *= c->std;
    put_chunk(c->type, c->y, begin, end, to);
}

void pl_normal_exec(const pl_normal_call *c, pl_team team)
{
    pl_philox philox = pl_philox_init(c->seed, c->stream);
    uint64_t chunks = (c->count + NORMAL_CHUNK - 1) / NORMAL_CHUNK;
    if (team.threads == 1 || chunks < 2) {
        for (uint64_t i = 0; i < chunks; i++) normal_chunk(c, &philox, i);
        return;
    }
#pragma omp parallel for num_threads(team.threads) schedule(static)
    for (uint64_t i = 0; i < chunks; i++) normal_chunk(c, &philox, i);
}

/* The inverse of erf for |x| below 0.95, in f32's precision (M. Giles, Approximating the erfinv function, 2010, the
 * central polynomial). */
static double inverse_erf(double x)
{
    static const double c[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                               -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
    const double w = -log((1 - x) * (1 + x)) - 2.5;
    double p = c[0];
    for (size_t k = 1; k < sizeof c / sizeof *c; k++) p = c[k] + p * w;
    return p * x;
}

/* A uniform number of each, spread over what the error function makes of ± two deviations, and turned back. */
static void truncated_chunk(const pl_normal_call *c, const pl_philox *philox, uint64_t chunk)
{
    static const double erf_of_2 = 0.95449973610364158 /* of two deviations */, left = 0.87962566103423978;
    const uint64_t begin = chunk * NORMAL_CHUNK, after = begin + NORMAL_CHUNK,
                   end = after < c->count ? after : c->count;
    const double wide = c->std / left, most = 2 * wide;
    float made[NORMAL_CHUNK], *to = place_of(c->type, c->y, begin, made);
    uint32_t bits[4];
    for (uint64_t i = begin; i < end; i++) {
        if (i % 4 == 0) pl_philox_block(philox, 0, 0, (uint32_t)(i / 4), bits);
        const double x = M_SQRT2 * wide * inverse_erf((2 * (double)pl_uniform_f32(bits[i % 4]) - 1) * erf_of_2);
        to[i - begin] = (float)(x > most ? most : x < -most ? -most : x);
    }
    put_chunk(c->type, c->y, begin, end, to);
}

void pl_truncated_normal_exec(const pl_normal_call *c, pl_team team)
{
    const pl_philox philox = pl_philox_init(c->seed, c->stream);
    const uint64_t chunks = (c->count + NORMAL_CHUNK - 1) / NORMAL_CHUNK;
    if (team.threads == 1 || chunks < 2) {
        for (uint64_t i = 0; i < chunks; i++) truncated_chunk(c, &philox, i);
        return;
    }
#pragma omp parallel for num_threads(team.threads) schedule(static)
    for (uint64_t i = 0; i < chunks; i++) truncated_chunk(c, &philox, i);
}

/* Numbers come by fours from a block of the generator, and a block belongs to one chunk. */
static void uniform_chunk(const pl_uniform_call *c, const pl_philox *philox, uint64_t item, uint64_t chunk)
{
    uint64_t begin = chunk * NORMAL_CHUNK, end = begin + NORMAL_CHUNK < c->count ? begin + NORMAL_CHUNK : c->count;
    float made[NORMAL_CHUNK], *to = place_of(c->type, c->y, begin, made);
    uint32_t bits[4];
    for (uint64_t i = begin; i < end; i++) {
        if (i % 4 == 0) pl_philox_block(philox, 0, item, (uint32_t)(i / 4), bits);
        to[i - begin] = (2 * pl_uniform_f32(bits[i % 4]) - 1) * c->bound + c->middle;
    }
    put_chunk(c->type, c->y, begin, end, to);
}

void pl_uniform_exec(const pl_uniform_call *c, pl_team team)
{
    pl_philox philox = pl_philox_init(c->seed, c->stream);
    const uint64_t item = c->item ? (uint64_t)*c->item : 0;
    uint64_t chunks = (c->count + NORMAL_CHUNK - 1) / NORMAL_CHUNK;
    if (team.threads == 1 || chunks < 2) {
        for (uint64_t i = 0; i < chunks; i++) uniform_chunk(c, &philox, item, i);
        return;
    }
#pragma omp parallel for num_threads(team.threads) schedule(static)
    for (uint64_t i = 0; i < chunks; i++) uniform_chunk(c, &philox, item, i);
}

void pl_cache_write_exec(const pl_cache_write_call *c, pl_team team)
{
    for (int64_t r = 0; r < c->sequences * c->rows; r++) {
        const int64_t b = r / c->rows, i = r % c->rows, at = pl_position_of(c->position, c->positions, b) + i;
        const int64_t place = c->ring ? at % c->room : at, row = (c->sequence ? *c->sequence : b) * c->room + place;
        if (place < 0 || place >= c->room) continue;
        const void *x = pl_real_at(c->type, c->x, b * c->stride + i * c->ld);
        void *to = pl_real_at(c->cache_type, c->cache, row * c->width);
        if (c->encoding)
            pl_encoding_narrow(c->encoding, x, c->width,
                               (char *)c->cache + row * pl_encoding_row_bytes(c->encoding, c->width));
        else if (c->cache_type == c->type)
            memcpy(to, x, (size_t)(c->width * pl_real_bytes(c->type)));
        else
            pl_kernels_get(team.isa)->cast(c->width, c->type, x, c->cache_type, to);
    }
}
