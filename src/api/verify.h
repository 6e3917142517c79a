/* Two steps of a plan, seen from outside: what verify compares. */
#ifndef PL_API_VERIFY_H
#define PL_API_VERIFY_H

#include "api/api.h"

enum { PL_VERIFY_STEPS = 2 };

/* What a plain plan made, one of each precision: its plan names the values, its gradients are kept as the moments tell
 * them. */
typedef struct pl_verify_plain {
    pl_plan *plan;  /* NULL: there is none */
    float **moment; /* [values of its graph] after the first step; NULL where a value is none or no f32 */
    double beta1;
} pl_verify_plain;

typedef struct pl_verify_outcome {
    double loss[PL_VERIFY_STEPS];
    uint64_t bits[PL_VERIFY_STEPS]; /* a checksum of losses, weights, optimizer state and states after the step */
    double difference, share;       /* of the gradients, against those of the plain one */
    double norm_share;              /* of all gradients: the norm of the difference, by their norm */
    double rounding;      /* of a plain one: √n·u for the n values of 16 bits of its first step (verify.h) */
    const char *gradient; /* of the graph of the plain one */
    bool skipped;         /* the first update was: an overflow in fp16. Then the gradients are not known */
} pl_verify_outcome;

/* Runs the plan and compares its gradients with those of `with`; NULL: with none. */
pl_status pl_verify_run(const pl_verify_plain *with, const pl_plan *, const char *checkpoint, pl_verify_outcome *,
                        pl_error *);
/* Runs the plan of `plain`, whose moments are kept, and compares with those of `with`; NULL: with none. */
pl_status pl_verify_run_plain(const pl_verify_plain *with, pl_verify_plain *plain, const char *checkpoint,
                              pl_verify_outcome *, pl_error *);
bool pl_verify_same(const pl_verify_outcome *, const pl_verify_outcome *);
void pl_verify_plain_deinit(pl_verify_plain *);

#endif
