/* Rows of f32 as blocks, as base/encoding.h makes them: compiled without contraction. */
#include "base/encoding.h"
#include "base/narrow.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_whole.h"
#include "kernels/kernels.h"

enum { GROUP = 32 };

/* To the nearest whole number, halves away from 0, at most ±127; what is no number becomes 0. */
PL_V_INLINE pl_vi code_of(pl_vf x)
{
    const pl_vf half = pl_v_set(0x1.fffffep-2f); /* the number below 0.5: 0.49999997 does not become 1 */
    x = pl_v_select(x == x, x, pl_v_zero());
    x = pl_v_max(pl_v_set(-127), pl_v_min(pl_v_set(127), x));
    return __builtin_convertvector(x + pl_v_copysign(half, x), pl_vi);
}

void PL_KERNEL(encode_q8_0)(int64_t blocks, const float *x, void *y)
{
    uint8_t *to = y;
    const int64_t bytes = pl_encoding_block_bytes(PL_ENCODING_Q8_0);
    for (int64_t b = 0; b < blocks; b++, x += GROUP, to += bytes) {
        pl_vf largest = pl_v_zero();
        PL_V_UNROLL for (int i = 0; i < GROUP; i += PL_VW) largest = pl_v_max(pl_v_abs(pl_v_load(x + i)), largest);
        const float scale = pl_v_hmax(largest) / 127, by = scale != 0 ? 1 / scale : 0;
        const uint16_t half = pl_f16_of_f32(scale);
        memcpy(to, &half, sizeof half);
        PL_V_UNROLL for (int i = 0; i < GROUP; i += PL_VW)
            pl_v_store_u8(to + sizeof half + i, code_of(pl_v_load(x + i) * by) & 255);
    }
}
