/* A program as others see it (ir/face.h), to be run here:
 *
 *      LOAD → images, labels            LOAD → infer.images  (f32 planes, where the model takes bytes)
 *      …                           →    …
 *      loss += judge(logits, labels)    STORE ← infer.logits, infer.height, …
 *      STORE ← height, histogram
 *
 * All outputs go to one STORE, in the order in which the program makes them, under their names in the face; they are
 * f32 whatever the model stores. Losses, targets and what only they need are dropped: LOAD brings only the inputs of
 * the face. A persistent value that whoever runs this program writes becomes an input, too. */
#include <stdio.h>
#include <string.h>

#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct facing {
    pl_graph *g;
    pl_builder b;
    const pl_face_wish *wish;
    pl_id program, given; /* given PL_NONE: there is no such value */
    size_t nodes, losses; /* before any was added; those seen so far */
    pl_store_args out;
    size_t outs; /* its ports so far */
} facing;

static pl_status refuse(const facing *f, const char *what, const char *name)
{
    return pl_fail(f->b.err, PL_E_UNSUPPORTED, "this model cannot be run on files of its own: %s %.200s", what, name);
}

static bool is_of_program(const facing *f, const pl_node *n)
{
    return !n->dead && pl_region_program(f->g, n->region) == f->program;
}

static const char *named(facing *f, const char *name)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%.30s.%.90s", f->wish->as, name);
    const char *kept = pl_pool_strdup(f->g->pool, whole);
    if (!kept) f->b.status = pl_fail(f->b.err, PL_E_NOMEM, "no memory for the graph");
    return kept;
}

/* ---- outputs ---- */

/* Where new nodes go: next to the one that stored or judged the value. */
static void stand_at(facing *f, const pl_node *n)
{
    pl_builder_at_node(&f->b, n);
    f->b.phase = PL_PHASE_FORWARD;
}

/* It owns its bytes, is contiguous and f32, and is not persistent. */
static bool is_plain(const pl_value *v)
{
    return v->view_of == PL_NONE && v->update_of == PL_NONE && v->program != PL_NONE && v->dtype == PL_DTYPE_F32 &&
           pl_value_is_contiguous(v);
}

static bool is_out_already(const facing *f, pl_id id)
{
    for (size_t i = 0; i < f->outs; i++)
        if (f->out.port[i] == id) return true;
    return false;
}

/* What a model rounds for keeping is output as it was before. */
static pl_id before_rounding(const pl_graph *g, pl_id x)
{
    const pl_id by = g->value[x].producer;
    if (by == PL_NONE || g->node[by].op != PL_OP_CAST || g->value[x].dtype == PL_DTYPE_F32) return x;
    const pl_id wide = g->node[by].cast.x;
    return g->value[wide].dtype == PL_DTYPE_F32 ? wide : x;
}

static pl_status give_out(facing *f, pl_id x, const char *name)
{
    x = before_rounding(f->g, x);
    const char *whole = named(f, name);
    if (!whole) return f->b.status;
    if (f->outs == PL_INS_OF_STORE) return refuse(f, "it gives out more than can be stored:", name);
    const pl_value *v = &f->g->value[x];
    if (!pl_dtype_is_real(v->dtype)) return refuse(f, "it gives out what are no real numbers:", v->name);
    if (is_plain(v) && !is_out_already(f, x)) {
        f->g->value[x].name = whole;
    } else {
        pl_cast_args cast = pl_cast_none;
        cast.x = x;
        cast.y = pl_build_temporary(&f->b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, v->shape, "%s", whole);
        x = pl_build_cast(&f->b, &cast);
    }
    f->out.port[f->outs++] = x;
    return f->b.status;
}

static pl_status give_out_stored(facing *f, pl_id id)
{
    const pl_node n = f->g->node[id];
    stand_at(f, &n);
    for (size_t k = 0; k < PL_INS_OF_STORE && n.store.port[k] != PL_NONE; k++)
        if (k < f->wish->stored_count && f->wish->stored[k]) PL_TRY(give_out(f, n.store.port[k], f->wish->stored[k]));
    return PL_OK;
}

/* A loss that multiplies by the weights itself, as linear_ce does, judges the product. */
static pl_id judged_by(facing *f, const pl_node *n)
{
    const uint32_t scores = f->wish->scores[n->op];
    int judged = 0;
    pl_linear_args product = pl_linear_none;
    while (!(scores >> judged & 1)) judged++;
    if (!(scores & PL_BIT_OF(linear_ce, weight))) return n->in[judged];
    product.x = n->linear_ce.h, product.weight = n->linear_ce.weight, product.act = PL_ACT_NONE;
    return pl_build_linear(&f->b, &product);
}

static pl_status give_out_judged(facing *f, pl_id id)
{
    const pl_node n = f->g->node[id];
    const size_t number = f->losses++;
    const char *name = number < f->wish->scored_count ? f->wish->scored[number] : NULL;
    if (!name) return PL_OK;
    stand_at(f, &n);
    const pl_id x = judged_by(f, &n);
    return f->b.status == PL_OK ? give_out(f, x, name) : f->b.status;
}

static pl_status give_all_out(facing *f)
{
    for (size_t i = 0; i < f->nodes; i++) {
        pl_node *n = &f->g->node[i];
        if (!is_of_program(f, n)) continue;
        if (n->op == PL_OP_STORE && n->store.back == 0) PL_TRY(give_out_stored(f, (pl_id)i));
        if (f->wish->scores[n->op]) PL_TRY(give_out_judged(f, (pl_id)i));
        n = &f->g->node[i];
        n->dead = n->op == PL_OP_STORE || pl_op_rule_of(n->op)->loss;
    }
    if (f->outs == 0) return refuse(f, "it gives nothing out by its program", f->wish->program);
    pl_build_store(&f->b, &f->out);
    return f->b.status;
}

/* Losses are no longer outputs. */
static void forget_outputs(facing *f)
{
    for (size_t i = 0; i < f->g->value_count; i++) {
        pl_value *v = &f->g->value[i];
        if (v->program == f->program && v->role == PL_ROLE_OUTPUT) v->role = PL_ROLE_TEMPORARY;
    }
}

/* ---- inputs ---- */

static pl_status order_first(facing *f, pl_id first)
{
    size_t count = 0;
    pl_id *order = pl_alloc(f->g->node_count + 1, sizeof *order);
    if (!order) return pl_fail(f->b.err, PL_E_NOMEM, "no memory for the graph");
    order[count++] = first;
    for (size_t i = 0; i < f->g->node_count; i++)
        if (i != first) order[count++] = (pl_id)i;
    pl_status status = pl_graph_reorder(f->g, order, f->b.err);
    pl_free(order);
    return status;
}

static bool touches(const pl_graph *g, const pl_node *n, pl_id root)
{
    bool does = false;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) does |= n->in[k] != PL_NONE && pl_value_root(g, n->in[k]) == root;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) does |= n->out[k] != PL_NONE && pl_value_root(g, n->out[k]) == root;
    return does;
}

/* Other programs that share the value cannot go on without it. */
static void drop_sharers(facing *f)
{
    const pl_graph *g = f->g;
    for (pl_id p = 0; p < g->region_count; p++) {
        bool shares = false;
        for (size_t i = 0; i < g->node_count && p != f->program; i++)
            shares |= pl_region_program(g, g->node[i].region) == p && touches(g, &g->node[i], f->given);
        for (size_t i = 0; i < g->node_count && shares; i++)
            f->g->node[i].dead |= pl_region_program(g, g->node[i].region) == p;
    }
}

/* It was persistent, so that an earlier program could leave it: now the data bring it. */
static pl_status take_given(facing *f)
{
    pl_id id = f->given = f->wish->given ? pl_graph_find_value(f->g, f->wish->given) : PL_NONE;
    if (id == PL_NONE) return PL_OK;
    const char *name = named(f, f->wish->given_as);
    if (!name) return f->b.status;
    drop_sharers(f);
    pl_load_args load = pl_load_none;
    pl_value *v = &f->g->value[id];
    v->name = name;
    v->program = f->program;
    v->role = PL_ROLE_TEMPORARY;
    f->b.region = f->program;
    snprintf(f->b.scope, sizeof f->b.scope, "data");
    f->b.block = 0;
    load.port[0] = id;
    pl_build_load(&f->b, &load);
    if (f->b.status != PL_OK) return f->b.status;
    f->g->node[f->g->node_count - 1].wait = 1; /* the ring's slot is filled */
    return order_first(f, (pl_id)f->g->node_count - 1);
}

static bool is_read(const facing *f, pl_id id)
{
    for (size_t i = 0; i < f->g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            const pl_node *n = &f->g->node[i];
            if (!n->dead && n->in[k] != PL_NONE && pl_value_root(f->g, n->in[k]) == id) return true;
        }
    return false;
}

/* How many colours its patches node takes; 0: something else reads it, too. */
static int64_t colours_of(const facing *f, pl_id id)
{
    int64_t colours = 0;
    for (size_t i = 0; i < f->g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            const pl_node *n = &f->g->node[i];
            if (n->dead || n->in[k] == PL_NONE || pl_value_root(f->g, n->in[k]) != id) continue;
            if (n->op != PL_OP_PATCHES || n->in[k] != id || (colours && colours != n->patches.channels)) return 0;
            colours = n->patches.channels;
        }
    return colours;
}

/* Pictures come in as f32 planes from 0 to 1, one per colour. */
static pl_status widen_pictures(facing *f, pl_id id)
{
    pl_value *v = &f->g->value[id];
    const int64_t colours = colours_of(f, id);
    if (v->dtype != PL_DTYPE_U8) return PL_OK;
    if (colours == 0) return refuse(f, "it needs more than the pictures' patches:", v->name);
    const int64_t height = v->shape.dim[1], width = v->shape.dim[2];
    v->dtype = PL_DTYPE_F32;
    v->shape = pl_shape_of(4, PL_B(1), colours, height, width);
    pl_value_default_strides(v);
    return PL_OK;
}

/* Ids are also outputs, next to what is computed from them: they tell which number belongs to what. */
static pl_status return_ids(facing *f, pl_id id)
{
    for (size_t i = 0; i < f->g->node_count; i++) {
        pl_node *n = &f->g->node[i];
        if (n->op != PL_OP_STORE || !is_of_program(f, n)) continue;
        for (int k = 0; k < PL_INS_OF_STORE; k++)
            if (n->store.port[k] == PL_NONE) return n->store.port[k] = id, PL_OK;
    }
    return refuse(f, "it gives out more than can be stored beside", f->g->value[id].name);
}

static pl_status take_port(facing *f, pl_id id, size_t k)
{
    if (id != f->given) {
        const char *name = k < f->wish->in_count ? f->wish->in[k] : NULL;
        if (!name) return refuse(f, "it reads more of its data than others give it:", f->g->value[id].name);
        const char *whole = named(f, name);
        if (!whole) return f->b.status;
        f->g->value[id].name = whole;
    }
    return f->g->value[id].dtype == PL_DTYPE_I32 ? return_ids(f, id) : widen_pictures(f, id);
}

/* Ports that nobody reads any more are dropped. */
static pl_status take_ports(facing *f, pl_node *n)
{
    int kept = 0;
    for (int k = 0; k < PL_NODE_OUT_MAX && n->out[k] != PL_NONE; k++) {
        const pl_id id = n->out[k];
        const bool read = is_read(f, id);
        n->out[k] = PL_NONE;
        if (!read)
            f->g->value[id].producer = PL_NONE;
        else if (pl_is_sample_number(&f->g->value[id]))
            n->out[kept++] = id;
        else
            PL_TRY(take_port(f, id, (size_t)k));
        if (read && !pl_is_sample_number(&f->g->value[id])) n->out[kept++] = id;
    }
    return PL_OK;
}

static pl_status take_loads(facing *f)
{
    for (size_t i = 0; i < f->g->node_count; i++) {
        pl_node *n = &f->g->node[i];
        if (n->op == PL_OP_LOAD && is_of_program(f, n)) PL_TRY(take_ports(f, n));
    }
    return PL_OK;
}

/* ---- all of it ---- */

static pl_status face(facing *f)
{
    PL_TRY(give_all_out(f));
    forget_outputs(f);
    PL_TRY(take_given(f));
    pl_graph_sweep(f->g);
    PL_TRY(pl_graph_group_programs(f->g, f->b.err));
    PL_TRY(pl_rewrite_drop_unread(f->g, f->program, f->b.err));
    PL_TRY(take_loads(f));
    const char *as = pl_pool_strdup(f->g->pool, f->wish->as);
    if (!as) return pl_fail(f->b.err, PL_E_NOMEM, "no memory for the graph");
    f->g->region[f->program].name = as;
    return PL_OK;
}

pl_status pl_rewrite_face(pl_graph *g, const pl_face_wish *wish, pl_error *err)
{
    facing f = {.g = g, .wish = wish, .nodes = g->node_count, .out = pl_store_none};
    f.program = pl_graph_find_program(g, wish->program);
    if (f.program == PL_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "this config is of a model (or a part of one) that is not run on files of its own: it has no "
                       "program \"%s\"",
                       wish->program);
    f.b = pl_builder_begin(g, f.program, err);
    return face(&f);
}
