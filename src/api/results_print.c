/* What is in a file of results, as a table or as JSON (schema plimsoll.results/1, docs/results.md). */
#include <inttypes.h>
#include <stdio.h>

#include "api/results.h"
#include "base/json.h"
#include "base/units.h"
#include "report/table.h"

static void print_shape(pl_table *t, const pl_results_dataset *d)
{
    char text[PL_TABLE_CELL_BYTES];
    size_t used = 0;
    for (uint32_t i = 0; i < d->rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, i ? "," : "", d->shape[i]);
    pl_table_cell(t, "[%s]", text);
}

static double percent(uint64_t part, uint64_t of) { return of ? 100.0 * (double)part / (double)of : 100; }

static void print_head(pl_str *out, const pl_results_summary *s)
{
    char done[32], all[32];
    pl_str_printf(out, "form      %s\n", s->form);
    if (s->whole)
        pl_str_printf(out, "part      %" PRIu64 " to %" PRIu64 " of %" PRIu64 "\n", s->first, s->first + s->share - 1,
                      s->whole);
    pl_str_printf(out, "finished  %" PRIu64 " of %" PRIu64 " blocks, %s of %s (%.1f %%)\n", s->done, s->blocks,
                  pl_format_bytes(s->done_bytes, done, sizeof done), pl_format_bytes(s->bytes, all, sizeof all),
                  percent(s->done_bytes, s->bytes));
    if (s->damaged_marks)
        pl_str_printf(out, "damaged   %" PRIu64 " mark%s: those blocks are made again when the run goes on\n",
                      s->damaged_marks, pl_plural(s->damaged_marks));
    pl_str_append(out, "\n");
}

static void print_table(pl_str *out, const pl_results *r, const pl_results_summary *s)
{
    for (pl_table t = pl_table_begin(out, "lllrrr"); pl_table_pass(&t);) {
        static const char *const heads[] = {"dataset", "type", "shape", "bytes", "blocks", "finished"};
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) pl_table_cell(&t, "%s", heads[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < s->datasets; i++) {
            pl_results_dataset d = pl_results_at(r, i);
            pl_table_cell(&t, "%s", d.name);
            pl_table_cell(&t, "%s", d.dtype);
            print_shape(&t, &d);
            pl_table_count(&t, d.bytes);
            if (d.blocks) {
                pl_table_count(&t, d.blocks);
                pl_table_count(&t, d.done);
            } else {
                pl_table_cell(&t, "-");
                pl_table_cell(&t, "constant");
            }
            pl_table_end_row(&t);
        }
    }
}

static void write_dataset(pl_json *j, const pl_results_dataset *d)
{
    pl_json_object(j);
    pl_json_kv_string(j, "name", d->name);
    pl_json_kv_string(j, "dtype", d->dtype);
    pl_json_key(j, "shape");
    pl_json_array(j);
    for (uint32_t i = 0; i < d->rank; i++) pl_json_uint(j, d->shape[i]);
    pl_json_array_end(j);
    pl_json_key(j, "axes");
    pl_json_array(j);
    for (uint32_t i = 0; i < d->axes; i++) pl_json_string(j, d->axis[i]);
    pl_json_array_end(j);
    pl_json_kv_uint(j, "bytes", d->bytes);
    pl_json_kv_uint(j, "blocks", d->blocks);
    pl_json_kv_uint(j, "done", d->done);
    pl_json_object_end(j);
}

static void write_json(pl_str *out, const pl_results *r, const pl_results_summary *s)
{
    pl_json j = pl_json_document(out, false, "plimsoll.results/1");
    pl_json_kv_string(&j, "form", s->form);
    pl_json_kv_string(&j, "made_by", s->text);
    pl_json_kv_uint_if(&j, s->whole > 0, "first", s->first);
    pl_json_kv_uint_if(&j, s->whole > 0, "share", s->share);
    pl_json_kv_uint_if(&j, s->whole > 0, "whole", s->whole);
    pl_json_kv_uint(&j, "blocks", s->blocks);
    pl_json_kv_uint(&j, "done", s->done);
    pl_json_kv_uint(&j, "bytes", s->bytes);
    pl_json_kv_uint(&j, "done_bytes", s->done_bytes);
    pl_json_kv_uint(&j, "damaged_marks", s->damaged_marks);
    pl_json_key(&j, "datasets");
    pl_json_array(&j);
    for (size_t i = 0; i < s->datasets; i++) {
        pl_results_dataset d = pl_results_at(r, i);
        write_dataset(&j, &d);
    }
    pl_json_array_end(&j);
    pl_json_document_end(&j);
}

pl_status pl_results_print(const pl_results *r, pl_results_form form, char **text, size_t *bytes, pl_error *err)
{
    const pl_results_summary s = pl_results_summarize(r);
    pl_str out = {0};
    *text = NULL;
    if (form == PL_RESULTS_JSON) {
        write_json(&out, r, &s);
    } else {
        print_head(&out, &s);
        print_table(&out, r, &s);
    }
    if (out.failed) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "no memory to print what is in the results");
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}
