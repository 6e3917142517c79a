/* loss += Σ over rows with target ≥ 0 of (log Σ exp(logits) − logit[target]), logits = h Wᵀ; dlogits = (softmax −
 * onehot)· scale, dh = dlogits W, dW += dlogitsᵀ h. A row with target −1 counts nothing and its dh is 0. Behind it the
 * losses of regression. With a cap (linear_ce alone) a logit z is cap·tanh(z/cap). */
#include <math.h>

#include "base/regression.h"
#include "reference/state.h"

static double logits_of(const operands *o, double cap, int64_t row, int64_t width, int64_t vocab, double *logits)
{
    double top = -INFINITY, sum = 0;
    for (int64_t v = 0; v < vocab; v++) {
        logits[v] = 0;
        for (int64_t d = 0; d < width; d++) logits[v] += o->in[0][row * width + d] * o->in[1][v * width + d];
        if (cap > 0) logits[v] = cap * tanh(logits[v] / cap);
        top = logits[v] > top ? logits[v] : top;
    }
    for (int64_t v = 0; v < vocab; v++) sum += exp(logits[v] - top);
    return top + log(sum);
}

static void cross_entropy(operands *o, bool backward)
{
    int64_t rows = pl_shape_rows(&operand(o, 0)->shape), vocab = operand(o, 1)->shape.dim[0],
            width = operand(o, 1)->shape.dim[1];
    const double cap = backward ? 0 : o->node->linear_ce.cap;
    double *each = scratch(o, (uint64_t)rows);
    double *logits = scratch(o, (uint64_t)vocab), *dh = scratch(o, (uint64_t)(rows * width)), loss = o->in[4][0];
    for (int64_t r = 0; r < rows; r++) {
        int64_t target = (int64_t)o->in[2][r];
        if (target < 0) continue;
        double lse = logits_of(o, cap, r, width, vocab, logits);
        loss += each[r] = lse - logits[target];
        for (int64_t v = 0; v < vocab && backward; v++) {
            double d = (exp(logits[v] - lse) - (v == target)) * o->in[3][0] * (o->in[6] ? o->in[6][0] : 1);
            for (int64_t e = 0; e < width; e++) {
                dh[r * width + e] += d * o->in[1][v * width + e];
                if (o->in[5]) o->in[5][v * width + e] += d * o->in[0][r * width + e];
            }
        }
    }
    put(o, 0, &loss);
    if (!backward && o->node->linear_ce.row_loss != PL_NONE) put(o, 1, each);
    if (!backward) return;
    put(o, 1, dh);
    if (o->in[5]) put(o, 2, o->in[5]);
}

void reference_linear_ce(operands *o) { cross_entropy(o, false); }
void reference_linear_ce_bwd(operands *o) { cross_entropy(o, true); }

/* ---- losses of regression (3.6) ---- */

/* Of the error target − prediction; with *slope its derivative by the prediction. */
static double loss_of(const pl_node *n, double e, double *slope)
{
    double delta = n->attr[1].f, alpha = n->attr[2].f, gamma = n->attr[3].f, a = fabs(e),
           s = e > 0   ? 1
               : e < 0 ? -1
                       : 0;
    double under = e > 0 ? n->attr[4].f : 1;
    double h = a <= delta ? e * e / 2 : delta * a - delta * delta / 2, dh = a <= delta ? e : delta * s;
    double power = pow(a, gamma), dpower = a > 0 ? gamma * pow(a, gamma) / a * s : 0;
    const double kinds[][2] = {
        [PL_REGRESSION_MSE] = {e * e, 2 * e},
        [PL_REGRESSION_MAE] = {a, s},
        [PL_REGRESSION_HUBER] = {h, dh},
        [PL_REGRESSION_MSE_MAE] = {alpha * e * e + (1 - alpha) * a, 2 * alpha * e + (1 - alpha) * s},
        [PL_REGRESSION_HUBER_MAE] = {alpha * h + (1 - alpha) * power, alpha * dh + (1 - alpha) * dpower},
        [PL_REGRESSION_WEIGHTED_HUBER] = {under * h, under * dh},
        [PL_REGRESSION_WEIGHTED_HUBER_MAE] = {alpha * under * h + (1 - alpha) * power,
                                              alpha * under * dh + (1 - alpha) * dpower},
    };
    *slope = -kinds[n->attr[0].i][1];
    return kinds[n->attr[0].i][0];
}

/* Item i is hard if fewer than ⌊share·counted⌋ come before it. */
static double weight_of(const operands *o, int64_t i, int64_t items)
{
    double slope, own = loss_of(o->node, o->in[1][i] - o->in[0][i], &slope);
    int64_t before = 0, counted = 0;
    for (int64_t k = 0; k < items; k++) {
        if (isnan(o->in[1][k])) continue;
        double other = loss_of(o->node, o->in[1][k] - o->in[0][k], &slope);
        before += other > own || (other == own && k < i);
        counted++;
    }
    return before < (int64_t)(o->node->attr[5].f * (double)counted) ? o->node->attr[6].f : 1;
}

static void regression(operands *o, bool backward)
{
    bool mined = o->node->op == PL_OP_MINED_REGRESSION_LOSS || o->node->op == PL_OP_MINED_REGRESSION_LOSS_BWD;
    int64_t items = (int64_t)pl_shape_elems(&operand(o, 0)->shape);
    double *d = scratch(o, (uint64_t)items), loss = o->in[3][0];
    for (int64_t i = 0; i < items; i++) {
        if (isnan(o->in[1][i])) continue;
        double slope, own = loss_of(o->node, o->in[1][i] - o->in[0][i], &slope);
        double weight = mined ? weight_of(o, i, items) : 1;
        loss += weight * own;
        d[i] = weight * slope * o->in[2][0] * (o->in[4] ? o->in[4][0] : 1);
    }
    put(o, 0, &loss);
    if (backward) put(o, 1, d);
}

void reference_regression_loss(operands *o) { regression(o, false); }
void reference_regression_loss_bwd(operands *o) { regression(o, true); }
