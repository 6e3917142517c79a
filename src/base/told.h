/* What an evaluation of arch hybrid tells of each page: columns of f32 [samples, PL_TOLD_COLUMNS]. */
#ifndef PL_BASE_TOLD_H
#define PL_BASE_TOLD_H

#include "base/policy.h"

enum {
    PL_TOLD_WORDS,
    PL_TOLD_RIGHT,     /* of these, are read as they are */
    PL_TOLD_ALL_RIGHT, /* 1 or 0 */
    PL_TOLD_HALT,      /* logit of "all are right" */
    PL_TOLD_FUSION,    /* variance (over n - 1) and mean of the page's gates; PL_TOLD_ABSENT: there are none */
    PL_TOLD_ADAPTER = PL_TOLD_FUSION + 2,
    PL_TOLD_PLANNER = PL_TOLD_ADAPTER + 2, /* the page's gate, or PL_TOLD_ABSENT */
    PL_TOLD_WAYS,                          /* scores of the planner's ways; PL_TOLD_NO_WAY: there is none */
    PL_TOLD_WAYS_MAX = 8,
    PL_TOLD_COLUMNS = PL_TOLD_WAYS + PL_TOLD_WAYS_MAX
};

/* That of the training of its adapter alone, or of the denoiser, whose numbers are of pixels, not of features: columns
 * of f32 [samples, PL_TOLD_NOISE_COLUMNS]. */
enum {
    PL_TOLD_NOISE,         /* sum of squares of what is noise in a page */
    PL_TOLD_NOISE_LEFT,    /* and of what comes out is off the clean page */
    PL_TOLD_NOISE_ADAPTER, /* as PL_TOLD_ADAPTER */
    PL_TOLD_NOISE_COLUMNS = PL_TOLD_NOISE_ADAPTER + 2
};

/* That of the policy: those columns, what comes out being what its best action makes of a page, and more. */
enum {
    PL_TOLD_DENOISED =
        PL_TOLD_NOISE_COLUMNS, /* the sum of squares of how far the denoiser alone is off the clean page */
    PL_TOLD_POLICY,            /* its logits (base/policy.h) */
    PL_TOLD_POLICY_COLUMNS = PL_TOLD_POLICY + PL_POLICY_LOGITS
};

#define PL_TOLD_ABSENT (-1.0)
#define PL_TOLD_NO_WAY (-1e30)

#endif
