/* Two steps of a plan, seen from outside: what verify compares. */
#ifndef PL_API_VERIFY_H
#define PL_API_VERIFY_H

#include "api/api.h"

enum { PL_VERIFY_STEPS = 2, PL_VERIFY_NAME_BYTES = 96 };

/* What a plain plan made, one of each precision: its plan names the values, its gradients are kept as the moments tell
 * them. */
typedef struct pl_verify_plain {
    pl_plan *plan;           /* NULL: there is none */
    float **moment;          /* [values of its graph] after the first step; NULL where a value is none or no f32 */
    const pl_config *config; /* its optimizer is that of all plans */
} pl_verify_plain;

typedef struct pl_verify_outcome {
    double loss[PL_VERIFY_STEPS];
    uint64_t bits[PL_VERIFY_STEPS]; /* a checksum of losses, weights, optimizer state and states after the step */
    double difference, share;       /* of the gradients, against those of the plain one */
    double norm_share;              /* of all gradients: the norm of the difference, by their norm */
    double rounding;      /* of a plain one: √n·u for the n values of 16 bits of its first step (verify.h) */
    const char *gradient; /* of the graph of the plain one */
    double update_share;  /* how far the updates are from those computed apart, as a share of the bound (verify.h) */
    char update[PL_VERIFY_NAME_BYTES]; /* of what that was */
    bool skipped;                      /* the first update was: an overflow in fp16. Then the gradients are not known */
} pl_verify_outcome;

/* Runs the plan and compares its gradients with those of `with`, its updates with those computed apart. */
pl_status pl_verify_run(const pl_verify_plain *with, const pl_plan *, const char *checkpoint, pl_verify_outcome *,
                        pl_error *);
/* Runs the plan of `plain`, whose moments are kept, and compares with those of `with`; NULL: with none. */
pl_status pl_verify_run_plain(const pl_verify_plain *with, pl_verify_plain *plain, const char *checkpoint,
                              pl_verify_outcome *, pl_error *);
/* The same run again: whether it gives the same is for pl_verify_same. */
pl_status pl_verify_run_again(const pl_verify_plain *with, const pl_plan *, const char *checkpoint, pl_verify_outcome *,
                              pl_error *);
bool pl_verify_same(const pl_verify_outcome *, const pl_verify_outcome *);
void pl_verify_plain_deinit(pl_verify_plain *);

/* verify_update.c: the update, computed apart and compared while a session takes steps */
typedef struct pl_verify_update pl_verify_update;
uint64_t pl_verify_update_bytes(const pl_plan *); /* what it holds */
pl_status pl_verify_update_create(const pl_config *, const pl_plan *, pl_session *, pl_verify_update **, pl_error *);
void pl_verify_update_begin(pl_verify_update *);                            /* before a step … */
void pl_verify_update_see(pl_verify_update *, uint32_t node, bool done);    /* … as its watcher … */
void pl_verify_update_end(pl_verify_update *);                              /* … and behind it */
double pl_verify_update_share(const pl_verify_update *, const char **name); /* the largest so far */
void pl_verify_update_destroy(pl_verify_update *);

#endif
