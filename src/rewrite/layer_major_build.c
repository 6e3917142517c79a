/* The new regions, node by node. A value of the old region is, in a new one,
 *   itself                 where it lies outside of the region: weights, accumulators, the loss
 *   a tile of its stack    where it goes from region to region
 *   itself or a copy       else: the first region keeps the value, every other one has a copy of its own (a fresh one
 *                          even where no other region has it: in_place.c wants ids to rise with the nodes).
 * A stack is made by whoever writes its first tile; gradients go over a stack that nobody reads any more, if there is
 * one of their shape. */
#include <string.h>

#include "base/size.h"
#include "rewrite/layer_major.h"

typedef struct stack {
    pl_id value, holder; /* root whose tiles it holds */
} stack;

typedef struct builder {
    pl_layers *l;
    pl_error *err;
    int region; /* number of the one being built */
    pl_id region_id;
    pl_id *map;       /* [values] what the value is in the region … */
    uint32_t *mapped; /* [values] … where this is the region's number + 1 */
    pl_id *stack_of;  /* [values] by root; PL_NONE: none yet */
    stack *stacks;
    size_t stack_count, stack_room;
    pl_id sample_stack;
} builder;

static pl_status add_value(builder *b, pl_value *v, const char *suffix, pl_id *id)
{
    pl_str name = {0};
    pl_str_printf(&name, "%s.%s%d", v->name, suffix, b->region);
    v->name = pl_str_text(&name);
    v->producer = PL_NONE;
    *id = name.failed ? PL_NONE : pl_graph_add_value(b->l->g, v);
    pl_str_deinit(&name);
    return *id == PL_NONE ? pl_fail(b->err, PL_E_NOMEM, "no memory for the tiled graph") : PL_OK;
}

/* ---- stacks and tiles ---- */

static pl_status add_stack(builder *b, pl_value v, pl_role role, pl_id holder, pl_id *id)
{
    uint64_t rows;
    v.role = role;
    v.program = b->l->program;
    v.view_of = v.update_of = PL_NONE;
    if (pl_size_mul((uint64_t)v.shape.dim[0], b->l->trips, &rows) || rows >> 40)
        return pl_fail(b->err, PL_E_CONFIG, "a batch of %llu micro-batches is too large to keep %s of all of them",
                       (unsigned long long)b->l->trips, v.name);
    v.shape.dim[0] = (int64_t)rows;
    pl_value_default_strides(&v);
    PL_TRY(add_value(b, &v, "stack", id));
    if (pl_grow(&b->stacks, &b->stack_room, b->stack_count, sizeof *b->stacks))
        return pl_fail(b->err, PL_E_NOMEM, "no memory for the tiled graph");
    b->stacks[b->stack_count++] = (stack){*id, holder};
    return PL_OK;
}

static bool same_shape(const pl_graph *g, pl_id a, pl_id b)
{
    return pl_shape_equal(&g->value[a].shape, &g->value[b].shape) && g->value[a].dtype == g->value[b].dtype;
}

static pl_status find_stack(builder *b, pl_id root, size_t writer, int out)
{
    const pl_layers *l = b->l;
    bool gradient = l->from_loss[root];
    for (size_t i = 0; i < b->stack_count && gradient; i++) {
        pl_id holder = b->stacks[i].holder;
        if (holder == PL_NONE || !same_shape(l->g, holder, root)) continue;
        if (!pl_layers_may_overwrite(l, b->region, writer, out, holder)) continue;
        b->stacks[i].holder = root;
        b->stack_of[root] = b->stacks[i].value;
        return PL_OK;
    }
    pl_role role = gradient ? PL_ROLE_TEMPORARY : PL_ROLE_SAVED;
    return add_stack(b, l->g->value[root], role, root, &b->stack_of[root]);
}

static pl_status add_tile(builder *b, pl_id like, pl_id of, pl_id *id)
{
    pl_value v = b->l->g->value[like];
    v.role = b->l->g->value[of].role;
    v.program = b->l->program;
    v.view_of = of;
    v.update_of = PL_NONE;
    v.view_offset = 0;
    v.tile = true;
    pl_value_default_strides(&v);
    return add_value(b, &v, "tile", id);
}

static bool is_tile(const builder *b, pl_id root)
{
    const pl_layers *l = b->l;
    if (!l->carried[root]) return false;
    bool made_here = pl_layers_chosen(l, b->region, l->link[l->writer[root] - 1].node);
    return !made_here || l->from_loss[root] || b->region == 0; /* else made again, for this region alone */
}

static pl_status map_tile(builder *b, pl_id value, pl_id root, size_t node, int out, pl_id *to)
{
    if (value != root)
        return pl_fail(b->err, PL_E_UNSUPPORTED,
                       "train.layer_major cannot take this model apart: a window on %s is read by blocks that do not "
                       "make it; set it to 0",
                       b->l->g->value[root].name);
    if (out >= 0 && b->stack_of[root] == PL_NONE) PL_TRY(find_stack(b, root, node, out));
    if (b->stack_of[root] == PL_NONE)
        return pl_fail(b->err, PL_E_INTERNAL, "layer-major: %s is read before it is kept", b->l->g->value[root].name);
    return add_tile(b, root, b->stack_of[root], to);
}

/* ---- values ---- */

static pl_status map_value(builder *b, pl_id value, size_t node, int out, pl_id *to);

static pl_status copy_value(builder *b, pl_id value, size_t node, pl_id *to)
{
    pl_value v = b->l->g->value[value];
    if (v.view_of != PL_NONE) PL_TRY(map_value(b, v.view_of, node, -1, &v.view_of));
    if (v.update_of != PL_NONE) PL_TRY(map_value(b, v.update_of, node, -1, &v.update_of));
    return add_value(b, &v, "region", to);
}

/* out: which output of the node it is; −1: an input */
static pl_status map_value(builder *b, pl_id value, size_t node, int out, pl_id *to)
{
    const pl_layers *l = b->l;
    *to = value;
    if (value == PL_NONE) return PL_OK;
    if (b->mapped[value] == (uint32_t)b->region + 1) {
        *to = b->map[value];
        return PL_OK;
    }
    pl_id root = pl_value_root(l->g, value);
    bool sample = value == l->sample;
    if (!sample && (l->outside[root] || l->writer[root] == 0)) return PL_OK;
    if (sample)
        PL_TRY(add_tile(b, value, b->sample_stack, to));
    else if (is_tile(b, root))
        PL_TRY(map_tile(b, value, root, node, out, to));
    else if (b->region > 0)
        PL_TRY(copy_value(b, value, node, to));
    b->map[value] = *to;
    b->mapped[value] = (uint32_t)b->region + 1;
    return PL_OK;
}

/* ---- nodes ---- */

static pl_id *first_free(pl_node *n)
{
    int k = 0;
    while (k + 1 < PL_NODE_OUT_MAX && n->out[k] != PL_NONE) k++;
    return &n->out[k];
}

static pl_status add_node(builder *b, size_t node)
{
    pl_layers *l = b->l;
    pl_node n = l->g->node[node];
    n.region = b->region_id;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) PL_TRY(map_value(b, n.in[k], node, -1, &n.in[k]));
    PL_TRY(map_value(b, n.predicate, node, -1, &n.predicate));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) PL_TRY(map_value(b, n.out[k], node, k, &n.out[k]));
    if (node == l->load && l->sample != PL_NONE) PL_TRY(map_value(b, l->sample, node, -1, first_free(&n)));
    if (pl_graph_add_node(l->g, &n) == PL_NONE) return pl_fail(b->err, PL_E_NOMEM, "no memory for the tiled graph");
    return PL_OK;
}

static pl_status add_region(builder *b)
{
    pl_layers *l = b->l;
    pl_str name = {0};
    pl_str_printf(&name, "group.%d", pl_layers_group(l, b->region));
    b->region_id = b->region == 0 ? l->region : pl_graph_add_region(l->g, pl_str_text(&name), l->program, l->trips);
    if (name.failed) b->region_id = PL_NONE;
    pl_str_deinit(&name);
    if (b->region_id == PL_NONE) return pl_fail(b->err, PL_E_NOMEM, "no memory for the tiled graph");
    l->g->region[b->region_id].trip = l->trips;
    pl_layers_choose(l, b->region);
    for (size_t i = l->begin; i < l->end; i++)
        if (pl_layers_chosen(l, b->region, i)) PL_TRY(add_node(b, i));
    return PL_OK;
}

/* The new nodes come where the old ones were. */
static pl_status replace_nodes(pl_layers *l, size_t first_new, pl_error *err)
{
    pl_graph *g = l->g;
    pl_id *order = pl_alloc(g->node_count + 1, sizeof *order), at = 0;
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = l->begin; i < l->end; i++) g->node[i].dead = true;
    for (size_t i = 0; i < l->begin; i++) order[at++] = (pl_id)i;
    for (size_t i = first_new; i < g->node_count; i++) order[at++] = (pl_id)i;
    for (size_t i = l->begin; i < first_new; i++) order[at++] = (pl_id)i;
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    if (status == PL_OK) pl_graph_sweep(g);
    return status;
}

static pl_status build(builder *b)
{
    pl_layers *l = b->l;
    size_t first_new = l->g->node_count;
    if (l->sample != PL_NONE) PL_TRY(add_stack(b, l->g->value[l->sample], PL_ROLE_SAVED, PL_NONE, &b->sample_stack));
    for (b->region = 0; b->region < pl_layers_regions(l); b->region++) PL_TRY(add_region(b));
    return replace_nodes(l, first_new, b->err);
}

pl_status pl_layers_build(pl_layers *l, pl_error *err)
{
    pl_status status;
    builder b = {.l = l, .err = err};
    b.map = pl_alloc(l->values + 1, sizeof *b.map);
    b.mapped = pl_alloc(l->values + 1, sizeof *b.mapped);
    b.stack_of = pl_alloc(l->values + 1, sizeof *b.stack_of);
    if (!b.map || !b.mapped || !b.stack_of) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the tiled graph"));
    for (size_t i = 0; i < l->values; i++) b.stack_of[i] = PL_NONE;
    status = build(&b);
done:
    pl_free(b.map), pl_free(b.mapped), pl_free(b.stack_of), pl_free(b.stacks);
    return status;
}
