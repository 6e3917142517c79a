/* The table in memory, and what the files of this folder share. */
#ifndef PL_CALIBRATE_TABLE_H
#define PL_CALIBRATE_TABLE_H

#include "calibrate/calibrate.h"

enum { PL_CALIBRATION_KEY_BYTES = 1024, PL_CALIBRATION_PATH_BYTES = 4096 };

typedef struct pl_calibration_entry {
    char *key;
    double seconds, spread;
    uint64_t samples;
} pl_calibration_entry;

/* What a table is valid for. */
typedef struct pl_calibration_machine {
    char cpu[96];
    char isa[16];
    int cores;
    uint64_t kernels; /* hash of the machine code */
} pl_calibration_machine;

struct pl_calibration {
    pl_calibration_options options; /* zeros resolved */
    pl_calibration_machine machine;
    char path[PL_CALIBRATION_PATH_BYTES]; /* "": kept nowhere */
    char warning[512];
    pl_calibration_entry *entry; /* in the order in which they were measured */
    size_t count, capacity;
    uint32_t *slot; /* open addressing over entry; PL_NONE: free */
    size_t slot_count;
    bool changed;
    double measured_seconds;
};

/* ---- table.c ---- */
const pl_calibration_entry *pl_calibration_find(const pl_calibration *, const char *key); /* NULL: not there */
/* Adds or replaces. */
pl_status pl_calibration_put(pl_calibration *, const char *key, double seconds, double spread, uint64_t samples,
                             pl_error *);
void pl_calibration_clear(pl_calibration *);

/* ---- machine.c ---- */
pl_status pl_calibration_machine_read(pl_calibration_machine *, pl_error *);

/* ---- file.c ---- */
/* Fills the table; what is wrong with the file goes into the warning. PL_E_NOMEM only. */
pl_status pl_calibration_read(pl_calibration *, pl_error *);

#endif
