/* Attention backward of bf16 by AVX512-BF16: all products in pairs, sums and exponentials in f32. */
#if defined(PL_LEVEL_avx512)
#define ATTENTION_PAIRS
#include "kernels/cpu/attention_backward.h"

void pl_attention_pairs_bwd(const pl_attention_bwd_head *h, const pl_attention_part *part, void *workspace)
{
    attend_backward(h, part, workspace);
}
#endif
