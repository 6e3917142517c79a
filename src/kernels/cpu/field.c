/* The next state of a rollout, and the metrics of a state: one realisation at a time, in f32, with sums in double, a
 * chain a lane. */
#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

#include <math.h>

typedef double lanes_f64 __attribute__((vector_size(PL_V_BYTES)));
typedef int64_t lanes_i64 __attribute__((vector_size(PL_V_BYTES)));
typedef float lanes_f32 __attribute__((vector_size(PL_V_BYTES / 2), aligned(4), may_alias));
typedef int32_t lanes_i32 __attribute__((vector_size(PL_V_BYTES / 2)));
enum { LANES = PL_VW / 2 };

PL_V_INLINE lanes_f64 wide(const float *x) { return __builtin_convertvector(*(const lanes_f32 *)x, lanes_f64); }

PL_V_INLINE double total(lanes_f64 s)
{
    double sum = 0;
    for (int l = 0; l < LANES; l++) sum += s[l];
    return sum;
}

/* ---- the next state ---- */

PL_V_INLINE pl_vf advance(pl_update_policy policy, const pl_evolve *how, pl_vf x, pl_vf y)
{
    if (policy == PL_POLICY_RESIDUAL) return pl_v_fma(pl_v_set(how->dt), y, x);
    if (policy == PL_POLICY_CONVEX) return pl_v_fma(pl_v_set(how->alpha), x, (1 - how->alpha) * y);
    return y;
}

/* Not-a-number stays: it is seen, never hidden. */
PL_V_INLINE pl_vf between(const pl_evolve *how, pl_vf x)
{
    return pl_v_max(pl_v_set(how->clamp_low), pl_v_min(pl_v_set(how->clamp_high), x));
}

PL_V_INLINE void advance_all(pl_real type, pl_update_policy policy, const pl_evolve *how, int64_t count, float *x,
                             float *previous, const void *y)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) {
        pl_vf old = pl_v_load(x + i);
        if (previous) pl_v_store(previous + i, old);
        pl_v_store(x + i, advance(policy, how, old, pl_v_get(type, y, i, PL_VW)));
    }
    if (i == count) return;
    pl_vf old = pl_v_load_part(x + i, count - i);
    if (previous) pl_v_store_part(previous + i, old, count - i);
    pl_v_store_part(x + i, advance(policy, how, old, pl_v_get(type, y, i, count - i)), count - i);
}

PL_V_INLINE void advance_as(pl_real type, const pl_evolve *how, int64_t count, float *x, float *previous, const void *y)
{
    if (how->policy == PL_POLICY_RESIDUAL)
        advance_all(type, PL_POLICY_RESIDUAL, how, count, x, previous, y);
    else if (how->policy == PL_POLICY_CONVEX)
        advance_all(type, PL_POLICY_CONVEX, how, count, x, previous, y);
    else
        advance_all(type, PL_POLICY_AUTOREGRESSIVE, how, count, x, previous, y);
}

/* Σ (x − mean)², or Σ x where mean is NULL */
static double sum_of(int64_t count, const float *x, const double *mean)
{
    lanes_f64 sum = {0}, m = {0};
    double rest = 0;
    int64_t i = 0;
    if (mean) m += *mean;
    for (; i + LANES <= count; i += LANES) {
        lanes_f64 d = wide(x + i) - m;
        sum += mean ? d * d : d;
    }
    for (; i < count; i++) rest += mean ? (x[i] - *mean) * (x[i] - *mean) : x[i];
    return total(sum) + rest;
}

typedef struct extremes {
    float low, high;
} extremes;

static extremes extremes_of(int64_t count, const float *x)
{
    pl_vf low = pl_v_set(x[0]), high = low;
    extremes e;
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW)
        low = pl_v_min(low, pl_v_load(x + i)), high = pl_v_max(high, pl_v_load(x + i));
    e = (extremes){low[0], high[0]};
    for (int l = 1; l < PL_VW; l++)
        e.low = low[l] < e.low ? low[l] : e.low, e.high = high[l] > e.high ? high[l] : e.high;
    for (; i < count; i++) e.low = x[i] < e.low ? x[i] : e.low, e.high = x[i] > e.high ? x[i] : e.high;
    return e;
}

/* What is subtracted and what divides. */
static void scale_of(const pl_evolve *how, int64_t count, const float *x, float *offset, float *factor)
{
    *offset = 0, *factor = 1;
    if (how->post_process == PL_POST_MINMAX) {
        extremes e = extremes_of(count, x);
        *offset = e.low;
        *factor = e.high > e.low ? (float)(1 / ((double)e.high - e.low)) : e.high == e.low ? 0 : NAN;
    } else if (how->post_process == PL_POST_ZSCORE) {
        double mean = sum_of(count, x, NULL) / (double)count, squares = sum_of(count, x, &mean);
        *offset = (float)mean;
        *factor = (float)(1 / (sqrt(count > 1 ? squares / (double)(count - 1) : 0) + 1e-8));
    }
}

static void finish(const pl_evolve *how, int64_t count, float *x)
{
    float offset, factor;
    int64_t i = 0;
    scale_of(how, count, x, &offset, &factor);
    for (; i + PL_VW <= count; i += PL_VW) pl_v_store(x + i, between(how, (pl_v_load(x + i) - offset) * factor));
    if (i < count)
        pl_v_store_part(x + i, between(how, (pl_v_load_part(x + i, count - i) - offset) * factor), count - i);
}

void PL_KERNEL(evolve)(const pl_evolve *how, int64_t count, float *x, float *previous, pl_real type, const void *y)
{
    PL_REAL_EACH(type, advance_as(REAL, how, count, x, previous, y));
    if (how->post_process != PL_POST_NONE || how->clamp_low > -INFINITY || how->clamp_high < INFINITY)
        finish(how, count, x);
}

/* ---- metrics ---- */

typedef struct sums {
    lanes_f64 a, b, c;
} sums;

static double sum3(sums s, double rest[3], double out[3])
{
    out[0] = total(s.a) + rest[0], out[1] = total(s.b) + rest[1], out[2] = total(s.c) + rest[2];
    return out[0];
}

/* Σ x, Σ |x|, Σ x² */
static void plain_sums(int64_t count, const float *x, double out[3])
{
    sums s = {0};
    double rest[3] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes_f64 v = wide(x + i);
        s.a += v, s.b += (lanes_f64)((lanes_i64)v & INT64_MAX), s.c += v * v;
    }
    for (; i < count; i++) rest[0] += x[i], rest[1] += fabs(x[i]), rest[2] += (double)x[i] * x[i];
    sum3(s, rest, out);
}

/* Σ dx², Σ dx·dp, Σ dp² with dx = x − mean of x, dp likewise */
static void centred_sums(int64_t count, const float *x, double mx, const float *p, double mp, double out[3])
{
    sums s = {0};
    double rest[3] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes_f64 dx = wide(x + i) - mx, dp = wide(p + i) - mp;
        s.a += dx * dx, s.b += dx * dp, s.c += dp * dp;
    }
    for (; i < count; i++) {
        double dx = x[i] - mx, dp = p[i] - mp;
        rest[0] += dx * dx, rest[1] += dx * dp, rest[2] += dp * dp;
    }
    sum3(s, rest, out);
}

enum { BINS_ROOM = 64 };

/* Four histograms side by side, so that neighbours in one bin need not wait for each other. */
static void count_bins(int64_t count, const float *x, double low, double per_unit, int32_t bins[4][BINS_ROOM])
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes_i32 bin = __builtin_convertvector((wide(x + i) - low) * per_unit, lanes_i32);
        PL_V_UNROLL for (int l = 0; l < LANES; l++) bins[l & 3][bin[l]]++;
    }
    for (; i < count; i++) bins[0][(int32_t)((x[i] - low) * per_unit)]++;
}

/* The largest number falls into bin PL_FIELD_BINS, which is the last bin's own. */
static double entropy(int64_t count, const float *x, extremes e)
{
    int32_t bins[4][BINS_ROOM] = {0};
    double sum = 0;
    if (e.high == e.low) return 0;
    count_bins(count, x, e.low, PL_FIELD_BINS / ((double)e.high - e.low), bins);
    for (int b = 0; b < PL_FIELD_BINS; b++) {
        int64_t n = 0;
        for (int k = 0; k < 4; k++) n += bins[k][b] + (b == PL_FIELD_BINS - 1 ? bins[k][PL_FIELD_BINS] : 0);
        double p = (double)n / (double)count;
        if (n) sum -= p * log(p);
    }
    return sum;
}

static double correlation(int64_t count, const float *x, double mean, const float *previous)
{
    extremes e = extremes_of(count, previous), own = extremes_of(count, x);
    double moments[3];
    if (e.high == e.low || own.high == own.low) return 0;
    centred_sums(count, x, mean, previous, sum_of(count, previous, NULL) / (double)count, moments);
    return moments[1] / sqrt(moments[0] * moments[2]);
}

void PL_KERNEL(field_metrics)(int64_t count, const float *x, const float *previous, float *metrics)
{
    double sum[3], n = (double)count;
    plain_sums(count, x, sum);
    if (!isfinite(sum[2])) { /* a state that has left the numbers; no f32 has a square that a double cannot hold */
        for (int k = 0; k < PL_FIELD_METRICS; k++) metrics[k] = NAN;
        metrics[PL_FIELD_ENERGY] = (float)sum[2];
        return;
    }
    double mean = sum[0] / n;
    metrics[PL_FIELD_ENERGY] = (float)sum[2];
    metrics[PL_FIELD_ENTROPY] = (float)entropy(count, x, extremes_of(count, x));
    metrics[PL_FIELD_AUTOCORRELATION] = previous ? (float)correlation(count, x, mean, previous) : 0;
    metrics[PL_FIELD_VARIANCE] = count > 1 ? (float)(sum_of(count, x, &mean) / (n - 1)) : 0;
    metrics[PL_FIELD_MEAN_MAGNITUDE] = (float)(sum[1] / n);
}
