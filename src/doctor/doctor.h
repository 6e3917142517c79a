/* The memory of any process on this machine, explained. Nothing here belongs to a plan: the only sources are /proc and
 * /sys, read and never written; no process is stopped.
 *
 *   process.c threads.c     what the kernel tells about one process       -> pl_doctor_process (facts)
 *   joined.c                a mapping that begins with a stack and goes on with data is read as two
 *   sort.c stacks.c         every mapping gets one kind                   -> pl_doctor_view (rows that add up)
 *   causes.c                the largest of them in words, with remedies   -> pl_doctor_cause
 *   report*.c               the same as a document, for a person and for a program
 *   tree.c watch.c          a process and its children over time          -> samples, and facts at the peak
 *
 * The invariant: the rows' resident bytes + unexplained = Rss of smaps_rollup, read right after the mappings. A process
 * that runs on between the two readings is why they may differ; the difference is shown, never spread. */
#ifndef PL_DOCTOR_DOCTOR_H
#define PL_DOCTOR_DOCTOR_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/machine_cgroup.h"
#include "base/smaps.h"
#include "plimsoll/doctor.h"

enum { PL_DOCTOR_NAME_BYTES = 64, PL_DOCTOR_CAUSES_MAX = 3 };
/* THREAD_SIZE of x86-64 (arch/x86/include/asm/page_64_types.h), without KASAN. */
enum { PL_DOCTOR_KERNEL_STACK_BYTES = 16 << 10 };

/* ---- facts (process.c, threads.c) ---- */

typedef struct pl_doctor_status {
    uint64_t resident_bytes, anonymous_bytes, file_bytes, shared_memory_bytes; /* VmRSS and its three parts */
    uint64_t peak_bytes, virtual_bytes, virtual_peak_bytes;                    /* VmHWM or Rss now, VmSize, VmPeak */
    uint64_t page_table_bytes, swap_bytes, locked_bytes, hugetlb_bytes;
    uint64_t threads;
} pl_doctor_status;

typedef enum pl_doctor_limit {
    PL_DOCTOR_LIMIT_AS,
    PL_DOCTOR_LIMIT_DATA,
    PL_DOCTOR_LIMIT_STACK,
    PL_DOCTOR_LIMIT_RSS,
    PL_DOCTOR_LIMIT_MEMLOCK,
    PL_DOCTOR_LIMITS
} pl_doctor_limit;
const char *pl_doctor_limit_name(pl_doctor_limit); /* "RLIMIT_AS" */

typedef struct pl_doctor_thread {
    pid_t id;
    char name[20];           /* comm */
    uintptr_t stack_pointer; /* 0: not permitted, or it ran each time it was asked */
} pl_doctor_thread;

/* One mapping; its name lives in the process's pool. */
typedef struct pl_doctor_map {
    uintptr_t begin, end;
    char protection[5];
    bool tmpfs;  /* its file lies on a tmpfs */
    bool joined; /* a stack that was cut from the mapping behind it (joined.c) */
    uint64_t offset, inode;
    uintptr_t image_end; /* of a file's writable mapping: where its zeroed data ends; 0: not known */
    const char *name;
    uint64_t bytes[PL_SMAPS_FIELDS];
} pl_doctor_map;

typedef struct pl_doctor_process {
    pid_t id, parent, inner_id; /* inner: in its own PID namespace, when that is another; else 0 */
    pid_t asked_id;             /* what the caller said; a thread's id leads to its process */
    unsigned user;
    char name[PL_DOCTOR_NAME_BYTES];
    char *command;    /* arguments, joined by blanks; "" when not known */
    char *executable; /* "" when not permitted */
    char *run_folder; /* of a run of Plimsoll's own: its --out; NULL: none */
    uint64_t start_ticks;
    double seconds;      /* CLOCK_MONOTONIC when it was read */
    double cost_seconds; /* processor time of the reading */
    pl_doctor_status status;
    uint64_t limit[PL_DOCTOR_LIMITS]; /* soft; PL_MACHINE_UNLIMITED */
    bool permitted;                   /* mappings could be read */
    bool rollup_known;
    uint64_t rollup[PL_SMAPS_FIELDS]; /* of smaps_rollup: the witness */
    size_t map_count, thread_count;
    pl_doctor_map *map; /* by address */
    pl_doctor_thread *thread;
    /* around it */
    pl_machine machine;
    uint64_t commit_limit_bytes, committed_bytes;
    int overcommit; /* /proc/sys/vm/overcommit_memory; -1: not known */
    pl_cgroup_account cgroup;
    pl_pool *pool; /* owns maps, threads and texts */
} pl_doctor_process;

/* Below `root` ("" = the real /proc). PL_E_DATA with a sentence: no such process, ended, zombie, kernel thread. */
/* What errno says of a file of /proc: the process has ended, or another reason, in a sentence. */
bool pl_doctor_is_gone(int error);
pl_status pl_doctor_unreadable(const char *path, pl_error *);
pl_status pl_doctor_process_read(const char *root, pid_t, pl_doctor_process *, pl_error *);
void pl_doctor_process_deinit(pl_doctor_process *);
double pl_doctor_seconds(void); /* CLOCK_MONOTONIC */
double
pl_doctor_work_seconds(void); /* processor time of this thread: what looking costs, however busy the machine is */
/* Into process->thread; what cannot be read stays unknown. */
pl_status pl_doctor_threads_read(const char *root, pl_doctor_process *, pl_error *);
pl_status pl_doctor_divide_joined(const char *root, pl_doctor_process *, pl_error *); /* of stacks and data */
void pl_doctor_read_images(const char *root, pl_doctor_process *);                    /* image_end of the mappings */

/* ---- explained (sort.c, stacks.c) ---- */

/* In the order of the table; the first three are memory that the program asked for. X(constant, word in JSON, words in
 * text, what it is) */
#define PL_DOCTOR_KINDS(X)                                                                                             \
    X(HEAP, "heap", "heap", "[heap]: grown by brk, malloc's main arena")                                               \
    X(ARENAS, "malloc_arenas", "malloc arenas", "of further threads, 64 MiB of addresses each; known by shape")        \
    X(ANONYMOUS, "anonymous", "anonymous, other", "mmap: large blocks of malloc, heaps of runtimes, arenas")           \
    X(THREAD_STACKS, "thread_stacks", "thread stacks", "")                                                             \
    X(MAIN_STACK, "main_stack", "main stack", "")                                                                      \
    X(PROGRAM, "program", "program", "the executable and its data")                                                    \
    X(LIBRARIES, "libraries", "libraries", "files with code, and their data")                                          \
    X(FILES_PRIVATE, "files_private", "files, private", "")                                                            \
    X(FILES_SHARED, "files_shared", "files, shared", "page cache")                                                     \
    X(SHARED_MEMORY, "shared_memory", "shared memory", "tmpfs, memfd, System V, MAP_SHARED")                           \
    X(DEVICES, "devices", "devices", "")                                                                               \
    X(KERNEL, "vdso", "vdso", "code and clocks that the kernel lends")                                                 \
    X(NO_ACCESS, "no_access", "without access", "guard pages and reservations: addresses only")                        \
    X(HUGETLB, "hugetlb", "hugetlb", "reserved huge pages: not in resident")

typedef enum pl_doctor_kind {
#define X(constant, json, text, what) PL_DOCTOR_##constant,
    PL_DOCTOR_KINDS(X)
#undef X
        PL_DOCTOR_KIND_COUNT
} pl_doctor_kind;
const char *pl_doctor_kind_word(pl_doctor_kind);  /* "malloc_arenas" */
const char *pl_doctor_kind_title(pl_doctor_kind); /* "malloc arenas" */
const char *pl_doctor_kind_what(pl_doctor_kind);

typedef struct pl_doctor_row {
    uint32_t maps;
    uint64_t reserved_bytes;
    uint64_t bytes[PL_SMAPS_FIELDS];
} pl_doctor_row;

/* All mappings of one name (a file, or what the program calls its memory) and kind. */
typedef struct pl_doctor_group {
    const char *name;
    pl_doctor_kind kind;
    pl_doctor_row sum;
} pl_doctor_group;

typedef struct pl_doctor_stack {
    pid_t thread; /* 0: a guess: no stack pointer was seen in it */
    const char *name;
    uintptr_t begin, end;
    uint64_t reserved_bytes, touched_bytes, swap_bytes;
    bool main;
} pl_doctor_stack;

typedef struct pl_doctor_arena {
    uintptr_t begin;
    uint64_t reserved_bytes, resident_bytes;
} pl_doctor_arena;

typedef struct pl_doctor_view {
    const pl_doctor_process *process;
    pl_doctor_row row[PL_DOCTOR_KIND_COUNT];
    pl_doctor_row total;
    int64_t unexplained_bytes; /* rollup − total; 0 where there is no rollup */
    pl_doctor_kind *kind;      /* of each mapping */
    size_t group_count, stack_count, arena_count;
    pl_doctor_group *group; /* the most resident first */
    pl_doctor_stack *stack; /* by address; the main stack is one of them */
    pl_doctor_arena *arena;
    size_t guessed;           /* of the stacks */
    size_t threads_unknown;   /* threads whose stack pointer is not known */
    size_t threads_elsewhere; /* whose stack pointer lies in memory that is not one stack of its own */
} pl_doctor_view;

pl_status pl_doctor_view_build(const pl_doctor_process *, pl_doctor_view *, pl_error *);
void pl_doctor_view_deinit(pl_doctor_view *);
/* Marks arenas and stacks in view->kind (PL_DOCTOR_KIND_COUNT: not yet known). */
pl_status pl_doctor_find_stacks(pl_doctor_view *, pl_error *);
pl_status pl_doctor_find_arenas(pl_doctor_view *, pl_error *);
size_t pl_doctor_find_map(const pl_doctor_process *, uintptr_t address); /* SIZE_MAX: none */
bool pl_doctor_may_be_stack(const pl_doctor_process *, size_t map);
bool pl_doctor_has_usual_stack_size(const pl_doctor_process *, const pl_doctor_map *);
uint64_t pl_doctor_usual_stack_bytes(const pl_doctor_process *);
bool pl_doctor_is_anonymous(const pl_doctor_map *); /* private and of no file */

/* ---- in words (causes.c) ---- */

typedef struct pl_doctor_cause {
    uint64_t bytes;
    uint64_t resident_bytes; /* 0: page tables, kernel stacks, swap, hugetlb: not in resident */
    char title[96];
    char text[640];
    char remedy[384]; /* "" when none is known */
} pl_doctor_cause;

/* The largest first, at most PL_DOCTOR_CAUSES_MAX; returns how many. */
size_t pl_doctor_find_causes(const pl_doctor_view *, pl_doctor_cause *);
uint64_t pl_doctor_charged_bytes(const pl_doctor_view *); /* what shares are of: resident, and the four beside it */
/* What looks large and costs nothing, and what only looks odd: sentences, one a line. */
void pl_doctor_notes(const pl_doctor_view *, pl_str *out);
/* Does the process map a file whose name begins so ("libjvm.so")? Its name, or NULL. */
const char *pl_doctor_finds_library(const pl_doctor_view *, const char *prefix);

/* ---- over time (tree.c, watch.c) ---- */

typedef struct pl_doctor_sample {
    double seconds; /* since the watch began */
    uint64_t bytes; /* one process: Rss; several: the sum of Pss */
    uint32_t processes;
} pl_doctor_sample;

typedef struct pl_doctor_member {
    pid_t id, parent;
    char name[20];
    uint64_t start_ticks;
    uint64_t resident_bytes;
    uint64_t proportional_bytes; /* = resident when it is alone or Pss is not permitted */
} pl_doctor_member;

enum { PL_DOCTOR_MEMBERS_MAX = 4096, PL_DOCTOR_SAMPLES_MAX = 4096 };

/* The process and (tree) all that descend from it, itself first; zombies are left out. PL_E_DATA when it is gone. */
pl_status pl_doctor_tree_read(const char *root, pid_t, bool tree, pl_doctor_member **, size_t *count, pl_error *);

typedef struct pl_doctor_moment {
    bool known;
    double seconds;            /* since the watch began */
    uint64_t bytes;            /* of the tree */
    pl_doctor_process process; /* the largest of the tree */
    size_t member_count;
    pl_doctor_member *member;
} pl_doctor_moment;
void pl_doctor_moment_deinit(pl_doctor_moment *);

/* ---- told (report.c, report_lists.c, report_limits.c) ---- */

struct pl_doctor {
    pid_t id, asked_id;
    uint64_t start_ticks;
    bool tree;
    double began, snapshot_at, snapshot_cost, look_cost; /* CLOCK_MONOTONIC; of the last full reading, the last look */
    size_t sample_count;
    pl_doctor_sample *sample;
    unsigned merged; /* so many readings stand in one sample: their largest */
    unsigned in_last;
    uint64_t looks;
    uint64_t most_bytes; /* of all samples */
    double most_seconds;
    uint64_t command_peak_bytes; /* ru_maxrss of wait4; 0: not known */
    pl_doctor_moment peak, last; /* the last full reading; an earlier one, when that was fuller */
};

pl_status pl_doctor_watch_look(pl_doctor *, bool *alive, pl_error *);

/* The moment: of what is for people; of plot and JSON, which are of all of them, none. */
pl_status pl_doctor_write(const pl_doctor *, pl_doctor_form, const pl_doctor_moment *, pl_str *out, pl_error *);

#endif
