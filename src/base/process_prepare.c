/* Makes the plan of process_plan.c true. The order matters: first what keeps the kernel and malloc from taking more
 * than they are given (huge pages, arenas, trimming), then the heap at its final size, then every page resident, last
 * the main stack, so that nothing done here lies outside of what it prepares. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/process_image.h"
#include "base/procfile.h"
#include "base/size.h"

/* The kernel keeps at least this much address space below the top of the main stack free of other mappings. */
enum { MAIN_STACK_GAP_BYTES = 64 << 20, MPOL_LOCAL_POLICY = 4 };

/* Pages that move between memory nodes are unmapped first to see who uses them: faults in mid-run. A task with a policy
 * of its own is left alone, and "local" is what the default does anyway. Refusal (sandbox, one node) is no loss. */
static void stop_page_sampling(void) { (void)syscall(SYS_set_mempolicy, MPOL_LOCAL_POLICY, NULL, 0ul); }

/* The kernel's clock pages cannot be populated (they are not memory) and do not count as resident, but their first use
 * is a fault. Reading them blindly could hit one that this machine lacks, so the clocks are asked. */
static void touch_clocks(void)
{
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE,
                                       CLOCK_BOOTTIME};
    struct timespec t;
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) (void)clock_gettime(clocks[i], &t);
    (void)sched_getcpu();
}

static pl_status stop_huge_pages(pl_error *err)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0 || errno == EINVAL) return PL_OK; /* EINVAL: a kernel without them */
    return pl_fail(
        err, PL_E_UNSUPPORTED,
        "transparent huge pages cannot be switched off for this process (%s), so its memory could grow later",
        strerror(errno));
}

static void pin_malloc(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0); /* no block outside of the heap */
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_TOP_PAD, 0);
    mallopt(M_MXFAST, 0); /* what is given back joins its neighbours: see add_malloc in process_exec.c */
}

enum { HEADER = 8, SMALLEST_CHUNK = 32 }; /* malloc's own */

/* Grows the heap to [begin, begin + heap_bytes) by one request that ends exactly there: sysmalloc extends the top chunk
 * by request + minimum chunk − old top, rounded up to pages. Gives *begin; *begin = 0 when malloc is not glibc's (a
 * sanitizer, valgrind, a preloaded allocator): then nothing can be fixed and the measurement shows what it holds. */
static pl_status grow_heap(uint64_t heap_bytes, uintptr_t *begin, pl_error *err)
{
    *begin = 0;
    void *first = pl_alloc(1, 1); /* makes sure that there is a heap */
    if (!first) return pl_fail(err, PL_E_NOMEM, "no memory for a heap of %llu bytes", (unsigned long long)heap_bytes);
    pl_free(first);
    struct mallinfo2 info = mallinfo2();
    uintptr_t end = (uintptr_t)sbrk(0);
    if (info.arena == 0 || info.arena > end) return PL_OK;
    uintptr_t start = (end - info.arena) & ~(uintptr_t)(PL_PAGE_BYTES - 1);
    if (end - start > heap_bytes) {
        return pl_fail(err, PL_E_USAGE, "the heap already holds %llu bytes, %llu are planned: plan a larger heap",
                       (unsigned long long)(end - start), (unsigned long long)heap_bytes);
    }
    uint64_t missing = heap_bytes - (end - start);
    if (missing > 0) {
        void *block = pl_alloc(1, missing + info.keepcost - SMALLEST_CHUNK - HEADER - PL_ALLOC_HEADER_BYTES);
        if (!block) {
            return pl_fail(err, PL_E_NOMEM, "no memory: the heap cannot grow to %llu bytes",
                           (unsigned long long)heap_bytes);
        }
        pl_free(block);
    }
    if ((uintptr_t)sbrk(0) != start + heap_bytes) {
        return pl_fail(err, PL_E_INTERNAL, "the heap is %llu bytes where %llu are planned",
                       (unsigned long long)((uintptr_t)sbrk(0) - start), (unsigned long long)heap_bytes);
    }
    *begin = start;
    return PL_OK;
}

static bool heap_is_fixed; /* grow_heap knows where it ends */

void *pl_process_take_below(size_t bytes)
{
    if (!heap_is_fixed || bytes > SIZE_MAX / 2) return NULL;
    const size_t rest = mallinfo2().keepcost, before = HEADER + PL_ALLOC_HEADER_BYTES;
    const size_t above = (bytes + before + 15) / 16 * 16 + SMALLEST_CHUNK;
    return rest > above + before ? pl_alloc(1, rest - above - before) : NULL;
}

static pl_status register_image(const pl_image *image, pl_memory_owners *owners, pl_error *err)
{
    for (size_t i = 0; i < image->module_count; i++) {
        const pl_image_module *m = &image->module[i];
        PL_TRY(pl_memory_owners_add(owners, m->kind, m->name, (void *)m->begin, m->end - m->begin, err));
    }
    for (size_t i = 0; i < image->loader_count; i++) {
        uintptr_t begin = image->loader[i].begin;
        PL_TRY(
            pl_memory_owners_add(owners, PL_MEMORY_LOADER, "loader", (void *)begin, image->loader[i].end - begin, err));
    }
    uintptr_t stack = image->stack_end - MAIN_STACK_GAP_BYTES;
    return pl_memory_owners_add(owners, PL_MEMORY_MAIN_STACK, "main stack", (void *)stack, MAIN_STACK_GAP_BYTES, err);
}

/* The part of [m->begin, m->end) that belongs to a registered range. */
static bool overlap(const pl_mapping *m, const pl_memory_range *range, uintptr_t *begin, uintptr_t *end)
{
    *begin = m->begin > range->begin ? m->begin : range->begin;
    *end = m->end < range->end ? m->end : range->end;
    return *begin < *end;
}

static pl_status populate_mapping(const pl_mapping *m, const pl_memory_owners *owners, const pl_left_out *out,
                                  pl_error *err)
{
    if (m->protection[0] != 'r') return PL_OK;
    (void)madvise((void *)m->begin, m->end - m->begin, MADV_NOHUGEPAGE); /* second line behind prctl; vdso refuses it */
    for (size_t i = 0; i < owners->count; i++) {
        const pl_memory_range *range = &owners->range[i];
        uintptr_t begin, end;
        if (range->kind == PL_MEMORY_MAIN_STACK || range->kind == PL_MEMORY_ARENA || !overlap(m, range, &begin, &end))
            continue;
        for (uintptr_t all = end; pl_image_next_held(out, &begin, &end); begin = end, end = all) {
            if (pl_image_populate(begin, end, m->protection[1] == 'w') == 0) continue;
            return pl_fail(err, PL_E_NOMEM, "%lu bytes of %s '%s' cannot be made resident: %s",
                           (unsigned long)(end - begin), pl_memory_kind_name(range->kind), range->name,
                           strerror(errno));
        }
    }
    return PL_OK;
}

static pl_status populate_all(const pl_memory_owners *owners, const pl_left_out *out, pl_error *err)
{
    pl_procfile maps;
    if (pl_procfile_open(&maps, "/proc/self/maps")) {
        return pl_fail(err, PL_E_UNSUPPORTED, "/proc/self/maps cannot be read: %s", strerror(errno));
    }
    pl_status status = PL_OK;
    pl_mapping m;
    for (char *line; status == PL_OK && (line = pl_procfile_line(&maps));) {
        if (pl_mapping_parse(line, &m)) status = populate_mapping(&m, owners, out, err);
    }
    pl_procfile_close(&maps);
    if (maps.error) return pl_fail(err, PL_E_UNSUPPORTED, "/proc/self/maps cannot be read: %s", strerror(maps.error));
    return status;
}

/* Takes the stack down to `lowest` by a frame that ends in its page; the kernel grows the mapping at the first touch.
 */
static __attribute__((noinline)) void descend_stack(uintptr_t lowest)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    enum { OWN_FRAME = 1024 };
    volatile unsigned char frame[here - lowest - OWN_FRAME];
    uintptr_t bottom = (uintptr_t)frame;
    for (uintptr_t page = here - OWN_FRAME; page > bottom; page -= PL_PAGE_BYTES) frame[page - bottom] = 0;
    frame[0] = 0;
}

static pl_status prepare_main_stack(uintptr_t stack_end, uint64_t bytes, pl_error *err)
{
    uintptr_t lowest = stack_end - bytes;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes) {
        return pl_fail(err, PL_E_USAGE,
                       "the main stack may have %llu bytes, %llu are planned: raise the limit (ulimit -s)",
                       (unsigned long long)limit.rlim_cur, (unsigned long long)bytes);
    }
    if (here < lowest || here - lowest < bytes / 4) {
        return pl_fail(err, PL_E_USAGE,
                       "arguments and environment take %llu of the %llu bytes of the main stack: shorten them or plan "
                       "a larger one",
                       (unsigned long long)(stack_end - here), (unsigned long long)bytes);
    }
    descend_stack(lowest);
    uintptr_t page = here & ~(uintptr_t)(PL_PAGE_BYTES - 1);
    if (pl_image_populate(page, stack_end, true)) {
        return pl_fail(err, PL_E_NOMEM, "%llu bytes of main stack cannot be made resident: %s",
                       (unsigned long long)bytes, strerror(errno));
    }
    return PL_OK;
}

static pl_status set_thread_stack_size(uint64_t bytes, pl_error *err)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        error = pthread_attr_setstacksize(&attributes, bytes);
        if (error == 0) error = pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
    }
    if (error == 0) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "threads cannot have stacks of %llu bytes: %s", (unsigned long long)bytes,
                   strerror(error));
}

static pl_left_out left_out; /* of this process */

void pl_process_forbid_left_out(void)
{
    for (size_t i = 0; i < left_out.count; i++)
        (void)mprotect((void *)left_out.range[i].begin, left_out.range[i].end - left_out.range[i].begin, PROT_NONE);
}

/* Under a tight limit from the start, so that making pages resident stays inside of it; else the disk may read ahead
 * for that, and not later, should the kernel ever drop one. */
static pl_status populate_image(const pl_image *image, const pl_memory_owners *owners, pl_parts held, pl_error *err)
{
    static pl_machine machine;
    left_out.count = pl_parts_left_out(held, left_out.range);
    pl_image_leave_out(&left_out);
    PL_TRY(pl_machine_read("", &machine, err));
    if (pl_machine_is_tight(&machine)) pl_image_stop_read_ahead(image);
    PL_TRY(populate_all(owners, &left_out, err));
    pl_image_stop_read_ahead(image);
    pl_image_hold(image, &left_out);
    return PL_OK;
}

pl_status pl_process_prepare(const pl_process_options *options, pl_memory_owners *owners, pl_error *err)
{
    static pl_image image; /* 8 kB that the stack need not have; prepare runs once */
    PL_TRY(pl_process_check_options(options, err));
    PL_TRY(pl_image_read(&image, err));
    stop_page_sampling();
    PL_TRY(stop_huge_pages(err));
    PL_TRY(set_thread_stack_size(options->thread_stack_reserved_bytes, err));
    pin_malloc();
    uintptr_t heap;
    PL_TRY(grow_heap(options->heap_bytes, &heap, err));
    heap_is_fixed = heap != 0;
    if (heap) PL_TRY(pl_memory_owners_add(owners, PL_MEMORY_HEAP, "heap", (void *)heap, options->heap_bytes, err));
    PL_TRY(register_image(&image, owners, err));
    PL_TRY(populate_image(&image, owners, options->parts, err));
    touch_clocks();
    return prepare_main_stack(image.stack_end, options->main_stack_bytes, err);
}
