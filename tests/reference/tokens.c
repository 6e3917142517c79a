/* Tokens of images: patches, positions. */
#include <math.h>

#include "reference/state.h"

/* y[b, (i, j), c, r, q] = x[b, i·p + r, j·p + q, c]/255 */
void reference_patches(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t p = o->node->attr[0].i, channels = o->node->attr[1].i, depth = s->rank == 4 ? s->dim[3] : 1;
    double *y = scratch(o, reference_elems(o->r, o->node->out[0])), *at = y;
    for (int64_t b = 0; b < s->dim[0]; b++)
        for (int64_t i = 0; i < s->dim[1] / p; i++)
            for (int64_t j = 0; j < s->dim[2] / p; j++)
                for (int64_t e = 0; e < channels * p * p; e++) {
                    int64_t c = e / (p * p), row = i * p + e / p % p, column = j * p + e % p;
                    int64_t pixel = (b * s->dim[1] + row) * s->dim[2] + column;
                    *at++ = o->in[0][pixel * depth + (depth > 1 ? c : 0)] / 255;
                }
    put(o, 0, y);
}

void reference_add_positions(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape), sample = pl_shape_elems(&operand(o, 1)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[0][i] += o->in[1][i % sample];
    put(o, 0, o->in[0]);
}
