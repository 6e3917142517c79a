/* Whole channels of [..., channels]: put side by side, cut out, dropped, with a pixel's place behind them; as plain
 * values, see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_CHANNELS_H
#define PL_BACKEND_CHANNELS_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

/* y[p] = x[0][p], x[1][p], … one behind the other */
enum { PL_CONCAT_MAX = 9 };
typedef struct pl_concat_call {
    int64_t positions;
    int inputs;
    int64_t channels[PL_CONCAT_MAX];
    const void *x[PL_CONCAT_MAX];
    void *y;
    pl_real type;
} pl_concat_call;
void pl_concat_exec(const pl_concat_call *, pl_team);

/* y[p] = x[p, first … first + count) */
typedef struct pl_slice_call {
    int64_t positions, channels, first, count;
    const void *x;
    void *y;
    pl_real type;
} pl_slice_call;
void pl_slice_exec(const pl_slice_call *, pl_team);

/* dx[p] = (add +) dy at channels [first, first + count), 0 elsewhere; dx may be add. */
typedef struct pl_slice_bwd_call {
    int64_t positions, channels, first, count;
    const void *dy, *add;
    void *dx;
    pl_real type;
} pl_slice_bwd_call;
void pl_slice_bwd_exec(const pl_slice_bwd_call *, pl_team);

/* y[i,j] = x[i,j], i/(height − 1), j/(width − 1); 0 where there is but one row or column */
typedef struct pl_append_coordinates_call {
    int64_t samples, height, width, channels; /* channels of x */
    const void *x;
    void *y;
    pl_real type;
} pl_append_coordinates_call;
void pl_append_coordinates_exec(const pl_append_coordinates_call *, pl_team);

/* y = x·mask/(1 − p), a channel of a sample as a whole: channel c is kept when uniform(bits[c mod 4] of Philox block
 * c/4) ≥ p, with the counter (step, sample, block), as in dropout (kernels/dropout.h). The backward pass is the same
 * call on dy. y may be x. Sample s of the call is global sample *first_sample + s. */
typedef struct pl_channel_dropout_call {
    int64_t samples, positions, channels; /* positions of a sample */
    float probability;
    uint64_t seed, stream;
    const int64_t *step, *first_sample; /* (run) */
    const void *x;
    void *y;
    pl_real type;
} pl_channel_dropout_call;
uint64_t pl_channel_dropout_workspace_bytes(const pl_channel_dropout_call *, pl_team);
void pl_channel_dropout_exec(const pl_channel_dropout_call *, void *workspace, pl_team);

/* y = x or 0, part by part: part i of a sample is kept where channel i of channel_dropout would be. y may be x. */
typedef struct pl_path_dropout_call {
    int64_t samples, paths, elems; /* elems of a part */
    float probability;
    uint64_t seed, stream;
    const int64_t *step, *first_sample; /* (run) */
    const void *x;
    void *y;
    pl_real type;
} pl_path_dropout_call;
void pl_path_dropout_exec(const pl_path_dropout_call *, pl_team);

#endif
