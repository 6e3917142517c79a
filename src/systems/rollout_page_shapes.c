/* Planned against measured, a row for each shape of operators: each has a plan and processes of its own. */
#include <inttypes.h>

#include "base/units.h"
#include "systems/rollout_page.h"

enum { OPEN_ROWS = 24 };

/* What the processes of a shape told; of several shapes, the largest peaks and the sums. */
typedef struct told {
    uint64_t processes, odd, states;
    uint64_t planned_bytes, peak_bytes; /* of the last process */
    double seconds;
} told;

static told told_of(const pl_rollout_page *p, uint32_t group)
{
    told t = {0};
    for (size_t i = 0; i < p->wish->told_count; i++) {
        const pl_process_told *one = &p->wish->told[i];
        if (one->group != group) continue;
        t.processes++;
        t.odd += !one->as_planned;
        t.planned_bytes = one->planned_bytes;
        t.peak_bytes = one->peak_bytes;
        t.states += one->items;
        t.seconds += one->seconds;
    }
    return t;
}

static void add_rate(pl_doc *d, const told *t)
{
    t->seconds > 0 && t->states ? pl_doc_real(d, (double)t->states / t->seconds) : pl_doc_unknown(d);
}

static uint32_t count_done(const pl_rollout_page *p, uint32_t group)
{
    const pl_space_groups *g = &p->d->groups;
    uint32_t done = 0;
    for (uint32_t i = g->first[group]; i < g->first[group + 1]; i++)
        done += p->done[pl_space_groups_point(g, i) - p->d->setup.first];
    return done;
}

/* A shape that nothing was done for yet has nothing to show. */
static bool is_shown(const pl_rollout_page *p, uint32_t group)
{
    return told_of(p, group).processes || count_done(p, group);
}

static void add_shape(const pl_rollout_page *p, uint32_t group)
{
    const pl_space_groups *g = &p->d->groups;
    const told t = told_of(p, group);
    pl_str words = {0};
    char done[32], all[32];
    pl_rollout_page_words(p, pl_space_groups_point(g, g->first[group]) - p->d->setup.first, PL_ROLLOUT_WORDS_SHAPE,
                          &words);
    pl_doc_row(p->doc, t.odd ? PL_DOC_BAD : 0);
    pl_doc_text(p->doc, pl_str_text(&words), words.bytes);
    pl_doc_words(p->doc, "%s of %s", pl_format_count(count_done(p, group), done, sizeof done),
                 pl_format_count(g->first[group + 1] - g->first[group], all, sizeof all));
    if (t.processes) {
        pl_doc_count(p->doc, t.planned_bytes);
        pl_doc_count(p->doc, t.peak_bytes);
        pl_doc_difference(p->doc, (int64_t)(t.peak_bytes - t.planned_bytes));
        add_rate(p->doc, &t);
        pl_doc_count(p->doc, t.processes);
    }
    pl_doc_row_end(p->doc);
    p->doc->body.failed |= words.failed;
    pl_str_deinit(&words);
}

static void add_table(const pl_rollout_page *p, uint32_t shown)
{
    static const pl_doc_column columns[] = {{NULL, ""},
                                            {NULL, "finished"},
                                            {NULL, "planned", PL_DOC_EXACT},
                                            {NULL, "measured", PL_DOC_EXACT},
                                            {NULL, "difference", PL_DOC_DIFFERENCE},
                                            {NULL, "states/s", PL_DOC_RATE},
                                            {NULL, "processes", PL_DOC_COUNT}};
    if (shown > OPEN_ROWS) pl_doc_section_folded(p->doc, "all of them");
    pl_doc_table(p->doc, NULL, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < p->d->groups.groups; i++)
        if (is_shown(p, i)) add_shape(p, i);
    pl_doc_table_end(p->doc);
    if (shown > OPEN_ROWS) pl_doc_section_end(p->doc);
}

static void add_cards(const pl_rollout_page *p)
{
    told sum = {0};
    char text[48];
    for (uint32_t i = 0; i < p->d->groups.groups; i++) {
        const told t = told_of(p, i);
        if (t.planned_bytes > sum.planned_bytes) sum.planned_bytes = t.planned_bytes;
        if (t.peak_bytes > sum.peak_bytes) sum.peak_bytes = t.peak_bytes;
        sum.states += t.states, sum.seconds += t.seconds, sum.processes += t.processes, sum.odd += t.odd;
    }
    if (!sum.processes) return;
    pl_doc_card(p->doc, pl_format_bytes(sum.planned_bytes, text, sizeof text), "largest peak, planned");
    pl_doc_card(p->doc, pl_format_bytes(sum.peak_bytes, text, sizeof text), "largest peak, measured");
    if (sum.seconds > 0 && sum.states)
        pl_doc_card(p->doc, pl_format_rate((double)sum.states / sum.seconds, text, sizeof text),
                    "states a second, over all processes");
    pl_doc_card(p->doc, sum.odd ? "not as planned" : "as planned", "of %" PRIu64 " process%s", sum.processes,
                sum.processes == 1 ? "" : "es");
}

void pl_rollout_page_shapes(const pl_rollout_page *p)
{
    const uint32_t groups = p->d->groups.groups;
    uint32_t shown = 0;
    char text[32];
    for (uint32_t i = 0; i < groups; i++) shown += is_shown(p, i);
    pl_doc_section(p->doc, "Memory, planned and measured");
    pl_doc_say(p->doc, 0, "Operators of one shape share a plan and a process. There %s %s shape%s%s",
               groups == 1 ? "is" : "are", pl_format_count(groups, text, sizeof text), pl_plural(groups),
               shown < groups ? "; those not begun are left out." : ".");
    pl_doc_say(p->doc, 0, "%s",
               p->wish->told_count ? "Bytes, of the last process of each shape: planned for the process, and the "
                                     "kernel's own mark of its peak."
                                   : "What the processes planned and measured is not known: there is no "
                                     "NAME.processes.jsonl beside the results.");
    add_cards(p);
    add_table(p, shown);
    pl_doc_section_end(p->doc);
}
