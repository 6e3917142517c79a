#include "systems/preparation.h"

#include <unistd.h>

#include "store/folder.h"

pl_status pl_preparation_begin(pl_preparation *p, const pl_config *c, pl_config *writable, pl_error *err)
{
    pl_error ignored = {0};
    *p = (pl_preparation){.config = c, .writable = writable, .lock = -1};
    PL_TRY(pl_config_run_folder(c, p->out, sizeof p->out, err));
    pl_status status = pl_saved_find(p->out, PL_SAVED_RECORD, &p->saved, &ignored);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", ignored.text);
    p->holds_run = status != PL_OK || p->saved.record; /* a damaged one is one too */
    return PL_OK;
}

void pl_preparation_end(pl_preparation *p, pl_status status)
{
    if (status != PL_OK) pl_made_undo(&p->made);
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
