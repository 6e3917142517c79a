/* What the dynamic loader and the kernel put into this process before main(): modules (program, libraries, vdso), the
 * loader's own anonymous memory, where heap and main stack lie. Shared by plan, prepare and run/arena, so that there
 * is one list of them and not two. */
#ifndef PL_BASE_PROCESS_IMAGE_H
#define PL_BASE_PROCESS_IMAGE_H

#include "base/process.h"

enum { PL_IMAGE_MODULES_MAX = 64, PL_IMAGE_LOADER_MAX = 32 };

typedef struct pl_image_module {
    pl_memory_kind kind; /* program, library or vdso */
    char name[PL_MEMORY_NAME_BYTES];
    uintptr_t begin, end;
    uint64_t loaded_bytes;  /* its segments, each rounded to pages; holes between them are never resident */
    uint64_t written_bytes; /* of them what may be written after the start */
} pl_image_module;

typedef struct pl_image {
    size_t module_count;
    pl_image_module module[PL_IMAGE_MODULES_MAX];
    size_t loader_count;
    struct {
        uintptr_t begin, end;
    } loader[PL_IMAGE_LOADER_MAX];
    uintptr_t stack_end; /* exclusive upper end of the main thread's stack */
} pl_image;

/* The modules loaded now, and the loader memory recorded by pl_process_start. */
pl_status pl_image_read(pl_image *, pl_error *);
/* Those of pl_process_start: what every process of this executable begins with. A library that came later (dlopen) may
 * stay for good, whoever unloads it, and is no part of a runner. */
pl_status pl_image_read_start(pl_image *, pl_error *);

/* Of the program what is not in these ranges, of the others everything: [*begin, *end) becomes the first stretch of it
 * that is held, at or after *begin; false: there is none. */
typedef struct pl_left_out {
    size_t count;
    pl_part_range range[PL_PART_RANGES_MAX];
} pl_left_out;
bool pl_image_next_held(const pl_left_out *, uintptr_t *begin, uintptr_t *end);
/* The program's pages in them are given back, and will never be brought in with their neighbours: with a flag of their
 * own they are mappings of their own. What may be written is kept, if there is any. */
void pl_image_leave_out(const pl_left_out *);

/* From now on a page of a module's file that is not there is read alone. What the kernel would read around it (up to
 * read_ahead_kb of the disk, 8 MB on some machines) is page cache that cannot be taken back while it is being read: in
 * a small container enough for the kernel to kill, with no more in use than was planned. */
void pl_image_stop_read_ahead(const pl_image *);

/* Code and constants stay: the kernel may drop them like any page of a file. Under a full limit it does so while the
 * arena is being touched, and a machine that gives up cold pages before it must (DAMON's pageout) at any time; the next
 * step would wait for the disk. Best effort (RLIMIT_MEMLOCK). */
void pl_image_hold(const pl_image *, const pl_left_out *);

/* Makes [begin, end) resident, writable pages as private copies of their own, so that no later write faults. begin and
 * end are page-aligned. 0, or -1 with errno set. */
int pl_image_populate(uintptr_t begin, uintptr_t end, bool writable);

#endif
