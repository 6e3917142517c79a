/* The judge of placements. Shares nothing with the placer: two buffers may not overlap both in time and in space. Names
 * the first rule that is broken.
 *
 * A sweep over time: a buffer is checked, as its life begins, against those alive then. These hang in a tree whose
 * leaves are all buffers by offset and whose nodes hold the one alive below them that ends highest: of those that begin
 * below this one's end, does the one that ends highest reach above its offset? n log n altogether. */
#include <inttypes.h>
#include <stdlib.h>

#include "plimsoll/place.h"
#include "base/alloc.h"
#include "base/error.h"

#define NONE SIZE_MAX

typedef struct point {
    uint64_t at;
    size_t buffer;
} point;

typedef struct sweep {
    const pl_place_buffer *buffers;
    const uint64_t *offsets;
    size_t count;                           /* of buffers that are not empty */
    point *by_offset, *by_birth, *by_death; /* [count] each, in one block */
    size_t *leaf;                           /* [buffers]: the place in by_offset */
    size_t *tree;                           /* [2·count]: leaves behind, node k above 2k and 2k + 1; NONE: nobody */
} sweep;

static pl_status check_one(const pl_place_buffer *b, size_t i, uint64_t offset, pl_error *err)
{
    const char *id = b->id ? b->id : "";
    if (b->lower >= b->upper)
        return pl_fail(err, PL_E_INTERNAL,
                       "placement: buffer %zu %s is alive in [%" PRIu64 ", %" PRIu64 "), which is empty", i, id,
                       b->lower, b->upper);
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

static uint64_t end_of(const sweep *s, size_t buffer) { return s->offsets[buffer] + s->buffers[buffer].size; }

static size_t higher(const sweep *s, size_t a, size_t b)
{
    if (a == NONE || b == NONE) return a == NONE ? b : a;
    return end_of(s, a) >= end_of(s, b) ? a : b;
}

static void set_alive(sweep *s, size_t buffer, bool alive)
{
    size_t node = s->count + s->leaf[buffer];
    s->tree[node] = alive ? buffer : NONE;
    while (node /= 2) {
        size_t now = higher(s, s->tree[2 * node], s->tree[2 * node + 1]);
        if (s->tree[node] == now) break; /* and so is all above */
        s->tree[node] = now;
    }
}

/* How many begin below this address. */
static size_t count_below(const sweep *s, uint64_t address)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->by_offset[middle].at < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One that is alive and shares bytes with this one, or NONE. */
static size_t find_sharer(const sweep *s, size_t buffer)
{
    size_t highest = NONE, left = s->count, right = s->count + count_below(s, end_of(s, buffer));
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2) highest = higher(s, highest, s->tree[left++]);
        if (right % 2) highest = higher(s, highest, s->tree[--right]);
    }
    return highest != NONE && end_of(s, highest) > s->offsets[buffer] ? highest : NONE;
}

static int compare_points(const void *left, const void *right)
{
    const point *a = left, *b = right;
    return a->at != b->at ? (a->at < b->at ? -1 : 1) : (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static void sort_points(sweep *s, size_t buffer_count)
{
    for (size_t i = 0; i < buffer_count; i++) {
        if (!s->buffers[i].size) continue;
        s->by_offset[s->count] = (point){s->offsets[i], i};
        s->by_birth[s->count] = (point){s->buffers[i].lower, i};
        s->by_death[s->count++] = (point){s->buffers[i].upper, i};
    }
    if (!s->count) return;
    qsort(s->by_offset, s->count, sizeof(point), compare_points);
    qsort(s->by_birth, s->count, sizeof(point), compare_points);
    qsort(s->by_death, s->count, sizeof(point), compare_points);
    for (size_t i = 0; i < s->count; i++) s->leaf[s->by_offset[i].buffer] = i;
    for (size_t i = 0; i < 2 * s->count; i++) s->tree[i] = NONE;
}

static pl_status fail_pair(const sweep *s, size_t i, size_t j, pl_error *err)
{
    const pl_place_buffer *a = &s->buffers[i], *b = &s->buffers[j];
    if (i > j) return fail_pair(s, j, i, err);
    return pl_fail(err, PL_E_INTERNAL,
                   "placement: buffers %zu %s and %zu %s are alive together in [%" PRIu64 ", %" PRIu64 ") and [%" PRIu64
                   ", %" PRIu64 ") and share bytes at offsets %" PRIu64 " and %" PRIu64,
                   i, a->id ? a->id : "", j, b->id ? b->id : "", a->lower, a->upper, b->lower, b->upper, s->offsets[i],
                   s->offsets[j]);
}

static pl_status run_sweep(sweep *s, pl_error *err)
{
    size_t dead = 0;
    for (size_t i = 0; i < s->count; i++) {
        size_t buffer = s->by_birth[i].buffer;
        while (dead < s->count && s->by_death[dead].at <= s->by_birth[i].at)
            set_alive(s, s->by_death[dead++].buffer, false);
        size_t other = find_sharer(s, buffer);
        if (other != NONE) return fail_pair(s, buffer, other, err);
        set_alive(s, buffer, true);
    }
    return PL_OK;
}

static pl_status check_pairs(const pl_place_problem *problem, const uint64_t *offsets, pl_error *err)
{
    size_t n = problem->buffer_count;
    sweep s = {.buffers = problem->buffers, .offsets = offsets};
    s.by_offset = pl_alloc(n, 3 * sizeof *s.by_offset);
    s.leaf = pl_alloc(n, 3 * sizeof *s.leaf);
    pl_status status = PL_OK;
    if (s.by_offset && s.leaf) {
        s.by_birth = s.by_offset + n, s.by_death = s.by_birth + n, s.tree = s.leaf + n;
        sort_points(&s, n);
        status = run_sweep(&s, err);
    } else
        status = pl_fail(err, PL_E_NOMEM, "no memory to judge the placement of %zu buffers", n);
    pl_free(s.leaf);
    pl_free(s.by_offset);
    return status;
}

pl_status pl_place_validate(const pl_place_problem *problem, const uint64_t *offsets, uint64_t *peak_bytes,
                            pl_error *err)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < problem->buffer_count; i++) {
        const pl_place_buffer *b = &problem->buffers[i];
        PL_TRY(check_one(b, i, offsets[i], err));
        if (b->size && offsets[i] + b->size > peak) peak = offsets[i] + b->size;
    }
    if (problem->buffer_count) PL_TRY(check_pairs(problem, offsets, err));
    if (peak_bytes) *peak_bytes = peak;
    return PL_OK;
}
