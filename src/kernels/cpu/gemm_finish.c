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

/* Two columns of vectors, ROWS rows of them: the shape of a tile that no edge cuts. */
enum { ROWS = PL_V_ABREAST / 2 };

PL_V_INLINE void finish_wide(const pl_gemm_epilogue *e, pl_real type, pl_activation act, const float *s, int64_t lds,
                             int64_t i, int64_t j)
{
    const int n = PL_V_ABREAST;
    pl_vf sum[PL_V_ABREAST];
    place at[PL_V_ABREAST];
    PL_V_EACH
    {
        at[v] = (place){i + v / 2, j + v % 2 * PL_VW};
        sum[v] = pl_v_load(s + v / 2 * lds + v % 2 * PL_VW);
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
    if (columns == 2 * PL_VW)
        for (; r + ROWS <= rows; r += ROWS) finish_wide(e, type, act, s + r * lds, lds, i + r, j);
    for (; r < rows; r++) finish_row(e, type, act, s + r * lds, i + r, j, columns);
}

/* C = act(first vector)·second vector, n rows of them. */
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
    int64_t r = 0;
    if (columns == PL_VW)
        for (; r + PL_V_ABREAST <= rows; r += PL_V_ABREAST)
            gate_rows(e, type, act, PL_V_ABREAST, s + r * lds, lds, i + r, j, PL_VW);
    for (; r < rows; r++) gate_rows(e, type, act, 1, s + r * lds, lds, i + r, j, columns);
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
