/* Standard input as a text, and texts that outputs would overwrite. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "systems/files.h"
#include "systems/input.h"
#include "systems/text.h"

/* ---- standard input ---- */

/* A pipe is read to its end. Signals that stop the command end the call. */
static pl_status copy_input(pl_file_writer *w, pl_error *err)
{
    char block[16 << 10];
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pl_fail(err, PL_E_STORAGE, "standard input: cannot be read: %s", strerror(errno));
        if (n == 0 && w->bytes == 0)
            return pl_fail(err, PL_E_DATA, "standard input is empty; a text is needed (zcat text.gz | plimsoll …)");
        if (n == 0) return PL_OK;
        PL_TRY(pl_file_write(w, block, (size_t)n, err));
    }
}

static pl_status keep_input(const char *path, pl_error *err)
{
    pl_file_writer *w = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "no memory for keeping standard input");
    w->fd = -1;
    pl_status status = pl_file_create(w, path, err);
    if (status == PL_OK) status = copy_input(w, err);
    if (status == PL_OK) status = pl_file_commit(w, err);
    pl_file_abandon(w);
    pl_free(w);
    return status;
}

pl_status pl_input_read(pl_preparation *p, const char *key, const char *path, pl_error *err)
{
    if (isatty(STDIN_FILENO))
        return pl_fail(err, PL_E_USAGE,
                       "%s is -, standard input, which is a terminal; pipe a text into it, or name a file", key);
    PL_TRY(pl_made_file(&p->made, path, err));
    return keep_input(path, err);
}

/* Compares all of it, from the beginning; *same is also set if there is nothing at all. */
static pl_status compare_input(int fd, const char *path, uint64_t bytes, bool *same, pl_error *err)
{
    char block[8 << 10], kept[sizeof block];
    for (uint64_t at = 0;;) {
        const ssize_t n = read(STDIN_FILENO, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pl_fail(err, PL_E_STORAGE, "standard input: cannot be read: %s", strerror(errno));
        *same = n == 0 ? at == 0 || at == bytes : (uint64_t)n <= bytes - at;
        if (n == 0 || !*same) return PL_OK;
        PL_TRY(pl_file_read_at(fd, path, at, kept, (size_t)n, err));
        *same = memcmp(block, kept, (size_t)n) == 0;
        if (!*same) return PL_OK;
        at += (uint64_t)n;
    }
}

pl_status pl_input_check(const char *path, pl_error *err)
{
    uint64_t bytes;
    bool same = true;
    int fd;
    if (isatty(STDIN_FILENO)) return PL_OK;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    const pl_status status = compare_input(fd, path, bytes, &same, err);
    close(fd);
    if (status != PL_OK || same) return status;
    return pl_fail(err, PL_E_CONFIG,
                   "standard input is another text than %.350s, which was read from it before; give that one again, or "
                   "nothing (</dev/null), or choose another folder with `run.out`",
                   path);
}

/* The run has it: its own config says so, or the run is resumed. */
static pl_status is_kept(const pl_preparation *p, char own[PL_FILE_PATH_MAX], bool *kept, pl_error *err)
{
    const pl_config *c = p->config;
    PL_TRY(pl_path_join(own, PL_FILE_PATH_MAX, p->out, "config.yaml", err));
    const bool is_own = !pl_config_is_option(c, "data.text") && c->file[0] && pl_files_are_one(c->file, own);
    *kept = p->holds_run && (is_own || c->run.resume != PL_SWITCH_OFF);
    return PL_OK;
}

/* A text other than the run's is only looked at, and is kept apart. */
static pl_status find_place(pl_preparation *p, const pl_text_paths *paths, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    memcpy(path, paths->input, sizeof paths->input);
    if (!p->holds_run) return PL_OK;
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, p->out, "texts", err));
    PL_TRY(pl_made_folder(&p->made, path, err));
    return pl_path_join(path, PL_FILE_PATH_MAX, p->out, "texts/" PL_INPUT_FILE, err);
}

pl_status pl_text_keep_input(pl_preparation *p, const pl_text_paths *paths, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    bool kept, is_there;
    if (strcmp(p->config->data.text, "-") != 0) return PL_OK;
    PL_TRY(is_kept(p, path, &kept, err));
    if (kept) {
        PL_TRY(pl_file_look(paths->input, &is_there, err));
        if (is_there) return pl_config_is_option(p->config, "data.text") ? pl_input_check(paths->input, err) : PL_OK;
        return pl_fail(err, PL_E_DATA,
                       "%.350s: is not there any more; it is what the run read from standard input. Put it back, or "
                       "name a file with the same text (`data.text`)",
                       paths->input);
    }
    PL_TRY(find_place(p, paths, path, err));
    PL_TRY(pl_preparation_lock(p, err));
    PL_TRY(pl_input_read(p, "data.text", path, err));
    memset(p->writable->data.text, 0, sizeof p->writable->data.text);
    memcpy(p->writable->data.text, path, strlen(path)); /* it is not read twice */
    return PL_OK;
}

/* ---- what is written among texts ---- */

typedef struct writing {
    const pl_config *config;
    const char *out;
    const char *const *written;
    size_t count;
} writing;

static pl_status check_named(void *context, const char *path, uint64_t number, pl_error *err)
{
    const writing *w = context;
    (void)number;
    for (size_t i = 0; i < w->count; i++) {
        const pl_file_use uses[] = {{w->written[i], "what is prepared", PL_FILE_WRITTEN},
                                    {path, "data.text", PL_FILE_READ}};
        if (w->written[i]) PL_TRY(pl_files_check(uses, 2, err));
    }
    const char *const own[] = {w->out, w->config->data.cache};
    for (size_t i = 0; i < 2; i++) {
        if (!own[i][0] || (!pl_files_are_one(own[i], path) && !pl_file_is_below(own[i], path))) continue;
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: lies in %.350s, a folder of texts, and would be read as one; choose another `%s`",
                       own[i], path, i == 0 ? "run.out" : "data.cache");
    }
    return PL_OK;
}

pl_status pl_text_check_apart(const pl_config *c, const pl_corpus_wish *wish, const char *out,
                              const char *const *written, size_t count, pl_error *err)
{
    writing w = {c, out, written, count};
    return pl_corpus_each_named(wish, check_named, &w, err);
}
