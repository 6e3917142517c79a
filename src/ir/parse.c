/* Reads what print.c writes. Every id is checked against what has been read or is being read, so that a damaged text is
 * an error with a position and never an out-of-range index; whether the graph makes sense is check.c's business. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lex.h"
#include "ir/op.h"
#include "ir/parse.h"

enum { DIM_MAX_BITS = 40, STRIDE_MAX_BITS = 56 }; /* a stride is a product of dimensions */

static pl_status no_memory(const pl_lex *l, pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", l->name);
}

static pl_status parse_id(const pl_lex *l, const char **at, size_t count, pl_id *id, pl_error *err)
{
    if (**at == '-') {
        *id = PL_NONE;
        (*at)++;
        return PL_OK;
    }
    char *end;
    if (**at < '0' || **at > '9') return pl_lex_fail(l, err, "\"%.40s\" is not an id", l->value);
    unsigned long long n = strtoull(*at, &end, 10);
    if (n >= count) return pl_lex_fail(l, err, "id %.20s does not exist; there are %zu", *at, count);
    *at = end;
    *id = (pl_id)n;
    return PL_OK;
}

static pl_status parse_ids(const pl_lex *l, size_t count, pl_id *id, int room, pl_error *err)
{
    const char *at = l->value;
    for (int i = 0; i < room; i++) {
        PL_TRY(parse_id(l, &at, count, &id[i], err));
        if (*at == 0) return PL_OK;
        if (*at++ != ',') return pl_lex_fail(l, err, "\"%.40s\" is not a list of ids", l->value);
    }
    return pl_lex_fail(l, err, "more than %d ids", room);
}

static pl_status parse_strides(const pl_lex *l, uint32_t rank, int64_t *stride, pl_error *err)
{
    const char *at = l->value;
    for (uint32_t i = 0; i < rank; i++) {
        char *end;
        stride[i] = strtoll(at, &end, 10);
        if (end == at || stride[i] < 0 || stride[i] >> STRIDE_MAX_BITS || *end != (i + 1 < rank ? ',' : 0))
            return pl_lex_fail(l, err, "\"%.60s\" are not %u strides", l->value, rank);
        at = end + 1;
    }
    return PL_OK;
}

static pl_status parse_shape(const pl_lex *l, pl_shape *s, pl_error *err)
{
    const char *at = l->value;
    uint64_t elems = 1;
    *s = (pl_shape){0};
    if (*at++ != '[') return pl_lex_fail(l, err, "expected a shape such as [B,128], found \"%.60s\"", l->value);
    while (*at != ']') {
        if (s->rank == PL_RANK_MAX) return pl_lex_fail(l, err, "a shape has at most %d dimensions", PL_RANK_MAX);
        char *end;
        int64_t n = *at == 'B' ? 1 : strtoll(at, &end, 10);
        if (*at == 'B') end = (char *)at;
        if ((end == at && *at != 'B') || n < 1 || n >> DIM_MAX_BITS ||
            __builtin_mul_overflow(elems, (uint64_t)n, &elems) || elems >> 56)
            return pl_lex_fail(l, err, "\"%.60s\" is not a shape with positive dimensions of a sane size", l->value);
        if (*end == 'B') s->symbolic |= 1u << s->rank, end++;
        s->dim[s->rank++] = n;
        if (*end != ',' && *end != ']') return pl_lex_fail(l, err, "expected , or ] in the shape \"%.60s\"", l->value);
        at = end + (*end == ',');
    }
    return at[1] ? pl_lex_fail(l, err, "text after the shape \"%.60s\"", l->value) : PL_OK;
}

/* The id that begins each line must be the next one: a gap or a repetition is damage. */
static pl_status parse_own_id(pl_lex *l, size_t expected, pl_error *err)
{
    uint64_t id;
    PL_TRY(pl_lex_expect(l, NULL, err));
    PL_TRY(pl_lex_uint(l, PL_NONE - 1, &id, err));
    return id == expected ? PL_OK : pl_lex_fail(l, err, "expected id %zu here, found %s", expected, l->value);
}

static pl_status parse_region(pl_lex *l, pl_graph *g, pl_error *err)
{
    char name[256];
    pl_id parent = PL_NONE;
    uint64_t trip = 1;
    int64_t batch = 0;
    int got;
    PL_TRY(parse_own_id(l, g->region_count, err));
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (strlen(l->value) >= sizeof name) return pl_lex_fail(l, err, "this name is too long");
    strcpy(name, l->value);
    while ((got = pl_lex_field(l, err)) > 0) {
        if (strcmp(l->key, "in") == 0)
            PL_TRY(parse_ids(l, g->region_count, &parent, 1, err));
        else if (strcmp(l->key, "trip") == 0)
            PL_TRY(pl_lex_uint(l, UINT32_MAX, &trip, err));
        else if (strcmp(l->key, "batch") == 0)
            PL_TRY(pl_lex_int(l, 0, (int64_t)1 << DIM_MAX_BITS, &batch, err));
        else
            return pl_lex_fail(l, err, "a region has no field \"%s\"", l->key);
    }
    if (got < 0) return PL_E_DATA;
    pl_id id = pl_graph_add_region(g, name, parent, trip);
    if (id == PL_NONE) return no_memory(l, err);
    g->region[id].batch = batch;
    return PL_OK;
}

static pl_status parse_flag(pl_lex *l, bool *flag, pl_error *err)
{
    uint64_t number;
    PL_TRY(pl_lex_uint(l, 1, &number, err));
    *flag = number != 0;
    return PL_OK;
}

static pl_status parse_block(pl_lex *l, uint32_t *block, pl_error *err)
{
    uint64_t number;
    PL_TRY(pl_lex_uint(l, UINT32_MAX - 1, &number, err));
    *block = (uint32_t)number + 1;
    return PL_OK;
}

static pl_status parse_encoding(pl_lex *l, pl_encoding *encoding, pl_error *err)
{
    if (pl_encoding_parse(l->value, encoding)) return PL_OK;
    return pl_lex_fail(l, err, "unknown encoding \"%.40s\"", l->value);
}

static pl_status parse_value_field(pl_lex *l, const pl_graph *g, pl_value *v, char scope[256], pl_error *err)
{
    bool of_view = strcmp(l->key, "offset") == 0 || strcmp(l->key, "strides") == 0 || strcmp(l->key, "tile") == 0;
    if (v->view_of == PL_NONE && of_view)
        return pl_lex_fail(l, err, "only a view has offset, strides and tile, after its field view=");
    if (strcmp(l->key, "block") == 0) return parse_block(l, &v->block, err);
    if (strcmp(l->key, "tile") == 0) return parse_flag(l, &v->tile, err);
    if (strcmp(l->key, "inference") == 0) return parse_flag(l, &v->inference, err);
    if (strcmp(l->key, "frozen") == 0) return parse_flag(l, &v->frozen, err);
    if (strcmp(l->key, "latent") == 0) return parse_flag(l, &v->latent, err);
    if (strcmp(l->key, "encoding") == 0) return parse_encoding(l, &v->encoding, err);
    if (strcmp(l->key, "program") == 0) return parse_ids(l, g->region_count, &v->program, 1, err);
    if (strcmp(l->key, "update") == 0) return parse_ids(l, g->value_count, &v->update_of, 1, err);
    if (strcmp(l->key, "view") == 0) return parse_ids(l, g->value_count, &v->view_of, 1, err);
    if (strcmp(l->key, "of") == 0) return parse_ids(l, g->value_count, &v->of, 1, err);
    if (strcmp(l->key, "space") == 0) return parse_ids(l, g->space_count, &v->space, 1, err);
    if (strcmp(l->key, "place") == 0) return pl_lex_uint(l, UINT64_MAX, &v->place, err);
    if (strcmp(l->key, "offset") == 0) return pl_lex_int(l, 0, (int64_t)1 << DIM_MAX_BITS, &v->view_offset, err);
    if (strcmp(l->key, "strides") == 0) return parse_strides(l, v->shape.rank, v->stride, err);
    if (strcmp(l->key, "scope") != 0) return pl_lex_fail(l, err, "a value has no field \"%s\"", l->key);
    if (strlen(l->value) >= 256) return pl_lex_fail(l, err, "this scope is too long");
    strcpy(scope, l->value);
    return PL_OK;
}

/* Version 1 does not say it but in the scope: "block.12/attention", "cycle.0/block.12/attention". */
static uint32_t block_of_scope(const char *scope)
{
    uint32_t found = 0;
    for (;;) {
        const size_t top = strcspn(scope, "/"), dot = strcspn(scope, ".");
        char *end;
        if (dot + 1 >= top) return found;
        const unsigned long number = strtoul(scope + dot + 1, &end, 10);
        if (end != scope + top || number >= UINT32_MAX) return found;
        found = (uint32_t)number + 1;
        if (!*end) return found;
        scope = end + 1;
    }
}

/* What a calibration keeps was only named after what it belongs to: "NAME.extremes", "NAME.taken". */
static pl_id belongs_by_name(const pl_graph *g, const pl_value *v)
{
    const char *dot = strrchr(v->name, '.');
    char name[512];
    if (v->role != PL_ROLE_STAGING || !dot) return PL_NONE;
    snprintf(name, sizeof name, "%.*s", (int)(dot - v->name), v->name);
    return pl_graph_find_value(g, name);
}

static pl_status parse_value(pl_lex *l, pl_graph *g, uint64_t version, pl_error *err)
{
    char name[512], scope[256] = "";
    int got;
    pl_value v = {.name = name,
                  .scope = scope,
                  .program = PL_NONE,
                  .producer = PL_NONE,
                  .view_of = PL_NONE,
                  .update_of = PL_NONE,
                  .of = PL_NONE};
    PL_TRY(parse_own_id(l, g->value_count, err));
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (strlen(l->value) >= sizeof name) return pl_lex_fail(l, err, "this name is too long");
    strcpy(name, l->value);
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (pl_dtype_parse(l->value, &v.dtype)) return pl_lex_fail(l, err, "unknown dtype \"%.40s\"", l->value);
    PL_TRY(pl_lex_expect(l, NULL, err));
    PL_TRY(parse_shape(l, &v.shape, err));
    pl_value_default_strides(&v);
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (pl_role_parse(l->value, &v.role)) return pl_lex_fail(l, err, "unknown role \"%.40s\"", l->value);
    while ((got = pl_lex_field(l, err)) > 0) PL_TRY(parse_value_field(l, g, &v, scope, err));
    if (got < 0) return PL_E_DATA;
    if (version < 2) v.block = block_of_scope(scope), v.of = belongs_by_name(g, &v);
    return pl_graph_add_value(g, &v) == PL_NONE ? no_memory(l, err) : PL_OK;
}

/* Is the field's key the name of one of these? Then its ids, at its positions. */
static pl_status parse_operand(const pl_lex *l, const pl_graph *g, const pl_operand *o, pl_id *id, bool *found,
                               pl_error *err)
{
    for (; o->name[0]; id += o++->most) {
        if (o->kind == PL_OVER || strcmp(o->name, l->key) != 0) continue;
        *found = true;
        for (int k = 0; k < o->most; k++)
            if (id[k] != PL_NONE) return pl_lex_fail(l, err, "this node has %s twice", o->name);
        return parse_ids(l, g->value_count, id, o->most, err);
    }
    return PL_OK;
}

static pl_status parse_attr(pl_lex *l, pl_node *n, pl_error *err)
{
    const pl_operand *attr = pl_signature_of(n->op)->attr;
    for (int k = 0; attr[k].name[0]; k++) {
        if (strcmp(attr[k].name, l->key) != 0) continue;
        if (attr[k].kind == 'f') return pl_lex_double(l, &n->attr[k].f, err);
        if (attr[k].kind == 'i') return pl_lex_int(l, INT64_MIN, INT64_MAX, &n->attr[k].i, err);
        pl_activation act;
        if (pl_activation_parse(l->value, &act)) return pl_lex_fail(l, err, "unknown activation \"%.40s\"", l->value);
        n->attr[k].i = act;
        return PL_OK;
    }
    return pl_lex_fail(l, err, "%s has no field \"%s\"", pl_op_name(n->op), l->key);
}

/* By name; in version 1 all inputs and all outputs are a list each, in the order of the row. */
static pl_status parse_operands(const pl_lex *l, const pl_graph *g, uint64_t version, pl_node *n, bool *found,
                                pl_error *err)
{
    const pl_signature *s = pl_signature_of(n->op);
    if (version > 1) {
        PL_TRY(parse_operand(l, g, s->in, n->in, found, err));
        return *found ? PL_OK : parse_operand(l, g, s->out, n->out, found, err);
    }
    const bool in = strcmp(l->key, "in") == 0;
    *found = in || strcmp(l->key, "out") == 0;
    if (!*found) return PL_OK;
    return parse_ids(l, g->value_count, in ? n->in : n->out, in ? PL_NODE_IN_MAX : PL_NODE_OUT_MAX, err);
}

/* ---- texts from before there were encodings of a whole ----
 * Matrices of int8 and of signs, and moments in 8 bits, were bytes (u8); a product had the rows of its in "columns". */

static bool had_columns(pl_op op) { return pl_op_is_int8(op) || op == PL_OP_LINEAR_BINARY; }

static void encode(pl_graph *g, pl_id id, pl_encoding as, const pl_shape *shape)
{
    for (; id != PL_NONE && g->value[id].dtype == PL_DTYPE_U8; id = g->value[id].view_of) {
        pl_value *v = &g->value[id];
        v->dtype = PL_DTYPE_F32, v->encoding = as, v->shape = *shape;
        pl_value_default_strides(v);
    }
}

static void encode_operands(pl_graph *g, const pl_node *n, int64_t columns)
{
    const pl_adamw_args *a = &n->adamw;
    if (pl_op_rule_of(n->op)->optimizer && a->weight != PL_NONE) {
        const pl_shape *w = &g->value[a->weight].shape;
        encode(g, a->m, PL_ENCODING_SIGNED8, w), encode(g, a->m_new, PL_ENCODING_SIGNED8, w);
        encode(g, a->v, PL_ENCODING_ROOT8, w), encode(g, a->v_new, PL_ENCODING_ROOT8, w);
    }
    if (n->op == PL_OP_PACK_SIGNS && n->pack_signs.weight != PL_NONE)
        encode(g, n->pack_signs.packed, PL_ENCODING_SIGNS, &g->value[n->pack_signs.weight].shape);
    if (!had_columns(n->op) || columns == 0 || n->linear_binary.x == PL_NONE) return;
    const pl_shape matrix = pl_shape_of(2, columns, pl_shape_last(&g->value[n->linear_binary.x].shape));
    encode(g, n->linear_binary.packed, pl_op_is_int8(n->op) ? PL_ENCODING_INT8 : PL_ENCODING_SIGNS, &matrix);
}

_Static_assert(offsetof(pl_linear_binary_args, x) == offsetof(pl_linear_int8_args, x) &&
                   offsetof(pl_linear_binary_args, packed) == offsetof(pl_linear_int8_args, weight) &&
                   offsetof(pl_hidden_int8_args, weight) == offsetof(pl_linear_int8_args, weight),
               "all products of packed matrices are read as one");

static pl_status parse_node_field(pl_lex *l, const pl_graph *g, uint64_t version, pl_node *n, char scope[256],
                                  int64_t *columns, pl_error *err)
{
    bool found = false;
    PL_TRY(parse_operands(l, g, version, n, &found, err));
    if (found) return PL_OK;
    if (had_columns(n->op) && strcmp(l->key, "columns") == 0)
        return pl_lex_int(l, 1, (int64_t)1 << DIM_MAX_BITS, columns, err);
    if (strcmp(l->key, "region") == 0) return parse_ids(l, g->region_count, &n->region, 1, err);
    if (strcmp(l->key, "predicate") == 0) return parse_ids(l, g->value_count, &n->predicate, 1, err);
    if (strcmp(l->key, "queue") == 0) return parse_ids(l, g->queue_count, &n->queue, 1, err);
    if (strcmp(l->key, "wait") == 0) return parse_ids(l, g->queue_count, &n->wait, 1, err);
    if (strcmp(l->key, "phase") == 0) {
        for (int i = 0; i < PL_PHASE_COUNT; i++)
            if (strcmp(l->value, pl_phase_name((pl_phase)i)) == 0) return n->phase = (pl_phase)i, PL_OK;
        return pl_lex_fail(l, err, "unknown phase \"%.40s\"", l->value);
    }
    if (strcmp(l->key, "dead") == 0) return parse_flag(l, &n->dead, err);
    if (strcmp(l->key, "block") == 0) return parse_block(l, &n->block, err);
    if (strcmp(l->key, "scope") != 0) return parse_attr(l, n, err);
    if (strlen(l->value) >= 256) return pl_lex_fail(l, err, "this scope is too long");
    strcpy(scope, l->value);
    return PL_OK;
}

static pl_status parse_node(pl_lex *l, pl_graph *g, uint64_t version, pl_error *err)
{
    char scope[256] = "";
    int got;
    int64_t columns = 0;
    pl_node n = {.scope = scope, .region = PL_NONE, .predicate = PL_NONE, .wait = PL_NONE};
    for (int i = 0; i < PL_NODE_IN_MAX; i++) n.in[i] = PL_NONE;
    for (int i = 0; i < PL_NODE_OUT_MAX; i++) n.out[i] = PL_NONE;
    PL_TRY(parse_own_id(l, g->node_count, err));
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (pl_op_parse(l->value, &n.op)) return pl_lex_fail(l, err, "unknown operator \"%.40s\"", l->value);
    while ((got = pl_lex_field(l, err)) > 0) PL_TRY(parse_node_field(l, g, version, &n, scope, &columns, err));
    if (got < 0) return PL_E_DATA;
    if (version < 2) n.block = block_of_scope(scope);
    if (n.region == PL_NONE || n.queue == PL_NONE) return pl_lex_fail(l, err, "this node has no region or no queue");
    encode_operands(g, &n, columns);
    return pl_graph_add_node(g, &n) == PL_NONE ? no_memory(l, err) : PL_OK;
}

static pl_status parse_name_into(pl_lex *l, pl_graph *g, const char **list, uint32_t most, uint32_t *count,
                                 pl_error *err)
{
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (*count == most) return pl_lex_fail(l, err, "more than %u spaces or queues", most);
    char *copy = pl_pool_strdup(g->pool, l->value);
    if (!copy) return no_memory(l, err);
    list[(*count)++] = copy;
    return PL_OK;
}

static pl_status parse_line(pl_lex *l, pl_graph *g, uint64_t version, pl_error *err)
{
    if (strcmp(l->value, "value") == 0) return parse_value(l, g, version, err);
    if (strcmp(l->value, "node") == 0) return parse_node(l, g, version, err);
    if (strcmp(l->value, "region") == 0) return parse_region(l, g, err);
    if (strcmp(l->value, "space") == 0) return parse_name_into(l, g, g->space, PL_SPACES_MAX, &g->space_count, err);
    if (strcmp(l->value, "queue") == 0) return parse_name_into(l, g, g->queue, PL_QUEUES_MAX, &g->queue_count, err);
    return pl_lex_fail(l, err, "expected region, value, node or end, found \"%.40s\"", l->value);
}

/* How many lines of values and of nodes the text has up to its end. Counted, not believed: a number in a damaged text
 * could ask for any memory. */
static int reserve(const pl_lex *l, pl_graph *g)
{
    size_t values = 0, nodes = 0;
    for (pl_lex ahead = *l; pl_lex_line(&ahead);) {
        const size_t left = (size_t)(ahead.end - ahead.at);
        if (left >= 4 && memcmp(ahead.at, "end ", 4) == 0) break;
        values += left >= 6 && memcmp(ahead.at, "value ", 6) == 0;
        nodes += left >= 5 && memcmp(ahead.at, "node ", 5) == 0;
    }
    return pl_graph_reserve(g, values, nodes);
}

pl_status pl_graph_parse_lines(pl_lex *l, pl_graph **graph, pl_error *err)
{
    pl_status status = PL_OK;
    uint64_t version;
    pl_graph *g = pl_graph_create();
    if (!g) return no_memory(l, err);
    PL_TRY_DONE(pl_lex_expect(l, NULL, err));
    PL_TRY_DONE(pl_lex_uint(l, UINT32_MAX, &version, err));
    if (version < 1 || version > 2)
        PL_TRY_DONE(
            pl_lex_fail(l, err, "this program reads versions 1 and 2 of the graph text, found %.20s", l->value));
    PL_TRY_DONE(pl_lex_end(l, err));
    if (reserve(l, g)) PL_TRY_DONE(no_memory(l, err));
    for (;;) {
        if (!pl_lex_line(l)) PL_TRY_DONE(pl_lex_fail(l, err, "the text ends before \"end graph\"; it is truncated"));
        PL_TRY_DONE(pl_lex_expect(l, NULL, err));
        if (strcmp(l->value, "end") == 0) break;
        PL_TRY_DONE(parse_line(l, g, version, err));
        PL_TRY_DONE(pl_lex_end(l, err));
    }
    PL_TRY_DONE(pl_lex_expect(l, NULL, err));
    if (strcmp(l->value, "graph") != 0)
        PL_TRY_DONE(pl_lex_fail(l, err, "expected \"end graph\", found \"end %.40s\"", l->value));
    PL_TRY_DONE(pl_lex_end(l, err));
    *graph = g;
    g = NULL;
done:
    pl_graph_destroy(g);
    return status;
}

pl_status pl_graph_parse(const char *name, const char *text, size_t bytes, pl_graph **graph, pl_error *err)
{
    pl_lex l = pl_lex_begin(name, text, bytes);
    if (!pl_lex_line(&l)) return pl_lex_fail(&l, err, "the text is empty, a graph was expected");
    PL_TRY(pl_lex_expect(&l, NULL, err));
    if (strcmp(l.value, "graph") != 0) return pl_lex_fail(&l, err, "expected \"graph 2\", found \"%.40s\"", l.value);
    PL_TRY(pl_graph_parse_lines(&l, graph, err));
    if (!pl_lex_line(&l)) return PL_OK;
    pl_graph_destroy(*graph);
    *graph = NULL;
    return pl_lex_fail(&l, err, "text after \"end graph\"");
}
