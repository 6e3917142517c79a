/* The one door to the heap. Nothing else in src/ calls malloc, calloc, realloc or strdup, so that (1) tests can make
 * the n-th request fail and count what is not given back, and (2) "no memory after committed" can be enforced in one
 * place.
 *
 * Two kinds of memory: single blocks (pl_alloc … pl_free) and pools, which only grow and are given back in one call. */
#ifndef PL_BASE_ALLOC_H
#define PL_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-filled block of `count` × `size` bytes; NULL when refused or when the product overflows. Zero bytes give a valid
 * unique block. */
void *pl_alloc(size_t count, size_t size);

/* Grows or shrinks to `count` × `size` bytes; NULL when refused (the old block stays valid). New bytes are not
 * zeroed. */
void *pl_realloc(void *block, size_t count, size_t size);
char *pl_strdup(const char *text);
char *pl_strndup(const char *text, size_t bytes);
void pl_free(void *block); /* NULL is fine */

/* For the tests: the n-th request from now on (1 = the next) fails; with forever, every one after it too. 0 = off. A
 * request to a pool is one, whether or not it finds room there: the caller must be ready for a refusal. */
void pl_alloc_fail_at(uint64_t n, int forever);
uint64_t pl_alloc_live_blocks(void);   /* blocks handed out and not yet given back */
uint64_t pl_alloc_request_count(void); /* requests since start */

/* Bytes that the blocks handed out take from the heap, counted by the requests alone: the same requests give the same
 * figure, whatever the heap went through before. */
uint64_t pl_alloc_live_bytes(void);
enum { PL_ALLOC_HEADER_BYTES = 16 }; /* before each block: its size */

/* What a block of so many bytes takes of them. */
uint64_t pl_alloc_block_bytes(size_t bytes);

/* What the requests of one thread would take of a heap of their own: for a rehearsal of what another process will ask
 * for. A block that is resized is there twice for a moment. Blocks that were counted are given back under the same
 * meter, or under none. */
typedef struct pl_alloc_meter {
    uint64_t held_bytes, peak_bytes;
} pl_alloc_meter;

/* From now on this thread's requests are counted; NULL: no longer. Returns the meter before. */
pl_alloc_meter *pl_alloc_set_meter(pl_alloc_meter *);
/* For a library's own requests: `bytes` as malloc is asked for them. Nothing without a meter, and then false. */
bool pl_alloc_count_taken(uint64_t bytes);
void pl_alloc_count_given(uint64_t bytes, bool counted);

/* Told the bytes of each request that the system refuses (not those that a test or the seal does); NULL: nobody. */
void pl_alloc_tell_refusals(void (*listener)(uint64_t bytes));
/* The same of a library's own request, told by who called it. */
void pl_alloc_note_refusal(uint64_t bytes);

/* After seal, every request fails (and is counted): set at "committed". */
void pl_alloc_seal(int sealed);

typedef struct pl_pool pl_pool;
pl_pool *pl_pool_create(void);                             /* NULL when refused */
void *pl_pool_alloc(pl_pool *, size_t count, size_t size); /* zero-filled, aligned to 16; NULL when refused */
char *pl_pool_strdup(pl_pool *, const char *text);
char *pl_pool_strndup(pl_pool *, const char *text, size_t bytes);
size_t pl_pool_bytes(const pl_pool *); /* bytes the pool holds from the heap */
void pl_pool_destroy(pl_pool *);

/* Growable array idiom: makes room for one more element of *array, doubling. Returns 0 on success, -1 when refused.
 *   if (pl_grow(&items, &item_capacity, item_count, sizeof *items)) return pl_fail(err, PL_E_NOMEM, …);  */
int pl_grow(void *array_pointer, size_t *capacity, size_t count, size_t elem_bytes);
/* Room for so many elements, asked for once: where the count is known, growing would leave holes in the heap. */
int pl_reserve(void *array_pointer, size_t *capacity, size_t wanted, size_t elem_bytes);

#endif
