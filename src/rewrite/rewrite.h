/* Graph to graph, one pass per file, all alike: they carry out decisions and make none. Above each: what it needs and
 * what it keeps. All keep the graph legal (ir/check.c runs between them in tests). */
#ifndef PL_REWRITE_REWRITE_H
#define PL_REWRITE_REWRITE_H

#include "ir/graph.h"

/* bind_batch.c: gives the symbolic batch B of a program its number and the region named `region` (NULL: none) its
 * trips. A persistent value's batch is that of the programs that share it (a state that one begins and another
 * updates); all are bound to the same number, which it gets. */
pl_status pl_rewrite_bind_batch(pl_graph *, pl_id program, int64_t batch, const char *region, uint64_t trips,
                                pl_error *);

/* programs.c: drops the nodes of every program but the named ones. The values stay; without nodes they get no memory
 * unless they are persistent. */
pl_status pl_rewrite_keep_programs(pl_graph *, const char *const *names, size_t count, pl_error *);

/* share_sums.c: the nodes that read one weight add their parts of its gradient to one sum, one after another, instead
 * of to one each. Needs: a differentiated program; comes before all other passes. Changes the order in which terms are
 * added, with several micro-batches depending on their size: the gradient is the same but for rounding. */
pl_status pl_rewrite_share_sums(pl_graph *, pl_id program, pl_error *);
/* Is there a weight that several nodes read? */
bool pl_rewrite_share_sums_possible(const pl_graph *, pl_id program);

/* precision.c: within the repeated region of the program activations and their gradients become bf16 or f16 (f32: none
 * do), matrices are read as copies of that dtype that are made once before it. With f16 the loss is scaled. A program
 * that is not trained is narrowed throughout except for its outputs, and the matrices are marked as frozen. Needs: a
 * differentiated program, with its update or without one, or one that only uses weights, of a graph that trains
 * nothing; comes before all passes but share_sums. Changes what is computed. */
pl_status pl_rewrite_precision(pl_graph *, pl_id program, pl_dtype, pl_error *);

/* loss_scale.c: what precision.c does for f16. */
pl_status pl_rewrite_loss_scale(pl_graph *, pl_id program, pl_error *);

/* Which nodes are computed again, and where: `node` once more right before `before`, a later node of the same region.
 * In the order of `before`; for the same one, in the order in which they run. */
typedef struct pl_again {
    pl_id node, before;
} pl_again;

typedef struct pl_recompute_decision {
    pl_again *again;
    size_t count, capacity;
} pl_recompute_decision;

/* recompute_decision.c: lists, and the two that follow from a rule. They read the graph and change nothing. */
void pl_recompute_decision_deinit(pl_recompute_decision *);
pl_status pl_recompute_decision_add(pl_recompute_decision *, pl_id node, pl_id before, pl_error *);
/* Norms, activations and dropout: right before the backward pass first reads them. */
pl_status pl_recompute_decide_cheap(const pl_graph *, pl_id program, pl_recompute_decision *, pl_error *);
/* The classic: each block (a numbered first name of the scope, such as block.3) keeps only what leaves it; all else
 * that its backward pass needs is computed again right before that. */
pl_status pl_recompute_decide_full(const pl_graph *, pl_id program, pl_recompute_decision *, pl_error *);
/* may[node]: could it run a second time in its region, with the same inputs and without touching anything but its first
 * output and those that are made with it (pl_op_rule.remade)? Not if it changes something in place, loads data or
 * writes into a window. */
pl_status pl_recompute_find_repeatable(const pl_graph *, bool *may, pl_error *);

/* recompute.c: carries out any decision. Nodes after a repetition read the newest copy; statistics (outputs beyond the
 * first, except those made with it) are kept. Needs: a differentiated program, nothing fused or in place yet. Same
 * operator, same inputs: the bits do not change. */
pl_status pl_rewrite_recompute(pl_graph *, const pl_recompute_decision *, pl_error *);
pl_status pl_rewrite_recompute_cheap(pl_graph *, pl_id program, pl_error *);
pl_status pl_rewrite_recompute_full(pl_graph *, pl_id program, pl_error *);

/* unread.c: drops the nodes of a program whose outputs nobody reads, neither a later node nor whoever runs it: those
 * that recompute made again for their only reader. Needs: one trip of a region reads nothing of the previous one except
 * through persistent values or those from before the region. */
pl_status pl_rewrite_drop_unread(pl_graph *, pl_id program, pl_error *);

/* unread.c: the same for large outputs other than a node's first (pl_op_rule.remade), which recompute has made again
 * for their readers: the first copy has none. */
pl_status pl_rewrite_drop_unread_outputs(pl_graph *, pl_id program, pl_error *);

/* convolution.c: a convolution followed by a pool no longer leaves its whole output for the backward pass, which makes
 * it again a few samples at a time: where it has more than `limit` numbers per sample (0: never), and where the window
 * is so small that this is quicker anyhow. One whose input already has a gradient from elsewhere stays as it is. The
 * same bits. Needs: as the next. */
pl_status pl_rewrite_chunk_convolutions(pl_graph *, pl_id program, int64_t limit, pl_error *);

/* chunk.c: two linears with an activation between them, and their derivatives, become one node each, which does them
 * `rows` rows at a time: the wide values between are never whole, and are made again in the backward pass. The same
 * bits. Needs: the program differentiated or never to be; before recompute and fuse. Anything else stays as it is. */
pl_status pl_rewrite_chunk_feed_forward(pl_graph *, pl_id program, int64_t rows, pl_error *);

/* fuse.c: linear + activation become one node, and linear_dx + activation_bwd (+ the activation made again) become one
 * node, so that the pre-activation is read while it is in cache. Needs: recompute has run. */
pl_status pl_rewrite_fuse(pl_graph *, pl_error *);

/* update_order.c: gradients are zeroed as late and weights updated as early as what they read and write allows; with
 * one micro-batch (or layer_major.c) a gradient then lives only from its first contribution to its update. The same
 * bits. Needs: the trips of regions known. Breaks nothing; where nothing may move, nothing does. */
pl_status pl_rewrite_update_order(pl_graph *, pl_id program, pl_error *);
/* Would gradients of a program with `trips` micro-batches be applied before the backward pass is over? If not, *why is
 * half a sentence. Needs: nothing but the updates. */
bool pl_rewrite_update_early_possible(const pl_graph *, pl_id program, uint64_t trips, const char **why);

/* layer_major.c: the backward pass of a whole batch group of blocks by group of blocks, each over all micro-batches:
 * only one group's gradients are alive at once, for the price of the forward pass again. Needs: a differentiated
 * program with its updates, batch not bound, and no other pass before it that makes regions; pl_rewrite_update_order
 * must follow, and pl_rewrite_drop_unread should.
 * Keeps the bits. */
typedef struct pl_layer_major {
    int64_t blocks;     /* per group, at least 1; the last group may have fewer */
    int64_t keep_every; /* keep the input of every so many groups for the batch; 0: none, all start at the load */
    uint64_t trips;     /* micro-batches per step */
} pl_layer_major;
pl_status pl_rewrite_layer_major(pl_graph *, pl_id program, const pl_layer_major *, pl_error *);
/* How many forward passes of so many blocks run beyond the first time, and how many nodes that adds to the program.
 * Both grow with the square of the depth where no input is kept. (trips does not matter.) */
uint64_t pl_rewrite_layer_major_again(uint64_t blocks, const pl_layer_major *);
uint64_t pl_rewrite_layer_major_nodes(const pl_graph *, pl_id program, const pl_layer_major *);
/* If not, *why is half a sentence. Needs: nothing but the updates. */
bool pl_rewrite_layer_major_possible(const pl_graph *, pl_id program, const char **why);

/* optimizer_state.c: the optimizer's moments in bf16 (PL_DTYPE_BF16), or in 8-bit blocks (PL_DTYPE_U8, base/block8.h;
 * those of small weights stay f32), with random rounding; PL_DTYPE_F32: as they are. Needs: moments in f32. Changes the
 * numbers of a run: only where the user allows it. */
pl_status pl_rewrite_optimizer_state(pl_graph *, pl_dtype, pl_error *);

/* frozen_storage.c: frozen matrices are stored in bf16 or f16 (PL_DTYPE_F32: as they are), rounded once when they get
 * their first values; a node that reads one in f32 reads a copy made right before, one of which is alive at a time.
 * Needs: frozen weights in f32; precision and chunks have run, recompute has not. Changes the numbers of a run: only
 * where the user allows it. */
pl_status pl_rewrite_frozen_storage(pl_graph *, pl_dtype, pl_error *);

/* unfold.c: gated feed-forward layers in f32, of one program or (PL_NONE) of all, become the nodes that they consist
 * of, so that their hidden values are whole. The same numbers but for rounding. Needs: the program never to be
 * differentiated. */
pl_status pl_rewrite_unfold(pl_graph *, pl_id program, pl_error *);

/* observe.c: a calibration observes the inputs of the program's layers that can run in 8 bits (int8_sites.h). like: as
 * in int8_sites.h. spread: also their distribution. Needs: unfolded, nothing fused. Changes only the observations,
 * until whoever runs the program has a layer run in 8 bits. */
pl_status pl_rewrite_observe(pl_graph *, pl_id program, const pl_graph *like, bool spread, pl_error *);

/* int8.c: these layers in 8 bits, of one program or (PL_NONE) of all, where their weight (a name) is packed. Needs: as
 * observe, on a graph built the same way. Changes what is computed. */
typedef struct pl_int8_choice {
    bool (*is_packed)(const void *context, const char *weight);
    const void *context;
} pl_int8_choice;
pl_status pl_rewrite_int8(pl_graph *, pl_id program, const pl_int8_choice *, pl_error *);

/* int8_hidden.c: an 8-bit layer and the activation or gate after it become one node, which rounds its output where only
 * such layers read it. The same bits. Needs: recompute has run. */
pl_status pl_rewrite_int8_hidden(pl_graph *, pl_error *);

/* binary.c: layers of signs whose weights are already packed, in all programs. Needs: no program is differentiated.
 * Keeps the bits. */
typedef pl_int8_choice pl_packed_choice;
pl_status pl_rewrite_binary(pl_graph *, const pl_packed_choice *, pl_error *);

/* face.c: a program as others see it: inputs by name; one STORE for what it stores and what its losses judge, in f32,
 * followed by the inputs that are ids; and nothing else. Arrays of names have NULL for what is not seen. Needs: no pass
 * has run, no program has been dropped. PL_E_UNSUPPORTED: a model for which that is impossible. */
typedef struct pl_face_wish {
    const char *program, *as;     /* its name before and after; inputs and outputs become "AS.NAME" */
    const char *given, *given_as; /* a persistent value that becomes an input; NULL: none */
    const char *const *in, *const *stored, *const *scored; /* by port, by input of STORE, by loss */
    size_t in_count, stored_count, scored_count;
    const uint32_t *scores; /* [PL_OP_COUNT] for a loss, bits of the inputs that make what it judges; else 0 */
} pl_face_wish;
pl_status pl_rewrite_face(pl_graph *, const pl_face_wish *, pl_error *);

/* in_place.c: an output takes the storage of an input that dies at the node, where the operator's row allows it (OVER).
 * Needs: batch bound. Breaks: nothing may reorder nodes after it. */
pl_status pl_rewrite_in_place(pl_graph *, pl_error *);

/* roles.c: forward values that the backward pass reads get the role "saved", sums of gradients "gradient".
 * For the ledger. */
pl_status pl_rewrite_mark_saved(pl_graph *, pl_error *);

#endif
