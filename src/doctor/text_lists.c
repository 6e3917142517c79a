/* Lists of the report: stacks, what is mapped by name, every mapping. */
#include <inttypes.h>

#include "doctor/doctor.h"
#include "report/table.h"

enum { SHOWN = 8 };

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

void pl_doctor_write_stacks(const pl_doctor_view *v, bool detailed, pl_str *out)
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

void pl_doctor_write_groups(const pl_doctor_view *v, bool detailed, pl_str *out)
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

void pl_doctor_write_maps(const pl_doctor_view *v, pl_str *out)
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
