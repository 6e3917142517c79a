/* What stands around the process: its own limits, control groups, the machine. */
#include "base/units.h"
#include "doctor/report.h"

enum { TEXT = 32 };

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

/* What is not limited, or not known, is null. */
static void add_key(const char *key, uint64_t bytes, pl_doc *d)
{
    pl_doc_key_count_if(d, bytes < PL_CGROUP_UNKNOWN, key, bytes);
}

/* ---- of the process ---- */

static void add_own(const pl_doctor_process *p, pl_doc *d)
{
    char bytes[TEXT], held[TEXT];
    bool any = false;
    pl_doc_object(d, "limits");
    for (int i = 0; i < PL_DOCTOR_LIMITS; i++) add_key(pl_doctor_limit_name((pl_doctor_limit)i), p->limit[i], d);
    pl_doc_object_end(d);
    pl_str *out = pl_doc_paragraph(d, 0);
    for (int i = 0; i < PL_DOCTOR_LIMITS; i++) {
        if (p->limit[i] == PL_MACHINE_UNLIMITED) continue;
        pl_str_printf(out, "%s%s %s", any ? ", " : "", pl_doctor_limit_name((pl_doctor_limit)i),
                      show(p->limit[i], bytes));
        if (i == PL_DOCTOR_LIMIT_AS) pl_str_printf(out, " (of it %s used)", show(p->status.virtual_bytes, held));
        if (i == PL_DOCTOR_LIMIT_RSS) pl_str_append(out, " (Linux does not enforce it)");
        any = true;
    }
    pl_str_append(out, any ? "; no other limit of the process." : "No limit of the process itself.");
    pl_doc_paragraph_end(d);
}

/* ---- of its control groups ---- */

static void add_figure(const char *key, uint64_t bytes, pl_doc *d)
{
    add_key(key, bytes, d);
    if (bytes == PL_MACHINE_UNLIMITED)
        pl_doc_words(d, "none");
    else if (bytes == PL_CGROUP_UNKNOWN)
        pl_doc_unknown(d);
    else
        pl_doc_count(d, bytes);
}

static void add_level(const pl_cgroup_level *l, bool holds, pl_doc *d)
{
    pl_doc_row(d, 0);
    pl_doc_key_words(d, "path", l->path);
    pl_doc_key_bool(d, "holds", holds);
    add_figure("limit_bytes", l->limit_bytes, d);
    add_figure("high_bytes", l->high_bytes, d);
    add_figure("swap_limit_bytes", l->swap_limit_bytes, d);
    add_figure("charged_bytes", l->usage_bytes, d);
    add_figure("peak_bytes", l->peak_bytes, d);
    add_key("swap_bytes", l->swap_bytes, d);
    add_figure("oom_kills", l->oom_kills, d);
    pl_doc_words(d, "%s%s", l->path, holds ? "  <- the least limit: this one holds" : "");
    pl_doc_row_end(d);
}

static void add_levels(const pl_cgroup_account *c, pl_doc *d)
{
    const pl_doc_column columns[] = {
        {NULL, "limit, MB", PL_DOC_MEGABYTES},     {NULL, c->version == 2 ? "high" : "soft", PL_DOC_MEGABYTES},
        {NULL, "swap limit", PL_DOC_MEGABYTES},    {NULL, "charged", PL_DOC_MEGABYTES},
        {NULL, "peak", PL_DOC_MEGABYTES},          {NULL, "oom kills", PL_DOC_COUNT},
        {NULL, "control group", .is_remark = true}};
    pl_doc_table(d, "levels", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->level_count; i++) add_level(&c->level[i], i == c->binding, d);
    pl_doc_table_end(d);
    if (!c->version)
        pl_doc_say(d, 0, "No control group that counts memory is in sight.");
    else if (c->binding == c->level_count)
        pl_doc_say(d, 0, "No group limits its memory.");
}

static void add_charges(const pl_cgroup_account *c, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, "MB", PL_DOC_MEGABYTES}, {NULL, "", .is_remark = true}};
    if (c->version && c->charge_count) pl_doc_say(d, 0, "Charged to the first of them, with all processes in it:");
    pl_doc_object(d, "charged");
    pl_doc_table(d, NULL, columns, 3);
    for (size_t i = 0; i < c->charge_count; i++) {
        const pl_cgroup_charge *charge = &c->charge[i];
        pl_doc_row_of(d, charge->name, charge->bytes == 0 ? PL_DOC_HIDDEN : charge->part ? PL_DOC_INDENT : 0);
        pl_doc_words(d, "%s", charge->name);
        pl_doc_count(d, charge->bytes);
        pl_doc_words(d, "%s", charge->meaning);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_doc_object_end(d);
}

/* ---- of the machine ---- */

static const char *overcommit_words(int mode)
{
    static const char *const words[] = {"0: refuses only what is plainly too much", "1: never refuses",
                                        "2: refuses beyond the commit limit"};
    return mode >= 0 && mode < 3 ? words[mode] : "not known";
}

static void add_machine(const pl_doctor_process *p, pl_doc *d)
{
    char text[5][TEXT];
    pl_doc_object(d, "machine");
    pl_doc_key_count(d, "memory_bytes", p->machine.ram_bytes);
    pl_doc_key_count(d, "available_bytes", p->machine.available_bytes);
    pl_doc_key_count(d, "swap_bytes", p->machine.swap_bytes);
    pl_doc_key_difference(d, "overcommit", p->overcommit);
    pl_doc_key_count(d, "commit_limit_bytes", p->commit_limit_bytes);
    pl_doc_key_count(d, "committed_bytes", p->committed_bytes);
    pl_doc_key_words(d, "transparent_huge_pages", p->machine.transparent_huge_pages);
    pl_doc_object_end(d);
    pl_doc_say(d, 0, "machine: %s of memory, %s available, %s of swap; overcommit %s (%s committed of %s)",
               show(p->machine.ram_bytes, text[0]), show(p->machine.available_bytes, text[1]),
               show(p->machine.swap_bytes, text[2]), overcommit_words(p->overcommit), show(p->committed_bytes, text[3]),
               show(p->commit_limit_bytes, text[4]));
}

void pl_doctor_add_limits(const pl_doctor_process *p, pl_doc *d)
{
    pl_doc_section(d, "Limits");
    add_own(p, d);
    pl_doc_object(d, "cgroup");
    pl_doc_key_difference(d, "version", p->cgroup.version);
    add_levels(&p->cgroup, d);
    add_charges(&p->cgroup, d);
    pl_doc_object_end(d);
    add_machine(p, d);
    pl_doc_section_end(d);
}
