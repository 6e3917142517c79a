/* The parts of the program that a process may leave out: the planner, kernels of other instruction-set levels, systems
 * that it does not run. The linker puts each into sections of its own, aligned to pages (cmake/parts.cmake). What is
 * left out is not read in and not charged; it stays mapped, so a call from elsewhere is a page fault and not the end.
 *
 * Invariant: what is left out and what is held are whole pages, the same ones in the process that plans and in the one
 * that is planned, which are of the same executable. */
#ifndef PL_BASE_PARTS_H
#define PL_BASE_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

/* Flags: which are held. */
typedef uint32_t pl_parts;

enum {
#define PL_PART_ROW(name) PL_PART_NUMBER_##name,
#include "base/parts.def"
#undef PL_PART_ROW
    PL_PART_NUMBER_loading, /* what the loader reads once: relocations; and tables to unwind stacks by */
    PL_PART_COUNT
};

#define PL_PART(name) ((pl_parts)1 << PL_PART_NUMBER_##name)
#define PL_PARTS_ALL  (((pl_parts)1 << PL_PART_COUNT) - 1)

typedef struct pl_part_range {
    uintptr_t begin, end; /* whole pages */
    int zeros;            /* they may be written */
} pl_part_range;

enum { PL_PART_RANGES_MAX = 3 * PL_PART_COUNT + 2 };

/* What this program leaves out that holds no more than these: sorted ranges, not overlapping. */
size_t pl_parts_left_out(pl_parts held, pl_part_range range[PL_PART_RANGES_MAX]);

/* Those whose kernels a team of this level calls. */
pl_parts pl_parts_of_isa(pl_isa);

/* "avx2,images"; "": none. PL_PARTS_NAMES_BYTES are enough. -1: there is an unknown name. */
enum { PL_PARTS_NAMES_BYTES = 160 };
void pl_parts_print(pl_parts, char to[PL_PARTS_NAMES_BYTES]);
int pl_parts_parse(const char *names, pl_parts *);

#endif
