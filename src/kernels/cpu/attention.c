/* Attention forward (attention_forward.h) in words of f32, and the choice between the ways there are: few queries, and
 * pairs of bf16 where the processor multiplies them. */
#include "kernels/cpu/attention_forward.h"
#include "kernels/kernels.h"

enum { FEW_QUERIES = 4 };

int64_t PL_KERNEL(attention_block_queries)(void) { return PANELS * GROUP; }

uint64_t PL_KERNEL(attention_workspace_bytes)(int64_t head_width)
{
    uint64_t width = (uint64_t)head_width, padded = (uint64_t)round_up(head_width, ROWS);
    uint64_t elems = KEYS * (width + padded + GROUP) + PANELS * GROUP * (width + padded + 3);
    return pl_align_up(elems * sizeof(float), 64);
}

void PL_KERNEL(attention)(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    if (h->tq <= FEW_QUERIES && h->type == PL_REAL_F32) {
        PL_KERNEL(attention_few)(h, begin, end, workspace);
        return;
    }
#if defined(PL_LEVEL_avx512)
    if (h->pairs) {
        pl_attention_pairs(h, begin, end, workspace);
        return;
    }
#endif
    attend(h, begin, end, workspace);
}
