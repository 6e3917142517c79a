/* Mixed precision (Micikevicius et al. 2018): activations and their gradients are stored with 16 bits, everything that
 * is summed up or kept from step to step stays f32.
 *
 *   before the repeated region    bf16.W = cast(W)            once a step, for each matrix that is multiplied with
 *   within it                     x = embedding(E)  bf16      from the f32 table
 *                                 y = linear(x, bf16.W)       and so on: each operator's shape rule says what its
 *                                                             outputs are when its inputs are of 16 bits
 *   behind it                     the update                  f32, as it was
 *
 * So the pass knows where numbers become narrow (the embedding, or a cast of what is f32, with which a model says where
 * its images come in, and where gradients come back from a part that stays wide) and which input is a matrix; which
 * outputs follow, and that statistics, losses and the gradients of weights do not, the operators know themselves.
 *
 * f16 has 5 bits of exponent: small gradients would vanish, so the loss is scaled (loss_scale.c). */
#include <stdio.h>

#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct narrower {
    pl_graph *g;
    pl_id program;
    pl_dtype dtype;
    pl_builder b;
    size_t values;      /* before the first copy */
    pl_id *copy;        /* [values] the 16-bit copy of a weight, or PL_NONE */
    pl_id *next_window; /* [values] the windows on a value's storage, in a list that begins at the root */
} narrower;

/* Which inputs of an operator are matrices that it multiplies with: a bit each. */
static uint32_t matrix_inputs(pl_op op)
{
    if (op == PL_OP_GATED_FEED_FORWARD) return 1u << 1 | 1u << 2;
    if (op == PL_OP_GATED_FEED_FORWARD_BWD) return 1u << 2 | 1u << 3;
    return op == PL_OP_LINEAR || op == PL_OP_LINEAR_DX || op == PL_OP_CONV2D || op == PL_OP_CONV2D_DX ||
                   op == PL_OP_CONV_TRANSPOSE2D || op == PL_OP_CONV2D_POOL || op == PL_OP_LINEAR_CE ||
                   op == PL_OP_LINEAR_CE_BWD
               ? 1u << 1
               : 0;
}

static bool is_inner(const narrower *n, const pl_node *node)
{
    return !node->dead && node->region != n->program && pl_region_program(n->g, node->region) == n->program;
}

/* A value and all windows on its storage have one dtype. */
static void set_dtype(narrower *n, pl_id value, pl_dtype dtype)
{
    pl_id root = pl_value_root(n->g, value);
    for (pl_id v = root; v != PL_NONE; v = v < n->values ? n->next_window[v] : PL_NONE) n->g->value[v].dtype = dtype;
}

static pl_id copy_of(narrower *n, pl_id weight)
{
    pl_graph *g = n->g;
    if (n->copy[weight] != PL_NONE) return n->copy[weight];
    char name[256];
    snprintf(name, sizeof name, "%s", g->value[weight].name);
    snprintf(n->b.scope, sizeof n->b.scope, "%s", g->value[weight].scope);
    pl_id to = pl_build_temporary(&n->b, PL_ROLE_WEIGHT, n->dtype, g->value[weight].shape, "%s.%s",
                                  pl_dtype_name(n->dtype), name);
    pl_build_node(&n->b, PL_OP_CAST, NULL, 1, &weight, 1, &to);
    return n->copy[weight] = to;
}

static pl_status narrow_node(narrower *n, pl_id id, pl_error *err)
{
    pl_graph *g = n->g;
    pl_node *node = &g->node[id];
    bool narrows = node->op == PL_OP_CAST && g->value[node->in[0]].dtype == PL_DTYPE_F32;
    if (node->op == PL_OP_EMBEDDING || narrows) set_dtype(n, node->out[0], n->dtype);
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        if (!(matrix_inputs(node->op) >> k & 1)) continue;
        if (g->value[node->in[0]].dtype != n->dtype || g->value[node->in[k]].program != PL_NONE) continue;
        pl_id copy = copy_of(n, node->in[k]);
        PL_TRY(n->b.status);
        node = &g->node[id]; /* the array may have moved */
        node->in[k] = copy;
    }
    pl_out made[PL_NODE_OUT_MAX] = {0};
    PL_TRY(pl_op_rule_of(node->op)->shape(g, node, made, err));
    for (int i = 0; i < PL_NODE_OUT_MAX; i++)
        if (node->out[i] != PL_NONE && g->value[node->out[i]].dtype != made[i].dtype)
            set_dtype(n, node->out[i], made[i].dtype);
    return PL_OK;
}

/* The casts were added behind all nodes; they belong right before the repeated region. */
static pl_status put_casts_in_place(const narrower *n, size_t nodes, size_t first_inner, pl_error *err)
{
    pl_graph *g = n->g;
    size_t at = 0;
    pl_id *order = pl_alloc(g->node_count + 1, sizeof *order);
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < first_inner; i++) order[at++] = (pl_id)i;
    for (size_t i = nodes; i < g->node_count; i++) order[at++] = (pl_id)i;
    for (size_t i = first_inner; i < nodes; i++) order[at++] = (pl_id)i;
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    return status;
}

static pl_status init(narrower *n, pl_error *err)
{
    const pl_graph *g = n->g;
    n->copy = pl_alloc(g->value_count + 1, sizeof *n->copy);
    n->next_window = pl_alloc(g->value_count + 1, sizeof *n->next_window);
    if (!n->copy || !n->next_window) return pl_fail(err, PL_E_NOMEM, "no memory to narrow the graph");
    for (size_t i = 0; i < g->value_count; i++) n->copy[i] = n->next_window[i] = PL_NONE;
    for (size_t i = 0; i < g->value_count; i++) {
        pl_id root = pl_value_root(g, (pl_id)i);
        if (root == i) continue;
        n->next_window[i] = n->next_window[root];
        n->next_window[root] = (pl_id)i;
    }
    return PL_OK;
}

pl_status pl_rewrite_precision(pl_graph *g, pl_id program, pl_dtype dtype, pl_error *err)
{
    narrower n = {.g = g, .program = program, .dtype = dtype, .values = g->value_count};
    size_t nodes = g->node_count, first_inner = nodes;
    pl_status status = PL_OK;
    if (dtype == PL_DTYPE_F32) return PL_OK;
    n.b = pl_builder_begin(g, program, err);
    PL_TRY_DONE(init(&n, err));
    for (size_t i = nodes; i-- > 0;)
        if (is_inner(&n, &g->node[i])) first_inner = i;
    for (size_t i = first_inner; i < nodes; i++)
        if (is_inner(&n, &g->node[i])) PL_TRY_DONE(narrow_node(&n, (pl_id)i, err));
    PL_TRY_DONE(put_casts_in_place(&n, nodes, first_inner, err));
    if (dtype == PL_DTYPE_F16 && first_inner < nodes) PL_TRY_DONE(pl_rewrite_loss_scale(g, program, err));
done:
    pl_free(n.copy);
    pl_free(n.next_window);
    return status;
}
