#include "systems/results.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "config/schema.h"

/* ---- the part of a job array ---- */

pl_status pl_share_read(const pl_config *c, const char *key, const char *text, const char *word, uint64_t items,
                        pl_share *s, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], rest;
    /* An empty shell variable must not mean the whole job; a kept config has "" where none was given. */
    const bool is_said = pl_config_origin_at(c, pl_config_find(key))->level >= PL_CONFIG_FROM_ENVIRONMENT;
    const bool is_none = strcmp(text, "none") == 0 || (!text[0] && !is_said);
    *s = (pl_share){1, 1, 0, items};
    if (is_none) return PL_OK;
    const bool is_pair = strspn(text, "0123456789/") == strlen(text) && text[0] != '/' &&
                         sscanf(text, "%9u/%9u%c", &s->part, &s->parts, &rest) == 2;
    if (!is_pair || s->part < 1 || s->part > s->parts || s->parts > items)
        return pl_fail(
            err, PL_E_CONFIG,
            "%s: %s \"%s\": expected the number of a part and of all parts, 1/4 to 4/4, and no more parts than %s "
            "(%llu)",
            pl_config_where(c, key, where, sizeof where), key, text, word, (unsigned long long)items);
    s->first = items / s->parts * (s->part - 1) + items % s->parts * (s->part - 1) / s->parts;
    s->count = items / s->parts * s->part + items % s->parts * s->part / s->parts - s->first;
    return PL_OK;
}

/* ---- the file ---- */

static pl_status name_part(const pl_config *c, const char *key, const char *whole, const pl_share *s,
                           char path[PL_FILE_PATH_MAX], pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], of[40] = "";
    const size_t length = strlen(whole);
    pl_config_where(c, key, where, sizeof where);
    if (length && whole[length - 1] == '/')
        return pl_fail(err, PL_E_CONFIG, "%s: %s %.200s ends with a slash; give the name of the results", where, key,
                       whole);
    if (s->parts > 1) snprintf(of, sizeof of, "%u-of-%u", s->part, s->parts);
    if (pl_path_of_part(path, PL_FILE_PATH_MAX, whole, of, err) == PL_OK) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: %s %.200s… is too long", where, key, whole);
}

pl_status pl_results_find_path(const pl_config *c, const char *key, const char *given, pl_config_store_backend form,
                               const pl_share *s, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    static const char *const names[] = {[PL_CONFIG_BACKEND_NATIVE] = "results.blocks",
                                        [PL_CONFIG_BACKEND_HDF5] = "results.h5",
                                        [PL_CONFIG_BACKEND_NPY] = "results"};
    char out[PL_FILE_PATH_MAX], whole[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    if (given[0])
        snprintf(whole, sizeof whole, "%s", given);
    else
        PL_TRY(pl_path_join(whole, sizeof whole, out, names[form], err));
    return name_part(c, key, whole, s, path, err);
}

/* ---- what decides the numbers ---- */

static void say_keys(const pl_config *c, pl_config_reader by, pl_json *j, pl_str *text)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        pl_str value = {0};
        const bool decides = key->flags & (PL_CONFIG_FLAG_MODEL | PL_CONFIG_FLAG_NUMERICS);
        if (!decides || !pl_config_is_used(c, key) || !pl_config_is_read(c, key, by)) continue;
        if (key->flags & PL_CONFIG_FLAG_LATER && pl_config_is_default(c, key)) continue;
        pl_config_print_saved_value(key, pl_config_value_of(c, key), &value);
        if (!value.failed) pl_json_kv_string(j, pl_config_saved_path(key), pl_str_text(&value));
        text->failed |= value.failed;
        pl_str_deinit(&value);
    }
}

pl_status pl_results_say_identity(const pl_config *c, pl_config_reader by, const pl_facts *facts, pl_str *text,
                                  pl_error *err)
{
    char hash[20], name[64];
    pl_json j = pl_json_begin(text, true);
    pl_json_object(&j);
    say_keys(c, by, &j, text);
    for (uint32_t i = 0; facts && i < facts->count; i++) {
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)facts->fact[i].value);
        snprintf(name, sizeof name, PL_RESULTS_HASH "%s", facts->fact[i].name);
        pl_json_kv_string(&j, name, hash);
    }
    pl_json_kv_string(&j, "run.isa", pl_isa_name(pl_config_find_isa(c))); /* another level may round differently */
    pl_json_object_end(&j);
    return text->failed ? pl_fail(err, PL_E_NOMEM, "no memory to say what the results are made from") : PL_OK;
}
