#include "texts/form.h"

#include <string.h>

#include "base/json_read.h"
#include "base/utf8.h"

/* As many objects as this are not chance. */
enum { LINES = 2 };

/* ---- compressed ---- */

/* No text begins so: these are not UTF-8, or do not occur by chance. */
static const struct compressed {
    const char *magic;
    size_t bytes;
    const char *name, *unpack;
} formats[] = {
    {"\x28\xb5\x2f\xfd", 4, "zstd", "zstd -dc FILE > TEXT"},
    {"\xfd"
     "7zXZ\0",
     6, "xz", "xz -dc FILE > TEXT"},
    {"BZh91AY&SY", 10, "bzip2", "bzip2 -dc FILE > TEXT"},
    {"PK\3\4", 4, "zip", "unzip FILE"},
};

static pl_status check_compressed(const char *path, const char *head, size_t bytes, pl_error *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct compressed *f = &formats[i];
        if (bytes >= f->bytes && memcmp(head, f->magic, f->bytes) == 0)
            return pl_fail(
                err, PL_E_DATA,
                "%.350s: is compressed (%s), and would be learned as compressed bytes; unpack it (%s) and give "
                "what comes out",
                path, f->name, f->unpack);
    }
    return PL_OK;
}

/* ---- lines of JSON ---- */

/* *is_json is also false for a blank line; is_blank tells. */
static pl_status look_at_line(const char *line, size_t bytes, bool *is_blank, bool *is_object)
{
    json_error_t ignored;
    json_t *tree;
    size_t at = 0;
    while (at < bytes && strchr(" \t\r", line[at])) at++;
    *is_blank = at == bytes;
    *is_object = false;
    if (*is_blank || line[at] != '{') return PL_OK;
    const pl_status status = pl_json_read(line, bytes, 0, &tree, &ignored);
    if (status != PL_OK) return status == PL_E_NOMEM ? status : PL_OK;
    *is_object = json_is_object(tree);
    json_decref(tree);
    return PL_OK;
}

/* Are the first lines of the text that are not blank objects? The last one of the head may be cut off. */
static pl_status are_objects(const char *head, size_t bytes, bool *are)
{
    int found = 0;
    bool is_blank, is_object = true;
    for (const char *end; found < LINES && (end = memchr(head, '\n', bytes)) != NULL; head = end + 1) {
        const size_t line = (size_t)(end - head);
        PL_TRY(look_at_line(head, line, &is_blank, &is_object));
        if (!is_blank && !is_object) break;
        found += is_object;
        bytes -= line + 1;
    }
    *are = found == LINES;
    return PL_OK;
}

/* ---- all ---- */

static bool has(const char *head, size_t bytes, const char *what)
{
    return memmem(head, bytes, what, strlen(what)) != NULL;
}

pl_status pl_text_form_check(const char *path, const uint8_t *head, size_t bytes, pl_error *err)
{
    if (bytes >= 4 && memcmp(head, "PAR1", 4) == 0)
        return pl_fail(err, PL_E_DATA, "%.350s: is Parquet, which is not read; convert it to JSON lines or CSV", path);
    return check_compressed(path, (const char *)head, bytes, err);
}

pl_status pl_text_form_find(const char *path, const uint8_t *bytes_of_head, size_t bytes, pl_texts_form *form,
                            pl_error *err)
{
    const char *head = (const char *)bytes_of_head;
    const size_t mark = pl_utf8_mark(head, bytes);
    const pl_text_ending *named = pl_text_ending_of(path);
    bool is_jsonl = named && named->form == PL_TEXTS_JSONL;
    *form = PL_TEXTS_WHOLE;
    if (named && named->form == PL_TEXTS_CSV) return *form = PL_TEXTS_CSV, PL_OK;
    if (named && named->form == PL_TEXTS_SQUAD && has(head, bytes, "\"data\"") && has(head, bytes, "\"paragraphs\""))
        return *form = PL_TEXTS_SQUAD, PL_OK;
    if (!is_jsonl && are_objects(head + mark, bytes - mark, &is_jsonl) != PL_OK)
        return pl_fail(err, PL_E_NOMEM, "%.350s: no memory to look at it", path);
    if (is_jsonl) *form = PL_TEXTS_JSONL;
    return PL_OK;
}
