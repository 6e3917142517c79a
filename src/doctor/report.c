/* What there is to say about a process, as a document: who it is, where its memory is, the largest causes, notes, and
 * when it held the most. Lists are in report_lists.c, limits in report_limits.c.
 *
 * For people it is one moment, in the order in which it is read; for programs both, in that of schema
 * "plimsoll.doctor/1" (docs/doctor.md). */
#include "doctor/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "show/cell.h"
#include "show/html.h"
#include "show/plot.h"

enum { TEXT = 32, PLOT_WIDTH = 100, PLOT_HEIGHT = 10 };
#define MARK_BYTES ((uint64_t)1 << 20) /* and 1 %: the kernel takes its mark from approximate counters */

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

/* ---- who ---- */

static void add_title(const pl_doctor_process *p, pl_doc *d)
{
    char title[PL_DOCTOR_NAME_BYTES + TEXT];
    snprintf(title, sizeof title, "process %d (%s)", (int)p->id, p->name);
    pl_doc_title(d, NULL, "memory", title);
}

static void add_who(const pl_doctor *doctor, const pl_doctor_moment *m, pl_doc *d)
{
    const pl_doctor_process *p = &m->process;
    char seconds[TEXT], command[200];
    add_title(p, d);
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "%" PRIu64 " thread%s, user %u", p->status.threads, pl_plural(p->status.threads), p->user);
    if (doctor->asked_id != doctor->id && p->id == doctor->id)
        pl_str_printf(out, "; thread %d belongs to it", (int)doctor->asked_id);
    if (p->inner_id) pl_str_printf(out, "; %d in its own PID namespace", (int)p->inner_id);
    if (doctor->looks > 1)
        pl_str_printf(out, "; as it was %s after the first look",
                      pl_format_seconds(m->seconds, seconds, sizeof seconds));
    pl_doc_paragraph_end(d);
    pl_text_clean(command, sizeof command, p->command);
    if (command[0]) pl_doc_say(d, 0, "%s%s", command, strlen(p->command) >= sizeof command ? " …" : "");
}

static void add_process(const pl_doctor_process *p, pl_doc *d)
{
    pl_doc_key_difference(d, "id", p->id);
    pl_doc_key_difference(d, "parent", p->parent);
    pl_doc_key_count(d, "user", p->user);
    pl_doc_key_words(d, "name", p->name);
    pl_doc_key_words(d, "command", p->command);
    pl_doc_key_words(d, "executable", p->executable[0] ? p->executable : NULL);
    pl_doc_key_words(d, "plimsoll_run", p->run_folder);
    pl_doc_key_bool(d, "permitted", p->permitted);
    pl_doc_key_real(d, "reading_seconds", p->cost_seconds);
}

/* ---- what the kernel tells everybody: for people, where it tells no more ---- */

static void add_status(const pl_doctor_process *p, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, "bytes", PL_DOC_BYTES}, {NULL, "", .is_remark = true}};
    const pl_doctor_status *s = &p->status;
    const struct {
        const char *key, *name, *what; /* name "": not for people */
        uint64_t bytes;
    } rows[] = {{"resident_bytes", "resident", "VmRSS", s->resident_bytes},
                {"anonymous_bytes", "anonymous", "RssAnon: heaps, stacks, written pages of files", s->anonymous_bytes},
                {"file_bytes", "files", "RssFile: program, libraries, mapped files", s->file_bytes},
                {"shared_memory_bytes", "shared memory", "RssShmem", s->shared_memory_bytes},
                {"peak_bytes", "peak", "VmHWM", s->peak_bytes},
                {"virtual_bytes", "addresses", "VmSize: reserved", s->virtual_bytes},
                {"virtual_peak_bytes", "", "", s->virtual_peak_bytes},
                {"page_table_bytes", "page tables", "VmPTE; not in resident", s->page_table_bytes},
                {"swap_bytes", "swap", "VmSwap; not in resident", s->swap_bytes},
                {"locked_bytes", "", "", s->locked_bytes},
                {"hugetlb_bytes", "", "", s->hugetlb_bytes},
                {"threads", "", "", s->threads},
                {"kernel_stack_bytes", "", "", s->threads * PL_DOCTOR_KERNEL_STACK_BYTES}};
    pl_doc_object(d, "status");
    pl_doc_table(d, NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pl_doc_row_of(d, rows[i].key, rows[i].name[0] ? 0 : PL_DOC_HIDDEN);
        pl_doc_words(d, "%s", rows[i].name);
        pl_doc_count(d, rows[i].bytes);
        pl_doc_words(d, "%s", rows[i].what);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_doc_object_end(d);
    pl_doc_say(d, 0,
               "Only its user (%u) and root (CAP_SYS_PTRACE) may read its mappings: ask as one of them, with sudo for "
               "instance, for heap, stacks, libraries and causes.",
               p->user);
}

/* ---- where its memory is ---- */

static const pl_doc_column row_columns[] = {{NULL, "MB; resident: bytes"},     {NULL, "reserved", PL_DOC_MEGABYTES},
                                            {NULL, "resident", PL_DOC_EXACT},  {NULL, "Pss", PL_DOC_MEGABYTES},
                                            {NULL, "dirty", PL_DOC_MEGABYTES}, {NULL, "swap", PL_DOC_MEGABYTES},
                                            {NULL, "maps", PL_DOC_COUNT},      {NULL, "", PL_DOC_BAR},
                                            {NULL, "", .is_remark = true}};

static void add_sizes(const uint64_t *bytes, pl_doc *d)
{
    for (int k = 0; k < PL_SMAPS_FIELDS; k++) pl_doc_key_count(d, pl_smaps_field_name((pl_smaps_field)k), bytes[k]);
}

void pl_doctor_add_row_keys(const pl_doctor_row *row, pl_doc *d)
{
    pl_doc_key_count(d, "mappings", row->maps);
    pl_doc_key_count(d, "reserved_bytes", row->reserved_bytes);
    add_sizes(row->bytes, d);
}

/* share: of the longest bar; negative: none. */
static void add_cells(const char *title, const pl_doctor_row *row, double share, const char *what, pl_doc *d)
{
    pl_doc_words(d, "%s", title);
    pl_doc_count(d, row->reserved_bytes);
    pl_doc_count(d, row->bytes[PL_SMAPS_RSS]);
    pl_doc_count(d, row->bytes[PL_SMAPS_PSS]);
    pl_doc_count(d, row->bytes[PL_SMAPS_PRIVATE_DIRTY]);
    pl_doc_count(d, row->bytes[PL_SMAPS_SWAP]);
    pl_doc_count(d, row->maps);
    if (share >= 0) pl_doc_bar(d, "weight", share);
    pl_doc_bar_end(d);
    pl_doc_words(d, "%s", what);
    pl_doc_row_end(d);
}

static void add_kind(const pl_doctor_view *v, pl_doctor_kind kind, uint64_t most, pl_doc *d)
{
    char what[128];
    const pl_doctor_row *row = &v->row[kind];
    if (row->maps == 0) return;
    snprintf(what, sizeof what, "%s", pl_doctor_kind_what(kind));
    if (kind == PL_DOCTOR_THREAD_STACKS)
        snprintf(what, sizeof what, v->guessed ? "%zu by stack pointer, %zu guessed" : "%zu by stack pointer",
                 v->stack_count - v->guessed - (v->row[PL_DOCTOR_MAIN_STACK].maps > 0), v->guessed);
    if (kind == PL_DOCTOR_ARENAS) snprintf(what, sizeof what, "%zu arenas, known by shape", v->arena_count);
    pl_doc_row(d, 0);
    pl_doc_key_words(d, "kind", pl_doctor_kind_word(kind));
    pl_doctor_add_row_keys(row, d);
    add_cells(pl_doctor_kind_title(kind), row, most ? (double)row->bytes[PL_SMAPS_RSS] / (double)most : 0, what, d);
}

static void begin_single(const char *title, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "%s", title);
    pl_doc_blank(d);
}

static void add_single(const char *title, uint64_t bytes, const char *what, pl_doc *d)
{
    begin_single(title, d);
    pl_doc_count(d, bytes);
    for (int i = 0; i < 5; i++) pl_doc_blank(d);
    pl_doc_words(d, "%s", what);
    pl_doc_row_end(d);
}

static void add_below(const pl_doctor_view *v, pl_doc *d)
{
    const pl_doctor_status *s = &v->process->status;
    const uint64_t hugetlb = v->total.bytes[PL_SMAPS_SHARED_HUGETLB] + v->total.bytes[PL_SMAPS_PRIVATE_HUGETLB];
    char what[96];
    add_single("peak", s->peak_bytes, "VmHWM: the most that was resident since it began", d);
    add_single("page tables", s->page_table_bytes, "VmPTE; not in resident", d);
    snprintf(what, sizeof what, "%" PRIu64 " × 16 KiB, the size on x86-64; not in resident", s->threads);
    add_single("kernel stacks", s->threads * PL_DOCTOR_KERNEL_STACK_BYTES, what, d);
    if (hugetlb) add_single("hugetlb pages", hugetlb, "not in resident", d);
    if (v->total.bytes[PL_SMAPS_ANON_HUGE])
        add_single("of it in huge pages", v->total.bytes[PL_SMAPS_ANON_HUGE], "AnonHugePages", d);
}

static void add_total(const pl_doctor_view *v, pl_doc *d)
{
    pl_doctor_row sum = v->total;
    if (v->process->rollup_known) memcpy(sum.bytes, v->process->rollup, sizeof sum.bytes);
    if (v->unexplained_bytes) {
        begin_single("unexplained", d);
        pl_doc_difference(d, v->unexplained_bytes);
        pl_doc_row_end(d);
    }
    pl_doc_row(d, PL_DOC_TOTAL | PL_DOC_SHOWN);
    add_cells("resident", &sum, -1, v->process->rollup_known ? "Rss of smaps_rollup" : "the sum", d);
}

static void add_sums(const pl_doctor_view *v, pl_doc *d)
{
    const pl_doctor_process *p = v->process;
    if (p->permitted) {
        pl_doc_object(d, "sum");
        pl_doctor_add_row_keys(&v->total, d);
        pl_doc_object_end(d);
    } else {
        pl_doc_key_null(d, "sum");
    }
    if (p->rollup_known) {
        pl_doc_object(d, "rollup");
        add_sizes(p->rollup, d);
        pl_doc_object_end(d);
    } else {
        pl_doc_key_null(d, "rollup");
    }
    if (p->permitted && p->rollup_known)
        pl_doc_key_difference(d, "unexplained_bytes", v->unexplained_bytes);
    else
        pl_doc_key_null(d, "unexplained_bytes");
}

static void add_rows(const pl_doctor_view *v, pl_doc *d)
{
    uint64_t most = 0;
    for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++)
        if (v->row[k].bytes[PL_SMAPS_RSS] > most) most = v->row[k].bytes[PL_SMAPS_RSS];
    pl_doc_section(d, "Where its memory is");
    pl_doc_table(d, "rows", row_columns, sizeof row_columns / sizeof *row_columns);
    for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++) add_kind(v, (pl_doctor_kind)k, most, d);
    add_total(v, d);
    add_below(v, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    add_sums(v, d);
}

/* ---- causes, notes ---- */

static void add_more(const char *before, const char *text, pl_doc *d)
{
    if (!text[0]) return;
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_blank(d);
    pl_doc_blank(d);
    pl_doc_words(d, "%s%s", before, text);
    pl_doc_row_end(d);
}

static void add_cause(const pl_doctor_cause *c, uint64_t whole, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_STRONG);
    pl_doc_count(d, c->bytes);
    pl_doc_key_count(d, "resident_bytes", c->resident_bytes);
    pl_doc_real(d, whole ? (double)c->bytes / (double)whole : 0);
    pl_doc_words(d, "%s", c->title);
    pl_doc_key_words(d, "text", c->text);
    pl_doc_key_words(d, "remedy", c->remedy[0] ? c->remedy : NULL);
    pl_doc_row_end(d);
    add_more("", c->text, d);
    add_more("Remedy: ", c->remedy, d);
}

static void add_causes(const pl_doctor_view *v, pl_doc *d)
{
    static const pl_doc_column columns[] = {
        {"bytes", "", PL_DOC_SIZE}, {"share", "", PL_DOC_PERCENT}, {"title", "", .is_remark = true}};
    pl_doctor_cause causes[PL_DOCTOR_CAUSES_MAX];
    const size_t count = pl_doctor_find_causes(v, causes);
    const uint64_t whole = pl_doctor_charged_bytes(v);
    char bytes[TEXT];
    pl_doc_section(d, "The largest causes");
    pl_doc_say(d, 0, "Of %s: resident, page tables, kernel stacks%s%s.", show(whole, bytes),
               v->process->status.swap_bytes ? ", swap" : "", v->row[PL_DOCTOR_HUGETLB].maps ? ", hugetlb pages" : "");
    pl_doc_table(d, "causes", columns, 3);
    for (size_t i = 0; i < count; i++) add_cause(&causes[i], whole, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

static void add_notes(const pl_doctor_view *v, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, "", .is_remark = true}};
    pl_str notes = {0};
    pl_doctor_notes(v, &notes);
    pl_doc_key_text(d, "notes", pl_str_text(&notes), notes.bytes);
    if (notes.bytes) pl_doc_section(d, "Good to know");
    pl_doc_table(d, NULL, columns, 2);
    for (const char *line = pl_str_text(&notes), *end; (end = strchr(line, '\n')); line = end + 1) {
        pl_doc_row(d, PL_DOC_SHOWN);
        pl_doc_words(d, "-");
        pl_doc_text(d, line, (size_t)(end - line));
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    if (notes.bytes) pl_doc_section_end(d);
    if (notes.failed) d->body.failed = 1;
    pl_str_deinit(&notes);
}

/* ---- over time ---- */

static uint64_t kernels_mark(const pl_doctor *doctor)
{
    const pl_doctor_moment *last = &doctor->last;
    return !doctor->tree && last->known ? last->process.status.peak_bytes : doctor->command_peak_bytes;
}

/* A column holds the largest of its samples. */
static void fill_columns(const pl_doctor *d, unsigned width, double length, double *column)
{
    for (unsigned x = 0; x < width; x++) column[x] = -1;
    for (size_t i = 0; i < d->sample_count; i++) {
        const double at = length > 0 ? d->sample[i].seconds / length * width : 0;
        const unsigned x = at < width ? (unsigned)at : width - 1;
        column[x] = fmax(column[x], (double)d->sample[i].bytes);
    }
    for (unsigned x = 1; x < width; x++) /* no sample fell in: as it was */
        if (column[x] < 0) column[x] = column[x - 1];
}

static void draw_plot(const void *of, unsigned width, bool color, pl_str *out)
{
    const pl_doctor *d = of;
    double column[PL_PLOT_COLUMNS_MAX];
    char top[TEXT], right[TEXT];
    const unsigned columns = pl_plot_columns(width);
    (void)color;
    if (columns == 0 || d->sample_count < 2) return;
    const double length = d->sample[d->sample_count - 1].seconds;
    fill_columns(d, columns, length, column);
    pl_plot_write(&(pl_plot){.column = column,
                             .columns = columns,
                             .height = PLOT_HEIGHT,
                             .most = fmax((double)d->most_bytes, 1),
                             .top = show(d->most_bytes, top),
                             .bottom = "0 B",
                             .left = "0 s",
                             .right = pl_format_seconds(length, right, sizeof right)},
                  out);
}

static void draw_curve(const void *of, pl_str *out)
{
    const pl_doctor *d = of;
    pl_curve_point *point = pl_alloc(d->sample_count + 1, sizeof *point);
    if (!point) {
        out->failed = 1;
        return;
    }
    for (size_t i = 0; i < d->sample_count; i++)
        point[i] = (pl_curve_point){d->sample[i].seconds, (double)d->sample[i].bytes / 1e6};
    const pl_html_curve curve = {point, d->sample_count, "train", "weight", "memory", false};
    pl_html_curves(
        &(pl_html_chart){.title = "Memory over time",
                         .unit = d->tree ? "MB: Rss of one process, Pss of all that descend from it" : "MB, resident",
                         .axis = "seconds",
                         .least_tick = 0.01,
                         .from_zero = true,
                         .curve = &curve,
                         .count = 1},
        out);
    pl_free(point);
}

static void add_watch(const pl_doctor *doctor, pl_doc *d)
{
    char most[TEXT], when[TEXT], kernel[TEXT], missed[TEXT];
    const uint64_t mark = kernels_mark(doctor);
    if (doctor->looks < 2) return;
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "Peak of %" PRIu64 " looks: %s, %s after the first", doctor->looks,
                  show(doctor->most_bytes, most), pl_format_seconds(doctor->most_seconds, when, sizeof when));
    if (doctor->tree) pl_str_append(out, ", with the processes that descend from it");
    if (mark > doctor->most_bytes && mark - doctor->most_bytes > MARK_BYTES + mark / 100)
        pl_str_printf(out, ". The kernel's own mark is %s: %s came and went between two looks", show(mark, kernel),
                      show(mark - doctor->most_bytes, missed));
    else if (mark)
        pl_str_printf(out, ". The kernel's own mark%s is %s", doctor->tree ? " for the largest single process" : "",
                      show(mark, kernel));
    pl_str_append(out, doctor->peak.known ? "." : "; the report is of the last full reading.");
    pl_doc_paragraph_end(d);
    pl_doc_draw(d, &(pl_doc_figure){.page = draw_curve, .of = doctor});
}

static void add_samples(const pl_doctor *doctor, pl_doc *d)
{
    pl_doc_array(d, "samples");
    for (size_t i = 0; i < doctor->sample_count; i++) {
        pl_doc_object(d, NULL);
        pl_doc_key_real(d, "seconds", doctor->sample[i].seconds);
        pl_doc_key_count(d, "bytes", doctor->sample[i].bytes);
        pl_doc_key_count(d, "processes", doctor->sample[i].processes);
        pl_doc_object_end(d);
    }
    pl_doc_array_end(d);
}

/* ---- all of it ---- */

static void add_explained(const pl_doctor_view *v, bool detailed, pl_doc *d)
{
    add_rows(v, d);
    add_causes(v, d);
    add_notes(v, d);
    if (v->stack_count > 1) pl_doctor_add_stacks(v, detailed, d);
    if (v->group_count) pl_doctor_add_groups(v, detailed, d);
    if (detailed) pl_doctor_add_maps(v, d);
}

static pl_status add_table(const pl_doctor *doctor, const pl_doctor_moment *m, pl_doc *d, pl_error *err)
{
    pl_doctor_view v;
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    add_who(doctor, m, d);
    m->process.permitted ? add_rows(&v, d) : add_status(&m->process, d);
    pl_doctor_view_deinit(&v);
    return PL_OK;
}

static pl_status add_report(const pl_doctor *doctor, const pl_doctor_moment *m, bool detailed, pl_doc *d, pl_error *err)
{
    pl_doctor_view v;
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    add_who(doctor, m, d);
    add_watch(doctor, d);
    m->process.permitted ? add_explained(&v, detailed, d) : add_status(&m->process, d);
    if (m->member_count > 1) pl_doctor_add_members(m, d);
    pl_doctor_add_limits(&m->process, d);
    pl_doctor_view_deinit(&v);
    return PL_OK;
}

static pl_status add_moment(const char *key, const pl_doctor_moment *m, pl_doc *d, pl_error *err)
{
    pl_doctor_view v;
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    pl_doc_object(d, key);
    pl_doc_key_real(d, "seconds", m->seconds);
    pl_doc_key_count(d, "bytes", m->bytes);
    add_process(&m->process, d);
    add_status(&m->process, d);
    add_rows(&v, d);
    pl_doctor_add_stacks(&v, true, d);
    pl_doctor_add_groups(&v, true, d);
    add_causes(&v, d);
    add_notes(&v, d);
    pl_doctor_add_members(m, d);
    pl_doctor_add_limits(&m->process, d);
    pl_doc_object_end(d);
    pl_doctor_view_deinit(&v);
    return PL_OK;
}

static pl_status add_facts(const pl_doctor *doctor, pl_doc *d, pl_error *err)
{
    pl_doc_key_words(d, "schema", "plimsoll.doctor/1");
    pl_doc_key_bool(d, "tree", doctor->tree);
    pl_doc_key_count(d, "looks", doctor->looks);
    pl_doc_key_count(d, "peak_bytes", doctor->most_bytes);
    pl_doc_key_real(d, "peak_seconds", doctor->most_seconds);
    pl_doc_key_count_if(d, doctor->command_peak_bytes, "kernel_peak_bytes", doctor->command_peak_bytes);
    PL_TRY(add_moment("peak", doctor->peak.known ? &doctor->peak : &doctor->last, d, err));
    PL_TRY(add_moment("last", &doctor->last, d, err));
    add_samples(doctor, d);
    return PL_OK;
}

static pl_status add_form(const pl_doctor *doctor, pl_doctor_form form, const pl_doctor_moment *m, pl_doc *d,
                          pl_error *err)
{
    switch (form) {
    case PL_DOCTOR_REPORT:
    case PL_DOCTOR_REPORT_LONG:
    case PL_DOCTOR_HTML:
        return add_report(doctor, m, form == PL_DOCTOR_REPORT_LONG, d, err);
    case PL_DOCTOR_TABLE:
        return add_table(doctor, m, d, err);
    case PL_DOCTOR_PLOT:
        pl_doc_draw(d, &(pl_doc_figure){.text = draw_plot, .of = doctor});
        return PL_OK;
    case PL_DOCTOR_JSON:
        return add_facts(doctor, d, err);
    }
    return pl_fail(err, PL_E_USAGE, "there is no form %d of a doctor's report", (int)form);
}

pl_status pl_doctor_write(const pl_doctor *doctor, pl_doctor_form form, const pl_doctor_moment *m, pl_str *out,
                          pl_error *err)
{
    const pl_text_form text = {.columns = form == PL_DOCTOR_PLOT ? PLOT_WIDTH : PL_TEXT_COLUMNS};
    const pl_doc_form as = form == PL_DOCTOR_JSON ? PL_FORM_JSON : form == PL_DOCTOR_HTML ? PL_FORM_PAGE : PL_FORM_TEXT;
    pl_doc d = pl_doc_begin();
    const pl_status status = add_form(doctor, form, m, &d, err);
    if (status == PL_OK) pl_doc_write(&d, as, &text, out);
    pl_doc_deinit(&d);
    return status == PL_OK && out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the report") : status;
}
