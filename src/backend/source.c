/* First values: constants and normal numbers from Philox, and the rows of the key-value cache. Elements are shared out
 * statically; each is a function of its index alone. */
#include <string.h>

#include "backend/backend.h"
#include "base/philox.h"

void pl_fill_value_exec(const pl_fill_value_call *c, pl_team team)
{
    (void)team;
    for (uint64_t i = 0; i < c->count; i++) c->y[i] = c->value;
}

enum { NORMAL_CHUNK = 4096 };

static void normal_chunk(const pl_normal_call *c, const pl_philox *philox, uint64_t chunk)
{
    uint64_t begin = chunk * NORMAL_CHUNK, end = begin + NORMAL_CHUNK < c->count ? begin + NORMAL_CHUNK : c->count;
    pl_philox_normal_f32(philox, 0, 0, begin, end, c->y + begin);
    for (uint64_t i = begin; i < end; i++) c->y[i] *= c->std;
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

/* Numbers come by fours from a block of the generator, and a block belongs to one chunk. */
static void uniform_chunk(const pl_uniform_call *c, const pl_philox *philox, uint64_t item, uint64_t chunk)
{
    uint64_t begin = chunk * NORMAL_CHUNK, end = begin + NORMAL_CHUNK < c->count ? begin + NORMAL_CHUNK : c->count;
    uint32_t bits[4];
    for (uint64_t i = begin; i < end; i++) {
        if (i % 4 == 0) pl_philox_block(philox, 0, item, (uint32_t)(i / 4), bits);
        c->y[i] = (2 * pl_uniform_f32(bits[i % 4]) - 1) * c->bound + c->middle;
    }
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
    (void)team;
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t row = *c->position + i;
        if (row >= 0 && row < c->room)
            memcpy(c->cache + row * c->width, c->x + i * c->ld, (size_t)c->width * sizeof(float));
    }
}
