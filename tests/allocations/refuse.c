/* The heap of `plimsoll_refused`: the command, linked with an allocator that can be told to refuse. No hook in the
 * product is needed: the program's own malloc wins over the C library's, for the libraries too, and the linker turns
 * every request to a pool (which mostly finds room in a slab it has) into one to this file (--wrap).
 *
 *      PL_REFUSE=planner:12:once     the 12th request after the start of main() is refused
 *      PL_REFUSE=runner:12:forever   and every one after it; in the process that the command becomes by exec
 *      PL_REFUSE=module:12:once      in the planner that began anew, by exec, with the module that it needs, and
 *                                    in what that becomes: their numbers are one row
 *      PL_REFUSE_REPORT=FILE         a line is added there when a process ends, or becomes another one:
 *          target runner requests 120 refused 1 by program+0x1234 left program 0 libyaml 0 … descriptors 0
 *      PL_REFUSE_PATHS=FILE          a line is added there for each request: "runner", its number, and a number that is
 *                                    the same when it comes by the same calls
 *
 * What is "left" was asked for after the start of main() and not given back at exit(), by who asked for it. Requests of
 * libgomp are served always: it says so itself and exits when it gets no memory, nobody else can.
 *
 * In a tree with sanitizers malloc is theirs; there only the product's own requests are refused, by their names, and
 * what is left is LeakSanitizer's to find. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "base/alloc.h"

#define EXPORT __attribute__((visibility("default")))

enum { MODULES_MAX = 32, TABLE_BITS = 16, TABLE = 1 << TABLE_BITS };

/* ---- who asks ---- */

typedef struct module {
    const char *name;
    uintptr_t begin, end;
} module;

static module modules[MODULES_MAX];
static int module_count;

static int note_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    if (module_count == MODULES_MAX) return 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD) continue;
        uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
        if (from < begin) begin = from;
        if (to > end) end = to;
    }
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = module_count == 0 ? "program" : slash ? slash + 1 : info->dlpi_name;
    modules[module_count++] = (module){name, begin, end};
    return 0;
}

static const module *module_of(const void *address)
{
    for (int i = 0; i < module_count; i++)
        if ((uintptr_t)address >= modules[i].begin && (uintptr_t)address < modules[i].end) return &modules[i];
    return NULL;
}

/* ---- refusing ---- */

static atomic_bool armed;
static bool forever, target;

/* Of this process; as soon as it forks, in a page that it shares with its children, which ask on its behalf. */
typedef struct counters {
    atomic_ullong requests, refusals, left_to_serve; /* 0: never refuse */
    const void *refused_first;
} counters;
static counters own, *counted = &own;

static void share(void)
{
    if (counted != &own) return;
    void *page = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) counted = memcpy(page, &own, sizeof own);
}

/* A debugger stops here: `break pl_test_refused`. */
EXPORT __attribute__((noinline)) void pl_test_refused(const void *caller);
void pl_test_refused(const void *caller)
{
    if (atomic_fetch_add(&counted->refusals, 1) == 0) counted->refused_first = caller;
    errno = ENOMEM;
}

/* ---- by which calls ---- */

static int paths_fd = -1;
static const char *process = "planner"; /* or another word of PL_REFUSE */

static _Thread_local bool noting; /* what the unwinder and dprintf ask for themselves is no request of the program */

typedef struct way {
    uint64_t sum;
    int frames;
} way;

enum { FRAMES = 10 }; /* the innermost; two are in this file */

/* Where in its module, which lies elsewhere each time. */
static _Unwind_Reason_Code add_frame(struct _Unwind_Context *frame, void *to)
{
    way *w = to;
    uintptr_t at = (uintptr_t)_Unwind_GetIP(frame);
    const module *m = module_of((const void *)at);
    w->sum = (w->sum ^ (m ? at - m->begin + (uintptr_t)(m - modules) : 0)) * 0x9e3779b97f4a7c15u;
    return ++w->frames == FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void note_path(unsigned long long n)
{
    way w = {0};
    noting = true;
    _Unwind_Backtrace(add_frame, &w);
    dprintf(paths_fd, "%s %llu %#llx\n", process, n, (unsigned long long)w.sum);
    noting = false;
}

static bool is_refused(const void *caller)
{
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || noting) return false;
    const module *m = module_of(caller);
    if (m && strncmp(m->name, "libgomp", 7) == 0) return false;
    unsigned long long n = atomic_fetch_add(&counted->requests, 1) + 1;
    if (paths_fd >= 0) note_path(n);
    unsigned long long left = atomic_load(&counted->left_to_serve);
    if (left == 0) return false;
    if (left > 1) return atomic_store(&counted->left_to_serve, left - 1), false;
    if (!forever) atomic_store(&counted->left_to_serve, 0);
    pl_test_refused(caller);
    return true;
}

/* ---- what is left ---- */

static struct {
    void *block;
    const void *caller;
} live[TABLE];                     /* open addressing; who comes too many is not counted */
#if !defined(__SANITIZE_ADDRESS__) /* there LeakSanitizer finds what is left */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const void *block) { return ((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS); }

static void remember(void *block, const void *caller)
{
    if (!block || !atomic_load_explicit(&armed, memory_order_relaxed)) return;
    pthread_mutex_lock(&live_lock);
    size_t at = place_of(block), tried = 0;
    while (live[at].block && tried++ < TABLE - 1) at = (at + 1) % TABLE;
    if (!live[at].block) live[at].block = block, live[at].caller = caller;
    pthread_mutex_unlock(&live_lock);
}

/* Takes the block out and moves up those behind it that would not be found over the gap. */
static void forget(const void *block)
{
    if (!block || !atomic_load_explicit(&armed, memory_order_relaxed)) return;
    pthread_mutex_lock(&live_lock);
    size_t gap = place_of(block);
    while (live[gap].block && live[gap].block != block) gap = (gap + 1) % TABLE;
    if (live[gap].block) {
        for (size_t next = (gap + 1) % TABLE; live[next].block; next = (next + 1) % TABLE) {
            if ((next - place_of(live[next].block)) % TABLE < (next - gap) % TABLE) continue;
            live[gap] = live[next];
            gap = next;
        }
        live[gap].block = NULL;
    }
    pthread_mutex_unlock(&live_lock);
}
#endif

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int descriptors_before;

static int find_module(const void *address)
{
    const module *m = module_of(address);
    return m ? (int)(m - modules) : MODULES_MAX;
}

static void report(void)
{
    unsigned left[MODULES_MAX + 1] = {0};
    uintptr_t first[MODULES_MAX + 1] = {0};
    atomic_store(&armed, false);
    const char *path = getenv("PL_REFUSE_REPORT");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    for (size_t i = 0; i < TABLE; i++) {
        int m = live[i].block ? find_module(live[i].caller) : -1;
        if (m >= 0 && left[m]++ == 0) first[m] = (uintptr_t)live[i].caller - modules[m % MODULES_MAX].begin;
    }
    const module *who = counted->refused_first ? module_of(counted->refused_first) : NULL;
    dprintf(fd, "%s %s requests %llu refused %llu by %s+%#lx left", target ? "target" : "other", process,
            atomic_load(&counted->requests), atomic_load(&counted->refusals), who ? who->name : "-",
            who ? (uintptr_t)counted->refused_first - who->begin : 0);
    for (int m = 0; m <= module_count; m++) {
        int i = m < module_count ? m : MODULES_MAX;
        if (left[i]) dprintf(fd, " %s+%#lx %u", i < MODULES_MAX ? modules[i].name : "unknown", first[i], left[i]);
    }
    dprintf(fd, " descriptors %d\n", count_descriptors() - 1 - descriptors_before);
    close(fd);
}

static void read_order(void)
{
    const char *order = getenv("PL_REFUSE");
    unsigned long long n;
    char where[16], mode[16];
    if (!order || sscanf(order, "%15[a-z]:%llu:%15[a-z]", where, &n, mode) != 3) return;
    target = strcmp(where, process) == 0;
    forever = strcmp(mode, "forever") == 0;
    if (target) atomic_store(&counted->left_to_serve, n);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    dl_iterate_phdr(note_module, NULL);
    if (argc > 1 && strcmp(argv[1], "__run") == 0)
        process = "runner";
    else if (getenv("PLIMSOLL_INTERNAL_MODULE"))
        process = "module";
    read_order();
    const char *paths = getenv("PL_REFUSE_PATHS");
    if (paths) paths_fd = open(paths, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    descriptors_before = count_descriptors();
    atexit(report);
    pthread_atfork(share, NULL, NULL);
    atomic_store(&armed, true);
}

/* Where a process becomes another one of the same kind, the numbers go on there: what is left of the order stands in
 * the place of the order, as wide as that. */
static void hand_on(char *const envp[], unsigned long long asked)
{
    static const char name[] = "PL_REFUSE=";
    for (; *envp && target; envp++) {
        char *order = *envp + sizeof name - 1, *digits = strchr(*envp, ':');
        char *end = digits ? strchr(digits + 1, ':') : NULL;
        if (strncmp(*envp, name, sizeof name - 1) != 0 || !end) continue;
        const unsigned long long n = strtoull(digits + 1, NULL, 10), left = n > asked ? n - asked : forever ? 1 : ~0ull;
        char text[64];
        snprintf(text, sizeof text, "%.*s:%020llu:%s", (int)(digits - order), order, left, end + 1);
        if (strlen(text) == strlen(order)) strcpy(order, text);
    }
}

/* A process that becomes another one tells so before; what it holds is nobody's fault then. */
EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    unsigned long long asked = atomic_load(&counted->requests), no = atomic_load(&counted->refusals);
    const char *file = getenv("PL_REFUSE_REPORT");
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    const char *role = target ? "target" : "other";
    if (fd >= 0) dprintf(fd, "%s %s requests %llu refused %llu exec\n", role, process, asked, no), close(fd);
    hand_on(envp, asked);
    return (int)syscall(SYS_execve, path, argv, envp);
}

/* ---- the product's pools, and with sanitizers all of its requests ---- */

#define WRAP(type, name, parameters, arguments)                                                                        \
    extern type __real_##name parameters;                                                                              \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return is_refused(__builtin_return_address(0)) ? (type)0 : __real_##name arguments;                            \
    }

WRAP(void *, pl_pool_alloc, (pl_pool * pool, size_t count, size_t size), (pool, count, size))
WRAP(char *, pl_pool_strdup, (pl_pool * pool, const char *text), (pool, text))
WRAP(char *, pl_pool_strndup, (pl_pool * pool, const char *text, size_t bytes), (pool, text, bytes))

#if defined(__SANITIZE_ADDRESS__)
WRAP(void *, pl_alloc, (size_t count, size_t size), (count, size))
WRAP(void *, pl_realloc, (void *block, size_t count, size_t size), (block, count, size))
WRAP(char *, pl_strdup, (const char *text), (text))
WRAP(char *, pl_strndup, (const char *text, size_t bytes), (text, bytes))
WRAP(pl_pool *, pl_pool_create, (void), ())
#else
/* ---- malloc and its kin; glibc exports its own a second time under __libc_ names ---- */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void *served(void *block, const void *caller)
{
    remember(block, caller);
    return block;
}

EXPORT void *malloc(size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    return is_refused(caller) ? NULL : served(__libc_malloc(bytes), caller);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    return is_refused(caller) ? NULL : served(__libc_calloc(n, bytes), caller);
}

EXPORT void *realloc(void *block, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    if (is_refused(caller)) return NULL;
    forget(block);
    return served(__libc_realloc(block, bytes), caller);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    return is_refused(caller) ? NULL : served(__libc_memalign(alignment, bytes), caller);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    return is_refused(caller) ? NULL : served(__libc_memalign(alignment, bytes), caller);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    *block = is_refused(caller) ? NULL : served(__libc_memalign(alignment, bytes), caller);
    return *block ? 0 : ENOMEM;
}

EXPORT void free(void *block)
{
    forget(block);
    __libc_free(block);
}
#endif
