/* Attention forward (attention_forward.h) in words of f32, and the choice between the ways there are: pairs or tiles of
 * bf16 where the processor multiplies them. */
#include "kernels/cpu/attention_forward.h"
#include "kernels/kernels.h"

int64_t PL_KERNEL(attention_block_queries)(pl_attention_products products)
{
#if defined(PL_LEVEL_avx512)
    if (products == PL_ATTENTION_TILES) return pl_attention_amx_queries();
#endif
    (void)products;
    return PANELS * GROUP;
}

uint64_t PL_KERNEL(attention_workspace_bytes)(int64_t head_width, pl_attention_products products)
{
#if defined(PL_LEVEL_avx512)
    if (products == PL_ATTENTION_TILES) return pl_attention_amx_workspace_bytes(head_width);
#endif
    (void)products;
    uint64_t width = (uint64_t)head_width, padded = (uint64_t)round_up(head_width, ROWS);
    uint64_t elems = KEYS * (width + padded + GROUP) + PANELS * GROUP * (width + padded + 3);
    return pl_align_up(elems * sizeof(float), 64);
}

void PL_KERNEL(attention)(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
#if defined(PL_LEVEL_avx512)
    if (h->products == PL_ATTENTION_TILES) {
        pl_attention_amx(h, begin, end, workspace);
        return;
    }
    if (h->products == PL_ATTENTION_PAIRS) {
        pl_attention_pairs(h, begin, end, workspace);
        return;
    }
#endif
    attend(h, begin, end, workspace);
}
