#include "systems/given_weights.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/checkpoint.h"

/* A plan opens the data once for each variation, and the file may have gigabytes: a checked file is not read again
 * while it is the same. Whoever loads it compares the checksum. */
typedef struct checked_weights {
    bool is_there;
    const pl_weights_part *part;
    uint64_t stamp;
    pl_given_weights found;
} checked_weights;

static bool add_stamp(const char *path, pl_checksum *sum)
{
    struct stat st;
    if (stat(path, &st) != 0) return false;
    const uint64_t of[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_ctim.tv_sec,
                           (uint64_t)st.st_ctim.tv_nsec};
    pl_checksum_update(sum, of, sizeof of);
    return true;
}

/* What changes with the file or, of an index, with one of its files. False: it cannot be seen. */
static bool find_stamp(const char *path, uint64_t *stamp)
{
    pl_checksum sum;
    pl_safetensors *index = NULL;
    pl_checksum_init(&sum);
    bool is_seen = add_stamp(path, &sum);
    if (is_seen && pl_ends_with(path, ".json")) {
        is_seen = pl_safetensors_open(path, &index, NULL) == PL_OK;
        for (size_t i = 0; is_seen && i < pl_safetensors_file_count(index); i++)
            is_seen = add_stamp(pl_safetensors_path(pl_safetensors_file(index, i)), &sum);
        pl_safetensors_destroy(index);
    }
    *stamp = pl_checksum_value(&sum);
    return is_seen;
}

static pl_status look_through(const char *path, const pl_weights_part *part, pl_real narrowest, pl_given_weights *found,
                              pl_error *err)
{
    pl_safetensors *file;
    PL_TRY(pl_safetensors_open(path, &file, err));
    const pl_status status = pl_weights_check(file, part, narrowest, &found->hash, err);
    found->unread = pl_weights_count_unread(file, part);
    found->read = pl_safetensors_count(file) - found->unread;
    found->packed = pl_weights_count_packed(file);
    pl_safetensors_destroy(file);
    return status;
}

pl_status pl_given_weights_check(const char *path, const pl_weights_part *part, pl_real narrowest,
                                 pl_given_weights *found, pl_error *err)
{
    static _Thread_local checked_weights checked[PL_REAL_F16 + 1];
    checked_weights *known = &checked[narrowest];
    uint64_t stamp;
    const bool is_seen = find_stamp(path, &stamp);
    if (is_seen && known->is_there && known->part == part && known->stamp == stamp) return *found = known->found, PL_OK;
    const pl_status status = look_through(path, part, narrowest, found, err);
    *known = (checked_weights){.is_there = is_seen && status == PL_OK, .part = part, .stamp = stamp, .found = *found};
    return status;
}

/* ---- whose weights they are ---- */

pl_status pl_given_weights_match_text(const pl_config *c, const char *path, const char *text, pl_error *err)
{
    pl_error why = {0};
    pl_config *made = pl_alloc(1, sizeof *made);
    if (!made) return pl_fail(err, PL_E_NOMEM, "no memory for the config of %.300s", path);
    pl_config_default(made);
    pl_status status = pl_config_load_text(made, PL_WEIGHTS_CONFIG, text, strlen(text), &why);
    if (status == PL_OK)
        status = pl_config_check_weights(made, c, path, err);
    else if (status == PL_E_NOMEM)
        status = pl_fail(err, status, "%s", why.text);
    else
        status = pl_fail(err, PL_E_DATA, "%.300s: the config of its weights cannot be read (%.400s); export them again",
                         path, why.text);
    pl_free(made);
    return status;
}

pl_status pl_given_weights_match(const pl_config *c, const char *path, pl_error *err)
{
    pl_safetensors *file;
    PL_TRY(pl_safetensors_open(path, &file, err));
    const char *text = pl_safetensors_metadata(file, PL_WEIGHTS_CONFIG);
    const pl_status status = text ? pl_given_weights_match_text(c, path, text, err) : PL_OK;
    pl_safetensors_destroy(file);
    return status;
}

/* ---- or a checkpoint says so ---- */

/* The checkpoint that contains the file; record NULL: none does. */
static pl_status find_saved(const char *path, pl_saved *s, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], record[PL_FILE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    bool is_there = false;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (strcmp(slash ? slash + 1 : path, PL_MODEL_FILE) != 0) return PL_OK;
    PL_TRY(pl_path_join(record, sizeof record, folder, PL_RECORD_FILE, err));
    PL_TRY(pl_file_look(record, &is_there, err));
    return is_there ? pl_saved_open(folder, PL_SAVED_RECORD, s, err) : PL_OK;
}

static pl_status copy_text(const char *from, char **text, pl_error *err)
{
    *text = pl_strdup(from);
    return *text ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the config of weights");
}

static pl_status take_saved(const pl_saved *s, const char *path, uint64_t hash, char **text, pl_error *err)
{
    if (hash == s->record->model.checksum) return copy_text(s->record->config, text, err);
    return pl_fail(
        err, PL_E_DATA,
        "%s: does not match its checksum in run.json; it is damaged: put it back, or take another checkpoint "
        "with `checkpoint`",
        path);
}

pl_status pl_given_weights_config(const char *path, uint64_t hash, char **text, pl_error *err)
{
    pl_safetensors *file;
    pl_saved saved = {0};
    *text = NULL;
    PL_TRY(pl_safetensors_open(path, &file, err));
    const char *said = pl_safetensors_metadata(file, PL_WEIGHTS_CONFIG);
    pl_status status = said ? copy_text(said, text, err) : find_saved(path, &saved, err);
    if (status == PL_OK && saved.record) status = take_saved(&saved, path, hash, text, err);
    pl_saved_deinit(&saved);
    pl_safetensors_destroy(file);
    return status;
}
