/* This process, to the page: what it will hold (planned, in an earlier process of the same executable), how it is made
 * to hold exactly that (prepare), and what it does hold (measured, mapping by mapping).
 *
 * The idea: nothing is left to demand paging. At its start the command makes every page of program, libraries, heap and
 * stacks resident to a fixed, planned size; then resident bytes are a sum of sizes that are known beforehand, and no
 * page fault is left to happen. Planned and measured rows carry the same (kind, name), so that the ledger joins them.
 *
 *      planned row                       made true by                      measured from
 *      program, each library, vdso       pl_process_prepare                the mappings inside the module's addresses;
 *                                                                          of the program without the parts that it
 *                                                                          leaves out (base/parts.h)
 *      loader (TLS, link maps)           pl_process_prepare                anonymous mappings seen by pl_process_start
 *      heap, main stack                  pl_process_prepare                [start_brk, brk), the [stack] mapping
 *      thread stacks                     pl_process_adopt_thread           ranges registered there
 *      arenas                            run/arena                         ranges registered by pl_memory_owners_add
 *
 * The runner's order of calls (any other leaves something unplanned or faulting):
 *
 *      planner:  pl_process_start, pl_process_plan, pl_process_exec_self
 *      runner:   pl_process_start
 *                pl_process_prepare
 *                pl_threads_create (run/threads.h)
 *                helper threads, each calls pl_process_adopt_thread
 *                pl_arena_map (run/arena.h)
 *                every call of every program once
 *                pl_threads_check, pl_alloc_seal(1), pl_lockdown_commit (run/lockdown.h)
 *                pl_memory_measure, the steps, pl_memory_measure
 *
 * Between prepare and "committed" malloc stays inside of the fixed heap, and nothing may map files (setlocale does).
 * After "committed" no region of one thread is opened: libgomp would take a new team from the heap.
 *
 * Invariant: the sum of all measured rows + unexplained is the Rss of /proc/self/smaps_rollup (checked by the tests).
 * The library never calls start, prepare or exec_self on its own: they change the whole process. */
#ifndef PL_BASE_PROCESS_H
#define PL_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/parts.h"

enum {
    PL_PAGE_BYTES = 4096,
    PL_HUGE_PAGE_BYTES = 2 << 20,
    PL_MEMORY_NAME_BYTES = 48,
    PL_MEMORY_RANGES_OWN = 256, /* of a register without memory of the caller's */
    PL_MEMORY_STACKS_OWN = 128, /* of them for stacks of threads */
    PL_MEMORY_ROWS_MAX = 96,
    PL_MEMORY_UNEXPLAINED_MAX = 32,
    PL_PROCESS_THREADS_MAX = 2048, /* team + helpers */
};

/* ---- who owns which addresses (process_owners.c) ---- */

typedef enum pl_memory_kind {
    PL_MEMORY_ARENA,        /* mappings of ours, by name */
    PL_MEMORY_THREAD_STACK, /* all further threads in one row */
    PL_MEMORY_MAIN_STACK,
    PL_MEMORY_HEAP,
    PL_MEMORY_PROGRAM, /* the executable: code, constants, data, bss */
    PL_MEMORY_LIBRARY, /* one row each */
    PL_MEMORY_LOADER,  /* anonymous memory of the dynamic loader: static TLS of the main thread, link maps */
    PL_MEMORY_VDSO,    /* code page of the kernel mapped into every process */
    PL_MEMORY_OTHER,   /* unexplained */
    PL_MEMORY_FILES,   /* pages of files, mapped for reading: the kernel brings and takes them as it likes, so their
                          resident bytes are at most those reserved, and in no sum */
    PL_MEMORY_KIND_COUNT
} pl_memory_kind;

const char *pl_memory_kind_name(pl_memory_kind); /* "arena", "thread stacks", … */

typedef struct pl_memory_range {
    uintptr_t begin, end; /* half-open */
    pl_memory_kind kind;
    char name[PL_MEMORY_NAME_BYTES];
} pl_memory_range;

/* The register of owned addresses. Zero-initialise; one per process, owned by the command; about 18 kB. */
typedef struct pl_memory_owners {
    size_t count, room;
    pl_memory_range *range; /* [count] sorted by address, not overlapping: `own`, or memory of the caller's */
    pl_memory_range own[PL_MEMORY_RANGES_OWN];
} pl_memory_owners;

/* How many ranges the memory must have for `stacks` threads besides the caller; 0: the register's own will do. */
size_t pl_memory_owners_room(size_t stacks);
/* The register goes on in memory of the caller's for `room` ranges, which pl_memory_owners_room told. With NULL it goes
 * back into its own, and knows no stacks of threads any more: that memory is the caller's again. */
void pl_memory_owners_move(pl_memory_owners *, pl_memory_range *memory, size_t room);

/* Whole pages are owned: the range is rounded outwards. Safe to call from several threads at once. PL_E_INTERNAL when
 * it overlaps a range of another owner or the table is full. */
pl_status pl_memory_owners_add(pl_memory_owners *, pl_memory_kind, const char *name, const void *begin, uint64_t bytes,
                               pl_error *);
void pl_memory_owners_remove(pl_memory_owners *, const void *begin);

/* ---- planned (process_plan.c) ---- */

typedef struct pl_process_options {
    uint64_t heap_bytes;       /* the whole heap, fixed and resident; multiple of the page size */
    uint64_t main_stack_bytes; /* resident, counted from the stack's top: arguments and environment included */
    uint64_t thread_stack_reserved_bytes; /* address space of each further thread's stack */
    uint64_t thread_stack_touched_bytes;  /* of those, resident */
    pl_parts parts;                       /* of the program, that are held */
} pl_process_options;

/* The command as a whole, planner and runner, is made for this much. */
enum { PL_PROCESS_MAIN_STACK_BYTES = 256 << 10 };

/* 1 MiB heap, 256 KiB main stack, 512 KiB reserved and 64 KiB touched a thread, the whole program. */
pl_process_options pl_process_options_default(void);
pl_status pl_process_check_options(const pl_process_options *, pl_error *);

/* One line of the ledger, planned or measured. */
typedef struct pl_memory_row {
    pl_memory_kind kind;
    char name[PL_MEMORY_NAME_BYTES];
    uint32_t count;          /* how many ranges (threads) are in this row */
    uint64_t reserved_bytes; /* address space */
    uint64_t resident_bytes; /* Rss */
    /* measured only: */
    uint64_t proportional_bytes; /* Pss: shared pages divided by the processes that share them */
    uint64_t anonymous_bytes;
    uint64_t huge_bytes; /* AnonHugePages */
} pl_memory_row;

/* What else is mapped: arenas, each a mapping of its own. */
typedef struct pl_process_arena {
    const char *name;
    uint64_t resident_bytes; /* pl_arena_resident_bytes(…) */
    bool is_files;           /* pages of files: at most so many (PL_MEMORY_FILES) */
} pl_process_arena;

typedef struct pl_process_planned {
    size_t row_count;
    pl_memory_row row[PL_MEMORY_ROWS_MAX];
    uint64_t resident_bytes;   /* the sum of the rows */
    uint64_t page_table_bytes; /* upper bound: where address randomisation puts mappings decides up to a table each */
    uint64_t kernel_bytes;     /* kernel stacks, task structures, mappings */
    uint64_t charged_bytes;    /* resident + page tables + kernel; the page cache of writers is the store's to add */
} pl_process_planned;

/* When the environment tells malloc how to behave (MALLOC_…, GLIBC_TUNABLES with glibc.malloc…) or how large the stacks
 * of a team are (OMP_STACKSIZE, GOMP_STACKSIZE), replaces this process by one without: the planner's mappings at the
 * start are what is planned for the runner's, and its stacks are small (pl_process_fence). Else PL_OK at once. */
PL_API PL_MUST_USE pl_status pl_process_restart_plain(char *const *argv, char *const *envp, pl_error *);

/* Replaces this process by a new one of the same program with these words, without these variables.
 * Returns only on failure. */
PL_API PL_MUST_USE pl_status pl_process_restart(char *const *argv, char *const *envp, pl_error *);

/* Records the mappings of the loader: the first call in main(), before any thread. Harmless when repeated. PL_E_USAGE
 * when the main stack may not grow to PL_PROCESS_MAIN_STACK_BYTES. */
PL_API PL_MUST_USE pl_status pl_process_start(pl_error *);
/* Bytes of the heap that libraries took which were loaded before that (pl_process_begin); a new process of the same
 * program takes as many. */
void pl_process_note_libraries(uint64_t heap_bytes);
uint64_t pl_process_libraries_bytes(void);

/* Everything the runner will hold with `threads` in the OpenMP team (main included) and `helper_threads` (loader,
 * writer). Changes nothing; may run in any process of the same executable, after pl_process_start. */
pl_status pl_process_plan(const pl_process_options *, int threads, int helper_threads, const pl_process_arena *arenas,
                          size_t arena_count, pl_process_planned *, pl_error *);

/* Page tables that a mapping of this size can need at most: one 4 KiB table per 2 MiB region it can straddle. */
uint64_t pl_process_page_table_bytes(uint64_t mapping_bytes);
/* Kernel memory that each further thread costs (measured; process_plan.c says how). */
uint64_t pl_process_thread_kernel_bytes(void);

/* ---- made true (process_prepare.c, process_thread.c, process_exec.c) ---- */

/* In the runner, at its start and before any thread exists: transparent huge pages off, malloc pinned (one arena, no
 * mmap, no trim), the heap grown to its planned size, every page of program, libraries, loader memory, heap and main
 * stack made resident and writable where it may be written, default stack size of threads set. Registers all of them in
 * `owners`. PL_E_NOMEM / PL_E_USAGE with a sentence when a limit stands in the way. */
pl_status pl_process_prepare(const pl_process_options *, pl_memory_owners *, pl_error *);
/* In tests: who calls into what this process leaves out of its program (base/parts.h) is ended there and then. */
void pl_process_forbid_left_out(void);
/* All of what is left of the prepared heap but room for a block of `bytes`, which is at its very end if it is asked for
 * next; for pl_free then. So what is needed for a moment only (the text of the plan) leaves no gap below what is made
 * out of it. NULL where the heap was not prepared, or has no room: the block may be anywhere. */
void *pl_process_take_below(size_t bytes);

/* Called by every new thread itself, before "committed": touches its stack to the planned depth and registers it. */
pl_status pl_process_adopt_thread(const pl_process_options *, pl_memory_owners *, pl_error *);

typedef struct pl_process_exec {
    char *const *argv; /* of the runner, NULL-terminated */
    char *const *envp; /* the caller's environment */
    int threads, cores;
    const pl_process_options *options;
} pl_process_exec;

/* Replaces this process by a fresh one of the same executable, with transparent huge pages off and what OpenMP and
 * malloc read only at their start in the environment (OMP_STACKSIZE, OMP_WAIT_POLICY, GOMP_SPINCOUNT, OMP_DYNAMIC; a
 * user's own OMP_WAIT_POLICY and GOMP_SPINCOUNT win). Returns only on failure. */
pl_status pl_process_exec_self(const pl_process_exec *, pl_error *);

/* ---- the planner's own memory (process_fence.c) ---- */

/* Pages of the program's files are read one by one from now on: pl_image_stop_read_ahead. */
pl_status pl_process_read_pages_singly(pl_error *);

/* From now on this process is refused private writable memory beyond `bytes` and the stacks of `threads`, and knows it
 * (malloc gives NULL). Nothing happens where RLIMIT_DATA is lower. For the command alone: it is the whole process's. */
void pl_process_fence(uint64_t bytes, int threads);
/* What the program and the libraries that it started with may write themselves (.data, .bss): a part of their rows
 * (pl_process_plan) that the fence counts too. */
uint64_t pl_process_modules_written_bytes(void);
uint64_t pl_process_fence_left(void); /* UINT64_MAX without a fence */
bool pl_process_fence_struck(void);   /* a request was refused because of it */
uint64_t pl_process_data_limit(void); /* RLIMIT_DATA as it was before; UINT64_MAX: none */
void pl_process_fence_open(void);     /* before the process goes on as another one */

/* ---- measured (process_measure.c); no heap, no memory calls: may run at any time after prepare ---- */

typedef struct pl_memory_unexplained {
    uintptr_t begin, end;
    uint64_t resident_bytes;
    char protection[8];
    char name[PL_MEMORY_NAME_BYTES]; /* file or [name]; empty = anonymous */
} pl_memory_unexplained;

typedef struct pl_process_faults {
    uint64_t minor, major;
} pl_process_faults;
pl_process_faults pl_process_count_faults(void); /* since the process began, all threads */

typedef struct pl_memory_measured {
    size_t row_count;
    pl_memory_row row[PL_MEMORY_ROWS_MAX];
    uint64_t explained_bytes;   /* sum of the rows' resident bytes, without those of PL_MEMORY_FILES */
    uint64_t files_bytes;       /* those */
    uint64_t unexplained_bytes; /* what no row owns: measured, mapping by mapping, not by subtraction */
    size_t unexplained_count;   /* entries in the list below; mappings beyond its end are still in the sum */
    pl_memory_unexplained unexplained[PL_MEMORY_UNEXPLAINED_MAX];
    uint64_t rollup_bytes; /* Rss of /proc/self/smaps_rollup: the witness */
    uint64_t rollup_huge_bytes;
    uint64_t peak_bytes;       /* VmHWM, or what is resident where that is more */
    uint64_t page_table_bytes; /* VmPTE */
    uint64_t virtual_bytes;    /* VmSize */
    uint64_t swap_bytes;
    uint32_t threads;
    uint64_t minor_faults, major_faults;
    pl_process_faults committed; /* since "committed"; filled in by whoever knows when that was */
} pl_memory_measured;

pl_status pl_memory_measure(const pl_memory_owners *, pl_memory_measured *, pl_error *);
/* The row of this kind and name (name NULL: the first of the kind), or NULL. The program's is found whatever the name:
 * a copy of it under another runs the same plan. */
const pl_memory_row *pl_memory_find_row(const pl_memory_row *rows, size_t count, pl_memory_kind, const char *name);

/* Bytes of the heap in use now, of all its bytes (mallinfo2): how near the fixed heap is to its end. */
typedef struct pl_process_heap {
    uint64_t used_bytes, total_bytes;
} pl_process_heap;
pl_process_heap pl_process_count_heap(void);

#endif
