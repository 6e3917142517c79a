/* A process's mappings and what the kernel counts in each: the text of /proc/N/smaps (or smaps_rollup, or maps, which
 * has no counts), one mapping at a time. No heap. Source: proc_pid_smaps(5), fs/proc/task_mmu.c.
 *
 * A mapping's counts hold  Rss = Shared_Clean + Shared_Dirty + Private_Clean + Private_Dirty;  pages of hugetlbfs are
 * in none of them but in Shared_Hugetlb and Private_Hugetlb. */
#ifndef PL_BASE_SMAPS_H
#define PL_BASE_SMAPS_H

#include "base/procfile.h"

typedef enum pl_smaps_field {
    PL_SMAPS_RSS,
    PL_SMAPS_PSS,
    PL_SMAPS_SHARED_CLEAN,
    PL_SMAPS_SHARED_DIRTY,
    PL_SMAPS_PRIVATE_CLEAN,
    PL_SMAPS_PRIVATE_DIRTY,
    PL_SMAPS_ANONYMOUS,
    PL_SMAPS_LAZY_FREE,
    PL_SMAPS_ANON_HUGE,
    PL_SMAPS_SHMEM_HUGE,
    PL_SMAPS_FILE_HUGE,
    PL_SMAPS_SHARED_HUGETLB,
    PL_SMAPS_PRIVATE_HUGETLB,
    PL_SMAPS_SWAP,
    PL_SMAPS_SWAP_PSS,
    PL_SMAPS_LOCKED,
    PL_SMAPS_FIELDS
} pl_smaps_field;

const char *pl_smaps_field_name(pl_smaps_field); /* as JSON names it: "shared_clean_bytes" */

enum { PL_SMAPS_NAME_BYTES = 512 };

typedef struct pl_smaps_entry {
    uintptr_t begin, end;
    char protection[5]; /* rwxp; s in the last place: shared */
    uint64_t offset, inode;
    unsigned device_major, device_minor;
    char
        name[PL_SMAPS_NAME_BYTES]; /* as the kernel writes it: \012 for a newline, " (deleted)" behind a removed file */
    uint64_t bytes[PL_SMAPS_FIELDS];
} pl_smaps_entry;

typedef struct pl_smaps {
    pl_procfile file;
    pl_smaps_entry next; /* read as far as its first line */
    bool pending;
    size_t place; /* where in the kernel's order of keys the last line was */
} pl_smaps;

int pl_smaps_open(pl_smaps *, const char *path); /* 0, or -1 with errno set */
/* The next mapping, whole; false at the end. Lines that are no such thing are skipped. */
bool pl_smaps_read(pl_smaps *, pl_smaps_entry *);
void pl_smaps_close(pl_smaps *);

#endif
