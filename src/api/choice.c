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

/* The table of axes names keys of the schema, whose tests ask for each. */
static pl_status find_key(pl_choice_key key, const pl_config_key **found, pl_error *err)
{
    *found = pl_config_find(pl_choice_rows[key].path);
    return *found ? PL_OK : pl_fail(err, PL_E_INTERNAL, "%s is not a key of the schema", pl_choice_rows[key].path);
}

pl_status pl_choice_text(const pl_config *c, pl_choice_key key, char text[PL_CHOICE_TEXT_BYTES], pl_error *err)
{
    const pl_config_key *found;
    pl_str out = pl_str_fixed(text, PL_CHOICE_TEXT_BYTES);
    PL_TRY(find_key(key, &found, err));
    pl_config_print_value(found, pl_config_value_of(c, found), &out);
    return PL_OK;
}

bool pl_choice_is_used(const pl_config *c, pl_choice_key key)
{
    const pl_config_key *found = pl_config_find(pl_choice_rows[key].path);
    return found && pl_config_is_used(c, found);
}

static pl_status read_key(const pl_config *c, pl_choice_key key, pl_choice *choice, bool *open, pl_error *err)
{
    char text[PL_CHOICE_TEXT_BYTES];
    const pl_choice_row *row = &pl_choice_rows[key];
    if (!pl_choice_is_used(c, key)) return PL_OK; /* its system has no such choice: it is as established */
    PL_TRY(pl_choice_text(c, key, text, err));
    const pl_choice_word *word = find_word(row, text);
    row->put(choice, word ? word->value : strtoll(text, NULL, 10));
    *open = is_auto(row, text);
    return PL_OK;
}

pl_status pl_choice_read(const pl_config *c, uint32_t uses, pl_choice *choice, uint32_t *open, pl_error *err)
{
    *choice = (pl_choice){0};
    *open = 0;
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        bool is_open = false;
        const pl_choice_row *row = &pl_choice_rows[key];
        row->put(choice, row->word[0].value);
        if ((row->uses & uses) != row->uses) continue;
        PL_TRY(read_key(c, key, choice, &is_open, err));
        *open |= (uint32_t)is_open << key;
    }
    return PL_OK;
}

static void copy_value(const pl_config *from, pl_config *to, const pl_config_key *key)
{
    memcpy((char *)to + key->offset, (const char *)from + key->offset, key->bytes);
}

pl_status pl_choice_copy(const pl_config *from, pl_config *to, pl_error *err)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        const pl_config_key *found;
        PL_TRY(find_key(key, &found, err));
        copy_value(from, to, found);
    }
    return PL_OK;
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

static pl_status is_left(const pl_config *c, pl_choice_key key, bool *left, pl_error *err)
{
    char text[PL_CHOICE_TEXT_BYTES];
    *left = false;
    if (!pl_choice_rows[key].numbers) return PL_OK;
    PL_TRY(pl_choice_text(c, key, text, err));
    *left = is_auto(&pl_choice_rows[key], text);
    return PL_OK;
}

static pl_status decide(pl_config *c, const char *(*word)(const pl_choice *, pl_choice_key), const pl_choice *choice,
                        pl_error *err)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        bool left;
        const pl_config_key *found;
        PL_TRY(is_left(c, key, &left, err));
        if (!left) continue;
        const char *text = word(choice, key);
        pl_config_scalar scalar = {text, strlen(text), PL_CONFIG_RAW};
        PL_TRY(find_key(key, &found, err));
        PL_TRY(pl_config_parse_value(found, scalar, (char *)c + found->offset, found->path, err));
    }
    return PL_OK;
}

pl_status pl_choice_is_left(const pl_config *c, const char *path, bool *left, pl_error *err)
{
    *left = false;
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++)
        if (strcmp(pl_choice_rows[key].path, path) == 0) return is_left(c, key, left, err);
    return PL_OK;
}

pl_status pl_decide(pl_config *c, const pl_choice *choice, pl_error *err)
{
    return decide(c, pl_choice_say, choice, err);
}
pl_status pl_decide_longest(pl_config *c, pl_error *err) { return decide(c, longest_word, NULL, err); }

static pl_status take_kept(pl_config *c, const pl_config *kept, pl_error *err)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++) {
        bool left;
        const pl_config_key *found;
        PL_TRY(is_left(c, key, &left, err));
        PL_TRY(find_key(key, &found, err));
        if (left) copy_value(kept, c, found);
    }
    return PL_OK;
}

pl_status pl_decide_as_kept(pl_config *c, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    bool is_there;
    PL_TRY(pl_config_run_folder(c, folder, sizeof folder, err));
    PL_TRY(pl_path_join(path, sizeof path, folder, "config.yaml", err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) return PL_OK;
    pl_config *kept = pl_config_create();
    if (!kept) return pl_fail(err, PL_E_NOMEM, "no memory for %.300s", path);
    pl_status status = pl_config_load_file(kept, path, err);
    if (status == PL_OK) status = take_kept(c, kept, err);
    pl_config_destroy(kept);
    return status;
}
