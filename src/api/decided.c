#include "api/decided.h"

#include <unistd.h>

#include "base/file.h"

static void take(pl_config *c, pl_config_optimizer_state state, pl_config_mixed precision)
{
    if (c->train.optimizer_state == PL_OPTIMIZER_STATE_AUTO) c->train.optimizer_state = state;
    if (c->train.mixed_precision == PL_MIXED_AUTO) c->train.mixed_precision = precision;
}

void pl_decide(pl_config *c, const pl_choice *choice)
{
    static const pl_config_optimizer_state states[] = {[PL_CHOICE_STATE_F32] = PL_OPTIMIZER_STATE_F32,
                                                       [PL_CHOICE_STATE_BF16] = PL_OPTIMIZER_STATE_BF16,
                                                       [PL_CHOICE_STATE_8BIT] = PL_OPTIMIZER_STATE_8BIT};
    take(c, states[choice->optimizer_state],
         choice->precision == PL_DTYPE_BF16  ? PL_MIXED_BF16
         : choice->precision == PL_DTYPE_F16 ? PL_MIXED_FP16
                                             : PL_MIXED_OFF);
}

pl_status pl_decide_as_kept(pl_config *c, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(c, folder, sizeof folder, err));
    PL_TRY(pl_path_join(path, sizeof path, folder, "config.yaml", err));
    if (access(path, F_OK) != 0) return PL_OK;
    pl_config *kept = pl_config_create();
    if (!kept) return pl_fail(err, PL_E_NOMEM, "no memory for %.300s", path);
    pl_status status = pl_config_load_file(kept, path, err);
    if (status == PL_OK) take(c, kept->train.optimizer_state, kept->train.mixed_precision);
    pl_config_destroy(kept);
    return status;
}
