/* The memory that a measurement borrows, and the numbers in it. */
#ifndef PL_CALIBRATE_SCRATCH_H
#define PL_CALIBRATE_SCRATCH_H

#include "calibrate/layout.h"

typedef struct pl_scratch {
    unsigned char *base;
    uint64_t bytes;
    void *mapping;
    uint64_t mapping_bytes;
    float *noise;   /* uniform numbers in [-1, 1) */
    uint8_t *used;  /* [values] what an integer is for */
    int64_t *limit; /* [values] tokens lie below it; the position to measure at */
} pl_scratch;

pl_status pl_scratch_init(pl_scratch *, const pl_layout *, bool huge_pages, pl_error *);
void pl_scratch_deinit(pl_scratch *);

/* Numbers of the size they have in training; never a denormal one, variances positive, tokens valid. */
void pl_scratch_fill(const pl_scratch *, const pl_layout *, pl_area_kind);

/* Out of all caches, where the processor has an instruction for it; else nothing. */
void pl_scratch_evict(const void *begin, uint64_t bytes);

#endif
