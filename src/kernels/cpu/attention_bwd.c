/* Attention backward (attention_backward.h) in words of f32, and the choice between these and pairs of bf16. */
#include "kernels/cpu/attention_backward.h"
#include "kernels/kernels.h"

uint64_t PL_KERNEL(attention_bwd_workspace_bytes)(int64_t head_width, pl_real type, int64_t keys)
{
    work w;
    return lay_out(head_width, type == PL_REAL_F32 ? 0 : keys, NULL, &w);
}

void PL_KERNEL(attention_bwd)(const pl_attention_bwd_head *h, const pl_attention_part *part, void *workspace)
{
#if defined(PL_LEVEL_avx512)
    if (h->pairs) {
        pl_attention_pairs_bwd(h, part, workspace);
        return;
    }
#endif
    attend_backward(h, part, workspace);
}
