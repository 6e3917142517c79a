/* Two steps of a plan, seen from outside: what verify compares. */
#ifndef PL_API_VERIFY_H
#define PL_API_VERIFY_H

#include "api/api.h"

enum { PL_VERIFY_STEPS = 2 };

/* What the plain plan made: its plan names the values, its gradients are kept as the moments tell them. */
typedef struct pl_verify_plain {
    pl_plan *plan;
    float **moment; /* [values of its graph] after the first step; NULL where a value is none or no f32 */
    double beta1;
} pl_verify_plain;

typedef struct pl_verify_outcome {
    double loss[PL_VERIFY_STEPS];
    uint64_t bits[PL_VERIFY_STEPS]; /* a checksum of losses, weights, optimizer state and states after the step */
    double difference, share;       /* of the gradients, against those of the plain one */
    const char *gradient;           /* of the graph of the plain one */
} pl_verify_outcome;

/* Runs the plan. With `keeps`, its moments become those of the plain one; else they are compared with them. */
pl_status pl_verify_run(pl_verify_plain *, const pl_plan *, const char *checkpoint, bool keeps, pl_verify_outcome *,
                        pl_error *);
bool pl_verify_same(const pl_verify_outcome *, const pl_verify_outcome *);
void pl_verify_plain_deinit(pl_verify_plain *);

#endif
