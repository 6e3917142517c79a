/* An infinity or a NaN has all bits of the exponent set. No branch within a stretch: it runs as fast as memory gives.
 */
#include "run/finite.h"

#include <math.h>

#include "base/block8.h"
#include "base/narrow.h"
#include "run/session_impl.h"

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

/* ---- among the weights of a plan ---- */

static bool is_finite_encoded(pl_encoding e, const char *rows, uint64_t bytes)
{
    const int64_t numbers = (int64_t)(bytes / (uint64_t)pl_encoding_block_bytes(e)) * pl_encoding_block(e);
    float x[PL_ENCODING_BLOCK_MAX];
    for (int64_t at = 0, n; at < numbers; at += n) {
        n = numbers - at < PL_ENCODING_BLOCK_MAX ? numbers - at : PL_ENCODING_BLOCK_MAX;
        pl_encoding_widen(e, rows + pl_encoding_row_bytes(e, at), n, x);
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(x[i])) return false;
    }
    return true;
}

const char *pl_finite_find_bad(const pl_session *s)
{
    static const pl_encoding of[PL_DTYPE_COUNT] = {
        [PL_DTYPE_BF16] = PL_ENCODING_BF16, [PL_DTYPE_F16] = PL_ENCODING_F16};
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        const pl_encoding e = v->encoding ? v->encoding : of[v->dtype];
        if (v->role != PL_ROLE_WEIGHT || pl_encoding_is_whole(e) || (!e && v->dtype != PL_DTYPE_F32)) continue;
        const char *rows = pl_session_address(s, (pl_id)i);
        if (rows && !is_finite_encoded(e, rows, pl_value_bytes(g, (pl_id)i))) return v->name;
    }
    return NULL;
}
