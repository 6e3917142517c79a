#include "data/text/form.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json_read.h"
#include "base/utf8.h"

/* LINES: so many that are objects are no chance. */
enum { HEAD_BYTES = 256 << 10, LINES = 2 };

/* ---- compressed ---- */

/* None of them is UTF-8, or begins so by chance. */
static const struct compressed {
    const char *magic;
    size_t bytes;
    const char *name, *unpack;
} formats[] = {
    {"\x1f\x8b\x08", 3, "gzip", "gzip -dc FILE > TEXT"},
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

/* *is_json is false where it is blank, too; is_blank tells. */
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

/* The first lines of the text that are not blank, each an object. The last one of the head may be cut off. */
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

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

static pl_status check_jsonl(const char *path, const char *head, size_t bytes, pl_error *err)
{
    const size_t mark = pl_utf8_mark(head, bytes);
    bool is_jsonl = ends_with(path, ".jsonl") || ends_with(path, ".ndjson");
    if (!is_jsonl && are_objects(head + mark, bytes - mark, &is_jsonl) != PL_OK)
        return pl_fail(err, PL_E_NOMEM, "%.350s: no memory to look at it", path);
    if (!is_jsonl) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.350s: holds lines of JSON, and would be learnt with its keys and quotes; give the texts alone, "
                   "for one: jq -r .text FILE > FILE.txt",
                   path);
}

static pl_status check_csv(const char *path, pl_error *err)
{
    if (!ends_with(path, ".csv")) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.350s: is a table (CSV), and would be learnt with its commas and quotes; give the column with the "
                   "texts as a file of its own, named .txt",
                   path);
}

static pl_status check(const char *path, const char *head, size_t bytes, pl_error *err)
{
    PL_TRY(check_compressed(path, head, bytes, err));
    PL_TRY(check_csv(path, err));
    return check_jsonl(path, head, bytes, err);
}

pl_status pl_text_check_form(const char *path, pl_error *err)
{
    uint64_t bytes;
    int fd;
    if (pl_file_open(path, &fd, &bytes, NULL) != PL_OK) return PL_OK;
    if (bytes > HEAD_BYTES) bytes = HEAD_BYTES;
    char *head = pl_alloc((size_t)bytes + 1, 1);
    pl_status status = head ? pl_file_read_at(fd, path, 0, head, (size_t)bytes, err)
                            : pl_fail(err, PL_E_NOMEM, "%.350s: no memory to look at it", path);
    if (status == PL_OK) status = check(path, head, (size_t)bytes, err);
    pl_free(head);
    close(fd);
    return status;
}
