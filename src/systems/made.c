#include "systems/made.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/remove.h"

static pl_status note(pl_made *m, const char *path, size_t bytes, pl_error *err)
{
    if (m->count == PL_MADE_MAX) return pl_fail(err, PL_E_USAGE, "%.200s…: too many new folders", path);
    char *copy = pl_strndup(path, bytes);
    if (!copy) return pl_fail(err, PL_E_NOMEM, "no memory to make %.200s", path);
    if (access(copy, F_OK) == 0)
        pl_free(copy);
    else
        m->path[m->count++] = copy;
    return PL_OK;
}

pl_status pl_made_folder(pl_made *m, const char *path, pl_error *err)
{
    for (size_t i = 1; path[0] && i <= strlen(path); i++)
        if ((path[i] == '/' || path[i] == 0) && path[i - 1] != '/') PL_TRY(note(m, path, i, err));
    return pl_folder_create(path, err);
}

pl_status pl_made_file(pl_made *m, const char *path, pl_error *err) { return note(m, path, strlen(path), err); }

/* After the sentence about what was tried before. */
static pl_status add_failure(const pl_error *why, pl_error *err)
{
    const size_t bytes = err ? strlen(err->text) : 0;
    if (bytes && bytes < sizeof err->text) snprintf(err->text + bytes, sizeof err->text - bytes, "; %s", why->text);
    return why->status;
}

pl_status pl_made_undo(pl_made *m, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = m->count; i-- > 0;) {
        pl_error why = {0};
        if (pl_remove_made(m->path[i], &why) == PL_OK) continue;
        status = status == PL_OK ? pl_fail(err, why.status, "%s", why.text) : add_failure(&why, err);
    }
    pl_made_forget(m);
    return status;
}

static bool is_same_or_below(const char *path, const char *folder)
{
    const size_t bytes = strlen(folder);
    return strncmp(path, folder, bytes) == 0 && (path[bytes] == '/' || path[bytes] == 0);
}

void pl_made_keep_outside(pl_made *m, const char *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++)
        if (is_same_or_below(m->path[i], folder) || is_same_or_below(folder, m->path[i]))
            m->path[kept++] = m->path[i];
        else
            pl_free(m->path[i]);
    m->count = kept;
}

void pl_made_forget(pl_made *m)
{
    while (m->count) pl_free(m->path[--m->count]);
}
