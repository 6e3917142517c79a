#include "reference/interpret.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/state.h"

static void broken(const char *what)
{
    fprintf(stderr, "reference interpreter: %s\n", what);
    abort();
}

void *reference_allocate(uint64_t count, uint64_t size)
{
    void *block = calloc(count ? count : 1, size);
    if (!block) broken("no memory");
    return block;
}

/* ---- where values lie ---- */

static int64_t window_offset(const pl_graph *g, pl_id value)
{
    int64_t offset = 0;
    while (g->value[value].view_of != PL_NONE || g->value[value].update_of != PL_NONE) {
        const pl_value *v = &g->value[value];
        if (v->view_of != PL_NONE) offset += v->view_offset;
        value = v->view_of != PL_NONE ? v->view_of : v->update_of;
    }
    return offset;
}

/* Where the strides of a value are written: an update lies as what it replaces. */
static const pl_value *layout_of(const pl_graph *g, pl_id value)
{
    while (g->value[value].update_of != PL_NONE) value = g->value[value].update_of;
    return &g->value[value];
}

/* Place of dense element `i` of a value within its root's block. */
int64_t reference_place(const pl_graph *g, pl_id value, uint64_t i)
{
    const pl_value *v = &g->value[value], *layout = layout_of(g, value);
    int64_t at = window_offset(g, value);
    for (uint32_t d = v->shape.rank; d-- > 0;) {
        at += (int64_t)(i % (uint64_t)v->shape.dim[d]) * layout->stride[d];
        i /= (uint64_t)v->shape.dim[d];
    }
    return at;
}

/* The block of a value's root; of a tile, from where the trip's tile would be the first. */
static double *block_of(const reference *r, pl_id value)
{
    double *block = r->block[pl_value_root(r->graph, value)];
    return r->graph->value[value].tile ? block + r->trip * pl_shape_elems(&r->graph->value[value].shape) : block;
}

static void copy_out(const reference *r, pl_id value, double *dense)
{
    const double *block = block_of(r, value);
    uint64_t elems = pl_shape_elems(&r->graph->value[value].shape);
    for (uint64_t i = 0; i < elems; i++) dense[i] = block[reference_place(r->graph, value, i)];
}

uint64_t reference_elems(const reference *r, pl_id value) { return pl_shape_elems(&r->graph->value[value].shape); }

double *reference_address(reference *r, pl_id value) { return block_of(r, value) + window_offset(r->graph, value); }

double *reference_find(reference *r, const char *name)
{
    pl_id id = pl_graph_find_value(r->graph, name);
    if (id == PL_NONE) {
        fprintf(stderr, "no value %s\n", name);
        broken("a test asks for a value that the graph has not");
    }
    return reference_address(r, id);
}

/* ---- operands ---- */

const pl_value *operand(const operands *o, int in) { return pl_value_at(o->r->graph, o->node->in[in]); }
bool wanted(const operands *o, int out) { return o->node->out[out] != PL_NONE; }

double *scratch(operands *o, uint64_t elems)
{
    if (o->r->scratch_count == SCRATCH_MAX) broken("too much scratch");
    return o->r->scratch[o->r->scratch_count++] = reference_allocate(elems, sizeof(double));
}

void put(operands *o, int out, const double *dense)
{
    pl_id value = o->node->out[out];
    if (value == PL_NONE) return;
    double *block = block_of(o->r, value);
    uint64_t elems = reference_elems(o->r, value);
    for (uint64_t i = 0; i < elems; i++) block[reference_place(o->r->graph, value, i)] = dense[i];
}

static void run_node(reference *r, const pl_node *n, uint64_t iteration, reference_load load, void *context)
{
    const pl_graph *g = r->graph;
    operands o = {.r = r, .node = n};
    r->trip = iteration;
    if (n->predicate != PL_NONE && *reference_address(r, n->predicate) == 0) return;
    if (n->op == PL_OP_LOAD) {
        int64_t count = (int64_t)reference_elems(r, n->out[0]);
        load(context, iteration, count, reference_address(r, n->out[0]), reference_address(r, n->out[1]));
        if (n->out[2] != PL_NONE) *reference_address(r, n->out[2]) = *reference_find(r, "input.first_sample");
        return;
    }
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        if (n->in[k] == PL_NONE) continue;
        o.in[k] = scratch(&o, pl_shape_elems(&g->value[n->in[k]].shape));
        copy_out(r, n->in[k], o.in[k]);
    }
    reference_ops[n->op](&o);
    while (r->scratch_count) free(r->scratch[--r->scratch_count]);
    r->trip = 0;
}

/* ---- regions: the nodes of a region are one stretch, and a stretch is repeated ---- */

static bool inside(const pl_graph *g, pl_id region, pl_id of)
{
    while (region != PL_NONE && region != of) region = g->region[region].parent;
    return region == of;
}

/* The child of `of` that holds `region`, or `of` itself. */
static pl_id child_towards(const pl_graph *g, pl_id region, pl_id of)
{
    while (region != of && g->region[region].parent != of) region = g->region[region].parent;
    return region;
}

static void run_stretch(reference *r, size_t begin, size_t end, pl_id region, uint64_t iteration, reference_load load,
                        void *context)
{
    const pl_graph *g = r->graph;
    for (size_t i = begin; i < end;) {
        const pl_node *n = &g->node[i];
        if (n->dead || !inside(g, n->region, region)) {
            i++;
            continue;
        }
        pl_id child = child_towards(g, n->region, region);
        if (child == region) {
            run_node(r, n, iteration, load, context);
            i++;
            continue;
        }
        size_t stop = i;
        while (stop < end && inside(g, g->node[stop].region, child)) stop++;
        for (uint64_t t = 0; t < g->region[child].trip; t++) run_stretch(r, i, stop, child, t, load, context);
        i = stop;
    }
}

void reference_run(reference *r, pl_id program, reference_load load, void *context)
{
    run_stretch(r, 0, r->graph->node_count, program, 0, load, context);
}

void reference_run_named(reference *r, const char *program, reference_load load, void *context)
{
    pl_id id = pl_graph_find_program(r->graph, program);
    if (id == PL_NONE) broken("a test runs a program that the graph has not");
    reference_run(r, id, load, context);
}

reference *reference_create(const pl_graph *g)
{
    reference *r = reference_allocate(1, sizeof *r);
    r->graph = g;
    r->block = reference_allocate(g->value_count, sizeof *r->block);
    for (size_t i = 0; i < g->value_count; i++) {
        if (pl_value_root(g, (pl_id)i) != i) continue;
        uint64_t elems = pl_shape_elems(&g->value[i].shape);
        r->block[i] = reference_allocate(elems, sizeof(double));
        for (uint64_t e = 0; e < elems; e++) r->block[i][e] = NAN;
    }
    return r;
}

void reference_destroy(reference *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->graph->value_count; i++) free(r->block[i]);
    free(r->block);
    free(r);
}
