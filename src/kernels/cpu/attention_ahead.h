/* Rows that are asked for before they are needed, a few at a time: what the two forward passes share. */
#ifndef PL_KERNELS_CPU_ATTENTION_AHEAD_H
#define PL_KERNELS_CPU_ATTENTION_AHEAD_H

#include "kernels/attention.h"
#include "kernels/cpu/vec.h"
#include "kernels/gemm_ahead.h"

typedef struct fetch { /* how far `ahead` has been asked for */
    const pl_attention_ahead *ahead;
    int which;
    int64_t row;
} fetch;

enum { FETCH_ROWS = 3 }; /* between two tiles */

PL_V_INLINE void fetch_some(fetch *f)
{
    for (int i = 0; i < FETCH_ROWS && f->which < PL_ATTENTION_AHEAD; i++) {
        const pl_attention_ahead *a = &f->ahead[f->which];
        const char *row = a->at + f->row * a->ld_bytes;
        for (int64_t b = 0; b < a->row_bytes && f->row < a->rows; b += PL_CACHE_LINE_BYTES) pl_gemm_ahead_line(row + b);
        if (++f->row >= a->rows) f->which++, f->row = 0;
    }
}

#endif
