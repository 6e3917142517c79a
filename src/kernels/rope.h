/* How rows of tokens are turned: of each of the first `rotated` heads, with a and b for its halves of `half` numbers,
 * y = [a·c − b·s, b·c + a·s]; the other heads stay as they are. Row r is at position r mod `positions`. */
#ifndef PL_KERNELS_ROPE_H
#define PL_KERNELS_ROPE_H

#include <stdint.h>

typedef struct pl_rope {
    int64_t positions, heads, rotated, half;
    const float *cosine, *sine; /* [positions, half] */
} pl_rope;

#endif
