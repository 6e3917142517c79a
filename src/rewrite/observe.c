/* A calibration sees what comes to the layers that can be done in 8 bits:
 *
 *      y = linear(x, W)        →  E' = observe_extremes(x, E);  S' = observe_spread(x, E', S);  y = linear(x, W)
 *
 * E and S are states of the name of the site (int8_sites.h), ".extremes" and ".bins" behind it, 0 before anything is
 * seen. The spread is counted where the input COUNTING is not 0: when all has been seen once, so that E is what it
 * stays. Nothing else changes. */
#include <stdio.h>

#include "base/quantize.h"
#include "ir/inputs.h"
#include "ir/op.h"
#include "rewrite/int8_sites.h"
#include "rewrite/rewrite.h"

typedef struct observer {
    pl_graph *g;
    pl_builder b;
    pl_int8_sites sites;
    pl_id counting;
    pl_id *order;
    size_t placed;
} observer;

static void add(observer *o, const pl_node *before, pl_op op, int ins, const pl_id *in, pl_id predicate, pl_id *out)
{
    *out = PL_NONE;
    pl_build_node(&o->b, op, NULL, ins, in, 1, out);
    if (o->b.status != PL_OK) return;
    o->g->node[o->g->node_count - 1].predicate = predicate != PL_NONE ? predicate : before->predicate;
    o->order[o->placed++] = (pl_id)o->g->node_count - 1;
}

static pl_status observe(observer *o, const pl_int8_site *site, pl_error *err)
{
    const pl_node n = o->g->node[site->first];
    char name[PL_INT8_NAME_BYTES];
    pl_id extremes, bins;
    pl_int8_site_name(o->g, site, name);
    if (n.predicate != PL_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED, "%s runs for some micro-batches alone, so its input is not observed",
                       name);
    o->b.region = n.region;
    o->b.phase = n.phase;
    snprintf(o->b.scope, sizeof o->b.scope, "%s", n.scope);
    const int64_t three = sizeof(pl_extremes) / sizeof(float);
    extremes = pl_build_persistent(&o->b, PL_ROLE_STATE, PL_DTYPE_F32, pl_shape_of(1, three), "%s.extremes", name);
    bins = pl_build_persistent(&o->b, PL_ROLE_STATE, PL_DTYPE_I64, pl_shape_of(1, (int64_t)PL_SPREAD_BINS), "%s.bins",
                               name);
    add(o, &n, PL_OP_OBSERVE_EXTREMES, 2, (pl_id[]){site->x, extremes}, PL_NONE, &extremes);
    add(o, &n, PL_OP_OBSERVE_SPREAD, 3, (pl_id[]){site->x, extremes, bins}, o->counting, &bins);
    return o->b.status;
}

static pl_status observe_all(observer *o, size_t nodes, pl_error *err)
{
    size_t next = 0; /* sites come in the order of their first layers */
    for (size_t i = 0; i < nodes; i++) {
        if (next < o->sites.count && o->sites.site[next].first == i) PL_TRY(observe(o, &o->sites.site[next++], err));
        o->order[o->placed++] = (pl_id)i;
    }
    return pl_graph_reorder(o->g, o->order, err);
}

pl_status pl_rewrite_observe(pl_graph *g, pl_id program, pl_error *err)
{
    const size_t nodes = g->node_count;
    observer o = {.g = g, .b = pl_builder_begin(g, 0, err)};
    pl_status status = PL_OK;
    PL_TRY(pl_int8_sites_find(g, program, &o.sites, err));
    o.order = pl_alloc(nodes + 2 * o.sites.count + 1, sizeof *o.order);
    if (!o.order) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to observe layers"));
    o.counting = pl_build_persistent(&o.b, PL_ROLE_INPUT, pl_input_dtype(PL_INPUT_COUNTING), pl_shape_of(1, (int64_t)1),
                                     "%s", pl_input_name(PL_INPUT_COUNTING));
    PL_TRY_DONE(o.b.status);
    PL_TRY_DONE(observe_all(&o, nodes, err));
done:
    pl_int8_sites_deinit(&o.sites);
    pl_free(o.order);
    return status;
}
