/* An infinity or a NaN has all bits of the exponent set. No branch within a stretch: it runs as fast as memory gives.
 */
#include "run/finite.h"

#include "base/block8.h"
#include "base/narrow.h"

enum { STRETCH = 65536 };

static bool is_finite_f32(const uint32_t *bits, uint64_t count)
{
    for (uint64_t at = 0; at < count;) {
        uint64_t end = count - at < STRETCH ? count : at + STRETCH;
        uint32_t bad = 0;
        for (; at < end; at++) bad |= (bits[at] & 0x7f800000u) == 0x7f800000u;
        if (bad) return false;
    }
    return true;
}

static bool is_finite_bf16(const uint16_t *bits, uint64_t count)
{
    for (uint64_t at = 0; at < count;) {
        uint64_t end = count - at < STRETCH ? count : at + STRETCH;
        uint16_t bad = 0;
        for (; at < end; at++) bad |= (bits[at] & 0x7f80u) == 0x7f80u;
        if (bad) return false;
    }
    return true;
}

static bool is_finite_block8(const unsigned char *row, uint64_t rows)
{
    for (; rows > 0; rows--, row += PL_BLOCK8_BYTES) {
        float scale;
        memcpy(&scale, row + PL_BLOCK8_ELEMS, sizeof scale);
        if ((pl_f32_bits(scale) & 0x7f800000u) == 0x7f800000u) return false;
    }
    return true;
}

bool pl_finite_tensor(const pl_st_entry *e)
{
    switch (e->dtype) {
    case PL_ST_F32:
        return is_finite_f32(e->data, e->bytes / sizeof(uint32_t));
    case PL_ST_BF16:
        return is_finite_bf16(e->data, e->bytes / sizeof(uint16_t));
    case PL_ST_U8: /* moments in blocks; what is state and no moment is bytes, pages for example */
        return e->optional || is_finite_block8(e->data, e->bytes / PL_BLOCK8_BYTES);
    default:
        return true;
    }
}
