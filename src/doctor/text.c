/* The report for a person: who, the table, causes, notes, stacks, what is mapped, limits. Tables are
 * report/table.h's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "doctor/doctor.h"
#include "report/table.h"

enum { TEXT = 32, SHOWN = 8 };
#define MARK_BYTES ((uint64_t)1 << 20) /* and 1 %: the kernel takes its mark from approximate counters */

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

/* ---- who ---- */

static void write_head(const pl_doctor *d, const pl_doctor_moment *m, pl_str *out)
{
    const pl_doctor_process *p = &m->process;
    char name[PL_DOCTOR_NAME_BYTES], command[200], seconds[TEXT];
    pl_text_clean(name, sizeof name, p->name);
    pl_text_clean(command, sizeof command, p->command);
    pl_str_printf(out, "process %d (%s)", (int)p->id, name);
    if (d->asked_id != d->id && p->id == d->id) pl_str_printf(out, ", which thread %d belongs to", (int)d->asked_id);
    if (p->inner_id) pl_str_printf(out, ", %d in its own PID namespace", (int)p->inner_id);
    pl_str_printf(out, ", %" PRIu64 " thread%s, user %u", p->status.threads, p->status.threads == 1 ? "" : "s",
                  p->user);
    if (d->looks > 1)
        pl_str_printf(out, ", as it was %s after the first look",
                      pl_format_seconds(m->seconds, seconds, sizeof seconds));
    if (*command) pl_str_printf(out, "\n  %s%s", command, strlen(p->command) >= sizeof command ? " …" : "");
    pl_str_append(out, "\n\n");
}

static void write_members(const pl_doctor_moment *m, pl_str *out)
{
    if (m->member_count < 2) return;
    pl_str_printf(out, "\nThe %zu processes at that moment (Pss divides shared pages by their users):\n",
                  m->member_count);
    for (pl_table t = pl_table_begin(out, "rlrr"); pl_table_pass(&t);) {
        pl_table_cell(&t, "  pid");
        pl_table_cell(&t, "name");
        pl_table_cell(&t, "Rss MB");
        pl_table_cell(&t, "Pss MB");
        pl_table_end_row(&t);
        for (size_t i = 0; i < m->member_count && i < 4 * SHOWN; i++) {
            pl_table_cell(&t, "  %d", (int)m->member[i].id);
            pl_table_cell(&t, "%s", m->member[i].name);
            pl_table_megabytes(&t, m->member[i].resident_bytes);
            pl_table_megabytes(&t, m->member[i].proportional_bytes);
            pl_table_end_row(&t);
        }
    }
    if (m->member_count > 4 * SHOWN) pl_str_printf(out, "  and %zu more\n", m->member_count - 4 * SHOWN);
}

/* ---- the table ---- */

static void write_header(pl_table *t)
{
    static const char *const titles[] = {"MB; resident: bytes", "reserved", "resident", "Pss", "dirty", "swap", "maps"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) pl_table_cell(t, "%s", titles[i]);
    pl_table_end_row(t);
}

static void write_row(pl_table *t, const char *title, const pl_doctor_row *row, const char *what)
{
    pl_table_cell(t, "%s", title);
    pl_table_megabytes(t, row->reserved_bytes);
    pl_table_count(t, row->bytes[PL_SMAPS_RSS]);
    pl_table_megabytes(t, row->bytes[PL_SMAPS_PSS]);
    pl_table_megabytes(t, row->bytes[PL_SMAPS_PRIVATE_DIRTY]);
    pl_table_megabytes(t, row->bytes[PL_SMAPS_SWAP]);
    pl_table_count(t, row->maps);
    pl_table_cell(t, "%s", what);
    pl_table_end_row(t);
}

static void write_single(pl_table *t, const char *title, uint64_t bytes, const char *what)
{
    pl_table_cell(t, "%s", title);
    pl_table_cell(t, "%s", "");
    pl_table_count(t, bytes);
    for (int i = 0; i < 4; i++) pl_table_cell(t, "%s", "");
    pl_table_cell(t, "%s", what);
    pl_table_end_row(t);
}

static void write_unexplained(pl_table *t, const pl_doctor_view *v)
{
    pl_table_cell(t, "unexplained");
    pl_table_cell(t, "%s", "");
    pl_table_difference(t, v->unexplained_bytes);
    pl_table_end_row(t);
}

static void write_kind(pl_table *t, const pl_doctor_view *v, pl_doctor_kind kind)
{
    char what[128];
    const pl_doctor_row *row = &v->row[kind];
    if (row->maps == 0) return;
    snprintf(what, sizeof what, "%s", pl_doctor_kind_what(kind));
    if (kind == PL_DOCTOR_THREAD_STACKS)
        snprintf(what, sizeof what, v->guessed ? "%zu by stack pointer, %zu guessed" : "%zu by stack pointer",
                 v->stack_count - v->guessed - (v->row[PL_DOCTOR_MAIN_STACK].maps > 0), v->guessed);
    if (kind == PL_DOCTOR_ARENAS) snprintf(what, sizeof what, "%zu arenas, known by shape", v->arena_count);
    write_row(t, pl_doctor_kind_title(kind), row, what);
}

static void write_below(pl_table *t, const pl_doctor_view *v)
{
    const pl_doctor_status *s = &v->process->status;
    uint64_t hugetlb = v->total.bytes[PL_SMAPS_SHARED_HUGETLB] + v->total.bytes[PL_SMAPS_PRIVATE_HUGETLB];
    char what[96];
    write_single(t, "peak", s->peak_bytes, "VmHWM: the most that was resident since it began");
    write_single(t, "page tables", s->page_table_bytes, "VmPTE; not in resident");
    snprintf(what, sizeof what, "%" PRIu64 " × 16 KiB, the size on x86-64; not in resident", s->threads);
    write_single(t, "kernel stacks", s->threads * PL_DOCTOR_KERNEL_STACK_BYTES, what);
    if (hugetlb) write_single(t, "hugetlb pages", hugetlb, "not in resident");
    if (v->total.bytes[PL_SMAPS_ANON_HUGE])
        write_single(t, "of it in huge pages", v->total.bytes[PL_SMAPS_ANON_HUGE], "AnonHugePages");
}

static void write_table(const pl_doctor_view *v, pl_str *out)
{
    pl_doctor_row sum = v->total;
    if (v->process->rollup_known) memcpy(sum.bytes, v->process->rollup, sizeof sum.bytes);
    for (pl_table t = pl_table_begin(out, "lrrrrrrl"); pl_table_pass(&t);) {
        write_header(&t);
        for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++) write_kind(&t, v, (pl_doctor_kind)k);
        if (v->unexplained_bytes) write_unexplained(&t, v);
        pl_table_rule(&t, 1, 7);
        write_row(&t, "resident", &sum, v->process->rollup_known ? "Rss of smaps_rollup" : "the sum");
        write_below(&t, v);
    }
}

/* Of another user's process: the three parts that the kernel tells everybody. */
static void write_public_table(const pl_doctor_process *p, pl_str *out)
{
    const pl_doctor_status *s = &p->status;
    const struct {
        const char *name;
        uint64_t bytes;
        const char *what;
    } rows[] = {{"anonymous", s->anonymous_bytes, "RssAnon: heaps, stacks, written pages of files"},
                {"files", s->file_bytes, "RssFile: program, libraries, mapped files"},
                {"shared memory", s->shared_memory_bytes, "RssShmem"},
                {"resident", s->resident_bytes, "VmRSS"},
                {"peak", s->peak_bytes, "VmHWM"},
                {"swap", s->swap_bytes, "VmSwap; not in resident"},
                {"page tables", s->page_table_bytes, "VmPTE; not in resident"},
                {"addresses", s->virtual_bytes, "VmSize: reserved"}};
    for (pl_table t = pl_table_begin(out, "lrrl"); pl_table_pass(&t);)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            pl_table_cell(&t, "%s", rows[i].name);
            pl_table_bytes(&t, rows[i].bytes);
            pl_table_cell(&t, "%s", rows[i].what);
            pl_table_end_row(&t);
        }
    size_t from = out->bytes;
    pl_str_printf(out,
                  "\nOnly its user (%u) and root (CAP_SYS_PTRACE) may read its mappings: ask as one of them, with sudo "
                  "for instance, for heap, stacks, libraries and causes.\n",
                  p->user);
    pl_str_fold(out, from, PL_TEXT_COLUMNS);
}

/* ---- in words ---- */

/* One paragraph, behind `indent` columns that the caller has begun. */
static void wrap(pl_str *out, const char *text, size_t bytes, size_t indent)
{
    pl_str_wrap(out, text, bytes, indent, PL_TEXT_COLUMNS);
    pl_str_append(out, "\n");
}

static void write_causes(const pl_doctor_view *v, pl_str *out)
{
    pl_doctor_cause causes[PL_DOCTOR_CAUSES_MAX];
    size_t count = pl_doctor_find_causes(v, causes);
    char bytes[TEXT], text[PL_TABLE_CELL_BYTES * 4];
    uint64_t charged = pl_doctor_charged_bytes(v);
    double whole = (double)charged;
    size_t from = out->bytes;
    pl_str_printf(out, "\nThe largest causes, of %s: resident, page tables, kernel stacks%s%s\n", show(charged, bytes),
                  v->process->status.swap_bytes ? ", swap" : "",
                  v->row[PL_DOCTOR_HUGETLB].maps ? ", hugetlb pages" : "");
    pl_str_fold(out, from, PL_TEXT_COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const pl_doctor_cause *c = &causes[i];
        pl_str_printf(out, "%zu. %s, %.0f %%: %s\n   ", i + 1, show(c->bytes, bytes),
                      whole > 0 ? 100 * (double)c->bytes / whole : 0, c->title);
        pl_text_clean(text, sizeof text, c->text);
        wrap(out, text, strlen(text), 3);
        if (!c->remedy[0]) continue;
        pl_text_clean(text, sizeof text, c->remedy);
        pl_str_append(out, "   Remedy: ");
        wrap(out, text, strlen(text), 11);
    }
}

static void write_notes(const pl_doctor_view *v, pl_str *out)
{
    pl_str notes = {0};
    pl_doctor_notes(v, &notes);
    if (notes.failed) out->failed = 1;
    const char *line = pl_str_text(&notes);
    if (*line) pl_str_append(out, "\nGood to know\n");
    while (*line) {
        size_t bytes = strcspn(line, "\n");
        pl_str_append(out, "- ");
        wrap(out, line, bytes, 2);
        line += bytes + (line[bytes] == '\n');
    }
    pl_str_deinit(&notes);
}

/* ---- over time ---- */

static void write_watch(const pl_doctor *d, pl_str *out)
{
    char most[TEXT], when[TEXT], kernel[TEXT], missed[TEXT];
    const pl_doctor_moment *last = &d->last;
    if (d->looks < 2) return;
    uint64_t mark = d->command_peak_bytes;
    size_t from = out->bytes;
    if (!d->tree && last->known) mark = last->process.status.peak_bytes;
    pl_str_printf(out, "\nPeak of %" PRIu64 " looks: %s, %s after the first", d->looks, show(d->most_bytes, most),
                  pl_format_seconds(d->most_seconds, when, sizeof when));
    if (d->tree) pl_str_append(out, ", with the processes that descend from it");
    if (mark > d->most_bytes && mark - d->most_bytes > MARK_BYTES + mark / 100)
        pl_str_printf(out, ". The kernel's own mark is %s: %s came and went between two looks", show(mark, kernel),
                      show(mark - d->most_bytes, missed));
    else if (mark)
        pl_str_printf(out, ". The kernel's own mark%s is %s", d->tree ? " for the largest single process" : "",
                      show(mark, kernel));
    pl_str_append(out, d->peak.known ? ".\n" : "; the report is of the last full reading.\n");
    pl_str_fold(out, from, PL_TEXT_COLUMNS);
}

pl_status pl_doctor_write_report(const pl_doctor *d, const pl_doctor_moment *m, bool detailed, pl_str *out,
                                 pl_error *err)
{
    pl_doctor_view v;
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    write_head(d, m, out);
    if (m->process.permitted) {
        write_table(&v, out);
        write_causes(&v, out);
        write_notes(&v, out);
        pl_doctor_write_stacks(&v, detailed, out);
        pl_doctor_write_groups(&v, detailed, out);
        if (detailed) pl_doctor_write_maps(&v, out);
    } else {
        write_public_table(&m->process, out);
    }
    write_members(m, out);
    pl_doctor_write_limits(&m->process, out);
    write_watch(d, out);
    pl_doctor_view_deinit(&v);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the report") : PL_OK;
}

pl_status pl_doctor_write_table(const pl_doctor *d, const pl_doctor_moment *m, pl_str *out, pl_error *err)
{
    pl_doctor_view v;
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    write_head(d, m, out);
    if (m->process.permitted)
        write_table(&v, out);
    else
        write_public_table(&m->process, out);
    pl_doctor_view_deinit(&v);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the table") : PL_OK;
}
