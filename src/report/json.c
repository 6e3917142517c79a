/* A plan as JSON, schema "plimsoll.plan/1" (docs/plan-json.md): the document about it, and its graph. Sizes are exact
 * bytes; what does not exist is null. */
#include <string.h>

#include "ir/index.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "report/plan.h"
#include "show/render.h"

enum { NAME_BYTES = 512 };

static void kv_id(pl_json *j, const char *key, pl_id id) { pl_json_kv_uint_if(j, id != PL_NONE, key, id); }

static void kv_seconds(pl_json *j, const char *key, double seconds)
{
    pl_json_kv_double_if(j, seconds > 0, key, seconds);
}

static void ids(pl_json *j, const char *key, const pl_id *id, int max)
{
    int count = max;
    while (count > 0 && id[count - 1] == PL_NONE) count--; /* an absent one in the middle is null: places are kept */
    pl_json_key(j, key);
    pl_json_array(j);
    for (int k = 0; k < count; k++)
        if (id[k] == PL_NONE)
            pl_json_null(j);
        else
            pl_json_uint(j, id[k]);
    pl_json_array_end(j);
}

static pl_status write_alive(pl_json *j, const pl_plan *p, pl_error *err)
{
    uint64_t *alive = pl_alloc(p->graph->node_count + 1, sizeof *alive);
    if (!alive) return pl_fail(err, PL_E_NOMEM, "no memory to report on %zu nodes", p->graph->node_count);
    pl_plan_alive(p, PL_SPACE_RAM, alive);
    pl_json_key(j, "alive_bytes"); /* by position: the curve under the arena */
    pl_json_array(j);
    for (size_t i = 0; i < p->graph->node_count; i++) pl_json_uint(j, alive[i]);
    pl_json_array_end(j);
    pl_free(alive);
    return PL_OK;
}

/* ---- the graph: whoever has these arrays can place again, or choose what to recompute ---- */

static void write_regions(pl_json *j, const pl_graph *g)
{
    pl_json_key(j, "regions");
    pl_json_array(j);
    for (size_t i = 0; i < g->region_count; i++) {
        pl_json_object(j);
        pl_json_kv_uint(j, "id", i);
        pl_json_kv_string(j, "name", g->region[i].name);
        kv_id(j, "parent", g->region[i].parent);
        pl_json_kv_uint(j, "trips", g->region[i].trip);
        pl_json_kv_int(j, "batch", g->region[i].batch);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

/* Passes that run something a second time name what it makes after the first: layer_norm.13.again, linear.4.region5.
 * The value that was made first; PL_NONE: this one was. */
static pl_id first_of(const pl_graph *g, const pl_names *names, pl_id value)
{
    static const char *const marks[] = {".again", ".region"};
    char name[NAME_BYTES];
    if (value == PL_NONE) return PL_NONE;
    const char *own = g->value[value].name;
    size_t bytes = strlen(own);
    for (int i = 0; i < 2; i++) {
        const char *mark = strstr(own, marks[i]);
        if (mark && (size_t)(mark - own) < bytes) bytes = (size_t)(mark - own);
    }
    if (!own[bytes] || bytes >= sizeof name) return PL_NONE;
    memcpy(name, own, bytes);
    name[bytes] = 0;
    return pl_names_find(names, g, name);
}

static void write_node(pl_json *j, const pl_plan *p, const pl_names *names, size_t i)
{
    const pl_graph *g = p->graph;
    const pl_node *n = &g->node[i];
    const pl_op_rule *rule = pl_op_rule_of(n->op);
    pl_cost cost = rule->cost(g, n);
    pl_json_object(j);
    pl_json_kv_uint(j, "id", i);
    pl_json_kv_string(j, "op", pl_op_name(n->op));
    pl_json_kv_string(j, "scope", n->scope);
    pl_json_kv_string(j, "phase", pl_phase_name(n->phase));
    kv_id(j, "region", n->region);
    pl_json_kv_uint(j, "trips", pl_node_trips(g, n));
    ids(j, "inputs", n->in, PL_NODE_IN_MAX);
    ids(j, "outputs", n->out, PL_NODE_OUT_MAX);
    kv_id(j, "predicate", n->predicate);
    pl_json_kv_bool(j, "recompute", rule->recompute);
    pl_id first = first_of(g, names, pl_node_result(n));
    kv_id(j, "recomputes", first == PL_NONE ? PL_NONE : g->value[first].producer);
    pl_json_kv_double(j, "flops", cost.flops);
    pl_json_kv_double(j, "moved_bytes", cost.bytes);
    kv_seconds(j, "seconds", p->seconds[i]);
    if (p->estimated) pl_json_kv_bool(j, "estimated", p->estimated[i]);
    pl_json_kv_uint(j, "workspace_bytes", p->workspace[i].bytes);
    pl_json_kv_uint_if(j, p->workspace[i].bytes, "workspace_offset", p->workspace[i].offset);
    pl_json_object_end(j);
}

/* A block, or nulls for a value without bytes of its own (views, new contents of a value, what no node touches). */
static void write_block(pl_json *j, const pl_block *b)
{
    static const char *const keys[] = {"offset", "block_bytes", "first", "last"};
    const uint64_t number[] = {b->offset, b->bytes, b->first, b->last};
    for (size_t k = 0; k < 4; k++) pl_json_kv_uint_if(j, b->bytes, keys[k], number[k]);
}

static void write_value(pl_json *j, const pl_plan *p, const pl_names *names, size_t i)
{
    const pl_graph *g = p->graph;
    const pl_value *v = &g->value[i];
    pl_json_object(j);
    pl_json_kv_uint(j, "id", i);
    pl_json_kv_string(j, "name", v->name);
    pl_json_kv_string(j, "role", pl_role_name(v->role));
    pl_json_kv_string(j, "scope", v->scope);
    kv_id(j, "program", v->program);
    kv_id(j, "producer", v->producer);
    pl_json_kv_string(j, "dtype", pl_dtype_name(v->dtype));
    if (v->encoding) pl_json_kv_string(j, "encoding", pl_encoding_name(v->encoding));
    pl_json_key(j, "shape");
    pl_json_array(j);
    for (uint32_t d = 0; d < v->shape.rank; d++) pl_json_int(j, v->shape.dim[d]);
    pl_json_array_end(j);
    pl_json_kv_uint(j, "bytes", pl_value_bytes(g, (pl_id)i));
    kv_id(j, "root", pl_value_root(g, (pl_id)i));
    kv_id(j, "view_of", v->view_of);
    kv_id(j, "update_of", v->update_of);
    kv_id(j, "again_of", first_of(g, names, (pl_id)i));
    if (v->tile) pl_json_kv_bool(j, "tile", true);
    pl_json_kv_string(j, "space", g->space[v->space]);
    write_block(j, &p->value[i]);
    pl_json_object_end(j);
}

static pl_status write_graph(pl_json *j, const pl_plan *p, pl_error *err)
{
    pl_names names;
    PL_TRY(pl_names_init(&names, p->graph, err));
    write_regions(j, p->graph);
    pl_json_key(j, "nodes");
    pl_json_array(j);
    for (size_t i = 0; i < p->graph->node_count; i++) write_node(j, p, &names, i);
    pl_json_array_end(j);
    pl_json_key(j, "values");
    pl_json_array(j);
    for (size_t i = 0; i < p->graph->value_count; i++) write_value(j, p, &names, i);
    pl_json_array_end(j);
    pl_names_deinit(&names);
    return PL_OK;
}

pl_status pl_report_plan_json(const pl_plan *p, const pl_report_options *options, pl_str *out, pl_error *err)
{
    const pl_report_options defaults = pl_report_options_default();
    pl_report_page g = {.plan = p, .options = options ? options : &defaults};
    pl_doc d = pl_doc_begin();
    pl_json j = pl_json_begin(out, false);
    pl_json_object(&j);
    pl_status status = pl_report_add_plan(&g, &d, err);
    if (status == PL_OK) pl_doc_json(&d, &j);
    pl_doc_deinit(&d);
    PL_TRY(status);
    PL_TRY(write_alive(&j, p, err));
    PL_TRY(write_graph(&j, p, err));
    pl_json_document_end(&j);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the plan as JSON") : PL_OK;
}
