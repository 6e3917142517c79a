#include "data/fields/features.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SMALL 1e-10 /* more in every divisor */

static const float deviation[PL_FEATURE_CHANGES] = {1e-4f, 1e-3f, 1e-2f};
static const float scale[PL_FEATURE_SCALES] = {0.5f, 0.75f, 1.25f, 1.5f};
enum { FIRST_SCALE = 1 + PL_FEATURE_CHANGES };

void pl_features_begin(pl_features *f, uint64_t seed, uint64_t number, int64_t elems, const float *x, float *base)
{
    *f = (pl_features){.philox = pl_philox_init(seed, pl_stream_id("features")),
                       .number = number,
                       .elems = elems,
                       .x = x,
                       .base = base};
}

/* d is what rounding leaves of it: the norm is that of the change which the operator sees. */
static void change(pl_features *f, int which, float *to)
{
    double squares = 0;
    pl_philox_normal_f32(&f->philox, (uint32_t)which, f->number, 0, (uint64_t)f->elems, to);
    for (int64_t i = 0; i < f->elems; i++) {
        to[i] = f->x[i] + deviation[which] * to[i];
        const double d = (double)to[i] - f->x[i];
        squares += d * d;
    }
    f->change[which] = sqrt(squares);
}

void pl_features_input(pl_features *f, int input, float *to)
{
    if (input >= FIRST_SCALE)
        for (int64_t i = 0; i < f->elems; i++) to[i] = scale[input - FIRST_SCALE] * f->x[i];
    else if (input > 0)
        change(f, input - 1, to);
    else
        memcpy(to, f->x, (size_t)f->elems * sizeof *to);
}

void pl_features_take(pl_features *f, int input, pl_real type, const void *answer)
{
    const bool is_change = input > 0 && input < FIRST_SCALE;
    double squares = 0;
    for (int64_t i = 0; i < f->elems; i++) {
        const float y = pl_real_get(type, answer, i);
        const double v = is_change ? (double)y - f->base[i] : y;
        if (input == 0) f->base[i] = y;
        squares += v * v;
    }
    f->answer[input] = sqrt(squares);
}

static double linearity(const double gain[PL_FEATURE_SCALES])
{
    double s = 0, g = 0, ss = 0, sg = 0, gg = 0;
    for (int k = 0; k < PL_FEATURE_SCALES; k++) s += scale[k] / PL_FEATURE_SCALES, g += gain[k] / PL_FEATURE_SCALES;
    for (int k = 0; k < PL_FEATURE_SCALES; k++) {
        const double ds = scale[k] - s, dg = gain[k] - g;
        ss += ds * ds, sg += ds * dg, gg += dg * dg;
    }
    double rest = 0;
    for (int k = 0; k < PL_FEATURE_SCALES; k++) {
        const double away = gain[k] - g - sg / ss * (scale[k] - s);
        rest += away * away;
    }
    return 1 - rest / (gg + SMALL);
}

void pl_features_finish(const pl_features *f, float feature[PL_OPERATOR_FEATURES])
{
    double gain[PL_FEATURE_SCALES];
    for (int k = 0; k < PL_FEATURE_CHANGES; k++)
        feature[PL_FEATURE_LIPSCHITZ_4 + k] = (float)(f->answer[1 + k] / (f->change[k] + SMALL));
    for (int k = 0; k < PL_FEATURE_SCALES; k++) {
        gain[k] = f->answer[FIRST_SCALE + k] / (f->answer[0] + SMALL);
        feature[PL_FEATURE_GAIN_50 + k] = (float)gain[k];
    }
    feature[PL_FEATURE_LINEARITY] = (float)linearity(gain);
    feature[PL_FEATURE_SATURATION] = (float)(1.5 - gain[PL_FEATURE_SCALES - 1]);
    feature[PL_FEATURE_COMPRESSION] = (float)(gain[0] / (gain[PL_FEATURE_SCALES - 1] + SMALL));
}
