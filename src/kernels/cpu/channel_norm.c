/* Norms over the positions of an image, N,H,W,C: channels lie side by side, so a vector holds neighbouring channels and
 * nothing is ever summed across its lanes.
 *
 * Moments take two passes, of a row of pixels (mean, then squared deviations) and again of the rows' moments (Chan,
 * Golub, LeVeque 1979, for all rows at once), so that a large common offset costs no digits. Sums over rows are taken
 * in sections, since a chain of many thousand additions would lose some. */
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

enum { ABREAST = 4, SECTION_ROWS = 64 };

/* The block of n vectors of channels from c on, of which `count` lanes of each count. */
#define EACH PL_V_UNROLL for (int v = 0; v < n; v++)

PL_V_INLINE pl_vf get_f32(const float *x, int64_t i, int64_t count) { return pl_v_get(PL_REAL_F32, x, i, count); }
PL_V_INLINE void put_f32(float *x, int64_t i, pl_vf v, int64_t count) { pl_v_put(PL_REAL_F32, x, i, v, count); }

/* ---- moments ---- */

PL_V_INLINE void row_block(pl_real type, int n, int64_t count, int64_t positions, int64_t ld, const void *x,
                           float *mean, float *squares)
{
    pl_vf sum[ABREAST], square[ABREAST];
    EACH sum[v] = square[v] = pl_v_zero();
    for (int64_t p = 0; p < positions; p++) EACH sum[v] += pl_v_get(type, x, p * ld + v * PL_VW, count);
    EACH sum[v] = sum[v] / (float)positions;
    for (int64_t p = 0; p < positions; p++) EACH
        {
            pl_vf d = pl_v_get(type, x, p * ld + v * PL_VW, count) - sum[v];
            square[v] = pl_v_fma(d, d, square[v]);
        }
    EACH put_f32(mean, v * PL_VW, sum[v], count);
    EACH put_f32(squares, v * PL_VW, square[v], count);
}

PL_V_INLINE void row_moments(pl_real type, int64_t positions, int64_t channels, int64_t ld, const void *x, float *mean,
                             float *squares)
{
    int64_t c = 0;
    for (; c + ABREAST * PL_VW <= channels; c += ABREAST * PL_VW)
        row_block(type, ABREAST, PL_VW, positions, ld, pl_real_at(type, x, c), mean + c, squares + c);
    for (; c + PL_VW <= channels; c += PL_VW)
        row_block(type, 1, PL_VW, positions, ld, pl_real_at(type, x, c), mean + c, squares + c);
    if (c < channels) row_block(type, 1, channels - c, positions, ld, pl_real_at(type, x, c), mean + c, squares + c);
}

void PL_KERNEL(row_moments)(int64_t positions, int64_t channels, int64_t ld, pl_real type, const void *x, float *mean,
                            float *squares)
{
    PL_REAL_EACH(type, row_moments(REAL, positions, channels, ld, x, mean, squares));
}

PL_V_INLINE void merge_block(int n, int64_t count, int64_t rows, int64_t positions, int64_t channels,
                             const float *moments, float *mean, float *squares)
{
    pl_vf sum[ABREAST], square[ABREAST], part[ABREAST];
    EACH sum[v] = square[v] = pl_v_zero();
    for (int64_t first = 0; first < rows; first += SECTION_ROWS) {
        int64_t end = first + SECTION_ROWS < rows ? first + SECTION_ROWS : rows;
        EACH part[v] = pl_v_zero();
        for (int64_t r = first; r < end; r++) EACH part[v] += get_f32(moments, 2 * r * channels + v * PL_VW, count);
        EACH sum[v] += part[v];
    }
    EACH sum[v] = sum[v] / (float)rows;
    for (int64_t first = 0; first < rows; first += SECTION_ROWS) {
        int64_t end = first + SECTION_ROWS < rows ? first + SECTION_ROWS : rows;
        EACH part[v] = pl_v_zero();
        for (int64_t r = first; r < end; r++) EACH
            {
                pl_vf d = get_f32(moments, 2 * r * channels + v * PL_VW, count) - sum[v];
                part[v] +=
                    pl_v_fma(d * (float)positions, d, get_f32(moments, (2 * r + 1) * channels + v * PL_VW, count));
            }
        EACH square[v] += part[v];
    }
    EACH put_f32(mean, v * PL_VW, sum[v], count);
    EACH put_f32(squares, v * PL_VW, square[v], count);
}

void PL_KERNEL(merge_moments)(int64_t begin, int64_t end, int64_t rows, int64_t positions, int64_t channels,
                              const float *moments, float *mean, float *squares)
{
    int64_t c = begin;
    for (; c + ABREAST * PL_VW <= end; c += ABREAST * PL_VW)
        merge_block(ABREAST, PL_VW, rows, positions, channels, moments + c, mean + c, squares + c);
    for (; c + PL_VW <= end; c += PL_VW)
        merge_block(1, PL_VW, rows, positions, channels, moments + c, mean + c, squares + c);
    if (c < end) merge_block(1, end - c, rows, positions, channels, moments + c, mean + c, squares + c);
}

/* ---- normalise, activate, add: one pass over memory ---- */

/* Of the vector that comes next, where so many channels are left. */
PL_V_INLINE int64_t lanes(int64_t left) { return left < PL_VW ? left : PL_VW; }

#define OTHER PL_ACT_COUNT /* activations but GELU and none */

/* Behind a call, as all slopes are; but leaky ReLU costs less than the call. */
PL_V_INLINE void other_act(pl_activation act, int n, const pl_vf *z, pl_vf *y)
{
    if (act == PL_ACT_LEAKY_RELU)
        pl_v_act_of(PL_ACT_LEAKY_RELU, n, z, y);
    else
        pl_v_any_act(act, n, z, y);
}

PL_V_INLINE void any_slope(pl_activation act, int n, const pl_vf *z, pl_vf *slope)
{
    if (act == PL_ACT_LEAKY_RELU)
        pl_v_act_grad_of(PL_ACT_LEAKY_RELU, n, z, slope);
    else
        pl_v_any_act_grad(act, n, z, slope);
}

PL_V_INLINE pl_vf affine_of(const pl_channel_affine *a, pl_vf x, int64_t c, int64_t count)
{
    return pl_v_fma(x - get_f32(a->mean, c, count), get_f32(a->scale, c, count), get_f32(a->beta, c, count));
}

PL_V_INLINE void affine_lanes(pl_real type, pl_activation act, int n, const pl_channel_affine *a, const float *film,
                              const void *x, const void *residual, void *y, int64_t c, int64_t count)
{
    pl_vf z[PL_V_ABREAST], out[PL_V_ABREAST];
    EACH z[v] = affine_of(a, pl_v_get(type, x, c + v * PL_VW, count), c + v * PL_VW, count);
    if (act == OTHER)
        other_act(a->act, n, z, out);
    else
        pl_v_act_of(act, n, z, out);
    for (int v = 0; v < n && film; v++) {
        int64_t at = c + v * PL_VW;
        out[v] = pl_v_fma(out[v], get_f32(film, at, count), get_f32(film, a->channels + at, count));
    }
    if (residual) EACH out[v] += pl_v_get(type, residual, c + v * PL_VW, count);
    EACH pl_v_put(type, y, c + v * PL_VW, out[v], count);
}

PL_V_INLINE void affine(pl_real type, pl_activation act, const pl_channel_affine *a, const float *film,
                        int64_t positions, const void *x, const void *residual, void *y)
{
    const int64_t many = PL_V_ABREAST * PL_VW;
    for (int64_t p = 0; p < positions; p++) {
        int64_t c = 0, at = p * a->channels;
        const void *from = pl_real_at(type, x, at), *above = residual ? pl_real_at(type, residual, at) : NULL;
        void *to = pl_real_at(type, y, at);
        for (; c + many <= a->channels; c += many)
            affine_lanes(type, act, PL_V_ABREAST, a, film, from, above, to, c, PL_VW);
        for (; c < a->channels; c += PL_VW)
            affine_lanes(type, act, 1, a, film, from, above, to, c, lanes(a->channels - c));
    }
}

/* With film and residual settled outside of the loop. */
PL_V_INLINE void affine_act(pl_activation act, const pl_channel_affine *a, int64_t positions, pl_real type,
                            const void *x, const void *residual, void *y)
{
    if (a->film)
        PL_REAL_EACH(type, affine(REAL, act, a, a->film, positions, x, NULL, y));
    else if (residual)
        PL_REAL_EACH(type, affine(REAL, act, a, NULL, positions, x, residual, y));
    else
        PL_REAL_EACH(type, affine(REAL, act, a, NULL, positions, x, NULL, y));
}

void PL_KERNEL(channel_affine)(const pl_channel_affine *a, int64_t positions, pl_real type, const void *x,
                               const void *residual, void *y)
{
    if (a->act == PL_ACT_GELU)
        affine_act(PL_ACT_GELU, a, positions, type, x, residual, y);
    else if (a->act == PL_ACT_NONE)
        affine_act(PL_ACT_NONE, a, positions, type, x, residual, y);
    else
        affine_act(OTHER, a, positions, type, x, residual, y);
}

/* ---- backward ---- */

/* dz = dy·film·act'(z) of n vectors; *centred = x − mean */
PL_V_INLINE void slopes(pl_real type, int n, const pl_channel_affine *a, const float *film, const void *dy,
                        const void *x, int64_t c, int64_t count, pl_vf *dz, pl_vf *centred)
{
    pl_vf z[PL_V_ABREAST], slope[PL_V_ABREAST];
    EACH
    {
        int64_t at = c + v * PL_VW;
        centred[v] = pl_v_get(type, x, at, count) - get_f32(a->mean, at, count);
        z[v] = pl_v_fma(centred[v], get_f32(a->scale, at, count), get_f32(a->beta, at, count));
    }
    EACH dz[v] = pl_v_get(type, dy, c + v * PL_VW, count);
    for (int v = 0; v < n && film; v++) dz[v] *= get_f32(film, c + v * PL_VW, count);
    if (a->act == PL_ACT_NONE) return;
    any_slope(a->act, n, z, slope);
    EACH dz[v] *= slope[v];
}

/* A row's sums are added to those of the block of rows, so that no chain of additions is long. */
PL_V_INLINE void sums_block(pl_real type, int n, const pl_channel_affine *a, int64_t c, int64_t count, int64_t rows,
                            int64_t positions, const void *dy, const void *x, float *sum, float *sum_x)
{
    pl_vf all[PL_V_ABREAST], all_x[PL_V_ABREAST], row[PL_V_ABREAST], row_x[PL_V_ABREAST];
    EACH all[v] = all_x[v] = pl_v_zero();
    for (int64_t r = 0; r < rows; r++) {
        EACH row[v] = row_x[v] = pl_v_zero();
        for (int64_t p = r * positions; p < (r + 1) * positions; p++) {
            pl_vf dz[PL_V_ABREAST], centred[PL_V_ABREAST];
            slopes(type, n, a, NULL, pl_real_at(type, dy, p * a->channels), pl_real_at(type, x, p * a->channels), c,
                   count, dz, centred);
            EACH row[v] += dz[v];
            EACH row_x[v] = pl_v_fma(dz[v], centred[v], row_x[v]);
        }
        EACH all[v] += row[v];
        EACH all_x[v] += row_x[v];
    }
    EACH put_f32(sum, c + v * PL_VW, all[v], count);
    EACH put_f32(sum_x, c + v * PL_VW, all_x[v], count);
}

PL_V_INLINE void bwd_sums(pl_real type, const pl_channel_affine *a, int64_t rows, int64_t positions, const void *dy,
                          const void *x, float *sum, float *sum_x)
{
    const int64_t many = PL_V_ABREAST * PL_VW;
    int64_t c = 0;
    for (; c + many <= a->channels; c += many)
        sums_block(type, PL_V_ABREAST, a, c, PL_VW, rows, positions, dy, x, sum, sum_x);
    for (; c < a->channels; c += PL_VW)
        sums_block(type, 1, a, c, lanes(a->channels - c), rows, positions, dy, x, sum, sum_x);
}

void PL_KERNEL(channel_bwd_sums)(const pl_channel_affine *a, int64_t rows, int64_t positions, pl_real type,
                                 const void *dy, const void *x, float *sum, float *sum_x)
{
    PL_REAL_EACH(type, bwd_sums(REAL, a, rows, positions, dy, x, sum, sum_x));
}

/* ---- with film: four sums, of which those of dz have film's scale in them ---- */

typedef struct film_sums {
    pl_vf dz, dz_x, dy_act, dy;
} film_sums;

PL_V_INLINE void add_film(pl_real type, const pl_channel_affine *a, const void *dy, const void *x, int64_t c,
                          int64_t count, film_sums *s)
{
    pl_vf z, act, slope, centred = pl_v_get(type, x, c, count) - get_f32(a->mean, c, count);
    pl_vf d = pl_v_get(type, dy, c, count);
    z = pl_v_fma(centred, get_f32(a->scale, c, count), get_f32(a->beta, c, count));
    act = z;
    if (a->act != PL_ACT_NONE) other_act(a->act, 1, &z, &act);
    s->dy_act = pl_v_fma(d, act, s->dy_act);
    s->dy += d;
    d *= get_f32(a->film, c, count);
    if (a->act != PL_ACT_NONE) {
        any_slope(a->act, 1, &z, &slope);
        d *= slope;
    }
    s->dz += d;
    s->dz_x = pl_v_fma(d, centred, s->dz_x);
}

PL_V_INLINE void film_sums_block(pl_real type, const pl_channel_affine *a, int64_t c, int64_t count, int64_t rows,
                                 int64_t positions, const void *dy, const void *x, float *sums, int64_t ld)
{
    const film_sums zero = {pl_v_zero(), pl_v_zero(), pl_v_zero(), pl_v_zero()};
    film_sums all = zero;
    for (int64_t r = 0; r < rows; r++) {
        film_sums row = zero;
        for (int64_t p = r * positions; p < (r + 1) * positions; p++)
            add_film(type, a, pl_real_at(type, dy, p * a->channels), pl_real_at(type, x, p * a->channels), c, count,
                     &row);
        all.dz += row.dz, all.dz_x += row.dz_x, all.dy_act += row.dy_act, all.dy += row.dy;
    }
    put_f32(sums, c, all.dz, count);
    put_f32(sums, ld + c, all.dz_x, count);
    put_f32(sums, 2 * ld + c, all.dy_act, count);
    put_f32(sums, 3 * ld + c, all.dy, count);
}

PL_V_INLINE void sum_film(pl_real type, const pl_channel_affine *a, int64_t rows, int64_t positions, const void *dy,
                          const void *x, float *sums, int64_t ld)
{
    int64_t c = 0;
    for (; c + PL_VW <= a->channels; c += PL_VW) film_sums_block(type, a, c, PL_VW, rows, positions, dy, x, sums, ld);
    if (c < a->channels) film_sums_block(type, a, c, a->channels - c, rows, positions, dy, x, sums, ld);
}

void PL_KERNEL(channel_film_sums)(const pl_channel_affine *a, int64_t rows, int64_t positions, pl_real type,
                                  const void *dy, const void *x, float *sums, int64_t ld)
{
    PL_REAL_EACH(type, sum_film(REAL, a, rows, positions, dy, x, sums, ld));
}

/* ---- dx ---- */

PL_V_INLINE void bwd_lanes(pl_real type, int n, const pl_channel_slope *s, const float *film, const void *dy,
                           const void *x, const void *add, void *dx, int64_t c, int64_t count)
{
    pl_vf dz[PL_V_ABREAST], centred[PL_V_ABREAST];
    slopes(type, n, &s->z, film, dy, x, c, count, dz, centred);
    EACH
    {
        int64_t at = c + v * PL_VW;
        pl_vf rest = pl_v_fma(centred[v], get_f32(s->slope, at, count), get_f32(s->shift, at, count));
        pl_vf d = pl_v_fma(dz[v], get_f32(s->z.scale, at, count), rest);
        pl_v_put(type, dx, at, add ? d + pl_v_get(type, add, at, count) : d, count);
    }
}

PL_V_INLINE void bwd(pl_real type, const pl_channel_slope *s, const float *film, int64_t positions, const void *dy,
                     const void *x, const void *add, void *dx)
{
    const int64_t many = PL_V_ABREAST * PL_VW, channels = s->z.channels;
    for (int64_t p = 0; p < positions; p++) {
        int64_t c = 0, at = p * channels;
        const void *from = pl_real_at(type, x, at), *slope = pl_real_at(type, dy, at);
        const void *above = add ? pl_real_at(type, add, at) : NULL;
        void *to = pl_real_at(type, dx, at);
        for (; c + many <= channels; c += many)
            bwd_lanes(type, PL_V_ABREAST, s, film, slope, from, above, to, c, PL_VW);
        for (; c < channels; c += PL_VW) bwd_lanes(type, 1, s, film, slope, from, above, to, c, lanes(channels - c));
    }
}

/* What there is to add, and film, are settled outside of the loop. */
void PL_KERNEL(channel_bwd)(const pl_channel_slope *s, int64_t positions, pl_real type, const void *dy, const void *x,
                            const void *add, void *dx)
{
    if (s->z.film)
        PL_REAL_EACH(type, bwd(REAL, s, s->z.film, positions, dy, x, NULL, dx));
    else if (add)
        PL_REAL_EACH(type, bwd(REAL, s, NULL, positions, dy, x, add, dx));
    else
        PL_REAL_EACH(type, bwd(REAL, s, NULL, positions, dy, x, NULL, dx));
}
