/* Lists of the report: stacks, what is mapped by name, every mapping, the processes. */
#include <inttypes.h>

#include "doctor/report.h"

enum { SHOWN = 8, MEMBERS_SHOWN = 32 };

static void say_rest(size_t count, size_t shown, const char *how, pl_doc *d)
{
    if (count > shown) pl_doc_say(d, 0, "and %zu more%s", count - shown, how);
}

/* ---- stacks ---- */

static void add_stack(const pl_doctor_stack *s, pl_doc *d)
{
    pl_doc_row(d, 0);
    pl_doc_words(d, s->thread ? "%d" : "?", (int)s->thread);
    if (s->thread)
        pl_doc_key_difference(d, "thread", s->thread);
    else
        pl_doc_key_null(d, "thread");
    pl_doc_words(d, "%s", s->name);
    pl_doc_key_words(d, "found", s->main ? "main" : s->thread ? "stack_pointer" : "guess");
    pl_doc_key_count(d, "begin", s->begin);
    pl_doc_count(d, s->reserved_bytes);
    pl_doc_count(d, s->touched_bytes);
    pl_doc_key_count(d, "swap_bytes", s->swap_bytes);
    pl_doc_words(d, "%s", s->main ? "main stack" : s->thread ? "by stack pointer" : "guess");
    pl_doc_row_end(d);
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

void pl_doctor_add_stacks(const pl_doctor_view *v, bool detailed, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, "thread"},
                                            {"name", "name"},
                                            {"reserved_bytes", "reserved", PL_DOC_EXACT},
                                            {"touched_bytes", "touched", PL_DOC_EXACT},
                                            {NULL, "", .is_remark = true}};
    const size_t limit = detailed ? v->stack_count : SHOWN;
    const pl_doctor_stack *s = NULL;
    pl_doc_section(d, v->stack_count > limit ? "Stacks, the fullest" : "Stacks");
    pl_doc_table(d, "stacks", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < v->stack_count && i < limit; i++) {
        s = detailed ? &v->stack[i] : next_fullest(v, s);
        add_stack(s, d);
    }
    pl_doc_table_end(d);
    say_rest(v->stack_count, limit, " (--all)", d);
    pl_doc_section_end(d);
    pl_doc_key_count(d, "threads_without_stack_pointer", v->threads_unknown);
    pl_doc_key_count(d, "threads_on_other_memory", v->threads_elsewhere);
}

/* ---- what is mapped ---- */

static void add_group(const pl_doctor_group *g, pl_doc *d)
{
    pl_doc_row(d, 0);
    pl_doc_key_words(d, "name", g->name);
    pl_doc_key_words(d, "kind", pl_doctor_kind_word(g->kind));
    pl_doctor_add_row_keys(&g->sum, d);
    pl_doc_count(d, g->sum.reserved_bytes);
    pl_doc_count(d, g->sum.bytes[PL_SMAPS_RSS]);
    pl_doc_count(d, g->sum.bytes[PL_SMAPS_PSS]);
    pl_doc_words(d, "%s", pl_doctor_kind_title(g->kind));
    pl_doc_words(d, "%s", g->name);
    pl_doc_row_end(d);
}

void pl_doctor_add_groups(const pl_doctor_view *v, bool detailed, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, "reserved, MB", PL_DOC_MEGABYTES},
                                            {NULL, "resident, MB", PL_DOC_MEGABYTES},
                                            {NULL, "Pss, MB", PL_DOC_MEGABYTES},
                                            {NULL, "kind"},
                                            {NULL, "name", .is_remark = true}};
    const size_t limit = detailed ? v->group_count : SHOWN;
    pl_doc_section(d, v->group_count > limit ? "Mapped by name, the largest" : "Mapped by name");
    pl_doc_table(d, "names", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < v->group_count && i < limit; i++) add_group(&v->group[i], d);
    pl_doc_table_end(d);
    say_rest(v->group_count, limit, " (--all)", d);
    pl_doc_section_end(d);
    pl_doc_array(d, "malloc_arenas");
    for (size_t i = 0; i < v->arena_count; i++) {
        pl_doc_object(d, NULL);
        pl_doc_key_count(d, "begin", v->arena[i].begin);
        pl_doc_key_count(d, "reserved_bytes", v->arena[i].reserved_bytes);
        pl_doc_key_count(d, "resident_bytes", v->arena[i].resident_bytes);
        pl_doc_object_end(d);
    }
    pl_doc_array_end(d);
}

void pl_doctor_add_maps(const pl_doctor_view *v, pl_doc *d)
{
    static const pl_doc_column columns[] = {
        {NULL, "address"},           {NULL, ""},     {NULL, "reserved", PL_DOC_EXACT}, {NULL, "resident", PL_DOC_EXACT},
        {NULL, "Pss", PL_DOC_EXACT}, {NULL, "kind"}, {NULL, "name", .is_remark = true}};
    pl_doc_section(d, "Every mapping");
    pl_doc_table(d, NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < v->process->map_count; i++) {
        const pl_doctor_map *m = &v->process->map[i];
        pl_doc_row(d, PL_DOC_SHOWN);
        pl_doc_words(d, "%012" PRIxPTR, m->begin);
        pl_doc_words(d, "%s", m->protection);
        pl_doc_count(d, m->end - m->begin);
        pl_doc_count(d, m->bytes[PL_SMAPS_RSS]);
        pl_doc_count(d, m->bytes[PL_SMAPS_PSS]);
        pl_doc_words(d, "%s", pl_doctor_kind_title(v->kind[i]));
        pl_doc_words(d, "%s", m->name);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

/* ---- processes ---- */

void pl_doctor_add_members(const pl_doctor_moment *m, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, "pid"},
                                            {"name", "name"},
                                            {"resident_bytes", "Rss, MB", PL_DOC_MEGABYTES},
                                            {"proportional_bytes", "Pss, MB", PL_DOC_MEGABYTES}};
    pl_doc_section(d, "The processes at that moment");
    pl_doc_say(d, 0, "%zu in all; Pss divides shared pages by their users.", m->member_count);
    pl_doc_table(d, "processes", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < m->member_count; i++) {
        pl_doc_row(d, i < MEMBERS_SHOWN ? 0 : PL_DOC_HIDDEN);
        pl_doc_words(d, "%d", (int)m->member[i].id);
        pl_doc_key_difference(d, "id", m->member[i].id);
        pl_doc_key_difference(d, "parent", m->member[i].parent);
        pl_doc_words(d, "%s", m->member[i].name);
        pl_doc_count(d, m->member[i].resident_bytes);
        pl_doc_count(d, m->member[i].proportional_bytes);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    say_rest(m->member_count, MEMBERS_SHOWN, "", d);
    pl_doc_section_end(d);
}
