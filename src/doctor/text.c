/* The report for a person: who, the table, causes, notes, stacks, what is mapped, limits. Tables are report/table.h's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "doctor/doctor.h"
#include "report/table.h"

enum { WIDTH = 110, TEXT = 32, SHOWN = 8 };

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

/* Words of one paragraph, `indent` spaces before each line but the first, which the caller has begun. */
static void wrap(pl_str *out, const char *text, size_t bytes, int indent)
{
    int column = indent;
    for (size_t at = 0; at < bytes;) {
        size_t word = 0;
        while (at + word < bytes && text[at + word] != ' ') word++;
        if (column > indent && column + 1 + (int)word > WIDTH) {
            pl_str_append(out, "\n");
            pl_str_pad(out, ' ', (size_t)indent);
            column = indent;
        } else if (column > indent) {
            pl_str_append(out, " ");
            column++;
        }
        pl_str_append_bytes(out, text + at, word);
        column += (int)word;
        at += word + (at + word < bytes);
    }
    pl_str_append(out, "\n");
}

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
    static const char *const titles[] = {"",       "reserved MB",      "resident", "MB",
                                         "Pss MB", "private dirty MB", "swap MB",  "maps"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) pl_table_cell(t, "%s", titles[i]);
    pl_table_end_row(t);
}

static void write_row(pl_table *t, const char *title, const pl_doctor_row *row, const char *what)
{
    pl_table_cell(t, "%s", title);
    pl_table_megabytes(t, row->reserved_bytes);
    pl_table_bytes(t, row->bytes[PL_SMAPS_RSS]);
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
    pl_table_bytes(t, bytes);
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
    for (pl_table t = pl_table_begin(out, "lrrrrrrrl"); pl_table_pass(&t);) {
        write_header(&t);
        for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++) write_kind(&t, v, (pl_doctor_kind)k);
        if (v->unexplained_bytes) write_unexplained(&t, v);
        pl_table_rule(&t, 1, 8);
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
    pl_str_printf(out,
                  "\nIts mappings may be read by its user (%u) and by root (CAP_SYS_PTRACE) only: ask as one of them, "
                  "with sudo for\ninstance, for heap, stacks, libraries and causes.\n",
                  p->user);
}

/* ---- in words ---- */

static void write_causes(const pl_doctor_view *v, pl_str *out)
{
    pl_doctor_cause causes[PL_DOCTOR_CAUSES_MAX];
    size_t count = pl_doctor_find_causes(v, causes);
    char bytes[TEXT], text[PL_TABLE_CELL_BYTES * 4];
    double whole = (double)v->total.bytes[PL_SMAPS_RSS];
    pl_str_append(out, "\nThe largest causes\n");
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

/* ---- stacks ---- */

static void write_stack(pl_table *t, const pl_doctor_stack *s)
{
    pl_table_cell(t, s->thread ? "  %d" : "  ?", (int)s->thread);
    pl_table_cell(t, "%s", s->name);
    pl_table_count(t, s->reserved_bytes);
    pl_table_count(t, s->touched_bytes);
    pl_table_cell(t, "%s", s->main ? "main stack" : s->thread ? "by stack pointer" : "guess");
    pl_table_end_row(t);
}

/* The fullest of those that come behind `before` in this order: more touched first, then the lower address. */
static const pl_doctor_stack *next_fullest(const pl_doctor_view *v, const pl_doctor_stack *before)
{
    const pl_doctor_stack *best = NULL;
    for (const pl_doctor_stack *s = v->stack; s < v->stack + v->stack_count; s++) {
        bool later = !before || s->touched_bytes < before->touched_bytes ||
                     (s->touched_bytes == before->touched_bytes && s > before);
        if (later && (!best || s->touched_bytes > best->touched_bytes)) best = s;
    }
    return best;
}

static void write_stacks(const pl_doctor_view *v, bool detailed, pl_str *out)
{
    size_t limit = detailed ? v->stack_count : SHOWN;
    if (v->stack_count < 2) return;
    pl_str_append(out, v->stack_count > limit ? "\nStacks, the fullest\n" : "\nStacks\n");
    for (pl_table t = pl_table_begin(out, "rlrrl"); pl_table_pass(&t);) {
        static const char *const titles[] = {"  thread", "name", "reserved", "touched"};
        for (int i = 0; i < 4; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        const pl_doctor_stack *s = NULL;
        for (size_t i = 0; i < v->stack_count && i < limit; i++) {
            s = detailed ? &v->stack[i] : next_fullest(v, s);
            write_stack(&t, s);
        }
    }
    if (v->stack_count > limit) pl_str_printf(out, "  and %zu more (--all)\n", v->stack_count - limit);
}

/* ---- what is mapped ---- */

static void write_groups(const pl_doctor_view *v, bool detailed, pl_str *out)
{
    size_t limit = detailed ? v->group_count : SHOWN;
    if (v->group_count == 0) return;
    pl_str_append(out, v->group_count > limit ? "\nMapped by name, the largest\n" : "\nMapped by name\n");
    for (pl_table t = pl_table_begin(out, "rrrll"); pl_table_pass(&t);) {
        static const char *const titles[] = {"  reserved MB", "resident MB", "Pss MB", "kind", "name"};
        for (int i = 0; i < 5; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < v->group_count && i < limit; i++) {
            const pl_doctor_group *g = &v->group[i];
            pl_table_megabytes(&t, g->sum.reserved_bytes);
            pl_table_megabytes(&t, g->sum.bytes[PL_SMAPS_RSS]);
            pl_table_megabytes(&t, g->sum.bytes[PL_SMAPS_PSS]);
            pl_table_cell(&t, "%s", pl_doctor_kind_title(g->kind));
            pl_table_cell(&t, "%s", g->name);
            pl_table_end_row(&t);
        }
    }
    if (v->group_count > limit) pl_str_printf(out, "  and %zu more (--all)\n", v->group_count - limit);
}

static void write_maps(const pl_doctor_view *v, pl_str *out)
{
    pl_str_append(out, "\nEvery mapping\n");
    for (pl_table t = pl_table_begin(out, "llrrrll"); pl_table_pass(&t);) {
        static const char *const titles[] = {"  address", "", "reserved", "resident", "Pss", "kind", "name"};
        for (int i = 0; i < 7; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < v->process->map_count; i++) {
            const pl_doctor_map *m = &v->process->map[i];
            pl_table_cell(&t, "  %012" PRIxPTR, m->begin);
            pl_table_cell(&t, "%s", m->protection);
            pl_table_count(&t, m->end - m->begin);
            pl_table_count(&t, m->bytes[PL_SMAPS_RSS]);
            pl_table_count(&t, m->bytes[PL_SMAPS_PSS]);
            pl_table_cell(&t, "%s", pl_doctor_kind_title(v->kind[i]));
            pl_table_cell(&t, "%s", m->name);
            pl_table_end_row(&t);
        }
    }
}

/* ---- limits ---- */

static void figure(pl_table *t, uint64_t bytes)
{
    if (bytes == PL_MACHINE_UNLIMITED)
        pl_table_cell(t, "none");
    else if (bytes == PL_CGROUP_UNKNOWN)
        pl_table_cell(t, "-");
    else
        pl_table_megabytes(t, bytes);
}

static void write_levels(const pl_cgroup_account *c, pl_str *out)
{
    for (pl_table t = pl_table_begin(out, "rrrrrl"); pl_table_pass(&t);) {
        const char *const titles[] = {"  limit MB", c->version == 2 ? "high MB" : "soft MB",
                                      "charged MB", "peak MB",
                                      "oom kills",  "control group"};
        for (int i = 0; i < 6; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < c->level_count; i++) {
            const pl_cgroup_level *l = &c->level[i];
            figure(&t, l->limit_bytes);
            figure(&t, l->high_bytes);
            figure(&t, l->usage_bytes);
            figure(&t, l->peak_bytes);
            if (l->oom_kills == PL_CGROUP_UNKNOWN)
                pl_table_cell(&t, "-");
            else
                pl_table_count(&t, l->oom_kills);
            pl_table_cell(&t, "%s%s", l->path, i == c->binding ? "  <- the least limit: this one holds" : "");
            pl_table_end_row(&t);
        }
    }
}

static void write_charges(const pl_cgroup_account *c, pl_str *out)
{
    if (c->charge_count == 0) return;
    pl_str_append(out, "  charged to its own group, with all processes in it:\n");
    for (pl_table t = pl_table_begin(out, "lrl"); pl_table_pass(&t);)
        for (size_t i = 0; i < c->charge_count; i++) {
            const pl_cgroup_charge *charge = &c->charge[i];
            if (charge->bytes == 0) continue;
            pl_table_cell(&t, "%s%s", charge->part ? "      " : "    ", charge->name);
            pl_table_megabytes(&t, charge->bytes);
            pl_table_cell(&t, "%s", charge->meaning);
            pl_table_end_row(&t);
        }
}

static void write_process_limits(const pl_doctor_process *p, pl_str *out)
{
    char bytes[TEXT], held[TEXT];
    bool any = false;
    for (int i = 0; i < PL_DOCTOR_LIMITS; i++) {
        if (p->limit[i] == PL_MACHINE_UNLIMITED) continue;
        pl_str_printf(out, "%s%s %s", any ? ", " : "  ", pl_doctor_limit_name((pl_doctor_limit)i),
                      show(p->limit[i], bytes));
        if (i == PL_DOCTOR_LIMIT_AS) pl_str_printf(out, " (of it %s used)", show(p->status.virtual_bytes, held));
        if (i == PL_DOCTOR_LIMIT_RSS) pl_str_append(out, " (Linux does not enforce it)");
        any = true;
    }
    pl_str_append(out, any ? "; no other limit of the process\n" : "  no limit of the process itself\n");
}

static const char *overcommit_words(int mode)
{
    static const char *const words[] = {"0: refuses only what is plainly too much", "1: never refuses",
                                        "2: refuses beyond the commit limit"};
    return mode >= 0 && mode < 3 ? words[mode] : "not known";
}

static void write_limits(const pl_doctor_process *p, pl_str *out)
{
    char text[5][TEXT];
    pl_str_append(out, "\nLimits\n");
    if (p->cgroup.version) {
        write_levels(&p->cgroup, out);
        if (p->cgroup.binding == p->cgroup.level_count) pl_str_append(out, "  no group limits its memory\n");
        write_charges(&p->cgroup, out);
    } else {
        pl_str_append(out, "  no control group that counts memory is in sight\n");
    }
    write_process_limits(p, out);
    pl_str_printf(out, "  machine: %s of memory, %s available, %s of swap; overcommit %s (%s committed of %s)\n",
                  show(p->machine.ram_bytes, text[0]), show(p->machine.available_bytes, text[1]),
                  show(p->machine.swap_bytes, text[2]), overcommit_words(p->overcommit),
                  show(p->committed_bytes, text[3]), show(p->commit_limit_bytes, text[4]));
}

/* ---- over time ---- */

static void write_watch(const pl_doctor *d, pl_str *out)
{
    char most[TEXT], when[TEXT], kernel[TEXT], missed[TEXT];
    const pl_doctor_moment *last = &d->last;
    if (d->looks < 2) return;
    uint64_t mark = d->command_peak_bytes;
    if (!d->tree && last->known) mark = last->process.status.peak_bytes;
    pl_str_printf(out, "\nPeak of %" PRIu64 " looks: %s, %s after the first", d->looks, show(d->most_bytes, most),
                  pl_format_seconds(d->most_seconds, when, sizeof when));
    if (d->tree) pl_str_append(out, ", with the processes that descend from it");
    if (mark > d->most_bytes)
        pl_str_printf(out, ". The kernel's own mark is %s: %s came and went between two looks", show(mark, kernel),
                      show(mark - d->most_bytes, missed));
    else if (mark)
        pl_str_printf(out, ". The kernel's own mark%s is %s", d->tree ? " for the largest single process" : "",
                      show(mark, kernel));
    pl_str_append(out, d->peak.known ? ".\n" : "; the report is of the last full reading.\n");
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
        write_stacks(&v, detailed, out);
        write_groups(&v, detailed, out);
        if (detailed) write_maps(&v, out);
    } else {
        write_public_table(&m->process, out);
    }
    write_members(m, out);
    write_limits(&m->process, out);
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
