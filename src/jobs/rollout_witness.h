/* What another framework needs to repeat the first steps of an operator, and what came out here, as files. */
#ifndef PL_JOBS_ROLLOUT_WITNESS_H
#define PL_JOBS_ROLLOUT_WITNESS_H

#include "data/fields/rollout_data.h"
#include "run/session.h"

enum { PL_WITNESS_FILES = 5 };

/* In a folder: weights.safetensors, parameters.json, with the operator's features where they are wanted, and as .npy of
 * f32: field [3,H,W], states [steps,3,H,W], noise [steps,C,H,W], what the noise block added in each step, metrics
 * [steps + 1,5], and where channels are dropped dropout [steps, channels of all blocks that drop some]. An
 * earlier witness is replaced when all is made; what is there and is none (the weights tell) is refused, PL_E_STORAGE.
 * The weights come first, parameters.json last. */
typedef struct pl_witness {
    pl_session *s;
    const pl_rollout_data *d;
    uint32_t operator;
    const char *folder;
    float feature[PL_OPERATOR_FEATURES]; /* where the data's setup wants them; put there before close */
    uint64_t steps;
    pl_file_writer file[PL_WITNESS_FILES];
    uint32_t open; /* so many of them are */
    uint64_t noise_channels, dropout_channels;
    float *scratch; /* an image by channels */
} pl_witness;

/* The weights are there already. The heap is used; PL_E_STORAGE. End it with close, also when this fails. */
pl_status pl_witness_open(pl_witness *, pl_session *, uint32_t number, uint64_t steps, const char *folder, pl_error *);
/* State t; of state 0 there is no noise. */
pl_status pl_witness_put(pl_witness *, uint64_t t, const pl_store_call *, pl_error *);
/* Complete, or, where something failed, gone. */
pl_status pl_witness_close(pl_witness *, bool complete, pl_error *);

#endif
