/* The tables of the page: the same rows as in text, with bars. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html.h"
#include "report/interval.h"

static void megabytes(pl_str *out, uint64_t bytes)
{
    pl_str_printf(out, "<td class='n'>%.2f</td>", (double)bytes / 1e6);
}

static void count(pl_str *out, uint64_t bytes)
{
    char text[32];
    pl_str_printf(out, "<td class='n'>%s</td>", pl_format_count(bytes, text, sizeof text));
}

static void labelled_megabytes(pl_str *out, const char *label, uint64_t bytes)
{
    char text[32];
    pl_print(text, sizeof text, "%.2f", (double)bytes / 1e6);
    pl_html_cell(label, text, out);
}

/* ---- the ledger ---- */

typedef struct row {
    const char *name, *remark, *class; /* class: of the bar; NULL: none */
    uint64_t bytes;
    bool indent, total, bad;
} row;

static void put(pl_str *out, row r, uint64_t whole)
{
    pl_str_printf(out, "<tr%s><td%s>",
                  r.bad     ? " class='bad'"
                  : r.total ? " class='total'"
                            : "",
                  r.indent ? " class='in'" : "");
    pl_html_text(out, r.name);
    pl_str_append(out, "</td>");
    count(out, r.bytes);
    megabytes(out, r.bytes);
    pl_str_append(out, "<td class='bar'>");
    if (r.class && r.bytes && whole)
        pl_str_printf(out, "<i class='%s' style='width:%.2f%%'></i>", r.class, 100.0 * (double)r.bytes / (double)whole);
    pl_str_append(out, "</td><td class='w'>");
    pl_html_text(out, r.remark ? r.remark : "");
    pl_str_append(out, "</td></tr>\n");
}

static void arena_rows(const pl_plan *p, const pl_report_account *a, uint64_t whole, pl_str *out)
{
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        uint64_t bytes = a->role_bytes[r];
        bool always = bytes && a->always_bytes[r] == bytes;
        if (bytes == 0) continue;
        put(out,
            (row){.name = pl_report_role_title((pl_role)r),
                  .remark = always ? "always held" : "at the peak",
                  .class = pl_html_role_class((pl_role)r),
                  .bytes = bytes,
                  .indent = true},
            whole);
    }
    put(out,
        (row){.name = "alignment", .bytes = a->alignment_bytes, .indent = true, .remark = "every block to 64 bytes"},
        whole);
    put(out, (row){.name = "placement gap", .bytes = a->gap_bytes, .indent = true}, whole);
    put(out,
        (row){.name = "rounding",
              .bytes = a->rounding_bytes,
              .indent = true,
              .remark = p->huge_pages ? "to huge pages of 2 MiB" : "to pages of 4 KiB"},
        whole);
    put(out, (row){.name = "arena", .bytes = a->arena_bytes + a->rounding_bytes, .total = true}, whole);
}

static void process_row(const pl_memory_row *m, uint64_t whole, pl_str *out)
{
    char remark[96], reserved[32];
    snprintf(remark, sizeof remark, "%s",
             strcmp(m->name, pl_memory_kind_name(m->kind)) == 0 ? "" : pl_memory_kind_name(m->kind));
    if (m->kind == PL_MEMORY_THREAD_STACK)
        snprintf(remark, sizeof remark, "touched, %" PRIu32 " thread%s; %s bytes reserved", m->count,
                 pl_plural(m->count), pl_format_count(m->reserved_bytes, reserved, sizeof reserved));
    put(out, (row){.name = m->name, .remark = remark, .class = "", .bytes = m->resident_bytes}, whole);
}

static void disk_rows(const pl_plan *p, uint64_t disk_bytes, pl_str *out)
{
    if (p->disk_count == 0) return;
    pl_str_append(out, "<tr><th>files on disk</th><th></th><th></th><th></th><th></th></tr>\n");
    for (size_t i = 0; i < p->disk_count; i++)
        put(out, (row){.name = p->disk[i].name, .bytes = p->disk[i].bytes, .class = ""}, disk_bytes);
    put(out, (row){.name = "on disk", .bytes = disk_bytes, .total = true}, disk_bytes);
}

void pl_html_ledger(const pl_plan *p, const pl_report_account *a, uint64_t budget_bytes, pl_str *out)
{
    uint64_t charged = pl_plan_charged_bytes(p), whole = charged;
    pl_str_append(out, "<section><h2>Memory of the process, planned</h2><p>Every byte has a row; the rows add "
                       "up.</p>\n<table><tr><th></th>"
                       "<th class='n'>bytes</th><th class='n'>MB</th><th></th><th></th></tr>\n");
    arena_rows(p, a, whole, out);
    for (size_t i = 0; i < p->ledger.row_count; i++)
        if (i != a->arena_row) process_row(&p->ledger.row[i], whole, out);
    put(out,
        (row){.name = "resident", .bytes = p->ledger.resident_bytes, .total = true, .remark = "what the process holds"},
        whole);
    put(out, (row){.name = "page tables", .bytes = p->ledger.page_table_bytes, .remark = "at most", .class = ""},
        whole);
    put(out, (row){.name = "kernel memory", .bytes = p->ledger.kernel_bytes, .remark = "at most", .class = ""}, whole);
    put(out,
        (row){.name = "writers' page cache",
              .bytes = p->writer_cache_bytes,
              .remark = "of files being written",
              .class = ""},
        whole);
    put(out, (row){.name = "charged", .bytes = charged, .total = true, .remark = "what a container is billed for"},
        whole);
    if (budget_bytes != PL_REPORT_NO_BUDGET) {
        put(out, (row){.name = "budget", .bytes = budget_bytes}, whole);
        bool over = charged > budget_bytes;
        put(out,
            (row){.name = over ? "over the budget by" : "left of the budget",
                  .bytes = over ? charged - budget_bytes : budget_bytes - charged,
                  .bad = over},
            whole);
    }
    disk_rows(p, a->disk_bytes, out);
    pl_str_append(out, "</table></section>\n");
}

/* ---- planned and measured ---- */

static void pair(pl_str *out, const char *name, const uint64_t *planned, const uint64_t *measured, const char *remark,
                 const char *class)
{
    pl_str_printf(out, "<tr%s%s%s><td>", class ? " class='" : "", class ? class : "", class ? "'" : "");
    pl_html_text(out, name);
    pl_str_append(out, "</td>");
    if (planned)
        pl_html_cell_count("planned", *planned, out);
    else
        pl_str_append(out, "<td></td>");
    if (measured)
        pl_html_cell_count("measured", *measured, out);
    else
        pl_str_append(out, "<td></td>");
    int64_t differs = (int64_t)((measured ? *measured : 0) - (planned ? *planned : 0));
    char text[32];
    pl_format_count(differs < 0 ? 0 - (uint64_t)differs : (uint64_t)differs, text, sizeof text);
    pl_str_printf(out, "<td class='n' data-l='difference'>%s%s</td>", differs < 0 ? "−" : differs ? "+" : "", text);
    pl_str_printf(out, differs ? "<td class='n' data-l='MB'>%+.2f</td>" : "<td class='n' data-l='MB'>%.2f</td>",
                  (double)differs / 1e6);
    pl_str_append(out, "<td class='w'>");
    pl_html_text(out, remark);
    pl_str_append(out, "</td></tr>\n");
}

static void joined(const pl_process_planned *planned, const pl_memory_measured *measured, pl_str *out)
{
    for (size_t i = 0; i < planned->row_count; i++) {
        const pl_memory_row *r = &planned->row[i],
                            *held = pl_memory_find_row(measured->row, measured->row_count, r->kind, r->name);
        pair(out, r->name, &r->resident_bytes, held ? &held->resident_bytes : NULL,
             held ? "" : "not found in the process", NULL);
    }
    for (size_t i = 0; i < measured->row_count; i++) {
        const pl_memory_row *r = &measured->row[i];
        if (pl_memory_find_row(planned->row, planned->row_count, r->kind, r->name)) continue;
        pair(out, r->name, NULL, &r->resident_bytes, "not planned", NULL);
    }
}

static void unexplained(const pl_memory_measured *m, pl_str *out)
{
    pair(out, "unexplained", NULL, &m->unexplained_bytes, "", m->unexplained_bytes ? "bad" : NULL);
    for (size_t i = 0; i < m->unexplained_count; i++) {
        const pl_memory_unexplained *u = &m->unexplained[i];
        char text[32];
        pl_str_printf(out,
                      "<tr><td class='in'>%" PRIxPTR "-%" PRIxPTR
                      "</td><td></td><td class='n'>%s</td><td></td><td></td><td class='w'>%s ",
                      u->begin, u->end, pl_format_count(u->resident_bytes, text, sizeof text), u->protection);
        pl_html_text(out, u->name[0] ? u->name : "anonymous");
        pl_str_append(out, "</td></tr>\n");
    }
}

void pl_html_measured(const pl_process_planned *planned, const pl_memory_measured *measured, pl_str *out)
{
    pl_report_verdict v = pl_report_judge(planned, measured);
    char differs[32], allowed[16];
    uint64_t size = v.difference_bytes < 0 ? 0 - (uint64_t)v.difference_bytes : (uint64_t)v.difference_bytes;
    pl_str_append(out, "<section><h2>Planned and measured</h2><p>");
    pl_str_printf(out, "<span class='%s'>%s</span>: %s bytes %s; %s allowed.", v.as_planned ? "good" : "bad",
                  v.as_planned ? "As planned" : "Not as planned", pl_format_count(size, differs, sizeof differs),
                  v.difference_bytes < 0 ? "under" : "over", pl_format_bytes(v.allowed_bytes, allowed, sizeof allowed));
    pl_str_append(out,
                  "</p>\n<table class='labels'><tr><th></th><th class='n'>planned, bytes</th><th class='n'>measured, "
                  "bytes</th><th class='n'>difference</th>"
                  "<th class='n'>MB</th><th></th></tr>\n");
    joined(planned, measured, out);
    unexplained(measured, out);
    pair(out, "resident", &v.planned_bytes, &v.measured_bytes, "", "total");
    pair(out, "peak", &v.planned_bytes, &measured->peak_bytes, v.peak_as_planned ? "VmHWM" : "VmHWM: above the plan",
         v.peak_as_planned ? NULL : "bad");
    pair(out, "page tables", &planned->page_table_bytes, &measured->page_table_bytes, "planned: at most", NULL);
    pl_str_append(out, "</table></section>\n");
}

/* ---- programs and the peak ---- */

void pl_html_programs(const pl_plan *p, const pl_report_programs *programs, pl_str *out)
{
    char seconds[48];
    pl_str_append(out, "<section><h2>By program</h2><p>One run of each; peaks of the arena; ~ is estimated.</p><table "
                       "class='labels'><tr><th></th><th "
                       "class='n'>nodes</th>"
                       "<th class='n'>peak, bytes</th><th class='n'>MB</th><th class='n'>GFLOP</th><th "
                       "class='n'>predicted</th><th>peak at</th></tr>\n");
    for (size_t i = 0; i < programs->count; i++) {
        const pl_report_program *r = &programs->item[i];
        const pl_node *n = r->last > r->first ? &p->graph->node[r->peak_position] : NULL;
        pl_str_append(out, "<tr><td>");
        pl_html_text(out, p->graph->region[r->region].name);
        pl_str_append(out, "</td>");
        pl_html_cell_count("nodes", r->last - r->first, out);
        pl_html_cell_count("peak", r->peak_bytes, out);
        labelled_megabytes(out, "MB", r->peak_bytes);
        pl_str_printf(
            out, "<td class='n' data-l='GFLOP'>%.3f</td><td class='n' data-l='predicted'>%s</td><td class='w'>%s ",
            r->flops / 1e9, pl_report_seconds(r->seconds, pl_report_estimated_seconds(p, r->region) > 0, "–", seconds),
            n ? pl_op_name(n->op) : "");
        pl_html_text(out, n ? n->scope : "");
        pl_str_append(out, "</td></tr>\n");
    }
    pl_str_append(out, "</table></section>\n");
}

static void alive_row(const pl_plan *p, const pl_report_alive *a, pl_str *out)
{
    const pl_graph *g = p->graph;
    char shape[160];
    pl_str_append(out, "<tr><td>");
    if (a->value == PL_NONE)
        pl_str_printf(out, "(of %s)</td><td>workspace</td><td class='w'>", pl_op_name(g->node[a->node].op));
    else {
        const pl_value *v = &g->value[a->value];
        pl_html_text(out, v->name);
        pl_str_printf(out, "</td><td>%s</td><td class='w'>%s %s", pl_role_name(v->role), pl_dtype_name(v->dtype),
                      pl_shape_text(&v->shape, shape, sizeof shape));
    }
    pl_str_append(out, "</td>");
    pl_html_cell_count("bytes", a->block->bytes, out);
    labelled_megabytes(out, "MB", a->block->bytes);
    pl_str_printf(out, "<td class='n' data-l='nodes'>%" PRIu32 " – %" PRIu32 "</td></tr>\n", a->block->first,
                  a->block->last - 1);
}

void pl_html_alive(const pl_plan *p, const pl_report_alive *alive, size_t alive_count, size_t shown, pl_str *out)
{
    if (p->graph->node_count == 0) return;
    const pl_node *n = &p->graph->node[p->arena->peak_position];
    uint64_t rest = 0;
    if (shown > alive_count) shown = alive_count;
    pl_str_printf(out, "<section><h2>Alive at the peak</h2><p>Node %" PRIu64 ": %s in ", p->arena->peak_position,
                  pl_op_name(n->op));
    pl_html_text(out, n->scope[0] ? n->scope : "no component");
    pl_str_printf(out, ", %s pass of ", pl_phase_name(n->phase));
    pl_html_text(out, p->graph->region[pl_region_program(p->graph, n->region)].name);
    pl_str_append(out,
                  ". Besides what is always held.</p><table class='labels'><tr><th></th><th>role</th><th>shape</th><th "
                  "class='n'>bytes</th><th class='n'>MB</th>"
                  "<th class='n'>alive, nodes</th></tr>\n");
    for (size_t i = 0; i < shown; i++) alive_row(p, &alive[i], out);
    for (size_t i = shown; i < alive_count; i++) rest += alive[i].block->bytes;
    if (shown < alive_count) {
        pl_str_printf(out, "<tr><td>and %zu smaller</td><td></td><td></td>", alive_count - shown);
        pl_html_cell_count("bytes", rest, out);
        labelled_megabytes(out, "MB", rest);
        pl_str_append(out, "<td></td></tr>\n");
    }
    pl_str_append(out, "</table></section>\n");
}
