/* The rules of an operator and the tools to write them: what every family file of this folder provides, how nodes are
 * built, and how a gradient rule speaks to the driver in grad/. */
#ifndef PL_IR_OP_H
#define PL_IR_OP_H

#include <stddef.h>

#include "base/activation.h"
#include "ir/graph.h"

typedef struct pl_cost {
    double flops;    /* 2 per multiply-add of matrix products, by the algorithm; a few per element elsewhere */
    double bytes;    /* moved to and from memory when nothing is cached */
    double products; /* the part of flops for products that are always computed, whatever the data */
} pl_cost;

/* Where output k of a node may or must live. */
typedef struct pl_alias {
    int update;   /* index of the input that it updates in place (same storage, always), or -1 */
    uint32_t may; /* bit i: it may take the storage of input i when that dies here */
} pl_alias;

typedef struct pl_out {
    pl_shape shape;
    pl_dtype dtype;
    pl_encoding encoding;
} pl_out;

static inline pl_out pl_out_like(const pl_value *v) { return (pl_out){v->shape, v->dtype, PL_ENCODING_F32}; }

typedef struct pl_gradient pl_gradient;

typedef struct pl_op_rule {
    pl_status (*shape)(const pl_graph *, const pl_node *, pl_out out[PL_NODE_OUT_MAX], pl_error *);
    pl_status (*gradient)(pl_gradient *, const pl_node *); /* NULL: no gradient passes through */
    pl_cost (*cost)(const pl_graph *, const pl_node *);
    bool recompute;  /* may be run again in the backward pass and is cheap per byte it frees */
    uint32_t remade; /* bit k: output k, beyond the first, is recomputed with it: it is too large to keep */
    uint32_t (*over)(const pl_node *, int out); /* further inputs whose storage that output may take; NULL: none */
    /* Exchanges data with the outside of the graph: whoever runs the program runs it exactly once per trip. It is never
     * left out, repeated or timed. */
    bool outside;
    bool loss;          /* its first output is the loss so far, to which it adds that of its samples */
    bool scaled;        /* a loss: what it adds is already multiplied by its scale, so the sum is a mean */
    bool mixes_samples; /* what comes out for a sample depends on the others of its micro-batch */
    /* Input `ids` holds ids below dimension `ids_dim` (-1: the last) of input `ids_below`; both 0: it reads no ids. */
    int ids, ids_below, ids_dim;
    int loss_scale; /* gradients begin here, all multiplied by this input if it is given; 0: none begin */
    /* Changes a weight by its gradient; all such have the same inputs and outputs: weight, gradient, m, v, learning
     * rate, step, [gradient scale, [skipped steps]] → weight', m', v'. */
    bool optimizer;
} pl_op_rule;

const pl_op_rule *pl_op_rule_of(pl_op);
/* Shapes and dtypes of the outputs of a node with all that its row requires; PL_E_INTERNAL with a sentence that says
 * which input is of the wrong kind, or what its rule refuses. */
pl_status pl_node_infer(const pl_graph *, const pl_node *, pl_out out[PL_NODE_OUT_MAX], pl_error *);
pl_alias pl_node_alias(const pl_node *, int out);
/* The position of an input among the inputs, of an output among the outputs. */
#define PL_IN_OF(op, input) ((int)(offsetof(pl_##op##_args, input) / sizeof(pl_id)))
#define PL_OUT_OF(op, output)                                                                                          \
    ((int)((offsetof(pl_##op##_args, output) - offsetof(pl_##op##_args, out)) / sizeof(pl_id)))
/* The bit of an input in such a mask. */
#define PL_BIT_OF(op, input) (1u << PL_IN_OF(op, input))
/* Does the node, where it runs again, make output k again? The first, and those that are too large to be kept. */
static inline bool pl_node_remakes(const pl_node *n, int k)
{
    return n->out[k] != PL_NONE && (k == 0 || pl_op_rule_of(n->op)->remade >> k & 1);
}
/* Does it multiply by an 8-bit matrix: x, W with as many rows as its first attribute, the range of x? */
static inline bool pl_op_is_int8(pl_op op) { return op == PL_OP_LINEAR_INT8 || op == PL_OP_HIDDEN_INT8; }
static inline bool pl_op_is_outside(pl_op op) { return pl_op_rule_of(op)->outside; }

/* Is attribute k 0, and one that texts leave out then? */
bool pl_op_attr_is_left_out(const pl_node *, int k);

/* ---- builder.c: nodes one after another. The first failure is kept; after it every call returns PL_NONE and does
 * nothing, so a model reads as straight code and asks once, at its end. ---- */
typedef struct pl_builder {
    pl_graph *graph;
    pl_id region; /* where nodes go */
    pl_phase phase;
    char scope[256];
    uint32_t block;    /* the block of what is built; pl_builder_enter_block */
    size_t block_ends; /* when the scope gets no longer than this */
    pl_status status;
    pl_error *err;
} pl_builder;

pl_builder pl_builder_begin(pl_graph *, pl_id region, pl_error *);
void pl_builder_enter(pl_builder *, const char *fmt, ...) PL_PRINTF(2, 3); /* scope "a" becomes "a/b" */
void pl_builder_leave(pl_builder *);
/* Likewise "block.3", the fourth of the blocks that the model consists of (pl_value.block). They do not nest. */
void pl_builder_enter_block(pl_builder *, const char *name, uint32_t number);
/* What is built next belongs to the component of that node, in its region; to the component of that value. */
void pl_builder_at_node(pl_builder *, const pl_node *);
void pl_builder_at_value(pl_builder *, pl_id value);

pl_id pl_build_persistent(pl_builder *, pl_role, pl_dtype, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
pl_id pl_build_temporary(pl_builder *, pl_role, pl_dtype, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
/* A value that owns its bytes belongs to another one (pl_value.of). */
void pl_build_belongs(pl_builder *, pl_id value, pl_id of);
/* A window on `base`: strides NULL means row-major over `shape`. */
pl_id pl_build_view(pl_builder *, pl_id base, pl_shape shape, int64_t offset_elems, const int64_t *stride);

/* Adds a node whose outputs are made as its row and its shape rule say. out[k] may hold an existing value to write
 * into, or PL_UNWANTED, which becomes PL_NONE; else it must be PL_NONE on entry. The new content of an input that is
 * not given is not made either. Returns out[0]. */
pl_id pl_build_node(pl_builder *, pl_op, const pl_attr *attr, int ins, const pl_id *in, int outs, pl_id *out);
/* pl_build_linear(b, &args): the same by names, from args that begin as pl_linear_none and then have the outputs. */
#define PL_OP(constant, name, ins, outs, attrs)                                                                        \
    static inline pl_id pl_build_##name(pl_builder *b, pl_##name##_args *a)                                            \
    {                                                                                                                  \
        enum { IN_COUNT = PL_INS_OF_##constant, OUT_COUNT = PL_OUTS_OF_##constant };                                   \
        return pl_build_node(b, PL_OP_##constant, a->attr, IN_COUNT, a->in, OUT_COUNT, a->out);                        \
    }
#include "ir/ops.def"

/* Loss scaling (f16): what a run begins with; loss_scale changes it by factors of two between 1 and 2^24. */
#define PL_LOSS_SCALE_FIRST 65536.0f
/* The state in which a program with an update counts the steps whose gradient was not finite. */
#define PL_SKIPPED_STEPS "update.skipped_steps"

/* op_source.c: is this output of LOAD the number of the micro-batch's first sample, and not a port? */
bool pl_is_sample_number(const pl_value *);

static inline pl_attr pl_attr_i(int64_t v) { return (pl_attr){.i = v}; }
static inline pl_attr pl_attr_f(double v) { return (pl_attr){.f = v}; }

/* ---- gradient.c: what a gradient rule may ask and say ---- */
/* Turns what came in for a weight, once all is in, into the weight's own gradient, in place. */
typedef void (*pl_gradient_finish)(pl_builder *, pl_id sum, pl_id weight);
struct pl_gradient {
    pl_builder *b;
    pl_id *of; /* [values when the driver started] gradient that has reached a value so far, or PL_NONE */
    /* likewise: where this node's part of a weight's gradient goes; PL_NONE: it is not trained */
    pl_id *accumulator;
    pl_gradient_finish *finish; /* likewise, for a weight; NULL: nothing came in yet */
    const bool *wanted;         /* likewise, by root: a trained weight has a part in it, so its gradient is passed on */
    size_t count;
    bool replaced; /* set by a rule whose backward node also does the forward node's work */
};

/* Is the gradient of this value worth a node? Not for data, nor for what comes from frozen weights alone. */
bool pl_gradient_is_wanted(const pl_gradient *, pl_id value);
/* What to ask pl_build_X for: the gradient of that value if it is wanted. */
static inline pl_id pl_gradient_output(const pl_gradient *g, pl_id value)
{
    return pl_gradient_is_wanted(g, value) ? PL_NONE : PL_UNWANTED;
}
/* The gradient of a value, or PL_NONE when none has reached it. */
pl_id pl_gradient_of(const pl_gradient *, pl_id value);
/* One more contribution to a value's gradient: kept as it is when it is the first, else summed. Does nothing where it
 * is not wanted; a contribution to a window, or to a weight, is refused: PL_E_UNSUPPORTED. */
void pl_gradient_add(pl_gradient *, pl_id value, pl_id contribution);
/* Takes what has reached the value so far, for a rule that folds it into its own node and then adds the sum. */
pl_id pl_gradient_take(pl_gradient *, pl_id value);
/* The accumulator of a node's part of a weight's gradient, PL_NONE where that is not trained or not given; and its new
 * version after the node has added to it. */
pl_id pl_gradient_accumulator(const pl_gradient *, pl_id weight);
void pl_gradient_accumulated(pl_gradient *, pl_id weight, pl_id version);
/* Likewise for what the weight is turned into: `finish` makes it the weight's own gradient. All nodes that read the
 * weight must say the same: PL_E_UNSUPPORTED. */
void pl_gradient_accumulated_for(pl_gradient *, pl_id weight, pl_id version, pl_gradient_finish);
/* The gradient of a layer's bias, where there is one that is trained. */
void pl_gradient_add_bias(pl_gradient *, pl_id bias, pl_id dy);

/* ---- what the families provide ---- */
#define PL_OP(constant, name, ins, outs, attrs) extern const pl_op_rule pl_rule_##constant;
#include "ir/ops.def"

/* ---- helpers of the shape rules ---- */
const pl_value *pl_value_at(const pl_graph *, pl_id); /* NULL for PL_NONE */
/* A sentence that names the operator, scope, input (`operand`, an entry of n->in), its shape and what was expected. */
pl_status pl_fail_operand(const pl_graph *, const pl_node *, const pl_id *operand, const char *expected, pl_error *);
/* If given, it has this shape. */
/* What a product's other operand is in: rounded only where the weight is in blocks, too. */
pl_status pl_expect_rounded(const pl_graph *, const pl_node *, const pl_id *x, const pl_value *weight, pl_error *);
/* A matrix of that width, in that encoding. */
pl_status pl_expect_stored(const pl_graph *, const pl_node *, const pl_id *matrix, pl_encoding, int64_t width,
                           pl_error *);
pl_status pl_expect_operand(const pl_graph *, const pl_node *, const pl_id *operand, const pl_shape *,
                            const char *expected, pl_error *);
/* A position, if given, is one for all sequences or one for each. */
pl_status pl_expect_position(const pl_graph *, const pl_node *, const pl_id *operand, int64_t sequences, pl_error *);
/* [B,...,width] with one row per sample, such as the image of one pixel that a global mean gives. */
bool pl_is_row_a_sample(const pl_shape *, int64_t samples, uint32_t symbolic);
/* If given, it is f32 with a scale and a shift for each of so many channels, one such row for each sample of x. */
pl_status pl_expect_film(const pl_graph *, const pl_node *, const pl_id *operand, const pl_shape *x, int64_t channels,
                         pl_error *);
double pl_value_elems_f(const pl_value *); /* as double, 0 for NULL */
double pl_value_bytes_f(const pl_value *); /* likewise */

#endif
