/* plimsoll synth texts: texts of data/pages/grammar.h as files of the forms that the encoding of pages reads. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "data/pages/grammar.h"
#include "plimsoll/synth.h"

enum { FILL_BYTES = 64 * 1024 };

pl_synth_texts_options pl_synth_texts_default(void)
{
    return (pl_synth_texts_options){.count = 10000, .form = PL_SYNTH_LINES, .seed = 1};
}

/* In a line a text has no place for ends of lines. */
static void add_line(pl_str *out, char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\n' || text[i] == '\r') text[i] = ' ';
    pl_str_append_bytes(out, text, bytes);
    pl_str_append(out, "\n");
}

static void add_object(pl_str *out, uint64_t id, const char *text, size_t bytes)
{
    pl_json j = pl_json_begin(out, true);
    pl_json_object(&j);
    pl_json_kv_uint(&j, "id", id);
    pl_json_key(&j, "text");
    pl_json_string_bytes(&j, text, bytes);
    pl_json_object_end(&j);
    pl_str_append(out, "\n");
}

static void add_record(pl_str *out, uint64_t id, const char *text, size_t bytes)
{
    pl_str_uint(out, id);
    pl_str_append(out, ",\"");
    for (size_t i = 0; i < bytes; i++)
        pl_str_append_bytes(out, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    pl_str_append(out, "\"\r\n");
}

static void add_text(const pl_synth_texts_options *o, pl_str *out, uint64_t id)
{
    char text[PL_GRAMMAR_TEXT_BYTES];
    const size_t bytes = pl_grammar_text(o->seed, id, text);
    if (o->form == PL_SYNTH_JSONL)
        add_object(out, id, text, bytes);
    else if (o->form == PL_SYNTH_CSV)
        add_record(out, id, text, bytes);
    else
        add_line(out, text, bytes);
}

static pl_status write_texts(const pl_synth_texts_options *o, pl_file_writer *w, pl_str *out, pl_error *err)
{
    if (o->form == PL_SYNTH_CSV) pl_str_append(out, "id,text\r\n");
    for (uint64_t id = 0; id < o->count; id++) {
        add_text(o, out, id);
        if (out->failed) return pl_fail(err, PL_E_NOMEM, "no memory to make texts");
        if (out->bytes < FILL_BYTES && id + 1 < o->count) continue;
        PL_TRY(pl_file_write(w, out->data, out->bytes, err));
        pl_str_clear(out);
    }
    return pl_file_commit(w, err);
}

pl_status pl_synth_texts(const char *path, const pl_synth_texts_options *o, pl_error *err)
{
    pl_str out = {0};
    if (o->count == 0) return pl_fail(err, PL_E_USAGE, "no texts were asked for; there can be 1 and more");
    pl_file_writer *w = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "no memory to make texts");
    pl_status status = pl_file_create(w, path, err);
    if (status == PL_OK) status = write_texts(o, w, &out, err);
    pl_file_abandon(w);
    pl_str_deinit(&out);
    pl_free(w);
    return status;
}
