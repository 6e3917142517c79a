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
