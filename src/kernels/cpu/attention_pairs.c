/* Attention of bf16 by AVX512-BF16: all products in pairs, sums, maxima and exponentials in f32. */
#if defined(PL_LEVEL_avx512)
#define ATTENTION_PAIRS
#include "kernels/cpu/attention_forward.h"

void pl_attention_pairs(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    attend(h, begin, end, workspace);
}
#endif
