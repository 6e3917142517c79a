/* What stands around the process: control groups, its own limits, the machine. */
#include "base/units.h"
#include "doctor/doctor.h"
#include "report/table.h"

enum { TEXT = 32 };

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

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
    for (pl_table t = pl_table_begin(out, "rrrrrrl"); pl_table_pass(&t);) {
        const char *const titles[] = {
            "  limit MB",   c->version == 2 ? "high" : "soft", "swap limit", "charged", "peak", "oom kills",
            "control group"};
        for (int i = 0; i < 7; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < c->level_count; i++) {
            const pl_cgroup_level *l = &c->level[i];
            figure(&t, l->limit_bytes);
            figure(&t, l->high_bytes);
            figure(&t, l->swap_limit_bytes);
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
    pl_str_append(out, "  charged to the first of them, with all processes in it:\n");
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

void pl_doctor_write_limits(const pl_doctor_process *p, pl_str *out)
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
    size_t from = out->bytes;
    pl_str_printf(out, "  machine: %s of memory, %s available, %s of swap; overcommit %s (%s committed of %s)\n",
                  show(p->machine.ram_bytes, text[0]), show(p->machine.available_bytes, text[1]),
                  show(p->machine.swap_bytes, text[2]), overcommit_words(p->overcommit),
                  show(p->committed_bytes, text[3]), show(p->commit_limit_bytes, text[4]));
    pl_str_fold(out, from, PL_TEXT_COLUMNS);
}
