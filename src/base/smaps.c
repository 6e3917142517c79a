#include "base/smaps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The keys in the kernel's order, so that the one after the last is nearly always the right one: a process may have
 * 50,000 mappings of 25 lines each. SKIP: not wanted, in its place all the same. */
enum { SKIP = -1 };
static const struct {
    const char *key;
    int field;
} keys[] = {
    {"Size:", SKIP},
    {"KernelPageSize:", SKIP},
    {"MMUPageSize:", SKIP},
    {"Rss:", PL_SMAPS_RSS},
    {"Pss:", PL_SMAPS_PSS},
    {"Pss_Dirty:", SKIP},
    {"Pss_Anon:", SKIP},
    {"Pss_File:", SKIP},
    {"Pss_Shmem:", SKIP},
    {"Shared_Clean:", PL_SMAPS_SHARED_CLEAN},
    {"Shared_Dirty:", PL_SMAPS_SHARED_DIRTY},
    {"Private_Clean:", PL_SMAPS_PRIVATE_CLEAN},
    {"Private_Dirty:", PL_SMAPS_PRIVATE_DIRTY},
    {"Referenced:", SKIP},
    {"Anonymous:", PL_SMAPS_ANONYMOUS},
    {"KSM:", SKIP},
    {"LazyFree:", PL_SMAPS_LAZY_FREE},
    {"AnonHugePages:", PL_SMAPS_ANON_HUGE},
    {"ShmemPmdMapped:", PL_SMAPS_SHMEM_HUGE},
    {"FilePmdMapped:", PL_SMAPS_FILE_HUGE},
    {"Shared_Hugetlb:", PL_SMAPS_SHARED_HUGETLB},
    {"Private_Hugetlb:", PL_SMAPS_PRIVATE_HUGETLB},
    {"Swap:", PL_SMAPS_SWAP},
    {"SwapPss:", PL_SMAPS_SWAP_PSS},
    {"Locked:", PL_SMAPS_LOCKED},
    {"THPeligible:", SKIP},
    {"ProtectionKey:", SKIP},
    {"VmFlags:", SKIP},
};
enum { KEYS = sizeof keys / sizeof *keys };

const char *pl_smaps_field_name(pl_smaps_field field)
{
    static const char *const names[PL_SMAPS_FIELDS] = {
        [PL_SMAPS_RSS] = "resident_bytes",
        [PL_SMAPS_PSS] = "proportional_bytes",
        [PL_SMAPS_SHARED_CLEAN] = "shared_clean_bytes",
        [PL_SMAPS_SHARED_DIRTY] = "shared_dirty_bytes",
        [PL_SMAPS_PRIVATE_CLEAN] = "private_clean_bytes",
        [PL_SMAPS_PRIVATE_DIRTY] = "private_dirty_bytes",
        [PL_SMAPS_ANONYMOUS] = "anonymous_bytes",
        [PL_SMAPS_LAZY_FREE] = "lazy_free_bytes",
        [PL_SMAPS_ANON_HUGE] = "anonymous_huge_bytes",
        [PL_SMAPS_SHMEM_HUGE] = "shared_memory_huge_bytes",
        [PL_SMAPS_FILE_HUGE] = "file_huge_bytes",
        [PL_SMAPS_SHARED_HUGETLB] = "hugetlb_shared_bytes",
        [PL_SMAPS_PRIVATE_HUGETLB] = "hugetlb_private_bytes",
        [PL_SMAPS_SWAP] = "swap_bytes",
        [PL_SMAPS_SWAP_PSS] = "swap_proportional_bytes",
        [PL_SMAPS_LOCKED] = "locked_bytes",
    };
    return (unsigned)field < PL_SMAPS_FIELDS ? names[field] : "?";
}

int pl_smaps_open(pl_smaps *s, const char *path)
{
    s->pending = false;
    s->place = 0;
    return pl_procfile_open(&s->file, path);
}

void pl_smaps_close(pl_smaps *s) { pl_procfile_close(&s->file); }

static void read_field(pl_smaps *s, const char *line)
{
    for (size_t tries = 0; tries < KEYS; tries++) {
        size_t i = (s->place + tries) % KEYS, length = strlen(keys[i].key);
        if (strncmp(line, keys[i].key, length) != 0) continue;
        s->place = i + 1;
        if (keys[i].field == SKIP) return;
        char *end;
        uint64_t kilobytes = strtoull(line + length, &end, 10);
        bool whole = end != line + length && strcmp(end, " kB") == 0 && kilobytes <= UINT64_MAX / 1024;
        if (whole) s->next.bytes[keys[i].field] = kilobytes * 1024;
        return;
    }
}

static void begin_entry(pl_smaps *s, const pl_mapping *map)
{
    pl_smaps_entry *e = &s->next;
    memset(e->bytes, 0, sizeof e->bytes);
    e->begin = map->begin;
    e->end = map->end;
    memcpy(e->protection, map->protection, sizeof e->protection);
    e->offset = map->offset;
    e->inode = map->inode;
    e->device_major = map->device_major;
    e->device_minor = map->device_minor;
    snprintf(e->name, sizeof e->name, "%s", map->name);
}

bool pl_smaps_read(pl_smaps *s, pl_smaps_entry *entry)
{
    pl_mapping map;
    for (char *line; (line = pl_procfile_line(&s->file));) {
        /* Keys begin with a capital letter, addresses do not. */
        if ((line[0] >= 'A' && line[0] <= 'Z') || !pl_mapping_parse(line, &map)) {
            if (s->pending) read_field(s, line);
            continue;
        }
        bool whole = s->pending;
        if (whole) *entry = s->next;
        begin_entry(s, &map);
        s->pending = true;
        if (whole) return true;
    }
    bool last = s->pending;
    if (last) *entry = s->next;
    s->pending = false;
    return last;
}
