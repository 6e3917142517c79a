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
                       "), which is empty: lower must be below upper",
                       i, ID(b), b->lower, b->upper);
    if (b->alignment == 0 || (b->alignment & (b->alignment - 1)))
        return pl_fail(err, PL_E_DATA,
                       "buffer %zu %s has alignment %" PRIu64 ", which is not a power of two; use 1 for none", i, ID(b),
                       b->alignment);
    if (b->fixed_offset != PL_PLACE_NONE && b->fixed_offset % b->alignment)
        return pl_fail(err, PL_E_DATA,
                       "buffer %zu %s is fixed at offset %" PRIu64 ", not a multiple of its alignment %" PRIu64, i,
                       ID(b), b->fixed_offset, b->alignment);
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

/* ---- fixed buffers that lie on each other make the problem contradictory ----
 *
 * A sweep over time: those alive hang in a tree whose leaves are all fixed ones by offset and whose nodes hold the one
 * below them that ends highest. Of those that begin below a new one's end, does the one that ends highest reach into
 * it? n log n altogether. */

typedef struct sweep {
    const place_item *items;
    uint32_t *by_offset, *by_death, *by_birth; /* [count]: items */
    uint32_t *tree;                            /* [2·count]: leaves behind, node k above 2k and 2k + 1 */
    uint32_t count;
} sweep;

typedef struct place_key {
    uint64_t key;
    uint32_t item;
} place_key;

static int compare_place_keys(const void *left, const void *right)
{
    const place_key *a = left, *b = right;
    COMPARE(key);
    COMPARE(item);
    return 0;
}

static uint64_t end_of(const sweep *s, uint32_t item)
{
    return item == PLACE_NO_ITEM ? 0 : s->items[item].fixed + s->items[item].size;
}

static uint32_t higher(const sweep *s, uint32_t a, uint32_t b) { return end_of(s, a) >= end_of(s, b) ? a : b; }

/* How many fixed ones begin below an offset, of those as far as item `below` at that very offset. */
static uint32_t count_below(const sweep *s, uint64_t offset, uint32_t below)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, item = s->by_offset[middle];
        if (s->items[item].fixed < offset || (s->items[item].fixed == offset && item < below))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_alive(sweep *s, uint32_t item, bool alive)
{
    uint32_t node = s->count + count_below(s, s->items[item].fixed, item);
    s->tree[node] = alive ? item : PLACE_NO_ITEM;
    while (node /= 2) s->tree[node] = higher(s, s->tree[2 * node], s->tree[2 * node + 1]);
}

/* One that is alive and shares bytes with this one, or PLACE_NO_ITEM. */
static uint32_t find_sharer(const sweep *s, uint32_t item)
{
    uint32_t highest = PLACE_NO_ITEM, left = s->count, right = s->count + count_below(s, end_of(s, item), 0);
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2) highest = higher(s, highest, s->tree[left++]);
        if (right % 2) highest = higher(s, highest, s->tree[--right]);
    }
    return end_of(s, highest) > s->items[item].fixed ? highest : PLACE_NO_ITEM;
}

static pl_status run_sweep(sweep *s, pl_error *err)
{
    for (uint32_t k = 0, dead = 0; k < s->count; k++) {
        uint32_t i = s->by_birth[k];
        const place_item *b = &s->items[i];
        while (s->items[s->by_death[dead]].upper <= b->lower) set_alive(s, s->by_death[dead++], false);
        uint32_t j = find_sharer(s, i);
        if (j == PLACE_NO_ITEM) {
            set_alive(s, i, true);
            continue;
        }
        const place_item *a = &s->items[j];
        return pl_fail(err, PL_E_DATA,
                       "buffers %" PRIu32 " %s and %" PRIu32 " %s are alive together and both fixed, at offsets "
                       "%" PRIu64 " and %" PRIu64 ", where they overlap",
                       a->buffer, ID(a), b->buffer, ID(b), a->fixed, b->fixed);
    }
    return PL_OK;
}

static void sort_by(const place_item *items, const uint32_t *list, uint32_t count, bool by_death, place_key *keys,
                    uint32_t *sorted)
{
    for (uint32_t k = 0; k < count; k++)
        keys[k] = (place_key){by_death ? items[list[k]].upper : items[list[k]].fixed, list[k]};
    qsort(keys, count, sizeof *keys, compare_place_keys);
    for (uint32_t k = 0; k < count; k++) sorted[k] = keys[k].item;
}

static pl_status check_fixed(const place_item *items, uint32_t count, pl_error *err)
{
    sweep s = {.items = items};
    for (uint32_t i = 0; i < count; i++) s.count += items[i].fixed != PL_PLACE_NONE;
    if (s.count < 2) return PL_OK;
    place_key *keys = pl_alloc(s.count, sizeof *keys);
    s.tree = pl_alloc(s.count, 5 * sizeof *s.tree);
    pl_status status = PL_OK;
    if (keys && s.tree) {
        s.by_birth = s.tree + 2 * (size_t)s.count, s.by_offset = s.by_birth + s.count;
        s.by_death = s.by_offset + s.count;
        for (uint32_t i = 0, k = 0; i < count; i++) /* sorted by birth */
            if (items[i].fixed != PL_PLACE_NONE) s.by_birth[k++] = i;
        sort_by(items, s.by_birth, s.count, false, keys, s.by_offset);
        sort_by(items, s.by_birth, s.count, true, keys, s.by_death);
        for (size_t k = 0; k < 2 * (size_t)s.count; k++) s.tree[k] = PLACE_NO_ITEM;
        status = run_sweep(&s, err);
    } else {
        status = pl_fail(err, PL_E_NOMEM, "no memory to check %u fixed buffers", (unsigned)s.count);
    }
    pl_free(s.tree);
    pl_free(keys);
    return status;
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
