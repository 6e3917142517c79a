#include "kernels/gemm_rounded.h"

#include <string.h>

#include "base/narrow.h"

extern const pl_rounded_kernels pl_rounded_kernels_baseline;
#if defined(__x86_64__)
extern const pl_rounded_kernels pl_rounded_kernels_avx2, pl_rounded_kernels_avx512, pl_rounded_kernels_avx2_vnni,
    pl_rounded_kernels_avx512_vnni;
#endif

const pl_rounded_kernels *pl_rounded_kernels_of(pl_isa isa, int extras)
{
#if defined(__x86_64__)
    const int vnni = extras & PL_ISA_VNNI;
    if (isa >= PL_ISA_AVX512) return vnni ? &pl_rounded_kernels_avx512_vnni : &pl_rounded_kernels_avx512;
    if (isa == PL_ISA_AVX2) return vnni ? &pl_rounded_kernels_avx2_vnni : &pl_rounded_kernels_avx2;
#endif
    (void)isa, (void)extras;
    return &pl_rounded_kernels_baseline;
}

/* The code that stands for 0, where codes begin at 0. */
static int32_t zero_of(pl_encoding e)
{
    switch (e) {
    case PL_ENCODING_Q4_0:
        return 8;
    case PL_ENCODING_Q5_0:
        return 16;
    case PL_ENCODING_Q6_K:
        return 32;
    case PL_ENCODING_Q8_0:
        return 128;
    default:
        return 0;
    }
}

static int32_t sum_of(const int8_t *code, int count)
{
    int32_t sum = 0;
    for (int i = 0; i < count; i++) sum += code[i];
    return sum;
}

void pl_rounded_prepare(pl_encoding e, const void *row, int64_t g, pl_rounded_group *to)
{
    const uint8_t *block = (const uint8_t *)row + g * pl_encoding_block_bytes(PL_ENCODING_Q8_0);
    const int half = PL_ROUNDED_GROUP / 2, zero = zero_of(e);
    uint16_t scale;
    memcpy(&scale, block, sizeof scale);
    memcpy(to->code, block + sizeof scale, sizeof to->code);
    const int32_t first = sum_of(to->code, half), second = sum_of(to->code + half, half);
    to->by = pl_f32_of_f16(scale);
    to->total = to->by * (float)(first + second);
    to->start[0] = -zero * (e == PL_ENCODING_Q6_K ? first : first + second);
    to->start[1] = -zero * second;
}
