/* Which way and how far a weight goes at a learning rate of 1, in double: AdamW's quotient or Adam-atan2's angle. */
#ifndef PL_KERNELS_REF_ADAMW_DIRECTION_H
#define PL_KERNELS_REF_ADAMW_DIRECTION_H

#include <math.h>

#include "kernels/adamw.h"

/* Of two infinities NaN in both: a run that diverged shows it. */
static inline double pl_adamw_direction(const pl_adamw_rates *k, double m, double root)
{
    if (!k->angle) return m / (root * k->root_scale + k->eps);
    return isinf(m) && isinf(root) ? (double)NAN : atan2(m, root * k->root_scale);
}

#endif
