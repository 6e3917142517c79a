/* Printing a config so that it loads back as an equal one: as YAML for people, as JSON for run.json. Keys that the
 * program does not read under the other values are left out, unless somebody has set one to a value other than its
 * default (then loading must see it, and pl_config_check says the same about both).
 *
 * Proven by tests/property/config: random configs, print, load, compare. */
#include <inttypes.h>
#include <string.h>

#include "config/schema.h"

static int64_t int_of(const void *value)
{
    int64_t number;
    memcpy(&number, value, sizeof number);
    return number;
}

static double real_of(const void *value)
{
    double number;
    memcpy(&number, value, sizeof number);
    return number;
}

static uint32_t bits_of(const void *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    return bits;
}

static pl_config_switch switch_of(const pl_config_key *key, const void *value)
{
    if (key->bytes == sizeof(bool)) return *(const bool *)value ? PL_SWITCH_ON : PL_SWITCH_OFF;
    return (pl_config_switch)bits_of(value);
}

static const char *text_of(const pl_config_key *key, const void *value)
{
    const char *text = value;
    return key->type == PL_CONFIG_NAME_OR_PATH ? text + offsetof(pl_config_name_or_path, path) : text;
}

static const char *const switch_words[] = {"false", "true", "auto"};

/* The word that stands for the value, or NULL when it is not a word of the table. */
static const char *word_of(const pl_config_key *key, const void *value)
{
    switch (key->type) {
    case PL_CONFIG_INT:
        return int_of(value) == PL_CONFIG_AUTO && key->flags & PL_CONFIG_FLAG_AUTO ? "auto" : NULL;
    case PL_CONFIG_BYTES:
        if ((uint64_t)int_of(value) == PL_CONFIG_BYTES_AUTO) return "auto";
        return (uint64_t)int_of(value) == PL_CONFIG_BYTES_NONE ? "none" : NULL;
    case PL_CONFIG_BOOL:
        return switch_words[switch_of(key, value)];
    case PL_CONFIG_ENUM:
    case PL_CONFIG_NAME_OR_PATH:
        return bits_of(value) < key->name_count ? key->names[bits_of(value)] : NULL;
    case PL_CONFIG_PATH:
        return *text_of(key, value) ? NULL : key->empty_word;
    default:
        return NULL;
    }
}

/* The same by the word that it had when runs were first saved. */
static const char *saved_word_of(const pl_config_key *key, const void *value)
{
    const char *word = word_of(key, value);
    return word && key->type == PL_CONFIG_ENUM ? pl_config_saved_word(key, bits_of(value)) : word;
}

bool pl_config_same_value(const pl_config_key *key, const void *a, const void *b)
{
    switch (key->type) {
    case PL_CONFIG_TEXT:
    case PL_CONFIG_PATH:
        return strcmp(text_of(key, a), text_of(key, b)) == 0;
    case PL_CONFIG_NAME_OR_PATH:
        return bits_of(a) == bits_of(b) && strcmp(text_of(key, a), text_of(key, b)) == 0;
    default:
        return memcmp(a, b, key->bytes) == 0;
    }
}

/* ---- text in YAML ---- */

static bool is_plain_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-./", c) != NULL;
}

/* Plain where no reader of YAML, old or new, can take it for something else: it begins like a path or a word, holds
 * nothing but path characters, and has a slash or a dot after its first letter. */
static bool is_plain_text(const char *text)
{
    if (text[0] != '/' && !(text[0] >= 'a' && text[0] <= 'z') && !(text[0] >= 'A' && text[0] <= 'Z')) return false;
    for (const char *at = text; *at; at++)
        if (!is_plain_character(*at)) return false;
    return strpbrk(text + 1, "/.") != NULL;
}

/* Code points that end a line in YAML 1.1 (which libyaml reads) or vanish there: bytes of the one at p, else 0. */
static size_t break_length(const unsigned char *p, uint32_t *code)
{
    static const struct {
        const char *utf8;
        uint32_t code;
    } breaks[] = {{"\xc2\x85", 0x85}, {"\xe2\x80\xa8", 0x2028}, {"\xe2\x80\xa9", 0x2029}, {"\xef\xbb\xbf", 0xfeff}};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        size_t n = strlen(breaks[i].utf8);
        if (strncmp((const char *)p, breaks[i].utf8, n) == 0) return *code = breaks[i].code, n;
    }
    return 0;
}

static void quoted(pl_str *out, const char *text)
{
    pl_str_append(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t code;
        size_t n = break_length(p, &code);
        if (n)
            pl_str_printf(out, "\\u%04x", code);
        else if (*p == '"' || *p == '\\')
            pl_str_printf(out, "\\%c", *p);
        else if (*p == '\n')
            pl_str_append(out, "\\n");
        else if (*p == '\t')
            pl_str_append(out, "\\t");
        else if (*p < 0x20)
            pl_str_printf(out, "\\x%02x", *p);
        else
            pl_str_append_bytes(out, p, 1);
        p += n ? n : 1;
    }
    pl_str_append(out, "\"");
}

static void print_set(const pl_config_key *key, uint32_t bits, pl_str *out)
{
    const char *comma = "";
    pl_str_append(out, "[");
    for (size_t i = 0; i < key->name_count; i++) {
        if (!(bits >> i & 1)) continue;
        pl_str_printf(out, "%s%s", comma, key->names[i]);
        comma = ", ";
    }
    pl_str_append(out, "]");
}

static void print_list(const pl_config_key *key, const pl_config_list *list, pl_str *out)
{
    pl_str_append(out, "[");
    for (int64_t i = 0; i < list->count; i++) {
        if (i) pl_str_append(out, ", ");
        if (key->names)
            pl_str_append(out, key->names[(int)list->item[i]]);
        else
            pl_str_double(out, list->item[i]);
    }
    pl_str_append(out, "]");
}

static void json_list(const pl_config_key *key, const pl_config_list *list, pl_json *json)
{
    pl_json_array(json);
    for (int64_t i = 0; i < list->count; i++)
        if (key->names)
            pl_json_string(json, key->names[(int)list->item[i]]);
        else
            pl_json_double(json, list->item[i]);
    pl_json_array_end(json);
}

void pl_config_print_text(const char *text, pl_str *out)
{
    if (is_plain_text(text))
        pl_str_append(out, text);
    else
        quoted(out, text);
}

static void print_as(const pl_config_key *key, const void *value, const char *word, pl_str *out)
{
    char size[32];
    if (word)
        pl_str_append(out, word);
    else if (key->type == PL_CONFIG_INT)
        pl_str_printf(out, "%" PRId64, int_of(value));
    else if (key->type == PL_CONFIG_BYTES)
        pl_str_append(out, pl_config_format_size((uint64_t)int_of(value), size, sizeof size));
    else if (key->type == PL_CONFIG_REAL)
        pl_str_double(out, real_of(value));
    else if (key->type == PL_CONFIG_SET)
        print_set(key, bits_of(value), out);
    else if (key->type == PL_CONFIG_LIST)
        print_list(key, value, out);
    else if (key->type == PL_CONFIG_RECORDS)
        pl_config_print_records_in_line(key, value, out);
    else if (key->type == PL_CONFIG_TEXT)
        quoted(out, text_of(key, value));
    else
        pl_config_print_text(text_of(key, value), out);
}

void pl_config_print_value(const pl_config_key *key, const void *value, pl_str *out)
{
    print_as(key, value, word_of(key, value), out);
}

void pl_config_print_saved_value(const pl_config_key *key, const void *value, pl_str *out)
{
    print_as(key, value, saved_word_of(key, value), out);
}

static void json_as(const pl_config_key *key, const void *value, const char *word, pl_json *json)
{
    if (key->type == PL_CONFIG_BOOL && switch_of(key, value) != PL_SWITCH_AUTO)
        pl_json_bool(json, switch_of(key, value) == PL_SWITCH_ON);
    else if (word)
        pl_json_string(json, word);
    else if (key->type == PL_CONFIG_INT)
        pl_json_int(json, int_of(value));
    else if (key->type == PL_CONFIG_BYTES)
        pl_json_uint(json, (uint64_t)int_of(value));
    else if (key->type == PL_CONFIG_REAL)
        pl_json_double(json, real_of(value));
    else if (key->type == PL_CONFIG_SET) {
        pl_json_array(json);
        for (size_t i = 0; i < key->name_count; i++)
            if (bits_of(value) >> i & 1) pl_json_string(json, key->names[i]);
        pl_json_array_end(json);
    } else if (key->type == PL_CONFIG_LIST)
        json_list(key, value, json);
    else if (key->type == PL_CONFIG_RECORDS)
        pl_config_json_records(key, value, json);
    else
        pl_json_string(json, text_of(key, value));
}

void pl_config_json_value(const pl_config_key *key, const void *value, pl_json *json)
{
    json_as(key, value, word_of(key, value), json);
}

/* ---- the whole ---- */

/* What the file asked for and a stronger source made pointless: in one file the two would contradict each other. */
static bool is_overruled(const pl_config *cfg, const pl_config_key *key)
{
    const pl_config_key *nothing = pl_config_find_nothing_held_out(cfg);
    return nothing && strncmp(key->path, "train.eval_", 11) == 0 &&
           pl_config_origin_at(cfg, key)->level < pl_config_origin_at(cfg, nothing)->level;
}

static bool is_printed(const pl_config *cfg, const pl_config_key *key)
{
    if (is_overruled(cfg, key)) return false;
    const bool by_default = key->flags & (PL_CONFIG_FLAG_NO_EFFECT | PL_CONFIG_FLAG_KEPT | PL_CONFIG_FLAG_UNSAID) ||
                            pl_config_is_aside(cfg, key) ||
                            key->type == PL_CONFIG_RECORDS; /* an empty list cannot be written */
    if (by_default && pl_config_is_default(cfg, key)) return false;
    const bool said = pl_config_origin_at(cfg, key)->level != PL_CONFIG_FROM_DEFAULT; /* or the program chose */
    if (pl_config_is_meant_for_another(cfg, key)) return false;
    return pl_config_is_used(cfg, key) || (said && !pl_config_is_default(cfg, key));
}

static void indent(pl_str *out, uint32_t depth) { pl_str_pad(out, ' ', 2 * depth); }

/* The lines of the sections that begin after the section called `before`. */
static void begin_sections(const char *before, const char *name, pl_str *out)
{
    for (uint32_t i = pl_config_shared_levels(before, name); i < pl_config_depth(name); i++) {
        size_t bytes;
        const char *level = pl_config_level_of(name, i, &bytes);
        indent(out, i);
        pl_str_printf(out, "%.*s:\n", (int)bytes, level);
    }
}

static void print_key(const pl_config_key *key, const void *value, bool saved, pl_str *out)
{
    const uint32_t depth = pl_config_depth(key->section->name);
    indent(out, depth);
    pl_str_printf(out, "%s:", saved ? pl_config_saved_name(key) : key->name);
    if (key->type == PL_CONFIG_RECORDS) {
        pl_config_print_records(key, value, depth, out);
        return;
    }
    pl_str_append(out, " ");
    print_as(key, value, saved ? saved_word_of(key, value) : word_of(key, value), out);
    pl_str_append(out, "\n");
}

/* flags: only keys that have one of these; 0: all. saved: by the names that they had first. */
static void print_flagged(const pl_config *cfg, uint32_t flags, bool saved, pl_str *out)
{
    const char *before = "";
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!is_printed(cfg, key) || (flags && !(key->flags & flags))) continue;
        const char *name = key->section->name;
        begin_sections(before, name, out);
        before = name;
        print_key(key, pl_config_value_of(cfg, key), saved, out);
    }
}

void pl_config_print_own(const pl_config *cfg, pl_str *out) { print_flagged(cfg, 0, false, out); }
void pl_config_print_yaml(const pl_config *cfg, pl_str *out) { print_flagged(cfg, 0, true, out); }
void pl_config_print_model(const pl_config *cfg, pl_str *out) { print_flagged(cfg, PL_CONFIG_FLAG_MODEL, true, out); }

static void json_sections(const char *before, const char *name, pl_json *json)
{
    const uint32_t shared = pl_config_shared_levels(before, name);
    for (uint32_t i = pl_config_depth(before); i > shared; i--) pl_json_object_end(json);
    for (uint32_t i = shared; i < pl_config_depth(name); i++) {
        char word[64];
        size_t bytes;
        const char *level = pl_config_level_of(name, i, &bytes);
        memcpy(word, level, bytes);
        word[bytes] = 0;
        pl_json_key(json, word);
        pl_json_object(json);
    }
}

void pl_config_json(const pl_config *cfg, pl_json *json)
{
    const char *before = "";
    pl_json_object(json);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!is_printed(cfg, key)) continue;
        json_sections(before, key->section->name, json);
        before = key->section->name;
        pl_json_key(json, pl_config_saved_name(key));
        json_as(key, pl_config_value_of(cfg, key), saved_word_of(key, pl_config_value_of(cfg, key)), json);
    }
    json_sections(before, "", json);
    pl_json_object_end(json);
}
