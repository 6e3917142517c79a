/* The config of the public header: the typed one of src/config on the heap. */
#include "api/api.h"
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
