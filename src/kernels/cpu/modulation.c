/* Gates, blends, and sums over time with weights from a softmax. What a vector of channels is multiplied with is
 * computed for a vector of positions at once where they share a gate. */
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

PL_V_INLINE int64_t lanes(int64_t left) { return left < PL_VW ? left : PL_VW; }

/* y = x·factor */
PL_V_INLINE void scale_row(pl_real type, int64_t count, const void *x, float factor, void *y)
{
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        pl_v_put(type, y, i, pl_v_get(type, x, i, n) * factor, n);
    }
}

PL_V_INLINE float row_dot(pl_real type, int64_t count, const void *a, const void *b)
{
    pl_vf sum = pl_v_zero();
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        sum = pl_v_fma(pl_v_get(type, a, i, n), pl_v_get(type, b, i, n), sum);
    }
    return pl_v_sum(sum);
}

/* ---- a gate for each number ---- */

PL_V_INLINE void gate_each(pl_real type, int64_t count, const void *x, const void *g, void *y)
{
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        pl_v_put(type, y, i, pl_v_get(type, x, i, n) * pl_v_sigmoid(pl_v_get(type, g, i, n)), n);
    }
}

PL_V_INLINE void gate_each_bwd(pl_real type, int64_t count, const void *dy, const void *x, const void *g, void *dx,
                               void *dg)
{
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        pl_vf d = pl_v_get(type, dy, i, n), gate = pl_v_get(type, g, i, n), from = pl_v_get(type, x, i, n);
        if (dx) pl_v_put(type, dx, i, d * pl_v_sigmoid(gate), n);
        if (dg) pl_v_put(type, dg, i, d * from * pl_v_sigmoid_grad(gate), n);
    }
}

/* ---- one for all channels of a position ---- */

PL_V_INLINE void gate_all(pl_real type, int64_t positions, int64_t channels, const void *x, const void *g, void *y)
{
    for (int64_t p = 0; p < positions; p += PL_VW) {
        int64_t n = lanes(positions - p);
        float open[PL_VW];
        pl_v_store(open, pl_v_sigmoid(pl_v_get(type, g, p, n)));
        for (int64_t i = 0; i < n; i++) {
            int64_t at = (p + i) * channels;
            scale_row(type, channels, pl_real_at(type, x, at), open[i], pl_real_at(type, y, at));
        }
    }
}

/* The sum of a position first: dx may take the place of what it is made of. */
PL_V_INLINE void gate_all_bwd(pl_real type, int64_t positions, int64_t channels, const void *dy, const void *x,
                              const void *g, void *dx, void *dg)
{
    for (int64_t p = 0; p < positions; p += PL_VW) {
        int64_t n = lanes(positions - p);
        pl_vf gate = pl_v_get(type, g, p, n), dots = pl_v_zero();
        float open[PL_VW], dot[PL_VW] = {0};
        pl_v_store(open, pl_v_sigmoid(gate));
        for (int64_t i = 0; i < n; i++) {
            const void *d = pl_real_at(type, dy, (p + i) * channels);
            if (dg) dot[i] = row_dot(type, channels, d, pl_real_at(type, x, (p + i) * channels));
            if (dx) scale_row(type, channels, d, open[i], pl_real_at(type, dx, (p + i) * channels));
        }
        dots = pl_v_load(dot);
        if (dg) pl_v_put(type, dg, p, dots * pl_v_sigmoid_grad(gate), n);
    }
}

void PL_KERNEL(gate)(int64_t positions, int64_t channels, int64_t gates, pl_real type, const void *x, const void *g,
                     void *y)
{
    if (gates == channels)
        PL_REAL_EACH(type, gate_each(REAL, positions * channels, x, g, y));
    else
        PL_REAL_EACH(type, gate_all(REAL, positions, channels, x, g, y));
}

void PL_KERNEL(gate_bwd)(int64_t positions, int64_t channels, int64_t gates, pl_real type, const void *dy,
                         const void *x, const void *g, void *dx, void *dg)
{
    if (gates == channels)
        PL_REAL_EACH(type, gate_each_bwd(REAL, positions * channels, dy, x, g, dx, dg));
    else
        PL_REAL_EACH(type, gate_all_bwd(REAL, positions, channels, dy, x, g, dx, dg));
}

/* ---- blends ---- */

/* All lanes are the logit. */
PL_V_INLINE pl_vf logit_of(pl_real type, const void *z, int64_t gate) { return pl_v_set(pl_real_get(type, z, gate)); }

PL_V_INLINE float sigmoid_of(pl_vf x)
{
    pl_vf y = pl_v_sigmoid(x);
    return y[0];
}

/* near + far_share·(far − near): what is the same in both stays as it is, and so does the one whose gate is open */
PL_V_INLINE void blend_row(pl_real type, int64_t count, const void *near, const void *far, pl_vf far_share, void *y)
{
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        pl_vf from = pl_v_get(type, near, i, n);
        pl_v_put(type, y, i, pl_v_fma(far_share, pl_v_get(type, far, i, n) - from, from), n);
    }
}

PL_V_INLINE void blend(pl_real type, int64_t begin, int64_t end, int64_t shared, int64_t width, const void *a,
                       const void *b, const void *z, void *y, float *g)
{
    pl_vf logit = pl_v_zero(), far_share = pl_v_zero();
    for (int64_t r = begin; r < end; r++) {
        const void *from_a = pl_real_at(type, a, r * width), *from_b = pl_real_at(type, b, r * width);
        if (r == begin || r % shared == 0) {
            logit = logit_of(type, z, r / shared);
            far_share = pl_v_sigmoid(-pl_v_abs(logit));
        }
        if (g && r % shared == 0) g[r / shared] = sigmoid_of(logit);
        blend_row(type, width, logit[0] > 0 ? from_a : from_b, logit[0] > 0 ? from_b : from_a, far_share,
                  pl_real_at(type, y, r * width));
    }
}

/* Σ dy·(a − b) of a row, and what becomes of it: da and db may take the place of what they are made of. */
PL_V_INLINE float blend_row_bwd(pl_real type, int64_t count, const void *dy, const void *a, const void *b, pl_vf open,
                                pl_vf closed, void *da, void *db)
{
    pl_vf sum = pl_v_zero();
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        pl_vf d = pl_v_get(type, dy, i, n);
        sum = pl_v_fma(d, pl_v_get(type, a, i, n) - pl_v_get(type, b, i, n), sum);
        if (da) pl_v_put(type, da, i, d * open, n);
        if (db) pl_v_put(type, db, i, d * closed, n);
    }
    return pl_v_sum(sum);
}

PL_V_INLINE void blend_bwd(pl_real type, int64_t begin, int64_t end, int64_t shared, int64_t width, const void *dy,
                           const void *a, const void *b, const void *z, void *da, void *db, void *dz)
{
    for (int64_t k = begin; k < end; k++) {
        pl_vf logit = logit_of(type, z, k), open = pl_v_sigmoid(logit), closed = pl_v_sigmoid(-logit);
        pl_vf slope = pl_v_sigmoid_grad(logit);
        float sum = 0;
        for (int64_t r = k * shared; r < (k + 1) * shared; r++) {
            int64_t at = r * width;
            sum +=
                blend_row_bwd(type, width, pl_real_at(type, dy, at), pl_real_at(type, a, at), pl_real_at(type, b, at),
                              open, closed, da ? pl_real_at(type, da, at) : NULL, db ? pl_real_at(type, db, at) : NULL);
        }
        if (dz) pl_real_put(type, dz, k, sum * slope[0]);
    }
}

void PL_KERNEL(blend)(int64_t begin, int64_t end, int64_t shared, int64_t width, pl_real type, const void *a,
                      const void *b, const void *z, void *y, float *g)
{
    PL_REAL_EACH(type, blend(REAL, begin, end, shared, width, a, b, z, y, g));
}

void PL_KERNEL(blend_bwd)(int64_t begin, int64_t end, int64_t shared, int64_t width, pl_real type, const void *dy,
                          const void *a, const void *b, const void *z, void *da, void *db, void *dz)
{
    PL_REAL_EACH(type, blend_bwd(REAL, begin, end, shared, width, dy, a, b, z, da, db, dz));
}

/* ---- sums over time ---- */

/* softmax(e) */
PL_V_INLINE void find_shares(pl_real type, int64_t times, const void *e, float *share)
{
    float largest = pl_real_get(type, e, 0), sum = 0;
    for (int64_t t = 1; t < times; t++) {
        float at = pl_real_get(type, e, t);
        largest = at > largest ? at : largest;
    }
    for (int64_t t = 0; t < times; t += PL_VW) {
        int64_t n = lanes(times - t);
        pl_v_store_part(share + t, pl_v_exp_flush(pl_v_get(type, e, t, n) - largest), n);
    }
    for (int64_t t = 0; t < times; t++) sum += share[t];
    for (int64_t t = 0; t < times; t++) share[t] /= sum;
}

PL_V_INLINE void pool(pl_real type, int64_t times, int64_t channels, const void *x, const void *e, float *share,
                      void *y)
{
    find_shares(type, times, e, share);
    for (int64_t c = 0; c < channels; c += PL_VW) {
        int64_t n = lanes(channels - c);
        pl_vf sum = pl_v_zero();
        for (int64_t t = 0; t < times; t++)
            sum = pl_v_fma(pl_v_set(share[t]), pl_v_get(type, x, t * channels + c, n), sum);
        pl_v_put(type, y, c, sum, n);
    }
}

/* All products with x first: dx may take its place. */
PL_V_INLINE void pool_bwd(pl_real type, int64_t times, int64_t channels, const void *dy, const void *x, const void *e,
                          float *share, void *dx, void *de)
{
    float *dot = share + times, mean = 0;
    find_shares(type, times, e, share);
    for (int64_t t = 0; t < times && de; t++) {
        dot[t] = row_dot(type, channels, dy, pl_real_at(type, x, t * channels));
        mean += share[t] * dot[t];
    }
    for (int64_t t = 0; t < times; t++) {
        if (dx) scale_row(type, channels, dy, share[t], pl_real_at(type, dx, t * channels));
        if (de) pl_real_put(type, de, t, share[t] * (dot[t] - mean));
    }
}

void PL_KERNEL(softmax_pool)(int64_t times, int64_t channels, pl_real type, const void *x, const void *e, float *share,
                             void *y)
{
    PL_REAL_EACH(type, pool(REAL, times, channels, x, e, share, y));
}

void PL_KERNEL(softmax_pool_bwd)(int64_t times, int64_t channels, pl_real type, const void *dy, const void *x,
                                 const void *e, float *share, void *dx, void *de)
{
    PL_REAL_EACH(type, pool_bwd(REAL, times, channels, dy, x, e, share, dx, de));
}
