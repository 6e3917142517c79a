/* Lists of records of texts: what may stand in one, and how they are printed. In the file a list is a sequence of
 * mappings, in memory a count and an array of structs of arrays of characters (RECORD in sections.def). */
#include <stdio.h>
#include <string.h>

#include "config/schema.h"

int64_t pl_config_record_count(const void *value)
{
    int64_t count;
    memcpy(&count, value, sizeof count);
    return count;
}

const char *pl_config_record_text(const pl_config_key *key, const void *value, int64_t i, const pl_config_field *field)
{
    return (const char *)value + sizeof(int64_t) + (size_t)i * key->item_bytes + field->offset;
}

void pl_config_print_record_path(const pl_config_key *key, int64_t i, const pl_config_field *field,
                                 pl_config_record_path path)
{
    snprintf(path, sizeof(pl_config_record_path), "%s[%d]%s%s", key->path, (int)i + 1, field ? "." : "",
             field ? field->name : "");
}

/* ---- reading ---- */

/* A folder can have this name: the run of a flight that is left out is in one. */
bool pl_config_is_folder_name(const char *text)
{
    if (!*text || *text == '.' || *text == '-') return false;
    for (; *text; text++) {
        const bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (!letter && !(*text >= '0' && *text <= '9') && !strchr("_.-", *text)) return false;
    }
    return true;
}

pl_status pl_config_parse_field(const pl_config_key *key, int64_t i, const pl_config_field *field, pl_config_scalar s,
                                void *value, const char *where, pl_error *err)
{
    pl_config_record_path path;
    char shown[64], *to = (char *)pl_config_record_text(key, value, i, field);
    pl_config_print_record_path(key, i, field, path);
    if (s.bytes == 0 || pl_config_is_null(s))
        return pl_fail(err, PL_E_CONFIG, "%s: %s has no value; give %s", where, path,
                       field == key->fields ? "a name" : "a path");
    const pl_config_key text = {.path = path, .type = PL_CONFIG_TEXT, .bytes = field->bytes};
    PL_TRY(pl_config_parse_value(&text, s, to, where, err));
    if (field != key->fields || pl_config_is_folder_name(to)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: %s \"%s\" is no name of a folder; take letters, digits, _ and, not in front, - and .", where,
                   path, pl_config_shown(s.text, s.bytes, shown));
}

pl_status pl_config_close_record(const pl_config_key *key, uint32_t given, void *value, const char *where,
                                 pl_error *err)
{
    pl_config_record_path path;
    const int64_t last = pl_config_record_count(value), count = last + 1;
    const char *name = pl_config_record_text(key, value, last, key->fields);
    pl_config_print_record_path(key, last, NULL, path);
    for (size_t f = 0; f < key->field_count; f++)
        if (!(given >> f & 1))
            return pl_fail(err, PL_E_CONFIG, "%s: %s has no %s; write \"%s: …\" in it", where, path,
                           key->fields[f].name, key->fields[f].name);
    for (int64_t i = 0; i < last; i++)
        if (strcmp(pl_config_record_text(key, value, i, key->fields), name) == 0)
            return pl_fail(err, PL_E_CONFIG, "%s: %s and %s[%d] are both called %s; give each a name of its own", where,
                           path, key->path, (int)i + 1, name);
    memcpy(value, &count, sizeof count);
    return PL_OK;
}

bool pl_config_same_record_names(const pl_config_key *key, const void *a, const void *b)
{
    const int64_t count = pl_config_record_count(a);
    if (count != pl_config_record_count(b)) return false;
    for (int64_t i = 0; i < count; i++)
        if (strcmp(pl_config_record_text(key, a, i, key->fields), pl_config_record_text(key, b, i, key->fields)) != 0)
            return false;
    return true;
}

/* ---- printing ---- */

static void print_field(const pl_config_key *key, const void *value, int64_t i, const pl_config_field *field,
                        pl_str *out)
{
    pl_str_printf(out, "%s: ", field->name);
    pl_config_print_text(pl_config_record_text(key, value, i, field), out);
}

void pl_config_print_records(const pl_config_key *key, const void *value, uint32_t depth, pl_str *out)
{
    pl_str_append(out, "\n");
    for (int64_t i = 0; i < pl_config_record_count(value); i++)
        for (size_t f = 0; f < key->field_count; f++) {
            pl_str_pad(out, ' ', 2 * depth);
            pl_str_append(out, f == 0 ? "  - " : "    ");
            print_field(key, value, i, &key->fields[f], out);
            pl_str_append(out, "\n");
        }
}

void pl_config_print_records_in_line(const pl_config_key *key, const void *value, pl_str *out)
{
    pl_str_append(out, "[");
    for (int64_t i = 0; i < pl_config_record_count(value); i++) {
        pl_str_append(out, i ? ", {" : "{");
        for (size_t f = 0; f < key->field_count; f++) {
            pl_str_append(out, f ? ", " : "");
            print_field(key, value, i, &key->fields[f], out);
        }
        pl_str_append(out, "}");
    }
    pl_str_append(out, "]");
}

void pl_config_print_record_names(const pl_config_key *key, const void *value, pl_str *out)
{
    pl_str_append(out, "[");
    for (int64_t i = 0; i < pl_config_record_count(value); i++)
        pl_str_printf(out, "%s%s", i ? ", " : "", pl_config_record_text(key, value, i, key->fields));
    pl_str_append(out, "]");
}

void pl_config_json_records(const pl_config_key *key, const void *value, pl_json *json)
{
    pl_json_array(json);
    for (int64_t i = 0; i < pl_config_record_count(value); i++) {
        pl_json_object(json);
        for (size_t f = 0; f < key->field_count; f++)
            pl_json_kv_string(json, key->fields[f].name, pl_config_record_text(key, value, i, &key->fields[f]));
        pl_json_object_end(json);
    }
    pl_json_array_end(json);
}
