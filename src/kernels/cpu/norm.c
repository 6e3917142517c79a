/* Layer norm and RMS norm over rows [begin, end) of x[rows, width].
 *
 * Statistics take two passes (mean, then squared deviations), so that a large common offset costs no digits; a row
 * stays in the first-level cache, so memory sees one pass. Four vector accumulators, added in fixed order. Forward,
 * narrow rows go through each pass in groups: while one row waits for its sum, the next is under way.
 * Backward, with x̂ = (x − μ)·r, g = dy·γ:  dx = r·(g − ⟨g⟩ − x̂·⟨g·x̂⟩), without ⟨g⟩ in RMS norm, where μ is 0. */
#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

/* v in the first `count` lanes, 0 in the others. */
PL_V_INLINE pl_vf first_lanes(pl_vf v, int64_t count)
{
    static const int32_t lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    pl_vi lane;
    memcpy(&lane, lane_numbers, sizeof lane);
    return (pl_vf)((pl_vi)v & (lane < pl_v_set_i32((int32_t)count)));
}

/* A whole vector of x from element j on. */
PL_V_INLINE pl_vf load_at(pl_real type, const void *x, int64_t j) { return pl_v_get(type, x, j, PL_VW); }

PL_V_INLINE float row_sum(pl_real type, int64_t width, const void *x)
{
    pl_vf s0 = pl_v_zero(), s1 = s0, s2 = s0, s3 = s0;
    int64_t j = 0;
    for (; j + 4 * PL_VW <= width; j += 4 * PL_VW) {
        s0 += load_at(type, x, j), s1 += load_at(type, x, j + PL_VW);
        s2 += load_at(type, x, j + 2 * PL_VW), s3 += load_at(type, x, j + 3 * PL_VW);
    }
    for (; j + PL_VW <= width; j += PL_VW) s0 += load_at(type, x, j);
    if (j < width) s1 += pl_v_get(type, x, j, width - j);
    return pl_v_sum((s0 + s1) + (s2 + s3));
}

PL_V_INLINE pl_vf add_square(pl_vf sum, pl_vf d) { return pl_v_fma(d, d, sum); }

/* Σ (x − mean)² */
PL_V_INLINE float row_squares(pl_real type, int64_t width, const void *x, float mean)
{
    pl_vf m = pl_v_set(mean), s0 = pl_v_zero(), s1 = s0, s2 = s0, s3 = s0;
    int64_t j = 0;
    for (; j + 4 * PL_VW <= width; j += 4 * PL_VW) {
        s0 = add_square(s0, load_at(type, x, j) - m), s1 = add_square(s1, load_at(type, x, j + PL_VW) - m);
        s2 = add_square(s2, load_at(type, x, j + 2 * PL_VW) - m);
        s3 = add_square(s3, load_at(type, x, j + 3 * PL_VW) - m);
    }
    for (; j + PL_VW <= width; j += PL_VW) s0 = add_square(s0, load_at(type, x, j) - m);
    if (j < width) s1 = add_square(s1, first_lanes(pl_v_get(type, x, j, width - j) - m, width - j));
    return pl_v_sum((s0 + s1) + (s2 + s3));
}

/* f32, gain and offset and partial sums. */
PL_V_INLINE pl_vf load_n(const float *x, int64_t j, int64_t count) { return pl_v_get(PL_REAL_F32, x, j, count); }
PL_V_INLINE void store_n(float *x, int64_t j, pl_vf v, int64_t count) { pl_v_put(PL_REAL_F32, x, j, v, count); }

/* Lanes j … j + count of y = (x − mean)·rstd·gamma + beta; y may be x. Without gamma there is no beta. */
PL_V_INLINE void normalise_lanes(pl_real type, float mean, float rstd, const void *x, const float *gamma,
                                 const float *beta, void *y, int64_t j, int64_t count)
{
    pl_vf normal = (pl_v_get(type, x, j, count) - mean) * rstd;
    pl_vf offset = beta ? load_n(beta, j, count) : pl_v_zero();
    pl_v_put(type, y, j, gamma ? pl_v_fma(normal, load_n(gamma, j, count), offset) : normal, count);
}

PL_V_INLINE void normalise_row(pl_real type, int64_t width, float mean, float rstd, const void *x, const float *gamma,
                               const float *beta, void *y)
{
    int64_t j = 0;
    for (; j + PL_VW <= width; j += PL_VW) normalise_lanes(type, mean, rstd, x, gamma, beta, y, j, PL_VW);
    if (j < width) normalise_lanes(type, mean, rstd, x, gamma, beta, y, j, width - j);
}

enum { GROUP_ROWS = 4, GROUP_WIDTH_MAX = 1024 }; /* a group fits the first-level cache */

static int64_t rows_of_group(int64_t width, int64_t left)
{
    int64_t rows = width <= GROUP_WIDTH_MAX ? GROUP_ROWS : 1;
    return rows < left ? rows : left;
}

PL_V_INLINE void norm_rows(pl_real type, int64_t begin, int64_t end, int64_t width, int rms, float eps, const void *x,
                           const float *gamma, const float *beta, void *y, float *mean, float *rstd)
{
    for (int64_t r = begin, rows; r < end; r += rows) {
        float m[GROUP_ROWS] = {0}, s[GROUP_ROWS];
        const void *from = pl_real_at(type, x, r * width);
        void *to = pl_real_at(type, y, r * width);
        rows = rows_of_group(width, end - r);
        for (int64_t i = 0; i < rows && !rms; i++)
            m[i] = row_sum(type, width, pl_real_at(type, from, i * width)) / (float)width;
        for (int64_t i = 0; i < rows; i++) s[i] = row_squares(type, width, pl_real_at(type, from, i * width), m[i]);
        for (int64_t i = 0; i < rows; i++) s[i] = 1 / __builtin_sqrtf(s[i] / (float)width + eps);
        for (int64_t i = 0; i < rows; i++) {
            const void *row = pl_real_at(type, from, i * width);
            if (beta)
                normalise_row(type, width, m[i], s[i], row, gamma, beta, pl_real_at(type, to, i * width));
            else if (gamma)
                normalise_row(type, width, m[i], s[i], row, gamma, NULL, pl_real_at(type, to, i * width));
            else
                normalise_row(type, width, m[i], s[i], row, NULL, NULL, pl_real_at(type, to, i * width));
        }
        if (mean) memcpy(mean + r, m, (size_t)rows * sizeof(float));
        if (rstd) memcpy(rstd + r, s, (size_t)rows * sizeof(float));
    }
}

void PL_KERNEL(norm_rows)(int64_t begin, int64_t end, int64_t width, int rms, float eps, pl_real type, const void *x,
                          const float *gamma, const float *beta, void *y, float *mean, float *rstd)
{
    PL_REAL_EACH(type, norm_rows(REAL, begin, end, width, rms, eps, x, gamma, beta, y, mean, rstd));
}

/* ---- backward ---- */

typedef struct bwd_row {
    pl_real type; /* of dy, x, add and dx */
    float mean, rstd;
    const void *dy, *x;
    const float *gamma;
    const void *add;
    void *dx;
    float *partial_gamma, *partial_beta;
} bwd_row;

typedef struct row_moments {
    pl_vf g, gx; /* Σ g, Σ g·x̂, lane by lane */
} row_moments;

/* Adds the lanes' share to the two sums of the row and to the partial sums of dgamma and dbeta. */
PL_V_INLINE void gather_lanes(const bwd_row *w, int has_beta, row_moments *sum, int64_t j, int64_t count)
{
    pl_vf d = pl_v_get(w->type, w->dy, j, count);
    pl_vf normal = (pl_v_get(w->type, w->x, j, count) - w->mean) * w->rstd;
    pl_vf g = w->gamma ? d * load_n(w->gamma, j, count) : d; /* 0 in pad lanes */
    sum->g += g;
    sum->gx = pl_v_fma(g, normal, sum->gx);
    if (w->gamma) store_n(w->partial_gamma, j, pl_v_fma(d, normal, load_n(w->partial_gamma, j, count)), count);
    if (has_beta) store_n(w->partial_beta, j, load_n(w->partial_beta, j, count) + d, count);
}

PL_V_INLINE row_moments gather_row(int64_t width, const bwd_row *w, int has_beta)
{
    row_moments even = {pl_v_zero(), pl_v_zero()}, odd = even;
    int64_t j = 0;
    for (; j + 2 * PL_VW <= width; j += 2 * PL_VW) {
        gather_lanes(w, has_beta, &even, j, PL_VW);
        gather_lanes(w, has_beta, &odd, j + PL_VW, PL_VW);
    }
    for (; j + PL_VW <= width; j += PL_VW) gather_lanes(w, has_beta, &even, j, PL_VW);
    if (j < width) gather_lanes(w, has_beta, &odd, j, width - j);
    return (row_moments){even.g + odd.g, even.gx + odd.gx};
}

/* dx = (add +) rstd·(g − mean_g − x̂·mean_gx); dx may be dy, x or add */
PL_V_INLINE void dx_lanes(const bwd_row *w, int has_add, float mean_g, float mean_gx, int64_t j, int64_t count)
{
    pl_vf normal = (pl_v_get(w->type, w->x, j, count) - w->mean) * w->rstd;
    pl_vf dy = pl_v_get(w->type, w->dy, j, count);
    pl_vf centred = w->gamma ? pl_v_fma(dy, load_n(w->gamma, j, count), pl_v_set(-mean_g)) : dy - mean_g;
    pl_vf d = pl_v_fma(normal, pl_v_set(-mean_gx), centred);
    pl_vf above = has_add ? pl_v_get(w->type, w->add, j, count) : pl_v_zero();
    pl_v_put(w->type, w->dx, j, pl_v_fma(d, pl_v_set(w->rstd), above), count);
}

PL_V_INLINE void dx_row(int64_t width, const bwd_row *w, int has_add, float mean_g, float mean_gx)
{
    int64_t j = 0;
    for (; j + PL_VW <= width; j += PL_VW) dx_lanes(w, has_add, mean_g, mean_gx, j, PL_VW);
    if (j < width) dx_lanes(w, has_add, mean_g, mean_gx, j, width - j);
}

PL_V_INLINE void norm_bwd_rows(pl_real type, int64_t begin, int64_t end, int64_t width, int rms, const void *dy,
                               const void *x, const float *gamma, const float *mean, const float *rstd, const void *add,
                               void *dx, float *partial_gamma, float *partial_beta)
{
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * width;
        bwd_row w = {type,
                     rms ? 0 : mean[r],
                     rstd[r],
                     pl_real_at(type, dy, at),
                     pl_real_at(type, x, at),
                     gamma,
                     add ? pl_real_at(type, add, at) : NULL,
                     dx ? pl_real_at(type, dx, at) : NULL,
                     partial_gamma,
                     partial_beta};
        row_moments sum = partial_beta ? gather_row(width, &w, 1) : gather_row(width, &w, 0);
        if (!dx) continue;
        float mean_g = rms ? 0 : pl_v_sum(sum.g) / (float)width, mean_gx = pl_v_sum(sum.gx) / (float)width;
        if (add)
            dx_row(width, &w, 1, mean_g, mean_gx);
        else
            dx_row(width, &w, 0, mean_g, mean_gx);
    }
}

void PL_KERNEL(norm_bwd_rows)(int64_t begin, int64_t end, int64_t width, int rms, pl_real type, const void *dy,
                              const void *x, const float *gamma, const float *mean, const float *rstd, const void *add,
                              void *dx, float *partial_gamma, float *partial_beta)
{
    if (partial_gamma) memset(partial_gamma, 0, (size_t)width * sizeof(float));
    if (partial_beta) memset(partial_beta, 0, (size_t)width * sizeof(float));
    PL_REAL_EACH(type, norm_bwd_rows(REAL, begin, end, width, rms, dy, x, gamma, mean, rstd, add, dx, partial_gamma,
                                     partial_beta));
}

/* out[j] += Σ_b partial[b, j] for columns [begin, end), b in order: the last step of a sum over blocks of rows. */
void PL_KERNEL(add_blocks)(int64_t begin, int64_t end, int64_t blocks, int64_t ld, const float *partial, float *out)
{
    int64_t j = begin;
    for (; j + 4 * PL_VW <= end; j += 4 * PL_VW) {
        pl_vf s0 = pl_v_load(out + j), s1 = pl_v_load(out + j + PL_VW);
        pl_vf s2 = pl_v_load(out + j + 2 * PL_VW), s3 = pl_v_load(out + j + 3 * PL_VW);
        for (int64_t b = 0; b < blocks; b++) {
            const float *p = partial + b * ld + j;
            s0 += pl_v_load(p), s1 += pl_v_load(p + PL_VW);
            s2 += pl_v_load(p + 2 * PL_VW), s3 += pl_v_load(p + 3 * PL_VW);
        }
        pl_v_store(out + j, s0), pl_v_store(out + j + PL_VW, s1);
        pl_v_store(out + j + 2 * PL_VW, s2), pl_v_store(out + j + 3 * PL_VW, s3);
    }
    for (; j < end; j += PL_VW) {
        int64_t count = end - j < PL_VW ? end - j : PL_VW;
        pl_vf s = load_n(out, j, count);
        for (int64_t b = 0; b < blocks; b++) s += load_n(partial + b * ld, j, count);
        store_n(out, j, s, count);
    }
}
