/* Printing a config so that it loads back as an equal one: as YAML for people, as JSON for run.json. Keys that the
 * program does not read under the other values are left out, unless they differ from their default (then loading must
 * see them, and pl_config_check says the same about both).
 *
 * Proven by tests/property/config: random configs, print, load, compare. */
#include <inttypes.h>
#include <string.h>

#include "config/schema.h"

static const void *field(const pl_config *cfg, const pl_config_key *key) { return (const char *)cfg + key->offset; }

static int64_t int_of(const pl_config *cfg, const pl_config_key *key)
{
    int64_t number;
    memcpy(&number, field(cfg, key), sizeof number);
    return number;
}

static double real_of(const pl_config *cfg, const pl_config_key *key)
{
    double number;
    memcpy(&number, field(cfg, key), sizeof number);
    return number;
}

static uint32_t bits_of(const pl_config *cfg, const pl_config_key *key)
{
    uint32_t bits;
    memcpy(&bits, field(cfg, key), sizeof bits);
    return bits;
}

pl_config_switch pl_config_switch_of(const pl_config *cfg, const pl_config_key *key)
{
    pl_config_switch value;
    if (key->bytes == sizeof(bool)) return *(const bool *)field(cfg, key) ? PL_SWITCH_ON : PL_SWITCH_OFF;
    memcpy(&value, field(cfg, key), sizeof value);
    return value;
}

static const char *const switch_words[] = {"false", "true", "auto"};

/* The word that stands for the value, or NULL when it is not a word of the table. */
static const char *word_of(const pl_config *cfg, const pl_config_key *key)
{
    const char *text = field(cfg, key);
    switch (key->type) {
    case PL_CONFIG_INT:
        return int_of(cfg, key) == PL_CONFIG_AUTO && key->flags & PL_CONFIG_FLAG_AUTO ? "auto" : NULL;
    case PL_CONFIG_BYTES:
        if ((uint64_t)int_of(cfg, key) == PL_CONFIG_BYTES_AUTO) return "auto";
        return (uint64_t)int_of(cfg, key) == PL_CONFIG_BYTES_NONE ? "none" : NULL;
    case PL_CONFIG_BOOL:
        return switch_words[pl_config_switch_of(cfg, key)];
    case PL_CONFIG_ENUM:
    case PL_CONFIG_NAME_OR_PATH:
        return bits_of(cfg, key) < key->name_count ? key->names[bits_of(cfg, key)] : NULL;
    case PL_CONFIG_PATH:
        return text[0] ? NULL : key->empty_word;
    default:
        return NULL;
    }
}

static const char *text_of(const pl_config *cfg, const pl_config_key *key)
{
    const char *text = field(cfg, key);
    return key->type == PL_CONFIG_NAME_OR_PATH ? text + offsetof(pl_config_tokenizer, path) : text;
}

bool pl_config_value_equal(const pl_config *a, const pl_config *b, const pl_config_key *key)
{
    switch (key->type) {
    case PL_CONFIG_TEXT:
    case PL_CONFIG_PATH:
        return strcmp(text_of(a, key), text_of(b, key)) == 0;
    case PL_CONFIG_NAME_OR_PATH:
        return bits_of(a, key) == bits_of(b, key) && strcmp(text_of(a, key), text_of(b, key)) == 0;
    default:
        return memcmp(field(a, key), field(b, key), key->bytes) == 0;
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

void pl_config_print_value(const pl_config *cfg, const pl_config_key *key, pl_str *out)
{
    char size[32];
    const char *word = word_of(cfg, key);
    if (word)
        pl_str_append(out, word);
    else if (key->type == PL_CONFIG_INT)
        pl_str_printf(out, "%" PRId64, int_of(cfg, key));
    else if (key->type == PL_CONFIG_BYTES)
        pl_str_append(out, pl_config_format_size((uint64_t)int_of(cfg, key), size, sizeof size));
    else if (key->type == PL_CONFIG_REAL)
        pl_str_double(out, real_of(cfg, key));
    else if (key->type == PL_CONFIG_SET)
        print_set(key, bits_of(cfg, key), out);
    else if (key->type != PL_CONFIG_TEXT && is_plain_text(text_of(cfg, key)))
        pl_str_append(out, text_of(cfg, key));
    else
        quoted(out, text_of(cfg, key));
}

void pl_config_json_value(const pl_config *cfg, const pl_config_key *key, pl_json *json)
{
    const char *word = word_of(cfg, key);
    if (key->type == PL_CONFIG_BOOL && pl_config_switch_of(cfg, key) != PL_SWITCH_AUTO)
        pl_json_bool(json, pl_config_switch_of(cfg, key) == PL_SWITCH_ON);
    else if (word)
        pl_json_string(json, word);
    else if (key->type == PL_CONFIG_INT)
        pl_json_int(json, int_of(cfg, key));
    else if (key->type == PL_CONFIG_BYTES)
        pl_json_uint(json, (uint64_t)int_of(cfg, key));
    else if (key->type == PL_CONFIG_REAL)
        pl_json_double(json, real_of(cfg, key));
    else if (key->type == PL_CONFIG_SET) {
        pl_json_array(json);
        for (size_t i = 0; i < key->name_count; i++)
            if (bits_of(cfg, key) >> i & 1) pl_json_string(json, key->names[i]);
        pl_json_array_end(json);
    } else
        pl_json_string(json, text_of(cfg, key));
}

/* ---- the whole ---- */

/* What the file asked for and a stronger source made pointless: both in one file would contradict each other. */
static bool is_overruled(const pl_config *cfg, const pl_config_key *key)
{
    const pl_config_key *fraction = pl_config_find("data.validation_fraction");
    return cfg->data.validation_fraction == 0 && strncmp(key->path, "train.eval_", 11) == 0 &&
           pl_config_origin_at(cfg, key)->level < pl_config_origin_at(cfg, fraction)->level;
}

static bool is_printed(const pl_config *cfg, const pl_config *defaults, const pl_config_key *key)
{
    if (is_overruled(cfg, key)) return false;
    return pl_config_is_used(cfg, key) || !pl_config_value_equal(cfg, defaults, key);
}

void pl_config_print_yaml(const pl_config *cfg, pl_str *out)
{
    pl_config defaults;
    const char *section = "";
    pl_config_default(&defaults);
    for (size_t i = 0; i < pl_config_key_count; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        if (!is_printed(cfg, &defaults, key)) continue;
        if (strcmp(section, key->section) != 0) pl_str_printf(out, "%s:\n", key->section);
        section = key->section;
        pl_str_printf(out, "  %s: ", key->name);
        pl_config_print_value(cfg, key, out);
        pl_str_append(out, "\n");
    }
}

void pl_config_json(const pl_config *cfg, pl_json *json)
{
    pl_config defaults;
    const char *section = NULL;
    pl_config_default(&defaults);
    pl_json_object(json);
    for (size_t i = 0; i < pl_config_key_count; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        if (!is_printed(cfg, &defaults, key)) continue;
        if (!section || strcmp(section, key->section) != 0) {
            if (section) pl_json_object_end(json);
            section = key->section;
            pl_json_key(json, section);
            pl_json_object(json);
        }
        pl_json_key(json, key->name);
        pl_config_json_value(cfg, key, json);
    }
    if (section) pl_json_object_end(json);
    pl_json_object_end(json);
}
