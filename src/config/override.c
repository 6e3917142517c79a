/* Options and variables on top of the file. Names come from the table: a row with option "batch_size" answers to
 * --batch_size and --batch-size; every row to --set section.key=value and PLIMSOLL_SECTION_KEY; a row with an option to
 * PLIMSOLL_OPTION as well. A truth value is set by its bare name and unset by --no-NAME. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/schema.h"

enum { NAME_BYTES = 96 };

/* ---- the command line ---- */

/* One word of the command line that begins with "--": its name with _ for -, and where its value begins, if it has one.
 */
typedef struct option {
    char name[NAME_BYTES];
    char label[NAME_BYTES]; /* as it was written, for messages */
    const char *value;      /* after the '=', or NULL */
} option;

/* False for words that are not an option, or are too long to be one of ours. */
static bool read_option(const char *word, option *o)
{
    if (strncmp(word, "--", 2) != 0 || word[2] == 0) return false;
    const char *equals = strchr(word, '=');
    size_t bytes = equals ? (size_t)(equals - word) : strlen(word);
    if (bytes >= NAME_BYTES) return false;
    memcpy(o->label, word, bytes);
    o->label[bytes] = 0;
    for (size_t i = 2; i <= bytes; i++) o->name[i - 2] = o->label[i] == '-' ? '_' : o->label[i];
    o->value = equals ? equals + 1 : NULL;
    return true;
}

/* An option may set several keys: --seed. */
static pl_status set_by_option(pl_config *cfg, const char *name, const char *value, const char *label, pl_error *err)
{
    pl_config_key_set keys;
    pl_error why[PL_CONFIG_SAME_OPTION_MAX];
    const size_t count = pl_config_keys_of_option(name, keys);
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        why[i] = (pl_error){0};
        taken += pl_config_set(cfg, keys[i]->path, value, label, &why[i]) == PL_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (why[i].status == PL_OK) continue;
        if (!taken) return pl_fail(err, why[i].status, "%s", why[i].text);
        pl_config_note_refused(cfg, keys[i], PL_CONFIG_FROM_COMMAND_LINE, label);
    }
    return PL_OK;
}

/* Appends the line to what earlier options gave. */
static pl_status add_line(pl_config *cfg, const pl_config_key *key, const char *line, const char *label, pl_error *err)
{
    char text[2 * PL_CONFIG_TEXT_BYTES];
    pl_str lines = pl_str_fixed(text, sizeof text);
    if (pl_config_origin_at(cfg, key)->level == PL_CONFIG_FROM_COMMAND_LINE)
        pl_str_printf(&lines, "%s\n", (const char *)pl_config_value_of(cfg, key));
    for (; *line; line++) pl_str_printf(&lines, *line == '\n' && key->type == PL_CONFIG_TEXT ? "\\n" : "%c", *line);
    if (lines.failed) return pl_fail(err, PL_E_USAGE, "%s: the texts are too long together; give fewer", label);
    /* A name in brackets is a pattern here, not a list. */
    const pl_config_style style = pl_str_text(&lines)[0] == '[' ? PL_CONFIG_QUOTED : PL_CONFIG_RAW;
    pl_config_origin from = {.level = PL_CONFIG_FROM_COMMAND_LINE};
    snprintf(from.by, sizeof from.by, "%s", label);
    return pl_config_assign(cfg, key, (pl_config_scalar){pl_str_text(&lines), lines.bytes, style}, &from, label, err);
}

/* "section.key=value" */
static pl_status apply_set(pl_config *cfg, const char *text, pl_error *err)
{
    char path[NAME_BYTES], label[NAME_BYTES + 8], shown[64];
    const char *equals = strchr(text, '=');
    size_t bytes = equals ? (size_t)(equals - text) : 0;
    if (bytes == 0 || bytes >= sizeof path)
        return pl_fail(err, PL_E_USAGE, "--set: \"%s\" is not section.key=value, such as train.batch_size=8",
                       pl_config_shown(text, strlen(text), shown));
    memcpy(path, text, bytes);
    path[bytes] = 0;
    const pl_config_alias *alias = pl_config_find_alias_at(path);
    bool known = pl_config_find(path) || (alias && alias->key);
    snprintf(label, sizeof label, known ? "--set %s" : "--set", path);
    return pl_config_set(cfg, path, equals + 1, label, err);
}

typedef struct words {
    char **argv;
    int count, at;
} words;

static pl_status no_value(const option *o, const pl_config_key *key, const char *next, pl_error *err)
{
    char expected[320];
    if (!key)
        pl_fail(err, PL_E_USAGE, "%s needs a value: %s section.key=VALUE, such as --set train.batch_size=8", o->label,
                o->label);
    else if (key->type == PL_CONFIG_ENUM)
        pl_fail(err, PL_E_USAGE, "%s needs a value: %s", o->label, pl_config_expected(key, expected, sizeof expected));
    else
        pl_fail(err, PL_E_USAGE, "%s needs a value: %s VALUE", o->label, o->label);
    if (next) pl_error_append(err, "; %.60s is an option (as a value: %s=%.60s)", next, o->label, next);
    return PL_E_USAGE;
}

/* The option's value: after its '=', or the next word. But a word such as "--quiet" is an option, lest a folder get
 * that name, unless the key takes any text. key NULL: for --set. */
static pl_status take_value(words *w, const option *o, const pl_config_key *key, const char **value, pl_error *err)
{
    const char *next = w->at + 1 < w->count ? w->argv[w->at + 1] : NULL;
    const bool is_text = key && key->type == PL_CONFIG_TEXT;
    const bool is_option =
        next && !is_text && strncmp(next, "--", 2) == 0 && (!next[2] || isalpha((unsigned char)next[2]));
    if (o->value) return *value = o->value, PL_OK;
    if (!next || is_option) return no_value(o, key, is_option ? next : NULL, err);
    w->at++;
    *value = next;
    return PL_OK;
}

/* ---- other programs' names that do not stand for a key (names.def) ---- */

static const pl_config_alias *find_meaning(const char *name)
{
    const pl_config_alias *alias = pl_config_find_alias(name);
    return alias && alias->means ? alias : NULL;
}

/* The word after the option if it is one of these two: "--bf16 True". */
static const char *take_word(words *w, const option *o, const char *a, const char *b)
{
    const char *next = o->value ? o->value : w->at + 1 < w->count ? w->argv[w->at + 1] : "";
    if (strcasecmp(next, a) != 0 && strcasecmp(next, b) != 0) return o->value;
    w->at += !o->value;
    return next;
}

static pl_status apply_switch(pl_config *cfg, words *w, const option *o, const pl_config_alias *alias, pl_error *err)
{
    char shown[64];
    const char *value = take_word(w, o, "true", "false");
    if (!value || strcasecmp(value, "true") == 0)
        return pl_config_set(cfg, alias->key->path, alias->means, o->label, err);
    if (strcasecmp(value, "false") == 0) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s must be true or false, not \"%s\"", o->label,
                   pl_config_shown(value, strlen(value), shown));
}

/* *taken: whether the word was one of these. */
static pl_status apply_meaning(pl_config *cfg, words *w, const option *o, bool *taken, pl_error *err)
{
    const bool negated = !o->value && strncmp(o->name, "no_", 3) == 0;
    const pl_config_alias *alias = find_meaning(o->name), *off = negated ? find_meaning(o->name + 3) : NULL;
    *taken = true;
    if (alias && alias->key) return apply_switch(cfg, w, o, alias, err);
    if (off && off->key) return PL_OK;
    if (off && strcmp(off->means, "false") == 0) return PL_OK;
    const char *value = alias ? take_word(w, o, alias->means, alias->means) : NULL;
    *taken = value && strcasecmp(value, alias->means) == 0;
    return PL_OK;
}

/* *taken: whether the word was one of the table's options. */
static pl_status apply_word(pl_config *cfg, words *w, bool *taken, pl_error *err)
{
    option o;
    pl_config_key_set keys;
    const char *value = NULL;
    *taken = read_option(w->argv[w->at], &o);
    if (!*taken) return PL_OK;
    if (strcmp(o.name, "set") == 0) {
        PL_TRY(take_value(w, &o, NULL, &value, err));
        return apply_set(cfg, value, err);
    }
    const pl_config_key *key = pl_config_keys_of_option(o.name, keys) ? keys[0] : NULL;
    if (key && key->type == PL_CONFIG_BOOL) return set_by_option(cfg, o.name, o.value ? o.value : "true", o.label, err);
    if (key) {
        PL_TRY(take_value(w, &o, key, &value, err));
        if (key->flags & PL_CONFIG_FLAG_LINES) return add_line(cfg, key, value, o.label, err);
        return set_by_option(cfg, o.name, value, o.label, err);
    }
    const bool negated = strncmp(o.name, "no_", 3) == 0 && pl_config_keys_of_option(o.name + 3, keys);
    if (!negated || keys[0]->type != PL_CONFIG_BOOL) return apply_meaning(cfg, w, &o, taken, err);
    if (o.value) return pl_fail(err, PL_E_USAGE, "%s: takes no value", o.label);
    return set_by_option(cfg, o.name + 3, "false", o.label, err);
}

pl_status pl_config_apply_args(pl_config *cfg, int *argc, char **argv, pl_error *err)
{
    words w = {argv, *argc, 0};
    int kept = 0;
    for (; w.at < w.count; w.at++) {
        bool taken;
        if (strcmp(argv[w.at], "--") == 0) break;
        char *word = argv[w.at];
        PL_TRY(apply_word(cfg, &w, &taken, err));
        if (!taken) argv[kept++] = word;
    }
    for (; w.at < w.count; w.at++) argv[kept++] = argv[w.at];
    *argc = kept;
    return pl_config_settle(cfg, err);
}

/* All begin with two dashes, and are compared without them. */
static const char *nearest_of(const char *name, const char *const *options, size_t count)
{
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (pl_nearer(name, options[i] + strspn(options[i], "-"), &best)) near = options[i];
    return near;
}

/* Without its dashes. */
static const char *nearest_option(const char *name)
{
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->option && pl_nearer(name, key->option, &best)) near = key->option;
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++)
        if (alias->key && !strchr(alias->path, '.') && pl_nearer(name, alias->path, &best)) near = alias->path;
    return pl_nearer(name, "set", &best) ? "set" : near;
}

/* A key that has no option, and that something reads. */
static const pl_config_key *find_key_called(const char *name)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (!(key->flags & PL_CONFIG_FLAG_NO_EFFECT) && key->type != PL_CONFIG_RECORDS && strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

static pl_status write_set(const pl_config_key *key, const char *shown, pl_error *err)
{
    char text[160];
    pl_str archs = pl_str_fixed(text, sizeof text);
    pl_config_print_archs(pl_config_archs_of(key), &archs);
    return pl_fail(err, PL_E_USAGE, "unknown option %s; where model.arch is %s, write --set %s=…", shown, text,
                   key->path);
}

pl_status pl_config_unknown_option(const char *word, const char *const *own, size_t own_count, pl_error *err)
{
    char shown[64];
    option o;
    pl_config_shown(word, strlen(word), shown);
    if (!read_option(word, &o)) return pl_fail(err, PL_E_USAGE, "unknown option %s; see --help", shown);
    const char *instead = pl_config_instead_of(o.label);
    if (instead) return pl_fail(err, PL_E_USAGE, "unknown option %s: %s", o.label, instead);
    const pl_config_key *key = find_key_called(o.name);
    if (key && pl_config_archs_of(key) == (1u << PL_ARCH_COUNT) - 1)
        return pl_fail(err, PL_E_USAGE, "unknown option %s; write --set %s=…", shown, key->path);
    if (key) return write_set(key, shown, err);
    const char *near = nearest_of(o.label + 2, own, own_count);
    if (near) return pl_fail(err, PL_E_USAGE, "unknown option %s; did you mean %s?", shown, near);
    near = nearest_option(o.label + 2);
    const pl_config_alias *alias = near ? pl_config_find_alias(near) : NULL;
    const char *ours = alias && alias->key ? alias->key->option : NULL;
    if (ours && strcmp(ours, near) == 0) ours = NULL;
    if (near)
        return pl_fail(err, PL_E_USAGE, "unknown option %s; did you mean --%s%s%s?", shown, near,
                       ours ? ", which is --" : "", ours ? ours : "");
    return pl_fail(err, PL_E_USAGE, "unknown option %s; see --help", shown);
}

/* ---- the environment ---- */

static void variable_of(const char *path, char *name)
{
    size_t n = (size_t)snprintf(name, NAME_BYTES, "PLIMSOLL_%s", path);
    for (size_t i = 0; i < n && i < NAME_BYTES - 1; i++)
        name[i] = name[i] == '.' ? '_' : (char)toupper((unsigned char)name[i]);
}

/* Whether `rest`, after PLIMSOLL_, is what variable_of makes of the path. */
static bool is_capitals_of(const char *path, const char *rest)
{
    for (; *path; path++, rest++)
        if (*rest != (*path == '.' ? '_' : (char)toupper((unsigned char)*path))) return false;
    return *rest == 0;
}

static bool is_variable_of(const pl_config_key *key, const char *name)
{
    const char *rest = name + strlen("PLIMSOLL_");
    return is_capitals_of(key->path, rest) || (key->option && is_capitals_of(key->option, rest));
}

/* Compared without the common beginning: it would make everything look alike. */
static pl_status unknown_variable(const char *name, pl_error *err)
{
    const size_t prefix = strlen("PLIMSOLL_");
    char near[NAME_BYTES] = "", shown[64];
    size_t best = SIZE_MAX;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        char variable[NAME_BYTES];
        const char *const names[] = {key->path, key->option};
        for (int i = 0; i < 2 && names[i]; i++) {
            variable_of(names[i], variable);
            if (pl_nearer(name + prefix, variable + prefix, &best)) memcpy(near, variable, sizeof near);
        }
    }
    pl_config_shown(name, strlen(name), shown);
    if (near[0])
        return pl_fail(err, PL_E_CONFIG, "the variable %s is not one of Plimsoll's; did you mean %s?", shown, near);
    return pl_fail(err, PL_E_CONFIG, "the variable %s is not one of Plimsoll's; unset it (docs/config.md lists them)",
                   shown);
}

/* The environment has no order, so two names for one key must agree. */
static pl_status set_by_variable(pl_config *cfg, const pl_config_key *key, const char *name, const char *value,
                                 pl_error *err)
{
    pl_config_origin from = {.level = PL_CONFIG_FROM_ENVIRONMENT};
    const pl_config_origin before = *pl_config_origin_at(cfg, key);
    pl_config_scalar s = {value, strlen(value), PL_CONFIG_RAW};
    snprintf(from.by, sizeof from.by, "%s", name);
    if (before.level == PL_CONFIG_FROM_ENVIRONMENT && strcmp(before.by, name) != 0) {
        pl_config_value other;
        PL_TRY(pl_config_parse_value(key, s, &other, name, err));
        if (pl_config_same_value(key, pl_config_value_of(cfg, key), &other)) return PL_OK;
        return pl_fail(err, PL_E_CONFIG, "%s and %s are both set and differ; unset one", before.by, name);
    }
    return pl_config_assign(cfg, key, s, &from, name, err);
}

static bool is_known(const char *name)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (is_variable_of(key, name)) return true;
    return false;
}

/* Variables named after a service or container called plimsoll or plimsoll-…: by Kubernetes in each pod of the
 * namespace, by Docker in a container with a link. Nobody can unset them, so they are not misspelled keys. */
static const struct {
    const char *name, *value; /* NULL: any */
} injected[] = {
    {"PLIMSOLL*_SERVICE_HOST", NULL},      {"PLIMSOLL*_SERVICE_PORT", NULL},     {"PLIMSOLL*_SERVICE_PORT_*", NULL},
    {"PLIMSOLL*_PORT", "*://*"},           {"PLIMSOLL*_PORT_[0-9]*_TCP*", NULL}, {"PLIMSOLL*_PORT_[0-9]*_UDP*", NULL},
    {"PLIMSOLL*_PORT_[0-9]*_SCTP*", NULL}, {"PLIMSOLL*_NAME", "/*/plimsoll*"},   {"PLIMSOLL*_ENV_*", NULL},
};

static bool is_injected(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof injected / sizeof *injected; i++)
        if (fnmatch(injected[i].name, name, 0) == 0 &&
            (!injected[i].value || fnmatch(injected[i].value, value, 0) == 0))
            return true;
    return false;
}

static pl_status apply_variable(pl_config *cfg, const char *name, const char *value, pl_error *err)
{
    if (!is_known(name)) return unknown_variable(name, err);
    pl_error why = {0};
    size_t taken = 0;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!is_variable_of(key, name)) continue;
        pl_error here = {0};
        if (set_by_variable(cfg, key, name, value, &here) == PL_OK) {
            taken++;
            continue;
        }
        if (why.status == PL_OK) why = here;
        pl_config_note_refused(cfg, key, PL_CONFIG_FROM_ENVIRONMENT, name);
    }
    return taken || why.status == PL_OK ? PL_OK : pl_fail(err, why.status, "%s", why.text);
}

/* The value and name of an environment entry that sets a key, or tries to; NULL for all others. */
static const char *read_name(const char *entry, char name[NAME_BYTES])
{
    const char *equals = strchr(entry, '=');
    if (strncmp(entry, "PLIMSOLL_", 9) != 0 || !equals || equals[1] == 0) return NULL; /* empty = not set */
    if (strncmp(entry, "PLIMSOLL_TEST_", 14) == 0 || strncmp(entry, "PLIMSOLL_INTERNAL_", 18) == 0) return NULL;
    snprintf(name, NAME_BYTES, "%.*s", (int)(equals - entry), entry);
    return is_known(name) || !is_injected(name, equals + 1) ? equals + 1 : NULL;
}

bool pl_config_is_variable(const char *entry)
{
    char name[NAME_BYTES];
    return read_name(entry, name) != NULL;
}

pl_status pl_config_apply_env(pl_config *cfg, char *const *envp, pl_error *err)
{
    for (; *envp; envp++) {
        char name[NAME_BYTES];
        const char *value = read_name(*envp, name);
        if (value) PL_TRY(apply_variable(cfg, name, value, err));
    }
    return pl_config_settle(cfg, err);
}
