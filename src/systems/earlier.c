/* Of systems whose trainings begin with the weights of the one before. */
#include <unistd.h>

#include "store/checkpoint.h"
#include "store/folder.h"
#include "systems/system.h"

/* What is damaged the run finds out. */
static bool is_trained(const char *folder)
{
    pl_saved saved;
    pl_error damaged;
    if (access(folder, F_OK) != 0) return false;
    if (pl_saved_find(folder, PL_SAVED_RECORD, &saved, &damaged) != PL_OK) return true;
    const bool has_record = saved.record != NULL;
    pl_saved_deinit(&saved);
    return has_record;
}

pl_status pl_system_check_earlier(const pl_config *c, const pl_earlier *e, pl_error *err)
{
    char out[PL_FILE_PATH_MAX], folder[PL_FILE_PATH_MAX];
    if (e->named[0]) return PL_OK;
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(pl_path_join(folder, sizeof folder, out, e->earlier, err));
    if (is_trained(folder)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: holds no training that %s could begin with; make it first, with the same command and "
                   "`stage` %s, or name another with %s",
                   folder, e->stage, e->earlier, e->key);
}
