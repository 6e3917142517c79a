/* The judge of placements. Quadratic, shares nothing with the placer, and meant to be seen right at a glance: two
 * buffers may not overlap both in time and in space. Names the first rule that is broken. */
#include <inttypes.h>

#include "plimsoll/place.h"
#include "base/error.h"

static bool overlap(uint64_t a_begin, uint64_t a_end, uint64_t b_begin, uint64_t b_end)
{
    return a_begin < b_end && b_begin < a_end;
}

static pl_status check_one(const pl_place_buffer *b, size_t i, uint64_t offset, pl_error *err)
{
    const char *id = b->id ? b->id : "";
    if (offset > UINT64_MAX - b->size)
        return pl_fail(err, PL_E_INTERNAL, "placement: buffer %zu %s at offset %" PRIu64 " ends beyond 64 bits", i, id,
                       offset);
    if (b->alignment && offset % b->alignment)
        return pl_fail(err, PL_E_INTERNAL, "placement: buffer %zu %s at offset %" PRIu64 " is not aligned to %" PRIu64,
                       i, id, offset, b->alignment);
    if (b->fixed_offset != PL_PLACE_NONE && offset != b->fixed_offset)
        return pl_fail(err, PL_E_INTERNAL, "placement: buffer %zu %s lies at %" PRIu64 " but is fixed at %" PRIu64, i,
                       id, offset, b->fixed_offset);
    return PL_OK;
}

pl_status pl_place_validate(const pl_place_problem *problem, const uint64_t *offsets, uint64_t *peak_bytes,
                            pl_error *err)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < problem->buffer_count; i++) {
        const pl_place_buffer *a = &problem->buffers[i];
        PL_TRY(check_one(a, i, offsets[i], err));
        if (offsets[i] + a->size > peak && a->size) peak = offsets[i] + a->size;
        for (size_t j = 0; j < i; j++) {
            const pl_place_buffer *b = &problem->buffers[j];
            if (!a->size || !b->size || !overlap(a->lower, a->upper, b->lower, b->upper)) continue;
            if (overlap(offsets[i], offsets[i] + a->size, offsets[j], offsets[j] + b->size))
                return pl_fail(err, PL_E_INTERNAL,
                               "placement: buffers %zu %s and %zu %s are alive together in [%" PRIu64 ", %" PRIu64
                               ") and [%" PRIu64 ", %" PRIu64 ") and share bytes at offsets %" PRIu64 " and %" PRIu64,
                               j, b->id ? b->id : "", i, a->id ? a->id : "", b->lower, b->upper, a->lower, a->upper,
                               offsets[j], offsets[i]);
        }
    }
    if (peak_bytes) *peak_bytes = peak;
    return PL_OK;
}
