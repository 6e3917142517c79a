/* An arena: one anonymous mapping per space, resident from the start, with a guard page on either side (so that the
 * kernel never merges it with a neighbour and an overrun is a crash, not a corruption).
 *
 *      [guard 4 KiB][ base … base + bytes … base + resident_bytes ][guard 4 KiB]
 *                     aligned to 2 MiB with huge pages
 *
 * It is filled with PL_ARENA_PATTERN; pages that still hold nothing else at the end of a run were never needed. As f32
 * the pattern is a NaN, so a value read before it is written spoils the loss instead of hiding. With huge pages the
 * size is rounded up to 2 MiB, so that resident bytes are the same whether the kernel grants them or not. */
#ifndef PL_RUN_ARENA_H
#define PL_RUN_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process.h"

#define PL_ARENA_PATTERN 0x7fa5a5a57fa5a5a5u

typedef struct pl_arena_options {
    const char *name; /* of the ledger's row; "ram" */
    bool huge_pages;  /* ask for them; refusal is no error */
} pl_arena_options;

typedef struct pl_arena {
    unsigned char *base;
    uint64_t bytes;          /* as asked for */
    uint64_t resident_bytes; /* rounded to pages or huge pages */
    uint64_t huge_bytes;     /* obtained as huge pages, measured */
    void *mapping;           /* with guards and alignment slack: for unmap */
    uint64_t mapping_bytes;
    pl_memory_owners *owners;
} pl_arena;

/* What an arena of so many bytes will hold: the plan's figure. 0 for 0; saturates. */
uint64_t pl_arena_resident_bytes(uint64_t bytes, bool huge_pages);

/* Maps, makes resident, fills, registers with owners (NULL: not). PL_E_NOMEM when the kernel refuses. */
pl_status pl_arena_map(pl_arena *, uint64_t bytes, const pl_arena_options *, pl_memory_owners *, pl_error *);
/* Addresses for pages of files, which whoever has the files puts there; until then they read as zeros, and take page
 * tables alone. Like pl_arena_map otherwise; the ledger counts them apart (PL_MEMORY_FILES). */
pl_status pl_arena_reserve(pl_arena *, uint64_t bytes, const pl_arena_options *, pl_memory_owners *, pl_error *);
/* Bytes in pages that still hold the pattern and nothing else. */
uint64_t pl_arena_untouched_bytes(const pl_arena *);
/* NULL and a zeroed arena are fine. Under a lockdown the mapping is left to the end of the process. */
void pl_arena_unmap(pl_arena *);

#endif
