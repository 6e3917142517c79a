/* The config of the public header, as texts and files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "api/api.h"
#include "base/file.h"
#include "base/json.h"
#include "config/schema.h"
#include "pretrained/pretrained.h"
#include "systems/infer.h"
#include "systems/system.h"

pl_status pl_give_text(pl_str *s, char **text, size_t *bytes, pl_error *err)
{
    *text = NULL;
    if (!s->data) pl_str_append(s, "");
    if (s->failed) {
        pl_str_deinit(s);
        return pl_fail(err, PL_E_NOMEM, "no memory for the text");
    }
    *text = s->data;
    if (bytes) *bytes = s->bytes;
    return PL_OK;
}

void pl_text_free(char *text) { pl_free(text); }

pl_status pl_text_save(const char *path, const char *text, size_t bytes, pl_error *err)
{
    return pl_file_write_all(path, text, bytes, err);
}

static pl_status check_replaced(const char *path, pl_error *err)
{
    return pl_file_check_replaced(path, "<!doctype html>", false, "page", err);
}

pl_status pl_page_check(const char *path, pl_error *err)
{
    pl_file_writer w;
    PL_TRY(check_replaced(path, err));
    PL_TRY(pl_file_create(&w, path, err));
    pl_file_abandon(&w);
    return PL_OK;
}

pl_status pl_page_save(const char *path, const char *text, size_t bytes, pl_error *err)
{
    PL_TRY(check_replaced(path, err));
    return pl_text_save(path, text, bytes, err);
}

static pl_status copy_all(pl_file_writer *w, int from, uint64_t bytes, pl_error *err)
{
    char block[4096];
    for (uint64_t at = 0; at < bytes;) {
        size_t n = bytes - at < sizeof block ? (size_t)(bytes - at) : sizeof block;
        PL_TRY(pl_file_read_at(from, "the file to copy", at, block, n, err));
        PL_TRY(pl_file_write(w, block, n, err));
        at += n;
    }
    return PL_OK;
}

pl_status pl_text_copy(const char *path, int descriptor, pl_error *err)
{
    struct stat st;
    pl_file_writer w;
    if (fstat(descriptor, &st) != 0) return pl_fail(err, PL_E_USAGE, "%s: nothing to copy: %s", path, strerror(errno));
    PL_TRY(pl_file_create(&w, path, err));
    pl_status status = copy_all(&w, descriptor, (uint64_t)st.st_size, err);
    if (status == PL_OK) return pl_file_commit(&w, err);
    pl_file_abandon(&w);
    return status;
}

pl_status pl_model_find(const char *name, const char *hub, char *path, size_t room, pl_error *err)
{
    char found[PL_FILE_PATH_MAX];
    PL_TRY(pl_pretrained_find(name, hub, found, err));
    if ((size_t)snprintf(path, room, "%s", found) < room) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "the path %.100s… is too long", found);
}

pl_status pl_config_find_weights(pl_config *c, const char *hub, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!(key->flags & (PL_CONFIG_FLAG_WEIGHTS | PL_CONFIG_FLAG_TENSORS)) || !pl_config_is_used(c, key)) continue;
        const char *name = pl_config_path_at(c, key);
        if (!name[0]) continue;
        pl_status status = pl_pretrained_find_weights(name, hub, path, err);
        /* A saved run contains what a part of it began with: who needs the file says that it is missing. */
        if (status != PL_OK && status != PL_E_NOMEM && key->flags & PL_CONFIG_FLAG_TENSORS) continue;
        if (status != PL_OK) return status;
        if (strcmp(name, path) == 0) continue;
        const pl_config_origin origin = *pl_config_origin_at(c, key);
        PL_TRY(pl_config_set(c, key->path, path, key->path, err));
        *pl_config_origin_of(c, key) = origin;
    }
    return PL_OK;
}

/* A file name may be any bytes, a YAML text may not: a kept config that cannot be read back would lose the run. */
static pl_status make_absolute(char path[PL_CONFIG_TEXT_BYTES], pl_error *err)
{
    char absolute[PL_CONFIG_TEXT_BYTES];
    pl_error ignored = {0};
    size_t bad;
    if (!path[0] || pl_path_absolute(absolute, sizeof absolute, path, &ignored) != PL_OK)
        return PL_OK; /* it stays as it is: right from this folder */
    if (!pl_config_is_text(absolute, strlen(absolute), &bad))
        return pl_fail(
            err, PL_E_CONFIG,
            "%s: byte %zu of the absolute path (0x%02x) is not printable UTF-8, and a config cannot keep it: "
            "give an absolute path in UTF-8, or work in a folder that has one",
            path, bad, (unsigned char)absolute[bad]);
    memcpy(path, absolute, strlen(absolute) + 1);
    return PL_OK;
}

/* A list file stays one, and - is not a path. */
static pl_status make_each_absolute(char paths[PL_CONFIG_TEXT_BYTES], pl_error *err)
{
    char all[PL_CONFIG_TEXT_BYTES], one[PL_CONFIG_TEXT_BYTES];
    pl_str lines = pl_str_fixed(all, sizeof all);
    /* A folder may have a line break in its name; several names together may be too long for one. */
    if (access(paths, F_OK) == 0) return make_absolute(paths, err);
    for (const char *at = paths; *at;) {
        const size_t bytes = strcspn(at, "\n"), mark = *at == '@';
        memset(one, 0, sizeof one);
        memcpy(one, at + mark, bytes - mark);
        if (strcmp(one, "-") != 0) PL_TRY(make_absolute(one, err));
        pl_str_printf(&lines, "%s%s%s", lines.bytes ? "\n" : "", mark ? "@" : "", one);
        at += bytes + (at[bytes] == '\n');
    }
    if (lines.failed) return PL_OK; /* they stay as they are: right from this folder */
    memset(paths, 0, PL_CONFIG_TEXT_BYTES);
    memcpy(paths, pl_str_text(&lines), lines.bytes);
    return PL_OK;
}

static pl_status print_kept(const pl_config *c, pl_str *out, pl_error *err)
{
    pl_status status = PL_OK;
    pl_config *copy = pl_config_create();
    if (!copy) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to print the config"));
    *copy = *c;
    PL_TRY_DONE(pl_config_run_folder(c, copy->run.out, sizeof copy->run.out, err));
    if (pl_dataset_of_run(c)->keep) PL_TRY_DONE(pl_dataset_of_run(c)->keep(copy, err));
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        char *path = pl_config_path_of(copy, key);
        if (path)
            PL_TRY_DONE(key->flags & PL_CONFIG_FLAG_LINES ? make_each_absolute(path, err) : make_absolute(path, err));
    }
    pl_config_begin_sealed(out);
    pl_config_print_yaml(copy, out);
    pl_config_end_sealed(out);
done:
    pl_config_destroy(copy);
    return status;
}

static void print_json(const pl_config *c, pl_str *out)
{
    pl_json j = pl_json_begin(out, false);
    pl_config_json(c, &j);
    pl_str_append(out, "\n");
}

pl_status pl_config_text(const pl_config *c, pl_config_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    pl_status status = PL_OK;
    switch (form) {
    case PL_CONFIG_YAML:
        pl_config_print_own(c, &s);
        break;
    case PL_CONFIG_JSON:
        print_json(c, &s);
        break;
    case PL_CONFIG_HELP:
        pl_config_print_help(&s);
        break;
    case PL_CONFIG_OPTIONS:
        pl_config_print_options(&s);
        break;
    case PL_CONFIG_MARKDOWN:
        pl_config_print_markdown(&s);
        break;
    case PL_CONFIG_SCHEMA:
        pl_config_print_json_schema(&s);
        break;
    case PL_CONFIG_WITHOUT_EFFECT:
        pl_config_print_without_effect(c, &s);
        break;
    case PL_CONFIG_KEPT:
        status = print_kept(c, &s, err);
        break;
    }
    if (status == PL_OK) return pl_give_text(&s, text, bytes, err);
    pl_str_deinit(&s);
    return status;
}

size_t pl_config_files(const pl_config *c, pl_file_use *use, size_t room)
{
    size_t count = 0;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        const bool written = key->flags & PL_CONFIG_FLAG_WRITTEN_FILE;
        const char *path = written || key->flags & PL_CONFIG_FLAG_READ_FILE ? pl_config_path_at(c, key) : NULL;
        if (!path || !path[0]) continue;
        if (count < room) use[count] = (pl_file_use){path, key->path, written ? PL_FILE_WRITTEN : PL_FILE_READ};
        count++;
    }
    return count;
}

const char *const *pl_config_kept_files(const pl_config *c)
{
    static const char *const none[] = {NULL};
    return pl_dataset_of_run(c)->files ? pl_dataset_of_run(c)->files : none;
}

const pl_words *pl_config_words(const pl_config *c) { return pl_system_words(c); }

/* ---- by command ---- */

static pl_config_reader reader_of(pl_command command) { return (pl_config_reader)(1 << command); }

pl_status pl_command_require(pl_command command, const pl_config *c, pl_error *err)
{
    return pl_system_require(c, command, err);
}

pl_command pl_command_of(const pl_config *c) { return pl_system_first_command(c); }

bool pl_command_reads_samples(pl_command command, const pl_config *c)
{
    return pl_command_does(command, PL_USES_DATA) && !pl_system_files(c, command);
}

pl_status pl_command_check_options(pl_command command, const pl_config *c, pl_error *err)
{
    return pl_config_check_options(c, reader_of(command), err);
}

/* Not TRAIN alone: with train.sample_every that also reads the keys for writing samples. */
pl_status pl_verify_check_options(const pl_config *c, pl_error *err)
{
    return pl_config_check_options(c, reader_of(PL_COMMAND_TRAIN) | reader_of(PL_COMMAND_GRADIENTS), err);
}

pl_status pl_command_help(pl_command command, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    pl_config_print_help_of(reader_of(command), pl_systems_with(command), &s);
    return pl_give_text(&s, text, bytes, err);
}

pl_status pl_command_brief(pl_command command, const char *options, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    pl_config_print_brief_of(reader_of(command), pl_systems_with(command), options, &s);
    return pl_give_text(&s, text, bytes, err);
}

pl_status pl_config_about(const char *word, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    pl_config_print_about(word, &s);
    return pl_give_text(&s, text, bytes, err);
}
