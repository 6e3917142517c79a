/* Embedding: y[r, j·D …] = E[token[r − j]] (zeros before the sequence begins and for the token −1, "none yet"), + P[t]
 * when given; and its transpose. */
#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

/* y = a + b over [0, count); y may be a when its type is that of a */
PL_V_INLINE void add_row(int64_t count, pl_real type_a, const void *a, pl_real type_b, const void *b, pl_real type_y,
                         void *y)
{
    int64_t j = 0;
    for (; j + PL_VW <= count; j += PL_VW)
        pl_v_put(type_y, y, j, pl_v_get(type_a, a, j, PL_VW) + pl_v_get(type_b, b, j, PL_VW), PL_VW);
    if (j < count)
        pl_v_put(type_y, y, j, pl_v_get(type_a, a, j, count - j) + pl_v_get(type_b, b, j, count - j), count - j);
}

PL_V_INLINE void copy_row(pl_real from, pl_real type, int64_t count, const void *a, void *y)
{
    if (type == from) {
        memcpy(y, a, (size_t)(count * pl_real_bytes(type)));
        return;
    }
    int64_t j = 0;
    for (; j + PL_VW <= count; j += PL_VW) pl_v_put(type, y, j, pl_v_get(from, a, j, PL_VW), PL_VW);
    if (j < count) pl_v_put(type, y, j, pl_v_get(from, a, j, count - j), count - j);
}

PL_V_INLINE void embedding_rows(pl_real tables, pl_real type, int64_t begin, int64_t end, int64_t tokens_per_sequence,
                                int64_t width, int64_t window, const int32_t *token, const void *table,
                                const void *position_table, void *y)
{
    for (int64_t r = begin; r < end; r++) {
        int64_t t = r % tokens_per_sequence, at = r * window * width;
        if (position_table) {
            const void *position = pl_real_at(tables, position_table, t * width);
            void *to = pl_real_at(type, y, at);
            if (token[r] >= 0)
                add_row(width, tables, pl_real_at(tables, table, token[r] * width), tables, position, type, to);
            else
                copy_row(tables, type, width, position, to);
            continue;
        }
        for (int64_t j = 0; j < window; j++, at += width) {
            if (j <= t && token[r - j] >= 0)
                copy_row(tables, type, width, pl_real_at(tables, table, token[r - j] * width), pl_real_at(type, y, at));
            else
                memset(pl_real_at(type, y, at), 0, (size_t)(width * pl_real_bytes(type)));
        }
    }
}

void PL_KERNEL(embedding_rows)(int64_t begin, int64_t end, int64_t tokens_per_sequence, int64_t width, int64_t window,
                               const int32_t *token, pl_real tables, const void *table, const void *position_table,
                               pl_real type, void *y)
{
    if (tables == PL_REAL_F32)
        PL_REAL_EACH(type, embedding_rows(PL_REAL_F32, REAL, begin, end, tokens_per_sequence, width, window, token,
                                          table, position_table, y));
    else
        PL_REAL_EACH(type, embedding_rows(REAL, REAL, begin, end, tokens_per_sequence, width, window, token, table,
                                          position_table, y));
}

/* Rows are dealt out in blocks, so that few of them have a neighbour that another thread writes. */
PL_V_INLINE int is_own(int64_t row, int64_t group, int64_t groups) { return groups == 1 || row / 8 % groups == group; }

/* Each own element of dE and dP gets its terms in the order (row of dy, slot). The token −1 has no row in dE. */
PL_V_INLINE void embedding_bwd(pl_real type, int64_t group, int64_t groups, int64_t batch, int64_t tokens_per_sequence,
                               int64_t width, int64_t window, const int32_t *token, const void *dy, float *dtable,
                               float *dposition)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < tokens_per_sequence; t++) {
            int64_t r = b * tokens_per_sequence + t, slots = t + 1 < window ? t + 1 : window;
            for (int64_t j = 0; j < slots && dtable; j++) {
                int64_t id = token[r - j];
                if (id < 0 || !is_own(id, group, groups)) continue;
                float *to = dtable + id * width;
                add_row(width, PL_REAL_F32, to, type, pl_real_at(type, dy, (r * window + j) * width), PL_REAL_F32, to);
            }
            if (!dposition || !is_own(t, group, groups)) continue;
            float *to = dposition + t * width;
            add_row(width, PL_REAL_F32, to, type, pl_real_at(type, dy, r * window * width), PL_REAL_F32, to);
        }
}

void PL_KERNEL(embedding_bwd)(int64_t group, int64_t groups, int64_t batch, int64_t tokens_per_sequence, int64_t width,
                              int64_t window, const int32_t *token, pl_real type, const void *dy, float *dtable,
                              float *dposition)
{
    PL_REAL_EACH(type, embedding_bwd(REAL, group, groups, batch, tokens_per_sequence, width, window, token, dy, dtable,
                                     dposition));
}
