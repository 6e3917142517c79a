/* Control groups of memory: where they lie (machine_cgroup.c), the limits of this process (for base/machine.c), and the
 * account of any process's group with all its ancestors in sight (cgroup_account.c). */
#ifndef PL_BASE_MACHINE_CGROUP_H
#define PL_BASE_MACHINE_CGROUP_H

#include <stddef.h>

#include "base/machine.h"

/* Fills cgroup_* and cores_quota from below `root`. */
void pl_cgroup_read(const char *root, pl_machine *);

/* ---- where ---- */

enum { PL_CGROUP_PATH_BYTES = 512 };

typedef struct pl_cgroup_place {
    char mount[PL_CGROUP_PATH_BYTES]; /* with root in front; empty = hierarchy not in sight */
    char below[PL_CGROUP_PATH_BYTES]; /* the group's path below the mount, "" or "/b/c" */
} pl_cgroup_place;

/* process: "self" or a number; controller "" for version 2. Mounts are those that this process sees. */
bool pl_cgroup_find(const char *root, const char *process, const char *controller, pl_cgroup_place *);
/* A file of one number; "max" is unlimited. 0, 1 when there is no such file, -1 when it cannot be read. */
int pl_cgroup_read_number(const char *folder, const char *name, uint64_t *value);

/* ---- what is charged ---- */

#define PL_CGROUP_UNKNOWN (UINT64_MAX - 1) /* this kernel or version has no such figure */

typedef struct pl_cgroup_level {
    char path[PL_CGROUP_PATH_BYTES * 2];
    /* PL_MACHINE_UNLIMITED: none; PL_CGROUP_UNKNOWN */
    uint64_t limit_bytes, high_bytes, swap_limit_bytes; /* memory.max, memory.high (v1: soft limit), memory.swap.max */
    uint64_t usage_bytes, peak_bytes, swap_bytes;
    uint64_t oom_kills;
} pl_cgroup_level;

enum { PL_CGROUP_LEVELS_MAX = 16, PL_CGROUP_CHARGES_MAX = 16 };

typedef struct pl_cgroup_charge {
    const char *name;    /* of memory.stat: "anon", "file", … */
    const char *meaning; /* in words */
    uint64_t bytes;
    bool part; /* already counted in another line ("shmem" is in "file") */
} pl_cgroup_charge;

typedef struct pl_cgroup_account {
    int version; /* 1 or 2; 0: no memory controller in sight */
    size_t level_count;
    pl_cgroup_level level[PL_CGROUP_LEVELS_MAX]; /* the process's own group first, then its ancestors */
    size_t binding;                              /* level with the least limit; level_count: none has one */
    size_t charge_count;
    pl_cgroup_charge charge[PL_CGROUP_CHARGES_MAX]; /* of the first level that counts at all: the own group */
} pl_cgroup_account;

void pl_cgroup_account_read(const char *root, const char *process, pl_cgroup_account *);

#endif
