#include "models/check.h"

#include <inttypes.h>

pl_status pl_check_divides(const pl_config *c, const char *key, int64_t value, const char *by_key, int64_t by,
                           pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (value % by == 0) return PL_OK;
    pl_config_blame(c, by_key, key, where);
    return pl_fail(err, PL_E_CONFIG, "%s: %s %" PRId64 " does not divide %s %" PRId64 "; take one that does", where,
                   by_key, by, key, value);
}

pl_status pl_check_binary(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const bool allowed = (c->fit.allow & (PL_ALLOW_BF16 | PL_ALLOW_FP16)) != 0;
    const bool narrow = c->train.mixed_precision == PL_MIXED_BF16 || c->train.mixed_precision == PL_MIXED_FP16;
    const char *key = narrow ? "train.mixed_precision" : "fit.allow";
    if (c->model.binary == PL_CONFIG_BINARY_NONE) return PL_OK;
    if (!narrow && !(allowed && c->train.mixed_precision == PL_MIXED_AUTO)) return PL_OK;
    pl_config_blame(c, "model.binary", key, where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.binary makes signs of numbers in f32, and %s stores activations in 16 bits; leave one of "
                   "the two out",
                   where, key);
}
