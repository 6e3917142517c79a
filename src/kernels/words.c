/* Which table serves which level. */
#include "kernels/words.h"

#include <string.h>

extern const pl_words_kernels pl_int8_kernels_ref, pl_binary_kernels_ref, pl_int8_kernels_baseline,
    pl_binary_kernels_baseline;
#if defined(__x86_64__)
extern const pl_words_kernels pl_int8_kernels_avx2, pl_int8_kernels_avx512, pl_int8_kernels_avx2_vnni,
    pl_int8_kernels_avx512_vnni, pl_int8_kernels_amx, pl_binary_kernels_avx2, pl_binary_kernels_avx512,
    pl_binary_kernels_avx512_vpopcntdq;
#endif

const pl_words_kernels *pl_int8_kernels(pl_isa isa, int extras)
{
    if (isa == PL_ISA_REF) return &pl_int8_kernels_ref;
#if defined(__x86_64__)
    const int vnni = extras & PL_ISA_VNNI;
    if (isa >= PL_ISA_AMX && extras & PL_ISA_AMX_INT8) return &pl_int8_kernels_amx;
    if (isa >= PL_ISA_AVX512) return vnni ? &pl_int8_kernels_avx512_vnni : &pl_int8_kernels_avx512;
    if (isa == PL_ISA_AVX2) return vnni ? &pl_int8_kernels_avx2_vnni : &pl_int8_kernels_avx2;
#endif
    (void)extras;
    return &pl_int8_kernels_baseline;
}

const pl_words_kernels *pl_binary_kernels(pl_isa isa, int extras)
{
    if (isa == PL_ISA_REF) return &pl_binary_kernels_ref;
#if defined(__x86_64__)
    if (isa >= PL_ISA_AVX512)
        return extras & PL_ISA_VPOPCNTDQ ? &pl_binary_kernels_avx512_vpopcntdq : &pl_binary_kernels_avx512;
    if (isa == PL_ISA_AVX2) return &pl_binary_kernels_avx2;
#endif
    (void)extras;
    return &pl_binary_kernels_baseline;
}

void pl_words_copy(int64_t bytes, const void *x, char *to)
{
    const int64_t whole = bytes / 4 * 4;
    memcpy(to, x, (size_t)whole);
    if (whole == bytes) return;
    memset(to + whole, 0, 4);
    memcpy(to + whole, (const char *)x + whole, (size_t)(bytes - whole));
}
