/* How large a model is, and what planning itself will take, known before anything deep is built: the blocks of a model
 * are alike (but for the first), so graphs of two and of three layers say what each further one adds, in nodes, values
 * and names. What is held of them at the peak of planning follows from the sizes of the structures: when the heap of
 * the runner is planned the graph of the config, the candidate's and the one that a reader of the plan would have are
 * there together, with the tables of two plans and a program that is bound.
 *
 * Layer-major order runs forward nodes again for each group of blocks; without kept inputs their number rises with the
 * square of the depth. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/compiler.h"
#include "backend/backend.h"
#include "base/size.h"
#include "ir/properties.h"
#include "rewrite/rewrite.h"

/* Of what is foretold; about as much is held. Beyond that a plan is no help any more: it takes some ten seconds, and
 * its text alone is a hundred megabytes. */
#define PLANNING_BYTES_MAX (UINT64_C(1) << 30)
enum { LAYERS_FEW = 2, LAYERS_MORE = 3 }; /* of the graphs that are built to be counted */
enum { LAYERS_SHALLOW = 64 };             /* up to which the graph itself is */

static uint64_t text_bytes(const char *text) { return pl_align_up(strlen(text) + 1, 16); }

/* As the pool keeps them: a scope that is the last one's is not kept again. */
static uint64_t count_names(const pl_graph *g)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        bytes += text_bytes(v->name) + (i && v->scope == v[-1].scope ? 0 : text_bytes(v->scope));
    }
    for (size_t i = 0; i < g->node_count; i++)
        if (i == 0 || g->node[i].scope != g->node[i - 1].scope) bytes += text_bytes(g->node[i].scope);
    return bytes;
}

/* -1: more than 2^64 bytes of weights. */
static int count_graph(const pl_graph *g, pl_graph_size *n)
{
    int over = 0;
    *n = (pl_graph_size){.nodes = g->node_count, .values = g->value_count, .name_bytes = count_names(g)};
    for (size_t i = 0; i < g->value_count && !over; i++) {
        const bool lasts = g->value[i].role == PL_ROLE_WEIGHT && g->value[i].program == PL_NONE;
        if (!lasts || pl_value_root(g, (pl_id)i) != i || pl_graph_space_is_files(g, g->value[i].space)) continue;
        const uint64_t bytes = pl_value_bytes(g, (pl_id)i);
        over = pl_size_add(n->weight_bytes, bytes, &n->weight_bytes);
        if (!g->value[i].frozen) n->trained_bytes += bytes;
    }
    return over;
}

static pl_status overflow(pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG, "the weights overflow 64 bits; make the model smaller");
}

static bool is_again(const pl_node *n, pl_id region)
{
    return n->phase == PL_PHASE_FORWARD && !n->dead && n->region == region;
}

/* What layer-major order repeats are the nodes as they are when neighbours have become one. */
static pl_status count_forward(pl_graph *g, pl_graph_size *n, pl_error *err)
{
    const pl_id train = pl_graph_find_trained(g);
    pl_id micro = PL_NONE; /* the region of micro-batches: it loads them */
    PL_TRY(pl_rewrite_fuse(g, err));
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LOAD && pl_region_program(g, g->node[i].region) == train) micro = g->node[i].region;
    for (size_t i = 0; i < g->node_count; i++) n->forward_nodes += is_again(&g->node[i], micro);
    for (size_t v = 0; v < g->value_count; v++) { /* windows, too */
        pl_id of = g->value[v].view_of != PL_NONE ? g->value[v].view_of : (pl_id)v, made = g->value[of].producer;
        n->forward_values += made != PL_NONE && is_again(&g->node[made], micro);
    }
    return PL_OK;
}

static pl_status count_at(const pl_compiler *c, int64_t layers, pl_graph_size *n, pl_error *err)
{
    pl_compiler small = *c;
    pl_graph *g = NULL;
    pl_config *config = pl_config_create();
    if (!config) return pl_fail(err, PL_E_NOMEM, "no memory to count the graph");
    *config = *c->config;
    config->model.layers = layers;
    config->run.dump = 0;
    small.config = config;
    pl_status status = pl_compiler_make_graph(&small, &g, err);
    if (status == PL_OK && count_graph(g, n)) status = overflow(err);
    if (status == PL_OK) status = count_forward(g, n, err);
    pl_graph_destroy(g);
    pl_config_destroy(config);
    return status;
}

/* Products of a depth and of what was counted stay far from 2^64: 10^5 layers, squared, times some dozens. */
static uint64_t extrapolate(uint64_t few, uint64_t more, uint64_t layers)
{
    return few + (more > few ? more - few : 0) * (layers - LAYERS_FEW);
}

static uint64_t blocks_again(const pl_config *c, uint64_t layers)
{
    int64_t keep = c->train.layer_major_keep == PL_CONFIG_AUTO ? 1 : c->train.layer_major_keep;
    pl_layer_major tiled = {.blocks = c->train.layer_major, .keep_every = keep};
    return c->train.layer_major > 0 ? pl_rewrite_layer_major_again(layers, &tiled) : 0;
}

/* pl_grow doubles. */
static uint64_t capacity(uint64_t count)
{
    uint64_t room = 16;
    while (room < count) room *= 2;
    return room;
}

static uint64_t bytes_of(const pl_graph_size *n)
{
    enum { GRAPHS = 3, PLANS = 2, BESIDE_CALL = 32 }; /* an instruction and whether it moves */
    uint64_t graph = capacity(n->values) * sizeof(pl_value) + capacity(n->nodes) * sizeof(pl_node) + n->name_bytes;
    uint64_t tables = (n->values + n->nodes) * sizeof(pl_block) + n->nodes * sizeof(double);
    uint64_t program = n->values * sizeof(uint64_t) + n->nodes * (sizeof(pl_call) + BESIDE_CALL);
    return GRAPHS * graph + PLANS * tables + program;
}

typedef struct depth {
    const pl_config *config;
    const pl_graph_size *few, *more;
} depth;

static pl_graph_size size_at(const depth *d, uint64_t layers)
{
    uint64_t again = blocks_again(d->config, layers);
    return (pl_graph_size){.nodes = extrapolate(d->few->nodes, d->more->nodes, layers) +
                                    again * (d->more->forward_nodes - d->few->forward_nodes),
                           .values = extrapolate(d->few->values, d->more->values, layers) +
                                     again * (d->more->forward_values - d->few->forward_values),
                           .name_bytes = extrapolate(d->few->name_bytes, d->more->name_bytes, layers)};
}

static uint64_t planning_bytes(const depth *d, uint64_t layers)
{
    pl_graph_size n = size_at(d, layers);
    return bytes_of(&n);
}

/* The deepest model that may be planned: what is held rises with the depth. 0: LAYERS_FEW are too many already. */
static uint64_t layers_for(const depth *d, uint64_t room_bytes)
{
    uint64_t fits = LAYERS_FEW, over = (uint64_t)d->config->model.layers;
    if (planning_bytes(d, fits) > room_bytes) return 0;
    while (over - fits > 1) {
        uint64_t middle = fits + (over - fits) / 2;
        if (planning_bytes(d, middle) <= room_bytes)
            fits = middle;
        else
            over = middle;
    }
    return fits;
}

static pl_status refuse(const depth *d, uint64_t layers, uint64_t room_bytes, const char *room, pl_error *err)
{
    char remedy[120];
    const char *or_keep = "";
    pl_graph_size n = size_at(d, layers);
    uint64_t fits = layers_for(d, room_bytes);
    if (fits == 0)
        snprintf(remedy, sizeof remedy, "allow more: not even %d can be planned in less than %" PRIu64 " bytes",
                 LAYERS_FEW, planning_bytes(d, LAYERS_FEW));
    else
        snprintf(remedy, sizeof remedy, "take fewer model.layers: %" PRIu64 " can be planned", fits);
    if (fits && blocks_again(d->config, layers) > 2 * layers)
        or_keep = ", or set train.layer_major_keep to 1 (each group begins at its own input)";
    return pl_fail(err, PL_E_BUDGET,
                   "to plan %" PRIu64 " layers, a graph of %" PRIu64 " nodes, would take %" PRIu64
                   " bytes, and %s %" PRIu64 " bytes; %s%s",
                   layers, n.nodes, bytes_of(&n), room, room_bytes, remedy, or_keep);
}

/* So few blocks that their graph costs nothing: no budget is too small for it. */
static bool is_shallow(const pl_config *c)
{
    return c->model.layers <= (c->train.layer_major > 0 ? LAYERS_MORE : LAYERS_SHALLOW);
}

static int extrapolate_weights(pl_compiler *c)
{
    const uint64_t further = (uint64_t)c->config->model.layers - LAYERS_FEW;
    const pl_graph_size *few = &c->few, *more = &c->more;
    uint64_t weights, trained;
    if (pl_size_mul(more->weight_bytes - few->weight_bytes, further, &weights) ||
        pl_size_mul(more->trained_bytes - few->trained_bytes, further, &trained))
        return -1;
    return pl_size_add(few->weight_bytes, weights, &c->weight_bytes) ||
           pl_size_add(few->trained_bytes, trained, &c->trained_bytes);
}

pl_status pl_compiler_count(pl_compiler *c, pl_graph **graph, pl_error *err)
{
    if (!is_shallow(c->config)) {
        PL_TRY(count_at(c, LAYERS_FEW, &c->few, err));
        PL_TRY(count_at(c, LAYERS_MORE, &c->more, err));
        return extrapolate_weights(c) ? overflow(err) : PL_OK;
    }
    PL_TRY(pl_compiler_make_graph(c, graph, err));
    if (count_graph(*graph, &c->few)) return overflow(err);
    c->weight_bytes = c->few.weight_bytes;
    c->trained_bytes = c->few.trained_bytes;
    return PL_OK;
}

pl_status pl_compiler_check_work(const pl_compiler *c, pl_error *err)
{
    char room[128] = "planning may take at most";
    uint64_t layers = (uint64_t)c->config->model.layers, most = PLANNING_BYTES_MAX;
    depth d = {.config = c->config, .few = &c->few, .more = &c->more};
    if (is_shallow(c->config)) return PL_OK;
    pl_machine_ceiling machine = pl_machine_find_ceiling(&c->machine);
    if (machine.bytes < most) {
        most = machine.bytes;
        snprintf(room, sizeof room, "%.90s allows at most", machine.bound_by);
    }
    return planning_bytes(&d, layers) <= most ? PL_OK : refuse(&d, layers, most, room, err);
}
