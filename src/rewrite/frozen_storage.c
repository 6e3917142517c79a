/* Frozen matrices in 16 bits: what is never updated needs no more digits than it is read with.
 *
 *   init       W = normal(…)                the same numbers, each rounded once
 *   f32        wide.W = cast(W)             right before each node that reads it, so that one such copy is alive at a
 *              y = linear(x, wide.W)        time
 *   16 bits    y = linear(x, W)             the copy that a program of that precision makes (precision.c) is W itself
 *
 * Vectors (biases, gains of norms) are few, and stay. */
#include <stdio.h>

#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct shrinker {
    pl_graph *g;
    pl_builder b;
    pl_dtype dtype;
    size_t values, nodes; /* before the first cast */
    bool *shrinks;        /* [values] has the storage of a frozen matrix */
    pl_id *instead;       /* [values] what is read in place of a copy that is no longer made; PL_NONE: it is made */
    pl_id *order;         /* nodes as they come, so far */
    size_t placed;
} shrinker;

static bool is_frozen_matrix(const pl_graph *g, pl_id value)
{
    const pl_value *v = &g->value[value];
    return v->frozen && v->dtype == PL_DTYPE_F32 && v->encoding == PL_ENCODING_F32 && v->shape.rank >= 2;
}

/* Values are marked, then change: whoever looks at one that is a window must find its root as it was. */
static void mark(shrinker *s)
{
    for (size_t i = 0; i < s->values; i++) s->shrinks[i] = is_frozen_matrix(s->g, pl_value_root(s->g, (pl_id)i));
    for (size_t i = 0; i < s->values; i++)
        if (s->shrinks[i]) s->g->value[i].dtype = s->dtype;
}

static pl_id wide_like(shrinker *s, const pl_node *n, pl_id value)
{
    const pl_value v = s->g->value[value];
    char name[280];
    snprintf(name, sizeof name, "wide.%.200s.%zu", v.name, s->g->value_count);
    pl_builder_at_node(&s->b, n);
    s->b.phase = n->phase;
    return pl_build_temporary(&s->b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, v.shape, "%s", name);
}

/* It runs when the node beside it does. */
static pl_status add_cast(shrinker *s, const pl_node *beside, pl_id from, pl_id to)
{
    pl_cast_args cast = pl_cast_none;
    cast.x = from, cast.y = to;
    pl_build_cast(&s->b, &cast);
    if (s->b.status != PL_OK) return s->b.status;
    s->g->node[s->g->node_count - 1].predicate = beside->predicate;
    s->order[s->placed++] = (pl_id)s->g->node_count - 1;
    return PL_OK;
}

/* Does the node make what W itself is now? Then nobody needs it. */
static bool is_needless(shrinker *s, const pl_node *n)
{
    const pl_cast_args *a = &n->cast;
    if (n->op != PL_OP_CAST || !s->shrinks[a->x] || s->g->value[a->y].dtype != s->dtype) return false;
    s->instead[a->y] = a->x;
    return true;
}

/* A cast reads what it finds; all else takes f32. */
static pl_status widen_inputs(shrinker *s, pl_id id)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        const pl_node n = s->g->node[id];
        if (n.in[k] == PL_NONE || n.in[k] >= s->values) continue;
        if (s->instead[n.in[k]] != PL_NONE) {
            s->g->node[id].in[k] = s->instead[n.in[k]];
            continue;
        }
        if (!s->shrinks[n.in[k]] || n.op == PL_OP_CAST) continue;
        const pl_id wide = wide_like(s, &n, n.in[k]);
        PL_TRY(add_cast(s, &n, n.in[k], wide));
        s->g->node[id].in[k] = wide;
    }
    return PL_OK;
}

/* Random numbers and zeros come in any precision. */
static bool makes_narrow(const pl_node *n)
{
    return n->op == PL_OP_NORMAL || n->op == PL_OP_TRUNCATED_NORMAL || n->op == PL_OP_UNIFORM || n->op == PL_OP_CAST ||
           (n->op == PL_OP_FILL && n->fill.value == 0);
}

/* First values are drawn as they were. */
static pl_status round_outputs(shrinker *s, pl_id id)
{
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        const pl_node n = s->g->node[id];
        if (n.out[k] == PL_NONE || n.out[k] >= s->values || !s->shrinks[n.out[k]] || makes_narrow(&n)) continue;
        const pl_id wide = wide_like(s, &n, n.out[k]);
        if (wide == PL_NONE) return s->b.status;
        s->g->node[id].out[k] = wide;
        s->g->value[wide].producer = id;
        PL_TRY(add_cast(s, &n, wide, n.out[k]));
    }
    return PL_OK;
}

static pl_status change_node(shrinker *s, pl_id id)
{
    if (!s->g->node[id].dead && is_needless(s, &s->g->node[id])) s->g->node[id].dead = true;
    if (!s->g->node[id].dead) PL_TRY(widen_inputs(s, id));
    s->order[s->placed++] = id;
    return s->g->node[id].dead ? PL_OK : round_outputs(s, id);
}

static size_t count_uses(const shrinker *s)
{
    size_t uses = 0;
    for (size_t i = 0; i < s->nodes; i++) {
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            const pl_id in = s->g->node[i].in[k];
            uses += in != PL_NONE && s->shrinks[in];
        }
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
            const pl_id out = s->g->node[i].out[k];
            uses += out != PL_NONE && s->shrinks[out];
        }
    }
    return uses;
}

pl_status pl_rewrite_frozen_storage(pl_graph *g, pl_dtype dtype, pl_error *err)
{
    shrinker s = {.g = g, .dtype = dtype, .values = g->value_count, .nodes = g->node_count};
    pl_status status = PL_OK;
    if (dtype == PL_DTYPE_F32) return PL_OK;
    s.b = pl_builder_begin(g, 0, err);
    s.shrinks = pl_alloc(s.values + 1, sizeof *s.shrinks);
    s.instead = pl_alloc(s.values + 1, sizeof *s.instead);
    if (!s.shrinks || !s.instead) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to make frozen weights smaller"));
    for (size_t i = 0; i < s.values; i++) s.instead[i] = PL_NONE;
    mark(&s);
    s.order = pl_alloc(s.nodes + count_uses(&s) + 1, sizeof *s.order);
    if (!s.order) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to make frozen weights smaller"));
    for (size_t i = 0; i < s.nodes; i++) PL_TRY_DONE(change_node(&s, (pl_id)i));
    PL_TRY_DONE(pl_graph_reorder(g, s.order, err));
    pl_graph_sweep(g);
done:
    pl_free(s.shrinks);
    pl_free(s.instead);
    pl_free(s.order);
    return status;
}
