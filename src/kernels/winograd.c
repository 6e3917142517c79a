/* Which table serves which level. (The scalar reference has no use for one: it takes convolutions by their definition.)
 */
#include "kernels/winograd.h"

extern const pl_winograd_kernels pl_winograd_kernels_baseline[2];
#if defined(__x86_64__)
extern const pl_winograd_kernels pl_winograd_kernels_avx2[2], pl_winograd_kernels_avx512[2];
#endif

const pl_winograd_kernels *pl_winograd_kernels_of(pl_isa isa, int m)
{
    switch (isa) {
#if defined(__x86_64__)
    case PL_ISA_AVX2:
        return &pl_winograd_kernels_avx2[m == 4];
    case PL_ISA_AVX512:
    case PL_ISA_AMX:
    case PL_ISA_AVX512_BF16:
        return &pl_winograd_kernels_avx512[m == 4];
#endif
    default:
        return &pl_winograd_kernels_baseline[m == 4];
    }
}
