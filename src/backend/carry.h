/* What a batch carries from step to step (ir/op_carry.c), and codebooks (ir/op_codebook.c), as plain values; see
 * calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_CARRY_H
#define PL_BACKEND_CARRY_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

/* Row b of the samples belongs to place *first_sample mod places + b; those past the last place to none. */
typedef struct pl_carry_call {
    int64_t places, samples, row_bytes;
    const int64_t *first_sample; /* (run) */
    const int32_t *done;         /* of reading: a place with 0 is free */
    const void *x;               /* rows: the fresh ones, or what is written */
    char *state;                 /* [places] rows */
    void *y;                     /* of reading; may be x */
    int64_t below;               /* of ids: others become -1; 0: these are no ids */
} pl_carry_call;
void pl_carry_read_exec(const pl_carry_call *, pl_team);
void pl_carry_write_exec(const pl_carry_call *, pl_team);

typedef struct pl_halt_call {
    int64_t places, samples, limit;
    float exploration;
    uint64_t seed, stream;
    const int64_t *step, *first_sample; /* (run) */
    const void *q;                      /* [samples] */
    int32_t *done;                      /* [places] changes in place */
    pl_real type;
} pl_halt_call;
void pl_halt_exec(const pl_halt_call *, pl_team);

typedef struct pl_ramp_call {
    double high;
    int64_t first, second, last;
    const int64_t *step; /* (run) */
    float *y;
} pl_ramp_call;
void pl_ramp_exec(const pl_ramp_call *, pl_team);

typedef struct pl_nearest_code_call {
    int64_t rows, codes, width;
    const void *z; /* [rows, width] */
    const float *codebook;
    int32_t *index; /* [rows] */
    void *code;     /* [rows, width] */
    pl_real type;
} pl_nearest_code_call;
/* A row as f32 for each thread. */
uint64_t pl_nearest_code_workspace_bytes(const pl_nearest_code_call *, pl_team);
void pl_nearest_code_exec(const pl_nearest_code_call *, void *workspace, pl_team);

typedef struct pl_code_sum_call {
    int64_t rows, rows_of_sample, codes, width;
    const int32_t *index; /* [rows] */
    const void *z;        /* [rows, width] */
    const float *counted; /* one a sample, counted_stride apart, or NULL */
    int64_t counted_stride;
    float *sums; /* [codes, width + 1] accumulates */
    pl_real type;
} pl_code_sum_call;
void pl_code_sum_exec(const pl_code_sum_call *, pl_team);

typedef struct pl_code_update_call {
    int64_t codes, width;
    double rate, eps;
    float *sums, *codebook, *sizes, *averages; /* all change in place */
} pl_code_update_call;
void pl_code_update_exec(const pl_code_update_call *, pl_team);

#endif
