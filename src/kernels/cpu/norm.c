/* Layer norm and RMS norm over rows [begin, end) of x[rows, width].
 *
 * Statistics take two passes (mean, then squared deviations), so that a large common offset costs no digits; a row stays
 * in the first-level cache, so memory sees one pass. Four vector accumulators, added in fixed order.
 * Backward, with x̂ = (x − μ)·r, g = dy·γ:  dx = r·(g − ⟨g⟩ − x̂·⟨g·x̂⟩), without ⟨g⟩ in RMS norm, where μ is 0. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

/* `count` lanes: PL_VW in the loops, where the choice folds away, less in the tail of a row. */
PL_V_INLINE pl_vf load_n(const float *p, int64_t count) { return count == PL_VW ? pl_v_load(p) : pl_v_load_part(p, count); }

PL_V_INLINE void store_n(float *p, pl_vf v, int64_t count)
{
    if (count == PL_VW)
        pl_v_store(p, v);
    else
        pl_v_store_part(p, v, count);
}

/* v in the first `count` lanes, 0 in the others. */
PL_V_INLINE pl_vf first_lanes(pl_vf v, int64_t count)
{
    static const int32_t lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    pl_vi lane;
    memcpy(&lane, lane_numbers, sizeof lane);
    return (pl_vf)((pl_vi)v & (lane < pl_v_set_i32((int32_t)count)));
}

static float row_sum(int64_t width, const float *x)
{
    pl_vf s0 = pl_v_zero(), s1 = s0, s2 = s0, s3 = s0;
    int64_t j = 0;
    for (; j + 4 * PL_VW <= width; j += 4 * PL_VW) {
        s0 += pl_v_load(x + j), s1 += pl_v_load(x + j + PL_VW);
        s2 += pl_v_load(x + j + 2 * PL_VW), s3 += pl_v_load(x + j + 3 * PL_VW);
    }
    for (; j + PL_VW <= width; j += PL_VW) s0 += pl_v_load(x + j);
    if (j < width) s1 += pl_v_load_part(x + j, width - j);
    return pl_v_sum((s0 + s1) + (s2 + s3));
}

PL_V_INLINE pl_vf add_square(pl_vf sum, pl_vf d) { return pl_v_fma(d, d, sum); }

/* Σ (x − mean)² */
static float row_squares(int64_t width, const float *x, float mean)
{
    pl_vf m = pl_v_set(mean), s0 = pl_v_zero(), s1 = s0, s2 = s0, s3 = s0;
    int64_t j = 0;
    for (; j + 4 * PL_VW <= width; j += 4 * PL_VW) {
        s0 = add_square(s0, pl_v_load(x + j) - m), s1 = add_square(s1, pl_v_load(x + j + PL_VW) - m);
        s2 = add_square(s2, pl_v_load(x + j + 2 * PL_VW) - m), s3 = add_square(s3, pl_v_load(x + j + 3 * PL_VW) - m);
    }
    for (; j + PL_VW <= width; j += PL_VW) s0 = add_square(s0, pl_v_load(x + j) - m);
    if (j < width) s1 = add_square(s1, first_lanes(pl_v_load_part(x + j, width - j) - m, width - j));
    return pl_v_sum((s0 + s1) + (s2 + s3));
}

/* y = (x − mean)·rstd·gamma + beta; y may be x */
PL_V_INLINE void normalise_lanes(float mean, float rstd, const float *x, const float *gamma, const float *beta,
                                 float *y, int64_t count)
{
    pl_vf normal = (load_n(x, count) - mean) * rstd;
    pl_vf offset = beta ? load_n(beta, count) : pl_v_zero();
    store_n(y, pl_v_fma(normal, load_n(gamma, count), offset), count);
}

PL_V_INLINE void normalise_row(int64_t width, float mean, float rstd, const float *x, const float *gamma,
                               const float *beta, float *y)
{
    int64_t j = 0;
    for (; j + PL_VW <= width; j += PL_VW) normalise_lanes(mean, rstd, x + j, gamma + j, beta ? beta + j : 0, y + j, PL_VW);
    if (j < width) normalise_lanes(mean, rstd, x + j, gamma + j, beta ? beta + j : 0, y + j, width - j);
}

void PL_KERNEL(norm_rows)(int64_t begin, int64_t end, int64_t width, int rms, float eps, const float *x,
                          const float *gamma, const float *beta, float *y, float *mean, float *rstd)
{
    for (int64_t r = begin; r < end; r++) {
        const float *row = x + r * width;
        float m = rms ? 0 : row_sum(width, row) / (float)width;
        float s = 1 / __builtin_sqrtf(row_squares(width, row, m) / (float)width + eps);
        if (beta)
            normalise_row(width, m, s, row, gamma, beta, y + r * width);
        else
            normalise_row(width, m, s, row, gamma, NULL, y + r * width);
        if (mean) mean[r] = m;
        if (rstd) rstd[r] = s;
    }
}

/* ---- backward ---- */

typedef struct row_moments {
    pl_vf g, gx; /* Σ g, Σ g·x̂, lane by lane */
} row_moments;

/* Adds the lanes' share to the two sums of the row and to the partial sums of dgamma and dbeta. */
PL_V_INLINE void gather_lanes(float mean, float rstd, const float *dy, const float *x, const float *gamma,
                              float *partial_gamma, float *partial_beta, row_moments *sum, int64_t count)
{
    pl_vf d = load_n(dy, count), normal = (load_n(x, count) - mean) * rstd, g = d * load_n(gamma, count);
    sum->g += g;
    sum->gx = pl_v_fma(g, normal, sum->gx); /* pad lanes: g is 0 */
    store_n(partial_gamma, pl_v_fma(d, normal, load_n(partial_gamma, count)), count);
    if (partial_beta) store_n(partial_beta, load_n(partial_beta, count) + d, count);
}

PL_V_INLINE row_moments gather_row(int64_t width, float mean, float rstd, const float *dy, const float *x,
                                   const float *gamma, float *partial_gamma, float *partial_beta)
{
    row_moments even = {pl_v_zero(), pl_v_zero()}, odd = even;
    int64_t j = 0;
    for (; j + 2 * PL_VW <= width; j += 2 * PL_VW) {
        int64_t k = j + PL_VW;
        gather_lanes(mean, rstd, dy + j, x + j, gamma + j, partial_gamma + j, partial_beta ? partial_beta + j : 0, &even,
                     PL_VW);
        gather_lanes(mean, rstd, dy + k, x + k, gamma + k, partial_gamma + k, partial_beta ? partial_beta + k : 0, &odd,
                     PL_VW);
    }
    for (; j < width; j += PL_VW) {
        int64_t count = width - j < PL_VW ? width - j : PL_VW;
        gather_lanes(mean, rstd, dy + j, x + j, gamma + j, partial_gamma + j, partial_beta ? partial_beta + j : 0, &even,
                     count);
    }
    return (row_moments){even.g + odd.g, even.gx + odd.gx};
}

/* dx = (add +) rstd·(g − mean_g − x̂·mean_gx); dx may be dy or add */
PL_V_INLINE void dx_lanes(float mean, float rstd, float mean_g, float mean_gx, const float *dy, const float *x,
                          const float *gamma, const float *add, float *dx, int64_t count)
{
    pl_vf normal = (load_n(x, count) - mean) * rstd;
    pl_vf centred = pl_v_fma(load_n(dy, count), load_n(gamma, count), pl_v_set(-mean_g));
    pl_vf d = pl_v_fma(normal, pl_v_set(-mean_gx), centred);
    store_n(dx, pl_v_fma(d, pl_v_set(rstd), add ? load_n(add, count) : pl_v_zero()), count);
}

PL_V_INLINE void dx_row(int64_t width, float mean, float rstd, float mean_g, float mean_gx, const float *dy,
                        const float *x, const float *gamma, const float *add, float *dx)
{
    int64_t j = 0;
    for (; j + PL_VW <= width; j += PL_VW)
        dx_lanes(mean, rstd, mean_g, mean_gx, dy + j, x + j, gamma + j, add ? add + j : 0, dx + j, PL_VW);
    if (j < width) dx_lanes(mean, rstd, mean_g, mean_gx, dy + j, x + j, gamma + j, add ? add + j : 0, dx + j, width - j);
}

void PL_KERNEL(norm_bwd_rows)(int64_t begin, int64_t end, int64_t width, int rms, const float *dy, const float *x,
                              const float *gamma, const float *mean, const float *rstd, const float *add, float *dx,
                              float *partial_gamma, float *partial_beta)
{
    memset(partial_gamma, 0, (size_t)width * sizeof(float));
    if (partial_beta) memset(partial_beta, 0, (size_t)width * sizeof(float));
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * width;
        float m = rms ? 0 : mean[r], s = rstd[r];
        row_moments sum = partial_beta ? gather_row(width, m, s, dy + at, x + at, gamma, partial_gamma, partial_beta)
                                       : gather_row(width, m, s, dy + at, x + at, gamma, partial_gamma, NULL);
        float mean_g = rms ? 0 : pl_v_sum(sum.g) / (float)width, mean_gx = pl_v_sum(sum.gx) / (float)width;
        if (add)
            dx_row(width, m, s, mean_g, mean_gx, dy + at, x + at, gamma, add + at, dx + at);
        else
            dx_row(width, m, s, mean_g, mean_gx, dy + at, x + at, gamma, NULL, dx + at);
    }
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
        pl_vf s = load_n(out + j, count);
        for (int64_t b = 0; b < blocks; b++) s += load_n(partial + b * ld + j, count);
        store_n(out + j, s, count);
    }
}
