/* The noise of a rollout: Philox blocks as philox.h makes them, Box–Muller or Laplace's inverse on whole vectors before
 * the transpose, then the noise is added as it comes, or kept, filtered and added. kernels/rollout.h has the formulas.
 *
 * A row of PL_VW numbers is PL_VW neighbouring channels of one pixel, wherever it lies; so channels need not fill
 * vectors, and a strip of channels is made without the others. */
#include "kernels/cpu/philox.h"
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

enum { ROWS = PL_V_PHILOX_ROWS, STRIP_VECTORS = PL_NOISE_STRIP / PL_VW };

static int64_t padded_channels(const pl_noise *n) { return (n->channels + 3) / 4 * 4; }
static uint32_t block_of(const pl_noise *n, int64_t pixel, int64_t channel)
{
    return (uint32_t)((uint64_t)(pixel * padded_channels(n) + channel) / 4);
}

/* Lane 4g + r is block first[r] + g. */
PL_V_INLINE pl_vu blocks_from(const uint32_t first[4])
{
    pl_vu group = {0};
    PL_V_UNROLL for (uint32_t l = 0; l < PL_VW; l++) group[l] = l / 4;
#if defined(PL_LEVEL_avx512)
    return (pl_vu)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)first)) + group;
#elif defined(PL_LEVEL_avx2)
    return (pl_vu)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)first)) + group;
#else
    memcpy(&group, first, sizeof group);
    return group;
#endif
}

/* To nearest: both halves are exact. */
PL_V_INLINE pl_vf float_of(pl_vu u)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vf)_mm512_cvtepu32_ps((__m512i)u);
#else
    pl_vf high = __builtin_convertvector((pl_vi)(u >> 16), pl_vf),
          low = __builtin_convertvector((pl_vi)(u & 0xffffu), pl_vf);
    return pl_v_fma(high, pl_v_set(65536.0f), low);
#endif
}

/* cos and sin of 2π·u·2^−32: the quarter turn by integers, the rest, within ±π/4, after Cephes. */
PL_V_INLINE void turn(pl_vu u, pl_vf *cosine, pl_vf *sine)
{
    pl_vu quarter = (u + 0x20000000u) >> 30;
    pl_vf x = __builtin_convertvector((pl_vi)(u - (quarter << 30)), pl_vf) * 1.46291807926715968e-9f, s = x * x;
    pl_vf a = pl_v_fma(s, pl_v_set(-1.9515295891e-4f), pl_v_set(8.3321608736e-3f));
    a = pl_v_fma(pl_v_fma(s, a, pl_v_set(-1.6666654611e-1f)), s * x, x);
    pl_vf b = pl_v_fma(s, pl_v_set(2.443315711809948e-5f), pl_v_set(-1.388731625493765e-3f));
    b = pl_v_fma(pl_v_fma(s, b, pl_v_set(4.166664568298827e-2f)), s * s, pl_v_fma(s, pl_v_set(-0.5f), pl_v_set(1.0f)));
    pl_vi odd = -(pl_vi)(quarter & 1);
    *cosine = (pl_vf)((pl_vu)pl_v_select(odd, a, b) ^ ((quarter + 1) & 2) << 30);
    *sine = (pl_vf)((pl_vu)pl_v_select(odd, b, a) ^ (quarter & 2) << 30);
}

PL_V_INLINE void box_muller(pl_vu pair[2])
{
    pl_vf u = (float_of(pair[0]) + 0.5f) * 0x1p-32f, radius = pl_v_sqrt(-2.0f * pl_v_log(u)), cosine, sine;
    turn(pair[1], &cosine, &sine);
    pair[0] = (pl_vu)(radius * cosine), pair[1] = (pl_vu)(radius * sine);
}

PL_V_INLINE pl_vu laplace(pl_vu word)
{
    pl_vf u = (float_of(word >> 1) + 0.5f) * 0x1p-31f;
    return (pl_vu)pl_v_abs(pl_v_log(u)) ^ word << 31;
}

/* z[r]: the numbers of PL_VW channels from block first[r] on. */
static void white(const pl_noise *n, const uint32_t first[ROWS], pl_vf z[ROWS])
{
    pl_vu rows[ROWS];
    PL_V_UNROLL for (int b = 0; b < ROWS; b += 4) rows[b] = blocks_from(first + b);
    pl_v_philox_words(&n->philox, n->step, n->sample, rows);
    if (n->kind == PL_NOISE_LAPLACE)
        PL_V_UNROLL for (int r = 0; r < ROWS; r++) rows[r] = laplace(rows[r]);
    else
        PL_V_UNROLL for (int r = 0; r < ROWS; r += 2) box_muller(rows + r);
    PL_V_UNROLL for (int b = 0; b < ROWS; b += 4) pl_v_philox_transpose(rows + b);
    memcpy(z, rows, sizeof rows);
}

/* x + s·z, or x·(1 + s·z), of `count` elements */
PL_V_INLINE void add_noise(pl_real type, int multiply, pl_vf s, pl_vf z, const void *x, void *y, int64_t at,
                           int64_t count)
{
    pl_vf v = pl_v_get(type, x, at, count);
    pl_v_put(type, y, at, pl_v_fma(multiply ? v : s, multiply ? s * z : z, v), count);
}

static int64_t at_most(int64_t count, int64_t limit) { return count < limit ? count : limit; }

PL_V_INLINE void add_white(pl_real type, const pl_noise *n, int64_t begin, int64_t end, const void *x, void *y)
{
    int64_t per_pixel = (n->channels + PL_VW - 1) / PL_VW, all = end * per_pixel;
    int64_t pixel[ROWS], channel[ROWS];
    pl_vf z[ROWS], scale = pl_v_set(n->scale);
    uint32_t first[ROWS] = {0};
    for (int64_t row = begin * per_pixel; row < all; row += ROWS) {
        int64_t rows = at_most(all - row, ROWS), p = row / per_pixel, v = row % per_pixel;
        for (int64_t r = 0; r < rows; r++) {
            pixel[r] = p, channel[r] = v * PL_VW;
            first[r] = block_of(n, p, channel[r]);
            if (++v == per_pixel) v = 0, p++;
        }
        white(n, first, z);
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = pixel[r] * n->channels + channel[r], count = at_most(n->channels - channel[r], PL_VW);
            if (count == PL_VW)
                add_noise(type, n->kind == PL_NOISE_MULTIPLICATIVE, scale, z[r], x, y, at, PL_VW);
            else
                add_noise(type, n->kind == PL_NOISE_MULTIPLICATIVE, scale, z[r], x, y, at, count);
        }
    }
}

/* Channels [channel, channel + count) of the pixels; a dropped one is 0, whatever it was. */
PL_V_INLINE void drop_channels(pl_real type, const pl_noise *n, int64_t begin, int64_t end, int64_t channel,
                               int64_t count, const void *x, void *y)
{
    float keep[PL_VW], factor = 1 / (1 - n->scale);
    for (int64_t c = 0; c < PL_VW; c++) {
        uint32_t bits[4];
        pl_philox_block(&n->philox, n->step, n->sample, (uint32_t)((channel + c) / 4), bits);
        keep[c] = pl_uniform_f32(bits[(channel + c) % 4]) < n->scale ? 0 : factor;
    }
    pl_vf kept = pl_v_load(keep);
    for (int64_t p = begin; p < end; p++) {
        pl_vf v = pl_v_get(type, x, p * n->channels + channel, count);
        pl_v_put(type, y, p * n->channels + channel, pl_v_select_gt(kept, pl_v_zero(), v * kept, pl_v_zero()), count);
    }
}

PL_V_INLINE void noise_of(pl_real type, const pl_noise *n, int64_t begin, int64_t end, const void *x, void *y)
{
    if (n->kind != PL_NOISE_DROPOUT2D) {
        add_white(type, n, begin, end, x, y);
        return;
    }
    for (int64_t c = 0; c < n->channels; c += PL_VW)
        drop_channels(type, n, begin, end, c, at_most(n->channels - c, PL_VW), x, y);
}

void PL_KERNEL(noise)(const pl_noise *n, int64_t begin, int64_t end, pl_real type, const void *x, void *y)
{
    PL_REAL_EACH(type, noise_of(REAL, n, begin, end, x, y));
}

/* ---- correlated ---- */

static void white_strip(const pl_noise *n, int64_t channel, float *strip)
{
    int64_t vectors = n->height * n->width * STRIP_VECTORS;
    uint32_t first[ROWS];
    pl_vf z[ROWS];
    for (int64_t row = 0; row < vectors; row += ROWS) {
        for (int r = 0; r < ROWS; r++)
            first[r] = block_of(n, (row + r) / STRIP_VECTORS, channel + (row + r) % STRIP_VECTORS * PL_VW);
        white(n, first, z);
        for (int64_t r = 0; r < ROWS && row + r < vectors; r++) pl_v_store(strip + (row + r) * PL_VW, z[r]);
    }
}

enum { ABREAST = 8 };

/* Sums of `abreast` neighbouring pixels over theirs, from at[0] on: each a chain in ascending distance. */
PL_V_INLINE void sum_neighbours(int abreast, int64_t radius, const float *weight, const float *at, float *out,
                                int64_t stride)
{
    pl_vf sum[ABREAST], w = pl_v_set(weight[0]);
    PL_V_UNROLL for (int i = 0; i < abreast; i++) sum[i] = w * pl_v_load(at + i * PL_VW);
    for (int64_t j = 1; j <= radius; j++) {
        const float *before = at - j * PL_VW, *behind = at + j * PL_VW;
        w = pl_v_set(weight[j]);
        PL_V_UNROLL for (int i = 0; i < abreast; i++) sum[i] =
            pl_v_fma(w, pl_v_load(before + i * PL_VW) + pl_v_load(behind + i * PL_VW), sum[i]);
    }
    PL_V_UNROLL for (int i = 0; i < abreast; i++) pl_v_store(out + i * stride, sum[i]);
}

/* One ring of n vectors, `stride` apart. */
static void filter_ring(int64_t n, int64_t stride, int64_t radius, const float *weight, float *line, float *ring)
{
    const float *at = line + radius * PL_VW;
    int64_t i = 0;
    for (int64_t m = -radius; m < n + radius; m++) {
        int64_t from = m < 0 ? m + n : m < n ? m : m - n;
        pl_v_store(line + (m + radius) * PL_VW, pl_v_load(ring + from * stride));
    }
    for (; i + ABREAST <= n; i += ABREAST)
        sum_neighbours(ABREAST, radius, weight, at + i * PL_VW, ring + i * stride, stride);
    for (; i < n; i++) sum_neighbours(1, radius, weight, at + i * PL_VW, ring + i * stride, stride);
}

/* `rings` of them, of n pixels each, `step` pixels apart; their own pixels are `apart` apart. */
static void filter_direction(const pl_noise *noise, pl_noise_workspace *w, int64_t n, int64_t apart, int64_t rings,
                             int64_t step)
{
    int64_t radius = pl_circular_gaussian(n, noise->correlation, w->scratch, w->exact);
    for (int64_t j = 0; j <= radius; j++) w->weight[j] = (float)w->exact[j];
    for (int64_t r = 0; r < rings; r++)
        for (int64_t v = 0; v < STRIP_VECTORS; v++)
            filter_ring(n, apart * PL_NOISE_STRIP, radius, w->weight, w->line,
                        w->strip + r * step * PL_NOISE_STRIP + v * PL_VW);
}

/* Adds Σ (x − mean)^power over the pixels, power 1 or 2: an image row in f32, the rows in double. */
static void add_powers(const pl_noise *n, const float *strip, const float *mean, int power, double *sum)
{
    for (int64_t row = 0; row < n->height; row++)
        for (int64_t v = 0; v < STRIP_VECTORS; v++) {
            pl_vf s = pl_v_zero(), m = pl_v_load(mean + v * PL_VW);
            for (int64_t p = 0; p < n->width; p++) {
                pl_vf d = pl_v_load(strip + (row * n->width + p) * PL_NOISE_STRIP + v * PL_VW) - m;
                s = power == 1 ? s + d : pl_v_fma(d, d, s);
            }
            for (int c = 0; c < PL_VW; c++) sum[v * PL_VW + c] += (double)s[c];
        }
}

/* The factor of each channel that gives its noise the strength it is to have. */
static void strengths(const pl_noise *n, const float *strip, float factor[PL_NOISE_STRIP])
{
    double sum[PL_NOISE_STRIP] = {0}, squares[PL_NOISE_STRIP] = {0}, pixels = (double)(n->height * n->width);
    double scale = n->scale * (n->kind == PL_NOISE_LAPLACE ? 1.41421356237309505 : 1);
    float mean[PL_NOISE_STRIP] = {0};
    add_powers(n, strip, mean, 1, sum);
    for (int c = 0; c < PL_NOISE_STRIP; c++) mean[c] = (float)(sum[c] / pixels);
    add_powers(n, strip, mean, 2, squares);
    for (int c = 0; c < PL_NOISE_STRIP; c++)
        factor[c] = squares[c] > 0 ? (float)(scale / __builtin_sqrt(squares[c] / (pixels - 1))) : 0;
}

PL_V_INLINE void add_strip(pl_real type, const pl_noise *n, const float *strip, const float *factor, int64_t channel,
                           const void *x, void *y)
{
    int64_t pixels = n->height * n->width, channels = at_most(n->channels - channel, PL_NOISE_STRIP);
    for (int64_t p = 0; p < pixels; p++)
        for (int64_t c = 0; c < channels; c += PL_VW) {
            int64_t at = p * n->channels + channel + c, count = at_most(channels - c, PL_VW);
            pl_vf f = pl_v_load(factor + c), z = pl_v_load(strip + p * PL_NOISE_STRIP + c);
            if (count == PL_VW)
                add_noise(type, n->kind == PL_NOISE_MULTIPLICATIVE, f, z, x, y, at, PL_VW);
            else
                add_noise(type, n->kind == PL_NOISE_MULTIPLICATIVE, f, z, x, y, at, count);
        }
}

void PL_KERNEL(noise_correlated)(const pl_noise *n, int64_t strip, pl_real type, const void *x, void *y,
                                 void *workspace)
{
    pl_noise_workspace w = pl_noise_lay_out(n->height, n->width, workspace);
    float factor[PL_NOISE_STRIP];
    white_strip(n, strip * PL_NOISE_STRIP, w.strip);
    filter_direction(n, &w, n->width, 1, n->height, n->width);
    filter_direction(n, &w, n->height, n->width, n->width, 1);
    strengths(n, w.strip, factor);
    PL_REAL_EACH(type, add_strip(REAL, n, w.strip, factor, strip * PL_NOISE_STRIP, x, y));
}
