/* The epilogue: from complete sums to C and its companions, while the tile is still in the first-level cache. The kind
 * of activation and the type of C are constants in each instance of the loop, so their switches fold away. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"

/* Factor of the sum and, where wanted, the activation itself: side by side, so that the compiler computes once what
 * both need (the exponential). */
PL_V_INLINE pl_vf derivative(const pl_gemm_epilogue *e, pl_real type, pl_activation act, int64_t i, int64_t j,
                             int64_t count)
{
    pl_vf x = pl_v_get(type, e->grad_of, i * e->ld_grad_of + j, count);
    if (!e->act_again) return pl_v_act_grad(act, x);
    pl_vf y = pl_v_act(act, x), factor = pl_v_act_grad(act, x);
    pl_v_put(type, e->act_again, i * e->ld_act_again + j, y, count);
    return factor;
}

/* As it would be read from C. */
PL_V_INLINE pl_vf as_stored(pl_real type, pl_vf s)
{
    return type == PL_REAL_F32 ? s : pl_v_widen(type, pl_v_narrow(type, s));
}

/* Elements (i, j) … (i, j + count) of C. The activation is that of C as it is stored, and what its derivative is
 * multiplied with is rounded as if it had been stored: the bits are those of the two operators one after the other. */
PL_V_INLINE void finish_vector(const pl_gemm_epilogue *e, pl_real type, pl_activation act, pl_vf s, int64_t i,
                               int64_t j, int64_t count)
{
    int64_t at = i * e->ldc + j;
    if (e->bias) s += pl_v_get(PL_REAL_F32, e->bias, j, count);
    if (e->residual) s += pl_v_get(type, e->residual, i * e->ld_residual + j, count);
    if (e->accumulate) s += pl_v_get(type, e->c, at, count);
    if (e->grad_of) s = as_stored(type, s) * derivative(e, type, act, i, j, count);
    pl_v_put(type, e->c, at, s, count);
    if (!e->act_out) return;
    pl_v_put(type, e->act_out, i * e->ld_act_out + j, pl_v_act(act, as_stored(type, s)), count);
}

PL_V_INLINE void finish_tile(const pl_gemm_epilogue *e, pl_real type, pl_activation act, const float *s, int64_t lds,
                             int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t q = 0;
        for (; q + PL_VW <= columns; q += PL_VW)
            finish_vector(e, type, act, pl_v_load(s + r * lds + q), i + r, j + q, PL_VW);
        if (q < columns)
            finish_vector(e, type, act, pl_v_load_part(s + r * lds + q, columns - q), i + r, j + q, columns - q);
    }
}

#define FINISH(act) PL_REAL_EACH(e->type, finish_tile(e, REAL, act, s, lds, i, j, rows, columns))

void pl_gemm_finish(const pl_gemm_epilogue *e, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                    int64_t columns)
{
    switch (e->act) {
    case PL_ACT_GELU:
        FINISH(PL_ACT_GELU);
        break;
    case PL_ACT_SILU:
        FINISH(PL_ACT_SILU);
        break;
    case PL_ACT_TANH:
        FINISH(PL_ACT_TANH);
        break;
    case PL_ACT_RELU:
        FINISH(PL_ACT_RELU);
        break;
    default:
        FINISH(PL_ACT_NONE);
        break;
    }
}
