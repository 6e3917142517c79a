/* What no single key of a text's config can tell. */
#include <inttypes.h>

#include "base/size.h"
#include "config/schema.h"
#include "models/model.h"
#include "systems/text.h"

static pl_status check_tokens(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    const uint64_t tokens = (uint64_t)t->batch_size * (uint64_t)cfg->model.sequence; /* 2^48 at most */
    uint64_t seen;
    if (t->steps == PL_CONFIG_AUTO || (!pl_size_mul(tokens, (uint64_t)t->steps, &seen) && seen <= INT64_MAX))
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: train.steps %" PRId64 " with train.batch_size %" PRId64 " is more than 2^63 tokens; take fewer",
                   pl_config_blame(cfg, "train.steps", "train.batch_size", where), t->steps, t->batch_size);
}

static pl_status check_plateau(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (cfg->train.schedule != PL_SCHEDULE_PLATEAU || cfg->data.validation_fraction > 0) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: the schedule plateau watches the validation loss, but data.validation_fraction is 0; raise it, or "
        "take another schedule",
        pl_config_blame(cfg, "train.schedule", "data.validation_fraction", where));
}

static pl_config_level level_of(const pl_config *cfg, const char *path)
{
    return pl_config_origin_at(cfg, pl_config_find(path))->level;
}

/* Without held-out text there is nothing to evaluate: asking for it is a contradiction. A key at its default asks for
 * nothing, though the file may name it: the config that a run keeps names them all. Nor does one that a stronger source
 * has just made pointless. */
static pl_status check_evaluation(const pl_config *cfg, pl_error *err)
{
    static const char *const paths[] = {"train.eval_every", "train.eval_batches"};
    const pl_config_level fraction = level_of(cfg, "data.validation_fraction");
    char where[PL_CONFIG_WHERE_BYTES];
    if (cfg->data.validation_fraction > 0) return PL_OK;
    for (int i = 0; i < 2; i++) {
        if (level_of(cfg, paths[i]) < fraction || pl_config_is_default(cfg, pl_config_find(paths[i]))) continue;
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s needs text held out, but data.validation_fraction is 0; raise it, or take %s out",
                       pl_config_blame(cfg, paths[i], "data.validation_fraction", where), paths[i], paths[i]);
    }
    return PL_OK;
}

pl_status pl_text_check(const pl_config *cfg, pl_error *err)
{
    PL_TRY(pl_model_check(cfg, err));
    PL_TRY(check_tokens(cfg, err));
    PL_TRY(check_plateau(cfg, err));
    return check_evaluation(cfg, err);
}
