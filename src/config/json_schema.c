/* The table as a JSON Schema (draft 2020-12), for editors that check and complete YAML. It judges one key at a time;
 * contradictions between keys are left to pl_config_check. */
#include <stdio.h>
#include <string.h>

#include "config/schema.h"

static void kv_const(pl_json *json, const char *word)
{
    pl_json_object(json);
    pl_json_kv_string(json, "const", word);
    pl_json_object_end(json);
}

static void int_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_object(json);
    pl_json_kv_string(json, "type", "integer");
    pl_json_kv_int(json, "minimum", key->flags & PL_CONFIG_FLAG_ZERO_IS_AUTO ? 0 : key->min_int);
    pl_json_kv_int(json, "maximum", key->max_int);
    pl_json_object_end(json);
}

static void size_schema(pl_json *json)
{
    pl_json_object(json);
    pl_json_kv_string(json, "type", "string");
    pl_json_kv_string(json, "pattern", "^([0-9]+(\\.[0-9]*)?|\\.[0-9]+) *([kKmMgGtT][iI]?[bB]?|[bB])$");
    pl_json_object_end(json);
}

static void real_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_kv_string(json, "type", "number");
    pl_json_kv_double(json, key->flags & PL_CONFIG_FLAG_OVER_MIN ? "exclusiveMinimum" : "minimum", key->min_real);
    pl_json_kv_double(json, key->flags & PL_CONFIG_FLAG_UNDER_MAX ? "exclusiveMaximum" : "maximum", key->max_real);
}

/* Its own words, and those of other programs. */
static void names_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_key(json, "enum");
    pl_json_array(json);
    for (size_t i = 0; i < key->name_count; i++) pl_json_string(json, key->names[i]);
    for (const pl_config_word *w = pl_config_other_words; w < PL_CONFIG_OTHER_WORDS_END; w++) {
        if (w->key != key || !w->means) continue;
        if (strcmp(w->word, "true") == 0 || strcmp(w->word, "false") == 0)
            pl_json_bool(json, w->word[0] == 't');
        else
            pl_json_string(json, w->word);
    }
    pl_json_array_end(json);
}

static void text_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_kv_string(json, "type", "string");
    pl_json_kv_int(json, "maxLength", key->type == PL_CONFIG_TEXT ? (int64_t)key->bytes - 1 : PL_CONFIG_TEXT_BYTES - 1);
    if (key->type != PL_CONFIG_NAME_OR_PATH) return;
    pl_json_key(json, "anyOf");
    pl_json_array(json);
    pl_json_object(json);
    names_schema(json, key);
    pl_json_object_end(json);
    pl_json_object(json);
    pl_json_kv_string(json, "pattern", "[/.]");
    pl_json_object_end(json);
    pl_json_array_end(json);
}

/* One path, or a list. */
static void paths_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_key(json, "anyOf");
    pl_json_array(json);
    pl_json_object(json);
    text_schema(json, key);
    pl_json_object_end(json);
    pl_json_object(json);
    pl_json_kv_string(json, "type", "array");
    pl_json_key(json, "items");
    pl_json_object(json);
    text_schema(json, key);
    pl_json_object_end(json);
    pl_json_object_end(json);
    pl_json_array_end(json);
}

static void items_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_object(json);
    if (key->names) {
        names_schema(json, key);
    } else {
        real_schema(json, key);
        if (key->flags & PL_CONFIG_FLAG_WHOLE) pl_json_kv_int(json, "multipleOf", 1);
    }
    pl_json_object_end(json);
}

/* A list of names, or one text with commas, as the loader takes both. */
static void set_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_key(json, "anyOf");
    pl_json_array(json);
    pl_json_object(json);
    pl_json_kv_string(json, "type", "array");
    pl_json_key(json, "items");
    items_schema(json, key);
    if (key->type == PL_CONFIG_LIST) {
        pl_json_kv_int(json, "minItems", key->default_list ? key->min_items : 0);
        pl_json_kv_int(json, "maxItems", key->max_items);
        if (key->flags & PL_CONFIG_FLAG_DISTINCT) pl_json_kv_bool(json, "uniqueItems", true);
    }
    pl_json_object_end(json);
    pl_json_object(json);
    pl_json_kv_string(json, "type", "string");
    pl_json_object_end(json);
    pl_json_array_end(json);
}

/* A number, or a word that stands for one. */
static void number_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_key(json, "anyOf");
    pl_json_array(json);
    int_schema(json, key);
    if (key->type == PL_CONFIG_BYTES) size_schema(json);
    if (key->flags & PL_CONFIG_FLAG_AUTO) kv_const(json, "auto");
    if (key->flags & PL_CONFIG_FLAG_NONE) kv_const(json, "none");
    pl_json_array_end(json);
}

/* Each has all of its fields. */
static void record_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_object(json);
    pl_json_kv_string(json, "type", "object");
    pl_json_kv_bool(json, "additionalProperties", false);
    pl_json_key(json, "required");
    pl_json_array(json);
    for (size_t i = 0; i < key->field_count; i++) pl_json_string(json, key->fields[i].name);
    pl_json_array_end(json);
    pl_json_key(json, "properties");
    pl_json_object(json);
    for (size_t i = 0; i < key->field_count; i++) {
        pl_json_key(json, key->fields[i].name);
        pl_json_object(json);
        pl_json_kv_string(json, "type", "string");
        pl_json_kv_int(json, "minLength", 1);
        pl_json_kv_int(json, "maxLength", (int64_t)key->fields[i].bytes - 1);
        if (i == 0) pl_json_kv_string(json, "pattern", "^[A-Za-z0-9_][A-Za-z0-9_.-]*$");
        pl_json_object_end(json);
    }
    pl_json_object_end(json);
    pl_json_object_end(json);
}

static void records_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_kv_string(json, "type", "array");
    pl_json_kv_int(json, "minItems", key->min_items);
    pl_json_kv_int(json, "maxItems", key->max_items);
    pl_json_key(json, "items");
    record_schema(json, key);
}

static void switch_schema(pl_json *json, const pl_config_key *key)
{
    if (!(key->flags & PL_CONFIG_FLAG_AUTO)) {
        pl_json_kv_string(json, "type", "boolean");
        return;
    }
    pl_json_key(json, "enum");
    pl_json_array(json);
    pl_json_bool(json, false);
    pl_json_bool(json, true);
    pl_json_string(json, "auto");
    pl_json_array_end(json);
}

static bool has_other_default(const pl_config_key *key)
{
    for (pl_config_system system = 0; system < PL_SYSTEM_COUNT; system++)
        if (pl_config_find_default(key, system)) return true;
    return false;
}

/* An absent list has no default that could be written; one that depends on model.arch is in the description. */
static void default_schema(pl_json *json, const pl_config_key *key)
{
    pl_config_value by_default;
    if (key->type == PL_CONFIG_RECORDS || has_other_default(key)) return;
    pl_config_default_value(key, pl_config_first_system(), &by_default);
    pl_json_key(json, "default");
    pl_config_json_value(key, &by_default, json);
}

static void description_schema(pl_json *json, const pl_config_key *key)
{
    pl_str text = {0};
    if (has_other_default(key))
        pl_config_describe(key, &text);
    else
        pl_str_append(&text, key->help);
    if (text.failed) json->out->failed = 1;
    pl_json_kv_string(json, "description", pl_str_text(&text));
    pl_str_deinit(&text);
}

static void key_schema(pl_json *json, const pl_config_key *key)
{
    pl_json_key(json, key->name);
    pl_json_object(json);
    description_schema(json, key);
    default_schema(json, key);
    switch (key->type) {
    case PL_CONFIG_INT:
    case PL_CONFIG_BYTES:
        number_schema(json, key);
        break;
    case PL_CONFIG_REAL:
        real_schema(json, key);
        break;
    case PL_CONFIG_BOOL:
        switch_schema(json, key);
        break;
    case PL_CONFIG_ENUM:
        names_schema(json, key);
        break;
    case PL_CONFIG_SET:
    case PL_CONFIG_LIST:
        set_schema(json, key);
        break;
    case PL_CONFIG_PATH:
        if (key->flags & PL_CONFIG_FLAG_LINES) {
            paths_schema(json, key);
            break;
        } /* fall through */
    case PL_CONFIG_TEXT:
    case PL_CONFIG_NAME_OR_PATH:
        text_schema(json, key);
        break;
    case PL_CONFIG_RECORDS:
        records_schema(json, key);
        break;
    }
    pl_json_object_end(json);
}

/* Begins a section: what all have in common except the name. */
static void begin_section(pl_json *json, const char *help)
{
    pl_json_object(json);
    if (help) pl_json_kv_string(json, "description", help);
    pl_json_key(json, "type"); /* "train:" with nothing under it is null */
    pl_json_array(json);
    pl_json_string(json, "object");
    pl_json_string(json, "null");
    pl_json_array_end(json);
    pl_json_kv_bool(json, "additionalProperties", false);
    pl_json_key(json, "properties");
    pl_json_object(json);
}

static void end_section(pl_json *json)
{
    pl_json_object_end(json);
    pl_json_object_end(json);
}

/* Ends the sections that `before` has and `name` has not, and begins those of `name` around and at the section. */
static void change_section(pl_json *json, const char *before, const char *name)
{
    const uint32_t shared = pl_config_shared_levels(before, name);
    for (uint32_t i = pl_config_depth(before); i > shared; i--) end_section(json);
    for (uint32_t i = shared; i < pl_config_depth(name); i++) {
        char word[64];
        size_t bytes;
        const char *level = pl_config_level_of(name, i, &bytes);
        const pl_config_section *section = pl_config_find_section(name, (size_t)(level - name) + bytes);
        memcpy(word, level, bytes);
        word[bytes] = 0;
        pl_json_key(json, word);
        begin_section(json, section ? section->help : NULL);
    }
}

static void reference(pl_json *json, const char *word, const char *path)
{
    pl_json_key(json, word);
    pl_json_object(json);
    pl_json_kv_string(json, "$ref", path);
    pl_json_object_end(json);
}

/* A switch, or the only value of something that is fixed here. */
static void meaning_schema(pl_json *json, const pl_config_alias *alias, const char *word)
{
    pl_json_key(json, word);
    pl_json_object(json);
    if (alias->key)
        pl_json_kv_string(json, "type", "boolean");
    else if (strcmp(alias->means, "false") == 0)
        pl_json_kv_bool(json, "const", false);
    else
        pl_json_kv_string(json, "const", alias->means);
    pl_json_object_end(json);
}

/* Other names of keys in the section, each once, and other places of sections. */
static void aliases_schema(pl_json *json, const char *section)
{
    char path[128];
    const pl_config_section *in = pl_config_find_section(section, strlen(section));
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++) {
        const char *word = pl_config_alias_in(alias, section);
        if (!word || (in && pl_config_find_alias_in(in, word) != alias)) continue;
        if (alias->means) {
            meaning_schema(json, alias, word);
            continue;
        }
        snprintf(path, sizeof path, "#/properties/%s/properties/%s", alias->key->section->name, alias->key->name);
        reference(json, word, path);
    }
    for (const pl_config_place *p = pl_config_places; p < pl_config_places + PL_CONFIG_PLACE_COUNT; p++) {
        const size_t bytes = strlen(section);
        if (!bytes || strncmp(p->path, section, bytes) != 0 || p->path[bytes] != '.') continue;
        snprintf(path, sizeof path, "#/properties/%s", p->section);
        reference(json, p->path + bytes + 1, path);
    }
}

/* Sections that hold nothing but places of sections: "training". Their rows follow each other. */
static void holders_schema(pl_json *json)
{
    char holder[64], before[64] = "";
    for (const pl_config_place *p = pl_config_places; p < pl_config_places + PL_CONFIG_PLACE_COUNT; p++) {
        const size_t bytes = strcspn(p->path, ".");
        snprintf(holder, sizeof holder, "%.*s", (int)bytes, p->path);
        if (pl_config_find_section(holder, bytes) || strcmp(holder, before) == 0) continue;
        pl_json_key(json, holder);
        begin_section(json, NULL);
        aliases_schema(json, holder);
        end_section(json);
        memcpy(before, holder, sizeof before);
    }
}

static void sections_schema(pl_json *json)
{
    const char *before = "";
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        const char *name = key->section->name;
        change_section(json, before, name);
        if (*name && strcmp(before, name) != 0) aliases_schema(json, name);
        before = name;
        key_schema(json, key);
    }
    change_section(json, before, "");
}

void pl_config_print_json_schema(pl_str *out)
{
    pl_json json = pl_json_begin(out, false);
    pl_json_object(&json);
    pl_json_kv_string(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    pl_json_kv_string(&json, "title", "Plimsoll configuration");
    pl_json_kv_string(&json, "type", "object");
    pl_json_kv_bool(&json, "additionalProperties", false);
    pl_json_key(&json, "properties");
    pl_json_object(&json);
    sections_schema(&json);
    aliases_schema(&json, "");
    holders_schema(&json);
    pl_json_object_end(&json);
    pl_json_object_end(&json);
    pl_str_append(out, "\n");
}
