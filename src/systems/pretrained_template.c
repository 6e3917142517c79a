/* The chat template of a pretrained model: the one that generate.template names, else the model's own. */
#include "systems/pretrained.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_scan.h"
#include "chat/template.h"

enum { TEMPLATE_MAX = 16 << 20, CONFIG_BYTES_MAX = 16 << 20, KEY_MAX = 256 };

typedef struct reader {
    pl_json_scan scan;
    pl_error *err;
    pl_text_template *to;
} reader;

static pl_status take_string(reader *r, bool *taken)
{
    char *text = pl_alloc(1, r->scan.bytes + 1);
    if (!text) return pl_fail(r->err, PL_E_NOMEM, "no memory to read the chat template");
    pl_free(r->to->text);
    r->to->text = text;
    *taken = true;
    return pl_json_scan_string(&r->scan, text, r->scan.bytes + 1, &r->to->bytes, r->err);
}

/* {"name": "default", "template": "…"}: the template of another name is taken where none has this one. */
static pl_status read_named(reader *r)
{
    char key[KEY_MAX], name[KEY_MAX] = "";
    size_t n, bytes = 0;
    bool more, taken = false;
    pl_text_template found = {0}, *const to = r->to;
    pl_status status = pl_json_scan_enter(&r->scan, '{', r->err);
    r->to = &found;
    for (bool first = true; status == PL_OK; first = false) {
        status = pl_json_scan_next(&r->scan, '{', first, &more, r->err);
        if (status != PL_OK || !more) break;
        status = pl_json_scan_key(&r->scan, key, sizeof key, &n, r->err);
        const bool is_text = status == PL_OK && pl_json_scan_peek(&r->scan) == '"';
        if (is_text && n == 4 && memcmp(key, "name", 4) == 0)
            status = pl_json_scan_string(&r->scan, name, sizeof name, &bytes, r->err);
        else if (is_text && n == 8 && memcmp(key, "template", 8) == 0)
            status = take_string(r, &taken);
        else if (status == PL_OK)
            status = pl_json_scan_skip(&r->scan, r->err);
    }
    r->to = to;
    const bool is_default = bytes == 7 && memcmp(name, "default", 7) == 0;
    if (status != PL_OK || !is_default || !taken) return pl_free(found.text), status;
    pl_free(to->text);
    to->text = found.text, to->bytes = found.bytes;
    return PL_OK;
}

static pl_status read_member(reader *r)
{
    bool more, taken;
    const char opens = pl_json_scan_peek(&r->scan);
    if (opens == '"') return take_string(r, &taken);
    if (opens != '[') return pl_json_scan_skip(&r->scan, r->err);
    PL_TRY(pl_json_scan_enter(&r->scan, '[', r->err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(&r->scan, '[', first, &more, r->err));
        if (!more) return PL_OK;
        PL_TRY(read_named(r));
    }
}

static pl_status read_config(reader *r)
{
    char key[KEY_MAX];
    size_t n;
    bool more;
    PL_TRY(pl_json_scan_enter(&r->scan, '{', r->err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(&r->scan, '{', first, &more, r->err));
        if (!more) return PL_OK;
        PL_TRY(pl_json_scan_key(&r->scan, key, sizeof key, &n, r->err));
        const bool is_ours = n == 13 && memcmp(key, "chat_template", 13) == 0;
        PL_TRY(is_ours ? read_member(r) : pl_json_scan_skip(&r->scan, r->err));
    }
}

static pl_status take_config(const char *path, pl_text_template *to, pl_error *err)
{
    char *text;
    size_t bytes;
    PL_TRY(pl_file_read_all(path, CONFIG_BYTES_MAX, &text, &bytes, err));
    reader r = {{.name = path, .text = text, .bytes = bytes}, err, to};
    to->name = path;
    const pl_status status = read_config(&r);
    pl_free(text);
    return status;
}

static pl_status take_file(const char *path, pl_text_template *to, pl_error *err)
{
    to->name = path;
    return pl_file_read_text(path, TEMPLATE_MAX, &to->text, &to->bytes, err);
}

static pl_status take_gguf(const pl_gguf *file, pl_text_template *to, pl_error *err)
{
    const pl_gguf_value *v = pl_gguf_find(file, "tokenizer.chat_template");
    if (!v) return PL_OK;
    if (v->longest_bytes > TEMPLATE_MAX)
        return pl_fail(err, PL_E_DATA, "%s: its chat template has more than 16 MiB", to->name);
    to->text = pl_alloc(1, v->longest_bytes + 1);
    if (!to->text) return pl_fail(err, PL_E_NOMEM, "no memory to read the chat template");
    to->bytes = v->longest_bytes;
    return pl_gguf_string(file, v, to->text, err);
}

static pl_status take_built_in(const char *name, pl_text_template *to, pl_error *err)
{
    const char *text = pl_chat_built_in(name);
    to->name = name;
    to->bytes = strlen(text);
    to->text = pl_alloc(1, to->bytes + 1);
    if (!to->text) return pl_fail(err, PL_E_NOMEM, "no memory for the chat template");
    memcpy(to->text, text, to->bytes + 1);
    return PL_OK;
}

pl_status pl_pretrained_take_template(const pl_pretrained *p, pl_text_template *to, pl_error *err)
{
    const char *file = pl_pretrained_path(p, PL_PRETRAINED_CHAT_TEMPLATE),
               *config = pl_pretrained_path(p, PL_PRETRAINED_TOKENIZER_CONFIG);
    to->name = pl_pretrained_file_path(p, 0);
    if (pl_pretrained_gguf(p)) return take_gguf(pl_pretrained_gguf(p), to, err);
    if (file) return take_file(file, to, err);
    return config ? take_config(config, to, err) : PL_OK;
}

static pl_status refuse(const char *source, pl_error *err)
{
    char names[256];
    size_t used = 0;
    const char *name;
    for (size_t i = 0; (name = pl_chat_built_in_name(i)) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name);
    return pl_fail(err, PL_E_DATA,
                   "%.300s: the model comes without a chat template; name the one that it was trained with by "
                   "`generate.template`: %s, or a file",
                   source, names);
}

pl_status pl_pretrained_load_template(const pl_pretrained *p, const pl_config *c, pl_text_template *to, pl_error *err)
{
    const char *path = c->generate.template.path;
    const pl_config_chat_template_kind kind = c->generate.template.kind;
    if (kind == PL_CONFIG_TEMPLATE_FILE) return take_file(path, to, err);
    if (kind != PL_CONFIG_TEMPLATE_MODEL) return take_built_in(pl_chat_built_in_name((size_t)kind - 1), to, err);
    PL_TRY(pl_pretrained_take_template(p, to, err));
    return to->text ? PL_OK : refuse(c->model.source, err);
}
