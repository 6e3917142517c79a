/* The update rule of AdamW on PL_VW elements, whatever their moments are kept in:
 *   m = b1·m + (1−b1)·g;  v = b2·v + (1−b2)·g²;  w −= decay·w + rate·m/(√v·root_scale + eps)
 * where decay = lr·wd, rate = lr/(1−b1ᵗ), root_scale = 1/√(1−b2ᵗ): both subtractions of AdamW in one, rounded once. */
#ifndef PL_KERNELS_CPU_ADAMW_STEP_H
#define PL_KERNELS_CPU_ADAMW_STEP_H

#include "kernels/adamw.h"
#include "kernels/cpu/vec.h"

typedef struct moments {
    pl_vf w, m, v;
} moments;

PL_V_INLINE moments update(const pl_adamw_rates *k, moments s, pl_vf g)
{
    g *= k->grad_scale;
    s.m = pl_v_fma(s.m, pl_v_set(k->beta1), g * k->rest1);
    s.v = pl_v_fma(s.v, pl_v_set(k->beta2), g * g * k->rest2);
    pl_vf root = pl_v_fma(pl_v_sqrt(s.v), pl_v_set(k->root_scale), pl_v_set(k->eps));
    s.w -= pl_v_fma(s.w, pl_v_set(k->decay), s.m * k->rate / root);
    return s;
}

#endif
