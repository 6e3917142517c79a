/* Rows of a product, read off the graph: what the limit on micro-batches and the size of chunks are counted in. A
 * convolution has a row for each pixel that it makes. */
#include "fit/fit.h"

/* Of a program whose batch is open its values say so; once it is bound the program does. What never has a batch
 * (generating) is no measure of one. */
static bool has_batch(const pl_graph *g, const pl_node *n, const pl_value *v)
{
    return v->shape.symbolic || g->region[pl_region_program(g, n->region)].batch > 0;
}

/* The value that has the rows of the node's product; PL_NONE: it is none. */
static pl_id rows_are_of(const pl_node *n)
{
    if (n->op == PL_OP_LINEAR) return n->linear.x;
    if (n->op == PL_OP_LINEAR_BINARY) return n->linear_binary.x;
    return n->op == PL_OP_CONV2D ? n->conv2d.y : PL_NONE;
}

int64_t pl_fit_rows(const pl_graph *g)
{
    int64_t most = 1;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const pl_id of = rows_are_of(n);
        if (n->dead || of == PL_NONE || !has_batch(g, n, &g->value[of])) continue;
        int64_t rows = pl_shape_rows(&g->value[of].shape);
        if (rows > most) most = rows;
    }
    return most;
}
