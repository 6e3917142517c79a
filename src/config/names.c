/* names.def read as arrays: what others call keys, places and values; and which keys an option sets, its own names and
 * those of others alike. */
#include <ctype.h>
#include <string.h>

#include "config/schema.h"

#define KEY_OF(s, k) &pl_config_keys[PL_CONFIG_KEY_##s##_##k]
const pl_config_alias pl_config_aliases[] = {
#define OTHER_NAME(path, s, k, help)          {path, KEY_OF(s, k), NULL, help, false},
#define FORMER_NAME(path, s, k)               {path, KEY_OF(s, k), NULL, "", true},
#define OTHER_SWITCH(path, s, k, value, help) {path, KEY_OF(s, k), value, help, false},
#define NO_NAME(path, sentence)               {path, NULL, NULL, sentence, false},
#define SO_ANYWAY(path, value, sentence)      {path, NULL, value, sentence, false},
#include "config/names.def"
};
const pl_config_place pl_config_places[] = {
#define OTHER_PLACE(path, section) {path, section},
#include "config/names.def"
};
const pl_config_word pl_config_other_words[] = {
#define OTHER_WORD(s, k, word, value, help) {KEY_OF(s, k), word, value, help, false},
#define FORMER_WORD(s, k, word, value)      {KEY_OF(s, k), word, value, "", true},
#define NO_WORD(s, k, word, sentence)       {KEY_OF(s, k), word, NULL, sentence, false},
#include "config/names.def"
};

const pl_config_alias *pl_config_find_alias(const char *path)
{
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++)
        if (strcmp(alias->path, path) == 0) return alias;
    return NULL;
}

const pl_config_section *pl_config_section_of(const pl_config_alias *alias)
{
    const char *dot = strrchr(alias->path, '.');
    return dot ? pl_config_find_section(alias->path, (size_t)(dot - alias->path)) : NULL;
}

/* What stands outside of any section may stand in the one where its key is, too. */
const char *pl_config_alias_in(const pl_config_alias *alias, const char *section)
{
    const char *dot = strrchr(alias->path, '.');
    const size_t bytes = dot ? (size_t)(dot - alias->path) : 0;
    if (!alias->key && !alias->means) return NULL;
    if (strlen(section) == bytes && memcmp(alias->path, section, bytes) == 0) return dot ? dot + 1 : alias->path;
    const bool own = !dot && alias->key && strcmp(alias->key->section->name, section) == 0;
    return own && strcmp(alias->path, alias->key->name) != 0 ? alias->path : NULL;
}

/* What nothing is called anywhere. */
static const pl_config_alias *find_refused(const pl_config_section *section, const char *word)
{
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++) {
        const pl_config_section *in = pl_config_section_of(alias);
        const char *dot = strrchr(alias->path, '.');
        if (!alias->key && (!in || in == section) && strcmp(dot ? dot + 1 : alias->path, word) == 0) return alias;
    }
    return NULL;
}

const pl_config_alias *pl_config_find_alias_in(const pl_config_section *section, const char *word)
{
    for (const pl_config_alias *alias = pl_config_aliases; section && alias < PL_CONFIG_ALIASES_END; alias++) {
        const char *here = pl_config_alias_in(alias, section->name);
        if (here && strcmp(here, word) == 0) return alias;
    }
    return find_refused(section, word);
}

const pl_config_alias *pl_config_find_alias_at(const char *path)
{
    const char *dot = strrchr(path, '.');
    const pl_config_section *section = pl_config_find_section(path, dot ? (size_t)(dot - path) : 0);
    return section ? pl_config_find_alias_in(section, dot ? dot + 1 : path) : NULL;
}

/* ---- as it is saved ---- */

const char *pl_config_saved_path(const pl_config_key *key)
{
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++)
        if (alias->is_former && strcmp(alias->key->path, key->path) == 0) return alias->path;
    return key->path;
}

const char *pl_config_saved_name(const pl_config_key *key)
{
    const char *path = pl_config_saved_path(key), *dot = strrchr(path, '.');
    return path == key->path ? key->name : dot ? dot + 1 : path;
}

const char *pl_config_saved_word(const pl_config_key *key, size_t index)
{
    for (const pl_config_word *w = pl_config_other_words; w < PL_CONFIG_OTHER_WORDS_END; w++)
        if (w->is_former && strcmp(w->key->path, key->path) == 0 && strcmp(w->means, key->names[index]) == 0)
            return w->word;
    return key->names[index];
}

/* ---- options ---- */

static bool is_same_word(const char *a, const char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes && a[i]; i++)
        if ((a[i] == '-' ? '_' : a[i]) != (b[i] == '-' ? '_' : b[i])) return false;
    return strlen(a) == bytes;
}

static bool is_called(const pl_config_alias *a, const char *name, size_t bytes)
{
    const bool has_option = a->key && a->key->option && is_same_word(a->key->option, name, bytes);
    return a->key && !a->means && !strchr(a->path, '.') && !has_option && is_same_word(a->path, name, bytes);
}

size_t pl_config_keys_of_option(const char *name, pl_config_key_set keys)
{
    const size_t bytes = strlen(name);
    size_t count = 0;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->option && is_same_word(key->option, name, bytes) && count < PL_CONFIG_SAME_OPTION_MAX)
            keys[count++] = key;
    for (const pl_config_alias *a = pl_config_aliases; a < PL_CONFIG_ALIASES_END; a++)
        if (count < PL_CONFIG_SAME_OPTION_MAX && is_called(a, name, bytes)) keys[count++] = a->key;
    return count;
}

size_t pl_config_keys_of_place(const char *where, pl_config_key_set keys)
{
    const size_t prefix = strlen("PLIMSOLL_");
    char name[64];
    if (strncmp(where, "--set", 5) == 0 && (!where[5] || strchr(" =", where[5]))) return 0; /* of any key */
    if (strncmp(where, "--", 2) == 0) return pl_config_keys_of_option(where + 2, keys);
    if (strncmp(where, "PLIMSOLL_", prefix) != 0 || strlen(where + prefix) >= sizeof name) return 0;
    size_t i = 0;
    for (const char *c = where + prefix; *c; c++) name[i++] = (char)tolower((unsigned char)*c);
    name[i] = 0;
    return pl_config_keys_of_option(name, keys);
}

const char *pl_config_instead_of(const char *option)
{
    if (strncmp(option, "--", 2) != 0) return NULL;
    for (const pl_config_alias *a = pl_config_aliases; a < PL_CONFIG_ALIASES_END; a++)
        if (!a->key && is_same_word(a->path, option + 2, strcspn(option + 2, "="))) return a->help;
    return NULL;
}

static bool has(const pl_config_key_set keys, size_t count, const pl_config_key *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i]->path, key->path) == 0) return true;
    return false;
}

bool pl_config_is_shared(const pl_config_key *key, const char *where)
{
    pl_config_key_set keys;
    const size_t count = pl_config_keys_of_place(where, keys);
    return count > 1 && has(keys, count, key);
}

uint32_t pl_config_archs_that_read(const pl_config *cfg, const pl_config_key *key)
{
    const pl_config_origin *from = pl_config_origin_at(cfg, key);
    const bool by_file = from->level == PL_CONFIG_FROM_FILE;
    const pl_config_alias *alias = by_file && from->by[0] ? pl_config_find_alias(from->by) : NULL;
    const pl_config_section *section = alias ? pl_config_section_of(alias) : NULL;
    uint32_t archs = pl_config_archs_of(key);
    if (section) archs &= pl_config_archs_of_section(section);
    if (by_file || !pl_config_is_shared(key, from->by)) return archs;
    pl_config_key_set keys;
    for (size_t count = pl_config_keys_of_place(from->by, keys), i = 0; i < count; i++)
        archs |= pl_config_archs_of(keys[i]);
    return archs;
}
