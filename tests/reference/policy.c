/* What a policy draws and tries, from what op_policy.c says. */
#include <math.h>

#include "base/philox.h"
#include "base/policy.h"
#include "reference/state.h"

static double random_of(pl_perturbation kind, const uint32_t bits[4], uint64_t e)
{
    if (kind == PL_PERTURB_GUMBEL) {
        const double u = (floor((double)bits[e % 4] / 256) + 0.5) / 16777216;
        return -log(-log(u));
    }
    const uint32_t *pair = bits + e % 4 / 2 * 2; /* Box-Muller */
    const double radius = sqrt(-2 * log(((double)pair[0] + 0.5) / 4294967296.0));
    const double angle = 6.283185307179586 * ((double)pair[1] + 0.5) / 4294967296.0;
    return radius * (e % 2 ? sin(angle) : cos(angle));
}

void reference_perturb(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape;
    const pl_attr *a = o->node->attr;
    const uint64_t width = (uint64_t)x->dim[1], row = width * (uint64_t)a[0].i, all = row * (uint64_t)x->dim[0];
    const pl_philox philox = pl_philox_init((uint64_t)a[3].i, (uint64_t)a[4].i);
    double *y = scratch(o, all);
    for (uint64_t i = 0; i < all; i++) {
        const uint64_t b = i / row, e = i % row;
        uint32_t bits[4];
        pl_philox_block(&philox, (uint32_t)o->in[1][0], (uint64_t)o->in[2][0] + b, (uint32_t)(e / 4), bits);
        y[i] = o->in[0][b * width + e % width] + a[2].f * random_of((pl_perturbation)a[1].i, bits, e);
    }
    put(o, 0, y);
}

void reference_shift(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape;
    const int64_t height = x->dim[1], width = x->dim[2], all = x->dim[0] * height * width;
    const double reach = (double)o->node->attr[0].i;
    double *y = scratch(o, (uint64_t)all);
    for (int64_t i = 0; i < all; i++) {
        const int64_t page = i / height / width;
        const double right = fmin(fmax(o->in[1][page], 0), 2 * reach) - reach,
                     down = fmin(fmax(o->in[2][page], 0), 2 * reach) - reach;
        const double c = (double)(i % width) - right, r = (double)(i / width % height) - down;
        const bool inside = c >= 0 && c < (double)width && r >= 0 && r < (double)height;
        y[i] = inside ? o->in[0][(page * height + (int64_t)r) * width + (int64_t)c] : 255;
    }
    put(o, 0, y);
}
