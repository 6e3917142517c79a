#include "base/softmax.h"

#include <math.h>

double pl_softmax_entropy(const float *logit, int count)
{
    double top = -INFINITY, all = 0, weighed = 0;
    for (int i = 0; i < count; i++) top = fmax(top, (double)logit[i]);
    for (int i = 0; i < count; i++) {
        const double below = (double)logit[i] - top, e = exp(below);
        all += e, weighed += e > 0 ? e * below : 0;
    }
    return log(all) - weighed / all;
}
