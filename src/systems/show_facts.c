/* Facts about results: a name and a value each, some of them keys of the config. */
#include <stdarg.h>

#include "config/schema.h"
#include "systems/system.h"

void pl_system_show_facts(pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, ""}};
    pl_doc_table(d, NULL, columns, 2);
}

void pl_system_show_fact(pl_doc *d, const char *name, const char *fmt, ...)
{
    pl_str value = {0};
    va_list args;
    va_start(args, fmt);
    pl_str_vprintf(&value, fmt, args);
    va_end(args);
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", name);
    pl_doc_text(d, pl_str_text(&value), value.bytes);
    pl_doc_row_end(d);
    d->body.failed |= value.failed;
    pl_str_deinit(&value);
}

void pl_system_show_key(pl_doc *d, const pl_config *c, const char *name, const char *path)
{
    pl_str value = {0};
    const pl_config_key *key = pl_config_find(path);
    pl_config_print_value(key, pl_config_value_of(c, key), &value);
    pl_system_show_fact(d, name, "%s", pl_str_text(&value));
    d->body.failed |= value.failed;
    pl_str_deinit(&value);
}

void pl_system_show_keys(pl_doc *d, const pl_config *c, pl_config_reader by)
{
    pl_doc_section_folded(d, "all that decides the numbers");
    pl_system_show_facts(d);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->flags & (PL_CONFIG_FLAG_MODEL | PL_CONFIG_FLAG_NUMERICS) && pl_config_is_used(c, key) &&
            pl_config_is_read(c, key, by))
            pl_system_show_key(d, c, key->path, key->path);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}
