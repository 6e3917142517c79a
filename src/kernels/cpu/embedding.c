/* Embedding: y[r, j·D …] = E[token[r − j]] (zeros before the sequence begins and for the token −1, "none yet"), + P[t]
 * when given; and its transpose. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

/* y = a + b over [0, count); y may be a */
PL_V_INLINE void add_row(int64_t count, const float *a, const float *b, float *y)
{
    int64_t j = 0;
    for (; j + PL_VW <= count; j += PL_VW) pl_v_store(y + j, pl_v_load(a + j) + pl_v_load(b + j));
    if (j < count)
        pl_v_store_part(y + j, pl_v_load_part(a + j, count - j) + pl_v_load_part(b + j, count - j), count - j);
}

void PL_KERNEL(embedding_rows)(int64_t begin, int64_t end, int64_t tokens_per_sequence, int64_t width, int64_t window,
                               const int32_t *token, const float *table, const float *position_table, float *y)
{
    size_t row_bytes = (size_t)width * sizeof(float);
    for (int64_t r = begin; r < end; r++) {
        int64_t t = r % tokens_per_sequence;
        float *out = y + r * window * width;
        if (position_table) {
            add_row(width, table + token[r] * width, position_table + t * width, out);
            continue;
        }
        for (int64_t j = 0; j < window; j++, out += width) {
            if (j <= t && token[r - j] >= 0)
                memcpy(out, table + token[r - j] * width, row_bytes);
            else
                memset(out, 0, row_bytes);
        }
    }
}

/* Rows are dealt out in blocks, so that few of them have a neighbour that another thread writes. */
PL_V_INLINE int is_own(int64_t row, int64_t group, int64_t groups) { return groups == 1 || row / 8 % groups == group; }

/* Each own element of dE and dP gets its terms in the order (row of dy, slot). The token −1 has no row in dE. */
void PL_KERNEL(embedding_bwd)(int64_t group, int64_t groups, int64_t batch, int64_t tokens_per_sequence, int64_t width,
                              int64_t window, const int32_t *token, const float *dy, float *dtable, float *dposition)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < tokens_per_sequence; t++) {
            int64_t r = b * tokens_per_sequence + t, slots = t + 1 < window ? t + 1 : window;
            const float *from = dy + r * window * width;
            for (int64_t j = 0; j < slots && dtable; j++) {
                int64_t id = token[r - j];
                if (id < 0 || !is_own(id, group, groups)) continue;
                add_row(width, dtable + id * width, from + j * width, dtable + id * width);
            }
            if (dposition && is_own(t, group, groups))
                add_row(width, dposition + t * width, from, dposition + t * width);
        }
}
