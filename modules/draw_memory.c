/* malloc and its kin for the libraries that are loaded with plimsoll-draw.so. It is loaded with RTLD_DEEPBIND, so these
 * libraries find the functions of this file before those of the program: what a page needs comes from the memory of the
 * thread that draws it, and a run asks the system for nothing. Where the program's come first (under sanitizers), only
 * this file's own callers get here, and nobody asks for memory.
 *
 * Compiled with -fno-builtin: a compiler that knows calloc would make one of malloc and memset, within calloc. */
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "draw_memory.h"

#define EXPORTED __attribute__((visibility("default")))
/* For HarfBuzz's and GLib's languages and tables of functions, 23 KB, and a letter at a time that provokes them. */
enum { OWN_BYTES = 128 << 10 };

static _Alignas(64) uint8_t own_block[OWN_BYTES];
static pl_page_heap own;
static atomic_flag own_is_taken = ATOMIC_FLAG_INIT;

/* Not one that a thread makes when it first looks (the dynamic model), for that would ask for memory. */
static _Thread_local pl_page_heap *at_work __attribute__((tls_model("initial-exec")));

static _Thread_local jmp_buf *escape __attribute__((tls_model("initial-exec")));

void pl_draw_set_escape(jmp_buf *to) { escape = to; }

pl_page_heap *pl_draw_use_heap(pl_page_heap *heap)
{
    pl_page_heap *before = at_work;
    at_work = heap;
    return before;
}

static pl_page_heap *take_own(void)
{
    while (atomic_flag_test_and_set_explicit(&own_is_taken, memory_order_acquire)) sched_yield();
    if (!own.base) pl_page_heap_init(&own, own_block, sizeof own_block);
    return &own;
}

static void leave_own(void) { atomic_flag_clear_explicit(&own_is_taken, memory_order_release); }

void pl_draw_own_memory(uint64_t *used, uint64_t *peak, uint64_t *refused)
{
    const pl_page_heap *h = take_own();
    *used = h->used, *peak = h->peak, *refused = h->refused;
    leave_own();
}

static bool is_own(const void *block)
{
    return (uintptr_t)block >= (uintptr_t)own_block && (uintptr_t)block < (uintptr_t)own_block + sizeof own_block;
}

static void *refuse(void)
{
    if (at_work && escape) longjmp(*escape, 1);
    errno = ENOMEM;
    return NULL;
}

static void *request(size_t bytes, size_t align)
{
    void *block;
    if (at_work) {
        block = pl_page_heap_alloc(at_work, bytes, align);
    } else {
        block = pl_page_heap_alloc(take_own(), bytes, align);
        leave_own();
    }
    return block ? block : refuse();
}

/* What the C library gave (asprintf and the like take from the program's malloc) goes back to the program's. */
static void (*program_free)(void *);

__attribute__((constructor)) static void find_program_free(void)
{
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!program) return;
    *(void **)&program_free = dlsym(program, "free");
    dlclose(program);
    if (program_free == free) program_free = NULL;
}

static void give_back_foreign(void *block)
{
    if (program_free) program_free(block);
}

/* ---- what the libraries call ---- */

EXPORTED void *malloc(size_t bytes) { return request(bytes, 0); }

EXPORTED void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) return refuse();
    void *block = request(all, 0);
    return block ? memset(block, 0, all) : NULL;
}

EXPORTED void free(void *block)
{
    if (!block) return;
    if (at_work && pl_page_heap_holds(at_work, block)) {
        pl_page_heap_free(at_work, block);
    } else if (is_own(block)) {
        pl_page_heap_free(take_own(), block);
        leave_own();
    } else {
        give_back_foreign(block);
    }
}

EXPORTED void *realloc(void *block, size_t bytes)
{
    void *moved;
    if (!block) return request(bytes, 0);
    if (bytes == 0) return free(block), NULL;
    if (at_work && pl_page_heap_holds(at_work, block)) {
        moved = pl_page_heap_resize(at_work, block, bytes);
    } else if (is_own(block)) {
        moved = pl_page_heap_resize(take_own(), block, bytes);
        leave_own();
    } else {
        moved = NULL; /* nobody here asks the C library for a block to make it larger */
    }
    return moved ? moved : refuse();
}

EXPORTED int posix_memalign(void **block, size_t align, size_t bytes)
{
    void *got = request(bytes, align);
    if (!got) return ENOMEM;
    *block = got;
    return 0;
}

EXPORTED void *aligned_alloc(size_t align, size_t bytes) { return request(bytes, align); }
EXPORTED void *memalign(size_t align, size_t bytes) { return request(bytes, align); }

EXPORTED char *strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = request(bytes, 0);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* ---- no page depends on it ---- */

/* HarfBuzz would choose its shapers, and FreeType its hinting, by variables, and the language by the locale. */
EXPORTED char *getenv(const char *name) { return (void)name, NULL; }
EXPORTED char *secure_getenv(const char *name) { return (void)name, NULL; }
EXPORTED char *setlocale(int category, const char *locale)
{
    static char plain[] = "C";
    (void)category, (void)locale;
    return plain;
}
