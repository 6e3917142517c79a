#include "data/clouds/augment.h"

#include <math.h>
#include <string.h>

#include "base/narrow.h"
#include "data/clouds/preprocess.h"

enum { CODES_U8 = 256, CODES_F16 = 0x3c00 + 1, LANES = 4 };

/* ---- what is drawn ---- */

static double between(uint32_t random, double low, double high)
{
    return low + (high - low) * (double)random * 0x1p-32;
}

static uint32_t side(double pixels, uint32_t most)
{
    const double whole = fmax(1, rint(pixels));
    return whole < (double)most ? (uint32_t)whole : most;
}

pl_variation pl_variation_draw(const pl_philox *random, uint64_t number, uint32_t height, uint32_t width)
{
    uint32_t a[4], b[4];
    pl_philox_block(random, 0, number, 0, a);
    pl_philox_block(random, 0, number, 1, b);
    const double area = between(b[0], 0.02, 0.1) * (double)height * (double)width;
    const double aspect = exp(between(b[1], log(0.3), log(3.3)));
    pl_variation v = {.varies = true,
                      .contrast = between(a[0], 0.8, 1.2),
                      .brightness = between(a[1], 0.8, 1.2),
                      .flips = a[2] >> 31,
                      .erases = a[3] >> 31,
                      .height = side(sqrt(area * aspect), height),
                      .width = side(sqrt(area / aspect), width)};
    v.top = (uint32_t)((uint64_t)b[2] * (height - v.height + 1) >> 32);
    v.left = (uint32_t)((uint64_t)b[3] * (width - v.width + 1) >> 32);
    return v;
}

double pl_variation_azimuth(const pl_variation *v, double azimuth)
{
    return v->varies && v->flips ? fmod(360 - azimuth, 360) : azimuth;
}

/* ---- counting ---- */

static uint32_t codes_of(pl_frames_form form) { return form == PL_FRAMES_F16 ? CODES_F16 : CODES_U8; }

uint64_t pl_picture_scratch_bytes(pl_frames_form form)
{
    return codes_of(form) * (LANES * sizeof(uint32_t) + sizeof(float));
}

/* Neighbours are often alike: with a count each for four of them, no addition waits for the one before. */
static void count_u8(const uint8_t *x, uint64_t n, uint32_t *count)
{
    for (uint64_t i = 0; i < n; i++) count[i % LANES * CODES_U8 + x[i]]++;
}

static bool count_f16(const uint16_t *x, uint64_t n, uint32_t *count)
{
    for (uint64_t i = 0; i < n; i++) {
        if (x[i] >= CODES_F16) return false;
        count[i % LANES * CODES_F16 + x[i]]++;
    }
    return true;
}

static bool count_codes(pl_frames_form form, const void *picture, uint64_t n, uint32_t *count)
{
    const uint32_t codes = codes_of(form);
    memset(count, 0, codes * LANES * sizeof *count);
    if (form == PL_FRAMES_U8)
        count_u8(picture, n, count);
    else if (!count_f16(picture, n, count))
        return false;
    for (uint32_t c = 0; c < codes; c++) count[c] += count[codes + c] + count[2 * codes + c] + count[3 * codes + c];
    return true;
}

/* ---- what a code becomes ---- */

static double mean_of(const float *value, const uint32_t *count, uint32_t codes, uint64_t n)
{
    double sum = 0;
    for (uint32_t c = 0; c < codes; c++) sum += (double)count[c] * (double)value[c];
    return sum / (double)n;
}

static void vary(const pl_variation *v, double mean, float *value, uint32_t codes)
{
    for (uint32_t c = 0; c < codes; c++) {
        const double x = v->brightness * (mean + v->contrast * ((double)value[c] - mean));
        value[c] = (float)(x < 0 ? 0 : x > 1 ? 1 : x);
    }
}

static void score(const uint32_t *count, uint64_t n, float *value, uint32_t codes)
{
    const double mean = mean_of(value, count, codes, n);
    double squares = 0;
    for (uint32_t c = 0; c < codes; c++)
        squares += (double)count[c] * ((double)value[c] - mean) * ((double)value[c] - mean);
    const double deviation = sqrt(squares / (double)n);
    for (uint32_t c = 0; c < codes; c++) value[c] = pl_pixel_score((double)value[c], mean, deviation);
}

static void fill_values(const pl_picture_rules *r, const pl_variation *v, const uint32_t *count, float *value)
{
    const uint32_t codes = codes_of(r->form);
    const uint64_t n = (uint64_t)r->height * r->width;
    for (uint32_t c = 0; c < codes; c++)
        value[c] = r->form == PL_FRAMES_F16 ? pl_f32_of_f16((uint16_t)c) : (float)c / UINT8_MAX;
    if (v->varies) vary(v, mean_of(value, count, codes, n), value, codes);
    if (r->zscore) score(count, n, value, codes);
}

/* ---- pixels ---- */

static void map_u8(const uint8_t *x, const float *value, uint32_t width, bool flips, float *out)
{
    if (flips)
        for (uint32_t i = 0; i < width; i++) out[width - 1 - i] = value[x[i]];
    else
        for (uint32_t i = 0; i < width; i++) out[i] = value[x[i]];
}

static void map_f16(const uint16_t *x, const float *value, uint32_t width, bool flips, float *out)
{
    if (flips)
        for (uint32_t i = 0; i < width; i++) out[width - 1 - i] = value[x[i]];
    else
        for (uint32_t i = 0; i < width; i++) out[i] = value[x[i]];
}

bool pl_picture_make(const pl_picture_rules *r, const pl_variation *v, const void *picture, void *scratch, float *out)
{
    uint32_t *count = scratch;
    float *value = (float *)(count + (size_t)codes_of(r->form) * LANES);
    const bool flips = v->varies && v->flips;
    if (!count_codes(r->form, picture, (uint64_t)r->height * r->width, count)) return false;
    fill_values(r, v, count, value);
    for (size_t row = 0; row < r->height; row++) {
        float *to = out + row * r->width;
        if (r->form == PL_FRAMES_U8)
            map_u8((const uint8_t *)picture + row * r->width, value, r->width, flips, to);
        else
            map_f16((const uint16_t *)picture + row * r->width, value, r->width, flips, to);
        if (v->varies && v->erases && row >= v->top && row - v->top < v->height)
            memset(to + v->left, 0, v->width * sizeof *to);
    }
    return true;
}
