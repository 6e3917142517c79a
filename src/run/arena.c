#include "run/arena.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/process_image.h"
#include "base/procfile.h"
#include "base/size.h"
#include "run/lockdown.h"

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
enum { THP_DISABLE_EXCEPT_ADVISED = 2 }; /* Linux 6.18: PR_THP_DISABLE_EXCEPT_ADVISED */

uint64_t pl_arena_resident_bytes(uint64_t bytes, bool huge_pages)
{
    return pl_align_up(bytes, huge_pages ? PL_HUGE_PAGE_BYTES : PL_PAGE_BYTES);
}

/* AnonHugePages of the mappings in [begin, end). */
static uint64_t count_huge(uintptr_t begin, uintptr_t end)
{
    pl_procfile smaps;
    if (pl_procfile_open(&smaps, "/proc/self/smaps")) return 0;
    uint64_t total = 0, bytes;
    bool inside = false;
    pl_mapping m;
    for (char *line; (line = pl_procfile_line(&smaps));) {
        if (pl_mapping_parse(line, &m))
            inside = m.begin >= begin && m.end <= end;
        else if (inside && pl_procfile_field(line, "AnonHugePages", &bytes))
            total += bytes;
    }
    pl_procfile_close(&smaps);
    return total;
}

/* Huge pages are off for the process (pl_process_prepare). For the time of the first touch they are let in for what
 * asks for them by madvise; where the kernel cannot tell such memory from other (before 6.18) for all, which is safe
 * because prepare has marked every other mapping MADV_NOHUGEPAGE. Afterwards off again: pages obtained stay. */
static int populate_huge(unsigned char *base, uint64_t bytes)
{
    int disabled = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    if (disabled > 0 && prctl(PR_SET_THP_DISABLE, 1, THP_DISABLE_EXCEPT_ADVISED, 0, 0)) {
        (void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    }
    (void)madvise(base, bytes, MADV_HUGEPAGE);
    int result = pl_image_populate((uintptr_t)base, (uintptr_t)base + bytes, true);
    int error = errno;
    if (result == 0 && count_huge((uintptr_t)base, (uintptr_t)base + bytes) < bytes) {
        (void)madvise(base, bytes, MADV_COLLAPSE); /* also where the system says "never"; best effort */
    }
    if (disabled > 0) (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    errno = error;
    return result;
}

static void fill_pattern(const pl_arena *arena)
{
    uint64_t *words = (uint64_t *)(void *)arena->base;
    for (uint64_t i = 0; i < arena->resident_bytes / sizeof *words; i++) words[i] = PL_ARENA_PATTERN;
}

static pl_status refuse(const pl_arena_options *o, uint64_t bytes, pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM,
                   "the arena '%s' of %llu bytes is refused by the system (%s): give a smaller budget, free "
                   "memory or raise the limit (ulimit -v, -d)",
                   o->name, (unsigned long long)bytes, strerror(errno));
}

/* Maps address space with guards and makes the arena in its middle usable; base is NULL until it is. */
static pl_status map_space(pl_arena *a, const pl_arena_options *o, int protection, pl_error *err)
{
    uint64_t alignment = o->huge_pages ? PL_HUGE_PAGE_BYTES : PL_PAGE_BYTES;
    uint64_t slack = alignment + 2 * PL_PAGE_BYTES;
    if (a->resident_bytes < a->bytes || pl_size_add(a->resident_bytes, slack, &a->mapping_bytes) ||
        a->mapping_bytes > (uint64_t)1 << 46) {
        errno = EOVERFLOW;
        return refuse(o, a->bytes, err);
    }
    a->mapping = mmap(NULL, a->mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->mapping == MAP_FAILED) {
        a->mapping = NULL;
        return refuse(o, a->bytes, err);
    }
    a->base = (unsigned char *)(uintptr_t)pl_align_up((uintptr_t)a->mapping + PL_PAGE_BYTES, alignment);
    return mprotect(a->base, a->resident_bytes, protection) ? refuse(o, a->bytes, err) : PL_OK;
}

static pl_status make_resident(pl_arena *a, const pl_arena_options *o, pl_error *err)
{
    uintptr_t begin = (uintptr_t)a->base, end = begin + a->resident_bytes;
    int result = o->huge_pages ? populate_huge(a->base, a->resident_bytes) : pl_image_populate(begin, end, true);
    if (result) return refuse(o, a->bytes, err);
    if (o->huge_pages) a->huge_bytes = count_huge(begin, end);
    fill_pattern(a);
    return PL_OK;
}

static pl_status own(pl_arena *a, pl_memory_kind kind, const pl_arena_options *o, pl_memory_owners *owners,
                     pl_error *err)
{
    if (owners) PL_TRY(pl_memory_owners_add(owners, kind, o->name, a->base, a->resident_bytes, err));
    a->owners = owners;
    return PL_OK;
}

pl_status pl_arena_map(pl_arena *a, uint64_t bytes, const pl_arena_options *o, pl_memory_owners *owners, pl_error *err)
{
    *a = (pl_arena){.bytes = bytes, .resident_bytes = pl_arena_resident_bytes(bytes, o->huge_pages)};
    if (bytes == 0) return PL_OK;
    pl_status status;
    PL_TRY_DONE(map_space(a, o, PROT_READ | PROT_WRITE, err));
    PL_TRY_DONE(make_resident(a, o, err));
    PL_TRY_DONE(own(a, PL_MEMORY_ARENA, o, owners, err));
    return PL_OK;
done:
    pl_arena_unmap(a);
    return status;
}

pl_status pl_arena_reserve(pl_arena *a, uint64_t bytes, const pl_arena_options *o, pl_memory_owners *owners,
                           pl_error *err)
{
    *a = (pl_arena){.bytes = bytes, .resident_bytes = pl_arena_resident_bytes(bytes, false)};
    if (bytes == 0) return PL_OK;
    pl_status status = map_space(a, o, PROT_READ, err);
    if (status == PL_OK) status = own(a, PL_MEMORY_FILES, o, owners, err);
    if (status != PL_OK) pl_arena_unmap(a);
    return status;
}

static bool page_untouched(const unsigned char *page)
{
    const uint64_t *words = (const uint64_t *)(const void *)page;
    for (size_t i = 0; i < PL_PAGE_BYTES / sizeof *words; i++) {
        if (words[i] != PL_ARENA_PATTERN) return false;
    }
    return true;
}

uint64_t pl_arena_untouched_bytes(const pl_arena *a)
{
    uint64_t untouched = 0;
    for (uint64_t at = 0; at < a->resident_bytes && a->base; at += PL_PAGE_BYTES) {
        if (page_untouched(a->base + at)) untouched += PL_PAGE_BYTES;
    }
    return untouched;
}

void pl_arena_unmap(pl_arena *a)
{
    if (!a || !a->mapping) return;
    if (a->owners) pl_memory_owners_remove(a->owners, a->base);
    if (!pl_lockdown_active()) munmap(a->mapping, a->mapping_bytes);
    *a = (pl_arena){0};
}
