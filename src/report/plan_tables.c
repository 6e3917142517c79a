/* Bytes and predicted times of a plan: by component, by program, by operator, and what is alive at the peak. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "report/interval.h"
#include "report/plan.h"

enum { COMPONENTS_SHOWN = 40 };

/* ---- by component ---- */

static const char *const group_class[PL_GROUP_COUNT] = {"weight", "gradient",  "optimizer",
                                                        "saved",  "workspace", "other"};

static const pl_doc_column component_columns[] = {{NULL, ""},
                                                  {"weights_bytes", "weights", PL_DOC_MEGABYTES},
                                                  {"gradients_bytes", "grads", PL_DOC_MEGABYTES},
                                                  {"optimizer_bytes", "optim", PL_DOC_MEGABYTES},
                                                  {"activations_bytes", "saved", PL_DOC_MEGABYTES},
                                                  {"workspace_bytes", "work", PL_DOC_MEGABYTES},
                                                  {"other_bytes", "other", PL_DOC_MEGABYTES},
                                                  {"bytes", "bytes", PL_DOC_EXACT},
                                                  {NULL, "", PL_DOC_BAR}};

/* largest 0: no bar. */
static void add_component_numbers(pl_doc *d, const pl_report_component *c, double largest)
{
    for (int k = 0; k < PL_GROUP_COUNT; k++) pl_doc_count(d, c->group_bytes[k]);
    pl_doc_count(d, c->total_bytes);
    for (int k = 0; k < PL_GROUP_COUNT && largest > 0; k++)
        if (c->group_bytes[k]) pl_doc_bar(d, group_class[k], (double)c->group_bytes[k] / largest);
    pl_doc_bar_end(d);
    pl_doc_row_end(d);
}

static void add_up(pl_report_component *sum, const pl_report_component *c)
{
    for (int k = 0; k < PL_GROUP_COUNT; k++) sum->group_bytes[k] += c->group_bytes[k];
    sum->total_bytes += c->total_bytes;
}

/* Shown to people: the first that are a thousandth of all at least; of the others the sum, if they are several. */
static size_t find_rest(const pl_report_components *c, uint64_t least, pl_report_component *rest)
{
    size_t more = 0;
    for (size_t i = 0; i < c->count; i++)
        if (i >= COMPONENTS_SHOWN || c->item[i].total_bytes < least) add_up(rest, &c->item[i]), more++;
    return more;
}

static void add_component_rows(pl_doc *d, const pl_report_components *c)
{
    pl_report_component sum = {0}, rest = {0};
    double largest = 1;
    for (size_t i = 0; i < c->count; i++) {
        add_up(&sum, &c->item[i]);
        largest = fmax(largest, (double)c->item[i].total_bytes);
    }
    const uint64_t least = sum.total_bytes / 1000;
    const size_t more = find_rest(c, least, &rest);
    largest = fmax(largest, (double)rest.total_bytes);
    for (size_t i = 0; i < c->count; i++) {
        const bool is_rest = more > 1 && (i >= COMPONENTS_SHOWN || c->item[i].total_bytes < least);
        pl_doc_row(d, is_rest ? PL_DOC_HIDDEN : 0);
        pl_doc_text(d, c->item[i].bytes ? c->item[i].scope : "(the whole)", c->item[i].bytes ? c->item[i].bytes : 11);
        pl_doc_key_text(d, "scope", c->item[i].scope, c->item[i].bytes);
        add_component_numbers(d, &c->item[i], largest);
    }
    if (more > 1) {
        pl_doc_row(d, PL_DOC_SHOWN);
        pl_doc_words(d, "and %zu more", more);
        add_component_numbers(d, &rest, largest);
    }
    pl_doc_row(d, PL_DOC_SHOWN | PL_DOC_TOTAL);
    pl_doc_words(d, "alive at the peak");
    add_component_numbers(d, &sum, 0);
}

static pl_status add_components(const pl_report_page *g, pl_doc *d, pl_error *err)
{
    pl_report_components c;
    PL_TRY(pl_report_components_create(g->plan, g->options->scope_depth, &c, err));
    pl_doc_section_long(d, "By component, at the peak (MB; the sum in bytes)");
    pl_doc_table(d, "components", component_columns, sizeof component_columns / sizeof *component_columns);
    add_component_rows(d, &c);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    pl_report_components_deinit(&c);
    return PL_OK;
}

/* ---- by operator ---- */

static const pl_doc_column kind_columns[] = {{"op", ""},
                                             {"nodes", "nodes", PL_DOC_COUNT},
                                             {"runs", "runs", PL_DOC_COUNT},
                                             {"flops", "FLOP", PL_DOC_OPERATIONS},
                                             {"moved_bytes", "moved", PL_DOC_MOVED},
                                             {"seconds", "predicted", PL_DOC_SECONDS},
                                             {NULL, "share", PL_DOC_PERCENT, 1},
                                             {NULL, "GFLOP/s", PL_DOC_FIXED, 1}};

/* total: seconds of all; 0: not all are known, and there is no share. */
static void add_kind(pl_doc *d, const char *name, const pl_report_kind *k, double total, unsigned flags)
{
    pl_doc_row(d, flags);
    pl_doc_words(d, "%s", name);
    pl_doc_count(d, k->nodes);
    pl_doc_count(d, k->runs);
    pl_doc_real(d, k->flops);
    pl_doc_real(d, k->bytes);
    pl_doc_seconds(d, k->seconds, k->is_estimated);
    total > 0 ? pl_doc_real(d, k->seconds / total) : pl_doc_blank(d);
    total > 0 && k->seconds > 0 && k->flops > 0 ? pl_doc_real(d, k->flops / k->seconds / 1e9) : pl_doc_blank(d);
}

static void add_kinds(const pl_plan *p, const char *key, const pl_report_kind *kind, size_t count, double total,
                      pl_doc *d)
{
    pl_doc_table(d, key, kind_columns, sizeof kind_columns / sizeof *kind_columns);
    for (size_t i = 0; i < count; i++) {
        add_kind(d, pl_op_name(kind[i].op), &kind[i], total, 0);
        if (p->estimated) pl_doc_key_bool(d, "estimated", kind[i].is_estimated);
        pl_doc_row_end(d);
    }
}

/* For programs alone, about each program. */
static void add_operators(const pl_plan *p, pl_id program, pl_doc *d)
{
    pl_report_kind kind[PL_OP_COUNT];
    add_kinds(p, "operators", kind, pl_report_kinds(p, program, kind), 0, d);
    pl_doc_table_end(d);
}

static pl_report_kind sum_kinds(const pl_report_kind *kind, size_t count)
{
    pl_report_kind sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.nodes += kind[i].nodes;
        sum.runs += kind[i].runs;
        sum.flops += kind[i].flops;
        sum.bytes += kind[i].bytes;
        sum.is_estimated |= kind[i].is_estimated;
        sum.seconds = sum.seconds < 0 || kind[i].seconds < 0 ? -1 : sum.seconds + kind[i].seconds;
    }
    return sum;
}

/* Between which times that may lie, and what it rests on. */
static void say_interval(const pl_plan *plan, pl_id train, pl_doc *d)
{
    const pl_duration p = pl_plan_program_time(plan, train);
    if (!(p.seconds > 0) || (!(p.high > p.low) && !p.estimated)) return;
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_append(out, "Predicted: the kernels of a step take ");
    pl_report_say_interval(p.seconds, p.low, p.high, out);
    pl_str_append(out, ".");
    pl_report_say_basis(p.seconds, p.low, p.high, pl_report_estimated_seconds(plan, train), p.busy, out);
    pl_doc_paragraph_end(d);
}

static void say_spared(const pl_plan *p, pl_id train, double seconds, pl_doc *d)
{
    const double spared = pl_plan_spared_seconds(p, train);
    if (!(spared > 0) || !(seconds > 0)) return;
    pl_doc_say(d, 0,
               "A step whose %s have been seen before, and what was made of them kept (see the disk), does not make it "
               "again: it takes %.3g s less, %.0f %%.",
               pl_plan_words_of(p)->samples, spared, 100 * spared / seconds);
}

/* What a step does and how long it is predicted to take. */
static void add_training_step(const pl_plan *p, pl_doc *d)
{
    const pl_id train = pl_graph_find_trained(p->graph);
    pl_report_kind kind[PL_OP_COUNT];
    if (train == PL_NONE) return;
    const size_t count = pl_report_kinds(p, train, kind);
    const pl_report_kind sum = sum_kinds(kind, count);
    bool timed = false;
    for (size_t i = 0; i < count; i++) timed |= kind[i].seconds > 0;
    pl_doc_shown(d);
    pl_doc_section_long(d, timed ? "One training step, by operator"
                                 : "One training step, by operator (times are not known: no calibration)");
    add_kinds(p, NULL, kind, count, sum.seconds, d);
    add_kind(d, "step", &sum, sum.seconds, PL_DOC_TOTAL);
    pl_doc_row_end(d);
    pl_doc_table_end(d);
    if (sum.is_estimated) pl_doc_say(d, 0, PL_REPORT_ESTIMATED_NOTE);
    say_interval(p, train, d);
    say_spared(p, train, sum.seconds, d);
    pl_doc_section_end(d);
    pl_doc_shown_end(d);
}

/* ---- by program ---- */

static const pl_doc_column program_columns[] = {
    {"name", ""},
    {NULL, "nodes", PL_DOC_COUNT},
    {NULL, "peak, bytes", PL_DOC_BYTES},
    {NULL, "FLOP", PL_DOC_OPERATIONS},
    {NULL, "predicted", PL_DOC_SECONDS},
    {NULL, "peak at", .is_remark = true},
};

static void add_program_keys(const pl_plan *p, const pl_report_program *r, pl_doc *d)
{
    const pl_duration time = pl_plan_program_time(p, r->region);
    pl_doc_key_count(d, "region", r->region);
    pl_doc_key_count(d, "first", r->first);
    pl_doc_key_count(d, "last", r->last);
    pl_doc_key_count(d, "peak_bytes", r->peak_bytes);
    pl_doc_key_count_if(d, r->last > r->first, "peak_position", r->peak_position);
    pl_doc_key_real(d, "flops", r->flops);
    pl_doc_key_real_if(d, r->seconds > 0, "seconds", r->seconds);
    pl_report_add_interval(d, "seconds", &time, pl_report_estimated_seconds(p, r->region));
    add_operators(p, r->region, d);
}

static void add_program(const pl_plan *p, const pl_report_program *r, pl_doc *d)
{
    const pl_node *n = &p->graph->node[r->peak_position];
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", p->graph->region[r->region].name);
    add_program_keys(p, r, d);
    pl_doc_count(d, r->last - r->first);
    pl_doc_count(d, r->peak_bytes);
    pl_doc_real(d, r->flops);
    pl_doc_seconds(d, r->seconds, pl_report_estimated_seconds(p, r->region) > 0);
    if (r->last > r->first) pl_doc_words(d, "%s%s%s", pl_op_name(n->op), n->scope[0] ? " in " : "", n->scope);
    pl_doc_row_end(d);
}

static pl_status add_programs(const pl_report_page *g, pl_doc *d, pl_error *err)
{
    const pl_plan *p = g->plan;
    pl_report_programs programs;
    uint64_t *alive = pl_alloc(p->graph->node_count + 1, sizeof *alive);
    if (!alive) return pl_fail(err, PL_E_NOMEM, "no memory to report on %zu nodes", p->graph->node_count);
    pl_plan_alive(p, PL_SPACE_RAM, alive);
    const pl_status status = pl_report_programs_create(p, alive, &programs, err);
    pl_free(alive);
    PL_TRY(status);
    pl_doc_section_long(d, "By program (one run of each; peak of the arena)");
    pl_doc_table(d, "programs", program_columns, sizeof program_columns / sizeof *program_columns);
    for (size_t i = 0; i < programs.count; i++) add_program(p, &programs.item[i], d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    pl_report_programs_deinit(&programs);
    return PL_OK;
}

/* ---- the moment of the peak ---- */

static const pl_doc_column alive_columns[] = {{NULL, ""},
                                              {NULL, "role"},
                                              {NULL, "bytes", PL_DOC_EXACT},
                                              {NULL, "nodes"},
                                              {NULL, "where from", .is_remark = true}};

static void add_alive(const pl_plan *p, const pl_report_alive *a, pl_doc *d)
{
    const pl_graph *graph = p->graph;
    const pl_value *v = a->value == PL_NONE ? NULL : &graph->value[a->value];
    char shape[160], what[200] = "";
    pl_doc_row(d, PL_DOC_SHOWN);
    if (v) {
        snprintf(what, sizeof what, "%s %s ", pl_dtype_name(v->dtype), pl_shape_text(&v->shape, shape, sizeof shape));
        pl_doc_words(d, "%s", v->name);
    } else {
        pl_doc_words(d, "(of %s)", pl_op_name(graph->node[a->node].op));
    }
    pl_doc_words(d, "%s", pl_role_name(v ? v->role : PL_ROLE_WORKSPACE));
    pl_doc_count(d, a->block->bytes);
    pl_doc_words(d, "%" PRIu32 "-%" PRIu32, a->block->first, a->block->last - 1);
    pl_doc_words(d, "%s%s", what, graph->node[v ? (pl_id)a->block->first : a->node].scope);
    pl_doc_row_end(d);
}

static void say_where(const pl_plan *p, pl_doc *d)
{
    const pl_node *n = &p->graph->node[p->arena->peak_position];
    const uint64_t trips = pl_node_trips(p->graph, n);
    char count[32];
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "node %" PRIu64 " of %zu: %s in %s, %s pass of program %s", p->arena->peak_position,
                  p->graph->node_count, pl_op_name(n->op), n->scope[0] ? n->scope : "no component",
                  pl_phase_name(n->phase), p->graph->region[pl_region_program(p->graph, n->region)].name);
    if (trips > 1) pl_str_printf(out, " (repeated %s times)", pl_format_count(trips, count, sizeof count));
    pl_str_append(out, ".");
    pl_doc_paragraph_end(d);
}

static void add_alive_rows(const pl_report_page *g, const pl_report_alive *alive, size_t count, pl_doc *d)
{
    const size_t shown = count < g->options->values ? count : g->options->values;
    uint64_t rest = 0;
    for (size_t i = 0; i < shown; i++) add_alive(g->plan, &alive[i], d);
    for (size_t i = shown; i < count; i++) rest += alive[i].block->bytes;
    if (shown == count) return;
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "and %zu smaller", count - shown);
    pl_doc_blank(d);
    pl_doc_count(d, rest);
    pl_doc_row_end(d);
}

static pl_status add_peak(const pl_report_page *g, pl_doc *d, pl_error *err)
{
    pl_report_alive *alive;
    size_t count;
    if (g->plan->graph->node_count == 0) return PL_OK;
    PL_TRY(pl_report_alive_at_peak(g->plan, &alive, &count, err));
    pl_doc_section_long(d, "The peak");
    say_where(g->plan, d);
    if (count) pl_doc_say(d, 0, "Alive then, besides what is always held:");
    pl_doc_table(d, NULL, alive_columns, sizeof alive_columns / sizeof *alive_columns);
    add_alive_rows(g, alive, count, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    pl_free(alive);
    return PL_OK;
}

pl_status pl_report_add_tables(const pl_report_page *g, pl_doc *d, pl_error *err)
{
    PL_TRY(add_components(g, d, err));
    PL_TRY(add_programs(g, d, err));
    PL_TRY(add_peak(g, d, err));
    add_training_step(g->plan, d);
    return PL_OK;
}
