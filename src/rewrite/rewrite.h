/* Graph to graph, one pass a file, all of one shape: they carry out decisions and take none. Above each: what it needs
 * and what it keeps. All keep the graph legal (ir/check.c runs between them in tests). */
#ifndef PL_REWRITE_REWRITE_H
#define PL_REWRITE_REWRITE_H

#include "ir/graph.h"

/* bind_batch.c: gives the symbolic batch B of a program its number and the region named `region` (NULL: none) its
 * trips. */
pl_status pl_rewrite_bind_batch(pl_graph *, pl_id program, int64_t batch, const char *region, uint64_t trips,
                                pl_error *);

/* programs.c: drops the nodes of every program but the named ones. The values stay; without nodes they get no memory
 * unless they are persistent. */
pl_status pl_rewrite_keep_programs(pl_graph *, const char *const *names, size_t count, pl_error *);

/* precision.c: within the repeated region of the program activations and their gradients become bf16 or f16 (f32: nothing
 * is done), matrices are read as copies of that dtype that are made once before it. With f16 the loss is scaled.
 * Needs: a differentiated program, with its update or without one; comes before recompute. Changes what is computed. */
pl_status pl_rewrite_precision(pl_graph *, pl_id program, pl_dtype, pl_error *);

/* loss_scale.c: what precision.c does for f16. */
pl_status pl_rewrite_loss_scale(pl_graph *, pl_id program, pl_error *);

/* recompute.c: values made by cheap operators (norms, activations, dropout) in the forward pass are made again right
 * before the backward pass first reads them, instead of being kept. Needs: a differentiated program.
 * Same operator, same inputs: the bits do not change. */
pl_status pl_rewrite_recompute_cheap(pl_graph *, pl_id program, pl_error *);

/* fuse.c: linear + activation become one node, and linear_dx + activation_bwd (+ the activation made again) become one
 * node, so that the pre-activation is read while it is in cache. Needs: recompute has run. */
pl_status pl_rewrite_fuse(pl_graph *, pl_error *);

/* in_place.c: an output takes the storage of an input that dies at the node, where the operator's alias rule allows it.
 * Needs: batch bound. Breaks: nothing may reorder nodes after it. */
pl_status pl_rewrite_in_place(pl_graph *, pl_error *);

/* roles.c: forward values that the backward pass reads get the role "saved". For the ledger. */
pl_status pl_rewrite_mark_saved(pl_graph *, pl_error *);

#endif
