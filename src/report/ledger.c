/* Planned and measured, row by row: joined by kind and name, never by subtraction. No heap, little stack: this runs in
 * the runner after "committed", for SIGUSR1 too. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/report.h"
#include "report/table.h"

enum { ALLOWED_BYTES = 1000000, ALLOWED_PART = 100 /* 1 % */ };

static int64_t difference(uint64_t measured, uint64_t planned) { return (int64_t)(measured - planned); }

/* ---- the verdict ---- */

static uint64_t magnitude(int64_t n) { return n < 0 ? 0 - (uint64_t)n : (uint64_t)n; }

static void consider(pl_report_verdict *v, pl_memory_kind kind, const char *name, int64_t differs)
{
    if (magnitude(differs) <= magnitude(v->worst_difference_bytes)) return;
    v->worst_kind = kind;
    v->worst_name = name;
    v->worst_difference_bytes = differs;
}

static void find_worst(pl_report_verdict *v, const pl_process_planned *planned, const pl_memory_measured *measured)
{
    for (size_t i = 0; i < planned->row_count; i++) {
        const pl_memory_row *row = &planned->row[i],
                            *held = pl_memory_find_row(measured->row, measured->row_count, row->kind, row->name);
        consider(v, row->kind, row->name, difference(held ? held->resident_bytes : 0, row->resident_bytes));
    }
    for (size_t i = 0; i < measured->row_count; i++) {
        const pl_memory_row *row = &measured->row[i];
        if (pl_memory_find_row(planned->row, planned->row_count, row->kind, row->name)) continue;
        consider(v, row->kind, row->name, (int64_t)row->resident_bytes);
    }
    consider(v, PL_MEMORY_OTHER, "unexplained", (int64_t)measured->unexplained_bytes);
}

pl_report_verdict pl_report_judge(const pl_process_planned *planned, const pl_memory_measured *measured)
{
    pl_report_verdict v = {.planned_bytes = planned->resident_bytes,
                           .measured_bytes = measured->explained_bytes + measured->unexplained_bytes,
                           .unexplained_bytes = measured->unexplained_bytes};
    v.allowed_bytes = v.planned_bytes / ALLOWED_PART > ALLOWED_BYTES ? v.planned_bytes / ALLOWED_PART : ALLOWED_BYTES;
    v.difference_bytes = difference(v.measured_bytes, v.planned_bytes);
    v.as_planned = magnitude(v.difference_bytes) <= v.allowed_bytes;
    v.peak_as_planned = measured->peak_bytes <= v.planned_bytes + v.allowed_bytes;
    find_worst(&v, planned, measured);
    return v;
}

/* ---- as text ---- */

static void titles(pl_table *t)
{
    static const char *const text[] = {"", "planned", "measured", "difference", ""};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) pl_table_cell(t, "%s", text[i]);
    pl_table_end_row(t);
}

static void figure(pl_table *t, const uint64_t *bytes)
{
    if (bytes)
        pl_table_count(t, *bytes);
    else
        pl_table_cell(t, "%s", "");
}

/* planned or measured NULL: there is no such figure. */
static void line(pl_table *t, const char *name, const uint64_t *planned, const uint64_t *measured, const char *remark)
{
    pl_table_cell(t, "%s", name);
    figure(t, planned);
    figure(t, measured);
    pl_table_difference(t, difference(measured ? *measured : 0, planned ? *planned : 0));
    pl_table_cell(t, "%s", remark);
    pl_table_end_row(t);
}

/* "arena ram": the name alone would say little. */
static const char *title_of(const pl_memory_row *row, char *text, size_t room)
{
    snprintf(text, room, "%s%s", row->kind == PL_MEMORY_ARENA ? "arena " : "", row->name);
    return text;
}

static void joined_rows(pl_table *t, const pl_process_planned *planned, const pl_memory_measured *measured)
{
    char name[PL_MEMORY_NAME_BYTES + 8];
    for (size_t i = 0; i < planned->row_count; i++) {
        const pl_memory_row *row = &planned->row[i],
                            *held = pl_memory_find_row(measured->row, measured->row_count, row->kind, row->name);
        line(t, title_of(row, name, sizeof name), &row->resident_bytes, held ? &held->resident_bytes : NULL,
             held ? "" : "not found in the process");
    }
    for (size_t i = 0; i < measured->row_count; i++) {
        const pl_memory_row *row = &measured->row[i];
        if (pl_memory_find_row(planned->row, planned->row_count, row->kind, row->name)) continue;
        line(t, title_of(row, name, sizeof name), NULL, &row->resident_bytes, "not planned");
    }
}

static void print_rows(const pl_process_planned *planned, const pl_memory_measured *measured,
                       const pl_report_verdict *v, pl_str *out)
{
    for (pl_table t = pl_table_begin(out, "lrrrl"); pl_table_pass(&t);) {
        titles(&t);
        joined_rows(&t, planned, measured);
        line(&t, "unexplained", NULL, &measured->unexplained_bytes, "");
        pl_table_rule(&t, 1, 4);
        line(&t, "resident", &v->planned_bytes, &v->measured_bytes, "");
        line(&t, "peak", &v->planned_bytes, &measured->peak_bytes,
             v->peak_as_planned ? "VmHWM" : "VmHWM: above the plan");
        line(&t, "page tables", &planned->page_table_bytes, &measured->page_table_bytes, "planned: at most");
    }
}

static void print_unexplained(const pl_memory_measured *m, pl_str *out)
{
    if (m->unexplained_count == 0) return;
    pl_str_append(out, "Unexplained:\n");
    for (pl_table t = pl_table_begin(out, "lrrll"); pl_table_pass(&t);) {
        for (size_t i = 0; i < m->unexplained_count; i++) {
            const pl_memory_unexplained *u = &m->unexplained[i];
            pl_table_cell(&t, "  %" PRIxPTR "-%" PRIxPTR, u->begin, u->end);
            pl_table_bytes(&t, u->resident_bytes);
            pl_table_cell(&t, "%s", u->protection);
            pl_table_cell(&t, "%s", u->name[0] ? u->name : "anonymous");
            pl_table_end_row(&t);
        }
    }
}

static void print_worst(const pl_report_verdict *v, pl_str *out)
{
    char name[PL_MEMORY_NAME_BYTES], count[32];
    pl_str_append(out, " The row that differs most is ");
    pl_text_clean(name, sizeof name, v->worst_name);
    if (v->worst_kind == PL_MEMORY_OTHER)
        pl_str_append(out, "what is unexplained");
    else
        pl_str_printf(out, "%s \"%s\"", pl_memory_kind_name(v->worst_kind), name);
    pl_str_printf(out, ", by %s%s bytes.\n", v->worst_difference_bytes < 0 ? "-" : "+",
                  pl_format_count(magnitude(v->worst_difference_bytes), count, sizeof count));
}

static void print_verdict(const pl_report_verdict *v, pl_str *out)
{
    char differs[32], allowed[16];
    pl_format_count(magnitude(v->difference_bytes), differs, sizeof differs);
    pl_format_bytes(v->allowed_bytes, allowed, sizeof allowed);
    const char *sign = v->difference_bytes < 0 ? "under" : "over";
    if (v->as_planned && v->difference_bytes == 0)
        pl_str_append(out, "As planned, to the byte.\n");
    else if (v->as_planned)
        pl_str_printf(out, "As planned: %s bytes %s (%s allowed).\n", differs, sign, allowed);
    else
        pl_str_printf(out, "NOT as planned: %s bytes %s (%s allowed).", differs, sign, allowed);
    if (!v->as_planned) print_worst(v, out);
    if (!v->peak_as_planned) pl_str_append(out, "The peak (VmHWM) was above the plan by more than is allowed.\n");
}

void pl_report_ledger(const pl_process_planned *planned, const pl_memory_measured *measured, pl_str *out)
{
    pl_report_verdict v = pl_report_judge(planned, measured);
    print_rows(planned, measured, &v, out);
    print_unexplained(measured, out);
    print_verdict(&v, out);
}

/* ---- as JSON ---- */

static void json_row(pl_json *j, const pl_memory_row *planned, const pl_memory_row *measured)
{
    const pl_memory_row *row = planned ? planned : measured;
    pl_json_object(j);
    pl_json_kv_string(j, "kind", pl_memory_kind_name(row->kind));
    pl_json_kv_string(j, "name", row->name);
    pl_json_kv_uint(j, "planned_count", planned ? planned->count : 0);
    pl_json_kv_uint(j, "planned_reserved_bytes", planned ? planned->reserved_bytes : 0);
    pl_json_kv_uint(j, "planned_bytes", planned ? planned->resident_bytes : 0);
    pl_json_kv_uint(j, "measured_count", measured ? measured->count : 0);
    pl_json_kv_uint(j, "measured_reserved_bytes", measured ? measured->reserved_bytes : 0);
    pl_json_kv_uint(j, "measured_bytes", measured ? measured->resident_bytes : 0);
    pl_json_kv_uint(j, "measured_proportional_bytes", measured ? measured->proportional_bytes : 0);
    pl_json_kv_uint(j, "measured_anonymous_bytes", measured ? measured->anonymous_bytes : 0);
    pl_json_kv_uint(j, "measured_huge_bytes", measured ? measured->huge_bytes : 0);
    pl_json_kv_int(j, "difference_bytes",
                   difference(measured ? measured->resident_bytes : 0, planned ? planned->resident_bytes : 0));
    pl_json_kv_bool(j, "planned", planned != NULL);
    pl_json_kv_bool(j, "measured", measured != NULL);
    pl_json_object_end(j);
}

static void json_rows(pl_json *j, const pl_process_planned *planned, const pl_memory_measured *measured)
{
    pl_json_key(j, "rows");
    pl_json_array(j);
    for (size_t i = 0; i < planned->row_count; i++)
        json_row(j, &planned->row[i],
                 pl_memory_find_row(measured->row, measured->row_count, planned->row[i].kind, planned->row[i].name));
    for (size_t i = 0; i < measured->row_count; i++) {
        const pl_memory_row *row = &measured->row[i];
        if (!pl_memory_find_row(planned->row, planned->row_count, row->kind, row->name)) json_row(j, NULL, row);
    }
    pl_json_array_end(j);
}

static void json_unexplained(pl_json *j, const pl_memory_measured *m)
{
    pl_json_key(j, "unexplained");
    pl_json_array(j);
    for (size_t i = 0; i < m->unexplained_count; i++) {
        const pl_memory_unexplained *u = &m->unexplained[i];
        pl_json_object(j);
        pl_json_kv_uint(j, "begin", u->begin);
        pl_json_kv_uint(j, "end", u->end);
        pl_json_kv_uint(j, "bytes", u->resident_bytes);
        pl_json_kv_string(j, "protection", u->protection);
        pl_json_kv_string(j, "name", u->name);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void json_measured(pl_json *j, const pl_memory_measured *m)
{
    const struct {
        const char *key;
        uint64_t value;
    } field[] = {{"unexplained_bytes", m->unexplained_bytes},
                 {"rollup_bytes", m->rollup_bytes},
                 {"rollup_huge_bytes", m->rollup_huge_bytes},
                 {"peak_bytes", m->peak_bytes},
                 {"measured_page_table_bytes", m->page_table_bytes},
                 {"virtual_bytes", m->virtual_bytes},
                 {"swap_bytes", m->swap_bytes},
                 {"threads", m->threads},
                 {"minor_faults", m->minor_faults},
                 {"major_faults", m->major_faults}};
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) pl_json_kv_uint(j, field[i].key, field[i].value);
}

static void json_verdict(pl_json *j, const pl_report_verdict *v)
{
    pl_json_kv_uint(j, "planned_bytes", v->planned_bytes);
    pl_json_kv_uint(j, "measured_bytes", v->measured_bytes);
    pl_json_kv_int(j, "difference_bytes", v->difference_bytes);
    pl_json_kv_uint(j, "allowed_bytes", v->allowed_bytes);
    pl_json_kv_bool(j, "as_planned", v->as_planned);
    pl_json_kv_bool(j, "peak_as_planned", v->peak_as_planned);
    pl_json_key(j, "worst");
    if (!v->worst_name) {
        pl_json_null(j);
        return;
    }
    pl_json_object(j);
    pl_json_kv_string(j, "kind", pl_memory_kind_name(v->worst_kind));
    pl_json_kv_string(j, "name", v->worst_name);
    pl_json_kv_int(j, "difference_bytes", v->worst_difference_bytes);
    pl_json_object_end(j);
}

void pl_report_ledger_object(const pl_process_planned *planned, const pl_memory_measured *measured, pl_json *j)
{
    pl_report_verdict v = pl_report_judge(planned, measured);
    pl_json_object(j);
    pl_json_kv_string(j, "schema", "plimsoll.ledger/1");
    json_verdict(j, &v);
    pl_json_kv_uint(j, "planned_page_table_bytes", planned->page_table_bytes);
    json_measured(j, measured);
    json_rows(j, planned, measured);
    json_unexplained(j, measured);
    pl_json_object_end(j);
}

void pl_report_ledger_json(const pl_process_planned *planned, const pl_memory_measured *measured, pl_str *out)
{
    pl_json j = pl_json_begin(out, false);
    pl_report_ledger_object(planned, measured, &j);
    pl_str_append(out, "\n");
}
