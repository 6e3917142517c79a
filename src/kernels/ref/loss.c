/* Scalar reference of kernels/cpu/loss.c, in double. */
#include <math.h>

#include "kernels/kernels.h"

static void ce_row(int64_t vocab, float *z, int32_t target, const float *scale, pl_real gradient, double *loss)
{
    double max = z[0], sum = 0;
    for (int64_t j = 1; j < vocab; j++) max = z[j] > max ? z[j] : max;
    for (int64_t j = 0; j < vocab; j++) sum += exp(z[j] - max);
    *loss = log(sum) + max - z[target];
    for (int64_t j = 0; j < vocab && scale; j++)
        pl_real_put(gradient, z, j, (float)((exp(z[j] - max) / sum - (j == target)) * *scale));
}

void PL_KERNEL(softmax_ce_rows)(int64_t begin, int64_t end, int64_t vocab, int64_t ld, float *logits,
                                const int32_t *target, const float *scale, pl_real gradient, double *row_loss)
{
    for (int64_t r = begin; r < end; r++) {
        row_loss[r] = 0;
        if (target[r] >= 0)
            ce_row(vocab, logits + r * ld, target[r], scale, gradient, &row_loss[r]);
        else
            for (int64_t j = 0; j < vocab && scale; j++) pl_real_put(gradient, logits + r * ld, j, 0);
    }
}
