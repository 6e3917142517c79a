/* Rows of keys or values as f32, whatever they are stored as and wherever they lie in a ring. */
#ifndef PL_KERNELS_CPU_ATTENTION_KEYS_H
#define PL_KERNELS_CPU_ATTENTION_KEYS_H

#include "kernels/attention.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/blocks.h"

#if !defined(ATTENTION_PAIRS)

PL_V_INLINE void widen_blocks(pl_encoding e, const uint8_t *b, int64_t width, float *to)
{
    for (int64_t d = 0; d < width; d += PL_GROUP, b += pl_block_bytes_of(e)) {
        pl_block_scales scales;
        pl_vf number[PL_GROUP_VECTORS];
        pl_scales_of(e, b, &scales);
        pl_v_group(e, b, &scales, 0, number);
        PL_V_UNROLL for (int v = 0; v < PL_GROUP_VECTORS; v++) pl_v_store(to + d + v * PL_VW, number[v]);
    }
}

/* Blocks are Q8_0: no other cache is written. Zeros as copy_rows has them. */
static inline void copy_blocks(float *to, int64_t ld_to, int64_t padded_rows, const void *from, int64_t ld_bytes,
                               int64_t rows, int64_t width)
{
    for (int64_t r = 0; r < padded_rows; r++, to += ld_to) {
        if (r < rows) widen_blocks(PL_ENCODING_Q8_0, (const uint8_t *)from + r * ld_bytes, width, to);
        for (int64_t d = r < rows ? width : 0; d < ld_to; d++) to[d] = 0;
    }
}

/* Keys [first, first + count) of x, which is k or v, and zeros as copy_rows has them. */
static inline void copy_keys(const pl_attention_head *h, const void *x, int64_t ld, int64_t first, int64_t count,
                             int64_t padded_rows, float *to, int64_t ld_to)
{
    for (int64_t done = 0, n; done < padded_rows; done += n, to += n * ld_to) {
        const int64_t place = pl_attention_place(h, first + done), left = count - done;
        const int64_t rows = h->ring ? smaller(left, h->ring - place) : left;
        const void *from = pl_attention_key_at(h->key_type, h->key_encoding, x, place * ld);
        n = rows == left ? padded_rows - done : rows;
        if (h->key_encoding)
            copy_blocks(to, ld_to, n, from, pl_encoding_row_bytes(h->key_encoding, ld), rows, h->head_width);
        else
            copy_rows(h->key_type, to, ld_to, n, from, ld, rows, h->head_width, 1);
    }
}

#endif
#endif
