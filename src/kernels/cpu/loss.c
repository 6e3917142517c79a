/* Softmax and cross-entropy of rows of logits, in place: logits become (softmax − onehot)·scale.
 * With m = max z, e = exp(z − m), s = Σ e:  loss = ln s + m − z[target];  softmax = e/s. A row is read three times,
 * from the cache. Sums run over four vector accumulators in fixed order; the logarithm and the loss are in double. */
#include <math.h>

#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

static float row_max(int64_t count, const float *z)
{
    pl_vf m0 = pl_v_set(z[0]), m1 = m0, m2 = m0, m3 = m0;
    int64_t j = 0;
    for (; j + 4 * PL_VW <= count; j += 4 * PL_VW) {
        m0 = pl_v_max(m0, pl_v_load(z + j)), m1 = pl_v_max(m1, pl_v_load(z + j + PL_VW));
        m2 = pl_v_max(m2, pl_v_load(z + j + 2 * PL_VW)), m3 = pl_v_max(m3, pl_v_load(z + j + 3 * PL_VW));
    }
    for (; j + PL_VW <= count; j += PL_VW) m0 = pl_v_max(m0, pl_v_load(z + j));
    float largest = pl_v_hmax(pl_v_max(pl_v_max(m0, m1), pl_v_max(m2, m3)));
    for (; j < count; j++) largest = z[j] > largest ? z[j] : largest;
    return largest;
}

/* e = exp(z − max), kept in z when asked for */
PL_V_INLINE pl_vf exp_lanes(float *z, float max, int keep)
{
    pl_vf e = pl_v_exp_flush(pl_v_load(z) - max);
    if (keep) pl_v_store(z, e);
    return e;
}

PL_V_INLINE float row_exp_sum(int64_t count, float *z, float max, int keep)
{
    pl_vf s0 = pl_v_zero(), s1 = s0, s2 = s0, s3 = s0;
    int64_t j = 0;
    for (; j + 4 * PL_VW <= count; j += 4 * PL_VW) {
        s0 += exp_lanes(z + j, max, keep), s1 += exp_lanes(z + j + PL_VW, max, keep);
        s2 += exp_lanes(z + j + 2 * PL_VW, max, keep), s3 += exp_lanes(z + j + 3 * PL_VW, max, keep);
    }
    for (; j + PL_VW <= count; j += PL_VW) s0 += exp_lanes(z + j, max, keep);
    float tail = 0, last[PL_VW];
    if (j < count) {
        pl_vf e = pl_v_exp_flush(pl_v_load_part(z + j, count - j) - max);
        if (keep) pl_v_store_part(z + j, e, count - j);
        pl_v_store(last, e);
        for (int64_t i = 0; i < count - j; i++) tail += last[i];
    }
    return pl_v_sum((s0 + s1) + (s2 + s3)) + tail;
}

/* What is written lies never behind what is still to be read. */
PL_V_INLINE void scale_row(pl_real type, int64_t count, float *z, float factor)
{
    int64_t j = 0;
    for (; j + PL_VW <= count; j += PL_VW) pl_v_put(type, z, j, pl_v_load(z + j) * factor, PL_VW);
    if (j < count) pl_v_put(type, z, j, pl_v_load_part(z + j, count - j) * factor, count - j);
}

/* e becomes (e/sum − onehot)·scale */
static void gradient_row(pl_real type, int64_t count, float *z, int32_t target, float sum, float scale)
{
    float factor = scale / sum, chosen = z[target] * factor - scale;
    PL_REAL_EACH(type, scale_row(REAL, count, z, factor));
    pl_real_put(type, z, target, chosen);
}

void PL_KERNEL(softmax_ce_rows)(int64_t begin, int64_t end, int64_t vocab, int64_t ld, float *logits,
                                const int32_t *target, const float *scale, pl_real gradient, double *row_loss)
{
    for (int64_t r = begin; r < end; r++) {
        float *z = logits + r * ld;
        row_loss[r] = 0;
        if (target[r] < 0) {
            if (scale) memset(z, 0, (size_t)(vocab * pl_real_bytes(gradient)));
            continue;
        }
        float max = row_max(vocab, z), chosen = z[target[r]];
        float sum = scale ? row_exp_sum(vocab, z, max, 1) : row_exp_sum(vocab, z, max, 0);
        row_loss[r] = log((double)sum) + ((double)max - chosen);
        if (scale) gradient_row(gradient, vocab, z, target[r], sum, *scale);
    }
}
