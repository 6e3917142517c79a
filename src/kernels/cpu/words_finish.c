/* The epilogue of words.h. What makes one column differ from the other is fetched once for all rows of a tile. This
 * file is built without fused multiply-adds (kernels.cmake): each step is rounded by itself, as at baseline. The
 * activation and the rounding to u8 are the kernels that other operators use. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

enum { WIDTH = PL_WORDS_TILE_COLUMNS };

typedef struct columns_of { /* of one tile, in whole vectors; what is past the last column is zero */
    int32_t constant[WIDTH];
    float scale[WIDTH], bias[WIDTH];
} columns_of;

PL_V_INLINE pl_vi load_integers(const int32_t *p) { return *(const pl_vi_unaligned *)p; }

PL_V_INLINE pl_vf load_some(const float *p, int64_t count)
{
    return count == PL_VW ? pl_v_load(p) : pl_v_load_part(p, count);
}

PL_V_INLINE pl_vi some_integers(const int32_t *p, int64_t count)
{
    if (count == PL_VW) return load_integers(p);
    pl_vi some = {0};
    memcpy(&some, p, (size_t)count * sizeof *p);
    return some;
}

PL_V_INLINE void take_columns(const pl_words_epilogue *e, int64_t j, int64_t columns, columns_of *of)
{
    for (int64_t q = 0; q < columns; q += PL_VW) {
        const int64_t count = columns - q < PL_VW ? columns - q : PL_VW;
        pl_vi constant = pl_v_set_i32(e->constant);
        pl_vf scale = load_some(e->column_scale + j + q, count);
        if (e->column_sums) constant -= some_integers(e->column_sums + j + q, count) * e->zero;
        if (!e->row_scale) scale *= e->scale;
        memcpy(of->constant + q, &constant, sizeof constant);
        pl_v_store(of->scale + q, scale);
        if (e->bias) pl_v_store(of->bias + q, load_some(e->bias + j + q, count));
    }
}

/* The first `count` lanes of a vector of C, from lane q of the tile on. */
PL_V_INLINE pl_vf linear(const pl_words_epilogue *e, const columns_of *of, const int32_t *s, int64_t i, int64_t j,
                         int64_t q, int64_t count)
{
    pl_vf scale = pl_v_load(of->scale + q);
    if (e->row_scale) scale *= pl_v_set(e->row_scale[i]);
    pl_vi whole = load_integers(s + q) * e->factor + load_integers(of->constant + q);
    pl_vf v = __builtin_convertvector(whole, pl_vf) * scale;
    if (e->bias) v += pl_v_load(of->bias + q);
    if (!e->residual) return v;
    const float *residual = e->residual + i * e->ld_residual + j + q;
    return v + load_some(residual, count);
}

PL_V_INLINE void finish_row(const pl_words_epilogue *e, const columns_of *of, const int32_t *s, int64_t i, int64_t j,
                            int64_t columns, float *to)
{
    for (int64_t q = 0; q < columns; q += PL_VW) {
        const int64_t count = columns - q < PL_VW ? columns - q : PL_VW;
        const pl_vf v = linear(e, of, s, i, j, q, count);
        if (count == PL_VW)
            pl_v_store(to + q, v);
        else
            pl_v_store_part(to + q, v, count);
    }
}

/* A panel's rows side by side, so that the activation has many lanes at once. */
PL_V_INLINE void finish_gated(const pl_words_epilogue *e, const int32_t *s, int64_t lds, int64_t i, int64_t j,
                              int64_t rows)
{
    enum { PANEL = PL_WORDS_PANEL, MOST = PL_WORDS_MR_MAX * PANEL };
    columns_of gate, up;
    float g[MOST], u[MOST], y[MOST];
    uint8_t rounded[MOST];
    if (rows < 1) return;
    take_columns(e, j, PANEL, &gate);
    take_columns(e, e->gated + j, PANEL, &up);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < PANEL; q += PL_VW) {
            pl_v_store(g + r * PANEL + q, linear(e, &gate, s + r * lds, i + r, j, q, PL_VW));
            pl_v_store(u + r * PANEL + q, linear(e, &up, s + r * lds + PANEL, i + r, e->gated + j, q, PL_VW));
        }
    PL_KERNEL(gated)(e->act, rows * PANEL, g, u, y);
    if (e->q_out) PL_KERNEL(quantize_u8)(rows * PANEL, y, e->q_scale, e->q_zero, rounded);
    for (int64_t r = 0; r < rows; r++) {
        if (e->act_out) memcpy(e->act_out + (i + r) * e->ld_act_out + j, y + r * PANEL, PANEL * sizeof *y);
        if (e->q_out) memcpy(e->q_out + (i + r) * e->ld_q_out + j, rounded + r * PANEL, PANEL);
    }
}

void PL_KERNEL(words_finish)(const pl_words_epilogue *given, const int32_t *s, int64_t lds, int64_t i, int64_t j,
                             int64_t rows, int64_t columns)
{
    const pl_words_epilogue copy = *given, *e = &copy; /* which nothing that is written can change */
    columns_of of;
    if (e->gated) {
        finish_gated(e, s, lds, i, j, rows);
        return;
    }
    take_columns(e, j, columns, &of);
    for (int64_t r = 0; r < rows; r++) {
        float own[WIDTH];
        float *v = e->c ? e->c + (i + r) * e->ldc + j : own;
        finish_row(e, &of, s + r * lds, i + r, j, columns, v);
        if (!e->act_out && !e->q_out) continue;
        float *y = e->act_out ? e->act_out + (i + r) * e->ld_act_out + j : own;
        if (e->act_out || e->act != PL_ACT_NONE) PL_KERNEL(activation)(e->act, columns, PL_REAL_F32, v, y);
        if (!e->act_out && e->act == PL_ACT_NONE) y = v;
        if (e->q_out) PL_KERNEL(quantize_u8)(columns, y, e->q_scale, e->q_zero, e->q_out + (i + r) * e->ld_q_out + j);
    }
}
