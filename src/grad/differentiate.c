/* Reverse mode over the graph (the driver knows no operator by name): the nodes of the forward pass are visited from
 * last to first and each operator's rule, in ir/, adds the nodes of its derivative. */
#include "grad/differentiate.h"

#include <stdio.h>
#include <string.h>

#include "ir/op.h"

/* Which values the program's nodes read. */
static void mark_read(const pl_graph *g, pl_id program, bool *read)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] != PL_NONE) read[n->in[k]] = true;
    }
}

/* A window on a weight would be trained by nobody. */
static pl_status check_windows(const pl_graph *g, const bool *read, pl_error *err)
{
    for (size_t i = 0; i < g->value_count; i++) {
        pl_id root = pl_value_root(g, (pl_id)i);
        bool window = g->value[i].view_of != PL_NONE && g->value[root].role == PL_ROLE_WEIGHT;
        if (window && read[i])
            return pl_fail(err, PL_E_UNSUPPORTED, "the weight %s is read through a window, which has no gradient rule",
                           g->value[root].name);
    }
    return PL_OK;
}

/* One zeroed gradient per weight that the program reads. */
static pl_status add_accumulators(pl_builder *b, const bool *read, size_t values, pl_id *accumulator)
{
    pl_graph *g = b->graph;
    for (size_t i = 0; i < values && b->status == PL_OK; i++) {
        if (g->value[i].role != PL_ROLE_WEIGHT || !read[i]) continue;
        pl_id grad;
        snprintf(b->scope, sizeof b->scope, "%s", g->value[i].scope);
        grad = pl_build_temporary(b, PL_ROLE_GRADIENT, PL_DTYPE_F32, g->value[i].shape, "grad.%s", g->value[i].name);
        pl_id out = grad;
        pl_build_node(b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
        accumulator[i] = grad;
    }
    b->scope[0] = 0;
    return b->status;
}

static pl_status visit(pl_gradient *grad, pl_id id, pl_id program)
{
    pl_graph *g = grad->b->graph;
    pl_node n = g->node[id]; /* a copy: the array may move while rules add to it */
    const pl_op_rule *rule = pl_op_rule_of(n.op);
    if (n.dead || !rule->gradient || pl_region_program(g, n.region) != program) return PL_OK;
    snprintf(grad->b->scope, sizeof grad->b->scope, "%s", n.scope);
    grad->b->region = n.region;
    grad->replaced = false;
    PL_TRY(rule->gradient(grad, &n));
    if (grad->replaced) grad->b->graph->node[id].dead = true;
    return grad->b->status;
}

/* The zero nodes were added behind the forward nodes; they belong before everything else of their program. */
static pl_status zero_first(pl_graph *g, size_t first_zero, size_t zeros, pl_error *err)
{
    pl_id *order = pl_alloc(g->node_count, sizeof *order), at = 0;
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < zeros; i++) order[at++] = (pl_id)(first_zero + i);
    for (size_t i = 0; i < g->node_count; i++)
        if (i < first_zero || i >= first_zero + zeros) order[at++] = (pl_id)i;
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    return status == PL_OK ? pl_graph_group_programs(g, err) : status;
}

pl_status pl_grad_differentiate(pl_graph *g, pl_id program, pl_error *err)
{
    size_t values = g->value_count, nodes = g->node_count;
    pl_status status = PL_OK;
    pl_builder b = pl_builder_begin(g, program, err);
    pl_gradient grad = {.b = &b, .count = values};
    grad.of = pl_alloc(values, sizeof *grad.of);
    grad.accumulator = pl_alloc(values, sizeof *grad.accumulator);
    bool *read = pl_alloc(values + 1, sizeof *read);
    if (!grad.of || !grad.accumulator || !read)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to differentiate the graph"));
    mark_read(g, program, read);
    PL_TRY_DONE(check_windows(g, read, err));
    for (size_t i = 0; i < values; i++) grad.of[i] = grad.accumulator[i] = PL_NONE;
    PL_TRY_DONE(add_accumulators(&b, read, values, grad.accumulator));
    size_t zeros = g->node_count - nodes;
    b.phase = PL_PHASE_BACKWARD;
    for (size_t i = nodes; i-- > 0;) PL_TRY_DONE(visit(&grad, (pl_id)i, program));
    PL_TRY_DONE(zero_first(g, nodes, zeros, err));
    pl_graph_sweep(g);
done:
    pl_free(grad.of);
    pl_free(grad.accumulator);
    pl_free(read);
    return status;
}
