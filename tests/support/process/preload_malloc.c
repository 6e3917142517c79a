/* LD_PRELOAD: counts calls of the heap from the moment the program says "committed" (run/lockdown.c calls
 * pl_test_committed) until exit() begins, or another program, and names the callers. The report goes to the file that
 * PL_MALLOC_REPORT names, else to stderr:
 *
 *      malloc 1 calloc 0 realloc 0 free 1 other 0
 *      spare 65536 heap 458752
 *      malloc 1 plimsoll+0x1234
 *
 * spare: what the heap's end was never used of, of the whole heap, before and after. Two blocks reach up to its very
 * end without need: the one that makes it as large as it is planned and the text of the plan, which the heap has room
 * for beside all that is read before the text goes (base/process_prepare.c).
 *
 * Its own work needs no heap: glibc exports its allocator a second time under __libc_ names. */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { MALLOC, CALLOC, REALLOC, FREE, OTHER, KINDS, CALLERS_MAX = 64 };
static const char *const kind_names[KINDS] = {"malloc", "calloc", "realloc", "free", "other"};

static atomic_int counting;
static atomic_ullong calls[KINDS];
static struct {
    _Atomic(void *) address;
    atomic_int kind;
    atomic_ullong count;
} callers[CALLERS_MAX];

static _Atomic(uintptr_t) highest;
static _Atomic(uintptr_t) lowest = UINTPTR_MAX;

static void *note_end(void *block)
{
    const uintptr_t begin = (uintptr_t)block, end = begin + (block ? malloc_usable_size(block) : 0);
    enum { SMALLEST_CHUNK = 32, LARGE = 4 << 10 };
    bool grows = end + SMALLEST_CHUNK + sizeof(size_t) >= (uintptr_t)sbrk(0) && end - begin > LARGE;
    if (!block || (grows && !atomic_load_explicit(&counting, memory_order_relaxed))) return block;
    for (uintptr_t seen = highest; end > seen && !atomic_compare_exchange_weak(&highest, &seen, end);) continue;
    for (uintptr_t seen = lowest; begin < seen && !atomic_compare_exchange_weak(&lowest, &seen, begin);) continue;
    return block;
}

static void count(int kind, void *caller)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
    atomic_fetch_add(&calls[kind], 1);
    for (int i = 0; i < CALLERS_MAX; i++) {
        void *seen = NULL;
        if (atomic_compare_exchange_strong(&callers[i].address, &seen, caller))
            atomic_store(&callers[i].kind, kind);
        else if (seen != caller)
            continue;
        atomic_fetch_add(&callers[i].count, 1);
        return;
    }
}

EXPORT void *malloc(size_t bytes)
{
    count(MALLOC, __builtin_return_address(0));
    return note_end(__libc_malloc(bytes));
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    count(CALLOC, __builtin_return_address(0));
    return note_end(__libc_calloc(n, bytes));
}

EXPORT void *realloc(void *block, size_t bytes)
{
    count(REALLOC, __builtin_return_address(0));
    return note_end(__libc_realloc(block, bytes));
}

EXPORT void free(void *block)
{
    if (block) count(FREE, __builtin_return_address(0));
    __libc_free(block);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    count(OTHER, __builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    count(OTHER, __builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    count(OTHER, __builtin_return_address(0));
    *block = __libc_memalign(alignment, bytes);
    return *block ? 0 : 12;
}

static void report(void)
{
    atomic_store(&counting, 0);
    const char *path = getenv("PL_MALLOC_REPORT");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : STDERR_FILENO;
    if (fd < 0) return;
    for (int k = 0; k < KINDS; k++)
        dprintf(fd, "%s %llu%c", kind_names[k], atomic_load(&calls[k]), k == KINDS - 1 ? '\n' : ' ');
    dprintf(fd, "spare %llu heap %llu\n", (unsigned long long)((uintptr_t)sbrk(0) - highest),
            (unsigned long long)((uintptr_t)sbrk(0) - lowest));
    for (int i = 0; i < CALLERS_MAX && atomic_load(&callers[i].address); i++) {
        char *address = atomic_load(&callers[i].address);
        Dl_info info;
        int known = dladdr(address, &info) && info.dli_fname;
        const char *slash = known ? strrchr(info.dli_fname, '/') : NULL;
        dprintf(fd, "%s %llu %s+%#lx %s\n", kind_names[atomic_load(&callers[i].kind)], atomic_load(&callers[i].count),
                slash   ? slash + 1
                : known ? info.dli_fname
                        : "?",
                (unsigned long)(known ? (uintptr_t)address - (uintptr_t)info.dli_fbase : (uintptr_t)address),
                known && info.dli_sname ? info.dli_sname : "");
    }
    if (path) close(fd);
}

/* atexit handlers run in reverse order, so this one comes before libraries give their memory back. */
EXPORT void pl_test_committed(void);
void pl_test_committed(void)
{
    atexit(report);
    atomic_store(&counting, 1);
}

/* A run whose results are told by another program (cli/page.c) ends here. */
EXPORT int execv(const char *path, char *const words[])
{
    if (atomic_exchange(&counting, 0)) report();
    return execve(path, words, environ);
}
