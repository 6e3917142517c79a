/* A plan as JSON, schema "plimsoll.plan/1" (docs/plan-json.md). Sizes are exact bytes; what does not exist is null. */
#include <stdio.h>
#include <string.h>

#include "ir/index.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "report/account.h"
#include "report/interval.h"
#include "report/report.h"
#include "report/advice.h"
#include "report/work.h"

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

/* ---- head ---- */

static void write_head(pl_json *j, const pl_plan *p, const pl_report_options *o)
{
    pl_report_model m = pl_report_describe(p);
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)p->numerics_hash);
    pl_json_kv_string(j, "title", o->title);
    pl_json_kv_string(j, "numerics_hash", hash);
    pl_json_kv_int(j, "threads", p->team.threads);
    pl_json_kv_string(j, "isa", pl_isa_name(p->team.isa));
    if (p->data[0]) pl_json_kv_string(j, "data", p->data);
    pl_json_key(j, "model");
    pl_json_object(j);
    pl_json_kv_uint(j, "parameters", m.parameters);
    pl_json_kv_uint(j, "weights", m.weights);
    pl_json_kv_uint(j, "layers", m.layers);
    pl_json_kv_uint(j, "batch", m.batch);
    pl_json_kv_uint(j, "micro_batch", m.micro_batch);
    pl_json_kv_uint(j, "accumulation", m.accumulation);
    pl_json_kv_uint(j, "last_micro_batch", m.last);
    pl_json_kv_string(j, "precision", pl_dtype_name(m.precision));
    pl_json_object_end(j);
    pl_id train = pl_graph_find_trained(p->graph);
    kv_seconds(j, "seconds_per_step", train == PL_NONE ? 0 : pl_plan_program_seconds(p, train));
    if (train != PL_NONE) {
        const pl_duration time = pl_plan_program_time(p, train);
        pl_report_interval_json(j, "seconds_per_step", &time, pl_report_estimated_seconds(p, train));
    }
    const double spared = train == PL_NONE ? 0 : pl_plan_spared_seconds(p, train);
    if (spared > 0) kv_seconds(j, "seconds_spared_per_step", spared);
}

/* ---- the ledger ---- */

static void write_roles(pl_json *j, const pl_report_account *a)
{
    pl_json_key(j, "roles");
    pl_json_array(j);
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        pl_json_object(j);
        pl_json_kv_string(j, "role", pl_role_name((pl_role)r));
        pl_json_kv_uint(j, "bytes", a->role_bytes[r]);
        pl_json_kv_uint(j, "always_bytes", a->always_bytes[r]);
        pl_json_kv_uint(j, "count", a->role_count[r]);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void write_arena(pl_json *j, const pl_plan *p, const pl_report_account *a)
{
    pl_json_key(j, "arena");
    pl_json_object(j);
    pl_json_kv_uint(j, "bytes", a->arena_bytes);
    pl_json_kv_uint(j, "lower_bound_bytes", p->arena->lower_bound_bytes);
    pl_json_kv_uint(j, "resident_bytes", a->arena_bytes + a->rounding_bytes);
    pl_json_kv_string(j, "heuristic", p->arena->heuristic);
    kv_seconds(j, "place_seconds", p->arena->place_seconds);
    pl_json_kv_uint(j, "block_alignment", PL_PLAN_ALIGNMENT);
    pl_json_kv_bool(j, "huge_pages", p->huge_pages);
    pl_json_kv_uint_if(j, p->graph->node_count, "peak_position", p->arena->peak_position);
    write_roles(j, a);
    pl_json_kv_uint(j, "alive_bytes", a->alive_bytes);
    pl_json_kv_uint(j, "alignment_bytes", a->alignment_bytes);
    pl_json_kv_uint(j, "gap_bytes", a->gap_bytes);
    pl_json_kv_uint(j, "rounding_bytes", a->rounding_bytes);
    pl_json_object_end(j);
}

static void write_process(pl_json *j, const pl_plan *p, const pl_report_options *o)
{
    const pl_process_planned *ledger = &p->ledger;
    pl_json_key(j, "process");
    pl_json_object(j);
    pl_json_key(j, "rows");
    pl_json_array(j);
    for (size_t i = 0; i < ledger->row_count; i++) {
        pl_json_object(j);
        pl_json_kv_string(j, "kind", pl_memory_kind_name(ledger->row[i].kind));
        pl_json_kv_string(j, "name", ledger->row[i].name);
        pl_json_kv_uint(j, "count", ledger->row[i].count);
        pl_json_kv_uint(j, "reserved_bytes", ledger->row[i].reserved_bytes);
        pl_json_kv_uint(j, "resident_bytes", ledger->row[i].resident_bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_kv_uint(j, "resident_bytes", pl_plan_resident_bytes(p));
    pl_json_kv_uint(j, "page_table_bytes", ledger->page_table_bytes);
    pl_json_kv_uint(j, "kernel_bytes", ledger->kernel_bytes);
    pl_json_kv_uint(j, "writer_cache_bytes", p->writer_cache_bytes);
    pl_json_kv_uint(j, "charged_bytes", pl_plan_charged_bytes(p));
    pl_json_kv_uint_if(j, o->budget_bytes != PL_REPORT_NO_BUDGET, "budget_bytes", o->budget_bytes);
    pl_json_object_end(j);
}

static void write_disk(pl_json *j, const pl_plan *p, const pl_report_account *a)
{
    pl_json_key(j, "disk");
    pl_json_object(j);
    pl_json_key(j, "rows");
    pl_json_array(j);
    for (size_t i = 0; i < p->disk_count; i++) {
        pl_json_object(j);
        pl_json_kv_string(j, "name", p->disk[i].name);
        pl_json_kv_uint(j, "bytes", p->disk[i].bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_kv_uint(j, "bytes", a->disk_bytes);
    pl_json_object_end(j);
}

/* ---- components and programs ---- */

static pl_status write_components(pl_json *j, const pl_plan *p, const pl_report_options *o, pl_error *err)
{
    pl_report_components c;
    PL_TRY(pl_report_components_create(p, o->scope_depth, &c, err));
    pl_json_key(j, "components");
    pl_json_array(j);
    for (size_t i = 0; i < c.count; i++) {
        pl_json_object(j);
        pl_json_key(j, "scope");
        pl_json_string_bytes(j, c.item[i].scope, c.item[i].bytes);
        for (int k = 0; k < PL_GROUP_COUNT; k++) {
            char key[32];
            snprintf(key, sizeof key, "%s_bytes", pl_report_group_title((pl_report_group)k));
            pl_json_kv_uint(j, key, c.item[i].group_bytes[k]);
        }
        pl_json_kv_uint(j, "bytes", c.item[i].total_bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_report_components_deinit(&c);
    return PL_OK;
}

static void write_kinds(pl_json *j, const pl_plan *p, pl_id program)
{
    pl_report_kind kind[PL_OP_COUNT];
    size_t count = pl_report_kinds(p, program, kind);
    pl_json_key(j, "operators");
    pl_json_array(j);
    for (size_t i = 0; i < count; i++) {
        pl_json_object(j);
        pl_json_kv_string(j, "op", pl_op_name(kind[i].op));
        pl_json_kv_uint(j, "nodes", kind[i].nodes);
        pl_json_kv_uint(j, "runs", kind[i].runs);
        pl_json_kv_double(j, "flops", kind[i].flops);
        pl_json_kv_double(j, "moved_bytes", kind[i].bytes);
        kv_seconds(j, "seconds", kind[i].seconds);
        if (p->estimated) pl_json_kv_bool(j, "estimated", kind[i].is_estimated);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void write_program(pl_json *j, const pl_plan *p, const pl_report_program *program)
{
    pl_json_object(j);
    pl_json_kv_string(j, "name", p->graph->region[program->region].name);
    pl_json_kv_uint(j, "region", program->region);
    pl_json_kv_uint(j, "first", program->first);
    pl_json_kv_uint(j, "last", program->last);
    pl_json_kv_uint(j, "peak_bytes", program->peak_bytes);
    pl_json_kv_uint_if(j, program->last > program->first, "peak_position", program->peak_position);
    pl_json_kv_double(j, "flops", program->flops);
    kv_seconds(j, "seconds", program->seconds);
    const pl_duration time = pl_plan_program_time(p, program->region);
    pl_report_interval_json(j, "seconds", &time, pl_report_estimated_seconds(p, program->region));
    write_kinds(j, p, program->region);
    pl_json_object_end(j);
}

static pl_status write_programs(pl_json *j, const pl_plan *p, pl_error *err)
{
    pl_report_programs programs;
    uint64_t *alive = pl_alloc(p->graph->node_count + 1, sizeof *alive);
    if (!alive) return pl_fail(err, PL_E_NOMEM, "no memory to report on %zu nodes", p->graph->node_count);
    pl_plan_alive(p, PL_SPACE_RAM, alive);
    pl_status status = pl_report_programs_create(p, alive, &programs, err);
    if (status == PL_OK) {
        pl_json_key(j, "programs");
        pl_json_array(j);
        for (size_t i = 0; i < programs.count; i++) write_program(j, p, &programs.item[i]);
        pl_json_array_end(j);
        pl_report_programs_deinit(&programs);
        pl_json_key(j, "alive_bytes"); /* by position: the curve under the arena */
        pl_json_array(j);
        for (size_t i = 0; i < p->graph->node_count; i++) pl_json_uint(j, alive[i]);
        pl_json_array_end(j);
    }
    pl_free(alive);
    return status;
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
    pl_id first = first_of(g, names, n->out[0]);
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
    pl_report_options defaults = pl_report_options_default();
    const pl_report_options *o = options ? options : &defaults;
    pl_report_account account = pl_report_sum(p);
    pl_json j = pl_json_document(out, false, "plimsoll.plan/1");
    write_head(&j, p, o);
    write_arena(&j, p, &account);
    write_process(&j, p, o);
    write_disk(&j, p, &account);
    if (p->work) pl_json_key(&j, "work");
    if (p->work) pl_report_work_json(p->work, &j);
    if (p->advice) pl_json_key(&j, "advice");
    if (p->advice) pl_report_advice_json(p->advice, &j);
    PL_TRY(write_components(&j, p, o, err));
    PL_TRY(write_programs(&j, p, err));
    PL_TRY(write_graph(&j, p, err));
    pl_json_document_end(&j);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the plan as JSON") : PL_OK;
}
