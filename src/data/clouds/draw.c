#include "data/clouds/draw.h"

pl_draw pl_draw_each_once(uint64_t samples, uint64_t seed)
{
    const pl_philox random = pl_philox_init(seed, pl_stream_id("data/shuffle"));
    return (pl_draw){.order = pl_permutation_init(samples, random)};
}

pl_draw pl_draw_weighted(uint64_t samples, uint64_t begin, uint64_t end, double factor, uint64_t seed)
{
    const double heavy = (double)(end - begin) * factor, light = (double)(samples - (end - begin));
    const pl_philox random = pl_philox_init(seed, pl_stream_id("data/draw"));
    return (pl_draw){.order = pl_permutation_init(samples, random),
                     .weighted = true,
                     .begin = begin,
                     .end = end,
                     .share = heavy / (heavy + light)};
}

/* One of `count`, from 64 random bits: the upper half of their product. */
static uint64_t one_of(uint64_t bits, uint64_t count) { return (uint64_t)((unsigned __int128)bits * count >> 64); }

static uint64_t draw(const pl_draw *d, uint64_t number)
{
    uint32_t random[4];
    const uint64_t heavy = d->end - d->begin, light = d->order.count - heavy;
    pl_philox_block(&d->order.random, 0, number, 0, random);
    const double u = (double)((uint64_t)random[0] << 21 | random[1] >> 11) * 0x1p-53; /* [0, 1) */
    const uint64_t bits = (uint64_t)random[2] << 32 | random[3];
    if (u < d->share) return d->begin + one_of(bits, heavy);
    const uint64_t place = one_of(bits, light);
    return place < d->begin ? place : place + heavy;
}

uint64_t pl_draw_at(const pl_draw *d, uint64_t number)
{
    const uint64_t samples = d->order.count;
    return d->weighted ? draw(d, number) : pl_permutation_at(&d->order, number / samples, number % samples);
}
