/* Scalar reference of kernels/cpu/embedding.c. */
#include "kernels/kernels.h"

void PL_KERNEL(embedding_rows)(int64_t begin, int64_t end, int64_t tokens_per_sequence, int64_t width, int64_t window,
                               const int32_t *token, pl_real tables, const void *table, const void *position_table,
                               pl_real type, void *y)
{
    for (int64_t r = begin; r < end; r++)
        for (int64_t j = 0; j < window; j++)
            for (int64_t d = 0; d < width; d++) {
                int64_t t = r % tokens_per_sequence;
                float e = j <= t && token[r - j] >= 0 ? pl_real_get(tables, table, token[r - j] * width + d) : 0;
                if (position_table) e += pl_real_get(tables, position_table, t * width + d);
                pl_real_put(type, y, (r * window + j) * width + d, e);
            }
}

void PL_KERNEL(embedding_bwd)(int64_t group, int64_t groups, int64_t batch, int64_t tokens_per_sequence, int64_t width,
                              int64_t window, const int32_t *token, pl_real type, const void *dy, float *dtable,
                              float *dposition)
{
    for (int64_t r = 0; r < batch * tokens_per_sequence; r++)
        for (int64_t j = 0; j < window; j++)
            for (int64_t d = 0; d < width; d++) {
                int64_t t = r % tokens_per_sequence, id = j <= t ? token[r - j] : -1;
                float term = pl_real_get(type, dy, (r * window + j) * width + d);
                if (dtable && id >= 0 && id / 8 % groups == group) dtable[id * width + d] += term;
                if (dposition && t / 8 % groups == group) dposition[t * width + d] += term;
            }
}
