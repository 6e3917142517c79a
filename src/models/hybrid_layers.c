/* Layers that the parts of arch hybrid share. */
#include <math.h>
#include <stdio.h>

#include "models/hybrid.h"

static int64_t width_of(const pl_hybrid *k, pl_id x)
{
    return x == PL_NONE ? 1 : pl_shape_last(&k->m->b.graph->value[x].shape);
}

static pl_id torch_linear(const pl_hybrid *k, pl_id x, pl_id residual, int64_t out, const char *name)
{
    const int64_t in = width_of(k, x);
    const double bound = 1 / sqrt((double)in);
    pl_id w = pl_model_uniform(k->m, PL_DTYPE_F32, -bound, bound, pl_shape_of(2, out, in), "%s.weight", name);
    pl_id bias = pl_model_uniform(k->m, PL_DTYPE_F32, -bound, bound, pl_shape_of(1, out), "%s.bias", name);
    return pl_model_linear(k->m, x, w, bias, residual);
}

pl_id pl_hybrid_linear(const pl_hybrid *k, pl_id x, int64_t out, const char *name)
{
    return torch_linear(k, x, PL_NONE, out, name);
}

pl_id pl_hybrid_activate(const pl_hybrid *k, pl_activation act, pl_id x)
{
    pl_activation_args a = pl_activation_none;
    a.x = x, a.act = act;
    return pl_build_activation(&k->m->b, &a);
}

pl_id pl_hybrid_two_linears(const pl_hybrid *k, pl_id x, int64_t inner, int64_t out, const char *name)
{
    char layer[96];
    snprintf(layer, sizeof layer, "%s.0", name);
    x = pl_hybrid_activate(k, PL_ACT_GELU, pl_hybrid_linear(k, x, inner, layer));
    snprintf(layer, sizeof layer, "%s.2", name);
    return pl_hybrid_linear(k, x, out, layer);
}

pl_id pl_hybrid_blend(const pl_hybrid *k, pl_id a, pl_id b, pl_id logit, pl_id *gates)
{
    pl_blend_args blend = pl_blend_none;
    blend.a = a, blend.b = b, blend.z = logit;
    if (gates) blend.gate = PL_NONE;
    pl_build_blend(&k->m->b, &blend);
    if (gates) *gates = blend.gate;
    return blend.y;
}

/* b by an affine map that turns its sign */
pl_id pl_hybrid_minus(const pl_hybrid *k, pl_id a, pl_id b)
{
    pl_shape row = pl_shape_of(2, PL_B(1), width_of(k, a));
    if (a != PL_NONE) row.dim[0] = k->m->b.graph->value[a].shape.dim[0];
    pl_concat_args map = pl_concat_none;
    pl_film_args turned = pl_film_none;
    pl_add_args sum = pl_add_none;
    map.part[0] = pl_hybrid_fill(k, PL_DTYPE_F32, -1, row);
    map.part[1] = pl_hybrid_fill(k, PL_DTYPE_F32, 0, row);
    turned.x = b, turned.film = pl_build_concat(&k->m->b, &map);
    sum.a = a, sum.b = pl_build_film(&k->m->b, &turned);
    return pl_build_add(&k->m->b, &sum);
}

pl_id pl_hybrid_cast(const pl_hybrid *k, pl_id x)
{
    pl_builder *b = &k->m->b;
    if (b->status != PL_OK) return PL_NONE;
    pl_cast_args cast = pl_cast_none;
    cast.x = x;
    cast.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, b->graph->value[x].shape, "cast.%zu",
                                b->graph->value_count);
    return pl_build_cast(b, &cast);
}

pl_id pl_hybrid_norm(const pl_hybrid *k, pl_id x, double eps, bool frozen, const char *name)
{
    const pl_shape s = pl_shape_of(1, k->width);
    pl_layer_norm_args norm = pl_layer_norm_none;
    norm.x = x, norm.eps = eps;
    norm.gamma = pl_model_freeze(k->m, frozen, pl_model_constant(k->m, 1, s, "%s.weight", name));
    norm.beta = pl_model_freeze(k->m, frozen, pl_model_constant(k->m, 0, s, "%s.bias", name));
    if (k->m->training && !frozen) norm.mean = norm.rstd = PL_NONE;
    return pl_build_layer_norm(&k->m->b, &norm);
}

pl_id pl_hybrid_attend(const pl_hybrid *k, int64_t heads, const pl_id qkv[3], double dropout, int64_t sequences,
                       bool taped)
{
    pl_model *m = k->m;
    pl_attention_args a = pl_attention_none;
    a.q = qkv[0], a.k = qkv[1], a.v = qkv[2];
    a.heads = heads, a.scale = 1 / sqrt((double)k->width / (double)heads), a.probability = dropout;
    if (dropout > 0) {
        a.step = m->input[PL_INPUT_STEP], a.first_sample = m->input[PL_INPUT_FIRST_SAMPLE];
        a.seed = m->config->train.seed, a.stream = pl_model_stream(m, "weights");
        a.sequences = sequences > 1 ? sequences : 0;
    }
    if (m->training && taped) a.lse = PL_NONE;
    return pl_build_attention(&m->b, &a);
}

/* ---- PyTorch's TransformerEncoderLayer ---- */

/* in_proj is Xavier's for one matrix of [3D, D]; its bias and that behind it begin as zero. */
static pl_id attention(const pl_hybrid *k, const pl_hybrid_layer *l, pl_id x, pl_id residual, const char *name)
{
    pl_model *m = k->m;
    const int64_t d = k->width, positions = k->m->b.status == PL_OK ? m->b.graph->value[x].shape.dim[1] : 1;
    const double xavier = sqrt(6.0 / (4.0 * (double)d)), bound = 1 / sqrt((double)d);
    pl_id w = pl_model_uniform(m, PL_DTYPE_F32, -xavier, xavier, pl_shape_of(2, 3 * d, d), "%s.in_proj_weight", name);
    pl_id bias = pl_model_constant(m, 0, pl_shape_of(1, 3 * d), "%s.in_proj_bias", name);
    if (l->sequences > 1) x = pl_model_view(m, x, pl_shape_of(3, PL_B(l->sequences), positions / l->sequences, d));
    pl_id all = pl_model_linear(m, x, w, bias, PL_NONE), qkv[3];
    for (int i = 0; i < 3; i++) qkv[i] = pl_model_columns(m, all, i * d, d);
    x = pl_hybrid_attend(k, l->heads, qkv, m->training ? l->dropout : 0, l->sequences, true);
    if (l->sequences > 1) x = pl_model_view(m, x, pl_shape_of(3, PL_B(1), positions, d));
    w = pl_model_uniform(m, PL_DTYPE_F32, -bound, bound, pl_shape_of(2, d, d), "%s.out_proj.weight", name);
    bias = pl_model_constant(m, 0, pl_shape_of(1, d), "%s.out_proj.bias", name);
    if (!m->training || l->dropout == 0) return pl_model_linear(m, x, w, bias, residual);
    return pl_model_drop(m, l->dropout, pl_model_linear(m, x, w, bias, PL_NONE), residual);
}

static pl_id feed_forward(const pl_hybrid *k, const pl_hybrid_layer *l, pl_id x, pl_id residual, const char *name)
{
    pl_model *m = k->m;
    char layer[128];
    const bool drops = k->m->training && l->dropout > 0;
    snprintf(layer, sizeof layer, "%s.linear1", name);
    pl_id h = pl_hybrid_activate(k, PL_ACT_GELU, pl_hybrid_linear(k, x, 4 * k->width, layer));
    pl_builder_enter(&k->m->b, "inner");
    if (drops) h = pl_model_drop(m, l->dropout, h, PL_NONE);
    pl_builder_leave(&k->m->b);
    snprintf(layer, sizeof layer, "%s.linear2", name);
    if (!drops) return torch_linear(k, h, residual, k->width, layer);
    return pl_model_drop(m, l->dropout, pl_hybrid_linear(k, h, k->width, layer), residual);
}

pl_id pl_hybrid_encoder_layer(const pl_hybrid *k, const pl_hybrid_layer *l, pl_id x, const char *name)
{
    pl_builder *b = &k->m->b;
    char part[128];
    pl_builder_enter(b, "attention");
    snprintf(part, sizeof part, "%s.norm1", name);
    pl_id h = pl_hybrid_norm(k, x, l->eps, false, part);
    snprintf(part, sizeof part, "%s.self_attn", name);
    x = attention(k, l, h, x, part);
    pl_builder_leave(b);
    pl_builder_enter(b, "feed_forward");
    snprintf(part, sizeof part, "%s.norm2", name);
    x = feed_forward(k, l, pl_hybrid_norm(k, x, l->eps, false, part), x, name);
    pl_builder_leave(b);
    return x;
}
