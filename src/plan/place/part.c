/* Sections, conflicts and the lower bound of a part.
 *
 * Bound of a section with alignment: take the items aligned to at least A (any power of two). Each of them covers whole
 * blocks of A bytes that no other one of them touches, so together they need Σ ⌈size⌉_A, except that the topmost one
 * may leave the rest of its last block unused: − max(⌈size⌉_A − size). This holds for each A; A = 1 is the plain sum.
 */
#include "part.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"

/* Above this the lists (4 bytes an entry) would cost more than scanning saves. */
enum { CONFLICTS_MAX = 4 << 20 };

typedef struct ending {
    uint64_t upper;
    uint32_t item;
} ending;

static int compare_endings(const void *left, const void *right)
{
    const ending *a = left, *b = right;
    if (a->upper != b->upper) return a->upper < b->upper ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Sweeps over births and ends; ends come first at equal times, for lives are half-open. A section closes at the first
 * end after a birth. */
static void sweep(place_part *part, const ending *endings)
{
    uint32_t sections = 0;
    bool born = false;
    for (uint32_t birth = 0, end = 0; end < part->count;) {
        if (birth < part->count && part->items[birth].lower < endings[end].upper) {
            part->items[birth++].first = sections;
            born = true;
            continue;
        }
        if (born) part->section_time[sections++] = part->items[birth - 1].lower;
        born = false;
        part->items[endings[end++].item].last = sections;
    }
    part->section_count = sections;
}

static uint32_t forward_end(const place_part *part, uint32_t item)
{
    uint32_t low = item + 1, high = part->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (part->items[middle].first < part->items[item].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Items are sorted by birth: those born during the life of i are the ones right behind it. */
static void count_conflicts(place_part *part)
{
    uint32_t *born = part->scratch; /* difference array: how often an index lies behind an earlier item's life */
    memset(born, 0, ((size_t)part->count + 1) * sizeof *born);
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t end = forward_end(part, i);
        part->degree[i] = end - i - 1;
        born[i + 1]++, born[end]--;
    }
    uint32_t alive = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        alive += born[i];
        part->degree[i] += alive;
    }
}

static int build_rows(place_part *part)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < part->count; i++) total += part->degree[i];
    if (total > CONFLICTS_MAX) return 0;
    part->row_begin = pl_alloc((size_t)part->count + 1, sizeof *part->row_begin);
    part->row = pl_alloc(total, sizeof *part->row);
    if (!part->row_begin || !part->row) return -1;
    for (uint32_t i = 0; i < part->count; i++) part->row_begin[i + 1] = part->row_begin[i] + part->degree[i];
    uint32_t *used = part->scratch;
    memset(used, 0, (size_t)part->count * sizeof *used);
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t end = forward_end(part, i);
        for (uint32_t j = i + 1; j < end; j++) {
            part->row[part->row_begin[i] + used[i]++] = j;
            part->row[part->row_begin[j] + used[j]++] = i;
        }
    }
    return 0;
}

pl_status place_part_link(place_part *part, pl_error *err)
{
    if (part->row || !build_rows(part)) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory for the conflict lists of %u buffers", (unsigned)part->count);
}

const uint32_t *place_part_conflicts(const place_part *part, uint32_t item, uint32_t *count)
{
    *count = part->degree[item];
    if (part->row) return part->row + part->row_begin[item];
    uint32_t n = 0, first = part->items[item].first;
    for (uint32_t j = 0; j < item; j++)
        if (part->items[j].last > first) part->scratch[n++] = j;
    for (uint32_t j = item + 1; n < *count; j++) part->scratch[n++] = j;
    return part->scratch;
}

static void raise_to(uint64_t *value, uint64_t least)
{
    if (*value < least) *value = least;
}

/* For each section the most that one of these items may leave unused, at waste[section_count + section]. The array is a
 * binary tree: an item marks the few nodes that make up its span, then each node hands down what it has. */
static void find_waste(const place_part *part, uint64_t block, uint64_t *waste)
{
    size_t leaves = part->section_count;
    memset(waste, 0, 2 * leaves * sizeof *waste);
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        uint64_t left = pl_align_up(item->size, block) - item->size;
        if (item->alignment < block || !left) continue;
        for (size_t low = leaves + item->first, high = leaves + item->last; low < high; low /= 2, high /= 2) {
            if (low % 2) raise_to(&waste[low++], left);
            if (high % 2) raise_to(&waste[--high], left);
        }
    }
    for (size_t k = 2; k < 2 * leaves; k++) raise_to(&waste[k], waste[k / 2]);
}

/* Adds each item of alignment ≥ `block` to its sections: by difference, so the cost does not grow with the spans. */
static void bound_at_block(place_part *part, uint64_t block, uint64_t *sums, uint64_t *waste)
{
    memset(sums, 0, ((size_t)part->section_count + 1) * sizeof *sums);
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        if (item->alignment < block) continue;
        uint64_t rounded = pl_align_up(item->size, block);
        sums[item->first] += rounded, sums[item->last] -= rounded;
    }
    find_waste(part, block, waste);
    uint64_t alive = 0;
    for (uint32_t s = 0; s < part->section_count; s++) {
        alive += sums[s];
        if (block == 1) part->section_sum[s] = alive;
        uint64_t least = alive - waste[part->section_count + s];
        if (!alive || least <= part->lower_bound) continue;
        part->lower_bound = least;
        part->bound_time = part->section_time[s];
    }
}

static int find_bound(place_part *part)
{
    uint64_t *sums = pl_alloc(3 * (size_t)part->section_count + 1, sizeof *sums), blocks = 1;
    if (!sums) return -1;
    for (uint32_t i = 0; i < part->count; i++) blocks |= part->items[i].alignment;
    for (unsigned bit = 0; bit < 64; bit++)
        if (blocks >> bit & 1) bound_at_block(part, UINT64_C(1) << bit, sums, sums + part->section_count + 1);
    pl_free(sums);
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        if (item->fixed == PL_PLACE_NONE || item->fixed + item->size <= part->lower_bound) continue;
        part->lower_bound = item->fixed + item->size;
        part->bound_time = item->lower;
    }
    return 0;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* In a canonical placement every offset is a sum of sizes, rounded up to alignments, above the floor or a fixed offset.
 */
static uint64_t find_grain(const place_part *part)
{
    uint64_t grain = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        grain = gcd(grain, part->items[i].size);
        if (part->items[i].fixed != PL_PLACE_NONE) grain = gcd(grain, part->items[i].fixed);
    }
    for (uint32_t i = 0; i < part->count; i++)
        if (grain % part->items[i].alignment) grain = gcd(grain, part->items[i].alignment);
    return grain;
}

pl_status place_part_init(place_part *part, place_item *items, uint32_t count, pl_error *err)
{
    *part = (place_part){.items = items, .count = count};
    ending *endings = pl_alloc(count, sizeof *endings);
    part->section_time = pl_alloc(count, sizeof *part->section_time);
    part->section_sum = pl_alloc(count, sizeof *part->section_sum);
    part->degree = pl_alloc(count, sizeof *part->degree);
    part->scratch = pl_alloc((size_t)count + 1, sizeof *part->scratch);
    int refused = !endings || !part->section_time || !part->section_sum || !part->degree || !part->scratch;
    if (!refused) {
        for (uint32_t i = 0; i < count; i++) endings[i] = (ending){items[i].upper, i};
        qsort(endings, count, sizeof *endings, compare_endings);
        sweep(part, endings);
        count_conflicts(part);
        part->grain = find_grain(part);
        part->span = endings[count - 1].upper - items[0].lower;
        refused = find_bound(part);
    }
    pl_free(endings);
    if (!refused) return PL_OK;
    place_part_deinit(part);
    return pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)count);
}

void place_part_deinit(place_part *part)
{
    pl_free(part->row_begin);
    pl_free(part->row);
    pl_free(part->scratch);
    pl_free(part->degree);
    pl_free(part->section_sum);
    pl_free(part->section_time);
    *part = (place_part){0};
}

double place_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool place_run_spend(place_run *run, uint64_t work)
{
    run->work += work;
    if (run->deadline > 0 && run->work >= run->next_look) {
        run->next_look = run->work + 100000;
        if (place_now() >= run->deadline) run->out_of_time = true;
    }
    return run->out_of_time || run->work >= run->work_limit;
}
