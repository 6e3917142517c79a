/* Mixed precision (Micikevicius et al. 2018): activations and their gradients are stored with 16 bits, everything that
 * is summed up or kept from step to step stays f32.
 *
 *   before the repeated region    bf16.W = cast(W)            once a step, for each matrix of a product
 *   within it                     x = embedding(E)  bf16      from the f32 table
 *                                 y = linear(x, bf16.W)       and so on: each operator's shape rule says what its
 *                                                             outputs are when its inputs are of 16 bits
 *   after it                      the update                  f32, as it was
 *
 * A program that uses a model, where nothing is trained, is narrowed throughout:
 *
 *   x = embedding(bf16.E)  bf16       tables, too, and the caches of keys and values
 *   logits = linear(x, bf16.E)  f32   what is given out is f32, as it was: the sums of a product,
 *   y = cast(bf16.y)  f32             or a copy of what another operator made
 *
 * and its matrices are then stored in 16 bits (frozen_storage.c), for which they are marked as frozen: no copy is made.
 *
 * So the pass knows where numbers become narrow (at the embedding, or at a cast from f32, by which a model marks where
 * its images enter and where gradients return from a part that stays wide) and which input is a matrix. The operators
 * know which outputs follow, and that statistics, losses and the gradients of weights do not.
 *
 * f16 has 5 bits of exponent: small gradients would vanish, so the loss is scaled (loss_scale.c). */
#include <stdio.h>

#include "ir/op.h"
#include "ir/properties.h"
#include "rewrite/rewrite.h"

typedef struct narrower {
    pl_graph *g;
    pl_id program;
    pl_dtype dtype;
    pl_builder b;
    bool trains;
    size_t values, nodes; /* before the first copy */
    pl_id *copy;          /* [values] the 16-bit copy of a weight, or PL_NONE */
    pl_id *next_window;   /* [values] the windows on a value's storage, in a list that begins at the root */
    bool *flows;          /* [values] roots only: a node reads it, and not only to output it */
    bool *rounded;        /* [values] the model itself has it in that type */
    pl_id *behind;        /* [new nodes] the node that it follows; PL_NONE: before all that are narrowed */
} narrower;

/* What a training does once a step, outside the repeated region, stays as it is. */
static bool is_narrowed(const narrower *n, const pl_node *node)
{
    const bool is_outside = n->trains && node->region == n->program;
    return !node->dead && !is_outside && pl_region_program(n->g, node->region) == n->program;
}

/* A value and all windows on its storage have one dtype. */
static void set_dtype(narrower *n, pl_id value, pl_dtype dtype)
{
    pl_id root = pl_value_root(n->g, value);
    for (pl_id v = root; v != PL_NONE; v = v < n->values ? n->next_window[v] : PL_NONE) n->g->value[v].dtype = dtype;
}

static void build_cast(narrower *n, pl_id from, pl_id to)
{
    pl_cast_args cast = pl_cast_none;
    cast.x = from, cast.y = to;
    pl_build_cast(&n->b, &cast);
}

/* Several programs that use a model each have their own copy, named after the program. Only one trains. */
static pl_id copy_of(narrower *n, pl_id weight)
{
    pl_graph *g = n->g;
    if (n->copy[weight] != PL_NONE) return n->copy[weight];
    const char *user = n->trains ? "" : g->region[n->program].name, *dot = n->trains ? "" : ".";
    char name[256];
    snprintf(name, sizeof name, "%s", g->value[weight].name);
    pl_builder_at_value(&n->b, weight);
    pl_id to = pl_build_temporary(&n->b, PL_ROLE_WEIGHT, n->dtype, g->value[weight].shape, "%s.%s%s%s",
                                  pl_dtype_name(n->dtype), user, dot, name);
    pl_build_belongs(&n->b, to, pl_value_root(g, weight));
    if (!n->trains) g->value[pl_value_root(g, weight)].frozen = true;
    n->b.region = n->program;
    n->behind[g->node_count - n->nodes] = PL_NONE;
    build_cast(n, weight, to);
    return n->copy[weight] = to;
}

/* Makes the node read narrow copies of its matrices. */
static pl_status take_copies(narrower *n, pl_id id, uint32_t which)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        const pl_id weight = n->g->node[id].in[k];
        if (!(which >> k & 1) || weight == PL_NONE || n->g->value[weight].program != PL_NONE) continue;
        const pl_id copy = copy_of(n, weight);
        PL_TRY(n->b.status);
        n->g->node[id].in[k] = copy;
    }
    return PL_OK;
}

/* A copy in f32 after node `behind`, for `beside` to read or of what `beside` made. */
static pl_id wide_copy(narrower *n, pl_id beside, pl_id value, pl_id behind, pl_role role, const char *name)
{
    const pl_node like = n->g->node[beside];
    pl_builder_at_node(&n->b, &like);
    n->b.phase = like.phase;
    pl_id wide = pl_build_temporary(&n->b, role, PL_DTYPE_F32, n->g->value[value].shape, "%s", name);
    n->behind[n->g->node_count - n->nodes] = behind;
    build_cast(n, value, wide);
    if (n->b.status != PL_OK) return PL_NONE;
    n->g->node[n->g->node_count - 1].predicate = like.predicate;
    return wide;
}

/* The copy takes over the value's name and role. */
static pl_status give_out_wide(narrower *n, pl_id id, pl_id value, pl_id behind, pl_id *wide)
{
    const pl_value v = n->g->value[value];
    char name[256];
    snprintf(name, sizeof name, "%s.%.200s", pl_dtype_name(n->dtype), v.name);
    const char *kept = pl_pool_strdup(n->g->pool, name);
    if (!kept) return pl_fail(n->b.err, PL_E_NOMEM, "no memory to narrow the graph");
    n->g->value[value].name = kept;
    n->g->value[value].role = PL_ROLE_TEMPORARY;
    *wide = wide_copy(n, id, value, behind, v.role, v.name);
    return n->b.status;
}

/* Sums that only a STORE or the caller reads need not be rounded: an f32 copy would hold only what rounding left. */
static bool gives_out_sums(const narrower *n, const pl_linear_args *a)
{
    const pl_id y = a->y;
    if (n->trains || a->residual != PL_NONE || a->act_y != PL_NONE || y >= n->values) return false;
    return pl_value_root(n->g, y) == y && !n->flows[y];
}

static bool is_narrow(const narrower *n, pl_id value)
{
    return value != PL_NONE && n->g->value[value].dtype == n->dtype;
}

static pl_status store_wide(narrower *n, pl_id id)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        pl_id wide, x = n->g->node[id].in[k];
        if (!is_narrow(n, x) || (x < n->values && n->rounded[x])) continue;
        PL_TRY(give_out_wide(n, id, x, id - 1, &wide));
        n->g->node[id].in[k] = wide;
    }
    return PL_OK;
}

static pl_status put_out_wide(narrower *n, pl_id id)
{
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        pl_id wide, x = n->g->node[id].out[k];
        if (is_narrow(n, x) && n->g->value[x].role == PL_ROLE_OUTPUT) PL_TRY(give_out_wide(n, id, x, id, &wide));
    }
    return PL_OK;
}

static pl_status read_wide(narrower *n, pl_id id)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        char name[280];
        const pl_id x = n->g->node[id].in[k];
        if (!is_narrow(n, x)) continue;
        snprintf(name, sizeof name, "wide.%.200s.%zu", n->g->value[x].name, n->g->value_count);
        n->g->node[id].in[k] = wide_copy(n, id, x, id - 1, PL_ROLE_TEMPORARY, name);
        PL_TRY(n->b.status);
    }
    return PL_OK;
}

/* The model itself has it in 16 bits. */
static bool is_rounded(const narrower *n, pl_id value)
{
    return value < n->values && n->g->value[value].dtype != PL_DTYPE_F32;
}

/* Narrows what a training does not have, or has in f32. */
static pl_status narrow_use(narrower *n, pl_id id)
{
    const pl_node *node = &n->g->node[id];
    const uint32_t tables = PL_BIT_OF(embedding, table) | PL_BIT_OF(embedding, positions);
    if (node->op == PL_OP_EMBEDDING) return take_copies(n, id, tables);
    if (node->op == PL_OP_CACHE_WRITE && is_narrow(n, node->cache_write.x) && !is_rounded(n, node->cache_write.cache))
        set_dtype(n, node->cache_write.cache, n->dtype);
    return node->op == PL_OP_STORE ? store_wide(n, id) : PL_OK;
}

/* An input that an operator does not take in 16 bits, or not together with an f32 one, is read as a copy in f32. In a
 * training the models see to that themselves, since gradients come back there. */
static pl_status shape_narrowed(narrower *n, pl_id id, pl_out made[], pl_error *err)
{
    pl_error why = {0};
    const pl_status status = pl_node_infer(n->g, &n->g->node[id], made, &why);
    if (status == PL_OK || n->trains) return status == PL_OK ? PL_OK : (*err = why, status);
    PL_TRY(read_wide(n, id));
    return pl_node_infer(n->g, &n->g->node[id], made, err);
}

/* The output has the type of the input. */
static void follow(narrower *n, const pl_linear_args *a)
{
    const pl_dtype dtype = n->g->value[a->x].dtype;
    set_dtype(n, a->y, dtype);
    if (a->act_y != PL_NONE) set_dtype(n, a->act_y, dtype);
}

/* Where numbers become narrow. */
static void begin_narrow(narrower *n, const pl_node *node)
{
    if (node->op == PL_OP_EMBEDDING) set_dtype(n, node->embedding.x, n->dtype);
    if (node->op == PL_OP_CAST && n->g->value[node->cast.x].dtype == PL_DTYPE_F32) set_dtype(n, node->cast.y, n->dtype);
}

/* A product of narrow numbers takes narrow matrices. */
static pl_status narrow_matrices(narrower *n, pl_id id)
{
    const pl_node *node = &n->g->node[id];
    const pl_signature *s = pl_signature_of(node->op);
    uint32_t matrices = 0;
    bool flows = false;
    for (int k = 0; k < s->ins; k++) {
        if (pl_operand_has(s->in, k, PL_MATRIX)) matrices |= 1u << k;
        flows |= pl_operand_has(s->in, k, PL_FLOW) && is_narrow(n, node->in[k]);
    }
    return flows ? take_copies(n, id, matrices) : PL_OK;
}

static pl_status narrow_node(narrower *n, pl_id id, pl_error *err)
{
    pl_graph *g = n->g;
    begin_narrow(n, &g->node[id]);
    if (!n->trains) PL_TRY(narrow_use(n, id));
    PL_TRY(narrow_matrices(n, id));
    const pl_node *node = &g->node[id]; /* the array may have moved */
    if (node->op == PL_OP_LINEAR && !gives_out_sums(n, &node->linear)) follow(n, &node->linear);
    pl_out made[PL_NODE_OUT_MAX] = {0};
    PL_TRY(shape_narrowed(n, id, made, err));
    node = &g->node[id];
    for (int i = 0; i < PL_NODE_OUT_MAX; i++)
        if (node->out[i] != PL_NONE && g->value[node->out[i]].dtype != made[i].dtype)
            set_dtype(n, node->out[i], made[i].dtype);
    return n->trains ? PL_OK : put_out_wide(n, id);
}

/* New nodes were added after all others. Those for weights belong right before the first that is narrowed; the others
 * were made in the order of the nodes that they follow. */
static pl_status put_casts_in_place(const narrower *n, size_t first, pl_error *err)
{
    pl_graph *g = n->g;
    size_t at = 0, next = 0;
    const size_t added = g->node_count - n->nodes;
    pl_id *order = pl_alloc(g->node_count + 1, sizeof *order);
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < first; i++) order[at++] = (pl_id)i;
    for (size_t i = 0; i < added; i++)
        if (n->behind[i] == PL_NONE) order[at++] = (pl_id)(n->nodes + i);
    for (size_t i = first; i < n->nodes; i++) {
        order[at++] = (pl_id)i;
        for (; next < added && (n->behind[next] == PL_NONE || n->behind[next] <= i); next++)
            if (n->behind[next] != PL_NONE) order[at++] = (pl_id)(n->nodes + next);
    }
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    return status;
}

static void find_flows(narrower *n)
{
    for (size_t i = 0; i < n->nodes; i++) {
        const pl_node *node = &n->g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (!node->dead && node->in[k] != PL_NONE && node->op != PL_OP_STORE)
                n->flows[pl_value_root(n->g, node->in[k])] = true;
    }
}

static pl_status init(narrower *n, pl_error *err)
{
    const pl_graph *g = n->g;
    n->copy = pl_alloc(g->value_count + 1, sizeof *n->copy);
    n->next_window = pl_alloc(g->value_count + 1, sizeof *n->next_window);
    n->flows = pl_alloc(g->value_count + 1, sizeof *n->flows);
    n->rounded = pl_alloc(g->value_count + 1, sizeof *n->rounded);
    n->behind = pl_alloc(2 * g->value_count + g->node_count * PL_NODE_IN_MAX + 1, sizeof *n->behind);
    if (!n->copy || !n->next_window || !n->flows || !n->rounded || !n->behind)
        return pl_fail(err, PL_E_NOMEM, "no memory to narrow the graph");
    find_flows(n);
    for (size_t i = 0; i < g->value_count; i++) {
        n->copy[i] = n->next_window[i] = PL_NONE;
        n->rounded[i] = g->value[i].dtype == n->dtype;
    }
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
    narrower n = {.g = g, .program = program, .dtype = dtype, .values = g->value_count, .nodes = g->node_count};
    size_t first = n.nodes;
    pl_status status = PL_OK;
    if (dtype == PL_DTYPE_F32) return PL_OK;
    n.trains = pl_program_is_trained(g, program);
    n.b = pl_builder_begin(g, program, err);
    PL_TRY_DONE(init(&n, err));
    for (size_t i = n.nodes; i-- > 0;)
        if (is_narrowed(&n, &g->node[i])) first = i;
    for (size_t i = first; i < n.nodes; i++)
        if (is_narrowed(&n, &g->node[i])) PL_TRY_DONE(narrow_node(&n, (pl_id)i, err));
    PL_TRY_DONE(put_casts_in_place(&n, first, err));
    if (dtype == PL_DTYPE_F16 && n.trains && first < n.nodes) PL_TRY_DONE(pl_rewrite_loss_scale(g, program, err));
done:
    pl_free(n.copy);
    pl_free(n.next_window);
    pl_free(n.flows);
    pl_free(n.rounded);
    pl_free(n.behind);
    return status;
}
