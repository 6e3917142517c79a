/* Facts about the machine that this process runs on and the limits it runs under. Read once; pure reading. All files
 * are read below `root` ("" for the real ones), so that tests bring their own /proc and /sys.
 *
 * Memory limits: cgroup v2, then v1, each with all ancestors that can be seen. Page cache counts as free, because the
 * kernel drops it before it refuses memory. A limit that exists and cannot be read counts as the least favourable:
 * nothing left. */
#ifndef PL_BASE_MACHINE_H
#define PL_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/isa.h"

#define PL_MACHINE_UNLIMITED UINT64_MAX

typedef struct pl_machine {
    /* processor */
    char cpu_name[96]; /* "model name" of /proc/cpuinfo: with isa and kernel the key of the calibration cache */
    bool is_virtual;   /* its cores belong to a host, which may share them with other guests unseen */
    pl_isa isa;
    double hertz;         /* the highest clock that the system names; 0: none */
    uint64_t cache_bytes; /* of the first core's last level; 0: not told */
    int cores_online;
    int cores_allowed;  /* by the affinity mask */
    double cores_quota; /* by the cgroup's CPU quota; infinity when there is none */
    int cores;          /* what this run should use by default: the smallest, rounded up, at least 1 */
    /* memory */
    uint64_t ram_bytes, available_bytes;  /* MemTotal, MemAvailable */
    uint64_t swap_bytes, swap_free_bytes; /* SwapTotal, SwapFree; 0 where there is none */
    uint64_t own_bytes;                   /* that this process is charged for now and gives back at its end */
    uint64_t cgroup_limit_bytes;          /* the tightest limit in sight */
    uint64_t cgroup_room_bytes;           /* least of (limit − usage + page cache) over all levels */
    char cgroup_path[256];                /* the level that binds; empty when none */
    int cgroup_error; /* not 0: a limit could not be read, errno says why; room is 0, cgroup_path names the file */
    uint64_t address_space_limit_bytes; /* RLIMIT_AS */
    uint64_t data_limit_bytes;          /* RLIMIT_DATA */
    uint64_t stack_limit_bytes;         /* RLIMIT_STACK */
    /* kernel */
    char kernel[64];                 /* release */
    char transparent_huge_pages[16]; /* always, madvise, never; "unknown" */
} pl_machine;

pl_status pl_machine_read(const char *root, pl_machine *, pl_error *);
void pl_machine_find_cores(pl_machine *); /* cores, from those that are allowed and the quota */

/* `budget: auto`: the least of available RAM, cgroup room and process limits, less a reserve for everything else on
 * this machine. */
typedef struct pl_machine_budget {
    uint64_t bytes;
    uint64_t room_bytes, reserve_bytes; /* bytes = room − reserve */
    const char *bound_by;               /* "available memory", "cgroup limit", "RLIMIT_AS", "RLIMIT_DATA" */
} pl_machine_budget;
pl_status pl_machine_auto_budget(const pl_machine *, pl_machine_budget *, pl_error *);

/* A limit of the cgroup so low that what the disk reads ahead of a program's pages counts (base/process_image.h). */
bool pl_machine_is_tight(const pl_machine *);

/* What a process will hold at most, each as the limits count it. */
typedef struct pl_machine_need {
    uint64_t charged_bytes;  /* resident, page tables, kernel, page cache of files being written: cgroups */
    uint64_t resident_bytes; /* RAM */
    uint64_t address_bytes;  /* RLIMIT_AS */
    uint64_t data_bytes;     /* RLIMIT_DATA */
    const char *at_once_key; /* of the config: how much is in memory together */
} pl_machine_need;

/* May a process hold this here at all, however much is free? PL_E_BUDGET names the limit. */
pl_status pl_machine_check_limits(const pl_machine *, const pl_machine_need *, pl_error *);
/* May it now, in place of this process? Of a cgroup's limit counts what is charged to it already by others, of RAM what
 * is available. What the kernel charges in advance (a batch of pages a core) and beside (1 MiB) is not held against the
 * others. PL_E_BUDGET; PL_E_STORAGE: a limit cannot be read, so nobody knows, and no smaller plan would help. */
pl_status pl_machine_check_free(const pl_machine *, const pl_machine_need *, pl_error *);

/* What no process here can ever hold more of, however much is free: RAM and swap, the cgroup's limit, RLIMIT_AS,
 * RLIMIT_DATA; and which of them it is. */
typedef struct pl_machine_ceiling {
    uint64_t bytes;
    const char *bound_by; /* "the memory and swap of this machine", "the cgroup limit", "RLIMIT_AS", "RLIMIT_DATA" */
} pl_machine_ceiling;
pl_machine_ceiling pl_machine_find_ceiling(const pl_machine *);

#endif
