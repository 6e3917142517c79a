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
    const char *name;
    const pl_block_attention *attention;
    int64_t number;
} block;

static int64_t head_width_of(const pl_transformer *t) { return t->head_width ? t->head_width : t->width / t->heads; }
static int64_t key_heads_of(const pl_transformer *t) { return t->key_heads ? t->key_heads : t->heads; }

static pl_affine matrix(const block *b, const pl_projection *p, int64_t out, int64_t in)
{
    pl_affine w;
    w.weight = pl_net_weight(b->n, p->weight_init, b->t->type, pl_shape_of(2, out, in), "%s.%s", b->name, p->weight);
    w.bias = pl_net_weight(b->n, p->bias_init, PL_DTYPE_F32, pl_shape_of(1, out), "%s.%s", b->name, p->bias);
    return w;
}

static pl_id multiply(const block *b, pl_id x, pl_affine w, pl_id residual)
{
    return b->t->is_binary ? pl_net_binary_linear(b->n, x, w, residual) : pl_net_linear(b->n, x, w, residual);
}

/* residual + dropout(w·x): without dropout the product takes the sum in. */
static pl_id multiply_and_add(const block *b, pl_id x, pl_affine w, pl_id residual)
{
    if (!pl_net_drops(b->n, b->t->dropout)) return multiply(b, x, w, residual);
    return pl_net_dropout(b->n, b->t->dropout, multiply(b, x, w, PL_NONE), residual);
}

static pl_id norm(const block *b, pl_id x, const char *name)
{
    char whole[PL_NET_NAME_BYTES];
    pl_norm how = b->t->norm;
    how.is_detached |= b->t->is_detached;
    if (name) snprintf(whole, sizeof whole, "%s.%s", b->name, name);
    return pl_net_norm(b->n, x, &how, name ? whole : NULL);
}

/* ---- attention ---- */

pl_rotation pl_net_rotation(pl_net *n, const pl_rope_scaling *s, pl_id position, int64_t positions, int64_t head_width,
                            const char *divisors)
{
    const double magnitude = pl_rope_magnitude(s);
    pl_rope_table_args a = pl_rope_table_none;
    a.position = position, a.positions = positions, a.half = head_width / 2;
    a.theta = s->theta, a.kind = s->kind, a.factor = s->factor, a.original = s->original_context;
    a.low = s->kind == PL_ROPE_YARN ? s->beta_slow : s->low_factor;
    a.high = s->kind == PL_ROPE_YARN ? s->beta_fast : s->high_factor;
    if (magnitude != 1) a.magnitude = magnitude;
    a.keeps_fractions = s->keeps_fractions;
    if (s->divisors) {
        const bool before = pl_net_freeze(n, true);
        a.divisor = pl_net_weight(n, pl_init_all(1), PL_DTYPE_F32, pl_shape_of(1, a.half), "%s", divisors);
        pl_net_thaw(n, before);
    }
    pl_build_rope_table(&n->b, &a);
    return (pl_rotation){a.cosine, a.sine};
}

/* The first heads of x, `rotated` of them. */
static pl_id rotate(const block *b, pl_id x, int64_t heads, int64_t rotated)
{
    const pl_rotation *by = b->attention->rotation;
    pl_rope_args a = pl_rope_none;
    a.x = x, a.heads = heads, a.rotated = rotated, a.theta = b->t->theta;
    if (by) a.cosine = by->cosine, a.sine = by->sine;
    return b->t->theta > 0 || by ? pl_build_rope(&b->n->b, &a) : x;
}

/* x [B,T,heads·h], each head by itself. */
static pl_id norm_heads(const block *b, pl_id x, int64_t heads, const char *name)
{
    if (!name || b->n->b.status != PL_OK) return x;
    if (b->t->norms_all_heads) return norm(b, x, name);
    const pl_shape whole = b->n->b.graph->value[x].shape;
    pl_shape apart = whole;
    apart.rank = 4, apart.dim[2] = heads, apart.dim[3] = head_width_of(b->t);
    return pl_net_view(b->n, norm(b, pl_net_view(b->n, x, apart), name), whole);
}

/* Each sequence of a sample by itself. */
static pl_id split_sequences(const block *b, pl_id x)
{
    const int64_t positions = pl_net_extent(b->n, x, 1), sequences = b->t->sequences;
    if (!sequences) return x;
    return pl_net_view(b->n, x, pl_shape_of(3, PL_B(sequences), positions / sequences, b->t->width));
}

static pl_id join_sequences(const block *b, pl_id x)
{
    const int64_t positions = pl_net_extent(b->n, x, 1), sequences = b->t->sequences;
    if (!sequences) return x;
    return pl_net_view(b->n, x, pl_shape_of(3, PL_B(1), positions * sequences, pl_net_last_extent(b->n, x)));
}

static void project_at_once(const block *b, pl_id x, pl_attention_args *a)
{
    const int64_t heads = b->t->heads, key_heads = key_heads_of(b->t), turned = heads + key_heads;
    const int64_t queries = heads * head_width_of(b->t), keys = key_heads * head_width_of(b->t);
    const pl_affine w = matrix(b, &b->t->query, queries + 2 * keys, b->t->width);
    const pl_id all = rotate(b, multiply(b, split_sequences(b, x), w, PL_NONE), turned + key_heads, turned);
    a->q = pl_net_columns(b->n, all, 0, queries);
    a->k = pl_net_columns(b->n, all, queries, keys);
    a->v = pl_net_columns(b->n, all, queries + keys, keys);
}

static pl_id project(const block *b, pl_id x, const pl_projection *p, int64_t heads)
{
    return multiply(b, x, matrix(b, p, heads * head_width_of(b->t), b->t->width), PL_NONE);
}

static void project_each(const block *b, pl_id x, pl_attention_args *a)
{
    const pl_transformer *t = b->t;
    const int64_t heads = t->heads, key_heads = key_heads_of(t);
    x = split_sequences(b, x);
    a->q = rotate(b, norm_heads(b, project(b, x, &t->query, heads), heads, t->query_norm), heads, heads);
    a->k = rotate(b, norm_heads(b, project(b, x, &t->key, key_heads), key_heads, t->key_norm), key_heads, key_heads);
    a->v = project(b, x, &t->value, key_heads);
}

/* With a window the cache is a ring, which keeps what the queries that come at once can see. */
static int64_t places_of(const block *b)
{
    const int64_t seen = b->attention->window + b->t->cached_rows - 1;
    return b->attention->window && b->t->cached_rows && seen < b->t->cached ? seen : b->t->cached;
}

/* Each place is written before it is read. */
static pl_id shared_cache(const block *b, pl_shape places, char which)
{
    const pl_init none = {PL_INIT_READ};
    const pl_id cache = pl_net_carried(b->n, none, b->t->cache_type, places, "%s.cache_%c", b->name, which);
    if (cache != PL_NONE) b->n->b.graph->value[cache].encoding = b->t->cache_encoding;
    return cache;
}

/* What comes is added to the cache; a query sees all of it up to its own position, or a window of it. */
static pl_id through_cache(const block *b, pl_id x, char which)
{
    pl_builder *to = &b->n->b;
    pl_cache_write_args a = pl_cache_write_none;
    if (to->status != PL_OK) return PL_NONE;
    const pl_id program = pl_region_program(to->graph, to->region);
    const int64_t sequences = b->t->cached_sequences ? b->t->cached_sequences : 1;
    const pl_shape places = pl_shape_of(3, sequences, places_of(b), pl_net_last_extent(b->n, x));
    a.x = x, a.sequence = b->n->input[PL_INPUT_SEQUENCE], a.position = b->n->input[PL_INPUT_POSITION],
    a.ring = places_of(b) < b->t->cached;
    if (b->t->shares_cache)
        a.cache = shared_cache(b, places, which);
    else
        a.cache = pl_build_temporary(to, PL_ROLE_STATE, b->t->cache_type, places, "%s.cache_%c.%d",
                                     to->graph->region[program].name, which, (int)b->number);
    return pl_build_cache_write(to, &a);
}

/* `sequences` numbers what is drawn: the same numbers for a sample, however many sequences it has. */
static void set_weight_dropout(const block *b, pl_attention_args *a)
{
    pl_net *n = b->n;
    a->step = n->input[PL_INPUT_STEP], a->first_sample = n->input[PL_INPUT_FIRST_SAMPLE];
    a->probability = b->t->weight_dropout, a->seed = n->dropout_seed, a->stream = pl_net_stream(n, "weights");
    a->sequences = b->t->sequences;
}

static pl_id attend(const block *b, pl_id x)
{
    const pl_transformer *t = b->t;
    pl_attention_args a = pl_attention_none;
    if (t->key.weight)
        project_each(b, x, &a);
    else
        project_at_once(b, x, &a);
    if (t->cached) {
        a.k = through_cache(b, a.k, 'k');
        a.v = through_cache(b, a.v, 'v');
        a.position = b->n->input[PL_INPUT_POSITION], a.sequence = b->n->input[PL_INPUT_SEQUENCE];
    }
    a.heads = t->heads, a.causal = t->is_causal, a.window = b->attention->window, a.cap = t->cap;
    if (key_heads_of(t) != t->heads) a.key_heads = t->key_heads;
    a.scale = t->scale > 0 ? t->scale : 1 / sqrt((double)head_width_of(t));
    if (pl_net_drops(b->n, t->weight_dropout)) set_weight_dropout(b, &a);
    if (b->n->training && !t->is_detached) a.lse = PL_NONE;
    return join_sequences(b, pl_build_attention(&b->n->b, &a));
}

static pl_id attention(const block *b, pl_id x, pl_id residual)
{
    const pl_transformer *t = b->t;
    x = attend(b, x);
    if (!t->output.weight) return pl_net_dropout(b->n, t->dropout, x, residual);
    return multiply_and_add(b, x, matrix(b, &t->output, t->width, t->heads * head_width_of(t)), residual);
}

/* ---- the feed-forward layer ---- */

static pl_id drop_hidden(const block *b, pl_id x)
{
    pl_builder_enter(&b->n->b, "inner");
    x = pl_net_dropout(b->n, b->t->hidden_dropout, x, PL_NONE);
    pl_builder_leave(&b->n->b);
    return x;
}

/* With what the operator of both products does not do between them: signs, biases, dropout. */
static pl_id gate_apart(const block *b, pl_id x, pl_affine up, pl_affine down, pl_id residual)
{
    pl_gated_activation_args hidden = pl_gated_activation_none;
    hidden.x = multiply(b, x, up, PL_NONE), hidden.act = b->t->activation;
    pl_build_gated_activation(&b->n->b, &hidden);
    return multiply_and_add(b, drop_hidden(b, hidden.y), down, residual);
}

/* The gate by a matrix of its own. */
static pl_id gated_by_another(const block *b, pl_id x, pl_id residual)
{
    const pl_transformer *t = b->t;
    pl_gated_activation_args hidden = pl_gated_activation_none;
    hidden.x = multiply(b, x, matrix(b, &t->gate, t->inner, t->width), PL_NONE);
    hidden.up = multiply(b, x, matrix(b, &t->up, t->inner, t->width), PL_NONE);
    hidden.act = t->activation;
    pl_build_gated_activation(&b->n->b, &hidden);
    return multiply_and_add(b, drop_hidden(b, hidden.y), matrix(b, &t->down, t->width, t->inner), residual);
}

static pl_id gated(const block *b, pl_id x, pl_id residual)
{
    const pl_transformer *t = b->t;
    const pl_affine up = matrix(b, &t->up, 2 * t->inner, t->width), down = matrix(b, &t->down, t->width, t->inner);
    const bool drops = pl_net_drops(b->n, t->dropout) || pl_net_drops(b->n, t->hidden_dropout);
    pl_gated_feed_forward_args a = pl_gated_feed_forward_none;
    const bool is_apart = t->is_binary || drops || b->n->flow || up.bias != PL_NONE || down.bias != PL_NONE;
    if (is_apart) return gate_apart(b, x, up, down, residual);
    a.x = x, a.residual = residual, a.gate_up = up.weight, a.down = down.weight;
    a.act = t->activation, a.rows = GATED_ROWS;
    return pl_build_gated_feed_forward(&b->n->b, &a);
}

static pl_id plain(const block *b, pl_id x, pl_id residual)
{
    const pl_transformer *t = b->t;
    x = multiply(b, x, matrix(b, &t->up, t->inner, t->width), PL_NONE);
    x = drop_hidden(b, pl_net_activate(b->n, t->activation, x));
    return multiply_and_add(b, x, matrix(b, &t->down, t->width, t->inner), residual);
}

static pl_id feed_forward(const block *b, pl_id x, pl_id residual)
{
    if (b->t->gate.weight) return gated_by_another(b, x, residual);
    return b->t->is_gated ? gated(b, x, residual) : plain(b, x, residual);
}

/* ---- both ---- */

typedef pl_id sublayer_of(const block *, pl_id x, pl_id residual);

/* name: of the norm before the layer, or of the sum; added: of the norm of what it adds. */
static pl_id sublayer(const block *b, const char *scope, sublayer_of *layer, pl_id x, const char *name,
                      const char *added)
{
    pl_builder_enter(&b->n->b, "%s", scope);
    if (added)
        x = pl_net_add(b->n, x, norm(b, layer(b, b->t->lacks_input_norms ? x : norm(b, x, name), PL_NONE), added));
    else
        x = b->t->is_post_norm ? norm(b, layer(b, x, x), name) : layer(b, norm(b, x, name), x);
    pl_builder_leave(&b->n->b);
    return x;
}

/* What a block cannot be; NULL: it can. With theta positions are those within a sequence, so a token that comes alone,
 * through a cache, would always stand at the first. */
static const char *fault_of(const pl_transformer *t, const pl_block_attention *a)
{
    const bool is_split = t->attention_norm || t->feed_forward_norm;
    if (t->cached && t->theta > 0) return "rotary positions have no cache of keys and values, unless by a rotation";
    if (a->rotation && t->theta > 0) return "positions turn by theta or by a rotation, not by both";
    if (t->is_post_norm && is_split) return "what is added has a norm, or its sum has, not both";
    if (!t->key.weight && (t->query_norm || t->key_norm))
        return "heads have norms where each projection has its matrix";
    if (t->gate.weight && !t->is_gated) return "a gate's matrix, but no gate";
    return NULL;
}

static bool can_be(pl_net *n, const pl_transformer *t, const pl_block_attention *a)
{
    const char *fault = fault_of(t, a);
    if (n->b.status == PL_OK && fault)
        n->b.status = pl_fail(n->err, PL_E_UNSUPPORTED, "a transformer block cannot be built: %s", fault);
    return n->b.status == PL_OK;
}

static void enter(pl_builder *b, const pl_stack *s, int64_t number)
{
    if (s->is_all)
        pl_builder_enter_block(b, s->scope, (uint32_t)number);
    else
        pl_builder_enter(b, "%s.%d", s->scope, (int)number);
}

pl_id pl_net_stack(pl_net *n, const pl_stack *s, const pl_transformer *t, pl_id x)
{
    static const pl_block_attention plain_attention = {0};
    char name[PL_NET_NAME_BYTES];
    block b = {n, t, name, &plain_attention, s->first};
    for (; b.number < s->first + s->count; b.number++) {
        if (s->attention) b.attention = &s->attention[b.number - s->first];
        if (!can_be(n, t, b.attention)) break;
        snprintf(name, sizeof name, "%s.%d", s->names, (int)b.number);
        enter(&n->b, s, b.number);
        x = sublayer(&b, "attention", attention, x, t->norm1, t->attention_norm);
        x = sublayer(&b, "feed_forward", feed_forward, x, t->norm2, t->feed_forward_norm);
        pl_builder_leave(&n->b);
    }
    return x;
}
