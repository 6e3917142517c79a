/* Blocks of attention and a feed-forward layer, with a norm before each (Vaswani et al. 2017, Xiong et al. 2020) or on
 * each sum. Attention and feed-forward layer are scopes of their own. */
#include <math.h>
#include <stdio.h>

#include "layers/layers.h"

/* Rows that a gated feed-forward layer takes through at a time. */
enum { GATED_ROWS = 784 };

/* A block as it is built: what it is, and how the names of its weights begin. */
typedef struct block {
    pl_net *n;
    const pl_transformer *t;
    const char *names;
} block;

static pl_id weight_of(const block *k, pl_init init, pl_dtype type, pl_shape shape, const char *name)
{
    return pl_net_weight(k->n, init, type, shape, "%s%s", k->names, name);
}

static pl_affine matrix(const block *k, const pl_projection *p, int64_t out, int64_t in)
{
    pl_affine w = {weight_of(k, p->weight_init, k->t->type, pl_shape_of(2, out, in), p->weight), PL_NONE};
    if (p->bias) w.bias = weight_of(k, p->bias_init, PL_DTYPE_F32, pl_shape_of(1, out), p->bias);
    return w;
}

static pl_id multiply(const block *k, pl_id x, pl_affine w, pl_id residual)
{
    return k->t->is_binary ? pl_net_binary_linear(k->n, x, w, residual) : pl_net_linear(k->n, x, w, residual);
}

/* residual + dropout(w·x): without dropout the product takes the sum in. */
static pl_id multiply_and_add(const block *k, pl_id x, pl_affine w, pl_id residual)
{
    if (!pl_net_drops(k->n, k->t->dropout)) return multiply(k, x, w, residual);
    return pl_net_dropout(k->n, k->t->dropout, multiply(k, x, w, PL_NONE), residual);
}

static pl_id norm(const block *k, pl_id x, const char *name)
{
    char whole[256];
    pl_norm how = k->t->norm;
    how.is_detached = k->t->is_detached;
    if (name) snprintf(whole, sizeof whole, "%s%s", k->names, name);
    return pl_net_norm(k->n, x, &how, name ? whole : NULL);
}

/* ---- attention ---- */

static pl_id rotate(const block *k, pl_id qkv)
{
    pl_rope_args a = pl_rope_none;
    a.x = qkv, a.heads = 3 * k->t->heads, a.rotated = 2 * k->t->heads, a.theta = k->t->theta;
    return k->t->theta > 0 ? pl_build_rope(&k->n->b, &a) : qkv;
}

/* Each sequence of a sample by itself. */
static pl_id apart(const block *k, pl_id x)
{
    const int64_t positions = pl_net_extent(k->n, x, 1), sequences = k->t->sequences;
    if (!sequences) return x;
    return pl_net_view(k->n, x, pl_shape_of(3, PL_B(sequences), positions / sequences, k->t->width));
}

static pl_id together(const block *k, pl_id x)
{
    const int64_t positions = pl_net_extent(k->n, x, 1), sequences = k->t->sequences;
    if (!sequences) return x;
    return pl_net_view(k->n, x, pl_shape_of(3, PL_B(1), positions * sequences, k->t->width));
}

static void project_at_once(const block *k, pl_id x, pl_attention_args *a)
{
    const int64_t d = k->t->width;
    const pl_affine w = matrix(k, &k->t->query, 3 * d, d);
    const pl_id all = rotate(k, multiply(k, apart(k, x), w, PL_NONE));
    a->q = pl_net_columns(k->n, all, 0, d);
    a->k = pl_net_columns(k->n, all, d, d);
    a->v = pl_net_columns(k->n, all, 2 * d, d);
}

static void project_each(const block *k, pl_id x, pl_attention_args *a)
{
    const int64_t d = k->t->width;
    x = apart(k, x);
    a->q = multiply(k, x, matrix(k, &k->t->query, d, d), PL_NONE);
    a->k = multiply(k, x, matrix(k, &k->t->key, d, d), PL_NONE);
    a->v = multiply(k, x, matrix(k, &k->t->value, d, d), PL_NONE);
}

/* What comes is added to the cache; the query sees all of it up to its own position. */
static pl_id through_cache(const block *k, pl_id x, char which)
{
    pl_builder *b = &k->n->b;
    pl_cache_write_args a = pl_cache_write_none;
    if (b->status != PL_OK) return PL_NONE;
    a.x = x, a.position = k->n->input[PL_INPUT_POSITION];
    a.cache = pl_build_temporary(b, PL_ROLE_STATE, PL_DTYPE_F32, pl_shape_of(3, (int64_t)1, k->t->cached, k->t->width),
                                 "%s.cache_%c.%d", b->graph->region[pl_region_program(b->graph, b->region)].name, which,
                                 (int)k->t->cache_number);
    return pl_build_cache_write(b, &a);
}

static void drop_weights(const block *k, pl_attention_args *a)
{
    pl_net *n = k->n;
    a->step = n->input[PL_INPUT_STEP], a->first_sample = n->input[PL_INPUT_FIRST_SAMPLE];
    a->probability = k->t->weight_dropout, a->seed = n->dropout_seed, a->stream = pl_net_stream(n, "weights");
    a->sequences = k->t->sequences;
}

static pl_id attend(const block *k, pl_id x)
{
    const pl_transformer *t = k->t;
    pl_attention_args a = pl_attention_none;
    if (t->key.weight)
        project_each(k, x, &a);
    else
        project_at_once(k, x, &a);
    if (t->cached) {
        a.k = through_cache(k, a.k, 'k');
        a.v = through_cache(k, a.v, 'v');
        a.position = k->n->input[PL_INPUT_POSITION];
    }
    a.heads = t->heads, a.causal = t->is_causal, a.scale = 1 / sqrt((double)t->width / (double)t->heads);
    if (pl_net_drops(k->n, t->weight_dropout)) drop_weights(k, &a);
    if (k->n->training && !t->is_detached) a.lse = PL_NONE;
    return together(k, pl_build_attention(&k->n->b, &a));
}

static pl_id attention(const block *k, pl_id x, pl_id residual)
{
    const pl_transformer *t = k->t;
    x = attend(k, x);
    if (!t->output.weight) return pl_net_dropout(k->n, t->dropout, x, residual);
    return multiply_and_add(k, x, matrix(k, &t->output, t->width, t->width), residual);
}

/* ---- the feed-forward layer ---- */

/* What flows between two products of signs is whole: its signs and its scale are all that the second sees. */
static pl_id gate(const block *k, pl_id x, pl_affine up, pl_affine down, pl_id residual)
{
    pl_gated_activation_args hidden = pl_gated_activation_none;
    hidden.x = multiply(k, x, up, PL_NONE), hidden.act = k->t->activation;
    pl_build_gated_activation(&k->n->b, &hidden);
    return multiply(k, hidden.y, down, residual);
}

static pl_id gated(const block *k, pl_id x, pl_id residual)
{
    const pl_transformer *t = k->t;
    const pl_affine up = matrix(k, &t->up, 2 * t->inner, t->width), down = matrix(k, &t->down, t->width, t->inner);
    pl_gated_feed_forward_args a = pl_gated_feed_forward_none;
    if (t->is_binary) return gate(k, x, up, down, residual);
    a.x = x, a.residual = residual, a.gate_up = up.weight, a.down = down.weight;
    a.act = t->activation, a.rows = GATED_ROWS;
    return pl_build_gated_feed_forward(&k->n->b, &a);
}

static pl_id plain(const block *k, pl_id x, pl_id residual)
{
    const pl_transformer *t = k->t;
    x = multiply(k, x, matrix(k, &t->up, t->inner, t->width), PL_NONE);
    x = pl_net_activate(k->n, t->activation, x);
    pl_builder_enter(&k->n->b, "inner");
    x = pl_net_dropout(k->n, t->hidden_dropout, x, PL_NONE);
    pl_builder_leave(&k->n->b);
    return multiply_and_add(k, x, matrix(k, &t->down, t->width, t->inner), residual);
}

static pl_id feed_forward(const block *k, pl_id x, pl_id residual)
{
    return k->t->is_gated ? gated(k, x, residual) : plain(k, x, residual);
}

/* ---- both ---- */

static pl_id sublayer(const block *k, const char *scope, pl_id (*layer)(const block *, pl_id, pl_id), pl_id x,
                      const char *name)
{
    pl_builder_enter(&k->n->b, "%s", scope);
    x = k->t->norms_sums ? norm(k, layer(k, x, x), name) : layer(k, norm(k, x, name), x);
    pl_builder_leave(&k->n->b);
    return x;
}

pl_id pl_net_transformer(pl_net *n, const pl_transformer *t, pl_id x, const char *names)
{
    const block k = {n, t, names};
    x = sublayer(&k, "attention", attention, x, t->norm1);
    return sublayer(&k, "feed_forward", feed_forward, x, t->norm2);
}
