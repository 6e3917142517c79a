/* What a control group is charged for. A group pays for all processes in it and below it, and for page cache that they
 * read; so its figure is neither the sum of their Rss nor bounded by it. Source: admin-guide/cgroup-v2.rst,
 * cgroup-v1/memory.rst. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine_cgroup.h"
#include "base/procfile.h"

typedef struct version_files {
    const char *controller;
    const char *limit, *high, *usage, *peak, *swap_limit, *swap, *events;
} version_files;

/* Version 1 counts memory and swap together: swap is the difference. */
static const version_files files_of[] = {
    [1] = {"memory", "memory.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.usage_in_bytes",
           "memory.max_usage_in_bytes", "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes",
           "memory.oom_control"},
    [2] = {"", "memory.max", "memory.high", "memory.current", "memory.peak", "memory.swap.max", "memory.swap.current",
           "memory.events"},
};

static const struct {
    int version;
    const char *key, *name, *meaning;
    bool part;
} charges[] = {
    {2, "anon", "anon", "anonymous memory: heaps, stacks, private written pages", false},
    {2, "file", "file", "page cache, tmpfs and shared memory", false},
    {2, "kernel", "kernel", "kernel memory, all kinds", false},
    {2, "sock", "sock", "network buffers", false},
    {2, "shmem", "shmem", "of file: tmpfs and shared memory", true},
    {2, "file_mapped", "file_mapped", "of file: mapped by a process", true},
    {2, "file_dirty", "file_dirty", "of file: waiting to be written", true},
    {2, "anon_thp", "anon_thp", "of anon: in huge pages", true},
    {2, "kernel_stack", "kernel_stack", "of kernel: stacks of threads", true},
    {2, "pagetables", "pagetables", "of kernel: page tables", true},
    {2, "slab", "slab", "of kernel: its objects (inodes, dentries, …)", true},
    {1, "total_rss", "rss", "anonymous memory: heaps, stacks, private written pages", false},
    {1, "total_cache", "cache", "page cache, tmpfs and shared memory", false},
    {1, "total_rss_huge", "rss_huge", "of rss: in huge pages", true},
    {1, "total_shmem", "shmem", "of cache: tmpfs and shared memory", true},
    {1, "total_mapped_file", "mapped_file", "of cache: mapped by a process", true},
    {1, "total_dirty", "dirty", "of cache: waiting to be written", true},
};

static uint64_t number_of(const char *folder, const char *name)
{
    uint64_t value;
    if (pl_cgroup_read_number(folder, name, &value) != 0) return PL_CGROUP_UNKNOWN;
    return value >= (uint64_t)1 << 62 ? PL_MACHINE_UNLIMITED : value;
}

/* False when this level does not count memory at all (the root of version 2, another controller's hierarchy). */
static bool read_level(const char *folder, const version_files *f, pl_cgroup_level *level)
{
    char path[sizeof level->path + 32];
    *level = (pl_cgroup_level){.limit_bytes = number_of(folder, f->limit),
                               .high_bytes = number_of(folder, f->high),
                               .swap_limit_bytes = number_of(folder, f->swap_limit),
                               .usage_bytes = number_of(folder, f->usage),
                               .peak_bytes = number_of(folder, f->peak),
                               .swap_bytes = number_of(folder, f->swap),
                               .oom_kills = PL_CGROUP_UNKNOWN};
    snprintf(level->path, sizeof level->path, "%s", folder);
    snprintf(path, sizeof path, "%s/%s", folder, f->events);
    (void)pl_procfile_find(path, "oom_kill", &level->oom_kills);
    bool both = level->swap_bytes < PL_CGROUP_UNKNOWN && level->usage_bytes < PL_CGROUP_UNKNOWN;
    if (f == &files_of[1] && both)
        level->swap_bytes -= level->usage_bytes < level->swap_bytes ? level->usage_bytes : level->swap_bytes;
    return level->usage_bytes != PL_CGROUP_UNKNOWN || level->limit_bytes != PL_CGROUP_UNKNOWN;
}

/* Kernels before 5.18 have no sum of all kinds of kernel memory: then its parts stand for themselves. */
static bool is_part(size_t i, const pl_cgroup_account *a)
{
    if (strncmp(charges[i].meaning, "of kernel", 9) != 0) return charges[i].part;
    for (size_t k = 0; k < a->charge_count; k++)
        if (strcmp(a->charge[k].name, "kernel") == 0) return true;
    return false;
}

static void read_charges(int version, pl_cgroup_account *a)
{
    char path[sizeof a->level[0].path + 32];
    snprintf(path, sizeof path, "%s/memory.stat", a->level[0].path);
    for (size_t i = 0; i < sizeof charges / sizeof *charges && a->charge_count < PL_CGROUP_CHARGES_MAX; i++) {
        uint64_t bytes;
        if (charges[i].version != version || !pl_procfile_find(path, charges[i].key, &bytes)) continue;
        a->charge[a->charge_count] = (pl_cgroup_charge){charges[i].name, charges[i].meaning, bytes, is_part(i, a)};
        a->charge_count++;
    }
    uint64_t kernel = number_of(a->level[0].path, "memory.kmem.usage_in_bytes");
    if (version == 1 && kernel < PL_CGROUP_UNKNOWN && a->charge_count < PL_CGROUP_CHARGES_MAX)
        a->charge[a->charge_count++] = (pl_cgroup_charge){"kmem", "kernel memory, all kinds", kernel, false};
}

static bool read_version(const char *root, const char *process, int version, pl_cgroup_account *a)
{
    pl_cgroup_place place;
    if (!pl_cgroup_find(root, process, files_of[version].controller, &place)) return false;
    while (a->level_count < PL_CGROUP_LEVELS_MAX) {
        char folder[sizeof place.mount + sizeof place.below];
        snprintf(folder, sizeof folder, "%s%s", place.mount, place.below);
        a->level_count += read_level(folder, &files_of[version], &a->level[a->level_count]);
        char *slash = strrchr(place.below, '/');
        if (!slash) break;
        *slash = 0;
    }
    return a->level_count > 0;
}

void pl_cgroup_account_read(const char *root, const char *process, pl_cgroup_account *a)
{
    memset(a, 0, sizeof *a);
    for (int version = 2; version >= 1 && !a->version; version--)
        if (read_version(root, process, version, a)) a->version = version;
    a->binding = a->level_count;
    for (size_t i = 0; i < a->level_count; i++) {
        uint64_t least = a->binding < a->level_count ? a->level[a->binding].limit_bytes : PL_CGROUP_UNKNOWN;
        if (a->level[i].limit_bytes < least) a->binding = i;
    }
    if (a->version) read_charges(a->version, a);
}
