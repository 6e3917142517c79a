/* Pools and changes of size, N,H,W,C: a vector holds neighbouring channels of one pixel. */
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vec_whole.h"
#include "kernels/kernels.h"

/* ---- the largest of 2×2 ---- */

/* The one of two that counts, and where it is: NaN is larger than all, and of equal numbers the first counts. */
PL_V_INLINE void take_larger(pl_vf *best, pl_vi *place, pl_vf x, int32_t k)
{
    pl_vi larger = (x > *best) | (x != x);
    *best = pl_v_select(larger, x, *best);
    *place = (larger & pl_v_set_i32(k)) | (~larger & *place);
}

PL_V_INLINE void store_places(uint8_t *argmax, pl_vi place, int64_t count)
{
    if (count == PL_VW)
        pl_v_store_u8(argmax, place);
    else
        for (int64_t i = 0; i < count; i++) argmax[i] = (uint8_t)place[i];
}

PL_V_INLINE void max_lanes(pl_real type, int64_t channels, const void *upper, const void *lower, void *y,
                           uint8_t *argmax, int64_t c, int64_t count)
{
    pl_vf best = pl_v_get(type, upper, c, count);
    pl_vi place = pl_v_set_i32(0);
    take_larger(&best, &place, pl_v_get(type, upper, c + channels, count), 1);
    take_larger(&best, &place, pl_v_get(type, lower, c, count), 2);
    take_larger(&best, &place, pl_v_get(type, lower, c + channels, count), 3);
    pl_v_put(type, y, c, best, count);
    if (argmax) store_places(argmax + c, place, count);
}

PL_V_INLINE void max_row(pl_real type, int64_t columns, int64_t channels, const void *upper, const void *lower, void *y,
                         uint8_t *argmax)
{
    for (int64_t o = 0; o < columns; o++) {
        int64_t c = 0, at = 2 * o * channels;
        const void *u = pl_real_at(type, upper, at), *l = pl_real_at(type, lower, at);
        void *to = pl_real_at(type, y, o * channels);
        uint8_t *places = argmax ? argmax + o * channels : NULL;
        for (; c + PL_VW <= channels; c += PL_VW) max_lanes(type, channels, u, l, to, places, c, PL_VW);
        if (c < channels) max_lanes(type, channels, u, l, to, places, c, channels - c);
    }
}

void PL_KERNEL(max_pool_row)(int64_t columns, int64_t channels, pl_real type, const void *upper, const void *lower,
                             void *y, uint8_t *argmax)
{
    PL_REAL_EACH(type, max_row(REAL, columns, channels, upper, lower, y, argmax));
}

PL_V_INLINE pl_vi load_places(const uint8_t *argmax, int64_t count)
{
    if (count == PL_VW) return pl_v_load_u8(argmax);
    pl_vi place = pl_v_set_i32(-1);
    for (int64_t i = 0; i < count; i++) place[i] = argmax[i];
    return place;
}

PL_V_INLINE void max_bwd_lanes(pl_real type, int32_t place, const void *dy, const uint8_t *argmax, const void *add,
                               void *dx, int64_t c, int64_t count)
{
    pl_vi here = load_places(argmax + c, count) == place;
    pl_vf d = pl_v_select(here, pl_v_get(type, dy, c, count), pl_v_zero());
    pl_v_put(type, dx, c, add ? d + pl_v_get(type, add, c, count) : d, count);
}

/* What no window has seen. */
PL_V_INLINE void max_bwd_rest(pl_real type, int64_t begin, int64_t end, const void *add, void *dx)
{
    for (int64_t i = begin; i < end; i += PL_VW) {
        int64_t count = end - i < PL_VW ? end - i : PL_VW;
        pl_v_put(type, dx, i, add ? pl_v_get(type, add, i, count) : pl_v_zero(), count);
    }
}

PL_V_INLINE void max_bwd_row(pl_real type, int64_t columns, int64_t width, int64_t channels, int parity, const void *dy,
                             const uint8_t *argmax, const void *add, void *dx)
{
    for (int64_t column = 0; column < 2 * columns; column++) {
        int64_t c = 0, from = column / 2 * channels, at = column * channels;
        int32_t place = 2 * parity + (int32_t)(column & 1);
        const void *slope = pl_real_at(type, dy, from), *above = add ? pl_real_at(type, add, at) : NULL;
        void *to = pl_real_at(type, dx, at);
        for (; c + PL_VW <= channels; c += PL_VW) max_bwd_lanes(type, place, slope, argmax + from, above, to, c, PL_VW);
        if (c < channels) max_bwd_lanes(type, place, slope, argmax + from, above, to, c, channels - c);
    }
    max_bwd_rest(type, 2 * columns * channels, width * channels, add, dx);
}

void PL_KERNEL(max_pool_bwd_row)(int64_t columns, int64_t width, int64_t channels, int parity, pl_real type,
                                 const void *dy, const uint8_t *argmax, const void *add, void *dx)
{
    PL_REAL_EACH(type, max_bwd_row(REAL, columns, width, channels, parity, dy, argmax, add, dx));
}

/* ---- the largest or the smallest of 2×2, and back through a batch norm that saw the whole image ---- */

PL_V_INLINE void signed_lanes(pl_real type, int64_t channels, const float *sign, const void *upper, const void *lower,
                              void *pooled, uint8_t *argmax, int64_t c, int64_t count)
{
    const pl_vf s = pl_v_get(PL_REAL_F32, sign, c, count), first = pl_v_get(type, upper, c, count);
    pl_vf best = first * s;
    pl_vi place = pl_v_set_i32(0);
    take_larger(&best, &place, pl_v_get(type, upper, c + channels, count) * s, 1);
    take_larger(&best, &place, pl_v_get(type, lower, c, count) * s, 2);
    take_larger(&best, &place, pl_v_get(type, lower, c + channels, count) * s, 3);
    const pl_vi is_zero = s == pl_v_zero();
    place &= ~is_zero; /* 0 times infinity is NaN, which would count as the largest */
    pl_v_put(type, pooled, c, pl_v_select(is_zero, first, best * s), count);
    if (argmax) store_places(argmax + c, place, count);
}

PL_V_INLINE void signed_row(pl_real type, int64_t columns, int64_t channels, const float *sign, const void *upper,
                            const void *lower, void *pooled, uint8_t *argmax)
{
    for (int64_t o = 0; o < columns; o++) {
        int64_t c = 0, at = 2 * o * channels;
        const void *u = pl_real_at(type, upper, at), *l = pl_real_at(type, lower, at);
        void *to = pl_real_at(type, pooled, o * channels);
        uint8_t *places = argmax ? argmax + o * channels : NULL;
        for (; c + PL_VW <= channels; c += PL_VW) signed_lanes(type, channels, sign, u, l, to, places, c, PL_VW);
        if (c < channels) signed_lanes(type, channels, sign, u, l, to, places, c, channels - c);
    }
}

void PL_KERNEL(signed_max_pool_row)(int64_t columns, int64_t channels, pl_real type, const float *sign,
                                    const void *upper, const void *lower, void *pooled, uint8_t *argmax)
{
    PL_REAL_EACH(type, signed_row(REAL, columns, channels, sign, upper, lower, pooled, argmax));
}

/* place −1: no window has seen it. */
PL_V_INLINE void spread_lanes(pl_real type, int32_t place, int64_t channels, const void *g, const uint8_t *argmax,
                              const float *spread, const void *y, void *dy, int64_t c, int64_t count)
{
    const pl_vf shift = pl_v_get(PL_REAL_F32, spread, c, count);
    const pl_vf slope = pl_v_get(PL_REAL_F32, spread, channels + c, count);
    const pl_vf mean = pl_v_get(PL_REAL_F32, spread, 2 * channels + c, count);
    pl_vf d = pl_v_fma(pl_v_get(type, y, c, count) - mean, slope, shift);
    if (place >= 0) d += pl_v_select(load_places(argmax + c, count) == place, pl_v_get(type, g, c, count), pl_v_zero());
    pl_v_put(type, dy, c, d, count);
}

PL_V_INLINE void spread_row(pl_real type, int64_t columns, int64_t width, int64_t channels, int parity, const void *g,
                            const uint8_t *argmax, const float *spread, const void *y, void *dy)
{
    for (int64_t column = 0; column < width; column++) {
        int64_t c = 0, seen = column < 2 * columns ? column / 2 * channels : 0, at = column * channels;
        const int32_t place = column < 2 * columns ? 2 * parity + (int32_t)(column & 1) : -1;
        const void *slope = pl_real_at(type, g, seen), *from = pl_real_at(type, y, at);
        void *to = pl_real_at(type, dy, at);
        for (; c + PL_VW <= channels; c += PL_VW)
            spread_lanes(type, place, channels, slope, argmax + seen, spread, from, to, c, PL_VW);
        if (c < channels) spread_lanes(type, place, channels, slope, argmax + seen, spread, from, to, c, channels - c);
    }
}

void PL_KERNEL(spread_row)(int64_t columns, int64_t width, int64_t channels, int parity, pl_real type, const void *g,
                           const uint8_t *argmax, const float *spread, const void *y, void *dy)
{
    PL_REAL_EACH(type, spread_row(REAL, columns, width, channels, parity, g, argmax, spread, y, dy));
}

/* ---- averages and changes of size: weighted sums of neighbouring pixels ---- */

enum { ABREAST = 4 };
#define EACH PL_V_UNROLL for (int v = 0; v < n; v++)

PL_V_INLINE void resample_lanes(pl_real type, int n, const pl_resample_row *r, int64_t o, const void *x,
                                const void *add, void *y, int64_t c, int64_t count)
{
    const float *weight = r->across.weight + r->across.at[o];
    int64_t first = r->across.first[o] * r->channels + c, taps = r->across.count[o], at = o * r->channels + c;
    pl_vf sum[ABREAST], row[ABREAST];
    EACH sum[v] = pl_v_zero();
    for (int64_t i = 0; i < r->rows; i++) {
        EACH row[v] = pl_v_zero();
        for (int64_t k = 0; k < taps; k++)
            EACH row[v] =
                pl_v_fma(pl_v_set(weight[k]),
                         pl_v_get(type, x, first + i * r->row_ld + k * r->channels + v * PL_VW, count), row[v]);
        EACH sum[v] = pl_v_fma(pl_v_set(r->row_weight[i]), row[v], sum[v]);
    }
    if (add) EACH sum[v] += pl_v_get(type, add, at + v * PL_VW, count);
    EACH pl_v_put(type, y, at + v * PL_VW, sum[v], count);
}

PL_V_INLINE void resample_row(pl_real type, const pl_resample_row *r, const void *x, const void *add, void *y)
{
    const int64_t many = ABREAST * PL_VW;
    for (int64_t o = 0; o < r->columns; o++) {
        int64_t c = 0;
        for (; c + many <= r->count; c += many) resample_lanes(type, ABREAST, r, o, x, add, y, c, PL_VW);
        for (; c + PL_VW <= r->count; c += PL_VW) resample_lanes(type, 1, r, o, x, add, y, c, PL_VW);
        if (c < r->count) resample_lanes(type, 1, r, o, x, add, y, c, r->count - c);
    }
}

void PL_KERNEL(resample_row)(const pl_resample_row *r, pl_real type, const void *x, const void *add, void *y)
{
    PL_REAL_EACH(type, resample_row(REAL, r, x, add, y));
}
