/* Removes the checkpoints of a run, so that another begins in its folder. First goes what names the latest and the
 * best: whoever ends this halfway leaves a run that can be resumed from what is left, or begun anew again. */
#include <stdio.h>
#include <string.h>

#include "base/remove.h"
#include "store/checkpoint.h"
#include "store/checkpoint_scratch.h"
#include "store/folder.h"

typedef struct forgetting {
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
} forgetting;

static pl_status remove_step(void *context, const char *name, pl_error *err)
{
    static const char *const files[] = {PL_MODEL_FILE, PL_STATE_FILE, PL_RECORD_FILE}, *const ends[] = {"", ".tmp",
                                                                                                        ".old"};
    forgetting *f = context;
    uint64_t step;
    bool is_step = false;
    for (int i = 0; i < 3; i++) is_step = is_step || pl_step_name_parse_with(name, ends[i], &step) == 0;
    if (!is_step) return PL_OK;
    PL_TRY(pl_path_join(f->path, sizeof f->path, f->folder, name, err));
    return pl_remove_folder(f->path, files, sizeof files / sizeof *files, err);
}

pl_status pl_saved_forget(const char *folder, pl_error *err)
{
    static const char *const pointers[] = {"latest", "best"};
    forgetting f;
    PL_TRY(pl_path_join(f.folder, sizeof f.folder, folder, "checkpoints", err));
    for (int i = 0; i < 2; i++) {
        PL_TRY(pl_path_join(f.path, sizeof f.path, f.folder, pointers[i], err));
        PL_TRY(pl_remove_file(f.path, err));
    }
    return pl_folder_each(f.folder, f.list, remove_step, &f, err);
}
