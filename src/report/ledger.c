/* Planned and measured, row by row: joined by kind and name, never by subtraction. No heap, little stack: this runs in
 * the runner after "committed", for SIGUSR1 too. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/report.h"
#include "show/cell.h"
#include "show/render.h"

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

/* Their pages come and go, and are in the process's peak: at most so many. */
static uint64_t files_of(const pl_process_planned *planned)
{
    const pl_memory_row *files = pl_memory_find_row(planned->row, planned->row_count, PL_MEMORY_FILES, NULL);
    return files ? files->reserved_bytes : 0;
}

static void find_worst(pl_report_verdict *v, const pl_process_planned *planned, const pl_memory_measured *measured)
{
    for (size_t i = 0; i < planned->row_count; i++) {
        const pl_memory_row *row = &planned->row[i],
                            *held = pl_memory_find_row(measured->row, measured->row_count, row->kind, row->name);
        if (row->kind != PL_MEMORY_FILES)
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
    v.peak_as_planned = measured->peak_bytes <= v.planned_bytes + files_of(planned) + v.allowed_bytes;
    find_worst(&v, planned, measured);
    return v;
}

/* ---- the rows ---- */

static const pl_doc_column columns[] = {{NULL, ""},
                                        {NULL, "planned", PL_DOC_EXACT},
                                        {NULL, "measured", PL_DOC_EXACT},
                                        {"difference_bytes", "difference", PL_DOC_DIFFERENCE},
                                        {NULL, "", .is_remark = true}};

static void add_bytes(pl_doc *d, const uint64_t *bytes) { bytes ? pl_doc_count(d, *bytes) : pl_doc_blank(d); }

/* planned or measured NULL: there is no such figure. */
static void add_cells(pl_doc *d, const char *name, const uint64_t *planned, const uint64_t *measured,
                      const char *remark)
{
    pl_doc_words(d, "%s", name);
    add_bytes(d, planned);
    add_bytes(d, measured);
    pl_doc_difference(d, difference(measured ? *measured : 0, planned ? *planned : 0));
    pl_doc_words(d, "%s", remark);
}

static void add_sum(pl_doc *d, const char *name, const uint64_t *planned, const uint64_t *measured, const char *remark,
                    unsigned flags)
{
    pl_doc_row(d, PL_DOC_SHOWN | flags);
    add_cells(d, name, planned, measured, remark);
    pl_doc_row_end(d);
}

static void add_keys(pl_doc *d, const pl_memory_row *planned, const pl_memory_row *measured)
{
    static const pl_memory_row none = {0};
    const pl_memory_row *p = planned ? planned : &none, *m = measured ? measured : &none;
    pl_doc_key_words(d, "kind", pl_memory_kind_name(planned ? p->kind : m->kind));
    pl_doc_key_words(d, "name", planned ? p->name : m->name);
    pl_doc_key_count(d, "planned_count", p->count);
    pl_doc_key_count(d, "planned_reserved_bytes", p->reserved_bytes);
    pl_doc_key_count(d, "planned_bytes", p->resident_bytes);
    pl_doc_key_count(d, "measured_count", m->count);
    pl_doc_key_count(d, "measured_reserved_bytes", m->reserved_bytes);
    pl_doc_key_count(d, "measured_bytes", m->resident_bytes);
    pl_doc_key_count(d, "measured_proportional_bytes", m->proportional_bytes);
    pl_doc_key_count(d, "measured_anonymous_bytes", m->anonymous_bytes);
    pl_doc_key_count(d, "measured_huge_bytes", m->huge_bytes);
}

static void add_row(pl_doc *d, const pl_memory_row *planned, const pl_memory_row *measured)
{
    const pl_memory_row *row = planned ? planned : measured;
    if (row->kind == PL_MEMORY_FILES) return; /* in no sum */
    char name[PL_MEMORY_NAME_BYTES + 8];      /* "arena ram": the name alone would say little */
    snprintf(name, sizeof name, "%s%s", row->kind == PL_MEMORY_ARENA ? "arena " : "", row->name);
    pl_doc_row(d, 0);
    add_keys(d, planned, measured);
    add_cells(d, name, planned ? &planned->resident_bytes : NULL, measured ? &measured->resident_bytes : NULL,
              !planned    ? "not planned"
              : !measured ? "not found in the process"
                          : "");
    pl_doc_key_bool(d, "planned", planned != NULL);
    pl_doc_key_bool(d, "measured", measured != NULL);
    pl_doc_row_end(d);
}

static void add_rows(pl_doc *d, const pl_process_planned *planned, const pl_memory_measured *measured,
                     const pl_report_verdict *v)
{
    const uint64_t files = files_of(planned), most = v->planned_bytes + files;
    pl_doc_table(d, "rows", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < planned->row_count; i++)
        add_row(d, &planned->row[i],
                pl_memory_find_row(measured->row, measured->row_count, planned->row[i].kind, planned->row[i].name));
    for (size_t i = 0; i < measured->row_count; i++) {
        const pl_memory_row *row = &measured->row[i];
        if (!pl_memory_find_row(planned->row, planned->row_count, row->kind, row->name)) add_row(d, NULL, row);
    }
    add_sum(d, "unexplained", NULL, &measured->unexplained_bytes, "", measured->unexplained_bytes ? PL_DOC_BAD : 0);
    add_sum(d, "resident", &v->planned_bytes, &v->measured_bytes, "", PL_DOC_TOTAL);
    add_sum(d, "peak", &most, &measured->peak_bytes,
            !v->peak_as_planned ? "VmHWM: above the plan"
            : files             ? "VmHWM, with mapped files: at most"
                                : "VmHWM",
            v->peak_as_planned ? 0 : PL_DOC_BAD);
    if (files) add_sum(d, "mapped files", &files, &measured->files_bytes, "planned: at most; in no sum", 0);
    add_sum(d, "page tables", &planned->page_table_bytes, &measured->page_table_bytes, "planned: at most", 0);
    pl_doc_table_end(d);
}

static void add_unexplained(pl_doc *d, const pl_memory_measured *m)
{
    static const pl_doc_column found[] = {
        {NULL, "unexplained"}, {"bytes", "bytes", PL_DOC_BYTES}, {"protection", ""}, {NULL, ""}};
    pl_doc_table(d, "unexplained", found, sizeof found / sizeof *found);
    for (size_t i = 0; i < m->unexplained_count; i++) {
        const pl_memory_unexplained *u = &m->unexplained[i];
        pl_doc_row(d, 0);
        pl_doc_key_count(d, "begin", u->begin);
        pl_doc_key_count(d, "end", u->end);
        pl_doc_words(d, "%" PRIxPTR "-%" PRIxPTR, u->begin, u->end);
        pl_doc_count(d, u->resident_bytes);
        pl_doc_words(d, "%s", u->protection);
        pl_doc_words(d, "%s", u->name[0] ? u->name : "anonymous");
        pl_doc_key_words(d, "name", u->name);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
}

/* ---- the verdict in words and in numbers ---- */

static void say_worst(const pl_report_verdict *v, pl_str *out)
{
    char name[PL_MEMORY_NAME_BYTES], count[32];
    pl_str_append(out, " The row that differs most is ");
    pl_text_clean(name, sizeof name, v->worst_name);
    if (v->worst_kind == PL_MEMORY_OTHER)
        pl_str_append(out, "what is unexplained");
    else
        pl_str_printf(out, "%s \"%s\"", pl_memory_kind_name(v->worst_kind), name);
    pl_str_printf(out, ", by %s%s bytes.", v->worst_difference_bytes < 0 ? "-" : "+",
                  pl_format_count(magnitude(v->worst_difference_bytes), count, sizeof count));
}

static void say_verdict(pl_doc *d, const pl_report_verdict *v)
{
    char differs[32], allowed[16];
    pl_format_count(magnitude(v->difference_bytes), differs, sizeof differs);
    pl_format_bytes(v->allowed_bytes, allowed, sizeof allowed);
    const char *sign = v->difference_bytes < 0 ? "under" : "over";
    pl_str *out = pl_doc_paragraph(d, v->as_planned ? PL_DOC_GOOD : PL_DOC_BAD);
    if (v->as_planned && v->difference_bytes == 0)
        pl_str_append(out, "As planned, to the byte.");
    else if (v->as_planned)
        pl_str_printf(out, "As planned: %s bytes %s (%s allowed).", differs, sign, allowed);
    else
        pl_str_printf(out, "NOT as planned: %s bytes %s (%s allowed).", differs, sign, allowed);
    if (!v->as_planned) say_worst(v, out);
    pl_doc_paragraph_end(d);
    if (!v->peak_as_planned) pl_doc_say(d, PL_DOC_BAD, "The peak (VmHWM) was above the plan by more than is allowed.");
}

static void add_verdict(pl_doc *d, const pl_report_verdict *v)
{
    pl_doc_key_count(d, "planned_bytes", v->planned_bytes);
    pl_doc_key_count(d, "measured_bytes", v->measured_bytes);
    pl_doc_key_difference(d, "difference_bytes", v->difference_bytes);
    pl_doc_key_count(d, "allowed_bytes", v->allowed_bytes);
    pl_doc_key_bool(d, "as_planned", v->as_planned);
    pl_doc_key_bool(d, "peak_as_planned", v->peak_as_planned);
    if (!v->worst_name) {
        pl_doc_key_null(d, "worst");
        return;
    }
    pl_doc_object(d, "worst");
    pl_doc_key_words(d, "kind", pl_memory_kind_name(v->worst_kind));
    pl_doc_key_words(d, "name", v->worst_name);
    pl_doc_key_difference(d, "difference_bytes", v->worst_difference_bytes);
    pl_doc_object_end(d);
}

/* The rest of the process is resident, so whatever faults are those of files, or of pages that were swapped out. */
static void say_faults(pl_doc *d, const pl_memory_measured *m)
{
    char minor[32], major[32];
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "Page faults of mapped files since the start of the work: %s, and %s that waited for the disk.",
                  pl_format_count(m->committed.minor, minor, sizeof minor),
                  pl_format_count(m->committed.major, major, sizeof major));
    pl_doc_paragraph_end(d);
}

static void add_files(pl_doc *d, uint64_t most, const pl_memory_measured *m)
{
    pl_doc_key_count(d, "mapped_files_at_most_bytes", most);
    pl_doc_key_count(d, "mapped_files_bytes", m->files_bytes);
    pl_doc_key_count(d, "mapped_files_minor_faults", m->committed.minor);
    pl_doc_key_count(d, "mapped_files_major_faults", m->committed.major);
}

static void add_measured(pl_doc *d, const pl_memory_measured *m)
{
    pl_doc_key_count(d, "unexplained_bytes", m->unexplained_bytes);
    pl_doc_key_count(d, "rollup_bytes", m->rollup_bytes);
    pl_doc_key_count(d, "rollup_huge_bytes", m->rollup_huge_bytes);
    pl_doc_key_count(d, "peak_bytes", m->peak_bytes);
    pl_doc_key_count(d, "measured_page_table_bytes", m->page_table_bytes);
    pl_doc_key_count(d, "virtual_bytes", m->virtual_bytes);
    pl_doc_key_count(d, "swap_bytes", m->swap_bytes);
    pl_doc_key_count(d, "threads", m->threads);
    pl_doc_key_count(d, "minor_faults", m->minor_faults);
    pl_doc_key_count(d, "major_faults", m->major_faults);
}

void pl_report_ledger(const pl_process_planned *planned, const pl_memory_measured *measured, pl_doc *d)
{
    const pl_report_verdict v = pl_report_judge(planned, measured);
    pl_doc_key_words(d, "schema", "plimsoll.ledger/1");
    add_verdict(d, &v);
    pl_doc_key_count(d, "planned_page_table_bytes", planned->page_table_bytes);
    add_measured(d, measured);
    if (files_of(planned)) add_files(d, files_of(planned), measured);
    add_rows(d, planned, measured, &v);
    add_unexplained(d, measured);
    say_verdict(d, &v);
    if (files_of(planned)) say_faults(d, measured);
}
