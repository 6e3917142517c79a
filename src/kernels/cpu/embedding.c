/* Embedding: y[r, j·D …] = E[token[r − j]] (zeros before the sequence begins), + P[t] when given; and its transpose. */
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
            if (j <= t)
                memcpy(out, table + token[r - j] * width, row_bytes);
            else
                memset(out, 0, row_bytes);
        }
    }
}

/* Columns [begin, end) of the table rows v with v mod groups = group, and of position rows likewise: this caller's own
 * elements. Each gets its terms in the order (token row, slot). */
void PL_KERNEL(embedding_bwd_columns)(int64_t begin, int64_t end, int64_t group, int64_t groups, int64_t batch,
                                      int64_t tokens_per_sequence, int64_t width, int64_t window, const int32_t *token,
                                      const float *dy, float *dtable, float *dposition)
{
    for (int64_t r = 0; r < batch * tokens_per_sequence; r++) {
        int64_t t = r % tokens_per_sequence, slots = t + 1 < window ? t + 1 : window;
        const float *from = dy + r * window * width + begin;
        for (int64_t j = 0; j < slots && dtable; j++) {
            int64_t v = token[r - j];
            float *to = dtable + v * width + begin;
            if (groups == 1 || v % groups == group) add_row(end - begin, to, from + j * width, to);
        }
        float *to = dposition + t * width + begin;
        if (dposition && (groups == 1 || t % groups == group)) add_row(end - begin, to, from, to);
    }
}
