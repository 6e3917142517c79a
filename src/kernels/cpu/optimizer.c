/* AdamW and Adam-atan2 over elements [begin, end), averages of weights, and sums of squares. begin is a multiple of the
 * vector width; only the last range of an array ends elsewhere. */
#include "kernels/cpu/adamw_step.h"
#include "kernels/kernels.h"

PL_V_INLINE void adam(bool angle, int64_t begin, int64_t end, const pl_adamw_rates *rates, float *w, float *m, float *v,
                      const float *g)
{
    const pl_adamw_rates k = *rates;
    int64_t i = begin;
    for (; i + PL_VW <= end; i += PL_VW) {
        moments s =
            update(&k, angle, (moments){pl_v_load(w + i), pl_v_load(m + i), pl_v_load(v + i)}, pl_v_load(g + i));
        pl_v_store(w + i, s.w), pl_v_store(m + i, s.m), pl_v_store(v + i, s.v);
    }
    if (i == end) return;
    int64_t n = end - i;
    moments s = {pl_v_load_part(w + i, n), pl_v_load_part(m + i, n), pl_v_load_part(v + i, n)};
    s = update(&k, angle, s, pl_v_load_part(g + i, n)); /* pad lanes: 0/eps, or the angle of 0, 0 */
    pl_v_store_part(w + i, s.w, n), pl_v_store_part(m + i, s.m, n), pl_v_store_part(v + i, s.v, n);
}

void PL_KERNEL(adamw)(int64_t begin, int64_t end, const pl_adamw_rates *rates, float *w, float *m, float *v,
                      const float *g)
{
    if (rates->angle)
        adam(true, begin, end, rates, w, m, v, g);
    else
        adam(false, begin, end, rates, w, m, v, g);
}

/* The distance is scaled, not the average: one that equals its weight stays, none drifts by its rate's rounding. */
void PL_KERNEL(ema)(int64_t begin, int64_t end, float rest, float *average, const float *w)
{
    int64_t i = begin;
    for (; i + PL_VW <= end; i += PL_VW) {
        pl_vf a = pl_v_load(average + i);
        pl_v_store(average + i, pl_v_fma(pl_v_load(w + i) - a, pl_v_set(rest), a));
    }
    if (i == end) return;
    pl_vf a = pl_v_load_part(average + i, end - i);
    pl_v_store_part(average + i, pl_v_fma(pl_v_load_part(w + i, end - i) - a, pl_v_set(rest), a), end - i);
}

/* ---- Σ x² in double: lanes of half the number, converted as they are loaded ---- */

typedef double lanes_f64 __attribute__((vector_size(PL_V_BYTES)));
typedef float lanes_f32 __attribute__((vector_size(PL_V_BYTES / 2), aligned(4), may_alias));
enum { LANES = PL_VW / 2 };

PL_V_INLINE lanes_f64 add_squares(lanes_f64 sum, const float *x)
{
    lanes_f64 d = __builtin_convertvector(*(const lanes_f32 *)x, lanes_f64);
    return sum + d * d;
}

double PL_KERNEL(sum_squares)(int64_t begin, int64_t end, const float *x)
{
    lanes_f64 s0 = {0}, s1 = s0, s2 = s0, s3 = s0;
    double sum = 0;
    int64_t i = begin;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
        s0 = add_squares(s0, x + i), s1 = add_squares(s1, x + i + LANES);
        s2 = add_squares(s2, x + i + 2 * LANES), s3 = add_squares(s3, x + i + 3 * LANES);
    }
    for (; i < end; i++) sum += (double)x[i] * x[i];
    s0 = (s0 + s1) + (s2 + s3);
    for (int l = 0; l < LANES; l++) sum += s0[l];
    return sum;
}
