/* The update rules of AdamW and Adam-atan2 on PL_VW elements, whatever their moments are kept in:
 *   m = b1·m + (1−b1)·g;  v = b2·v + (1−b2)·g²;  w −= decay·w + rate·m/(√v·root_scale + eps)
 *                                          or    w −= decay·w + rate·atan2(m, √v·root_scale)
 * with the factors of kernels/adamw.h: both subtractions of the definition in one, rounded once; and w within ±limit.
 * `angle` says which; it is a constant where update() is expanded, so no loop asks. */
#ifndef PL_KERNELS_CPU_ADAMW_STEP_H
#define PL_KERNELS_CPU_ADAMW_STEP_H

#include "kernels/adamw.h"
#include "kernels/cpu/vec.h"

typedef struct moments {
    pl_vf w, m, v;
} moments;

/* atan2(y, x) of x ≥ 0, within 4e-7 of its size: atan(q) = q·P(q²) on [0, 1], with P by chebyfit (error 2e-8), of the
 * smaller over the larger. Of two zeros 0; of two infinities, and of NaN, NaN: a run that diverged shows it. */
PL_V_INLINE pl_vf angle_of(pl_vf y, pl_vf x)
{
    pl_vf size = pl_v_abs(y), more = pl_v_select_gt(size, x, size, x), less = pl_v_select_gt(size, x, x, size);
    pl_vf q = less / pl_v_max(pl_v_set(0x1p-126f), more), t = q * q;
    pl_vf p = pl_v_set(2.7662835e-3f);
    p = pl_v_fma(p, t, pl_v_set(-1.5731249e-2f));
    p = pl_v_fma(p, t, pl_v_set(4.2137623e-2f));
    p = pl_v_fma(p, t, pl_v_set(-7.4568547e-2f));
    p = pl_v_fma(p, t, pl_v_set(1.0618371e-1f));
    p = pl_v_fma(p, t, pl_v_set(-1.4197798e-1f));
    p = pl_v_fma(p, t, pl_v_set(1.9991872e-1f));
    p = pl_v_fma(p, t, pl_v_set(-3.3333036e-1f));
    p = pl_v_fma(p, t, pl_v_set(1));
    pl_vf angle = p * q, turned = 1.57079633f - angle;
    return pl_v_copysign(pl_v_select_gt(size, x, turned, angle), y);
}

PL_V_INLINE moments update(const pl_adamw_rates *k, bool angle, moments s, pl_vf g)
{
    g *= k->grad_scale;
    s.m = pl_v_fma(s.m, pl_v_set(k->beta1), g * k->rest1);
    s.v = pl_v_fma(s.v, pl_v_set(k->beta2), g * g * k->rest2);
    pl_vf step;
    if (angle) {
        step = k->rate * angle_of(s.m, pl_v_sqrt(s.v) * k->root_scale);
    } else {
        pl_vf root = pl_v_fma(pl_v_sqrt(s.v), pl_v_set(k->root_scale), pl_v_set(k->eps));
        step = s.m * k->rate / root;
    }
    s.w -= pl_v_fma(s.w, pl_v_set(k->decay), step);
    s.w = pl_v_select_gt(s.w, pl_v_set(k->limit), pl_v_set(k->limit), s.w); /* NaN stays */
    s.w = pl_v_select_gt(pl_v_set(-k->limit), s.w, pl_v_set(-k->limit), s.w);
    return s;
}

#endif
