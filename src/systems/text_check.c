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
    const uint64_t tokens = (uint64_t)pl_config_batch(cfg) * (uint64_t)cfg->model.sequence; /* 2^48 at most */
    uint64_t seen;
    if (t->steps == PL_CONFIG_AUTO || (!pl_size_mul(tokens, (uint64_t)t->steps, &seen) && seen <= INT64_MAX))
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: train.steps %" PRId64 " with train.batch_size %" PRId64 " is more than 2^63 tokens; take fewer",
                   pl_config_blame(cfg, "train.steps", "train.batch_size", where), t->steps, t->batch_size);
}

static pl_status check_schedule(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    if (t->steps != PL_CONFIG_AUTO && t->warmup_steps > t->steps)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.warmup_steps %" PRId64 " is more than train.steps %" PRId64 "; take fewer, or auto",
                       pl_config_blame(cfg, "train.warmup_steps", "train.steps", where), t->warmup_steps, t->steps);
    return PL_OK;
}

static pl_status check_format(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (cfg->data.format != PL_CONFIG_TEXTS_GRAMMAR) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: data.format grammar makes texts for plimsoll encode; a language model learns from files: leave it "
        "out, or take plain, lines, jsonl, csv or squad",
        pl_config_where(cfg, "data.format", where, sizeof where));
}

pl_status pl_text_check(const pl_config *cfg, pl_error *err)
{
    PL_TRY(check_schedule(cfg, err));
    PL_TRY(check_format(cfg, err));
    return check_tokens(cfg, err);
}
