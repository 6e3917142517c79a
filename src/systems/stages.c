/* What trainings of one config have left, for the report of them all. */
#include "store/folder.h"
#include "store/sum_file.h"
#include "systems/system.h"

pl_status pl_system_find_predictions(const char *out, const char *name, char path[PL_FILE_PATH_MAX], bool *is_done,
                                     pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(folder, sizeof folder, out, name, err));
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, folder, PL_STAGE_PREDICTIONS, err));
    return pl_sum_file_check(path, is_done, err);
}

pl_status pl_system_require_done(const char *out, uint32_t done, pl_error *err)
{
    return done ? PL_OK
                : pl_fail(err, PL_E_DATA, "%s: none of its trainings is done; train first: plimsoll train", out);
}
