#include "report/contexts.h"

#include <inttypes.h>

#include "base/units.h"

static void add_row(const pl_contexts *c, const pl_context *row, pl_doc *d)
{
    const bool is_own = row == &c->row[c->own];
    pl_doc_row(d, (is_own ? PL_DOC_STRONG : 0) | (row->fits ? 0 : PL_DOC_BAD));
    pl_doc_count(d, row->length);
    pl_doc_count(d, row->weight_bytes);
    pl_doc_count(d, row->cache_bytes);
    pl_doc_count(d, row->other_bytes);
    pl_doc_count(d, row->charged_bytes);
    pl_doc_real(d, 1 / row->item_seconds);
    pl_doc_key_bool(d, "fits", row->fits);
    pl_doc_words(d, "%s%s", is_own ? "this plan" : "", row->fits ? "" : is_own ? ", too large" : "too large");
    pl_doc_row_end(d);
}

static void say(const pl_contexts *c, const pl_words *words, pl_doc *d)
{
    char room[32], time[32];
    pl_doc_say(d, 0, "There are %s: %s.", pl_format_bytes(c->room_bytes, room, sizeof room), c->room);
    pl_doc_say(d, 0,
               "The rate is that of a full context. A prompt of %" PRIu64
               " %s takes about %s before the first %s comes. "
               "Both are %s.",
               c->prompt, words->items, pl_format_seconds(c->prompt_seconds, time, sizeof time), words->item, c->basis);
}

static void add_table(const pl_contexts *c, const pl_words *words, pl_doc *d)
{
    const pl_doc_column columns[] = {{"length", "context", PL_DOC_COUNT},
                                     {"weight_bytes", "weights", PL_DOC_SIZE},
                                     {"cache_bytes", "cache", PL_DOC_SIZE},
                                     {"other_bytes", "rest of arena", PL_DOC_SIZE},
                                     {"charged_bytes", "charged", PL_DOC_SIZE},
                                     {"items_per_second", words->rate, PL_DOC_RATE},
                                     {NULL, "", .is_remark = true}};
    pl_doc_table(d, "rows", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->count; i++) add_row(c, &c->row[i], d);
    pl_doc_table_end(d);
}

void pl_report_add_contexts(const pl_plan *p, pl_doc *d)
{
    const pl_contexts *c = p->contexts;
    const pl_words *words = pl_plan_words_of(p);
    pl_doc_object(d, "contexts");
    pl_doc_section(d, "Other contexts");
    add_table(c, words, d);
    say(c, words, d);
    pl_doc_section_end(d);
    pl_doc_key_count(d, "room_bytes", c->room_bytes);
    pl_doc_key_count(d, "prompt_length", c->prompt);
    pl_doc_key_real(d, "first_item_seconds", c->prompt_seconds);
    pl_doc_key_words(d, "basis", c->basis);
    pl_doc_object_end(d);
}
