/* What is asked for in vain where nothing is held out for evaluation. */
#include "config/schema.h"
#include "systems/system.h"

static pl_status check_early(const pl_config *cfg, const pl_config_key *nothing, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (cfg->train.early_stopping_patience == 0) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: to stop early (train.early_stopping_patience) the validation loss is watched, but %s is 0; raise "
        "it, or set the patience to 0",
        pl_config_blame(cfg, "train.early_stopping_patience", nothing->path, where), nothing->path);
}

static pl_status check_plateau(const pl_config *cfg, const pl_config_key *nothing, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (cfg->train.schedule != PL_SCHEDULE_PLATEAU) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: the schedule plateau watches the validation loss, but %s is 0; raise it, or take another "
                   "schedule",
                   pl_config_blame(cfg, "train.schedule", nothing->path, where), nothing->path);
}

/* Without a validation part there is nothing to evaluate: asking for it is a contradiction. A key at its default asks
 * for nothing, though the file may name it: the config that a run keeps names them all. Nor does one that a stronger
 * source has just made pointless. */
static pl_status check_evaluation(const pl_config *cfg, const pl_config_key *nothing, pl_error *err)
{
    static const char *const paths[] = {"train.eval_every", "train.eval_batches"};
    const pl_config_level level = pl_config_origin_at(cfg, nothing)->level;
    char where[PL_CONFIG_WHERE_BYTES];
    for (int i = 0; i < 2; i++) {
        const pl_config_key *key = pl_config_find(paths[i]);
        if (pl_config_origin_at(cfg, key)->level < level || pl_config_is_default(cfg, key)) continue;
        return pl_fail(err, PL_E_CONFIG, "%s: %s needs %s held out, but %s is 0; raise it, or take %s out",
                       pl_config_blame(cfg, paths[i], nothing->path, where), paths[i], pl_system_words(cfg)->data,
                       nothing->path, paths[i]);
    }
    return PL_OK;
}

pl_status pl_system_check_held_out(const pl_config *cfg, pl_error *err)
{
    const pl_config_key *nothing = pl_config_find_nothing_held_out(cfg);
    if (!nothing) return PL_OK;
    PL_TRY(check_plateau(cfg, nothing, err));
    PL_TRY(check_early(cfg, nothing, err));
    return check_evaluation(cfg, nothing, err);
}
