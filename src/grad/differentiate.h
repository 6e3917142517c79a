/* From a forward program to one that also computes the gradient of its loss, and to one that updates its weights. */
#ifndef PL_GRAD_DIFFERENTIATE_H
#define PL_GRAD_DIFFERENTIATE_H

#include "ir/graph.h"

/* Needs: a legal model graph in which `program` has a loss (ir/properties.h). Adds the backward nodes behind the
 * forward nodes of the same region, one gradient value "grad.NAME" per weight that the program reads (role gradient,
 * zeroed at the program's start, accumulated over the region's trips). Keeps: legality. */
pl_status pl_grad_differentiate(pl_graph *, pl_id program, pl_error *);

typedef struct pl_grad_update {
    double beta1, beta2, epsilon, weight_decay; /* decay applies to weights of rank 2 and more that are not latent */
    double clip;                                /* global L2 norm; 0 = no clipping */
    pl_id lr, step;                             /* inputs: f32 [1], i64 [1] */
    uint64_t seed;                              /* of the rounding of moments that are not kept in f32 */
    bool angle;                                 /* Adam-atan2 in place of AdamW; it has no epsilon */
    double ema_rate;                            /* of the averages of the weights; 0: there are none */
} pl_grad_update;

/* Adds moments "m.NAME" and "v.NAME" (role optimizer) and one node of the optimizer per weight behind the program's
 * regions, each with the node of its average behind it where there are averages, "ema.NAME" (role average), which begin
 * as the weights. With clipping, an update whose gradient norm is not finite is skipped: its nodes are predicated on
 * "finite". */
pl_status pl_grad_add_update(pl_graph *, pl_id program, const pl_grad_update *, pl_error *);

/* average.c: every program that changes no weight reads the averages in place of the weights that have one. */
pl_status pl_grad_read_averages(pl_graph *, pl_error *);

#endif
