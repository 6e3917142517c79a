#include "base/quantize.h"

#include <math.h>
#include <stdbool.h>

enum { LEVELS = 128, TOP = 255 };
#define EMPTY_SHARE 1e-4 /* of a number, where a bin is empty: no logarithm of 0 */

/* ---- a number ---- */

pl_quantization pl_quantization_of(float least, float largest)
{
    const float low = fminf(least, 0), high = fmaxf(largest, 0);
    /* In double: the difference of two large floats may be none. */
    const double step = ((double)high - (double)low) / TOP;
    const float scale = (float)step;
    if (!(scale > 0)) return (pl_quantization){1, 0};
    return (pl_quantization){scale, (int32_t)nearbyint(-(double)low / (double)scale)};
}

uint8_t pl_quantize(pl_quantization q, float x)
{
    const float at = nearbyintf(x / q.scale) + (float)q.zero;
    if (isnan(at)) return 0;
    return (uint8_t)fminf(fmaxf(at, 0), TOP);
}

float pl_dequantize(pl_quantization q, uint8_t at) { return (float)(at - q.zero) * q.scale; }

/* ---- what was seen ---- */

void pl_extremes_add(pl_extremes *e, const float *x, uint64_t count)
{
    uint64_t not_finite = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) {
            not_finite++;
            continue;
        }
        if (x[i] < e->least) e->least = x[i];
        if (x[i] > e->largest) e->largest = x[i];
    }
    e->not_finite += (float)not_finite;
}

void pl_extremes_join(pl_extremes *e, const pl_extremes *other)
{
    e->least = fminf(e->least, other->least);
    e->largest = fmaxf(e->largest, other->largest);
    e->not_finite += other->not_finite;
}

float pl_extremes_limit(const pl_extremes *e) { return fmaxf(-e->least, e->largest); }

void pl_spread_add(int64_t bin[PL_SPREAD_BINS], float limit, const float *x, uint64_t count)
{
    const float bins_of_one = (float)PL_SPREAD_HALF / limit;
    if (!isfinite(bins_of_one)) { /* all are 0, or next to it */
        for (uint64_t i = 0; i < count; i++) bin[PL_SPREAD_HALF] += isfinite(x[i]);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const float at = x[i] * bins_of_one + (float)PL_SPREAD_HALF;
        if (isfinite(at)) bin[at <= 0 ? 0 : at >= PL_SPREAD_BINS ? PL_SPREAD_BINS - 1 : (int)at]++;
    }
}

void pl_spread_join(int64_t bin[PL_SPREAD_BINS], const int64_t other[PL_SPREAD_BINS])
{
    for (int i = 0; i < PL_SPREAD_BINS; i++) bin[i] += other[i];
}

/* ---- percentile ---- */

typedef struct spread {
    double limit;
    const int64_t *bin;
} spread;

static double edge_of(const spread *s, int bin) { return ((double)bin / PL_SPREAD_HALF - 1) * s->limit; }

static double count_all(const spread *s)
{
    double all = 0;
    for (int i = 0; i < PL_SPREAD_BINS; i++) all += (double)s->bin[i];
    return all;
}

/* The first bin at whose end so many have been seen; that number may be rounded above all that there are. */
static int find_share(const spread *s, double wanted)
{
    double seen = 0;
    int last = 0;
    for (int i = 0; i < PL_SPREAD_BINS; i++) {
        seen += (double)s->bin[i];
        if (s->bin[i]) last = i;
        if (seen >= wanted) return i;
    }
    return last;
}

static void take_percentile(const spread *s, double percentile, double *least, double *largest)
{
    const double all = count_all(s), cut = (1 - percentile / 100) / 2;
    if (!(all > 0)) return;
    *least = edge_of(s, find_share(s, all * cut));
    *largest = edge_of(s, find_share(s, all * (1 - cut)));
}

/* ---- entropy ---- */

/* Bins of |x|. */
static void fold(const spread *s, double *size)
{
    for (int i = 0; i < PL_SPREAD_HALF; i++)
        size[i] = (double)s->bin[PL_SPREAD_HALF + i] + (double)s->bin[PL_SPREAD_HALF - 1 - i];
}

/* What a level's numbers are when they are shared out evenly among those of its bins in which there are any. */
static void expand(const double *size, int bins, double beyond, double *told)
{
    const int of_level = bins / LEVELS;
    for (int level = 0; level < LEVELS; level++) {
        const int begin = level * of_level, end = level == LEVELS - 1 ? bins : begin + of_level;
        double sum = 0;
        int filled = 0;
        for (int i = begin; i < end; i++) {
            sum += size[i];
            filled += size[i] > 0 || (i == bins - 1 && beyond > 0);
        }
        for (int i = begin; i < end; i++) told[i] = size[i] > 0 || (i == bins - 1 && beyond > 0) ? sum / filled : 0;
    }
}

/* How much is taken from bins with numbers, that those without have EMPTY_SHARE each; at least 1: that is not possible.
 */
static double share_for_empty(int empty, int filled) { return filled ? EMPTY_SHARE * empty / filled : 1; }

/* The last of the first `bins` also has what is beyond them. INFINITY: they cannot be compared. */
static double diverge(const double *size, int bins, double beyond, const double *told)
{
    double p_all = 0, q_all = 0, sum = 0;
    int p_filled = 0, q_filled = 0;
    for (int i = 0; i < bins; i++) {
        const double p = size[i] + (i == bins - 1 ? beyond : 0);
        p_all += p, q_all += told[i];
        p_filled += p > 0, q_filled += told[i] > 0;
    }
    const double p_less = share_for_empty(bins - p_filled, p_filled);
    const double q_less = share_for_empty(bins - q_filled, q_filled);
    if (p_less >= 1 || q_less >= 1) return INFINITY;
    for (int i = 0; i < bins; i++) {
        const double p = size[i] + (i == bins - 1 ? beyond : 0);
        const double a = (p > 0 ? p - p_less : EMPTY_SHARE) / p_all;
        const double b = (told[i] > 0 ? told[i] - q_less : EMPTY_SHARE) / q_all;
        if (!(b > 0)) return INFINITY;
        sum += a * log(a / b);
    }
    return sum;
}

static double find_threshold(const spread *s, double *scratch)
{
    double *size = scratch, *told = scratch + PL_SPREAD_HALF;
    double beyond = 0, least = INFINITY;
    int best = PL_SPREAD_HALF;
    fold(s, size);
    for (int bins = PL_SPREAD_HALF; bins >= LEVELS; bins--) {
        expand(size, bins, beyond, told);
        const double divergence = diverge(size, bins, beyond, told);
        if (divergence < least) least = divergence, best = bins;
        beyond += size[bins - 1];
    }
    return (double)best / PL_SPREAD_HALF * s->limit;
}

/* ---- the range ---- */

static uint64_t count_outside(const spread *s, double least, double largest)
{
    uint64_t outside = 0;
    for (int i = 0; i < PL_SPREAD_BINS; i++)
        if (edge_of(s, i + 1) <= least || edge_of(s, i) >= largest) outside += (uint64_t)s->bin[i];
    return outside;
}

pl_span pl_span_of(pl_span_method method, double percentile, const pl_extremes *e, const int64_t *bin, double *scratch)
{
    const spread s = {(double)pl_extremes_limit(e), bin};
    double least = (double)e->least, largest = (double)e->largest;
    if (method == PL_SPAN_MINMAX || !(s.limit > 0)) return (pl_span){e->least, e->largest, 0};
    if (method == PL_SPAN_PERCENTILE) take_percentile(&s, percentile, &least, &largest);
    if (method == PL_SPAN_ENTROPY) largest = find_threshold(&s, scratch), least = -largest;
    least = fmax(least, (double)e->least), largest = fmin(largest, (double)e->largest);
    const bool cut = least > (double)e->least || largest < (double)e->largest;
    return (pl_span){(float)least, (float)largest, cut ? count_outside(&s, least, largest) : 0};
}
