/* From the caller's buffers to sorted items. Every number is checked here once: later sums of sizes cannot overflow,
 * because the sum of all sizes, each rounded up to its alignment, on top of the highest fixed end fits 63 bits. */
#include "part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

#define ID(b) (b)->id ? (b)->id : ""

static pl_status check_buffer(const pl_place_buffer *b, size_t i, pl_error *err)
{
    if (b->lower >= b->upper)
        return pl_fail(err, PL_E_DATA,
                       "buffer %zu %s is alive during [%" PRIu64 ", %" PRIu64
                       "), which is no time at all: lower must be "
                       "below upper",
                       i, ID(b), b->lower, b->upper);
    if (b->alignment == 0 || (b->alignment & (b->alignment - 1)))
        return pl_fail(err, PL_E_DATA,
                       "buffer %zu %s has alignment %" PRIu64 ", which is no power of two; use 1 for none", i, ID(b),
                       b->alignment);
    if (b->fixed_offset != PL_PLACE_NONE && b->fixed_offset % b->alignment)
        return pl_fail(err, PL_E_DATA,
                       "buffer %zu %s is fixed at offset %" PRIu64 ", no multiple of its alignment %" PRIu64, i, ID(b),
                       b->fixed_offset, b->alignment);
    return PL_OK;
}

/* Adds to the running bound on any offset that a placement can reach. */
static pl_status check_reach(const pl_place_buffer *b, size_t i, uint64_t *sum, uint64_t *fixed_end, pl_error *err)
{
    uint64_t rounded = pl_align_up(b->size, b->alignment), end = 0, reach;
    int over = rounded < b->size || pl_size_add(rounded, b->alignment, &rounded) || pl_size_add(*sum, rounded, sum);
    if (!over && b->fixed_offset != PL_PLACE_NONE) over = pl_size_add(b->fixed_offset, b->size, &end);
    if (end > *fixed_end) *fixed_end = end;
    over = over || pl_size_add(*sum, *fixed_end, &reach);
    if (over || reach > INT64_MAX)
        return pl_fail(err, PL_E_DATA,
                       "buffer %zu %s of %" PRIu64
                       " bytes: sizes and fixed offsets together exceed 2^63 bytes, more than "
                       "any machine has",
                       i, ID(b), b->size);
    return PL_OK;
}

#define COMPARE(field)                                                                                                 \
    if (a->field != b->field) return a->field < b->field ? -1 : 1

static int compare_items(const void *left, const void *right)
{
    const place_item *a = left, *b = right;
    COMPARE(lower);
    COMPARE(upper);
    COMPARE(size);
    COMPARE(alignment);
    COMPARE(fixed);
    if (a->id && b->id) {
        int order = strcmp(a->id, b->id);
        if (order) return order;
    }
    COMPARE(buffer);
    return 0;
}

/* Fixed buffers that lie on each other make the problem contradictory; the items are sorted by birth. */
static pl_status check_fixed(const place_item *items, uint32_t count, pl_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const place_item *a = &items[i];
        if (a->fixed == PL_PLACE_NONE) continue;
        for (uint32_t j = i + 1; j < count && items[j].lower < a->upper; j++) {
            const place_item *b = &items[j];
            if (b->fixed == PL_PLACE_NONE || b->fixed >= a->fixed + a->size || a->fixed >= b->fixed + b->size) continue;
            return pl_fail(err, PL_E_DATA,
                           "buffers %" PRIu32 " %s and %" PRIu32 " %s are alive together and both fixed, at offsets "
                           "%" PRIu64 " and %" PRIu64 ", where they overlap",
                           a->buffer, ID(a), b->buffer, ID(b), a->fixed, b->fixed);
        }
    }
    return PL_OK;
}

pl_status place_items_build(const pl_place_problem *problem, place_item **items, uint32_t *count, pl_error *err)
{
    *items = NULL, *count = 0;
    if (problem->buffer_count >= PLACE_NO_ITEM)
        return pl_fail(err, PL_E_DATA, "%zu buffers: at most 2^32 - 2 can be placed", problem->buffer_count);
    uint64_t sum = 0, fixed_end = 0;
    for (size_t i = 0; i < problem->buffer_count; i++) {
        PL_TRY(check_buffer(&problem->buffers[i], i, err));
        PL_TRY(check_reach(&problem->buffers[i], i, &sum, &fixed_end, err));
    }
    place_item *all = pl_alloc(problem->buffer_count, sizeof *all);
    if (!all) return pl_fail(err, PL_E_NOMEM, "no memory to place %zu buffers", problem->buffer_count);
    for (size_t i = 0; i < problem->buffer_count; i++) {
        const pl_place_buffer *b = &problem->buffers[i];
        if (!b->size) continue;
        all[(*count)++] =
            (place_item){b->lower, b->upper, b->size, b->alignment, b->fixed_offset, b->id, 0, 0, (uint32_t)i};
    }
    qsort(all, *count, sizeof *all, compare_items);
    pl_status status = check_fixed(all, *count, err);
    if (status != PL_OK) {
        pl_free(all);
        return status;
    }
    *items = all;
    return PL_OK;
}

uint32_t place_items_part_length(const place_item *items, uint32_t count)
{
    uint32_t n = 0;
    uint64_t end = 0;
    do {
        if (items[n].upper > end) end = items[n].upper;
        n++;
    } while (n < count && items[n].lower < end);
    return n;
}
