/* The config of the public header: the typed one of src/config on the heap. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "base/file.h"
#include "base/json.h"

pl_config *pl_config_create(void)
{
    pl_config *c = pl_alloc(1, sizeof *c);
    if (c) pl_config_default(c);
    return c;
}

void pl_config_destroy(pl_config *c) { pl_free(c); }

pl_status pl_give_text(pl_str *s, char **text, size_t *bytes, pl_error *err)
{
    *text = NULL;
    if (!s->data) pl_str_append(s, "");
    if (s->failed) {
        pl_str_deinit(s);
        return pl_fail(err, PL_E_NOMEM, "no memory for the text");
    }
    *text = s->data;
    if (bytes) *bytes = s->bytes;
    return PL_OK;
}

void pl_text_free(char *text) { pl_free(text); }

pl_status pl_text_save(const char *path, const char *text, size_t bytes, pl_error *err)
{
    return pl_file_write_all(path, text, bytes, err);
}

static pl_status copy_all(pl_file_writer *w, int from, uint64_t bytes, pl_error *err)
{
    char block[4096];
    for (uint64_t at = 0; at < bytes;) {
        size_t n = bytes - at < sizeof block ? (size_t)(bytes - at) : sizeof block;
        PL_TRY(pl_file_read_at(from, "the file to copy", at, block, n, err));
        PL_TRY(pl_file_write(w, block, n, err));
        at += n;
    }
    return PL_OK;
}

pl_status pl_text_copy(const char *path, int descriptor, pl_error *err)
{
    struct stat st;
    pl_file_writer w;
    if (fstat(descriptor, &st) != 0) return pl_fail(err, PL_E_USAGE, "%s: nothing to copy: %s", path, strerror(errno));
    PL_TRY(pl_file_create(&w, path, err));
    pl_status status = copy_all(&w, descriptor, (uint64_t)st.st_size, err);
    if (status == PL_OK) return pl_file_commit(&w, err);
    pl_file_abandon(&w);
    return status;
}

static void print_json(const pl_config *c, pl_str *out)
{
    pl_json j = pl_json_begin(out, false);
    pl_config_json(c, &j);
    pl_str_append(out, "\n");
}

pl_status pl_config_text(const pl_config *c, pl_config_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    switch (form) {
    case PL_CONFIG_YAML:
        pl_config_print_yaml(c, &s);
        break;
    case PL_CONFIG_JSON:
        print_json(c, &s);
        break;
    case PL_CONFIG_HELP:
        pl_config_print_help(&s);
        break;
    case PL_CONFIG_MARKDOWN:
        pl_config_print_markdown(&s);
        break;
    case PL_CONFIG_SCHEMA:
        pl_config_print_json_schema(&s);
        break;
    }
    return pl_give_text(&s, text, bytes, err);
}
