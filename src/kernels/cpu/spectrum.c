/* kernels/spectrum.h on vectors of channels; `half` is f32 [H, m, 2, C], transformed along the rows alone. Each number
 * is one chain of multiply-adds in ascending w, h, k or l; several chains stand side by side. */
#include "kernels/spectrum.h"

#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

enum { ROWS_ABREAST = 6, SUMS_ABREAST = 3, LINES_ABREAST = 4 };

static int64_t lanes_of(int64_t channels, int64_t v) { return channels - v < PL_VW ? channels - v : PL_VW; }

PL_V_INLINE pl_vf get(const float *x, int64_t at, int64_t count) { return pl_v_get(PL_REAL_F32, x, at, count); }
PL_V_INLINE void put(float *x, int64_t at, pl_vf v, int64_t count) { pl_v_put(PL_REAL_F32, x, at, v, count); }

/* Runs `call`, which names COUNT, for each vector of channels; the usual ones are whole. */
#define EACH_VECTOR(channels, v, call)                                                                                 \
    for (int64_t v = 0; v < (channels); v += PL_VW) {                                                                  \
        if ((channels)-v >= PL_VW) {                                                                                   \
            const int64_t COUNT = PL_VW;                                                                               \
            call;                                                                                                      \
        } else {                                                                                                       \
            const int64_t COUNT = (channels)-v;                                                                        \
            call;                                                                                                      \
        }                                                                                                              \
    }

#define EACH(n) PL_V_UNROLL for (int i = 0; i < (n); i++)

/* ---- there: along a row ---- */

/* Columns l … l + n of one row: x[w] and x[W − w] have the same cosine and opposite sines. */
PL_V_INLINE void row_modes(pl_real type, int n, const pl_spectrum *s, const void *x, int64_t v, int64_t count,
                           int64_t l, float *half)
{
    int64_t C = s->channels, W = s->width;
    pl_vf re[ROWS_ABREAST], im[ROWS_ABREAST], first = pl_v_get(type, x, v, count);
    EACH(n) re[i] = first, im[i] = pl_v_zero();
    for (int64_t w = 1; 2 * w < W; w++) {
        const float *c = s->cos_x + w * s->modes + l, *t = s->sin_x + w * s->modes + l;
        pl_vf a = pl_v_get(type, x, w * C + v, count), b = pl_v_get(type, x, (W - w) * C + v, count);
        pl_vf even = a + b, odd = b - a;
        EACH(n) re[i] = pl_v_fma(pl_v_set(c[i]), even, re[i]), im[i] = pl_v_fma(pl_v_set(t[i]), odd, im[i]);
    }
    if (W % 2 == 0) {
        const float *c = s->cos_x + W / 2 * s->modes + l;
        pl_vf middle = pl_v_get(type, x, W / 2 * C + v, count);
        EACH(n) re[i] = pl_v_fma(pl_v_set(c[i]), middle, re[i]);
    }
    EACH(n) put(half, (l + i) * 2 * C + v, re[i], count), put(half, ((l + i) * 2 + 1) * C + v, im[i], count);
}

PL_V_INLINE void row_vector(pl_real type, const pl_spectrum *s, const void *x, int64_t v, int64_t count, float *half)
{
    int64_t l = 0;
    for (; l + ROWS_ABREAST <= s->modes; l += ROWS_ABREAST) row_modes(type, ROWS_ABREAST, s, x, v, count, l, half);
    for (; l < s->modes; l++) row_modes(type, 1, s, x, v, count, l, half);
}

PL_V_INLINE void rows_there(pl_real type, const pl_spectrum *s, int64_t begin, int64_t end, const void *x, float *half)
{
    for (int64_t h = begin; h < end; h++) {
        const void *row = pl_real_at(type, x, h * s->width * s->channels);
        float *out = half + h * s->modes * 2 * s->channels;
        EACH_VECTOR(s->channels, v, row_vector(type, s, row, v, COUNT, out));
    }
}

void PL_KERNEL(spectrum_rows)(const pl_spectrum *s, int64_t begin, int64_t end, pl_real type, const void *x,
                              float *half)
{
    PL_REAL_EACH(type, rows_there(REAL, s, begin, end, x, half));
}

/* ---- there: along a column ---- */

/* Rows ±k for k … k + n, of at most m: the four products of parts with cosine and sine make both. */
PL_V_INLINE void column_modes(int n, const pl_spectrum *s, const float *half, int64_t v, int64_t count, int64_t l,
                              int64_t k, float *spectrum)
{
    int64_t C = s->channels, m = s->modes;
    pl_vf rc[SUMS_ABREAST], is[SUMS_ABREAST], ic[SUMS_ABREAST], rs[SUMS_ABREAST];
    pl_vf factor = pl_v_set(pl_spectrum_factor(s, l));
    EACH(n) rc[i] = is[i] = ic[i] = rs[i] = pl_v_zero();
    for (int64_t h = 0; h < s->height; h++) {
        const float *c = s->cos_y + h * (m + 1) + k, *t = s->sin_y + h * (m + 1) + k;
        pl_vf re = get(half, (h * m + l) * 2 * C + v, count), im = get(half, ((h * m + l) * 2 + 1) * C + v, count);
        EACH(n)
        {
            rc[i] = pl_v_fma(pl_v_set(c[i]), re, rc[i]), is[i] = pl_v_fma(pl_v_set(t[i]), im, is[i]);
            ic[i] = pl_v_fma(pl_v_set(c[i]), im, ic[i]), rs[i] = pl_v_fma(pl_v_set(t[i]), re, rs[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        int64_t above = ((k + i) * m + l) * 2 * C + v, below = ((2 * m - k - i) * m + l) * 2 * C + v;
        if (k + i < m) {
            put(spectrum, above, factor * (rc[i] + is[i]), count);
            put(spectrum, above + C, factor * (ic[i] - rs[i]), count);
        }
        if (k + i > 0) {
            put(spectrum, below, factor * (rc[i] - is[i]), count);
            put(spectrum, below + C, factor * (ic[i] + rs[i]), count);
        }
    }
}

PL_V_INLINE void column_vector(const pl_spectrum *s, const float *half, int64_t v, int64_t count, int64_t l,
                               float *spectrum)
{
    int64_t k = 0;
    for (; k + SUMS_ABREAST <= s->modes + 1; k += SUMS_ABREAST)
        column_modes(SUMS_ABREAST, s, half, v, count, l, k, spectrum);
    for (; k <= s->modes; k++) column_modes(1, s, half, v, count, l, k, spectrum);
}

void PL_KERNEL(spectrum_columns)(const pl_spectrum *s, int64_t begin, int64_t end, const float *half, float *spectrum)
{
    for (int64_t l = begin; l < end; l++) EACH_VECTOR(s->channels, v, column_vector(s, half, v, COUNT, l, spectrum));
}

/* ---- back: along a column ---- */

PL_V_INLINE pl_vf mode(const pl_spectrum *s, const float *spectrum, int64_t row, int64_t l, int part, int64_t v,
                       int64_t count)
{
    return get(spectrum, ((row * s->modes + l) * 2 + part) * s->channels + v, count);
}

/* Lines h … h + n: the rows k and −k together, of which 0 and −m have no partner. */
PL_V_INLINE void lines_of_column(int n, const pl_spectrum *s, const float *spectrum, int64_t v, int64_t count,
                                 int64_t l, int64_t h, float *half)
{
    int64_t C = s->channels, m = s->modes;
    pl_vf re[LINES_ABREAST], im[LINES_ABREAST], factor = pl_v_set(pl_spectrum_factor(s, l));
    EACH(n) re[i] = im[i] = pl_v_zero();
    for (int64_t k = 0; k <= m; k++) {
        pl_vf ar = pl_v_zero(), ai = ar, br = ar, bi = ar;
        if (k < m) ar = mode(s, spectrum, k, l, 0, v, count), ai = mode(s, spectrum, k, l, 1, v, count);
        if (k > 0) br = mode(s, spectrum, 2 * m - k, l, 0, v, count), bi = mode(s, spectrum, 2 * m - k, l, 1, v, count);
        pl_vf sr = ar + br, si = ai + bi, dr = ar - br, di = bi - ai;
        EACH(n)
        {
            pl_vf c = pl_v_set(s->cos_y[(h + i) * (m + 1) + k]), t = pl_v_set(s->sin_y[(h + i) * (m + 1) + k]);
            re[i] = pl_v_fma(t, di, pl_v_fma(c, sr, re[i])), im[i] = pl_v_fma(t, dr, pl_v_fma(c, si, im[i]));
        }
    }
    EACH(n)
    {
        put(half, ((h + i) * m + l) * 2 * C + v, factor * re[i], count);
        put(half, (((h + i) * m + l) * 2 + 1) * C + v, factor * im[i], count);
    }
}

PL_V_INLINE void lines_vector(const pl_spectrum *s, const float *spectrum, int64_t v, int64_t count, int64_t l,
                              float *half)
{
    int64_t h = 0;
    for (; h + LINES_ABREAST <= s->height; h += LINES_ABREAST)
        lines_of_column(LINES_ABREAST, s, spectrum, v, count, l, h, half);
    for (; h < s->height; h++) lines_of_column(1, s, spectrum, v, count, l, h, half);
}

void PL_KERNEL(spectrum_columns_back)(const pl_spectrum *s, int64_t begin, int64_t end, const float *spectrum,
                                      float *half)
{
    for (int64_t l = begin; l < end; l++) EACH_VECTOR(s->channels, v, lines_vector(s, spectrum, v, COUNT, l, half));
}

/* ---- back: along a row ---- */

PL_V_INLINE void add_pixel(pl_real type, pl_vf value, int64_t at, int64_t count, const void *add, void *y)
{
    pl_v_put(type, y, at, add ? pl_v_get(type, add, at, count) + value : value, count);
}

/* Pixels w … w + n, of the first half of the row, and their mirror images. */
PL_V_INLINE void pixels_of_row(pl_real type, int n, const pl_spectrum *s, const float *half, int64_t v, int64_t count,
                               int64_t w, const void *add, void *y)
{
    int64_t C = s->channels, m = s->modes;
    pl_vf even[ROWS_ABREAST], odd[ROWS_ABREAST];
    EACH(n) even[i] = odd[i] = pl_v_zero();
    for (int64_t l = 0; l < m; l++) {
        pl_vf re = get(half, l * 2 * C + v, count), im = get(half, (l * 2 + 1) * C + v, count);
        EACH(n)
        {
            even[i] = pl_v_fma(pl_v_set(s->cos_x[(w + i) * m + l]), re, even[i]);
            odd[i] = pl_v_fma(pl_v_set(s->sin_x[(w + i) * m + l]), im, odd[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        int64_t at = w + i, mirrored = s->width - at;
        add_pixel(type, even[i] - odd[i], at * C + v, count, add, y);
        if (at > 0 && mirrored > at) add_pixel(type, even[i] + odd[i], mirrored * C + v, count, add, y);
    }
}

PL_V_INLINE void pixels_vector(pl_real type, const pl_spectrum *s, const float *half, int64_t v, int64_t count,
                               const void *add, void *y)
{
    int64_t w = 0, pixels = s->width / 2 + 1;
    for (; w + ROWS_ABREAST <= pixels; w += ROWS_ABREAST)
        pixels_of_row(type, ROWS_ABREAST, s, half, v, count, w, add, y);
    for (; w < pixels; w++) pixels_of_row(type, 1, s, half, v, count, w, add, y);
}

PL_V_INLINE void rows_back(pl_real type, const pl_spectrum *s, int64_t begin, int64_t end, const float *half,
                           const void *add, void *y)
{
    for (int64_t h = begin; h < end; h++) {
        int64_t at = h * s->width * s->channels;
        const void *own = add ? pl_real_at(type, add, at) : NULL;
        const float *line = half + h * s->modes * 2 * s->channels;
        EACH_VECTOR(s->channels, v, pixels_vector(type, s, line, v, COUNT, own, pl_real_at(type, y, at)));
    }
}

void PL_KERNEL(spectrum_rows_back)(const pl_spectrum *s, int64_t begin, int64_t end, const float *half, pl_real type,
                                   const void *add, void *y)
{
    PL_REAL_EACH(type, rows_back(REAL, s, begin, end, half, add, y));
}

/* ---- a matrix a mode: y[k] = x[k]·R[k] ---- */

enum { SAMPLES_ABREAST = 4 };

/* Where mode k of a sample begins. */
static const float *mode_of(const float *x, int64_t sample, int64_t modes, int64_t k, int64_t channels)
{
    return x + (sample * modes + k) * 2 * channels;
}

/* `n` samples from s on, channels o … o + count of mode k */
PL_V_INLINE void mix(int n, const pl_spectral_linear *p, int64_t k, int64_t s, int64_t o, int64_t count)
{
    pl_vf re[SAMPLES_ABREAST], im[SAMPLES_ABREAST];
    EACH(n) re[i] = im[i] = pl_v_zero();
    for (int64_t c = 0; c < p->in; c++) {
        const float *w = p->weight + (k * p->in + c) * 2 * p->out;
        pl_vf wr = get(w, o, count), wi = get(w, p->out + o, count);
        EACH(n)
        {
            const float *x = mode_of(p->x, s + i, p->modes, k, p->in);
            pl_vf xr = pl_v_set(x[c]), xi = pl_v_set(x[p->in + c]);
            re[i] = pl_v_fma(-wi, xi, pl_v_fma(wr, xr, re[i])), im[i] = pl_v_fma(wr, xi, pl_v_fma(wi, xr, im[i]));
        }
    }
    EACH(n)
    {
        float *y = p->y + ((s + i) * p->modes + k) * 2 * p->out;
        put(y, o, re[i], count), put(y, p->out + o, im[i], count);
    }
}

void PL_KERNEL(spectral_linear)(const pl_spectral_linear *p, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++)
        for (int64_t o = 0; o < p->out; o += PL_VW) {
            int64_t s = 0, count = lanes_of(p->out, o);
            for (; s + SAMPLES_ABREAST <= p->samples; s += SAMPLES_ABREAST) mix(SAMPLES_ABREAST, p, k, s, o, count);
            for (; s < p->samples; s++) mix(1, p, k, s, o, count);
        }
}

/* x[k] = y[k]·conj(R[k])ᵀ: sums along the rows of R */
static void mix_back(const pl_spectral_linear *p, int64_t k, int64_t s)
{
    const float *y = mode_of(p->y, s, p->modes, k, p->out);
    float *x = p->x + (s * p->modes + k) * 2 * p->in;
    for (int64_t c = 0; c < p->in; c++) {
        const float *w = p->weight + (k * p->in + c) * 2 * p->out;
        pl_vf re = pl_v_zero(), im = re;
        for (int64_t o = 0; o < p->out; o += PL_VW) {
            int64_t count = lanes_of(p->out, o);
            pl_vf wr = get(w, o, count), wi = get(w, p->out + o, count);
            pl_vf yr = get(y, o, count), yi = get(y, p->out + o, count);
            re = pl_v_fma(wi, yi, pl_v_fma(wr, yr, re)), im = pl_v_fma(-wi, yr, pl_v_fma(wr, yi, im));
        }
        x[c] = pl_v_sum(re), x[p->in + c] = pl_v_sum(im);
    }
}

void PL_KERNEL(spectral_linear_dx)(const pl_spectral_linear *p, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++)
        for (int64_t s = 0; s < p->samples; s++) mix_back(p, k, s);
}

/* R[k] += conj(x[k])ᵀ·y[k], a sample after the other */
void PL_KERNEL(spectral_linear_dw)(const pl_spectral_linear *p, int64_t begin, int64_t end)
{
    for (int64_t row = begin * p->in; row < end * p->in; row++) {
        int64_t k = row / p->in, c = row % p->in;
        float *w = p->weight + row * 2 * p->out;
        for (int64_t o = 0; o < p->out; o += PL_VW) {
            int64_t count = lanes_of(p->out, o);
            pl_vf re = get(w, o, count), im = get(w, p->out + o, count);
            for (int64_t s = 0; s < p->samples; s++) {
                const float *x = mode_of(p->x, s, p->modes, k, p->in), *y = mode_of(p->y, s, p->modes, k, p->out);
                pl_vf xr = pl_v_set(x[c]), xi = pl_v_set(x[p->in + c]);
                pl_vf yr = get(y, o, count), yi = get(y, p->out + o, count);
                re = pl_v_fma(yi, xi, pl_v_fma(yr, xr, re)), im = pl_v_fma(-yr, xi, pl_v_fma(yi, xr, im));
            }
            put(w, o, re, count), put(w, p->out + o, im, count);
        }
    }
}
