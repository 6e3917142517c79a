/* Linear layers of signs (ir/op_binary.c): a program packs the signs of each weight once, before its micro-batches, and
 * every layer that reads the weight multiplies by these. */
#include <stdio.h>

#include "layers/layers.h"

/* A program packs the signs of a weight the first time that they are asked for. */
static pl_id packed(pl_net *n, pl_id weight)
{
    pl_builder *b = &n->b;
    pl_pack_signs_args pack = pl_pack_signs_none;
    char name[2 * PL_NET_NAME_BYTES];
    if (b->status != PL_OK || weight == PL_NONE) return PL_NONE;
    const pl_id inner = b->region, program = pl_region_program(b->graph, inner);
    snprintf(name, sizeof name, "%s.signs.%s", b->graph->region[program].name, b->graph->value[weight].name);
    pl_id signs = pl_names_find(&n->lasting, b->graph, name);
    if (signs != PL_NONE) return signs;
    b->region = program;
    signs = pl_build_temporary(b, PL_ROLE_WEIGHT, PL_DTYPE_F32, b->graph->value[weight].shape, "%s", name);
    if (signs != PL_NONE) b->graph->value[signs].encoding = PL_ENCODING_SIGNS;
    pl_build_belongs(b, signs, weight);
    pack.weight = weight, pack.packed = signs;
    pl_build_pack_signs(b, &pack);
    b->region = inner;
    if (b->status == PL_OK) b->status = pl_names_add(&n->lasting, b->graph, signs, n->err);
    return b->status == PL_OK ? signs : PL_NONE;
}

pl_id pl_net_binary_linear(pl_net *n, pl_id x, pl_affine w, pl_id residual)
{
    const pl_id signs = packed(n, w.weight);
    pl_linear_binary_args a = pl_linear_binary_none;
    if (n->b.status != PL_OK || signs == PL_NONE) return PL_NONE;
    pl_value *weight = &n->b.graph->value[w.weight];
    weight->latent = true;
    a.x = x, a.packed = signs, a.bias = w.bias, a.residual = residual;
    if (n->training) a.latent = w.weight;
    return pl_build_linear_binary(&n->b, &a);
}

pl_status pl_net_finish(pl_net *n)
{
    pl_graph *g = n->b.graph;
    pl_id *order = pl_alloc(g->node_count + 1, sizeof *order), at = 0;
    if (!order) return pl_fail(n->err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_PACK_SIGNS) order[at++] = (pl_id)i;
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op != PL_OP_PACK_SIGNS) order[at++] = (pl_id)i;
    const pl_status status = pl_graph_reorder(g, order, n->err);
    pl_free(order);
    return status == PL_OK ? pl_graph_group_programs(g, n->err) : status;
}
