#include "kernels/kernels.h"

const pl_kernels *pl_kernels_get(pl_isa wanted)
{
    pl_isa best = pl_isa_of_machine();
    switch (wanted < best ? wanted : best) {
#if defined(__x86_64__)
    case PL_ISA_AMX:
    case PL_ISA_AVX512_BF16: /* a matter of products alone (gemm.h, attention.h) */
    case PL_ISA_AVX512:
        return &pl_kernel_table_avx512;
    case PL_ISA_AVX2:
        return &pl_kernel_table_avx2;
#endif
    case PL_ISA_REF:
        return &pl_kernel_table_ref;
    default:
        return &pl_kernel_table_baseline;
    }
}
