/* A calibration sees what comes to the layers that can be done in 8 bits, and what 8 bits make of them:
 *
 *      y = linear(x, W, …)     →  E' = observe_extremes(x, E);  S' = observe_spread(x, E', S)
 *                                 w = linear(x, W, …)
 *                                 z = linear_int8(x, W.int8, R, …);  D' = observe_difference(w, z, D)
 *                                 y = overwrite(w, z)
 *
 * E, S and R are of the name of the site (int8_sites.h), ".extremes" and ".bins" behind it, none behind that of R, the
 * range; W.int8, D ("W.difference") and T ("W.taken") are of the weight. They last, but belong to no model: staging.
 * All are 0 before anything is seen. The spread is counted, where it is wanted at all, when the input COUNTING is not
 * 0: when all has been seen once, so that E is what it stays; the product is tried when COMPARING is not, when whoever
 * runs the program has made R and W.int8. It takes the place of y where T is not 0: so the same program is the model in
 * f32, and with those layers in 8 bits that T names. Nothing else changes. */

#include "base/quantize.h"
#include "ir/inputs.h"
#include "ir/op.h"
#include "rewrite/int8_sites.h"
#include "rewrite/rewrite.h"

typedef struct observer {
    pl_graph *g;
    pl_builder b;
    pl_int8_sites sites;
    pl_id *range; /* [sites] PL_NONE: not yet */
    struct of_weight {
        pl_id packed, difference, taken;
    } * of; /* [values]; PL_NONE: not yet */
    size_t values;
    pl_id counting, comparing; /* counting PL_NONE: the spread is of no interest */
    pl_id *order;
    size_t placed;
} observer;

/* ---- nodes ---- */

/* The node that was just built: it runs where the predicate says so, and comes next. */
static void place(observer *o, pl_id predicate)
{
    if (o->b.status != PL_OK) return;
    o->g->node[o->g->node_count - 1].predicate = predicate;
    o->order[o->placed++] = (pl_id)o->g->node_count - 1;
}

static void stand_beside(observer *o, const pl_node *n)
{
    pl_builder_at_node(&o->b, n);
    o->b.phase = n->phase;
}

static pl_status observe(observer *o, uint32_t number)
{
    const pl_int8_site *site = &o->sites.site[number];
    const pl_node n = o->g->node[site->first];
    char name[PL_INT8_NAME_BYTES];
    pl_observe_extremes_args extremes = pl_observe_extremes_none;
    pl_observe_spread_args spread = pl_observe_spread_none;
    pl_int8_site_name(o->g, site, name);
    stand_beside(o, &n);
    const int64_t three = sizeof(pl_extremes) / sizeof(float), two = 2, all = PL_SPREAD_BINS;
    o->range[number] = pl_build_persistent(&o->b, PL_ROLE_STAGING, PL_DTYPE_F32, pl_shape_of(1, two), "%s", name);
    extremes.x = spread.x = site->x;
    extremes.extremes =
        pl_build_persistent(&o->b, PL_ROLE_STAGING, PL_DTYPE_F32, pl_shape_of(1, three), "%s.extremes", name);
    pl_build_belongs(&o->b, extremes.extremes, o->range[number]);
    spread.extremes = pl_build_observe_extremes(&o->b, &extremes);
    place(o, PL_NONE);
    if (o->counting == PL_NONE) return o->b.status;
    spread.bins = pl_build_persistent(&o->b, PL_ROLE_STAGING, PL_DTYPE_I64, pl_shape_of(1, all), "%s.bins", name);
    pl_build_belongs(&o->b, spread.bins, o->range[number]);
    pl_build_observe_spread(&o->b, &spread);
    place(o, o->counting);
    return o->b.status;
}

static void make_states(observer *o, pl_id weight, const pl_shape *matrix)
{
    const char *name = o->g->value[weight].name;
    const int64_t one = 1, two = 2;
    struct of_weight *w = &o->of[weight];
    if (w->packed != PL_NONE) return;
    w->packed = pl_build_persistent(&o->b, PL_ROLE_STAGING, PL_DTYPE_F32, *matrix, "%s" PL_INT8_PACKED, name);
    if (w->packed != PL_NONE) o->g->value[w->packed].encoding = PL_ENCODING_INT8;
    w->difference =
        pl_build_persistent(&o->b, PL_ROLE_STAGING, PL_DTYPE_F64, pl_shape_of(1, two), "%s.difference", name);
    w->taken = pl_build_persistent(&o->b, PL_ROLE_STAGING, PL_DTYPE_I32, pl_shape_of(1, one), "%s.taken", name);
    pl_build_belongs(&o->b, w->packed, weight);
    pl_build_belongs(&o->b, w->difference, weight);
    pl_build_belongs(&o->b, w->taken, weight);
}

/* What the layer gives out is a value of its own now, of which y is the new content. */
static pl_id give_before(observer *o, pl_id node)
{
    const pl_id y = o->g->node[node].linear.y;
    const pl_value v = o->g->value[y];
    const pl_id before =
        pl_build_temporary(&o->b, v.role, v.dtype, v.shape, "%.200s.in_f32.%zu", v.name, o->g->value_count);
    if (before == PL_NONE) return PL_NONE;
    o->g->node[node].linear.y = before;
    pl_graph_set_update(o->g, y, before);
    return before;
}

/* The product in 8 bits: what the layer reads, of the weight as it is packed. */
static pl_id try_layer(observer *o, const pl_linear_args *layer, pl_id packed, pl_id range)
{
    pl_linear_int8_args a = pl_linear_int8_none;
    a.x = layer->x, a.weight = packed, a.range = range, a.bias = layer->bias, a.residual = layer->residual;
    a.act = PL_ACT_NONE;
    pl_build_linear_int8(&o->b, &a);
    place(o, o->comparing);
    return a.y;
}

/* Counts how far the two are from each other, and lets the one in 8 bits be y where the weight is taken so. */
static void judge(observer *o, pl_id before, pl_id tried, pl_id y, struct of_weight *w)
{
    pl_observe_difference_args difference = pl_observe_difference_none;
    pl_overwrite_args overwrite = pl_overwrite_none;
    difference.x = before, difference.y = tried, difference.sums = w->difference;
    w->difference = pl_build_observe_difference(&o->b, &difference); /* what the next reader of the weight adds to */
    place(o, o->comparing);
    overwrite.y = before, overwrite.z = tried, overwrite.y_new = y;
    pl_build_overwrite(&o->b, &overwrite);
    place(o, w->taken);
}

static pl_status compare(observer *o, pl_id id)
{
    const pl_node n = o->g->node[id];
    const pl_linear_args *layer = &n.linear;
    if (layer->act_y != PL_NONE)
        return pl_fail(o->b.err, PL_E_INTERNAL, "%s: an activation is fused into what is to be observed", n.scope);
    const pl_shape matrix = o->g->value[layer->weight].shape;
    const pl_id weight = pl_value_root(o->g, layer->weight);
    stand_beside(o, &n);
    make_states(o, weight, &matrix);
    const pl_id before = give_before(o, id);
    if (o->b.status != PL_OK) return o->b.status;
    struct of_weight *w = &o->of[weight];
    const pl_id tried = try_layer(o, layer, w->packed, o->range[o->sites.of[id]]);
    judge(o, before, tried, layer->y, w);
    return o->b.status;
}

/* ---- the program ---- */

static pl_id number(observer *o, pl_input input)
{
    return pl_build_persistent(&o->b, PL_ROLE_INPUT, pl_input_dtype(input), pl_shape_of(1, (int64_t)1), "%s",
                               pl_input_name(input));
}

static pl_status observe_all(observer *o, size_t nodes, pl_error *err)
{
    uint32_t next = 0; /* sites come in the order of their first layers */
    for (size_t i = 0; i < o->values; i++) o->of[i] = (struct of_weight){PL_NONE, PL_NONE, PL_NONE};
    for (size_t i = 0; i < nodes; i++) {
        const uint32_t of = o->sites.of[i];
        if (next < o->sites.count && o->sites.site[next].first == i) PL_TRY(observe(o, next++));
        o->order[o->placed++] = (pl_id)i;
        if (of != PL_NONE) PL_TRY(compare(o, (pl_id)i));
    }
    PL_TRY(pl_graph_reorder(o->g, o->order, err));
    return pl_graph_number_values(o->g, err);
}

static size_t count_layers(const observer *o, size_t nodes)
{
    size_t count = 0;
    for (size_t i = 0; i < nodes; i++) count += o->sites.of[i] != PL_NONE;
    return count;
}

pl_status pl_rewrite_observe(pl_graph *g, pl_id program, const pl_graph *like, bool spread, pl_error *err)
{
    const size_t nodes = g->node_count;
    observer o = {.g = g, .b = pl_builder_begin(g, 0, err), .values = g->value_count};
    pl_status status = PL_OK;
    PL_TRY(pl_int8_sites_find(g, program, like, &o.sites, err));
    o.order = pl_alloc(nodes + 2 * o.sites.count + 3 * count_layers(&o, nodes) + 1, sizeof *o.order);
    o.range = pl_alloc(o.sites.count + 1, sizeof *o.range);
    o.of = pl_alloc(o.values + 1, sizeof *o.of);
    if (!o.order || !o.range || !o.of) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to observe layers"));
    o.counting = spread ? number(&o, PL_INPUT_COUNTING) : PL_NONE;
    o.comparing = number(&o, PL_INPUT_COMPARING);
    PL_TRY_DONE(o.b.status);
    PL_TRY_DONE(observe_all(&o, nodes, err));
done:
    pl_int8_sites_deinit(&o.sites);
    pl_free(o.order);
    pl_free(o.range);
    pl_free(o.of);
    return status;
}
