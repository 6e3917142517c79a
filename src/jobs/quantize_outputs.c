/* A model as a whole that nothing held out judges: what it gives out first (of a text the sketches of its capsules), of
 * each sample in f32 and then in 8 bits, row by row by the cosine of the two. */
#include <math.h>

#include "ir/op.h"
#include "ir/properties.h"
#include "jobs/quantize_impl.h"

const pl_real pl_quantize_reals[PL_DTYPE_COUNT] = {
    [PL_DTYPE_F32] = PL_REAL_F32, [PL_DTYPE_BF16] = PL_REAL_BF16, [PL_DTYPE_F16] = PL_REAL_F16};

static bool gives_out(const pl_graph *g, const pl_node *n)
{
    return n->op == PL_OP_STORE && pl_node_returned_port(g, n) == PL_NONE && pl_dtype_is_real(g->value[n->in[0]].dtype);
}

pl_id pl_quantize_find_output(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (gives_out(g, &g->node[i])) return g->node[i].in[0];
    return PL_NONE;
}

void pl_quantize_open_outputs(const pl_session *s, pl_quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_id output = pl_quantize_find_output(g);
    if (output == PL_NONE) return;
    q->outputs = (pl_quantize_outputs){.wide = (float *)(void *)q->rows,
                                       .real = pl_quantize_reals[g->value[output].dtype],
                                       .count = pl_shape_elems(&g->value[output].shape),
                                       .width = (uint64_t)pl_shape_last(&g->value[output].shape),
                                       .least = INFINITY};
}

static void add_cosine(pl_quantize_outputs *o, const void *narrow, uint64_t row)
{
    double product = 0, a = 0, b = 0;
    for (uint64_t i = row * o->width; i < (row + 1) * o->width; i++) {
        const double x = (double)o->wide[i], y = (double)pl_real_get(o->real, narrow, (int64_t)i);
        product += x * y, a += x * x, b += y * y;
    }
    if (!(a > 0) || !(b > 0)) return; /* has no direction */
    const double cosine = product / sqrt(a * b);
    o->least = fmin(o->least, cosine);
    o->sum += cosine;
    o->rows++;
}

void pl_quantize_take_output(pl_quantizing *q, const pl_store_call *call)
{
    pl_quantize_outputs *o = &q->outputs;
    const uint64_t rows = o->count / o->width;
    if (q->takes == PL_QUANTIZE_WIDE)
        for (uint64_t i = 0; i < o->count; i++) o->wide[i] = pl_real_get(o->real, call->port[0].at, (int64_t)i);
    else
        for (uint64_t r = 0; r < rows; r++) add_cosine(o, call->port[0].at, r);
}
