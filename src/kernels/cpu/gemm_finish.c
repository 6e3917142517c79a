/* The epilogue: from complete sums to C and its companions, while the tile is still in the first-level cache. The kind
 * of activation is a constant in each instance of the loop, so its switch folds away. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vecmath.h"

PL_V_INLINE pl_vf load(const float *p, int64_t count)
{
    return count == PL_VW ? pl_v_load(p) : pl_v_load_part(p, count);
}

PL_V_INLINE void store(float *p, pl_vf v, int64_t count)
{
    if (count == PL_VW)
        pl_v_store(p, v);
    else
        pl_v_store_part(p, v, count);
}

/* Factor of the sum and, where wanted, the activation itself: side by side, so that the compiler computes once what
 * both need (the exponential). */
PL_V_INLINE pl_vf derivative(const pl_gemm_epilogue *e, pl_activation act, int64_t i, int64_t j, int64_t count)
{
    pl_vf x = load(e->grad_of + i * e->ld_grad_of + j, count);
    if (!e->act_again) return pl_v_act_grad(act, x);
    pl_vf y = pl_v_act(act, x), factor = pl_v_act_grad(act, x);
    store(e->act_again + i * e->ld_act_again + j, y, count);
    return factor;
}

/* Elements (i, j) … (i, j + count) of C. */
PL_V_INLINE void finish_vector(const pl_gemm_epilogue *e, pl_activation act, pl_vf s, int64_t i, int64_t j,
                               int64_t count)
{
    if (e->bias) s += load(e->bias + j, count);
    if (e->residual) s += load(e->residual + i * e->ld_residual + j, count);
    float *c = e->c + i * e->ldc + j;
    if (e->accumulate) s += load(c, count);
    if (e->grad_of) s *= derivative(e, act, i, j, count);
    store(c, s, count);
    if (e->act_out) store(e->act_out + i * e->ld_act_out + j, pl_v_act(act, s), count);
}

PL_V_INLINE void finish_tile(const pl_gemm_epilogue *e, pl_activation act, const float *s, int64_t lds, int64_t i,
                             int64_t j, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t q = 0;
        for (; q + PL_VW <= columns; q += PL_VW) finish_vector(e, act, pl_v_load(s + r * lds + q), i + r, j + q, PL_VW);
        if (q < columns) finish_vector(e, act, pl_v_load_part(s + r * lds + q, columns - q), i + r, j + q, columns - q);
    }
}

void pl_gemm_finish(const pl_gemm_epilogue *e, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                    int64_t columns)
{
    switch (e->act) {
    case PL_ACT_GELU:
        finish_tile(e, PL_ACT_GELU, s, lds, i, j, rows, columns);
        break;
    case PL_ACT_SILU:
        finish_tile(e, PL_ACT_SILU, s, lds, i, j, rows, columns);
        break;
    case PL_ACT_TANH:
        finish_tile(e, PL_ACT_TANH, s, lds, i, j, rows, columns);
        break;
    case PL_ACT_RELU:
        finish_tile(e, PL_ACT_RELU, s, lds, i, j, rows, columns);
        break;
    default:
        finish_tile(e, PL_ACT_NONE, s, lds, i, j, rows, columns);
        break;
    }
}
