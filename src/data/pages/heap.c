/* Blocks lie one behind the other, each with a header of 16 bytes: its size (with the header; the lowest bit says that
 * it is given out) and that of the block before it. */
#include <string.h>

#include "data/pages/heap.h"

typedef struct header {
    size_t size, before;
} header;
enum { HEADER = sizeof(header), USED = 1 };
_Static_assert(sizeof(header) == PL_PAGE_HEAP_ALIGN, "a block behind a header is aligned");

static header *at(const pl_page_heap *h, size_t offset) { return (header *)(void *)(h->base + offset); }
static size_t size_of(const header *b) { return b->size & ~(size_t)USED; }
static bool is_used(const header *b) { return b->size & USED; }
static size_t offset_of(const pl_page_heap *h, const header *b) { return (size_t)((const uint8_t *)b - h->base); }
static header *of_block(void *block) { return (header *)(void *)((uint8_t *)block - HEADER); }

void pl_page_heap_init(pl_page_heap *h, void *memory, size_t bytes)
{
    const size_t skip = -(uintptr_t)memory % PL_PAGE_HEAP_ALIGN;
    *h = (pl_page_heap){.base = (uint8_t *)memory + skip,
                        .bytes = bytes < skip ? 0 : (bytes - skip) / PL_PAGE_HEAP_ALIGN * PL_PAGE_HEAP_ALIGN};
    if (h->bytes < 2 * HEADER) h->bytes = 0;
    pl_page_heap_reset(h);
}

void pl_page_heap_reset(pl_page_heap *h)
{
    h->low = h->used = 0, h->refused = h->requests = 0;
    if (h->bytes > 0) *at(h, 0) = (header){h->bytes, 0};
}

/* Sets a block's size and tells it to the one behind. */
static void set_size(pl_page_heap *h, header *b, size_t size, size_t used)
{
    const size_t behind = offset_of(h, b) + size;
    b->size = size | used;
    if (behind < h->bytes) at(h, behind)->before = size;
}

/* Makes two blocks of one, of which the second is free. */
static void split(pl_page_heap *h, header *b, size_t size, size_t used)
{
    const size_t rest = size_of(b) - size;
    if (rest == 0) return;
    set_size(h, b, size, used);
    header *second = at(h, offset_of(h, b) + size);
    second->before = size;
    set_size(h, second, rest, 0);
}

/* Joins a free block with the one behind it, if that is free, too. */
static void join(pl_page_heap *h, header *b)
{
    const size_t behind = offset_of(h, b) + size_of(b);
    if (behind < h->bytes && !is_used(at(h, behind))) set_size(h, b, size_of(b) + size_of(at(h, behind)), 0);
}

/* How far into the free block a block of this alignment begins: 0, or room for a free one before it. */
static size_t lead_of(const header *b, size_t align)
{
    size_t lead = -((uintptr_t)b + HEADER) % align;
    return lead == 0 ? 0 : lead < 2 * HEADER ? lead + (align > 2 * HEADER ? align : 2 * HEADER) : lead;
}

static void *give(pl_page_heap *h, header *b, size_t size)
{
    if (size_of(b) - size >= 2 * HEADER) split(h, b, size, USED);
    b->size |= USED;
    h->used += size_of(b);
    if (h->used > h->peak) h->peak = h->used;
    if (offset_of(h, b) == h->low) h->low += size_of(b);
    return b + 1;
}

void *pl_page_heap_alloc(pl_page_heap *h, size_t bytes, size_t align)
{
    if (align < PL_PAGE_HEAP_ALIGN) align = PL_PAGE_HEAP_ALIGN;
    const size_t size = bytes == 0 ? 2 * HEADER : HEADER + ((bytes + HEADER - 1) & ~(size_t)(HEADER - 1));
    const bool may = bytes <= h->bytes && !(++h->requests >= h->refuse_from && h->refuse_from);
    for (size_t o = h->low; may && o < h->bytes; o += size_of(at(h, o))) {
        header *b = at(h, o);
        if (is_used(b)) {
            if (o == h->low) h->low += size_of(b);
            continue;
        }
        const size_t lead = lead_of(b, align);
        if (size_of(b) < size || size_of(b) - size < lead) continue;
        if (lead > 0) split(h, b, lead, 0), b = at(h, o + lead);
        return give(h, b, size);
    }
    h->refused++;
    return NULL;
}

void pl_page_heap_free(pl_page_heap *h, void *block)
{
    header *b = of_block(block);
    h->used -= size_of(b);
    b->size = size_of(b);
    join(h, b);
    if (offset_of(h, b) > 0) {
        header *before = at(h, offset_of(h, b) - b->before);
        if (!is_used(before)) join(h, before), b = before;
    }
    if (offset_of(h, b) < h->low) h->low = offset_of(h, b);
}

/* The block behind is free and large enough: taken in. */
static bool grow_in_place(pl_page_heap *h, header *b, size_t bytes)
{
    const size_t behind = offset_of(h, b) + size_of(b), old = size_of(b);
    if (behind >= h->bytes || is_used(at(h, behind)) || old + size_of(at(h, behind)) < HEADER + bytes) return false;
    set_size(h, b, old + size_of(at(h, behind)), 0);
    h->used -= old;
    give(h, b, HEADER + ((bytes + HEADER - 1) & ~(size_t)(HEADER - 1)));
    if (h->low == behind) h->low = offset_of(h, b) + size_of(b);
    return true;
}

void *pl_page_heap_resize(pl_page_heap *h, void *block, size_t bytes)
{
    header *b = of_block(block);
    if (bytes > h->bytes) return h->refused++, NULL;
    if (size_of(b) - HEADER >= bytes || grow_in_place(h, b, bytes)) return block;
    void *moved = pl_page_heap_alloc(h, bytes, PL_PAGE_HEAP_ALIGN);
    if (!moved) return NULL;
    memcpy(moved, block, size_of(b) - HEADER);
    pl_page_heap_free(h, block);
    return moved;
}

bool pl_page_heap_holds(const pl_page_heap *h, const void *block)
{
    return (uintptr_t)block >= (uintptr_t)h->base && (uintptr_t)block < (uintptr_t)h->base + h->bytes;
}
