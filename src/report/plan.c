/* What there is to say about a plan, and about its run where there is one: a function for each section, in the order in
 * which they are read. The tables by component, program and operator are in plan_tables.c. */
#include "report/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/advice.h"
#include "report/contexts.h"
#include "report/html.h"
#include "report/interval.h"
#include "report/map.h"
#include "report/times.h"
#include "report/work.h"
#include "show/render.h"

enum { MAP_MARGIN = 12 };

pl_report_options pl_report_options_default(void)
{
    return (pl_report_options){
        .width = PL_TEXT_COLUMNS, .height = 24, .scope_depth = 1, .values = 12, .budget_bytes = PL_REPORT_NO_BUDGET};
}

/* ---- the model in a line ---- */

static void say_model(const pl_report_page *g, pl_doc *d)
{
    const pl_plan *p = g->plan;
    const pl_report_model m = pl_report_describe(p);
    char count[32];
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "%s parameters", pl_format_count(m.parameters, count, sizeof count));
    pl_str_printf(out, " in %" PRIu64 " tensor%s", m.weights, pl_plural(m.weights));
    if (m.layers) pl_str_printf(out, ", %" PRIu64 " layer%s", m.layers, pl_plural(m.layers));
    if (m.batch) pl_str_append(out, "; ");
    pl_report_batch(&m, out);
    if (m.precision != PL_DTYPE_F32) pl_str_printf(out, "; activations in %s", pl_dtype_name(m.precision));
    pl_str_printf(out, "; %d thread%s, %s", p->team.threads, pl_plural((uint64_t)p->team.threads),
                  pl_isa_name(p->team.isa));
    pl_doc_paragraph_end(d);
    if (p->data[0]) pl_doc_say(d, 0, "%s", p->data);
    if (g->run && g->run->verdict) pl_doc_say(d, 0, "%s", g->run->verdict);
}

static void add_model(const pl_report_page *g, pl_doc *d)
{
    const pl_report_model m = pl_report_describe(g->plan);
    pl_doc_object(d, "model");
    pl_doc_key_count(d, "parameters", m.parameters);
    pl_doc_key_count(d, "weights", m.weights);
    pl_doc_key_count(d, "layers", m.layers);
    pl_doc_key_count(d, "batch", m.batch);
    pl_doc_key_count(d, "micro_batch", m.micro_batch);
    pl_doc_key_count(d, "accumulation", m.accumulation);
    pl_doc_key_count(d, "last_micro_batch", m.last);
    pl_doc_key_words(d, "precision", pl_dtype_name(m.precision));
    pl_doc_object_end(d);
}

static void add_step(const pl_plan *p, pl_doc *d)
{
    const pl_id train = pl_graph_find_trained(p->graph);
    const double seconds = train == PL_NONE ? 0 : pl_plan_program_seconds(p, train);
    pl_doc_key_real_if(d, seconds > 0, "seconds_per_step", seconds);
    if (train == PL_NONE) return;
    const pl_duration time = pl_plan_program_time(p, train);
    pl_report_add_interval(d, "seconds_per_step", &time, pl_report_estimated_seconds(p, train));
    const double spared = pl_plan_spared_seconds(p, train);
    if (spared > 0) pl_doc_key_real(d, "seconds_spared_per_step", spared);
}

static void add_head(const pl_report_page *g, pl_doc *d)
{
    const pl_plan *p = g->plan;
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)p->numerics_hash);
    pl_doc_title(d, NULL, g->run ? "run" : "plan", g->options->title ? g->options->title : "");
    say_model(g, d);
    pl_doc_key_words(d, "schema", "plimsoll.plan/1");
    pl_doc_key_words(d, "title", g->options->title);
    pl_doc_key_words(d, "numerics_hash", hash);
    pl_doc_key_difference(d, "threads", p->team.threads);
    pl_doc_key_words(d, "isa", pl_isa_name(p->team.isa));
    if (p->data[0]) pl_doc_key_words(d, "data", p->data);
    add_model(g, d);
    add_step(p, d);
}

/* ---- figures worth a look from afar ---- */

static void add_time_card(const pl_plan *p, pl_id train, pl_doc *d)
{
    char number[48], low[32], high[32];
    const pl_duration t = pl_plan_program_time(p, train);
    const bool estimated = pl_report_estimated_seconds(p, train) > 0;
    const char *note = t.busy >= PL_REPORT_BUSY ? "; this machine was busy" : estimated ? "; ~ in part estimated" : "";
    pl_report_seconds(t.seconds, estimated, "0 s", number);
    if (t.high > t.low)
        pl_doc_card(d, number, "a step, predicted: %s to %s%s", pl_format_seconds(t.low, low, sizeof low),
                    pl_format_seconds(t.high, high, sizeof high), note);
    else
        pl_doc_card(d, number, "a step, predicted%s", note);
}

static double percent_above(const pl_plan_arena *a)
{
    return a->lower_bound_bytes ? 100 * ((double)a->bytes / (double)a->lower_bound_bytes - 1) : 0;
}

static void add_memory_cards(const pl_report_page *g, pl_doc *d)
{
    const pl_plan *p = g->plan;
    char number[48], text[32];
    pl_doc_card(d, pl_format_bytes(pl_plan_resident_bytes(p), number, sizeof number), "resident, planned");
    if (g->run && g->run->measured)
        pl_doc_card(d, pl_format_bytes(g->run->measured->peak_bytes, number, sizeof number), "peak, measured");
    pl_format_bytes(pl_plan_charged_bytes(p), number, sizeof number);
    if (g->options->budget_bytes == PL_REPORT_NO_BUDGET)
        pl_doc_card(d, number, "charged, planned");
    else
        pl_doc_card(d, number, "charged, planned, of %s", pl_format_bytes(g->options->budget_bytes, text, sizeof text));
    pl_doc_card(d, pl_format_bytes(p->arena->bytes, number, sizeof number), "arena, %.2f %% above its lower bound",
                percent_above(p->arena));
}

static void add_cards(const pl_report_page *g, pl_doc *d)
{
    const pl_report_run *run = g->run;
    const pl_id train = pl_graph_find_trained(g->plan->graph);
    const double seconds = train == PL_NONE ? 0 : pl_plan_program_seconds(g->plan, train);
    char number[48], text[32];
    add_memory_cards(g, d);
    if (g->plan->chunk)
        pl_doc_card(d, pl_format_count(g->plan->chunk, number, sizeof number),
                    "%s are read at a time, to fit the budget", pl_plan_words_of(g->plan)->items);
    if (seconds > 0) add_time_card(g->plan, train, d);
    if (seconds < 0) pl_doc_card(d, "unknown", "a step, predicted");
    if (run && run->steps && run->seconds > 0)
        pl_doc_card(d, pl_format_seconds(run->seconds / (double)run->steps, number, sizeof number),
                    "a step, measured over %s", pl_format_count(run->steps, text, sizeof text));
}

/* ---- pictures ---- */

static void draw_losses(const void *of, pl_str *out)
{
    const pl_report_page *g = of;
    const pl_html_curve curves[] = {
        {g->run->training, g->run->training_count, "train", "weight", "training", false},
        {g->run->validation, g->run->validation_count, "valid", "gradient", "validation", true},
    };
    pl_html_curves(&(pl_html_chart){.title = "Loss",
                                    .unit = pl_plan_words_of(g->plan)->loss,
                                    .axis = "step",
                                    .least_tick = 1,
                                    .curve = curves,
                                    .count = sizeof curves / sizeof *curves},
                   out);
}

static void draw_arena(const void *of, pl_str *out)
{
    const pl_report_page *g = of;
    pl_html_arena(g->plan, g->options->budget_bytes, out);
}

static void draw_map(const void *of, unsigned columns, bool color, pl_str *out)
{
    const pl_report_page *g = of;
    pl_error err;
    if (columns <= MAP_MARGIN || !g->options->width) return;
    if (pl_report_map(g->plan, columns - MAP_MARGIN, g->options->height, color, out, &err) != PL_OK) out->failed = 1;
}

static void draw_timeline(const void *of, pl_str *out)
{
    const pl_report_page *g = of;
    pl_html_timeline(g->plan, out);
}

static void say_placement(const pl_plan *p, pl_doc *d)
{
    char arena[32], bound[32], gap[32], took[32];
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "%s bytes; lower bound %s, gap %s (placed by: %s",
                  pl_format_count(p->arena->bytes, arena, sizeof arena),
                  pl_format_count(p->arena->lower_bound_bytes, bound, sizeof bound),
                  pl_format_count(p->arena->bytes - p->arena->lower_bound_bytes, gap, sizeof gap), p->arena->heuristic);
    if (p->arena->place_seconds > 0)
        pl_str_printf(out, ", in %s", pl_format_seconds(p->arena->place_seconds, took, sizeof took));
    pl_str_append(out, ")");
    pl_doc_paragraph_end(d);
}

static void add_arena_picture(const pl_report_page *g, pl_doc *d)
{
    pl_doc_section_long(d, "The arena over time");
    say_placement(g->plan, d);
    pl_doc_draw(d, &(pl_doc_figure){.text = draw_map, .page = draw_arena, .of = g, .explored = true});
    pl_doc_section_end(d);
}

/* ---- the ledger ---- */

static const char *storage_name(int t)
{
    return t < PL_DTYPE_COUNT ? pl_dtype_name((pl_dtype)t) : pl_encoding_name((pl_encoding)(t - PL_DTYPE_COUNT));
}

/* " (f32, signed8)" where numbers of the model are kept in less than f32, else "". */
static void describe_storage(uint32_t storage, pl_role role, char *text, size_t room)
{
    const uint32_t narrow = 1u << PL_DTYPE_BF16 | 1u << PL_DTYPE_F16 | 1u << PL_DTYPE_U8;
    size_t used = 0;
    text[0] = 0;
    if (role > PL_ROLE_TEMPORARY || !(storage & narrow || storage >> PL_DTYPE_COUNT)) return;
    for (int t = 0; t < PL_DTYPE_COUNT + PL_ENCODING_END && used < room; t++)
        if (storage >> t & 1)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : " (", storage_name(t));
    if (used < room) snprintf(text + used, room - used, ")");
}

static const pl_doc_column ledger_columns[] = {
    {NULL, ""}, {NULL, "bytes", PL_DOC_BYTES}, {NULL, "", PL_DOC_BAR}, {NULL, "", .is_remark = true}};

static void add_bar(const pl_report_page *g, pl_doc *d, const char *class_name, uint64_t bytes)
{
    const uint64_t whole = pl_plan_charged_bytes(g->plan);
    if (class_name) pl_doc_bar(d, class_name, whole ? (double)bytes / (double)whole : 0);
    pl_doc_bar_end(d);
}

/* class_name NULL: no bar. */
static void add_cells(const pl_report_page *g, pl_doc *d, const char *name, uint64_t bytes, const char *class_name,
                      const char *remark)
{
    pl_doc_words(d, "%s", name);
    pl_doc_count(d, bytes);
    add_bar(g, d, class_name, bytes);
    pl_doc_words(d, "%s", remark);
    pl_doc_row_end(d);
}

static void add_plain(const pl_report_page *g, pl_doc *d, const char *key, unsigned flags, const char *name,
                      uint64_t bytes, const char *remark)
{
    pl_doc_row_of(d, key, flags);
    add_cells(g, d, name, bytes, flags & PL_DOC_INDENT ? NULL : "", remark);
}

static void add_total(const pl_report_page *g, pl_doc *d, const char *key, const char *name, uint64_t bytes,
                      const char *remark)
{
    pl_doc_row_of(d, key, key ? PL_DOC_TOTAL : PL_DOC_TOTAL | PL_DOC_SHOWN);
    add_cells(g, d, name, bytes, NULL, remark);
}

/* What is less than a thousandth of the arena is one row to people. */
typedef struct little {
    uint64_t bytes;
    char words[160];
} little;

static bool is_little(const pl_report_page *g, uint64_t bytes) { return bytes < g->account.arena_bytes / 1000; }

static void add_to_little(little *l, const char *name, uint64_t bytes)
{
    char count[32];
    const size_t used = strlen(l->words);
    l->bytes += bytes;
    if (bytes)
        snprintf(l->words + used, sizeof l->words - used, "%s%s %s", used ? ", " : "", name,
                 pl_format_count(bytes, count, sizeof count));
}

static void add_overhead(const pl_report_page *g, pl_doc *d, little *l, const char *key, const char *name,
                         uint64_t bytes, const char *remark)
{
    if (is_little(g, bytes)) add_to_little(l, name, bytes);
    add_plain(g, d, key, PL_DOC_INDENT | (is_little(g, bytes) ? PL_DOC_HIDDEN : 0), name, bytes, remark);
}

static void add_role(const pl_report_page *g, pl_doc *d, little *l, pl_role role)
{
    const pl_report_account *a = &g->account;
    const uint64_t bytes = a->role_bytes[role], always = a->always_bytes[role];
    const uint32_t count = a->role_count[role];
    char storage[96], remark[192];
    describe_storage(a->role_storage[role], role, storage, sizeof storage);
    if (always && always < bytes)
        snprintf(remark, sizeof remark, "at the peak, %" PRIu32 " blocks%s (%" PRIu64 " bytes always held)", count,
                 storage, always);
    else
        snprintf(remark, sizeof remark, "%s, %" PRIu32 " block%s%s", always ? "always held" : "at the peak", count,
                 pl_plural(count), storage);
    if (is_little(g, bytes)) add_to_little(l, pl_report_role_title(role), bytes);
    pl_doc_row(d, bytes && !is_little(g, bytes) ? PL_DOC_INDENT : PL_DOC_HIDDEN);
    pl_doc_key_words(d, "role", pl_role_name(role));
    pl_doc_key_count(d, "bytes", bytes);
    pl_doc_key_count(d, "always_bytes", always);
    pl_doc_key_count(d, "count", count);
    add_cells(g, d, pl_report_role_title(role), bytes, pl_role_name(role), remark);
}

static void add_arena_keys(const pl_plan *p, const pl_report_account *a, pl_doc *d)
{
    pl_doc_key_count(d, "bytes", a->arena_bytes);
    pl_doc_key_count(d, "lower_bound_bytes", p->arena->lower_bound_bytes);
    pl_doc_key_count(d, "resident_bytes", a->arena_bytes + a->rounding_bytes);
    pl_doc_key_words(d, "heuristic", p->arena->heuristic);
    pl_doc_key_real_if(d, p->arena->place_seconds > 0, "place_seconds", p->arena->place_seconds);
    pl_doc_key_count(d, "block_alignment", PL_PLAN_ALIGNMENT);
    pl_doc_key_bool(d, "huge_pages", p->huge_pages);
    pl_doc_key_count_if(d, p->graph->node_count, "peak_position", p->arena->peak_position);
}

static void add_arena(const pl_report_page *g, pl_doc *d)
{
    const pl_report_account *a = &g->account;
    char gap[64];
    little rest = {0};
    pl_doc_object(d, "arena");
    add_arena_keys(g->plan, a, d);
    pl_doc_array(d, "roles");
    for (int r = 0; r < PL_ROLE_COUNT; r++) add_role(g, d, &rest, (pl_role)r);
    pl_doc_array_end(d);
    pl_doc_key_count(d, "alive_bytes", a->alive_bytes);
    add_overhead(g, d, &rest, "alignment_bytes", "alignment", a->alignment_bytes, "every block to 64 bytes");
    pl_print(gap, sizeof gap, "%.2f %% above the lower bound", percent_above(g->plan->arena));
    add_overhead(g, d, &rest, "gap_bytes", "placement gap", a->gap_bytes, gap);
    add_overhead(g, d, &rest, "rounding_bytes", "rounding", a->rounding_bytes,
                 g->plan->huge_pages ? "to huge pages of 2 MiB" : "to pages of 4 KiB");
    if (rest.bytes) add_plain(g, d, NULL, PL_DOC_INDENT | PL_DOC_SHOWN, "less than 0.1 % each", rest.bytes, rest.words);
    pl_doc_object_end(d);
    add_total(g, d, NULL, "arena", a->arena_bytes + a->rounding_bytes, "");
}

static void add_process_row(const pl_report_page *g, pl_doc *d, const pl_memory_row *row, bool is_arena)
{
    char remark[96] = "", reserved[32];
    const bool stacks = row->kind == PL_MEMORY_THREAD_STACK;
    if (stacks)
        snprintf(remark, sizeof remark, "%" PRIu32 " thread%s; %s bytes reserved", row->count, pl_plural(row->count),
                 pl_format_count(row->reserved_bytes, reserved, sizeof reserved));
    else if (row->kind == PL_MEMORY_LIBRARY || row->kind == PL_MEMORY_PROGRAM)
        snprintf(remark, sizeof remark, "%s", pl_memory_kind_name(row->kind));
    /* The arena's rows are above, those of files below. */
    pl_doc_row(d, is_arena || row->kind == PL_MEMORY_FILES ? PL_DOC_HIDDEN : 0);
    pl_doc_key_words(d, "kind", pl_memory_kind_name(row->kind));
    pl_doc_key_words(d, "name", row->name);
    pl_doc_key_count(d, "count", row->count);
    pl_doc_key_count(d, "reserved_bytes", row->reserved_bytes);
    pl_doc_key_count(d, "resident_bytes", row->resident_bytes);
    add_cells(g, d, stacks ? "thread stacks, touched" : row->name, row->resident_bytes, "", remark);
}

static void add_budget(const pl_report_page *g, pl_doc *d)
{
    const uint64_t budget = g->options->budget_bytes, charged = pl_plan_charged_bytes(g->plan);
    if (budget == PL_REPORT_NO_BUDGET) {
        pl_doc_key_null(d, "budget_bytes");
        return;
    }
    add_plain(g, d, "budget_bytes", 0, "budget", budget, "");
    if (charged > budget)
        add_plain(g, d, NULL, PL_DOC_SHOWN | PL_DOC_BAD, "over the budget by", charged - budget, "");
    else
        add_plain(g, d, NULL, PL_DOC_SHOWN, "left of the budget", budget - charged, "");
}

static void add_process(const pl_report_page *g, pl_doc *d)
{
    const pl_process_planned *ledger = &g->plan->ledger;
    pl_doc_object(d, "process");
    pl_doc_array(d, "rows");
    for (size_t i = 0; i < ledger->row_count; i++) add_process_row(g, d, &ledger->row[i], i == g->account.arena_row);
    pl_doc_array_end(d);
    add_total(g, d, "resident_bytes", "resident", ledger->resident_bytes, "what the process holds");
    add_plain(g, d, "page_table_bytes", 0, "page tables", ledger->page_table_bytes, "at most");
    add_plain(g, d, "kernel_bytes", 0, "kernel memory", ledger->kernel_bytes,
              "stacks and structures of threads and mappings, at most");
    add_plain(g, d, "writer_cache_bytes", 0, "writers' page cache", g->plan->writer_cache_bytes,
              "of files being written");
    add_total(g, d, "charged_bytes", "charged", pl_plan_charged_bytes(g->plan), "what a container is billed for");
    const pl_memory_row *files = pl_memory_find_row(ledger->row, ledger->row_count, PL_MEMORY_FILES, NULL);
    if (files)
        add_plain(g, d, "mapped_files_bytes", 0, "mapped files", files->reserved_bytes,
                  "at most, and in no sum: the system reads and drops their pages");
    if (g->plan->chunk) pl_doc_key_count(d, "lowered_chunk", g->plan->chunk);
    add_budget(g, d);
    pl_doc_object_end(d);
}

static void add_ledger(const pl_report_page *g, pl_doc *d)
{
    pl_doc_section_long(d, "Memory of the process");
    pl_doc_table(d, NULL, ledger_columns, sizeof ledger_columns / sizeof *ledger_columns);
    add_arena(g, d);
    add_process(g, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

static void add_disk(const pl_report_page *g, pl_doc *d)
{
    static const pl_doc_column columns[] = {{"name", ""}, {"bytes", "bytes", PL_DOC_BYTES}};
    const pl_plan *p = g->plan;
    pl_doc_object(d, "disk");
    pl_doc_section_long(d, p->disk_count ? "Files on disk" : "");
    pl_doc_table(d, NULL, columns, 2);
    pl_doc_array(d, "rows");
    for (size_t i = 0; i < p->disk_count; i++) {
        pl_doc_row(d, 0);
        pl_doc_words(d, "%s", p->disk[i].name);
        pl_doc_count(d, p->disk[i].bytes);
        pl_doc_row_end(d);
    }
    pl_doc_array_end(d);
    pl_doc_row_of(d, "bytes", p->disk_count ? PL_DOC_TOTAL : PL_DOC_HIDDEN);
    pl_doc_words(d, "on disk");
    pl_doc_count(d, g->account.disk_bytes);
    pl_doc_row_end(d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    pl_doc_object_end(d);
}

/* ---- all of it ---- */

static pl_status add_times(const pl_plan *p, pl_doc *d, pl_error *err)
{
    const pl_id train = pl_graph_find_trained(p->graph);
    pl_components components;
    if (train == PL_NONE) return PL_OK;
    PL_TRY(pl_components_create(p->graph, train, &components, err));
    pl_report_times *t = pl_alloc(1, sizeof *t); /* large */
    const pl_status status = t ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the table of times");
    if (t) {
        pl_report_times_predict(p, train, &components, t);
        pl_print(t->run, sizeof t->run, "step");
        pl_doc_shown(d);
        if (t->predicted_seconds > 0) pl_report_times_add(t, d);
        pl_doc_shown_end(d);
    }
    pl_free(t);
    pl_components_deinit(&components);
    return status;
}

static void add_measured(const pl_report_page *g, pl_doc *d)
{
    if (!g->run || !g->run->measured) return;
    pl_doc_shown(d);
    pl_doc_section(d, "Planned and measured");
    pl_report_ledger(&g->plan->ledger, g->run->measured, d);
    pl_doc_section_end(d);
    pl_doc_shown_end(d);
}

pl_status pl_report_add_plan(pl_report_page *g, pl_doc *d, pl_error *err)
{
    const pl_plan *p = g->plan;
    g->account = pl_report_sum(p);
    add_head(g, d);
    add_cards(g, d);
    if (g->run) pl_doc_draw(d, &(pl_doc_figure){.page = draw_losses, .of = g});
    add_arena_picture(g, d);
    add_ledger(g, d);
    add_disk(g, d);
    if (p->work) pl_report_add_work(p->work, pl_plan_words_of(p), d);
    if (p->advice) pl_report_add_advice(p, d);
    if (p->contexts) pl_report_add_contexts(p, d);
    add_measured(g, d);
    PL_TRY(pl_report_add_tables(g, d, err));
    PL_TRY(add_times(p, d, err));
    pl_doc_draw(d, &(pl_doc_figure){.page = draw_timeline, .of = g, .explored = true});
    return d->body.failed ? pl_fail(err, PL_E_NOMEM, "no memory for the report of the plan") : PL_OK;
}

/* ---- its forms ---- */

typedef void render(const pl_report_page *, const pl_doc *, pl_str *out);

static void print_text(const pl_report_page *g, const pl_doc *d, pl_str *out)
{
    pl_doc_print(
        d, &(pl_text_form){.columns = g->options->width, .color = g->options->color, .is_short = g->options->is_short},
        out);
}

static void print_page(const pl_report_page *g, const pl_doc *d, pl_str *out)
{
    (void)g;
    pl_doc_page(d, out);
}

static pl_status report(const pl_plan *p, const pl_report_run *run, const pl_report_options *options, render *form,
                        pl_str *out, pl_error *err)
{
    const pl_report_options defaults = pl_report_options_default();
    pl_report_page g = {.plan = p, .run = run, .options = options ? options : &defaults};
    pl_doc d = pl_doc_begin();
    pl_status status = pl_report_add_plan(&g, &d, err);
    if (status == PL_OK) form(&g, &d, out);
    pl_doc_deinit(&d);
    if (status == PL_OK && out->failed) status = pl_fail(err, PL_E_NOMEM, "no memory for the report of the plan");
    return status;
}

pl_status pl_report_plan(const pl_plan *p, const pl_report_options *options, pl_str *out, pl_error *err)
{
    return report(p, NULL, options, print_text, out, err);
}

pl_status pl_report_html(const pl_plan *p, const pl_report_run *run, const pl_report_options *options, pl_str *out,
                         pl_error *err)
{
    return report(p, run, options, print_page, out, err);
}
