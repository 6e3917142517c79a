/* Each block begins with its size, so that what is held is known without asking malloc, whose own figures depend on
 * what was asked for and given back before: blocks that it keeps in reserve, remainders too small to split off. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct block_header {
    _Alignas(max_align_t) size_t bytes;
    bool counted; /* by a meter */
} block_header;

_Static_assert(sizeof(block_header) == PL_ALLOC_HEADER_BYTES, "a block stays aligned");

static atomic_uint_fast64_t live_blocks, live_bytes, requests;
static atomic_uint_fast64_t fail_countdown;
static atomic_int fail_forever, sealed;
static void (*refusal_listener)(uint64_t bytes); /* set while there is one thread */
static _Thread_local pl_alloc_meter *meter;

static int refused(void)
{
    atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed);
    if (atomic_load_explicit(&sealed, memory_order_relaxed)) return 1;
    uint_fast64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    if (left == 0) return 0;
    if (left > 1) {
        atomic_store_explicit(&fail_countdown, left - 1, memory_order_relaxed);
        return 0;
    }
    if (!atomic_load_explicit(&fail_forever, memory_order_relaxed)) atomic_store(&fail_countdown, 0);
    return 1;
}

void pl_alloc_fail_at(uint64_t n, int forever)
{
    atomic_store(&fail_countdown, n);
    atomic_store(&fail_forever, forever);
}

uint64_t pl_alloc_live_blocks(void) { return atomic_load(&live_blocks); }
uint64_t pl_alloc_live_bytes(void) { return atomic_load(&live_bytes); }
uint64_t pl_alloc_request_count(void) { return atomic_load(&requests); }
void pl_alloc_seal(int on) { atomic_store(&sealed, on); }
void pl_alloc_tell_refusals(void (*listener)(uint64_t bytes)) { refusal_listener = listener; }

void pl_alloc_note_refusal(uint64_t bytes)
{
    if (refusal_listener) refusal_listener(bytes);
}

/* glibc's chunks: a word before the block, multiples of 16, 32 at least. */
static uint64_t chunk_of(uint64_t bytes)
{
    enum { WORD = 8, CHUNK_MIN = 32 };
    uint64_t chunk = (bytes + WORD + 15) & ~(uint64_t)15;
    return chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
}

uint64_t pl_alloc_block_bytes(size_t bytes) { return chunk_of((uint64_t)bytes + sizeof(block_header)); }

/* ---- the meter ---- */

pl_alloc_meter *pl_alloc_set_meter(pl_alloc_meter *m)
{
    pl_alloc_meter *before = meter;
    meter = m;
    return before;
}

bool pl_alloc_count_taken(uint64_t bytes)
{
    if (!meter) return false;
    meter->held_bytes += chunk_of(bytes);
    if (meter->held_bytes > meter->peak_bytes) meter->peak_bytes = meter->held_bytes;
    return true;
}

void pl_alloc_count_given(uint64_t bytes, bool counted)
{
    if (meter && counted) meter->held_bytes -= chunk_of(bytes);
}

/* ---- blocks ---- */

static void *resize_block(block_header *old, size_t bytes)
{
    size_t whole, before = old ? old->bytes : 0;
    const bool was_counted = old && old->counted;
    if (__builtin_add_overflow(bytes, sizeof *old, &whole)) return NULL;
    block_header *h = old ? realloc(old, whole) : calloc(1, whole);
    if (!h) return pl_alloc_note_refusal(bytes), NULL;
    h->bytes = bytes;
    h->counted = pl_alloc_count_taken(whole);
    pl_alloc_count_given(before + sizeof *h, was_counted);
    atomic_fetch_add_explicit(&live_bytes, pl_alloc_block_bytes(bytes) - (old ? pl_alloc_block_bytes(before) : 0),
                              memory_order_relaxed);
    return h + 1;
}

static void *take_block(size_t bytes)
{
    void *block = resize_block(NULL, bytes);
    if (block) atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return block;
}

void *pl_alloc(size_t count, size_t size)
{
    size_t bytes;
    return refused() || __builtin_mul_overflow(count, size, &bytes) ? NULL : take_block(bytes);
}

void *pl_realloc(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (!block) return pl_alloc(count, size);
    if (refused() || __builtin_mul_overflow(count, size, &bytes)) return NULL;
    return resize_block((block_header *)block - 1, bytes);
}

char *pl_strndup(const char *text, size_t bytes)
{
    char *copy = bytes == SIZE_MAX ? NULL : pl_alloc(bytes + 1, 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

char *pl_strdup(const char *text) { return pl_strndup(text, strlen(text)); }

void pl_free(void *block)
{
    if (!block) return;
    block_header *h = (block_header *)block - 1;
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_bytes, pl_alloc_block_bytes(h->bytes), memory_order_relaxed);
    pl_alloc_count_given(h->bytes + sizeof *h, h->counted);
    free(h);
}

int pl_grow(void *array_pointer, size_t *capacity, size_t count, size_t elem_bytes)
{
    if (count < *capacity) return 0;
    return pl_reserve(array_pointer, capacity, *capacity ? *capacity * 2 : 16, elem_bytes);
}

int pl_reserve(void *array_pointer, size_t *capacity, size_t wanted, size_t elem_bytes)
{
    void **array = array_pointer;
    if (wanted <= *capacity) return 0;
    void *bigger = pl_realloc(*array, wanted, elem_bytes);
    if (!bigger) return -1;
    memset((char *)bigger + *capacity * elem_bytes, 0, (wanted - *capacity) * elem_bytes);
    *array = bigger;
    *capacity = wanted;
    return 0;
}

/* ---- pools: a list of slabs, each at least twice the one before up to 256 kB ---- */

typedef struct slab {
    struct slab *next;
    size_t used, bytes;
} slab;

struct pl_pool {
    slab *head;
    size_t held;
};

enum { SLAB_MIN = 4096, SLAB_MAX = 256 * 1024, SLAB_HEADER = (sizeof(slab) + 15) & ~15 };

pl_pool *pl_pool_create(void) { return pl_alloc(1, sizeof(pl_pool)); }

void *pl_pool_alloc(pl_pool *pool, size_t count, size_t size)
{
    size_t bytes;
    if (refused() || __builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!pool->head || pool->head->bytes - pool->head->used < bytes) {
        size_t room = pool->head ? pool->head->bytes * 2 : SLAB_MIN;
        if (room > SLAB_MAX) room = SLAB_MAX;
        if (room < bytes) room = bytes;
        slab *fresh = take_block(SLAB_HEADER + room);
        if (!fresh) return NULL;
        fresh->next = pool->head;
        fresh->bytes = room;
        pool->head = fresh;
        pool->held += SLAB_HEADER + room;
    }
    void *block = (char *)pool->head + SLAB_HEADER + pool->head->used;
    pool->head->used += bytes;
    return block;
}

char *pl_pool_strndup(pl_pool *pool, const char *text, size_t bytes)
{
    char *copy = bytes == SIZE_MAX ? NULL : pl_pool_alloc(pool, bytes + 1, 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

char *pl_pool_strdup(pl_pool *pool, const char *text) { return pl_pool_strndup(pool, text, strlen(text)); }
size_t pl_pool_bytes(const pl_pool *pool) { return pool->held; }

void pl_pool_destroy(pl_pool *pool)
{
    if (!pool) return;
    for (slab *s = pool->head, *next; s; s = next) {
        next = s->next;
        pl_free(s);
    }
    pl_free(pool);
}
