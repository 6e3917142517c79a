/* An infinity or a NaN in a model's results comes from one in its weights, or from numbers that grew too large. */
#include "jobs/jobs.h"
#include "run/finite.h"

pl_status pl_fail_not_finite(const pl_session *s, const char *what, pl_error *err)
{
    const char *weight = pl_finite_find_bad(s);
    if (weight)
        return pl_fail(
            err, PL_E_DIVERGED,
            "%s is not finite, for the weight %.300s holds an infinity or NaN; fetch the model's files again, "
            "or give other weights",
            what, weight);
    return pl_fail(
        err, PL_E_DIVERGED,
        "%s is not finite, though all weights are: numbers grow too large on the way; fetch the model's files "
        "again, give other weights, or take bf16 where `generate.cache_type` is fp16",
        what);
}
