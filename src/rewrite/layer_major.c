/* Layer-major tiling. As the graph is built, a step over a batch in micro-batches (tiles) goes tile by tile through the
 * whole model, so the gradients of all weights are alive throughout. Here the loops change places: the backward pass
 * takes one *group* of blocks after the other, from the last to the first, and each group takes all tiles:
 *
 *      region × tiles   load; forward up to the highest input that is kept: inputs of groups → stacks
 *      region × tiles   last group: forward again from its nearest kept input; loss; backward: d input → stack
 *      (the last group's weights are updated: update_order.c)
 *      region × tiles   the group before: forward again …; backward from the stack
 *      …
 *
 * Only one group's gradients are alive (and those of weights that several groups use). The cost: the forward pass
 * again, from the nearest kept input below each group, or from what was loaded. What is kept: a stack (one tile per
 * trip) of the gradients that pass from group to group, and one for each kept input; a group that is the last to read a
 * stack overwrites it with its own gradients.
 *
 * How: a node that depends on the loss belongs to the group of its scope ("block.3/…") and runs once per tile, as
 * before. All others may run again: each region takes those that its backward nodes need, directly or not, down to what
 * lies in a stack. So nothing is run again without a reader, whatever the model looks like.
 *
 * Invariant: each gradient gets the same contributions in the order of the tiles, so the bits are the same. (A tied
 * table has an accumulator for each of its readers: grad/differentiate.c.)
 *
 * Randomness is counted by sample: the load node leaves the number of a tile's first sequence in a stack. */
#include "rewrite/layer_major.h"

#include <string.h>

#include "ir/inputs.h"
#include "ir/properties.h"
#include "ir/op.h"

/* ---- groups ---- */

/* From 0; the type of groups. */
static int block_of(const pl_node *n) { return (int)n->block - 1; }

static int count_blocks(const pl_graph *g, pl_id program)
{
    int most = PL_NO_GROUP;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        if (block_of(n) > most) most = block_of(n);
    }
    return most + 1;
}

static pl_id root_of(const pl_layers *l, pl_id value) { return pl_value_root(l->g, value); }

/* Outside blocks: what only the loss feeds belongs to the last group; any other backward node to the group that it gets
 * its gradient from, a forward node to the group that it reads. */
static int group_by_inputs(const pl_layers *l, const pl_node *n, bool backward)
{
    int group = backward ? l->groups - 1 : 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        if (n->in[k] == PL_NONE) continue;
        pl_id root = root_of(l, n->in[k]);
        if (l->outside[root] || l->made_in[root] == PL_NO_GROUP || l->from_loss[root] != backward) continue;
        group = backward == (l->made_in[root] < group) ? l->made_in[root] : group;
    }
    return group;
}

static bool reads_loss(const pl_layers *l, const pl_node *n)
{
    if (pl_op_rule_of(n->op)->loss) return true;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && l->from_loss[root_of(l, n->in[k])]) return true;
    return false;
}

static void note_output(pl_layers *l, size_t at, pl_id root, uint32_t *links)
{
    bool backward = l->backward[at];
    int group = l->group[at], *made = &l->made_in[root];
    l->from_loss[root] |= backward;
    if (*made == PL_NO_GROUP || (backward ? group < *made : group > *made)) *made = group;
    l->link[*links].node = (pl_id)(l->begin + at);
    l->link[*links].next = l->writer[root];
    l->writer[root] = ++*links;
}

static pl_status fail_shape(const pl_node *n, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED, "train.layer_major cannot take this model apart: %s in %s %s; set it to 0",
                   pl_op_name(n->op), n->scope, what);
}

static pl_status sort_nodes(pl_layers *l, int blocks_per_group, pl_error *err)
{
    uint32_t links = 0;
    for (size_t i = l->begin; i < l->end; i++) {
        const pl_node *n = &l->g->node[i];
        size_t at = i - l->begin;
        int block = block_of(n);
        l->backward[at] = reads_loss(l, n);
        l->group[at] = block == PL_NO_GROUP ? group_by_inputs(l, n, l->backward[at]) : block / blocks_per_group;
        if (n->op == PL_OP_LOAD) l->load = (pl_id)i;
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            if (n->in[k] == PL_NONE) continue;
            pl_id root = root_of(l, n->in[k]);
            bool upward = l->backward[at] && !l->outside[root] && l->from_loss[root];
            if (upward && l->made_in[root] < l->group[at])
                return fail_shape(n, "gets a gradient from a block before it", err);
        }
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
            if (n->out[k] == PL_NONE) continue;
            pl_id root = root_of(l, n->out[k]);
            if (l->outside[root] && !l->backward[at]) return fail_shape(n, "must not run a second time", err);
            note_output(l, at, root, &links);
        }
    }
    return l->load == PL_NONE ? pl_fail(err, PL_E_INTERNAL, "the region to tile loads nothing") : PL_OK;
}

/* ---- what is kept ---- */

static bool is_kept(const pl_layers *l, int group) { return l->keep > 0 && group > 0 && group % l->keep == 0; }

static bool is_loaded(const pl_layers *l, pl_id root)
{
    const pl_node *n = &l->g->node[l->load];
    bool loaded = false;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) loaded |= root == n->out[k];
    return loaded;
}

/* A forward value that a later group reads is an input of that group. */
static void find_bounds(pl_layers *l)
{
    for (size_t i = l->begin; i < l->end; i++) {
        const pl_node *n = &l->g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            if (n->in[k] == PL_NONE) continue;
            pl_id root = root_of(l, n->in[k]);
            if (l->outside[root] || l->writer[root] == 0 || l->from_loss[root] || is_loaded(l, root)) continue;
            int low = l->made_in[root] + 1;
            while (low <= l->group[i - l->begin] && !is_kept(l, low)) low++;
            if (low > l->group[i - l->begin]) continue;
            l->bound[root] = low; /* the lowest kept after its maker's, whoever reads it */
            l->forward = true;
        }
    }
}

/* ---- what a region needs ---- */

static bool is_at_hand(const pl_layers *l, int region, pl_id root)
{
    int group = pl_layers_group(l, region);
    if (l->outside[root] || l->writer[root] == 0) return true;
    if (l->from_loss[root]) return l->made_in[root] != group; /* then a later group makes it */
    if (is_loaded(l, root)) return region > 0;
    return l->bound[root] != PL_NO_GROUP && l->bound[root] <= group && group < l->groups;
}

static void want(pl_layers *l, int region, pl_id node, size_t *count)
{
    if (pl_layers_chosen(l, region, node)) return;
    l->stamp[node - l->begin] = (uint32_t)region + 1;
    l->todo[(*count)++] = node;
}

static void want_writers(pl_layers *l, int region, pl_id root, size_t *count)
{
    for (uint32_t at = l->writer[root]; at; at = l->link[at - 1].next) want(l, region, l->link[at - 1].node, count);
}

void pl_layers_choose(pl_layers *l, int region)
{
    size_t count = 0;
    int group = pl_layers_group(l, region);
    if (region == 0) want(l, region, l->load, &count);
    for (size_t i = l->begin; i < l->end && group < l->groups; i++)
        if (l->backward[i - l->begin] && l->group[i - l->begin] == group) want(l, region, (pl_id)i, &count);
    for (size_t v = 0; v < l->values && group == l->groups; v++)
        if (l->bound[v] != PL_NO_GROUP) want_writers(l, region, (pl_id)v, &count);
    while (count) {
        const pl_node *n = &l->g->node[l->todo[--count]];
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] != PL_NONE && !is_at_hand(l, region, root_of(l, n->in[k])))
                want_writers(l, region, root_of(l, n->in[k]), &count);
        if (n->predicate != PL_NONE && !is_at_hand(l, region, root_of(l, n->predicate)))
            want_writers(l, region, root_of(l, n->predicate), &count);
    }
}

/* A value goes through a stack when a region that does not make it reads it. */
static void note_reads(pl_layers *l, int region)
{
    for (size_t i = l->begin; i < l->end; i++) {
        const pl_node *n = &l->g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX && pl_layers_chosen(l, region, i); k++) {
            if (n->in[k] == PL_NONE) continue;
            pl_id root = root_of(l, n->in[k]);
            if (l->outside[root] || l->writer[root] == 0) continue;
            l->last_reader[root] = region;
            if (!pl_layers_chosen(l, region, l->link[l->writer[root] - 1].node)) l->carried[root] = true;
        }
    }
}

bool pl_layers_may_overwrite(const pl_layers *l, int region, size_t writer, int out, pl_id root)
{
    const pl_node *w = &l->g->node[writer];
    uint32_t may = pl_node_alias(w, out).may;
    if (l->last_reader[root] != region) return false;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (w->in[k] != PL_NONE && root_of(l, w->in[k]) == root && !(may >> k & 1)) return false;
    for (size_t i = writer + 1; i < l->end; i++)
        for (int k = 0; k < PL_NODE_IN_MAX && pl_layers_chosen(l, region, i); k++)
            if (l->g->node[i].in[k] != PL_NONE && root_of(l, l->g->node[i].in[k]) == root) return false;
    return true;
}

/* ---- the pass ---- */

static pl_status find_region(pl_layers *l, pl_error *err)
{
    const pl_graph *g = l->g;
    l->region = PL_NONE;
    for (size_t i = 0; i < g->node_count; i++) {
        bool loads = g->node[i].op == PL_OP_LOAD && pl_region_program(g, g->node[i].region) == l->program;
        if (loads && !g->node[i].dead) l->region = g->node[i].region;
    }
    for (size_t i = 0; i < g->node_count && l->region != PL_NONE; i++) {
        if (g->node[i].region != l->region || g->node[i].dead) continue;
        if (l->end == 0) l->begin = i;
        l->end = i + 1;
    }
    if (l->region == PL_NONE || l->region == l->program)
        return pl_fail(err, PL_E_INTERNAL, "there is no region of micro-batches to tile");
    return PL_OK;
}

static bool lasts(const pl_value *v)
{
    return v->program == PL_NONE || v->role == PL_ROLE_INPUT || v->role == PL_ROLE_OUTPUT || v->role == PL_ROLE_STATE;
}

static void find_outside(pl_layers *l)
{
    const pl_graph *g = l->g;
    for (size_t v = 0; v < l->values; v++) l->outside[v] = lasts(&g->value[v]);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (i >= l->begin && i < l->end) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] != PL_NONE) l->outside[root_of(l, n->in[k])] = true;
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (n->out[k] != PL_NONE) l->outside[root_of(l, n->out[k])] = true;
    }
}

static void find_sample(pl_layers *l)
{
    pl_id sample = pl_input_find(l->g, PL_INPUT_FIRST_SAMPLE);
    l->sample = PL_NONE;
    for (size_t i = l->begin; i < l->end && sample != PL_NONE; i++)
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (l->g->node[i].in[k] == sample) l->sample = sample;
}

static int *numbers(size_t count)
{
    int *n = pl_alloc(count + 1, sizeof *n);
    for (size_t i = 0; n && i < count; i++) n[i] = PL_NO_GROUP;
    return n;
}

static pl_status allocate(pl_layers *l, pl_error *err)
{
    size_t nodes = l->end - l->begin;
    l->backward = pl_alloc(nodes + 1, sizeof *l->backward);
    l->group = numbers(nodes);
    l->stamp = pl_alloc(nodes + 1, sizeof *l->stamp);
    l->todo = pl_alloc(nodes + 1, sizeof *l->todo);
    l->link = pl_alloc(nodes * PL_NODE_OUT_MAX + 1, sizeof *l->link);
    l->outside = pl_alloc(l->values + 1, sizeof *l->outside);
    l->from_loss = pl_alloc(l->values + 1, sizeof *l->from_loss);
    l->carried = pl_alloc(l->values + 1, sizeof *l->carried);
    l->writer = pl_alloc(l->values + 1, sizeof *l->writer);
    l->made_in = numbers(l->values);
    l->bound = numbers(l->values);
    l->last_reader = numbers(l->values);
    bool whole = l->backward && l->group && l->stamp && l->todo && l->link && l->outside && l->from_loss &&
                 l->carried && l->writer && l->made_in && l->bound && l->last_reader;
    return whole ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to tile a graph of %zu nodes", nodes);
}

static void deinit(pl_layers *l)
{
    pl_free(l->backward), pl_free(l->group), pl_free(l->stamp), pl_free(l->todo), pl_free(l->link);
    pl_free(l->outside), pl_free(l->from_loss), pl_free(l->carried), pl_free(l->writer);
    pl_free(l->made_in), pl_free(l->bound), pl_free(l->last_reader);
}

pl_status pl_rewrite_layer_major(pl_graph *g, pl_id program, const pl_layer_major *o, pl_error *err)
{
    pl_status status;
    pl_layers l = {.g = g, .program = program, .values = g->value_count, .trips = o->trips, .keep = (int)o->keep_every};
    int blocks = count_blocks(g, program), each = o->blocks < blocks ? (int)o->blocks : blocks;
    l.load = PL_NONE;
    PL_TRY(find_region(&l, err));
    if (blocks == 0) return fail_shape(&g->node[l.begin], "is in no block, and nothing is", err);
    l.groups = (blocks + each - 1) / each;
    PL_TRY_DONE(allocate(&l, err));
    find_outside(&l);
    find_sample(&l);
    PL_TRY_DONE(sort_nodes(&l, each, err));
    find_bounds(&l);
    for (int r = 0; r < pl_layers_regions(&l); r++) {
        pl_layers_choose(&l, r);
        note_reads(&l, r);
    }
    memset(l.stamp, 0, (l.end - l.begin) * sizeof *l.stamp);
    status = pl_layers_build(&l, err);
done:
    deinit(&l);
    return status;
}

/* Each group begins at the nearest kept input below it. */
uint64_t pl_rewrite_layer_major_again(uint64_t blocks, const pl_layer_major *o)
{
    if (o->blocks < 1 || blocks == 0) return 0;
    uint64_t each = (uint64_t)o->blocks < blocks ? (uint64_t)o->blocks : blocks, groups = (blocks + each - 1) / each;
    uint64_t keep = o->keep_every > 0 && (uint64_t)o->keep_every < groups ? (uint64_t)o->keep_every : groups;
    uint64_t whole = groups / keep, rest = groups % keep;
    return each * (whole * (keep * (keep + 1) / 2) + rest * (rest + 1) / 2);
}

uint64_t pl_rewrite_layer_major_nodes(const pl_graph *g, pl_id program, const pl_layer_major *o)
{
    pl_error ignored = {0};
    pl_layers l = {.g = (pl_graph *)g, .program = program}; /* only read here */
    uint64_t blocks = (uint64_t)count_blocks(g, program), forward = 0;
    if (blocks == 0 || find_region(&l, &ignored) != PL_OK) return 0;
    for (size_t i = l.begin; i < l.end; i++)
        forward += !g->node[i].dead && g->node[i].phase == PL_PHASE_FORWARD && g->node[i].block > 0;
    return pl_rewrite_layer_major_again(blocks, o) * forward / blocks;
}

/* Assumes that blocks run once each, in order: so they do in the systems that have the key. */
bool pl_rewrite_layer_major_possible(const pl_graph *g, pl_id program, const char **why)
{
    if (!pl_rewrite_update_early_possible(g, program, 1, why)) return false;
    *why = count_blocks(g, program) ? NULL : "the model has no blocks";
    if (pl_graph_find_mixer(g, program) != PL_NONE)
        *why = "the model mixes the samples of a batch, so there are no micro-batches that could take turns";
    return *why == NULL;
}
