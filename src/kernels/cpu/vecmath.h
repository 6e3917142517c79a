/* exp, erf, tanh, sigmoid and the activations with their derivatives on one vector (pl_vf).
 *
 * Errors, measured over all magnitudes by tests/unit/kernels/test_vecmath.c: exp ≤ 1 ulp, exp2 ≤ 3 ulp; log ≤ 1e-7 of
 * max(1, |log x|); erf, tanh, sigmoid ≤ 2e-7; GELU, SiLU, QuickGELU ≤ 2e-7 of max(1, |x|); derivatives ≤ 1e-6. ±inf
 * give limits, NaN stays NaN.
 *
 * exp after Cephes: n = round(x/ln 2), r = x − n·ln 2 in two steps, 1 + r + r²·P(r), times 2ⁿ.
 * Φ(−|x|) = exp(−x²/2)·Q(|x|) with a polynomial Q (weighted minimax on [0, 5.25], error 8e-9 after the weight): the
 * exponential is the same one that GELU's derivative needs, there is no division and no branch. */
#ifndef PL_KERNELS_CPU_VECMATH_H
#define PL_KERNELS_CPU_VECMATH_H

#include "base/activation.h"
#include "kernels/cpu/vec.h"

/* Splits x = n·ln 2 + r and evaluates exp(r); *n_bits holds n in its low bits (the float n + 1.5·2²³). */
PL_V_INLINE pl_vf pl_v_exp_reduced(pl_vf x, pl_vf *n, pl_vi *n_bits)
{
    const pl_vf magic = pl_v_set(12582912.0f); /* 1.5·2²³: adding it rounds to an integer */
    pl_vf shifted = pl_v_fma(x, pl_v_set(1.44269504f), magic);
    *n_bits = pl_v_bits(shifted);
    *n = shifted - magic;
    pl_vf r = pl_v_fma(*n, pl_v_set(-0.693359375f), x);
    r = pl_v_fma(*n, pl_v_set(2.12194440e-4f), r);
    pl_vf p = pl_v_set(1.9875691500e-4f);
    p = pl_v_fma(p, r, pl_v_set(1.3981999507e-3f));
    p = pl_v_fma(p, r, pl_v_set(8.3334519073e-3f));
    p = pl_v_fma(p, r, pl_v_set(4.1665795894e-2f));
    p = pl_v_fma(p, r, pl_v_set(1.6666665459e-1f));
    p = pl_v_fma(p, r, pl_v_set(5.0000001201e-1f));
    return pl_v_fma(p, r * r, r) + 1.0f;
}

PL_V_INLINE pl_vf pl_v_exp(pl_vf x)
{
    pl_vf n;
    pl_vi bits;
    x = pl_v_max(pl_v_set(-104.0f), pl_v_min(pl_v_set(89.0f), x));
    pl_vf y = pl_v_exp_reduced(x, &n, &bits);
#if defined(PL_LEVEL_avx512)
    return (pl_vf)_mm512_scalef_ps((__m512)y, (__m512)n);
#else /* 2ⁿ in two factors, so that subnormal results and 2¹²⁸ come out right */
    pl_vi whole = bits - 0x4b400000, half = whole >> 1;
    return y * (pl_vf)((pl_vu)(half + 127) << 23) * (pl_vf)((pl_vu)(whole - half + 127) << 23);
#endif
}

/* exp for x ≤ 89 (+inf from 88.4 on), results below 2⁻¹²⁶ flushed or rounded to 0: a little quicker, for softmax. */
PL_V_INLINE pl_vf pl_v_exp_flush(pl_vf x)
{
    pl_vf n;
    pl_vi bits;
    pl_vf y = pl_v_exp_reduced(pl_v_max(pl_v_set(-88.029692f), x), &n, &bits); /* −127·ln 2: then 2ⁿ below is 0 */
    return y * (pl_vf)(((pl_vu)bits << 23) + 0x3f800000u);
}

/* ---- several vectors at a time: y[v] = f(x[v]) for v < n, n a constant where these are expanded ----
 * A polynomial is one chain of multiply-adds, each of which waits for the one before; side by side, several chains fill
 * the time. */

#define PL_V_EACH PL_V_UNROLL for (int v = 0; v < n; v++)

/* p[v] = a polynomial of x[v], coefficients from the highest power down. */
#define PL_V_POLYNOMIALS(p, x, ...)                                                                                    \
    do {                                                                                                               \
        static const float coefficients[] = {__VA_ARGS__};                                                             \
        PL_V_EACH(p)[v] = pl_v_set(coefficients[0]);                                                                   \
        PL_V_UNROLL for (int c = 1; c < (int)(sizeof coefficients / sizeof *coefficients); c++) PL_V_EACH(p)[v] =      \
            pl_v_fma((p)[v], (x)[v], pl_v_set(coefficients[c]));                                                       \
    } while (0)

enum { PL_V_ABREAST = PL_VW == 16 ? 4 : 2 }; /* vectors at a time, as the registers allow */

/* 2ˣ for x ≤ 127, below 2⁻¹²⁶ flushed or rounded to 0, −inf too: softmax in base 2 needs no division by ln 2. Minimax
 * polynomials with constant term 1 (so that 2⁰ is exactly 1), relative error 9e-8 before rounding. */
PL_V_INLINE void pl_v_exp2_flush_of(int n, const pl_vf *x, pl_vf *y)
{
    pl_vf r[PL_V_ABREAST], p[PL_V_ABREAST];
#if defined(PL_LEVEL_avx512) /* the fraction above floor(x), then ·2^floor(x) */
    PL_V_EACH r[v] = (pl_vf)_mm512_reduce_ps((__m512)x[v], _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    PL_V_POLYNOMIALS(p, r, 0.0018671300495043397f, 0.009017029777169228f, 0.05579991266131401f, 0.24016444385051727f,
                     0.6931512951850891f, 1.0f);
    PL_V_EACH y[v] = (pl_vf)_mm512_scalef_ps((__m512)p[v], (__m512)x[v]);
#else
    const pl_vf magic = pl_v_set(12582912.0f);
    pl_vf shifted[PL_V_ABREAST];
    PL_V_EACH
    {
        pl_vf bounded = pl_v_max(pl_v_set(-127.0f), x[v]); /* 2⁻¹²⁷ has the bits of 0 below */
        shifted[v] = bounded + magic, r[v] = bounded - (shifted[v] - magic);
    }
    PL_V_POLYNOMIALS(p, r, 0.001326472731307149f, 0.009671512991189957f, 0.05550733581185341f, 0.24022242426872253f,
                     0.6931470036506653f, 1.0f);
    PL_V_EACH y[v] = p[v] * (pl_vf)(((pl_vu)shifted[v] << 23) + 0x3f800000u);
#endif
}

PL_V_INLINE pl_vf pl_v_exp2_flush(pl_vf x)
{
    pl_vf y;
    pl_v_exp2_flush_of(1, &x, &y);
    return y;
}

/* log x for normal x > 0, after Cephes: x = 2ᵉ·m with m in [√½, √2), log(1 + f) = f − f²/2 + f³·P(f). */
PL_V_INLINE pl_vf pl_v_log(pl_vf x)
{
    pl_vi e = ((pl_vi)x - 0x3f3504f3) >> 23;
    pl_vf f = (pl_vf)((pl_vu)x - ((pl_vu)e << 23)) - 1.0f, n = __builtin_convertvector(e, pl_vf), s = f * f;
    pl_vf p = pl_v_set(7.0376836292e-2f);
    p = pl_v_fma(p, f, pl_v_set(-1.1514610310e-1f));
    p = pl_v_fma(p, f, pl_v_set(1.1676998740e-1f));
    p = pl_v_fma(p, f, pl_v_set(-1.2420140846e-1f));
    p = pl_v_fma(p, f, pl_v_set(1.4249322787e-1f));
    p = pl_v_fma(p, f, pl_v_set(-1.6668057665e-1f));
    p = pl_v_fma(p, f, pl_v_set(2.0000714765e-1f));
    p = pl_v_fma(p, f, pl_v_set(-2.4999993993e-1f));
    p = pl_v_fma(p, f, pl_v_set(3.3333331174e-1f));
    p = pl_v_fma(p * f, s, n * -2.12194440e-4f);
    return pl_v_fma(n, pl_v_set(0.693359375f), f + pl_v_fma(s, pl_v_set(-0.5f), p));
}

/* e = exp(−x²/2), tail = Φ(−|x|). */
PL_V_INLINE void pl_v_normal_tail_of(int n, const pl_vf *x, pl_vf *e, pl_vf *tail)
{
    pl_vf z[PL_V_ABREAST], p[PL_V_ABREAST];
    PL_V_EACH z[v] = -0.72134752f * x[v] * x[v]; /* −log₂e/2 */
    pl_v_exp2_flush_of(n, z, e);
    PL_V_EACH z[v] = pl_v_min(pl_v_set(5.25f), pl_v_abs(x[v]));
    PL_V_POLYNOMIALS(p, z, 4.7079332432531373e-08f, -1.3420295772448299e-06f, 1.73234711837722e-05f,
                     -0.00013555142504628748f, 0.0007305484032258391f, -0.0029455360490828753f, 0.009499282576143742f,
                     -0.025917911902070045f, 0.06217397004365921f, -0.1328870803117752f, 0.24998602271080017f,
                     -0.3989414572715759f, 0.5f);
    PL_V_EACH tail[v] = p[v] * e[v];
}

PL_V_INLINE pl_vf pl_v_clamp(pl_vf x, float limit) { return pl_v_max(pl_v_set(-limit), pl_v_min(pl_v_set(limit), x)); }

PL_V_INLINE pl_vf pl_v_erf(pl_vf x)
{
    pl_vf e, tail, scaled = x * 1.41421356f;
    pl_v_normal_tail_of(1, &scaled, &e, &tail);
    return pl_v_copysign(1.0f - 2.0f * tail, x);
}

/* x > 0: x·(1 − tail); else x·tail, with −inf·0 avoided */
PL_V_INLINE void pl_v_gelu_of(int n, const pl_vf *x, pl_vf *y)
{
    pl_vf e[PL_V_ABREAST], tail[PL_V_ABREAST];
    pl_v_normal_tail_of(n, x, e, tail);
    PL_V_EACH y[v] =
        pl_v_select_gt(x[v], pl_v_zero(), x[v] * (1.0f - tail[v]), pl_v_max(pl_v_set(-1e4f), x[v]) * tail[v]);
}

/* d/dx x·Φ(x) = Φ(x) + x·exp(−x²/2)/√(2π) */
PL_V_INLINE void pl_v_gelu_grad_of(int n, const pl_vf *x, pl_vf *y)
{
    pl_vf e[PL_V_ABREAST], tail[PL_V_ABREAST];
    pl_v_normal_tail_of(n, x, e, tail);
    PL_V_EACH
    {
        pl_vf phi = pl_v_select_gt(x[v], pl_v_zero(), 1.0f - tail[v], tail[v]);
        y[v] = pl_v_fma(pl_v_clamp(x[v], 1e4f), e[v] * 0.39894228f, phi);
    }
}

/* exp_flush(89) is +inf, so that σ(−inf) is 0. */
PL_V_INLINE pl_vf pl_v_sigmoid(pl_vf x) { return 1.0f / (1.0f + pl_v_exp_flush(-pl_v_clamp(x, 89.0f))); }

PL_V_INLINE pl_vf pl_v_silu(pl_vf x) { return pl_v_max(pl_v_set(-89.0f), x) * pl_v_sigmoid(x); }

/* s·(1 + x·(1 − s)), where 1 − s is e·s: no cancellation */
PL_V_INLINE pl_vf pl_v_silu_grad(pl_vf x)
{
    pl_vf c = pl_v_clamp(x, 87.0f), e = pl_v_exp_flush(-c), s = 1.0f / (1.0f + e);
    return pl_v_fma(c * s, e * s, s);
}

/* x·σ(kx) is silu(kx)/k, so its derivative is that of SiLU at kx. */
PL_V_INLINE pl_vf pl_v_quick_gelu(pl_vf x)
{
    return pl_v_max(pl_v_set(-89.0f), x) * pl_v_sigmoid(PL_QUICK_GELU_SCALE * x);
}

PL_V_INLINE pl_vf pl_v_quick_gelu_grad(pl_vf x) { return pl_v_silu_grad(PL_QUICK_GELU_SCALE * x); }

/* ½x(1 + tanh(u)) is x·σ(2u), u = √(2/π)(x + 0.044715x³); far from 0 the argument is clamped by σ, and x³ within what
 * f32 holds. */
PL_V_INLINE pl_vf pl_v_gelu_tanh_argument(pl_vf x)
{
    const pl_vf c = pl_v_clamp(x, 1e4f);
    return (float)(2 * PL_GELU_TANH_SCALE) * pl_v_fma((float)PL_GELU_TANH_CUBE * c * c, c, c);
}

PL_V_INLINE pl_vf pl_v_gelu_tanh(pl_vf x)
{
    return pl_v_max(pl_v_set(-1e4f), x) * pl_v_sigmoid(pl_v_gelu_tanh_argument(x));
}

/* s + x·s·(1 − s)·v', where v = 2u: s·(1 − s) without cancellation, and 0 where x² outgrows it */
PL_V_INLINE pl_vf pl_v_gelu_tanh_grad(pl_vf x)
{
    const pl_vf v = pl_v_clamp(pl_v_gelu_tanh_argument(x), 87.0f), c = pl_v_clamp(x, 1e4f);
    const pl_vf e = pl_v_exp_flush(-v), s = 1.0f / (1.0f + e), one = pl_v_set(1.0f);
    const pl_vf slope = (float)(2 * PL_GELU_TANH_SCALE) * pl_v_fma((float)(3 * PL_GELU_TANH_CUBE) * c, c, one);
    return pl_v_fma(c * slope * s, e * s, s);
}

/* Near 0 Cephes' odd polynomial, elsewhere 1 − 2/(exp(2|x|) + 1). */
PL_V_INLINE pl_vf pl_v_tanh(pl_vf x)
{
    pl_vf z = pl_v_min(pl_v_set(20.0f), pl_v_abs(x));
    pl_vf far = 1.0f - 2.0f / (pl_v_exp_flush(2.0f * z) + 1.0f);
    pl_vf s = z * z, p = pl_v_set(-5.70498872745e-3f);
    p = pl_v_fma(p, s, pl_v_set(2.06390887954e-2f));
    p = pl_v_fma(p, s, pl_v_set(-5.37397155531e-2f));
    p = pl_v_fma(p, s, pl_v_set(1.33314422036e-1f));
    p = pl_v_fma(p, s, pl_v_set(-3.33332819422e-1f));
    pl_vf near = pl_v_fma(p * s, z, z);
    return pl_v_copysign(pl_v_select_gt(z, pl_v_set(0.625f), far, near), x);
}

PL_V_INLINE pl_vf pl_v_tanh_grad(pl_vf x)
{
    pl_vf t = pl_v_tanh(x);
    return 1.0f - t * t;
}

PL_V_INLINE pl_vf pl_v_relu(pl_vf x) { return pl_v_max(pl_v_zero(), x); }
PL_V_INLINE pl_vf pl_v_relu_grad(pl_vf x) /* 0 at 0; NaN stays NaN */
{
    return pl_v_select_gt(x, pl_v_zero(), pl_v_set(1.0f), pl_v_max(pl_v_zero(), x));
}

/* NaN stays NaN in both. */
PL_V_INLINE pl_vf pl_v_leaky_relu(pl_vf x) { return pl_v_max(PL_LEAKY_RELU_SLOPE * x, x); }
PL_V_INLINE pl_vf pl_v_leaky_relu_grad(pl_vf x)
{
    pl_vf slope = pl_v_set(PL_LEAKY_RELU_SLOPE);
    return pl_v_select_gt(x, pl_v_zero(), pl_v_set(1.0f), pl_v_max(slope, x));
}

/* σ(x)·(1 − σ(x)) = e·s², s = 1/(1 + e), e = exp(−|x|): no cancellation */
PL_V_INLINE pl_vf pl_v_sigmoid_grad(pl_vf x)
{
    pl_vf e = pl_v_exp_flush(-pl_v_min(pl_v_set(87.0f), pl_v_abs(x))), s = 1.0f / (1.0f + e);
    return e * s * s;
}

/* act(x) and act'(x), of n vectors, for a kind known where the call stands (the switch folds away). */
PL_V_INLINE void pl_v_act_of(pl_activation act, int n, const pl_vf *x, pl_vf *y)
{
    switch (act) {
    case PL_ACT_GELU:
        pl_v_gelu_of(n, x, y);
        break;
    case PL_ACT_SILU:
        PL_V_EACH y[v] = pl_v_silu(x[v]);
        break;
    case PL_ACT_TANH:
        PL_V_EACH y[v] = pl_v_tanh(x[v]);
        break;
    case PL_ACT_RELU:
        PL_V_EACH y[v] = pl_v_relu(x[v]);
        break;
    case PL_ACT_LEAKY_RELU:
        PL_V_EACH y[v] = pl_v_leaky_relu(x[v]);
        break;
    case PL_ACT_SIGMOID:
        PL_V_EACH y[v] = pl_v_sigmoid(x[v]);
        break;
    case PL_ACT_QUICK_GELU:
        PL_V_EACH y[v] = pl_v_quick_gelu(x[v]);
        break;
    case PL_ACT_GELU_TANH:
        PL_V_EACH y[v] = pl_v_gelu_tanh(x[v]);
        break;
    default:
        PL_V_EACH y[v] = x[v];
        break;
    }
}

PL_V_INLINE void pl_v_act_grad_of(pl_activation act, int n, const pl_vf *x, pl_vf *y)
{
    switch (act) {
    case PL_ACT_GELU:
        pl_v_gelu_grad_of(n, x, y);
        break;
    case PL_ACT_SILU:
        PL_V_EACH y[v] = pl_v_silu_grad(x[v]);
        break;
    case PL_ACT_TANH:
        PL_V_EACH y[v] = pl_v_tanh_grad(x[v]);
        break;
    case PL_ACT_RELU:
        PL_V_EACH y[v] = pl_v_relu_grad(x[v]);
        break;
    case PL_ACT_LEAKY_RELU:
        PL_V_EACH y[v] = pl_v_leaky_relu_grad(x[v]);
        break;
    case PL_ACT_SIGMOID:
        PL_V_EACH y[v] = pl_v_sigmoid_grad(x[v]);
        break;
    case PL_ACT_QUICK_GELU:
        PL_V_EACH y[v] = pl_v_quick_gelu_grad(x[v]);
        break;
    case PL_ACT_GELU_TANH:
        PL_V_EACH y[v] = pl_v_gelu_tanh_grad(x[v]);
        break;
    default:
        PL_V_EACH y[v] = pl_v_set(1.0f);
        break;
    }
}

/* Of any kind, n being 1 or PL_V_ABREAST, behind a call: where most activations are expanded, each would be there once
 * more for every type and width, and the compiler take minutes. */
static __attribute__((noinline, unused)) void pl_v_any_act(pl_activation act, int n, const pl_vf *x, pl_vf *y)
{
    if (n == 1)
        pl_v_act_of(act, 1, x, y);
    else
        pl_v_act_of(act, PL_V_ABREAST, x, y);
}

static __attribute__((noinline, unused)) void pl_v_any_act_grad(pl_activation act, int n, const pl_vf *x, pl_vf *y)
{
    if (n == 1)
        pl_v_act_grad_of(act, 1, x, y);
    else
        pl_v_act_grad_of(act, PL_V_ABREAST, x, y);
}

#endif
