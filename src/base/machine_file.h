/* A machine as a small file: what plans depend on, so that one can be made for a machine that is elsewhere. JSON,
 * schema plimsoll.machine/1, one object of plain values; no limit is null. A program that reads another version, or a
 * key that it does not know, refuses the file.
 *
 * While a machine is described, plans are made for it: pl_machine_planned, pl_isa_of_machine, pl_isa_fastest and
 * pl_isa_extras answer for it. Nothing may compute then: its instructions may not be there. */
#ifndef PL_BASE_MACHINE_FILE_H
#define PL_BASE_MACHINE_FILE_H

#include <stddef.h>

#include "base/machine.h"
#include "base/str.h"

typedef struct pl_machine_file {
    pl_machine machine;
    pl_isa fastest;  /* pl_isa_fastest */
    uint64_t extras; /* of that level: pl_isa_extra, ORed */
    /* What its cores do at most together, and read from memory in a second; 0: not measured. */
    double f32_operations, bf16_operations, memory_bytes;
} pl_machine_file;

/* Describes this machine, without rates. */
pl_status pl_machine_file_fill(pl_machine_file *, pl_error *);
void pl_machine_file_print(const pl_machine_file *, pl_str *);
/* name: of the file, for sentences. PL_E_DATA. */
pl_status pl_machine_file_parse(const char *name, const char *text, size_t bytes, pl_machine_file *, pl_error *);

/* isa.c: the level, the one that is taken, and its extras. */
void pl_isa_describe(pl_isa best, pl_isa fastest, int extras);
/* From now on, in all threads; before anything is planned. */
void pl_machine_describe(const pl_machine_file *);
const pl_machine_file *pl_machine_described(void); /* NULL: plans are for this machine */
const char *pl_machine_words(void);                /* "this machine", or "that machine" while one is described */
/* The one that plans are made for. */
pl_status pl_machine_planned(pl_machine *, pl_error *);

#endif
