/* The text of `plimsoll plan CONFIG`. One function a section, in the order in which they are read. */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "base/locale.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "report/account.h"
#include "report/interval.h"
#include "report/map.h"
#include "report/report.h"
#include "report/table.h"
#include "report/advice.h"
#include "report/work.h"

enum { COMPONENTS_SHOWN = 40, MAP_MARGIN = 12 };

typedef struct page {
    const pl_plan *plan;
    const pl_report_options *options;
    pl_str *out;
    pl_report_account account;
    pl_report_programs programs;
    pl_report_components components;
    pl_report_alive *alive;
    size_t alive_count;
} page;

pl_report_options pl_report_options_default(void)
{
    return (pl_report_options){
        .width = PL_TEXT_COLUMNS, .height = 24, .scope_depth = 1, .values = 12, .budget_bytes = PL_REPORT_NO_BUDGET};
}

static pl_table begin(const page *g, const char *columns)
{
    pl_table t = pl_table_begin(g->out, columns);
    t.color = g->options->color;
    return t;
}

static void heading(const page *g, const char *text)
{
    pl_str_printf(g->out, g->options->color ? "\n\033[1;34m%s\033[0m\n" : "\n%s\n", text);
}

/* ---- the model in a line ---- */

static void print_head(const page *g)
{
    size_t from = g->out->bytes;
    const pl_plan *p = g->plan;
    pl_report_model m = pl_report_describe(p);
    char count[32];
    if (g->options->title) {
        char title[PL_TABLE_CELL_BYTES];
        pl_text_clean(title, sizeof title, g->options->title);
        pl_str_printf(g->out, "%s: ", title);
    }
    pl_str_printf(g->out, "%s parameters", pl_format_count(m.parameters, count, sizeof count));
    pl_str_printf(g->out, " in %" PRIu64 " tensor%s", m.weights, pl_plural(m.weights));
    if (m.layers) pl_str_printf(g->out, ", %" PRIu64 " layer%s", m.layers, pl_plural(m.layers));
    if (m.batch) pl_str_append(g->out, "; ");
    pl_report_batch(&m, g->out);
    if (m.precision != PL_DTYPE_F32) pl_str_printf(g->out, "; activations in %s", pl_dtype_name(m.precision));
    pl_str_printf(g->out, "; %d thread%s, %s\n", p->team.threads, pl_plural((uint64_t)p->team.threads),
                  pl_isa_name(p->team.isa));
    if (p->data[0]) {
        char data[PL_PLAN_DATA_BYTES];
        pl_text_clean(data, sizeof data, p->data);
        pl_str_printf(g->out, "%s\n", data);
    }
    pl_str_fold(g->out, from, PL_TEXT_COLUMNS);
}

/* ---- the ledger ---- */

/* " (f32, u8)" where numbers of the model are kept in less than f32, else "". */
static void describe_dtypes(uint32_t dtypes, pl_role role, char *text, size_t room)
{
    const uint32_t narrow = 1u << PL_DTYPE_BF16 | 1u << PL_DTYPE_F16 | 1u << PL_DTYPE_U8;
    size_t used = 0;
    text[0] = 0;
    if (role > PL_ROLE_TEMPORARY || !(dtypes & narrow)) return;
    for (int t = 0; t < PL_DTYPE_COUNT && used < room; t++)
        if (dtypes >> t & 1)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : " (", pl_dtype_name((pl_dtype)t));
    if (used < room) snprintf(text + used, room - used, ")");
}

static void role_row(pl_table *t, const pl_report_account *a, const char *title, pl_role role, pl_role also)
{
    uint64_t bytes = a->role_bytes[role], always = a->always_bytes[role];
    uint32_t count = a->role_count[role];
    char dtypes[64];
    if (also != role) bytes += a->role_bytes[also], always += a->always_bytes[also], count += a->role_count[also];
    describe_dtypes(a->role_dtypes[role], role, dtypes, sizeof dtypes);
    pl_table_cell(t, "  %s", title);
    pl_table_bytes(t, bytes);
    if (bytes == 0)
        pl_table_cell(t, "%s", "");
    else if (always && always < bytes)
        pl_table_cell(t, "at the peak, %" PRIu32 " blocks%s (%" PRIu64 " bytes always held)", count, dtypes, always);
    else
        pl_table_cell(t, "%s, %" PRIu32 " block%s%s", always ? "always held" : "at the peak", count, pl_plural(count),
                      dtypes);
    pl_table_end_row(t);
}

static void plain_row(pl_table *t, const char *name, uint64_t bytes, const char *remark)
{
    pl_table_cell(t, "%s", name);
    pl_table_bytes(t, bytes);
    pl_table_cell(t, "%s", remark);
    pl_table_end_row(t);
}

static void total_row(pl_table *t, const char *name, uint64_t bytes, const char *remark)
{
    pl_table_rule(t, 1, 3);
    t->strong = true;
    plain_row(t, name, bytes, remark);
}

static void arena_rows(const page *g, pl_table *t)
{
    const pl_report_account *a = &g->account;
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        bool unasked = r == PL_ROLE_AVERAGE && a->role_bytes[r] == 0; /* most trainings keep none: no row of zeros */
        if (r == PL_ROLE_OUTPUT || unasked) continue;
        if (r == PL_ROLE_INPUT)
            role_row(t, a, "inputs and outputs", PL_ROLE_INPUT, PL_ROLE_OUTPUT);
        else
            role_row(t, a, pl_report_role_title((pl_role)r), (pl_role)r, (pl_role)r);
    }
    char remark[64];
    double gap = g->plan->arena->lower_bound_bytes
                     ? 100.0 * (double)(g->plan->arena->bytes - g->plan->arena->lower_bound_bytes) /
                           (double)g->plan->arena->lower_bound_bytes
                     : 0;
    pl_print(remark, sizeof remark, "%.2f %% above the lower bound", gap);
    plain_row(t, "  alignment", a->alignment_bytes, "every block to 64 bytes");
    plain_row(t, "  placement gap", a->gap_bytes, remark);
    plain_row(t, "  rounding", a->rounding_bytes, g->plan->huge_pages ? "to huge pages of 2 MiB" : "to pages of 4 KiB");
    total_row(t, "arena", a->arena_bytes + a->rounding_bytes, "");
}

static void process_row(pl_table *t, const pl_memory_row *row)
{
    char remark[96] = "", reserved[32], name[80];
    if (row->kind == PL_MEMORY_THREAD_STACK)
        snprintf(remark, sizeof remark, "%" PRIu32 " thread%s; %s bytes reserved", row->count, pl_plural(row->count),
                 pl_format_count(row->reserved_bytes, reserved, sizeof reserved));
    else if (row->kind == PL_MEMORY_LIBRARY || row->kind == PL_MEMORY_PROGRAM)
        snprintf(remark, sizeof remark, "%s", pl_memory_kind_name(row->kind));
    snprintf(name, sizeof name, "%s%s", row->kind == PL_MEMORY_ARENA ? "arena " : "",
             row->kind == PL_MEMORY_THREAD_STACK ? "thread stacks, touched" : row->name);
    plain_row(t, name, row->resident_bytes, remark);
}

static void budget_row(const page *g, pl_table *t)
{
    uint64_t budget = g->options->budget_bytes, charged = pl_plan_charged_bytes(g->plan);
    if (budget == PL_REPORT_NO_BUDGET) return;
    plain_row(t, "budget", budget, "");
    plain_row(t, charged > budget ? "over the budget by" : "left of the budget",
              charged > budget ? charged - budget : budget - charged, "");
}

static void print_ledger(const page *g)
{
    const pl_process_planned *ledger = &g->plan->ledger;
    heading(g, "Memory of the process");
    for (pl_table t = begin(g, "lrrl"); pl_table_pass(&t);) {
        pl_table_cell(&t, "%s", "");
        pl_table_cell(&t, "%s", "bytes");
        pl_table_cell(&t, "%s", "MB");
        pl_table_end_row(&t);
        arena_rows(g, &t);
        for (size_t i = 0; i < ledger->row_count; i++)
            if (i != g->account.arena_row) process_row(&t, &ledger->row[i]);
        total_row(&t, "resident", ledger->resident_bytes, "what the process holds");
        plain_row(&t, "page tables", ledger->page_table_bytes, "at most");
        plain_row(&t, "kernel memory", ledger->kernel_bytes, "stacks and structures of threads and mappings, at most");
        plain_row(&t, "writers' page cache", g->plan->writer_cache_bytes, "of files being written");
        total_row(&t, "charged", pl_plan_charged_bytes(g->plan), "what a container is billed for");
        budget_row(g, &t);
    }
}

static void print_disk(const page *g)
{
    if (g->plan->disk_count == 0) return;
    heading(g, "Files on disk");
    for (pl_table t = begin(g, "lrr"); pl_table_pass(&t);) {
        for (size_t i = 0; i < g->plan->disk_count; i++)
            plain_row(&t, g->plan->disk[i].name, g->plan->disk[i].bytes, "");
        total_row(&t, "on disk", g->account.disk_bytes, "");
    }
}

static void print_work(const page *g)
{
    if (!g->plan->work) return;
    heading(g, "All of the work");
    pl_report_work(g->plan->work, pl_plan_words_of(g->plan), g->out);
}

static void print_advice(const page *g)
{
    if (!g->plan->advice) return;
    heading(g, "What bounds it");
    pl_report_stages(g->plan->advice, pl_plan_words_of(g->plan), g->out);
    heading(g, "What would change it");
    pl_report_changes(g->plan, g->out);
    heading(g, "Risks");
    pl_report_risks(g->plan->advice, g->out);
}

/* ---- by component, by program, by operator ---- */

/* whole: in megabytes without a fraction, so that the lines of a large model are no longer. */
static void component_row(pl_table *t, const char *name, const uint64_t *group_bytes, uint64_t total, bool whole)
{
    pl_table_cell(t, "%s", name);
    for (int k = 0; k < PL_GROUP_COUNT; k++)
        if (whole && group_bytes[k])
            pl_table_count(t, (group_bytes[k] + 500000) / 1000000);
        else
            pl_table_megabytes(t, group_bytes[k]);
    pl_table_count(t, total);
    pl_table_end_row(t);
}

static void component_rows(const page *g, pl_table *t)
{
    enum { LARGE_BYTES = 1000000000 };
    pl_report_component sum = {0}, rest = {0};
    const pl_report_components *c = &g->components;
    bool whole = g->plan->arena->bytes >= LARGE_BYTES;
    for (size_t i = 0; i < c->count; i++) {
        char name[PL_TABLE_CELL_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)(c->item[i].bytes < 200 ? c->item[i].bytes : 200), c->item[i].scope);
        pl_report_component *into = i < COMPONENTS_SHOWN ? &sum : &rest;
        for (int k = 0; k < PL_GROUP_COUNT; k++) into->group_bytes[k] += c->item[i].group_bytes[k];
        into->total_bytes += c->item[i].total_bytes;
        if (i < COMPONENTS_SHOWN)
            component_row(t, c->item[i].bytes ? name : "(the whole)", c->item[i].group_bytes, c->item[i].total_bytes,
                          whole);
    }
    if (c->count > COMPONENTS_SHOWN) {
        char name[64];
        snprintf(name, sizeof name, "and %zu more", c->count - COMPONENTS_SHOWN);
        component_row(t, name, rest.group_bytes, rest.total_bytes, whole);
    }
    for (int k = 0; k < PL_GROUP_COUNT; k++) sum.group_bytes[k] += rest.group_bytes[k];
    pl_table_rule(t, 1, PL_GROUP_COUNT + 2);
    t->strong = true;
    component_row(t, "alive at the peak", sum.group_bytes, sum.total_bytes + rest.total_bytes, whole);
}

static void print_components(const page *g)
{
    static const char *const titles[PL_GROUP_COUNT] = {"weights", "grads", "optim", "saved", "work", "other"};
    heading(g, "By component, at the peak (MB; the sum in bytes)");
    for (pl_table t = begin(g, "lrrrrrrr"); pl_table_pass(&t);) {
        pl_table_cell(&t, "%s", "");
        for (int k = 0; k < PL_GROUP_COUNT; k++) pl_table_cell(&t, "%s", titles[k]);
        pl_table_cell(&t, "%s", "bytes");
        pl_table_end_row(&t);
        component_rows(g, &t);
    }
}

static void seconds_cell(pl_table *t, double seconds, bool estimated)
{
    char text[48];
    pl_table_cell(t, "%s", pl_report_seconds(seconds, estimated, "-", text));
}

/* "201 M", "1.23 G": a count of operations in three digits. */
static void operations_cell(pl_table *t, double count)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    int unit = 0;
    while (count >= 999.5 && unit < 6) count /= 1000, unit++;
    pl_table_cell(t, "%.*f%s", unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2, count, units[unit]);
}

static void moved_cell(pl_table *t, double bytes)
{
    char text[32];
    pl_table_cell(t, "%s", bytes < 1e18 ? pl_format_bytes((uint64_t)bytes, text, sizeof text) : "?");
}

static void program_row(const page *g, pl_table *t, const pl_report_program *program)
{
    const pl_graph *graph = g->plan->graph;
    pl_table_cell(t, "%s", graph->region[program->region].name);
    pl_table_count(t, program->last - program->first);
    pl_table_bytes(t, program->peak_bytes);
    operations_cell(t, program->flops);
    seconds_cell(t, program->seconds, pl_report_estimated_seconds(g->plan, program->region) > 0);
    const pl_node *n = &graph->node[program->peak_position];
    if (program->last > program->first)
        pl_table_cell(t, "%s%s%s", pl_op_name(n->op), n->scope[0] ? " in " : "", n->scope);
    pl_table_end_row(t);
}

static void print_programs(const page *g)
{
    static const char *const titles[] = {"", "nodes", "peak, bytes", "MB", "FLOP", "predicted", "peak at"};
    heading(g, "By program (one run of each; peak of the arena)");
    for (pl_table t = begin(g, "lrrrrrl"); pl_table_pass(&t);) {
        for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < g->programs.count; i++) program_row(g, &t, &g->programs.item[i]);
    }
}

static void kind_row(pl_table *t, const pl_report_kind *k, double total)
{
    pl_table_cell(t, "%s", pl_op_name(k->op));
    pl_table_count(t, k->nodes);
    pl_table_count(t, k->runs);
    operations_cell(t, k->flops);
    moved_cell(t, k->bytes);
    seconds_cell(t, k->seconds, k->is_estimated);
    if (total > 0) {
        pl_table_cell(t, "%.1f %%", 100 * k->seconds / total); /* with a total every part is known */
        if (k->seconds > 0 && k->flops > 0) pl_table_cell(t, "%.1f", k->flops / k->seconds / 1e9);
    }
    pl_table_end_row(t);
}

static void kind_total(pl_table *t, const pl_report_kind *sum)
{
    pl_table_cell(t, "%s", "step");
    pl_table_count(t, sum->nodes);
    pl_table_count(t, sum->runs);
    operations_cell(t, sum->flops);
    moved_cell(t, sum->bytes);
    seconds_cell(t, sum->seconds, sum->is_estimated);
    if (sum->seconds > 0) {
        pl_table_cell(t, "%s", "100 %");
        pl_table_cell(t, "%.1f", sum->flops / sum->seconds / 1e9);
    }
    pl_table_end_row(t);
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
static void print_interval(const page *g, pl_id train)
{
    const pl_duration p = pl_plan_program_time(g->plan, train);
    const size_t from = g->out->bytes;
    if (!(p.seconds > 0) || (!(p.high > p.low) && !p.estimated)) return;
    pl_str_append(g->out, "Predicted: the kernels of a step take ");
    pl_report_say_interval(p.seconds, p.low, p.high, g->out);
    pl_str_append(g->out, ".");
    pl_report_say_basis(p.seconds, p.low, p.high, pl_report_estimated_seconds(g->plan, train), p.busy, g->out);
    pl_str_append(g->out, "\n");
    pl_str_fold(g->out, from, PL_TEXT_COLUMNS);
}

static void print_spared(const page *g, pl_id train, double seconds)
{
    const double spared = pl_plan_spared_seconds(g->plan, train);
    if (!(spared > 0) || !(seconds > 0)) return;
    const size_t from = g->out->bytes;
    pl_str_printf(
        g->out,
        "A step whose %s have been seen before, and what was made of them kept (see the disk), does not make it "
        "again: it takes %.3g s less, %.0f %%.\n",
        pl_plan_words_of(g->plan)->samples, spared, 100 * spared / seconds);
    pl_str_fold(g->out, from, PL_TEXT_COLUMNS);
}

/* What a step does and how long it is predicted to take. */
static void print_kinds(const page *g)
{
    static const char *const titles[] = {"", "nodes", "runs", "FLOP", "moved", "predicted", "share", "GFLOP/s"};
    pl_id train = pl_graph_find_trained(g->plan->graph);
    if (train == PL_NONE) return;
    pl_report_kind kind[PL_OP_COUNT];
    size_t count = pl_report_kinds(g->plan, train, kind);
    pl_report_kind sum = sum_kinds(kind, count);
    bool timed = false;
    for (size_t i = 0; i < count; i++) timed |= kind[i].seconds > 0;
    int columns = sum.seconds > 0 ? 8 : 6;
    heading(g, timed ? "One training step, by operator"
                     : "One training step, by operator (times are not known: no calibration)");
    for (pl_table t = begin(g, "lrrrrrrr"); pl_table_pass(&t);) {
        for (int i = 0; i < columns; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < count; i++) kind_row(&t, &kind[i], sum.seconds);
        pl_table_rule(&t, 1, columns);
        t.strong = true;
        kind_total(&t, &sum);
    }
    if (sum.is_estimated) pl_str_append(g->out, PL_REPORT_ESTIMATED_NOTE);
    print_interval(g, train);
    print_spared(g, train, sum.seconds);
}

/* ---- the moment of the peak ---- */

static void alive_row(const page *g, pl_table *t, const pl_report_alive *a)
{
    const pl_graph *graph = g->plan->graph;
    char shape[160], what[200] = "";
    if (a->value == PL_NONE) {
        pl_table_cell(t, "(of %s)", pl_op_name(graph->node[a->node].op));
        pl_table_cell(t, "%s", pl_role_name(PL_ROLE_WORKSPACE));
    } else {
        const pl_value *v = &graph->value[a->value];
        pl_table_cell(t, "%s", v->name);
        pl_table_cell(t, "%s", pl_role_name(v->role));
        snprintf(what, sizeof what, "%s %s ", pl_dtype_name(v->dtype), pl_shape_text(&v->shape, shape, sizeof shape));
    }
    pl_table_count(t, a->block->bytes);
    pl_table_cell(t, "%" PRIu32 "-%" PRIu32, a->block->first, a->block->last - 1);
    pl_table_cell(t, "%s%s", what, graph->node[a->value == PL_NONE ? a->node : (pl_id)a->block->first].scope);
    pl_table_end_row(t);
}

static uint64_t rest_of(const page *g, size_t shown)
{
    uint64_t sum = 0;
    for (size_t i = shown; i < g->alive_count; i++) sum += g->alive[i].block->bytes;
    return sum;
}

static void print_peak(const page *g)
{
    const pl_plan *p = g->plan;
    if (p->graph->node_count == 0) return;
    const pl_node *n = &p->graph->node[p->arena->peak_position];
    char count[32];
    heading(g, "The peak");
    size_t from = g->out->bytes;
    pl_str_printf(g->out, "node %" PRIu64 " of %zu: %s in %s, %s pass of program %s", p->arena->peak_position,
                  p->graph->node_count, pl_op_name(n->op), n->scope[0] ? n->scope : "no component",
                  pl_phase_name(n->phase), p->graph->region[pl_region_program(p->graph, n->region)].name);
    uint64_t trips = pl_node_trips(p->graph, n);
    if (trips > 1) pl_str_printf(g->out, " (repeated %s times)", pl_format_count(trips, count, sizeof count));
    size_t shown = g->alive_count < g->options->values ? g->alive_count : g->options->values;
    pl_str_append(g->out, ".\n");
    pl_str_fold(g->out, from, PL_TEXT_COLUMNS);
    if (g->alive_count) pl_str_append(g->out, "Alive then, besides what is always held:\n");
    for (pl_table t = begin(g, "llrrl"); pl_table_pass(&t);) {
        static const char *const titles[] = {"", "role", "bytes", "nodes", "what, and where from"};
        for (size_t i = 0; i < 5 && g->alive_count; i++) pl_table_cell(&t, "%s", titles[i]);
        if (g->alive_count) pl_table_end_row(&t);
        for (size_t i = 0; i < shown; i++) alive_row(g, &t, &g->alive[i]);
        if (shown == g->alive_count) continue;
        pl_table_cell(&t, "and %zu smaller", g->alive_count - shown);
        pl_table_cell(&t, "%s", "");
        pl_table_count(&t, rest_of(g, shown));
        pl_table_end_row(&t);
    }
}

static void print_placement(const page *g)
{
    const pl_plan *p = g->plan;
    char arena[32], bound[32], gap[32];
    heading(g, "The arena over time");
    size_t from = g->out->bytes;
    pl_str_printf(g->out, "%s bytes; lower bound %s, gap %s (placed by: %s",
                  pl_format_count(p->arena->bytes, arena, sizeof arena),
                  pl_format_count(p->arena->lower_bound_bytes, bound, sizeof bound),
                  pl_format_count(p->arena->bytes - p->arena->lower_bound_bytes, gap, sizeof gap), p->arena->heuristic);
    char took[32];
    if (p->arena->place_seconds > 0)
        pl_str_printf(g->out, ", in %s", pl_format_seconds(p->arena->place_seconds, took, sizeof took));
    pl_str_append(g->out, ")\n");
    pl_str_fold(g->out, from, PL_TEXT_COLUMNS);
}

/* ---- all of it ---- */

static void deinit(page *g)
{
    pl_report_programs_deinit(&g->programs);
    pl_report_components_deinit(&g->components);
    pl_free(g->alive);
}

static pl_status gather(page *g, pl_error *err)
{
    uint64_t *sum = pl_alloc(g->plan->graph->node_count + 1, sizeof *sum);
    if (!sum) return pl_fail(err, PL_E_NOMEM, "no memory to report on %zu nodes", g->plan->graph->node_count);
    pl_plan_alive(g->plan, PL_SPACE_RAM, sum);
    g->account = pl_report_sum(g->plan);
    pl_status status = pl_report_programs_create(g->plan, sum, &g->programs, err);
    pl_free(sum);
    PL_TRY(status);
    PL_TRY(pl_report_components_create(g->plan, g->options->scope_depth, &g->components, err));
    return pl_report_alive_at_peak(g->plan, &g->alive, &g->alive_count, err);
}

static pl_status print(page *g, pl_error *err)
{
    const pl_report_options *o = g->options;
    PL_TRY(gather(g, err));
    print_head(g);
    print_ledger(g);
    print_disk(g);
    print_work(g);
    print_advice(g);
    print_components(g);
    print_programs(g);
    print_peak(g);
    print_placement(g);
    PL_TRY(pl_report_map(g->plan, o->width > MAP_MARGIN ? o->width - MAP_MARGIN : 0, o->height, o->color, g->out, err));
    print_kinds(g);
    return g->out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the text of the plan's report") : PL_OK;
}

pl_status pl_report_plan(const pl_plan *p, const pl_report_options *options, pl_str *out, pl_error *err)
{
    pl_report_options defaults = pl_report_options_default();
    page g = {.plan = p, .options = options ? options : &defaults, .out = out};
    pl_status status = print(&g, err);
    deinit(&g);
    return status;
}
