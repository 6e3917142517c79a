/* The features of an operator, measured with the program "features" on what stands in the state of a rollout. */
#ifndef PL_JOBS_ROLLOUT_FEATURES_H
#define PL_JOBS_ROLLOUT_FEATURES_H

#include "data/fields/features.h"
#include "data/fields/rollout_data.h"
#include "run/session.h"

typedef struct pl_rollout_features {
    pl_id program; /* PL_NONE: features are not wanted */
    float *state;  /* [rows, elems] */
    float *room;   /* for two fields: x, O(x) */
    uint64_t elems;
    int rows;
    bool at_work; /* what a program stores now is an answer */
    int first;    /* the input that stands in row 0 */
    pl_features f;
} pl_rollout_features;

/* Of the operator whose weights are there, at the field that stands in row 0 of the state; afterwards it stands in each
 * row. Feature is made. PL_E_STOPPED. */
pl_status pl_rollout_features_make(pl_rollout_features *, pl_session *, uint32_t number,
                                   float feature[PL_OPERATOR_FEATURES], pl_error *);
/* What its program has stored. */
void pl_rollout_features_take(pl_rollout_features *, const pl_store_call *);

#endif
