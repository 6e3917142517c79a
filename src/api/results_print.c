/* What is in a file of results, as text or as JSON (schema plimsoll.results/1, docs/results.md). */
#include <inttypes.h>
#include <stdio.h>

#include "api/results.h"
#include "base/units.h"
#include "show/render.h"

static double percent(uint64_t part, uint64_t of) { return of ? 100.0 * (double)part / (double)of : 100; }

/* ---- how far it is ---- */

static void begin_fact(const char *name, unsigned flags, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_SHOWN | flags);
    pl_doc_words(d, "%s", name);
}

static void add_facts(const pl_results_summary *s, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, ""}};
    char done[32], all[32];
    pl_doc_table(d, NULL, columns, 2);
    begin_fact("form", 0, d);
    pl_doc_words(d, "%s", s->form);
    pl_doc_row_end(d);
    if (s->whole) {
        begin_fact("part", 0, d);
        pl_doc_words(d, "%" PRIu64 " to %" PRIu64 " of %" PRIu64, s->first, s->first + s->share - 1, s->whole);
        pl_doc_row_end(d);
    }
    begin_fact("finished", 0, d);
    pl_doc_words(d, "%" PRIu64 " of %" PRIu64 " blocks, %s of %s (%.1f %%)", s->done, s->blocks,
                 pl_format_bytes(s->done_bytes, done, sizeof done), pl_format_bytes(s->bytes, all, sizeof all),
                 percent(s->done_bytes, s->bytes));
    pl_doc_row_end(d);
    if (s->damaged_marks) {
        begin_fact("damaged", PL_DOC_BAD, d);
        pl_doc_words(d, "%" PRIu64 " mark%s: those blocks are made again when the run goes on", s->damaged_marks,
                     pl_plural(s->damaged_marks));
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
}

static void add_head(const pl_results_summary *s, pl_doc *d)
{
    pl_doc_key_words(d, "schema", "plimsoll.results/1");
    pl_doc_key_words(d, "form", s->form);
    pl_doc_key_words(d, "made_by", s->text);
    pl_doc_key_count_if(d, s->whole, "first", s->first);
    pl_doc_key_count_if(d, s->whole, "share", s->share);
    pl_doc_key_count_if(d, s->whole, "whole", s->whole);
    pl_doc_key_count(d, "blocks", s->blocks);
    pl_doc_key_count(d, "done", s->done);
    pl_doc_key_count(d, "bytes", s->bytes);
    pl_doc_key_count(d, "done_bytes", s->done_bytes);
    pl_doc_key_count(d, "damaged_marks", s->damaged_marks);
    add_facts(s, d);
}

/* ---- its datasets ---- */

static void add_shape(const pl_results_dataset *set, pl_doc *d)
{
    pl_doc_array(d, "shape");
    for (uint32_t i = 0; i < set->rank; i++) pl_doc_key_count(d, "", set->shape[i]);
    pl_doc_array_end(d);
    pl_str *out = pl_doc_sentence(d, NULL);
    for (uint32_t i = 0; i < set->rank; i++) pl_str_printf(out, "%s%" PRIu64, i ? "," : "[", set->shape[i]);
    pl_str_append(out, set->rank ? "]" : "[]");
    pl_doc_sentence_end(d);
}

/* What is a constant has no blocks. */
static void add_blocks(const pl_results_dataset *set, pl_doc *d)
{
    pl_doc_key_count(d, "blocks", set->blocks);
    pl_doc_key_count(d, "done", set->done);
    set->blocks ? pl_doc_count(d, set->blocks) : pl_doc_unknown(d);
    set->blocks ? pl_doc_count(d, set->done) : pl_doc_words(d, "constant");
}

static void add_dataset(const pl_results_dataset *set, pl_doc *d)
{
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", set->name);
    pl_doc_words(d, "%s", set->dtype);
    add_shape(set, d);
    pl_doc_array(d, "axes");
    for (uint32_t i = 0; i < set->axes; i++) pl_doc_key_words(d, "", set->axis[i]);
    pl_doc_array_end(d);
    pl_doc_count(d, set->bytes);
    add_blocks(set, d);
    pl_doc_row_end(d);
}

static void add_datasets(const pl_results *r, const pl_results_summary *s, pl_doc *d)
{
    static const pl_doc_column columns[] = {{"name", "dataset"},
                                            {"dtype", "type"},
                                            {NULL, "shape"},
                                            {"bytes", "bytes", PL_DOC_EXACT},
                                            {NULL, "blocks", PL_DOC_COUNT},
                                            {NULL, "finished", PL_DOC_COUNT}};
    pl_doc_section(d, "Datasets");
    pl_doc_table(d, "datasets", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->datasets; i++) {
        const pl_results_dataset set = pl_results_at(r, i);
        add_dataset(&set, d);
    }
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

pl_status pl_results_print(const pl_results *r, pl_results_form form, char **text, size_t *bytes, pl_error *err)
{
    const pl_results_summary s = pl_results_summarize(r);
    pl_str out = {0};
    pl_doc d = pl_doc_begin();
    *text = NULL;
    add_head(&s, &d);
    add_datasets(r, &s, &d);
    pl_doc_write(&d, form == PL_RESULTS_JSON ? PL_FORM_JSON : PL_FORM_TEXT, NULL, &out);
    pl_doc_deinit(&d);
    if (out.failed) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "no memory to print what is in the results");
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}
