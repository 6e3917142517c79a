/* Memory for libraries that call malloc, out of a block of the caller: first fit, neighbours that are free made one.
 * The same requests in the same order get the same places, and a heap that is reset forgets all that it gave. */
#ifndef PL_DATA_PAGES_HEAP_H
#define PL_DATA_PAGES_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_PAGE_HEAP_ALIGN = 16 };

typedef struct pl_page_heap {
    uint8_t *base; /* aligned to 16, as `bytes` is */
    size_t bytes;
    size_t low;        /* no block below is free */
    size_t used, peak; /* bytes of blocks given out, with their headers; reset leaves the peak */
    uint64_t refused;  /* requests for which there was no room */
    uint64_t requests;
    uint64_t refuse_from; /* for tests: this request and all behind it are refused; 0: none */
} pl_page_heap;

void pl_page_heap_init(pl_page_heap *, void *memory, size_t bytes);
void pl_page_heap_reset(pl_page_heap *); /* all blocks are given back; none is refused yet */

/* NULL: no room. `align` is a power of two; zero bytes give a block of their own. */
void *pl_page_heap_alloc(pl_page_heap *, size_t bytes, size_t align);
/* In its place where there is room, else moved (aligned to 16); NULL: no room, and the block stays. */
void *pl_page_heap_resize(pl_page_heap *, void *block, size_t bytes);
void pl_page_heap_free(pl_page_heap *, void *block); /* one of this heap */
bool pl_page_heap_holds(const pl_page_heap *, const void *block);

#endif
