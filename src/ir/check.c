/* Is this graph legal? Run between all passes in tests, and on everything that was read from a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/op.h"

typedef struct checker {
    const pl_graph *g;
    pl_graph_stage stage;
    bool *written;  /* [values] root has content */
    pl_id *current; /* [values] root: the version its storage holds now; PL_NONE: the root itself */
    pl_id *tile;    /* [values] root of a stack: the tile that was last written, and in which region */
    pl_id *tile_region;
    pl_error *err;
} checker;

static pl_status fail_value(const checker *c, pl_id id, const char *what)
{
    return pl_fail(c->err, PL_E_INTERNAL, "graph: value %u (%s): %s", id, c->g->value[id].name, what);
}

static pl_status fail_node(const checker *c, pl_id id, const char *what)
{
    const pl_node *n = &c->g->node[id];
    return pl_fail(c->err, PL_E_INTERNAL, "graph: node %u (%s in %s): %s", id, pl_op_name(n->op), n->scope, what);
}

static pl_status fail_missing(const checker *c, pl_id id, int k)
{
    char what[48];
    snprintf(what, sizeof what, "input %s is missing",
             pl_position_name_of(pl_signature_of(c->g->node[id].op)->in, k).text);
    return fail_node(c, id, what);
}

static pl_status check_encoding(const checker *c, pl_id id)
{
    const pl_value *v = &c->g->value[id];
    if (v->encoding == PL_ENCODING_F32) return PL_OK;
    const bool whole = pl_encoding_is_whole(v->encoding), moment = v->role == PL_ROLE_OPTIMIZER;
    if ((unsigned)v->encoding >= PL_ENCODING_END || v->encoding == PL_ENCODING_COUNT || v->dtype != PL_DTYPE_F32 ||
        pl_value_is_trained(c->g, id))
        return fail_value(
            c, id, "only a frozen weight, state or what a node makes, of f32, can be encoded, and in a known way");
    if (whole && v->shape.symbolic) return fail_value(c, id, "what is stored as a whole has a size that is known");
    if ((v->shape.rank < 2 && !moment) || pl_shape_last(&v->shape) < 1 ||
        pl_encoded_bytes(v->encoding, &v->shape) == UINT64_MAX)
        return fail_value(c, id, "only a matrix, or rows, are encoded, and a row is whole blocks");
    return PL_OK;
}

/* Nobody writes there, and sums of places and sizes stay far from 64 bits. */
static pl_status check_place(const checker *c, pl_id id, bool owner)
{
    const pl_value *v = &c->g->value[id];
    if (!pl_graph_space_is_files(c->g, v->space))
        return v->place ? fail_value(c, id, "only what lies in files has a place there") : PL_OK;
    if (owner && !v->frozen) return fail_value(c, id, "only a frozen weight can lie in files");
    return v->place >> 56 ? fail_value(c, id, "its place overflows") : PL_OK;
}

static pl_status check_view(const checker *c, pl_id id)
{
    const pl_value *v = &c->g->value[id], *base = &c->g->value[v->view_of];
    uint64_t last = (uint64_t)v->view_offset;
    if (base->tile) return fail_value(c, id, "a view of a tile");
    if (base->encoding &&
        (v->encoding != base->encoding || !pl_shape_equal(&v->shape, &base->shape) || !pl_value_is_contiguous(v)))
        return fail_value(c, id, "a view of a part of what is encoded");
    if (v->tile && (base->view_of != PL_NONE || base->update_of != PL_NONE || !pl_value_is_contiguous(v)))
        return fail_value(c, id, "a tile is a contiguous part of a value that owns its bytes");
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        uint64_t step = (uint64_t)v->shape.dim[i] - 1;
        if (__builtin_mul_overflow(step, (uint64_t)v->stride[i], &step) || __builtin_add_overflow(last, step, &last))
            return fail_value(c, id, "its window is absurdly large");
    }
    if (last >= pl_shape_elems(&base->shape))
        return fail_value(c, id, "its window ends beyond the value that it looks at");
    return v->dtype == base->dtype ? PL_OK : fail_value(c, id, "a view has the dtype of its base");
}

static pl_status check_value(const checker *c, pl_id id)
{
    const pl_value *v = &c->g->value[id];
    if (v->dtype >= PL_DTYPE_COUNT || v->role >= PL_ROLE_COUNT || v->space >= c->g->space_count)
        return fail_value(c, id, "unknown dtype, role or space");
    if (v->shape.rank > PL_RANK_MAX || pl_shape_elems(&v->shape) >> 56) return fail_value(c, id, "its size overflows");
    if (c->stage == PL_STAGE_BOUND && v->shape.symbolic) return fail_value(c, id, "its batch dimension is not bound");
    if (v->program != PL_NONE && (v->program >= c->g->region_count || c->g->region[v->program].parent != PL_NONE))
        return fail_value(c, id, "its program is not a root region");
    if (v->view_of != PL_NONE && v->update_of != PL_NONE) return fail_value(c, id, "both a view and an update");
    if (v->tile && v->view_of == PL_NONE) return fail_value(c, id, "a tile that is not a view");
    bool owner = v->view_of == PL_NONE && v->update_of == PL_NONE;
    if (v->frozen && (v->role != PL_ROLE_WEIGHT || v->program != PL_NONE || !owner))
        return fail_value(c, id, "only a weight that lasts and owns its bytes can be frozen");
    PL_TRY(check_encoding(c, id));
    PL_TRY(check_place(c, id, owner));
    if (v->latent && (v->role != PL_ROLE_WEIGHT || v->program != PL_NONE || !owner))
        return fail_value(c, id, "only a weight that lasts and owns its bytes can be latent");
    if (v->inference && (v->role != PL_ROLE_STATE || v->program != PL_NONE || !owner))
        return fail_value(c, id, "only state that lasts and owns its bytes can be there for inference");
    if (v->of != PL_NONE && (v->of >= id || !owner))
        return fail_value(c, id, "it belongs to a later value, or owns no bytes");
    if (v->view_of != PL_NONE)
        return v->view_of < id ? check_view(c, id) : fail_value(c, id, "a view of a later value");
    if (v->update_of == PL_NONE) return PL_OK;
    if (v->update_of >= id) return fail_value(c, id, "an update of a later value");
    if (c->g->value[pl_value_root(c->g, id)].frozen) return fail_value(c, id, "an update of a frozen weight");
    const pl_value *old = &c->g->value[v->update_of];
    return pl_shape_equal(&old->shape, &v->shape) && old->dtype == v->dtype
               ? PL_OK
               : fail_value(c, id, "an update has the shape and dtype of what it replaces");
}

static bool exists(pl_id id, size_t count) { return id == PL_NONE || id < count; }

/* Every id is one of the arrays': what follows may use them as indices. Texts are held to this while they are read. */
static pl_status check_ids(const checker *c)
{
    const pl_graph *g = c->g;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        if (!exists(v->view_of, g->value_count) || !exists(v->update_of, g->value_count) ||
            !exists(v->of, g->value_count) || !exists(v->producer, g->node_count))
            return fail_value(c, (pl_id)i, "an id that does not exist");
    }
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        bool fine = n->op < PL_OP_COUNT && n->region < g->region_count && n->queue < g->queue_count &&
                    exists(n->wait, g->queue_count) && exists(n->predicate, g->value_count);
        for (int k = 0; k < PL_NODE_IN_MAX; k++) fine &= exists(n->in[k], g->value_count);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) fine &= exists(n->out[k], g->value_count);
        if (!fine)
            return pl_fail(c->err, PL_E_INTERNAL,
                           "graph: node %zu: unknown operator, region or queue, or an id that does not exist", i);
    }
    return PL_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static pl_status check_names(const checker *c)
{
    size_t n = c->g->value_count;
    const char **name = pl_alloc(n, sizeof *name);
    if (!name) return pl_fail(c->err, PL_E_NOMEM, "no memory to check the graph");
    for (size_t i = 0; i < n; i++) name[i] = c->g->value[i].name;
    qsort(name, n, sizeof *name, compare_names);
    pl_status status = PL_OK;
    for (size_t i = 1; i < n && status == PL_OK; i++)
        if (strcmp(name[i - 1], name[i]) == 0)
            status = pl_fail(c->err, PL_E_INTERNAL, "graph: two values are named %s", name[i]);
    pl_free(name);
    return status;
}

static pl_status check_regions(const checker *c)
{
    for (size_t i = 0; i < c->g->region_count; i++) {
        const pl_region *r = &c->g->region[i];
        if (r->parent != PL_NONE && r->parent >= i)
            return pl_fail(c->err, PL_E_INTERNAL, "graph: region %zu lies in a later one", i);
        if (r->trip < 1) return pl_fail(c->err, PL_E_INTERNAL, "graph: region %zu never runs", i);
    }
    /* The live nodes of a region, those of its inner regions included, are one stretch. */
    pl_id *last = pl_alloc(c->g->region_count + 1, sizeof *last);
    if (!last) return pl_fail(c->err, PL_E_NOMEM, "no memory to check the graph");
    pl_status status = PL_OK;
    pl_id position = 0;
    for (size_t i = 0; i < c->g->node_count && status == PL_OK; i++) {
        if (c->g->node[i].dead) continue;
        position++;
        for (pl_id r = c->g->node[i].region; r != PL_NONE; r = c->g->region[r].parent) {
            if (last[r] && last[r] != position - 1)
                status = fail_node(c, (pl_id)i, "its region is not one stretch of nodes");
            last[r] = position;
        }
    }
    pl_free(last);
    return status;
}

static bool may_overwrite(const pl_node *n, pl_alias alias, pl_id value)
{
    for (int i = 0; i < PL_NODE_IN_MAX; i++)
        if (n->in[i] == value && alias.may >> i & 1) return true;
    return false;
}

/* Does the node read the storage that output k overwrites through an input that does not allow it? A product whose
 * operand is its residual, too, would read what its other tiles have written. */
static bool reads_what_it_overwrites(const pl_graph *g, const pl_node *n, int k)
{
    pl_alias alias = pl_node_alias(n, k);
    pl_id old = g->value[n->out[k]].tile ? n->out[k] : g->value[n->out[k]].update_of;
    if (old == PL_NONE) return false;
    for (int i = 0; i < PL_NODE_IN_MAX; i++) {
        if (n->in[i] == PL_NONE || i == alias.update || alias.may >> i & 1) continue;
        if (pl_value_root(g, n->in[i]) == pl_value_root(g, old)) return true;
    }
    return false;
}

/* Given twice, an output would be written by two halves of a kernel. */
static bool is_repeated(const pl_node *n, int k)
{
    for (int i = 0; i < k; i++)
        if (n->out[i] == n->out[k]) return true;
    return false;
}

/* Must output k be there? Those that the kernel always writes, and the new content of an input that changes in place,
 * exactly where that is given. */
static bool is_missing(const pl_node *n, int k)
{
    const pl_signature *s = pl_signature_of(n->op);
    if (n->out[k] != PL_NONE || k >= s->outs) return false;
    pl_alias alias = pl_node_alias(n, k);
    if (alias.update >= 0) return n->in[alias.update] != PL_NONE;
    return pl_operand_is_required(s->out, k);
}

static bool gives_nothing(const pl_node *n)
{
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) return false;
    return pl_signature_of(n->op)->outs > 0;
}

static pl_status check_outputs(const checker *c, pl_id id)
{
    const pl_node *n = &c->g->node[id];
    pl_out made[PL_NODE_OUT_MAX] = {0};
    PL_TRY(pl_node_infer(c->g, n, made, c->err));
    if (gives_nothing(n)) return fail_node(c, id, "no output");
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        if (is_missing(n, k)) return fail_node(c, id, "an output is missing");
        if (n->out[k] == PL_NONE) continue;
        if (k >= pl_signature_of(n->op)->outs) return fail_node(c, id, "too many outputs");
        const pl_value *v = &c->g->value[n->out[k]];
        const pl_alias alias = pl_node_alias(n, k);
        if (alias.update >= 0 && n->in[alias.update] == PL_NONE)
            return fail_node(c, id, "an output changes in place an input that is not given");
        if (!pl_shape_equal(&v->shape, &made[k].shape) || v->dtype != made[k].dtype)
            return fail_node(c, id, "an output does not have the shape that the operator gives");
        if (alias.update >= 0 && v->update_of != n->in[alias.update])
            return fail_node(c, id, "an output that changes its input in place is not marked so");
        if (v->encoding != (alias.update < 0 ? made[k].encoding : c->g->value[n->in[alias.update]].encoding))
            return fail_node(c, id, "an output that is encoded");
        if (alias.update < 0 && v->update_of != PL_NONE && !may_overwrite(n, alias, v->update_of))
            return fail_node(c, id, "an output takes the storage of a value that this operator may not overwrite");
        if (reads_what_it_overwrites(c->g, n, k))
            return fail_node(c, id, "an output overwrites an input that is read elsewhere in the operator, too");
        if (is_repeated(n, k)) return fail_node(c, id, "two outputs are one value");
        if (v->producer != id && v->program != PL_NONE) return fail_node(c, id, "an output has two producers");
    }
    return PL_OK;
}

static bool readable(const checker *c, pl_id id, pl_id program)
{
    pl_id root = pl_value_root(c->g, id);
    const pl_value *v = &c->g->value[root];
    if (v->program == PL_NONE) return true;
    if (v->role == PL_ROLE_INPUT || v->role == PL_ROLE_STATE) return v->program == program; /* kept from run to run */
    return v->program == program && c->written[root];
}

/* Of the stack there must be a tile for each trip. */
static pl_status check_tile(const checker *c, pl_id id, pl_id value)
{
    const pl_value *v = &c->g->value[value];
    uint64_t end;
    if (!v->tile) return PL_OK;
    bool over = __builtin_mul_overflow(c->g->region[c->g->node[id].region].trip, pl_shape_elems(&v->shape), &end) ||
                __builtin_add_overflow(end, (uint64_t)v->view_offset, &end);
    if (!over && end <= pl_shape_elems(&c->g->value[v->view_of].shape)) return PL_OK;
    return fail_node(c, id, "its region has more trips than the stack has tiles");
}

static pl_status check_input(checker *c, pl_id id, pl_id in, pl_id program)
{
    pl_id root = pl_value_root(c->g, in);
    if (!readable(c, in, program)) return fail_node(c, id, "reads a value that nothing before it has produced");
    PL_TRY(check_tile(c, id, in));
    bool here = c->g->value[in].tile && c->tile_region[root] == c->g->node[id].region;
    if (here && c->tile[root] != in) return fail_node(c, id, "reads a tile that was already written over");
    bool version = c->g->value[in].view_of == PL_NONE;
    if (version && c->current[root] != PL_NONE && c->current[root] != in)
        return fail_node(c, id, "reads a version that was already replaced in place");
    return PL_OK;
}

static pl_status check_node(checker *c, pl_id id)
{
    const pl_node *n = &c->g->node[id];
    const pl_signature *s = pl_signature_of(n->op);
    pl_id program = pl_region_program(c->g, n->region);
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        if (n->in[k] == PL_NONE && pl_operand_is_required(s->in, k)) return fail_missing(c, id, k);
        if (n->in[k] == PL_NONE) continue;
        if (k >= s->ins) return fail_node(c, id, "too many inputs");
        PL_TRY(check_input(c, id, n->in[k], program));
    }
    if (n->predicate != PL_NONE &&
        (c->g->value[n->predicate].dtype != PL_DTYPE_I32 || pl_shape_elems(&c->g->value[n->predicate].shape) != 1 ||
         c->g->value[n->predicate].tile || !readable(c, n->predicate, program)))
        return fail_node(c, id, "its predicate is not an i32 value produced before");
    PL_TRY(check_outputs(c, id));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        if (n->out[k] == PL_NONE) continue;
        pl_id root = pl_value_root(c->g, n->out[k]);
        const pl_value *v = &c->g->value[root];
        if (v->program != PL_NONE && v->program != program)
            return fail_node(c, id, "writes a value of another program");
        if (v->role == PL_ROLE_INPUT)
            return fail_node(c, id, "writes an input, which belongs to whoever runs the program");
        PL_TRY(check_tile(c, id, n->out[k]));
        c->written[root] = true;
        if (c->g->value[n->out[k]].tile) c->tile[root] = n->out[k], c->tile_region[root] = n->region;
        if (c->g->value[n->out[k]].view_of == PL_NONE) c->current[root] = n->out[k];
    }
    return PL_OK;
}

static pl_status check_nodes(checker *c)
{
    pl_id program = PL_NONE;
    for (size_t i = 0; i < c->g->node_count; i++) {
        if (c->g->node[i].dead) continue;
        pl_id now = pl_region_program(c->g, c->g->node[i].region);
        if (now != program) /* each program starts from the stored versions */
            for (size_t v = 0; v < c->g->value_count; v++) c->current[v] = PL_NONE;
        program = now;
        PL_TRY(check_node(c, (pl_id)i));
    }
    return PL_OK;
}

pl_status pl_graph_check(const pl_graph *g, pl_graph_stage stage, pl_error *err)
{
    checker c = {.g = g, .stage = stage, .err = err};
    pl_status status = PL_OK;
    c.written = pl_alloc(g->value_count, sizeof *c.written);
    c.current = pl_alloc(g->value_count, sizeof *c.current);
    c.tile = pl_alloc(g->value_count, sizeof *c.tile);
    c.tile_region = pl_alloc(g->value_count, sizeof *c.tile_region);
    if (!c.written || !c.current || !c.tile || !c.tile_region)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to check the graph"));
    for (size_t i = 0; i < g->value_count; i++) c.tile[i] = c.tile_region[i] = PL_NONE;
    PL_TRY_DONE(check_ids(&c));
    for (size_t i = 0; i < g->value_count; i++) PL_TRY_DONE(check_value(&c, (pl_id)i));
    PL_TRY_DONE(check_names(&c));
    PL_TRY_DONE(check_regions(&c));
    PL_TRY_DONE(check_nodes(&c));
done:
    pl_free(c.written);
    pl_free(c.current);
    pl_free(c.tile);
    pl_free(c.tile_region);
    return status;
}
