/* loss += Σ over rows with target ≥ 0 of (log Σ exp(logits) − logit[target]), logits = h Wᵀ; dlogits = (softmax −
 * onehot)· scale, dh = dlogits W, dW += dlogitsᵀ h. A row with target −1 counts nothing and its dh is 0. */
#include <math.h>

#include "reference/state.h"

static double logits_of(const operands *o, int64_t row, int64_t width, int64_t vocab, double *logits)
{
    double top = -INFINITY, sum = 0;
    for (int64_t v = 0; v < vocab; v++) {
        logits[v] = 0;
        for (int64_t d = 0; d < width; d++) logits[v] += o->in[0][row * width + d] * o->in[1][v * width + d];
        top = logits[v] > top ? logits[v] : top;
    }
    for (int64_t v = 0; v < vocab; v++) sum += exp(logits[v] - top);
    return top + log(sum);
}

static void cross_entropy(operands *o, bool backward)
{
    int64_t rows = pl_shape_rows(&operand(o, 0)->shape), vocab = operand(o, 1)->shape.dim[0],
            width = operand(o, 1)->shape.dim[1];
    double *logits = scratch(o, (uint64_t)vocab), *dh = scratch(o, (uint64_t)(rows * width)), loss = o->in[4][0];
    for (int64_t r = 0; r < rows; r++) {
        int64_t target = (int64_t)o->in[2][r];
        if (target < 0) continue;
        double lse = logits_of(o, r, width, vocab, logits);
        loss += lse - logits[target];
        for (int64_t v = 0; v < vocab && backward; v++) {
            double d = (exp(logits[v] - lse) - (v == target)) * o->in[3][0] * (o->in[6] ? o->in[6][0] : 1);
            for (int64_t e = 0; e < width; e++) {
                dh[r * width + e] += d * o->in[1][v * width + e];
                if (o->in[5]) o->in[5][v * width + e] += d * o->in[0][r * width + e];
            }
        }
    }
    put(o, 0, &loss);
    if (!backward) return;
    put(o, 1, dh);
    if (o->in[5]) put(o, 2, o->in[5]);
}

void reference_linear_ce(operands *o) { cross_entropy(o, false); }
void reference_linear_ce_bwd(operands *o) { cross_entropy(o, true); }
