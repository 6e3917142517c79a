/* Layers that the parts of arch hybrid share. */
#include <math.h>

#include "models/hybrid.h"

pl_id pl_hybrid_linear(const pl_hybrid *k, pl_id x, int64_t out, const char *name)
{
    return pl_net_torch_linear(k->n, x, PL_DTYPE_F32, pl_shape_of(2, out, pl_net_last_extent(k->n, x)), name);
}

pl_id pl_hybrid_two_linears(const pl_hybrid *k, pl_id x, int64_t inner, int64_t out, const char *name)
{
    return pl_net_two_linears(k->n, x, PL_DTYPE_F32, inner, PL_ACT_GELU, out, name);
}

pl_id pl_hybrid_blend(const pl_hybrid *k, pl_id a, pl_id b, pl_id logit, pl_id *gates)
{
    pl_blend_args blend = pl_blend_none;
    blend.a = a, blend.b = b, blend.z = logit;
    if (gates) blend.gate = PL_NONE;
    pl_build_blend(&k->n->b, &blend);
    if (gates) *gates = blend.gate;
    return blend.y;
}

/* b by an affine map that turns its sign */
pl_id pl_hybrid_minus(const pl_hybrid *k, pl_id a, pl_id b)
{
    pl_shape row = pl_shape_of(2, PL_B(1), pl_net_last_extent(k->n, a));
    if (a != PL_NONE) row.dim[0] = k->n->b.graph->value[a].shape.dim[0];
    pl_film_args turned = pl_film_none;
    const pl_id scale = pl_hybrid_fill(k, PL_DTYPE_F32, -1, row), shift = pl_hybrid_fill(k, PL_DTYPE_F32, 0, row);
    turned.x = b, turned.film = pl_net_join(k->n, scale, shift);
    return pl_net_add(k->n, a, pl_build_film(&k->n->b, &turned));
}

pl_id pl_hybrid_cast(const pl_hybrid *k, pl_id x)
{
    const size_t number = k->n->b.status == PL_OK ? k->n->b.graph->value_count : 0;
    return pl_net_cast(k->n, x, PL_DTYPE_F32, "cast.%zu", number);
}

/* in_proj is Xavier's for one matrix of [3D, D]; its bias and that of the output begin as zero. */
pl_id pl_hybrid_encoder_layers(const pl_hybrid *k, const pl_hybrid_layer *l, int64_t count, pl_id x, const char *names)
{
    const double d = (double)k->width;
    const pl_init torch = pl_init_within(1 / sqrt(d)), torch_inner = pl_init_within(1 / sqrt(4 * d)),
                  xavier = pl_init_within(sqrt(6.0 / (4.0 * d))), zero = pl_init_all(0);
    const pl_transformer t = {.width = k->width,
                              .heads = l->heads,
                              .inner = 4 * k->width,
                              .norm = {.eps = l->eps},
                              .norm1 = "norm1",
                              .norm2 = "norm2",
                              .query = {"self_attn.in_proj_weight", "self_attn.in_proj_bias", xavier, zero},
                              .output = PL_PROJECTION("self_attn.out_proj", torch, zero),
                              .sequences = l->sequences > 1 ? l->sequences : 0,
                              .up = PL_PROJECTION("linear1", torch, torch),
                              .down = PL_PROJECTION("linear2", torch_inner, torch_inner),
                              .activation = PL_ACT_GELU,
                              .dropout = l->dropout,
                              .weight_dropout = l->dropout,
                              .hidden_dropout = l->dropout};
    return pl_net_stack(k->n, &(pl_stack){"layer", names, false, 0, count}, &t, x);
}
