/* --help, the short -h and `plimsoll help WORD`, read off the table. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/schema.h"

enum { HELP_COLUMNS = 80, HELP_INDENT = 34, BRIEF_INDENT = 26 };

/* What stands for the value in "--batch_size N". */
static const char *placeholder(const pl_config_key *key)
{
    static const char *const letters[] = {
        [PL_CONFIG_INT] = "N",     [PL_CONFIG_BYTES] = "SIZE",
        [PL_CONFIG_REAL] = "X",    [PL_CONFIG_BOOL] = "",
        [PL_CONFIG_ENUM] = "NAME", [PL_CONFIG_SET] = "LIST",
        [PL_CONFIG_LIST] = "LIST", [PL_CONFIG_TEXT] = "TEXT",
        [PL_CONFIG_PATH] = "PATH", [PL_CONFIG_NAME_OR_PATH] = "NAME|PATH",
        [PL_CONFIG_RECORDS] = "",
    };
    return letters[key->type];
}

/* "--batch_size N" */
static void print_option(const pl_config_key *key, char *left, size_t room)
{
    const char *value = placeholder(key);
    if (key->type == PL_CONFIG_RECORDS)
        snprintf(left, room, "%s: (file only)", key->path);
    else if (key->option && key->type == PL_CONFIG_BOOL && key->flags & PL_CONFIG_FLAG_AUTO)
        snprintf(left, room, "--%s, --%s=auto, --no-%s", key->option, key->option, key->option);
    else if (key->option && key->type == PL_CONFIG_BOOL)
        snprintf(left, room, "--%s, --no-%s", key->option, key->option);
    else if (key->option)
        snprintf(left, room, "--%s %s", key->option, value);
    else
        snprintf(left, room, "--set %s=%s", key->path, *value ? value : "BOOL");
}

/* What stands at the left of a row, and blanks up to where the right begins: in the next line if there is no room. */
static void begin_row(const char *left, size_t indent, pl_str *out)
{
    pl_str_printf(out, "  %s", left);
    size_t column = strlen(left) + 2;
    if (column + 2 > indent) {
        pl_str_append(out, "\n");
        column = 0;
    }
    pl_str_pad(out, ' ', indent - column);
}

static void end_row(pl_str *text, size_t indent, pl_str *out)
{
    if (text->failed) out->failed = 1;
    pl_str_wrap(out, pl_str_text(text), text->bytes, indent, HELP_COLUMNS);
    pl_str_append(out, "\n");
    pl_str_deinit(text);
}

/* ---- --help: by what one wants ---- */

static void help_row(const pl_config_key *key, pl_str *out)
{
    pl_str text = {0};
    char left[96];
    print_option(key, left, sizeof left);
    begin_row(left, HELP_INDENT, out);
    pl_config_describe(key, &text);
    end_row(&text, HELP_INDENT, out);
}

/* A dimension's keys in a row: they are the same for all. */
static void dimension_row(const pl_config_section *section, pl_str *out)
{
    pl_str text = {0};
    const char *comma = " ";
    pl_str_printf(out, "  --set %s.FIELD=VALUE\n", section->name);
    pl_str_pad(out, ' ', HELP_INDENT);
    pl_str_printf(&text, "%s (FIELD:", section->help);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (key->section != section) continue;
        pl_str_printf(&text, "%s%s", comma, key->name);
        comma = ", ";
    }
    pl_str_append(&text, ")");
    end_row(&text, HELP_INDENT, out);
}

/* The archs of models that people bring: their matrices come in an encoding. */
static uint32_t archs_brought(void)
{
    uint32_t archs = 0;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->flags & PL_CONFIG_FLAG_ENCODING) archs |= pl_config_archs_of(key);
    return archs;
}

/* Keys that such a command reads of one of these archs, and of none of those. */
typedef struct listed {
    uint32_t readers, archs, without;
} listed;

static bool is_for(const pl_config_key *key, const listed *l)
{
    const pl_config_key *by = key->use.by; /* read by what that one says, so where that is read */
    const uint32_t archs = pl_config_archs_of(key) & (by ? pl_config_archs_of(by) : UINT32_MAX);
    return key->readers & l->readers && archs & l->archs && !(archs & l->without);
}

/* Of an option that two rows of one arch share, the first describes it; what it means to other archs has a row of its
 * own. */
static bool is_first_of_option(const pl_config_key *key, const listed *l)
{
    for (const pl_config_key *before = pl_config_keys; before < key; before++)
        if (is_for(before, l) && key->option && before->option && strcmp(before->option, key->option) == 0 &&
            pl_config_archs_of(before) & pl_config_archs_of(key))
            return false;
    return true;
}

void pl_config_print_help(pl_str *out) { pl_config_print_help_of(PL_CONFIG_BY_ANY, UINT32_MAX, out); }

typedef enum group {
#define GROUP(id, title) IN_##id,
#include "config/groups.def"
    GROUPS
} group;

static const char *const titles[] = {
#define GROUP(id, title) title,
#include "config/groups.def"
};

/* One more than the group, 0 where the table says none. */
static const unsigned char group_of_section[PL_CONFIG_SECTION_COUNT] = {
#define SECTION_IN(id, section) [PL_CONFIG_SECTION_##section] = IN_##id + 1,
#include "config/groups.def"
};
static const unsigned char group_of_key[PL_CONFIG_KEY_COUNT] = {
#define KEY_IN(id, section, key) [PL_CONFIG_KEY_##section##_##key] = IN_##id + 1,
#include "config/groups.def"
};

static group group_of(const pl_config_key *key)
{
    const unsigned char own = group_of_key[key - pl_config_keys],
                        all = group_of_section[key->section - pl_config_sections];
    if (key->section->is_dimension) return IN_MODEL;
    return own ? (group)(own - 1) : all ? (group)(all - 1) : IN_OTHER;
}

static void print_group(group g, const listed *l, pl_str *out)
{
    const pl_config_section *section = NULL;
    bool has_title = false;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!is_for(key, l) || group_of(key) != g || !is_first_of_option(key, l)) continue;
        if (!has_title) pl_str_printf(out, "\n%s:\n", titles[g]);
        has_title = true;
        if (!key->section->is_dimension)
            help_row(key, out);
        else if (key->section != section)
            dimension_row(key->section, out);
        section = key->section;
    }
}

/* No other command reads it, but for what a training writes between its steps. */
static bool is_own(group g, pl_config_reader by)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (group_of(key) == g && (key->readers & ~(uint32_t)PL_CONFIG_BY_SAMPLES) != (uint32_t)by) return false;
    return true;
}

static uint32_t readers_of(pl_config_reader by)
{
    return by == PL_CONFIG_BY_TRAIN ? PL_CONFIG_BY_TRAIN | PL_CONFIG_BY_SAMPLES : by;
}

/* All but the last, which is everybody's. */
static void print_groups(pl_config_reader by, const listed *l, pl_str *out)
{
    for (group g = 0; g < IN_OTHER; g++)
        if (is_own(g, by)) print_group(g, l, out);
    for (group g = 0; g < IN_OTHER; g++)
        if (!is_own(g, by)) print_group(g, l, out);
}

void pl_config_print_help_of(pl_config_reader by, uint32_t systems, pl_str *out)
{
    pl_str_append(out, "Options of the configuration; each is a key of the config file as well\n"
                       "(docs/config.md). Any key: --set section.key=VALUE, or the variable\n"
                       "PLIMSOLL_SECTION_KEY. Sizes: 500MB, 2GiB.\n");
    listed l = {readers_of(by), pl_config_archs_in(systems)};
    const uint32_t brought = archs_brought();
    if (by != PL_CONFIG_BY_ANY && l.archs & brought && l.archs != brought) {
        listed first = l;
        first.archs = brought, l.without = brought;
        pl_str_append(out, "\nOF A PRETRAINED MODEL, a folder of Hugging Face or a GGUF file:\n");
        print_groups(by, &first, out);
        pl_str_append(out, "\nOF MODELS THAT ARE TRAINED HERE, in addition:\n");
    }
    print_groups(by, &l, out);
    l.without = 0;
    print_group(IN_OTHER, &l, out);
}

/* ---- -h: a line each ---- */

/* How much of a help fits: all, or up to the last end of a sentence or clause outside of parentheses, or of a word. */
static size_t brief_bytes(const char *help, size_t room)
{
    size_t sentence = 0, clause = 0, word = 0, depth = 0, i = 0;
    for (; help[i] && i <= room; i++) {
        const bool ends = help[i] == ';' || strncmp(help + i, ". ", 2) == 0;
        if (!depth && ends) sentence = i;
        if (!depth && (help[i] == ':' || help[i] == ',' || strncmp(help + i, " (", 2) == 0)) clause = i;
        if (help[i] == ' ' && i + 3 <= room) word = i;
        depth += help[i] == '(';
        depth -= help[i] == ')' && depth > 0;
    }
    return !help[i] && i <= room ? i : sentence ? sentence : clause ? clause : word;
}

static void brief_row(const pl_config_key *key, pl_str *out)
{
    const size_t room = HELP_COLUMNS - BRIEF_INDENT;
    char left[96];
    pl_str by_default = {0}, text = {0};
    print_option(key, left, sizeof left);
    char *comma = strchr(left, ','); /* "--resume, --no-resume" */
    if (comma) *comma = 0;
    begin_row(left, BRIEF_INDENT, out);
    pl_config_print_default(key, &by_default);
    const size_t bytes = brief_bytes(key->help, room);
    pl_str_printf(&text, "%.*s%s", (int)bytes, key->help,
                  key->help[bytes] == ' ' && key->help[bytes + 1] != '(' ? "..." : "");
    const bool is_said = key->type != PL_CONFIG_BOOL && by_default.bytes && pl_str_text(&by_default)[0] != '"';
    if (is_said && text.bytes + by_default.bytes + 3 <= room) pl_str_printf(&text, " (%s)", pl_str_text(&by_default));
    if (by_default.failed) text.failed = 1;
    end_row(&text, BRIEF_INDENT, out);
    pl_str_deinit(&by_default);
}

/* The first that such a command reads. */
static const pl_config_key *find_for(const char *option, size_t bytes, const listed *l)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->option && strlen(key->option) == bytes && memcmp(key->option, option, bytes) == 0 && is_for(key, l))
            return key;
    return NULL;
}

void pl_config_print_brief_of(pl_config_reader by, uint32_t systems, const char *options, pl_str *out)
{
    const listed all = {readers_of(by), pl_config_archs_in(systems)},
                 brought = {all.readers, all.archs & archs_brought()};
    for (size_t bytes; *options; options += bytes + (options[bytes] == ' ')) {
        bytes = strcspn(options, " ");
        const pl_config_key *key = find_for(options, bytes, &brought); /* what a training decided is not to be set */
        if (!key) key = find_for(options, bytes, &all);
        if (key) brief_row(key, out);
    }
}

/* ---- help WORD ---- */

/* At the beginning of a word: "rate" is in "learning_rate" and "rates", not in "iterate". */
static bool holds(const char *text, const char *word)
{
    for (const char *at = text; (at = strcasestr(at, word)); at++)
        if (at == text || !isalnum((unsigned char)at[-1])) return true;
    return false;
}

static bool is_named(const pl_config_key *key, const char *word)
{
    pl_config_key_set keys;
    if (strcmp(key->path, word) == 0 || strcmp(key->name, word) == 0) return true;
    for (size_t count = pl_config_keys_of_option(word, keys), i = 0; i < count; i++)
        if (keys[i] == key) return true;
    const pl_config_alias *alias = pl_config_find_alias_at(word);
    return alias && alias->key == key;
}

static void print_line(const char *before, const char *text, pl_str *out)
{
    pl_str line = {0};
    pl_str_printf(&line, "%s%s", before, text);
    pl_str_pad(out, ' ', 4);
    end_row(&line, 4, out);
}

static void print_other_names(const pl_config_key *key, pl_str *out)
{
    pl_str names = {0};
    for (const pl_config_alias *a = pl_config_aliases; a < PL_CONFIG_ALIASES_END; a++)
        if (a->key == key && !a->means && strcmp(a->path, key->name) != 0)
            pl_str_printf(&names, "%s%s", names.bytes ? ", " : "", a->path);
    if (names.bytes) print_line("Also accepted as ", pl_str_text(&names), out);
    if (names.failed) out->failed = 1;
    pl_str_deinit(&names);
}

static void print_entry(const pl_config_key *key, pl_str *out)
{
    char left[96], expected[320];
    pl_str text = {0};
    print_option(key, left, sizeof left);
    pl_str_printf(out, "%s%s%s\n", key->path, key->type == PL_CONFIG_RECORDS ? "" : "   ",
                  key->type == PL_CONFIG_RECORDS ? "" : left);
    pl_config_describe(key, &text);
    print_line("", pl_str_text(&text), out);
    if (text.failed) out->failed = 1;
    pl_str_deinit(&text);
    print_line("It is ", pl_config_expected(key, expected, sizeof expected), out);
    if (pl_config_archs_of(key) != (1u << PL_ARCH_COUNT) - 1) {
        char archs[160];
        pl_str list = pl_str_fixed(archs, sizeof archs);
        pl_config_print_archs(pl_config_archs_of(key), &list);
        print_line("Where model.arch is ", archs, out);
    }
    print_other_names(key, out);
}

/* Keys of this name; then those that speak of it. */
void pl_config_print_about(const char *word, pl_str *out)
{
    const char *name = word + strspn(word, "-"), *instead = NULL;
    char option[96];
    snprintf(option, sizeof option, "--%.80s", name);
    instead = pl_config_instead_of(option);
    if (instead) pl_str_printf(out, "%s is not one of Plimsoll's names\n", name);
    if (instead) print_line("", instead, out);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (is_named(key, name) && !(key->flags & PL_CONFIG_FLAG_NO_EFFECT)) print_entry(key, out);
    bool first = true;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (is_named(key, name) || key->section->is_dimension || key->flags & PL_CONFIG_FLAG_NO_EFFECT) continue;
        if (!holds(key->path, name) && !holds(key->help, name)) continue;
        if (first) pl_str_printf(out, "%sKeys that mention %s:\n", out->bytes ? "\n" : "", name);
        first = false;
        brief_row(key, out);
    }
}
