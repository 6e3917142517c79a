#include "data/text/pairs.h"

#include <assert.h>

#include "base/alloc.h"
#include "data/text/tokenizer_impl.h"

/* At most two thirds full. */
static uint32_t slots_for(uint32_t capacity)
{
    uint32_t size = 16;
    while (size < capacity + capacity / 2) size *= 2;
    return size;
}

uint64_t pl_pairs_bytes(uint32_t capacity)
{
    return (uint64_t)capacity * sizeof(pl_pair) + (uint64_t)slots_for(capacity) * sizeof(uint32_t);
}

pl_status pl_pairs_init(pl_pairs *p, uint32_t capacity, pl_error *err)
{
    *p = (pl_pairs){.capacity = capacity, .mask = slots_for(capacity) - 1};
    p->heap = pl_alloc(capacity, sizeof *p->heap);
    p->slots = pl_alloc((size_t)p->mask + 1, sizeof *p->slots);
    if (p->heap && p->slots) return PL_OK;
    pl_pairs_deinit(p);
    return pl_fail(err, PL_E_NOMEM, "no memory for the table of pairs (%llu bytes)",
                   (unsigned long long)pl_pairs_bytes(capacity));
}

void pl_pairs_deinit(pl_pairs *p)
{
    pl_free(p->heap);
    pl_free(p->slots);
    *p = (pl_pairs){0};
}

/* ---- the heap ---- */

static int before(const pl_pair *a, const pl_pair *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static void put(pl_pairs *p, uint32_t place, pl_pair pair)
{
    p->heap[place] = pair;
    p->slots[pair.slot] = place + 1;
}

static void settle(pl_pairs *p, uint32_t place, pl_pair pair)
{
    for (uint32_t up; place > 0 && before(&pair, &p->heap[up = (place - 1) / 2]); place = up)
        put(p, place, p->heap[up]);
    for (uint32_t child; (child = 2 * place + 1) < p->count; place = child) {
        if (child + 1 < p->count && before(&p->heap[child + 1], &p->heap[child])) child++;
        if (!before(&p->heap[child], &pair)) break;
        put(p, place, p->heap[child]);
    }
    put(p, place, pair);
}

/* ---- the table: linear probing; a removal moves later entries back so that no gap breaks a search ---- */

static uint32_t home_of(const pl_pairs *p, uint32_t key) { return (uint32_t)(pl_hash_pair(0, key) >> 20) & p->mask; }

static uint32_t slot_of(const pl_pairs *p, uint32_t key)
{
    uint32_t at = home_of(p, key);
    while (p->slots[at] && p->heap[p->slots[at] - 1].key != key) at = (at + 1) & p->mask;
    return at;
}

static void free_slot(pl_pairs *p, uint32_t gap)
{
    for (uint32_t at = (gap + 1) & p->mask; p->slots[at]; at = (at + 1) & p->mask) {
        pl_pair *pair = &p->heap[p->slots[at] - 1];
        uint32_t home = home_of(p, pair->key);
        if (((at - home) & p->mask) < ((at - gap) & p->mask)) continue; /* its home lies behind the gap */
        p->slots[gap] = p->slots[at];
        pair->slot = gap;
        gap = at;
    }
    p->slots[gap] = 0;
}

static void remove_at(pl_pairs *p, uint32_t slot)
{
    uint32_t place = p->slots[slot] - 1;
    free_slot(p, slot);
    pl_pair last = p->heap[--p->count];
    if (place < p->count) settle(p, place, last);
}

void pl_pairs_add(pl_pairs *p, uint32_t key, uint64_t count)
{
    uint32_t slot = slot_of(p, key), place = p->slots[slot] - 1;
    pl_pair pair = {count, key, slot};
    if (p->slots[slot]) {
        pair.count += p->heap[place].count;
    } else {
        assert(p->count < p->capacity);
        place = p->count++;
    }
    settle(p, place, pair);
}

void pl_pairs_subtract(pl_pairs *p, uint32_t key, uint64_t count)
{
    uint32_t slot = slot_of(p, key);
    if (!p->slots[slot]) return;
    uint32_t place = p->slots[slot] - 1;
    pl_pair pair = p->heap[place];
    assert(pair.count >= count);
    pair.count -= count;
    if (pair.count == 0)
        remove_at(p, slot);
    else
        settle(p, place, pair);
}

void pl_pairs_remove(pl_pairs *p, uint32_t key)
{
    uint32_t slot = slot_of(p, key);
    if (p->slots[slot]) remove_at(p, slot);
}

uint64_t pl_pairs_count_of(const pl_pairs *p, uint32_t key)
{
    uint32_t slot = slot_of(p, key);
    return p->slots[slot] ? p->heap[p->slots[slot] - 1].count : 0;
}

const pl_pair *pl_pairs_top(const pl_pairs *p) { return p->count ? &p->heap[0] : NULL; }
