/* The epilogue: from complete sums to C and its companions, while the tile is still in the first-level cache. GELU,
 * none and the type of C are constants in each instance of the loop, so their switches fold away; other activations are
 * computed behind a call (pl_v_any_act). */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"

#define OTHER PL_ACT_COUNT

PL_V_INLINE void act_of(const pl_gemm_epilogue *e, pl_activation act, int n, const pl_vf *x, pl_vf *y)
{
    if (act == OTHER)
        pl_v_any_act(e->act, n, x, y);
    else
        pl_v_act_of(act, n, x, y);
}

PL_V_INLINE void slope_of(const pl_gemm_epilogue *e, pl_activation act, int n, const pl_vf *x, pl_vf *y)
{
    if (act == OTHER)
        pl_v_any_act_grad(e->act, n, x, y);
    else
        pl_v_act_grad_of(act, n, x, y);
}

typedef struct place { /* the first element of a vector */
    int64_t i, j;
} place;

/* s[v] times the derivative at v's place and, where wanted, the activation itself: side by side, so that the compiler
 * computes once what both need (the exponential). */
PL_V_INLINE void multiply_by_derivatives(const pl_gemm_epilogue *e, pl_real type, pl_activation act, int n, pl_vf *s,
                                         const place *at, int64_t count)
{
    pl_vf x[PL_V_ABREAST], y[PL_V_ABREAST], factor[PL_V_ABREAST];
    PL_V_EACH x[v] = pl_v_get(type, e->grad_of, at[v].i * e->ld_grad_of + at[v].j, count);
    if (e->act_again) {
        act_of(e, act, n, x, y), slope_of(e, act, n, x, factor);
        PL_V_EACH pl_v_put(type, e->act_again, at[v].i * e->ld_act_again + at[v].j, y[v], count);
    } else {
        slope_of(e, act, n, x, factor);
    }
    PL_V_EACH s[v] = pl_v_as_stored(type, s[v]) * factor[v];
}

/* n vectors of C: whole ones, or the first `count` lanes of one. The activation is that of C as it is stored, and what
 * its derivative is multiplied with is rounded as if it had been stored: the bits are those of the two operators one
 * after the other. */
PL_V_INLINE void finish_vectors(const pl_gemm_epilogue *e, pl_real type, pl_activation act, int n, pl_vf *s,
                                const place *at, int64_t count)
{
    if (e->bias) PL_V_EACH s[v] += pl_v_get(PL_REAL_F32, e->bias, at[v].j, count);
    if (e->residual) PL_V_EACH s[v] += pl_v_get(type, e->residual, at[v].i * e->ld_residual + at[v].j, count);
    if (e->accumulate) PL_V_EACH s[v] += pl_v_get(type, e->c, at[v].i * e->ldc + at[v].j, count);
    if (e->grad_of) multiply_by_derivatives(e, type, act, n, s, at, count);
    PL_V_EACH pl_v_put(type, e->c, at[v].i * e->ldc + at[v].j, s[v], count);
    if (!e->act_out) return;
    pl_vf stored[PL_V_ABREAST], y[PL_V_ABREAST];
    PL_V_EACH stored[v] = pl_v_as_stored(type, s[v]);
    act_of(e, act, n, stored, y);
    PL_V_EACH pl_v_put(type, e->act_out, at[v].i * e->ld_act_out + at[v].j, y[v], count);
}

/* `wide` columns of vectors, as many rows of them as go abreast. */
PL_V_INLINE void finish_abreast(const pl_gemm_epilogue *e, pl_real type, pl_activation act, int wide, const float *s,
                                int64_t lds, int64_t i, int64_t j)
{
    const int n = PL_V_ABREAST;
    pl_vf sum[PL_V_ABREAST];
    place at[PL_V_ABREAST];
    PL_V_EACH
    {
        at[v] = (place){i + v / wide, j + v % wide * PL_VW};
        sum[v] = pl_v_load(s + v / wide * lds + v % wide * PL_VW);
    }
    finish_vectors(e, type, act, n, sum, at, PL_VW);
}

PL_V_INLINE void finish_row(const pl_gemm_epilogue *e, pl_real type, pl_activation act, const float *s, int64_t i,
                            int64_t j, int64_t columns)
{
    for (int64_t q = 0; q < columns; q += PL_VW) {
        int64_t count = columns - q < PL_VW ? columns - q : PL_VW;
        pl_vf sum = count == PL_VW ? pl_v_load(s + q) : pl_v_load_part(s + q, count);
        place at = {i, j + q};
        finish_vectors(e, type, act, 1, &sum, &at, count);
    }
}

PL_V_INLINE void finish_tile(const pl_gemm_epilogue *e, pl_real type, pl_activation act, const float *s, int64_t lds,
                             int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    int64_t r = 0;
    const int two = columns == 2 * PL_VW, three = columns == 3 * PL_VW,
              together = two ? PL_V_ABREAST / 2 : PL_V_ABREAST;
    if (two || three)
        for (; r + together <= rows; r += together) {
            const float *at = s + r * lds;
            finish_abreast(e, type, act, 2, at, lds, i + r, j);
            if (two) continue;
            finish_abreast(e, type, act, 2, at + together / 2 * lds, lds, i + r + together / 2, j);
            finish_abreast(e, type, act, 1, at + 2 * PL_VW, lds, i + r, j + 2 * PL_VW);
        }
    for (; r < rows; r++) finish_row(e, type, act, s + r * lds, i + r, j, columns);
}

/* C = act(first vector)·second vector, n rows of them; a wide tile has such pairs side by side. */
PL_V_INLINE void gate_rows(const pl_gemm_epilogue *e, pl_real type, pl_activation act, int n, const float *s,
                           int64_t lds, int64_t i, int64_t j, int64_t count)
{
    pl_vf x[PL_V_ABREAST], y[PL_V_ABREAST];
    PL_V_EACH x[v] = pl_v_as_stored(type, pl_v_load(s + v * lds));
    act_of(e, act, n, x, y);
    PL_V_EACH y[v] *= pl_v_as_stored(type, pl_v_load(s + v * lds + PL_VW));
    PL_V_EACH pl_v_put(type, e->c, (i + v) * e->ldc + j, y[v], count);
}

PL_V_INLINE void gate_tile(const pl_gemm_epilogue *e, pl_real type, pl_activation act, const float *s, int64_t lds,
                           int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    for (int64_t q = 0; q < columns; q += PL_VW) {
        const int64_t count = columns - q < PL_VW ? columns - q : PL_VW;
        const float *from = s + 2 * q;
        int64_t r = 0;
        if (count == PL_VW)
            for (; r + PL_V_ABREAST <= rows; r += PL_V_ABREAST)
                gate_rows(e, type, act, PL_V_ABREAST, from + r * lds, lds, i + r, j + q, PL_VW);
        if (count == PL_VW)
            for (; r + 2 <= rows; r += 2) gate_rows(e, type, act, 2, from + r * lds, lds, i + r, j + q, PL_VW);
        for (; r < rows; r++) gate_rows(e, type, act, 1, from + r * lds, lds, i + r, j + q, count);
    }
}

static void finish_gated(const pl_gemm_epilogue *e, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                         int64_t columns)
{
    if (e->act == PL_ACT_SILU)
        PL_REAL_EACH(e->type, gate_tile(e, REAL, PL_ACT_SILU, s, lds, i, j, rows, columns));
    else
        PL_REAL_EACH(e->type, gate_tile(e, REAL, OTHER, s, lds, i, j, rows, columns));
}

#define FINISH(act) PL_REAL_EACH(e->type, finish_tile(e, REAL, act, s, lds, i, j, rows, columns))

void pl_gemm_finish(const pl_gemm_epilogue *e, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                    int64_t columns)
{
    if (e->gated) {
        finish_gated(e, s, lds, i, j, rows, columns);
        return;
    }
    switch (e->act) {
    case PL_ACT_GELU:
        FINISH(PL_ACT_GELU);
        break;
    case PL_ACT_NONE:
        FINISH(PL_ACT_NONE);
        break;
    default:
        FINISH(OTHER);
        break;
    }
}
