/* What a resumed run may ask for, and a file of weights: by the flags of the table, what cannot change and what does.
 * Keys that are not read under the other values of both configs do not count. */
#include <string.h>

#include "config/schema.h"

static bool differs(const pl_config *saved, const pl_config *now, const pl_config_key *key)
{
    bool counts = pl_config_counts(saved, key) || pl_config_counts(now, key);
    return counts && !pl_config_value_equal(saved, now, key);
}

/* For a path the contents count, which are compared by whoever knows their hash, or only whether there is one; so
 * records with paths are compared by their names. */
static void print_what_counts(const pl_config_key *key, const void *value, pl_str *out)
{
    if (key->type == PL_CONFIG_RECORDS)
        pl_config_print_record_names(key, value, out);
    else
        pl_config_print_value(key, value, out);
}

static bool is_some(const pl_config *c, const pl_config_key *key)
{
    return ((const char *)pl_config_value_of(c, key))[0] != 0;
}

static bool begun_differently(const pl_config *saved, const pl_config *now, const pl_config_key *key)
{
    if (!differs(saved, now, key)) return false;
    if (key->type == PL_CONFIG_PATH)
        return key->flags & PL_CONFIG_FLAG_SOME && is_some(saved, key) != is_some(now, key);
    return key->type != PL_CONFIG_RECORDS ||
           !pl_config_same_record_names(key, pl_config_value_of(saved, key), pl_config_value_of(now, key));
}

static pl_status refuse(const pl_config *saved, const pl_config *now, const pl_config_key *key, const char *why,
                        pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_str was = {0}, is = {0};
    print_what_counts(key, pl_config_value_of(saved, key), &was);
    print_what_counts(key, pl_config_value_of(now, key), &is);
    pl_status status = pl_fail(err, PL_E_CONFIG,
                               "%s: %s is %.200s here and %.200s in the saved run, which %s; set it back, or choose "
                               "another `run.out`",
                               pl_config_where(now, key->path, where, sizeof where), key->path, pl_str_text(&is),
                               pl_str_text(&was), why);
    pl_str_deinit(&was);
    pl_str_deinit(&is);
    return status;
}

pl_status pl_config_check_same_model(const pl_config *saved, const pl_config *now, pl_error *err)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->flags & PL_CONFIG_FLAG_MODEL && differs(saved, now, key))
            return refuse(saved, now, key, "is another model", err);
    return PL_OK;
}

pl_status pl_config_check_begun(const pl_config *saved, const pl_config *now, pl_error *err)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->flags & PL_CONFIG_FLAG_BEGUN && begun_differently(saved, now, key))
            return refuse(saved, now, key, "keeps it from its first step to its last", err);
    return PL_OK;
}

/* Open: left to the program, or the name of a file. Then shapes decide, since another path may be the same file. */
static bool is_open(const pl_config *c, const pl_config_key *key)
{
    const void *value = pl_config_value_of(c, key);
    if (key->type == PL_CONFIG_NAME_OR_PATH)
        return ((const char *)value + offsetof(pl_config_name_or_path, path))[0] != 0;
    int64_t number = 0;
    if (key->type == PL_CONFIG_INT) memcpy(&number, value, sizeof number);
    return key->flags & PL_CONFIG_FLAG_AUTO && number == PL_CONFIG_AUTO;
}

static pl_status check_weights_key(const pl_config *made, const pl_config *now, const pl_config_key *key,
                                   const char *path, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_str was = {0}, is = {0};
    /* where one of them does not read a key, the key that is the reason differs, too */
    const bool counts =
        key->flags & PL_CONFIG_FLAG_MODEL && pl_config_is_used(made, key) && pl_config_is_used(now, key);
    if (!counts || is_open(made, key) || is_open(now, key) || pl_config_value_equal(made, now, key)) return PL_OK;
    pl_config_print_value(key, pl_config_value_of(made, key), &was);
    pl_config_print_value(key, pl_config_value_of(now, key), &is);
    pl_status status = pl_fail(
        err, PL_E_DATA,
        "%.400s: its weights are of a model with %s %.200s, but %.300s says %.200s; give the config that they "
        "were made with",
        path, key->path, pl_str_text(&was), pl_config_where(now, key->path, where, sizeof where), pl_str_text(&is));
    pl_str_deinit(&was);
    pl_str_deinit(&is);
    return status;
}

/* The arch first: where it differs, much else does. */
pl_status pl_config_check_weights(const pl_config *made, const pl_config *now, const char *path, pl_error *err)
{
    PL_TRY(check_weights_key(made, now, pl_config_find("model.arch"), path, err));
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        PL_TRY(check_weights_key(made, now, key, path, err));
    return PL_OK;
}

void pl_config_print_changes(const pl_config *saved, const pl_config *now, pl_str *out)
{
    const char *comma = "";
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        bool decides = key->flags & PL_CONFIG_FLAG_NUMERICS,
             for_good = key->flags & (PL_CONFIG_FLAG_MODEL | PL_CONFIG_FLAG_BEGUN);
        if (!decides || for_good || !differs(saved, now, key)) continue;
        pl_str_printf(out, "%s%s ", comma, key->path);
        pl_config_print_value(key, pl_config_value_of(now, key), out);
        pl_str_append(out, " (");
        pl_config_print_value(key, pl_config_value_of(saved, key), out);
        pl_str_append(out, " before)");
        comma = ", ";
    }
}
