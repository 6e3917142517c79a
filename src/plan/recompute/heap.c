#include "heap.h"

#include <string.h>

#include "base/alloc.h"

int recompute_heap_init(recompute_heap *h, uint32_t most)
{
    h->count = 0;
    h->node = pl_alloc(most, sizeof *h->node);
    h->place = pl_alloc(most, sizeof *h->place);
    if (!h->node || !h->place) return -1;
    memset(h->place, 0xff, most * sizeof *h->place);
    return 0;
}

void recompute_heap_deinit(recompute_heap *h)
{
    pl_free(h->node);
    pl_free(h->place);
    *h = (recompute_heap){0};
}

bool recompute_heap_holds(const recompute_heap *h, uint32_t node) { return h->place[node] != RECOMPUTE_NO_NODE; }

static void set(recompute_heap *h, uint32_t at, uint32_t node)
{
    h->node[at] = node;
    h->place[node] = at;
}

/* The node is put at `at`, or nearer to the top, or farther from it. */
static void settle(recompute_heap *h, uint32_t at, uint32_t node)
{
    for (; at > 0 && h->before(h->owner, node, h->node[(at - 1) / 2]); at = (at - 1) / 2)
        set(h, at, h->node[(at - 1) / 2]);
    for (uint32_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && h->before(h->owner, h->node[child + 1], h->node[child])) child++;
        if (!h->before(h->owner, h->node[child], node)) break;
        set(h, at, h->node[child]);
    }
    set(h, at, node);
}

void recompute_heap_place(recompute_heap *h, uint32_t node)
{
    settle(h, recompute_heap_holds(h, node) ? h->place[node] : h->count++, node);
}

void recompute_heap_remove(recompute_heap *h, uint32_t node)
{
    if (!recompute_heap_holds(h, node)) return;
    uint32_t at = h->place[node], last = h->node[--h->count];
    h->place[node] = RECOMPUTE_NO_NODE;
    if (last != node) settle(h, at, last);
}
