#include "ir/graph.h"

#include <string.h>

#include "base/size.h"

const char *pl_phase_name(pl_phase phase)
{
    static const char *const names[PL_PHASE_COUNT] = {"forward", "backward", "update"};
    return names[phase];
}

const char *pl_op_name(pl_op op) { return pl_signature_of(op)->name; }

int pl_op_parse(const char *text, pl_op *op)
{
    for (int i = 0; i < PL_OP_COUNT; i++)
        if (strcmp(text, pl_op_name((pl_op)i)) == 0) return *op = (pl_op)i, 0;
    return -1;
}

pl_graph *pl_graph_create(void)
{
    pl_graph *g = pl_alloc(1, sizeof *g);
    if (g) g->pool = pl_pool_create();
    if (!g || !g->pool) {
        pl_graph_destroy(g);
        return NULL;
    }
    g->space[g->space_count++] = "ram";
    g->queue[g->queue_count++] = "main";
    g->queue[g->queue_count++] = "loader";
    return g;
}

void pl_graph_destroy(pl_graph *g)
{
    if (!g) return;
    pl_free(g->value);
    pl_free(g->node);
    pl_free(g->region);
    pl_pool_destroy(g->pool);
    pl_free(g);
}

/* Arrays of names repeat a lot (scopes): the copy of the last one is used again when it is the same. */
static const char *keep(pl_graph *g, const char *text, const char *last)
{
    if (!text) text = "";
    if (last && strcmp(text, last) == 0) return last;
    return pl_pool_strdup(g->pool, text);
}

int pl_graph_reserve(pl_graph *g, size_t values, size_t nodes)
{
    if (pl_reserve(&g->value, &g->value_capacity, values, sizeof *g->value)) return -1;
    return pl_reserve(&g->node, &g->node_capacity, nodes, sizeof *g->node);
}

/* What comes later cannot be an owner; check.c says so. */
static void find_root(const pl_graph *g, pl_id id, pl_value *v)
{
    pl_id of = v->view_of != PL_NONE ? v->view_of : v->update_of;
    bool owner = of == PL_NONE || of >= id;
    v->root = owner ? id : pl_value_root(g, of);
    v->root_offset = owner ? 0 : pl_value_root_offset(g, of) + (v->view_of != PL_NONE ? v->view_offset : 0);
}

pl_id pl_graph_add_value(pl_graph *g, const pl_value *value)
{
    if (g->value_count >= PL_NONE - 1 || pl_grow(&g->value, &g->value_capacity, g->value_count, sizeof *g->value))
        return PL_NONE;
    pl_value *v = &g->value[g->value_count];
    const char *last = g->value_count ? g->value[g->value_count - 1].scope : NULL;
    *v = *value;
    v->name = keep(g, value->name, NULL);
    v->scope = keep(g, value->scope, last);
    if (!v->name || !v->scope) return PL_NONE;
    find_root(g, (pl_id)g->value_count, v);
    return (pl_id)g->value_count++;
}

pl_id pl_graph_add_node(pl_graph *g, const pl_node *node)
{
    if (g->node_count >= PL_NONE - 1 || pl_grow(&g->node, &g->node_capacity, g->node_count, sizeof *g->node))
        return PL_NONE;
    pl_node *n = &g->node[g->node_count];
    const char *last = g->node_count ? g->node[g->node_count - 1].scope : NULL;
    *n = *node;
    n->scope = keep(g, node->scope, last);
    if (!n->scope) return PL_NONE;
    for (int i = 0; i < PL_NODE_OUT_MAX; i++)
        if (n->out[i] != PL_NONE) g->value[n->out[i]].producer = (pl_id)g->node_count;
    return (pl_id)g->node_count++;
}

static void set_producers(pl_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++) g->value[i].producer = PL_NONE; /* its node may be gone */
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (g->node[i].out[k] != PL_NONE && !g->node[i].dead) g->value[g->node[i].out[k]].producer = (pl_id)i;
}

void pl_graph_set_update(pl_graph *g, pl_id value, pl_id old)
{
    g->value[value].update_of = old;
    find_root(g, value, &g->value[value]);
}

pl_status pl_graph_reorder(pl_graph *g, const pl_id *order, pl_error *err)
{
    pl_node *sorted = pl_alloc(g->node_count, sizeof *sorted);
    if (!sorted) return pl_fail(err, PL_E_NOMEM, "no memory to reorder %zu nodes", g->node_count);
    for (size_t i = 0; i < g->node_count; i++) sorted[i] = g->node[order[i]];
    memcpy(g->node, sorted, g->node_count * sizeof *sorted);
    pl_free(sorted);
    set_producers(g);
    return PL_OK;
}

pl_status pl_graph_group_programs(pl_graph *g, pl_error *err)
{
    pl_id *order = pl_alloc(g->node_count, sizeof *order), at = 0;
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order %zu nodes", g->node_count);
    for (size_t r = 0; r < g->region_count; r++)
        for (size_t i = 0; i < g->node_count && g->region[r].parent == PL_NONE; i++)
            if (pl_region_program(g, g->node[i].region) == r) order[at++] = (pl_id)i;
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    return status;
}

/* first[value]: 1 + the first node that writes it, windows on it included; 0: none does. */
static void find_first_writers(const pl_graph *g, pl_id *first)
{
    for (size_t i = g->node_count; i-- > 0;)
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            for (pl_id v = g->node[i].out[k]; v != PL_NONE && g->value[v].program != PL_NONE; v = g->value[v].view_of)
                first[v] = (pl_id)i + 1;
    for (size_t v = 0; v < g->value_count; v++) { /* a window is no older than what it looks at, nor an update */
        pl_id of = g->value[v].view_of != PL_NONE ? g->value[v].view_of : g->value[v].update_of;
        if (of != PL_NONE && first[of] > first[v]) first[v] = first[of];
    }
}

/* begin[f]: the new id of the first value of which first[] is f. As in counting sort. */
static void count_places(const pl_graph *g, const pl_id *first, pl_id *begin)
{
    for (size_t v = 0; v < g->value_count; v++) begin[first[v] + 1]++;
    for (size_t f = 1; f <= g->node_count; f++) begin[f] += begin[f - 1];
}

static void rename_value(pl_id *id, const pl_id *renamed)
{
    if (*id != PL_NONE) *id = renamed[*id];
}

static void rename_all(pl_graph *g, const pl_id *renamed, pl_value *sorted)
{
    for (size_t v = 0; v < g->value_count; v++) sorted[renamed[v]] = g->value[v];
    for (size_t v = 0; v < g->value_count; v++) {
        g->value[v] = sorted[v];
        rename_value(&g->value[v].view_of, renamed);
        rename_value(&g->value[v].update_of, renamed);
        rename_value(&g->value[v].of, renamed);
        find_root(g, (pl_id)v, &g->value[v]);
    }
    for (size_t i = 0; i < g->node_count; i++) {
        for (int k = 0; k < PL_NODE_IN_MAX; k++) rename_value(&g->node[i].in[k], renamed);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) rename_value(&g->node[i].out[k], renamed);
        rename_value(&g->node[i].predicate, renamed);
    }
}

pl_status pl_graph_number_values(pl_graph *g, pl_error *err)
{
    pl_id *first = pl_alloc(g->value_count + 1, sizeof *first), *begin = pl_alloc(g->node_count + 2, sizeof *begin);
    pl_value *sorted = pl_alloc(g->value_count + 1, sizeof *sorted);
    bool fine = first && begin && sorted;
    if (fine) {
        find_first_writers(g, first);
        count_places(g, first, begin);
        for (size_t v = 0; v < g->value_count; v++) first[v] = begin[first[v]]++;
        rename_all(g, first, sorted);
    }
    pl_free(first);
    pl_free(begin);
    pl_free(sorted);
    return fine ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to number %zu values", g->value_count);
}

void pl_graph_sweep(pl_graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->node[i].dead) g->node[kept++] = g->node[i];
    g->node_count = kept;
    set_producers(g);
}

pl_id pl_graph_add_region(pl_graph *g, const char *name, pl_id parent, uint64_t trip)
{
    if (pl_grow(&g->region, &g->region_capacity, g->region_count, sizeof *g->region)) return PL_NONE;
    char *copy = pl_pool_strdup(g->pool, name);
    if (!copy) return PL_NONE;
    g->region[g->region_count] = (pl_region){.name = copy, .parent = parent, .trip = trip};
    return (pl_id)g->region_count++;
}

/* Behind those that every graph has. */
static int copy_names(pl_pool *pool, const char **to, uint32_t *count, const char *const *from, uint32_t from_count)
{
    for (; *count < from_count; ++*count)
        if (!(to[*count] = pl_pool_strdup(pool, from[*count]))) return -1;
    return 0;
}

static pl_graph *copy(const pl_graph *from, size_t values, size_t nodes)
{
    pl_graph *g = pl_graph_create();
    if (!g) return NULL;
    if (pl_graph_reserve(g, values, nodes) ||
        copy_names(g->pool, g->space, &g->space_count, from->space, from->space_count) ||
        copy_names(g->pool, g->queue, &g->queue_count, from->queue, from->queue_count))
        goto refused;
    for (size_t i = 0; i < from->region_count; i++) {
        const pl_region *r = &from->region[i];
        if (pl_graph_add_region(g, r->name, r->parent, r->trip) == PL_NONE) goto refused;
        g->region[i].batch = r->batch;
    }
    for (size_t i = 0; i < from->value_count; i++)
        if (pl_graph_add_value(g, &from->value[i]) == PL_NONE) goto refused;
    for (size_t i = 0; i < from->node_count; i++)
        if (pl_graph_add_node(g, &from->node[i]) == PL_NONE) goto refused;
    for (size_t i = 0; i < from->value_count; i++) g->value[i].producer = from->value[i].producer;
    return g;
refused:
    pl_graph_destroy(g);
    return NULL;
}

pl_graph *pl_graph_copy(const pl_graph *from) { return copy(from, 0, 0); }

pl_graph *pl_graph_copy_as_read(const pl_graph *from) { return copy(from, from->value_count, from->node_count); }

/* Windows on a value that later became an update still point at it: one step more. */
pl_id pl_value_root(const pl_graph *g, pl_id id)
{
    while (g->value[id].root != id) id = g->value[id].root;
    return id;
}

int64_t pl_value_root_offset(const pl_graph *g, pl_id id)
{
    int64_t offset = 0;
    for (; g->value[id].root != id; id = g->value[id].root) offset += g->value[id].root_offset;
    return offset;
}

bool pl_value_is_trained(const pl_graph *g, pl_id id)
{
    const pl_value *root = &g->value[pl_value_root(g, id)];
    return root->role == PL_ROLE_WEIGHT && root->program == PL_NONE && !root->frozen;
}

uint64_t pl_encoded_bytes(pl_encoding e, const pl_shape *shape)
{
    const uint64_t elems = pl_shape_elems(shape);
    const int64_t last = pl_shape_last(shape);
    if (elems >> 56 || last < 1) return UINT64_MAX;
    const int64_t bytes = pl_encoding_bytes(e, (int64_t)elems / last, last);
    return bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
}

uint64_t pl_value_bytes(const pl_graph *g, pl_id id)
{
    uint64_t bytes;
    const pl_value *v = &g->value[id];
    if (v->encoding) return pl_encoded_bytes(v->encoding, &v->shape);
    return pl_size_mul(pl_shape_elems(&v->shape), pl_dtype_bytes(v->dtype), &bytes) ? UINT64_MAX : bytes;
}

pl_id pl_region_program(const pl_graph *g, pl_id region)
{
    while (g->region[region].parent != PL_NONE) region = g->region[region].parent;
    return region;
}

pl_id pl_graph_find_value(const pl_graph *g, const char *name)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (strcmp(g->value[i].name, name) == 0) return (pl_id)i;
    return PL_NONE;
}

pl_id pl_graph_find_program(const pl_graph *g, const char *name)
{
    for (size_t i = 0; i < g->region_count; i++)
        if (g->region[i].parent == PL_NONE && strcmp(g->region[i].name, name) == 0) return (pl_id)i;
    return PL_NONE;
}

pl_id pl_graph_add_space(pl_graph *g, const char *name)
{
    if (g->space_count == PL_SPACES_MAX) return PL_NONE;
    const char *kept = pl_pool_strdup(g->pool, name);
    if (!kept) return PL_NONE;
    g->space[g->space_count] = kept;
    return g->space_count++;
}

bool pl_graph_space_is_files(const pl_graph *g, pl_id space) { return strcmp(g->space[space], PL_SPACE_FILES) == 0; }

bool pl_node_uses_tile(const pl_graph *g, const pl_node *n)
{
    bool uses = false;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) uses |= n->in[k] != PL_NONE && g->value[n->in[k]].tile;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) uses |= n->out[k] != PL_NONE && g->value[n->out[k]].tile;
    return uses;
}

void pl_value_default_strides(pl_value *v)
{
    int64_t stride = 1;
    for (uint32_t i = v->shape.rank; i-- > 0;) {
        v->stride[i] = stride;
        stride *= v->shape.dim[i];
    }
}

bool pl_value_is_contiguous(const pl_value *v)
{
    int64_t stride = 1;
    for (uint32_t i = v->shape.rank; i-- > 0;) {
        if (v->shape.dim[i] != 1 && v->stride[i] != stride) return false;
        stride *= v->shape.dim[i];
    }
    return true;
}
