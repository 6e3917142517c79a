/* Which table serves which level. */
#include "kernels/gemm.h"

extern const pl_gemm_kernels pl_gemm_kernels_ref, pl_gemm_kernels_baseline;
#if defined(__x86_64__)
extern const pl_gemm_kernels pl_gemm_kernels_avx2, pl_gemm_kernels_avx512, pl_gemm_kernels_avx512_bf16,
    pl_gemm_kernels_amx;
#endif

static const pl_gemm_kernels *kernels_of_level(pl_isa isa)
{
    switch (isa) {
    case PL_ISA_REF:
        return &pl_gemm_kernels_ref;
#if defined(__x86_64__)
    case PL_ISA_AVX2:
        return &pl_gemm_kernels_avx2;
    case PL_ISA_AVX512:
    case PL_ISA_AVX512_BF16:
    case PL_ISA_AMX: /* its processors multiply pairs at half the rate of f32: operands are widened */
        return &pl_gemm_kernels_avx512;
#endif
    default:
        return &pl_gemm_kernels_baseline;
    }
}

const pl_gemm_kernels *pl_gemm_kernels_of(pl_isa isa, pl_real a, pl_real b)
{
#if defined(__x86_64__)
    if (isa == PL_ISA_AVX512_BF16 && a == PL_REAL_BF16 && b == PL_REAL_BF16) return &pl_gemm_kernels_avx512_bf16;
#endif
    (void)a, (void)b;
    return kernels_of_level(isa);
}

const pl_gemm_kernels *pl_gemm_kernels_by_rows(pl_isa isa, pl_real a, pl_real b)
{
#if defined(__x86_64__)
    if (isa == PL_ISA_AMX && a == PL_REAL_BF16 && b == PL_REAL_BF16) return &pl_gemm_kernels_amx;
#endif
    return pl_gemm_kernels_of(isa, a, b);
}
