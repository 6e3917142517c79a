#include "systems/preparation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/folder.h"

pl_status pl_preparation_begin(pl_preparation *p, const pl_config *c, pl_config *writable, pl_command command,
                               pl_error *err)
{
    pl_error ignored = {0};
    struct stat info;
    *p = (pl_preparation){.config = c, .writable = writable, .command = command, .lock = -1};
    PL_TRY(pl_config_run_folder(c, p->out, sizeof p->out, err));
    pl_status status = pl_saved_find(p->out, PL_SAVED_RECORD, &p->saved, &ignored);
    /* A folder that cannot be read is neither a damaged run nor a missing one. */
    const bool is_hidden = status == PL_E_STORAGE && stat(p->out, &info) == 0 && S_ISDIR(info.st_mode);
    if (status == PL_E_NOMEM || is_hidden) return pl_fail(err, status, "%s", ignored.text);
    p->holds_run = status != PL_OK || p->saved.record; /* a damaged run is a run, too */
    return PL_OK;
}

uint64_t pl_preparation_saved(const pl_preparation *p, const char *fact)
{
    return p->saved.record ? pl_facts_value(&p->saved.record->identity, fact, 0) : 0;
}

void pl_preparation_end(pl_preparation *p, pl_status status)
{
    if (status != PL_OK) (void)pl_made_undo(&p->made, NULL);
    pl_made_forget(&p->made);
    pl_folder_unlock(&p->lock);
    pl_saved_deinit(&p->saved);
}

pl_status pl_preparation_lock(pl_preparation *p, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    if (p->lock >= 0) return PL_OK;
    PL_TRY(pl_made_folder(&p->made, p->out, err));
    PL_TRY(pl_path_join(path, sizeof path, p->out, "lock", err));
    if (p->spare && access(path, F_OK) != 0) PL_TRY(p->spare(p, err));
    PL_TRY(pl_made_file(&p->made, path, err));
    return pl_folder_lock(p->out, &p->lock, err);
}

/* A cache belongs to nobody: a second process waits and finds the work done. The lock is on the folder itself, so no
 * file stays; where the file system has no such lock, the files' checksums tell what went wrong. */
pl_status pl_preparation_lock_cache(pl_preparation *p, const char *folder, int *lock, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat cache, out;
    *lock = -1;
    PL_TRY(pl_made_folder(&p->made, folder, err));
    if (stat(folder, &cache) == 0 && stat(p->out, &out) == 0 && cache.st_dev == out.st_dev &&
        cache.st_ino == out.st_ino)
        return pl_preparation_lock(p, err);
    /* The folder is another run's: whoever works there holds it for long. */
    PL_TRY(pl_path_join(path, sizeof path, folder, "checkpoints", err));
    if (access(path, F_OK) == 0) return pl_folder_lock(folder, lock, err);
    *lock = pl_io_open(folder, O_RDONLY | O_DIRECTORY);
    if (*lock >= 0 && pl_io_lock(*lock, LOCK_EX) != 0) { /* as said above */
    }
    return PL_OK;
}
