#include "api/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/schema.h"

static const pl_choice_word *find_word(const pl_choice_row *row, const char *text)
{
    for (size_t i = 0; i < row->words; i++)
        if (strcmp(row->word[i].text, text) == 0) return &row->word[i];
    return NULL;
}

static bool is_auto(const pl_choice_row *row, const char *text) { return strcmp(text, row->word[0].text) == 0; }

/* The key of a choice; NULL: this config has none. */
static const pl_config_key *find_key(const pl_config *c, pl_choice_key key)
{
    return pl_config_find_for(c, pl_choice_rows[key].path);
}

void pl_choice_text(const pl_config *c, pl_choice_key key, char text[PL_CHOICE_TEXT_BYTES])
{
    const pl_config_key *found = find_key(c, key);
    pl_str out = pl_str_fixed(text, PL_CHOICE_TEXT_BYTES);
    if (found)
        pl_config_print_value(found, pl_config_value_of(c, found), &out);
    else
        pl_str_append(&out, pl_choice_rows[key].word[0].text);
}

bool pl_choice_is_used(const pl_config *c, pl_choice_key key)
{
    const pl_config_key *found = find_key(c, key);
    return found && pl_config_is_used(c, found);
}

static void read_key(const pl_config *c, pl_choice_key key, pl_choice *choice, bool *open)
{
    char text[PL_CHOICE_TEXT_BYTES];
    const pl_choice_row *row = &pl_choice_rows[key];
    if (!pl_choice_is_used(c, key)) return; /* the config has no such choice: the established value stays */
    pl_choice_text(c, key, text);
    const pl_choice_word *word = find_word(row, text);
    row->put(choice, word ? word->value : strtoll(text, NULL, 10));
    *open = is_auto(row, text);
}

void pl_choice_read(const pl_config *c, uint32_t uses, pl_choice *choice, uint32_t *open)
{
    *choice = (pl_choice){0};
    *open = 0;
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        bool is_open = false;
        const pl_choice_row *row = &pl_choice_rows[key];
        row->put(choice, row->word[0].value);
        if ((row->uses & uses) != row->uses) continue;
        read_key(c, key, choice, &is_open);
        *open |= (uint32_t)is_open << key;
    }
}

static void copy_value(const pl_config *from, pl_config *to, const pl_config_key *key)
{
    memcpy((char *)to + key->offset, (const char *)from + key->offset, key->bytes);
}

void pl_choice_copy(const pl_config *from, pl_config *to)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        const pl_config_key *found = find_key(from, key);
        if (found) copy_value(from, to, found);
    }
}

/* ---- what changes numbers ---- */

static const char *longest_word(const pl_choice *unused, pl_choice_key key)
{
    const pl_choice_row *row = &pl_choice_rows[key];
    size_t longest = 1;
    (void)unused;
    for (size_t i = 2; i < row->words; i++)
        if (strlen(row->word[i].text) > strlen(row->word[longest].text)) longest = i;
    return row->word[longest].text;
}

static bool is_left(const pl_config *c, pl_choice_key key)
{
    char text[PL_CHOICE_TEXT_BYTES];
    if (!pl_choice_rows[key].numbers || !find_key(c, key)) return false;
    pl_choice_text(c, key, text);
    return is_auto(&pl_choice_rows[key], text);
}

static pl_status decide(pl_config *c, const char *(*word)(const pl_choice *, pl_choice_key), const pl_choice *choice,
                        pl_error *err)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        if (!is_left(c, key)) continue;
        const pl_config_key *found = find_key(c, key);
        const char *text = word(choice, key);
        pl_config_scalar scalar = {text, strlen(text), PL_CONFIG_RAW};
        PL_TRY(pl_config_parse_value(found, scalar, (char *)c + found->offset, found->path, err));
    }
    return PL_OK;
}

bool pl_choice_is_left(const pl_config *c, const char *path)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        const pl_config_key *found = find_key(c, key);
        if (found && strcmp(found->path, path) == 0) return is_left(c, key);
    }
    return false;
}

pl_status pl_decide(pl_config *c, const pl_choice *choice, pl_error *err)
{
    return decide(c, pl_choice_say, choice, err);
}
pl_status pl_decide_longest(pl_config *c, pl_error *err) { return decide(c, longest_word, NULL, err); }

static void take_kept(pl_config *c, const pl_config *kept)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++)
        if (is_left(c, key)) copy_value(kept, c, find_key(c, key));
}

pl_status pl_decide_as_kept(pl_config *c, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    bool is_there;
    PL_TRY(pl_config_run_path(c, "config.yaml", path, err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) return PL_OK;
    pl_config *kept = pl_config_create();
    if (!kept) return pl_fail(err, PL_E_NOMEM, "no memory for %.300s", path);
    pl_status status = pl_config_load_file(kept, path, err);
    if (status == PL_OK) take_kept(c, kept);
    pl_config_destroy(kept);
    return status;
}
