/* What the process holds, mapping by mapping, from /proc/self/smaps. A mapping that has one owner goes to its row as
 * the kernel counts it; one that the kernel merged from several owners' memory is divided page by page with
 * /proc/self/pagemap; what no row owns is listed with its address. No heap, no memory calls, fixed buffers: usable
 * after "committed". */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/process.h"
#include "base/smaps.h"

typedef struct measurement {
    const pl_memory_owners *owners;
    pl_memory_measured *out;
    uintptr_t heap_end;
    int pagemap; /* -1 when it cannot be opened */
} measurement;

/* The heap may have grown beyond its plan; then its row must show it. */
static uintptr_t end_of(const measurement *m, const pl_memory_range *range)
{
    return range->kind == PL_MEMORY_HEAP && m->heap_end > range->end ? m->heap_end : range->end;
}

/* The first range that ends after `address`. */
static size_t find_range(const measurement *m, uintptr_t address)
{
    size_t low = 0, high = m->owners->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (end_of(m, &m->owners->range[middle]) > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static pl_memory_row *row_of(pl_memory_measured *out, const pl_memory_range *range)
{
    for (size_t i = 0; i < out->row_count; i++) {
        if (out->row[i].kind == range->kind && strcmp(out->row[i].name, range->name) == 0) return &out->row[i];
    }
    if (out->row_count == PL_MEMORY_ROWS_MAX) return NULL;
    pl_memory_row *row = &out->row[out->row_count++];
    *row = (pl_memory_row){.kind = range->kind};
    memcpy(row->name, range->name, sizeof row->name);
    return row;
}

/* Rows exist for every registered range from the start, so that one with nothing resident shows as 0, not as missing.
 */
static pl_status begin_rows(const pl_memory_owners *owners, pl_memory_measured *out, pl_error *err)
{
    for (size_t i = 0; i < owners->count; i++) {
        pl_memory_row *row = row_of(out, &owners->range[i]);
        if (!row) return pl_fail(err, PL_E_INTERNAL, "more than %d owners of memory", PL_MEMORY_ROWS_MAX);
        row->count++;
    }
    return PL_OK;
}

static void add_unexplained(pl_memory_measured *out, const pl_smaps_entry *map, uintptr_t begin, uintptr_t end,
                            uint64_t resident_bytes)
{
    if (resident_bytes == 0) return;
    out->unexplained_bytes += resident_bytes;
    if (out->unexplained_count == PL_MEMORY_UNEXPLAINED_MAX) return;
    pl_memory_unexplained *u = &out->unexplained[out->unexplained_count++];
    *u = (pl_memory_unexplained){.begin = begin, .end = end, .resident_bytes = resident_bytes};
    memcpy(u->protection, map->protection, sizeof map->protection);
    const char *slash = strrchr(map->name, '/');
    snprintf(u->name, sizeof u->name, "%s", slash ? slash + 1 : map->name);
}

/* The share of a whole mapping that `part` of its resident bytes stands for. */
static uint64_t share(uint64_t whole, uint64_t part, uint64_t resident)
{
    return part == resident ? whole : (uint64_t)((double)whole * ((double)part / (double)resident));
}

/* Adds [begin, end) of a mapping with `resident` bytes to its owner, or to what is unexplained (range NULL). */
static void account(const measurement *m, const pl_smaps_entry *map, const pl_memory_range *range, uintptr_t begin,
                    uintptr_t end, uint64_t resident)
{
    if (!range) {
        add_unexplained(m->out, map, begin, end, resident);
        return;
    }
    pl_memory_row *row = row_of(m->out, range);
    row->reserved_bytes += end - begin;
    row->resident_bytes += resident;
    *(range->kind == PL_MEMORY_FILES ? &m->out->files_bytes : &m->out->explained_bytes) += resident;
    if (resident == 0) return;
    row->proportional_bytes += share(map->bytes[PL_SMAPS_PSS], resident, map->bytes[PL_SMAPS_RSS]);
    row->anonymous_bytes += share(map->bytes[PL_SMAPS_ANONYMOUS], resident, map->bytes[PL_SMAPS_RSS]);
    row->huge_bytes += share(map->bytes[PL_SMAPS_ANON_HUGE], resident, map->bytes[PL_SMAPS_RSS]);
}

/* Resident bytes of [begin, end): entries of pagemap with the "present" bit. */
static uint64_t count_present(int pagemap, uintptr_t begin, uintptr_t end)
{
    uint64_t entries[128], present = 0;
    for (uintptr_t page = begin / PL_PAGE_BYTES; page < end / PL_PAGE_BYTES;) {
        size_t wanted = end / PL_PAGE_BYTES - page;
        if (wanted > 128) wanted = 128;
        ssize_t got;
        do got = pread(pagemap, entries, wanted * sizeof entries[0], (off_t)(page * sizeof entries[0]));
        while (got < 0 && errno == EINTR);
        if (got < (ssize_t)sizeof entries[0]) break;
        size_t count = (size_t)got / sizeof entries[0];
        for (size_t i = 0; i < count; i++) present += entries[i] >> 63;
        page += count;
    }
    return present * PL_PAGE_BYTES;
}

/* One stretch of a mapping with several owners. */
static void account_part(const measurement *m, const pl_smaps_entry *map, const pl_memory_range *range, uintptr_t begin,
                         uintptr_t end)
{
    uint64_t resident = map->bytes[PL_SMAPS_RSS] && m->pagemap >= 0 ? count_present(m->pagemap, begin, end) : 0;
    account(m, map, range, begin, end, resident > map->bytes[PL_SMAPS_RSS] ? map->bytes[PL_SMAPS_RSS] : resident);
}

static void divide(const measurement *m, const pl_smaps_entry *map)
{
    size_t i = find_range(m, map->begin);
    const pl_memory_range *range = i < m->owners->count ? &m->owners->range[i] : NULL;
    if (!range || range->begin >= map->end) {
        account(m, map, NULL, map->begin, map->end, map->bytes[PL_SMAPS_RSS]);
        return;
    }
    if (range->begin <= map->begin && end_of(m, range) >= map->end) {
        account(m, map, range, map->begin, map->end, map->bytes[PL_SMAPS_RSS]);
        return;
    }
    uintptr_t at = map->begin;
    for (; i < m->owners->count && m->owners->range[i].begin < map->end; i++) {
        range = &m->owners->range[i];
        if (range->begin > at) account_part(m, map, NULL, at, range->begin);
        uintptr_t begin = range->begin > at ? range->begin : at;
        at = end_of(m, range) < map->end ? end_of(m, range) : map->end;
        account_part(m, map, range, begin, at);
    }
    if (at < map->end) account_part(m, map, NULL, at, map->end);
}

static pl_status refuse_unread(const char *path, int error, pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED, "%s cannot be read: %s%s", path, strerror(error), pl_procfile_hint(error));
}

static pl_status walk_mappings(const measurement *m, pl_error *err)
{
    pl_smaps smaps;
    pl_smaps_entry map;
    if (pl_smaps_open(&smaps, "/proc/self/smaps")) return refuse_unread("/proc/self/smaps", errno, err);
    while (pl_smaps_read(&smaps, &map)) divide(m, &map);
    pl_smaps_close(&smaps);
    if (smaps.file.error) return refuse_unread("/proc/self/smaps", smaps.file.error, err);
    return PL_OK;
}

static pl_status read_totals(pl_memory_measured *out, pl_error *err)
{
    pl_procfile f;
    if (pl_procfile_open(&f, "/proc/self/smaps_rollup")) return refuse_unread("/proc/self/smaps_rollup", errno, err);
    for (char *line; (line = pl_procfile_line(&f));) {
        pl_procfile_field(line, "Rss", &out->rollup_bytes);
        pl_procfile_field(line, "AnonHugePages", &out->rollup_huge_bytes);
        pl_procfile_field(line, "Swap", &out->swap_bytes);
    }
    pl_procfile_close(&f);
    if (f.error) return refuse_unread("/proc/self/smaps_rollup", f.error, err);
    if (pl_procfile_open(&f, "/proc/self/status")) return refuse_unread("/proc/self/status", errno, err);
    uint64_t threads = 0;
    for (char *line; (line = pl_procfile_line(&f));) {
        pl_procfile_field(line, "VmHWM", &out->peak_bytes);
        pl_procfile_field(line, "VmPTE", &out->page_table_bytes);
        pl_procfile_field(line, "VmSize", &out->virtual_bytes);
        pl_procfile_field(line, "Threads", &threads);
    }
    pl_procfile_close(&f);
    if (f.error) return refuse_unread("/proc/self/status", f.error, err);
    if (out->peak_bytes < out->rollup_bytes)
        out->peak_bytes = out->rollup_bytes; /* counters that lag (docs/memory.md) */
    out->threads = (uint32_t)threads;
    return PL_OK;
}

pl_status pl_memory_measure(const pl_memory_owners *owners, pl_memory_measured *out, pl_error *err)
{
    *out = (pl_memory_measured){0};
    pl_process_faults faults = pl_process_count_faults();
    out->minor_faults = faults.minor;
    out->major_faults = faults.major;
    PL_TRY(begin_rows(owners, out, err));
    measurement m = {owners, out, (uintptr_t)sbrk(0), pl_io_open("/proc/self/pagemap", O_RDONLY)};
    pl_status status = walk_mappings(&m, err);
    if (m.pagemap >= 0) close(m.pagemap);
    return status == PL_OK ? read_totals(out, err) : status;
}

pl_process_faults pl_process_count_faults(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (pl_process_faults){(uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt};
}

pl_process_heap pl_process_count_heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return (pl_process_heap){info.uordblks, info.arena + info.hblkhd};
}
