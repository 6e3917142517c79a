/* Activations (0.3): GELU x·Φ(x), exact; SiLU x·σ(x); tanh; max(0, x), whose slope at 0 is 0; leaky
 * ReLU, x or 0.01·x, whose slope at 0 is 0.01; σ; QuickGELU x·σ(1.702·x). */
#include <math.h>

#include "reference/state.h"

double reference_act(pl_activation act, double x)
{
    switch (act) {
    case PL_ACT_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2)));
    case PL_ACT_SILU:
        return x / (1 + exp(-x));
    case PL_ACT_TANH:
        return tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? x : 0;
    case PL_ACT_LEAKY_RELU:
        return x > 0 ? x : 0.01 * x;
    case PL_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case PL_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    case PL_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

double reference_act_slope(pl_activation act, double x)
{
    double s = 1 / (1 + exp(-x)), quick = 1 / (1 + exp(-1.702 * x)), phi = exp(-x * x / 2) / sqrt(2 * acos(-1));
    switch (act) {
    case PL_ACT_GELU:
        return 0.5 * (1 + erf(x / sqrt(2))) + x * phi;
    case PL_ACT_SILU:
        return s + x * s * (1 - s);
    case PL_ACT_TANH:
        return 1 - tanh(x) * tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? 1 : 0;
    case PL_ACT_LEAKY_RELU:
        return x > 0 ? 1 : 0.01;
    case PL_ACT_SIGMOID:
        return s * (1 - s);
    case PL_ACT_QUICK_GELU:
        return quick + 1.702 * x * quick * (1 - quick);
    case PL_ACT_GELU_TANH: {
        const double scale = sqrt(2 / acos(-1)), t = tanh(scale * (x + 0.044715 * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
    }
    default:
        return 1;
    }
}

void reference_activation(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[0][i] = reference_act((pl_activation)o->node->attr[0].i, o->in[0][i]);
    put(o, 0, o->in[0]);
}

void reference_activation_bwd(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[1][i] *= reference_act_slope((pl_activation)o->node->attr[0].i, o->in[0][i]);
    put(o, 0, o->in[1]);
}
