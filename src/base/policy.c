#include "base/policy.h"

#include <math.h>

#include "base/softmax.h"

/* Of equal ones the first, as operators have it. */
static int largest(const float *logit, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (logit[i] > logit[best]) best = i;
    return best;
}

pl_policy_choice pl_policy_choose(const float *logits)
{
    const float *size = logits + PL_POLICY_SIZE, *across = logits + PL_POLICY_ACROSS, *down = logits + PL_POLICY_DOWN;
    return (pl_policy_choice){.size = largest(size, PL_POLICY_SIZES) - PL_POLICY_SIZE_AS_IS,
                              .across = largest(across, PL_POLICY_SHIFTS) - PL_POLICY_SHIFT_AS_IS,
                              .down = largest(down, PL_POLICY_SHIFTS) - PL_POLICY_SHIFT_AS_IS,
                              .strength = 1 / (1 + exp(-(double)logits[PL_POLICY_STRENGTH])),
                              .entropy = pl_softmax_entropy(size, PL_POLICY_SIZES) +
                                         pl_softmax_entropy(across, PL_POLICY_SHIFTS) +
                                         pl_softmax_entropy(down, PL_POLICY_SHIFTS)};
}
