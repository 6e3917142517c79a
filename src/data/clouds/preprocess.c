#include "data/clouds/preprocess.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "data/clouds/clahe.h"

/* ---- the flat field ---- */

uint64_t pl_flat_field_bytes(uint64_t pixels) { return pixels * (sizeof(double) + 1); }

void pl_flat_field_begin(pl_flat_field *f, uint64_t pixels, void *memory)
{
    *f = (pl_flat_field){.pixels = pixels, .sum = memory, .count = (uint8_t *)memory + pixels * sizeof(double)};
    memset(memory, 0, pl_flat_field_bytes(pixels));
}

void pl_flat_field_add(pl_flat_field *f, const float *frame)
{
    if (f->frames >= PL_FLAT_FRAMES) return;
    f->frames++;
    for (uint64_t i = 0; i < f->pixels; i++)
        if (isfinite(frame[i])) f->sum[i] += (double)frame[i], f->count[i]++;
}

/* Bits in the order of the numbers: a search by halves needs neither a copy nor an order. */
static uint32_t key_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static float of_key(uint32_t key)
{
    const uint32_t bits = key >> 31 ? key & ~(UINT32_C(1) << 31) : ~key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The least number that has more than `rank` numbers at or below it. */
static float ranked(const float *x, uint64_t n, uint64_t rank)
{
    uint32_t low = 0, high = UINT32_MAX;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        uint64_t below = 0;
        for (uint64_t i = 0; i < n; i++) below += key_of(x[i]) <= middle;
        if (below > rank)
            high = middle;
        else
            low = middle + 1;
    }
    return of_key(low);
}

double pl_median_f32(const float *x, uint64_t n)
{
    const double upper = (double)ranked(x, n, n / 2);
    return n % 2 ? upper : ((double)ranked(x, n, n / 2 - 1) + upper) / 2;
}

/* The reference, those that have one first; a pixel's place among them follows from the counts. */
static uint64_t gather_reference(const pl_flat_field *f, float *reference)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < f->pixels; i++)
        if (f->count[i]) reference[n++] = (float)(f->sum[i] / f->count[i]);
    return n;
}

pl_status pl_flat_field_finish(pl_flat_field *f, float *gain, pl_error *err)
{
    uint64_t n = gather_reference(f, gain);
    const double median = n ? pl_median_f32(gain, n) : 1;
    if (!(median > 0))
        return pl_fail(err, PL_E_DATA,
                       "the first %u frames have a median of %g; a flat field needs radiances above 0 (set "
                       "flat_field_correction to false to do without)",
                       f->frames, median);
    for (uint64_t i = f->pixels; i-- > 0;) /* from the end, since a reference lies at its pixel or before it */
        gain[i] = f->count[i] ? (float)(median / fmax((double)gain[--n], 1e-3)) : 1;
    return PL_OK;
}

/* ---- a frame ---- */

uint64_t pl_preprocess_scratch_bytes(const pl_preprocess *p)
{
    const uint64_t pixels = (uint64_t)p->height * p->width;
    return pl_align_up(pixels, 8) + pl_clahe_scratch_bytes(p->height, p->width);
}

/* Mean of the numbers that are whole, in order. */
static double mean_of(const float *x, const uint8_t *damaged, uint64_t n)
{
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!damaged[i]) sum += (double)x[i], count++;
    return count ? sum / (double)count : 0;
}

static void put_damaged(float *x, const uint8_t *damaged, uint64_t n, double value)
{
    for (uint64_t i = 0; i < n; i++)
        if (damaged[i]) x[i] = (float)value;
}

static uint64_t correct(const float *frame, const float *gain, uint64_t n, uint8_t *damaged, float *out)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        out[i] = gain ? (float)((double)frame[i] * (double)gain[i]) : frame[i];
        damaged[i] = !isfinite(out[i]);
        count += damaged[i];
    }
    return count;
}

static void stretch(float *x, uint64_t n)
{
    double low = (double)x[0], high = low;
    for (uint64_t i = 1; i < n; i++) low = fmin(low, (double)x[i]), high = fmax(high, (double)x[i]);
    for (uint64_t i = 0; i < n; i++) x[i] = (float)(((double)x[i] - low) / (high - low + PL_PIXEL_TINY));
}

static void score(float *x, const uint8_t *damaged, uint64_t n, double mean)
{
    double squares = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!damaged[i]) squares += ((double)x[i] - mean) * ((double)x[i] - mean), count++;
    const double deviation = sqrt(squares / (double)count);
    for (uint64_t i = 0; i < n; i++) x[i] = pl_pixel_score((double)x[i], mean, deviation);
}

uint64_t pl_preprocess_frame(const pl_preprocess *p, const float *frame, const float *gain, void *scratch, float *out)
{
    const uint64_t n = (uint64_t)p->height * p->width;
    uint8_t *damaged = scratch;
    void *rest = (uint8_t *)scratch + pl_align_up(n, 8);
    const uint64_t count = correct(frame, gain, n, damaged, out);
    if (count == n) {
        memset(out, 0, n * sizeof *out);
        return count;
    }
    if (count) put_damaged(out, damaged, n, mean_of(out, damaged, n));
    stretch(out, n);
    pl_clahe(p->height, p->width, p->clip_limit, out, rest, out);
    const double mean = mean_of(out, damaged, n);
    if (p->zscore) score(out, damaged, n, mean);
    if (count) put_damaged(out, damaged, n, p->zscore ? 0 : mean);
    return count;
}
