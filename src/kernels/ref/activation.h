/* Activations and their derivatives, scalar, with the C library's functions in double precision. One place for the
 * kernel of its own and for a product's epilogue, so that a value computed again by the other has the same bits. */
#ifndef PL_KERNELS_REF_ACTIVATION_H
#define PL_KERNELS_REF_ACTIVATION_H

#include <math.h>

#include "base/activation.h"

static inline double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* ½x(1 + tanh(u)) is x·σ(2u). */
static inline double gelu_tanh_argument(double x)
{
    return 2 * PL_GELU_TANH_SCALE * (x + PL_GELU_TANH_CUBE * x * x * x);
}

static inline double ref_activation(pl_activation act, double x)
{
    switch (act) {
    case PL_ACT_GELU:
        return x < -40 ? 0 : x * normal_cdf(x);
    case PL_ACT_SILU:
        return x < -740 ? 0 : x * sigmoid(x);
    case PL_ACT_TANH:
        return tanh(x);
    case PL_ACT_RELU:
        return x < 0 ? 0 : x;
    case PL_ACT_LEAKY_RELU:
        return x < 0 ? PL_LEAKY_RELU_SLOPE * x : x;
    case PL_ACT_SIGMOID:
        return sigmoid(x);
    case PL_ACT_QUICK_GELU:
        return x < -435 ? 0 : x * sigmoid(PL_QUICK_GELU_SCALE * x);
    case PL_ACT_GELU_TANH:
        return x < -40 ? 0 : x * sigmoid(gelu_tanh_argument(x));
    default:
        return x;
    }
}

static inline double ref_activation_slope(pl_activation act, double x)
{
    double c = x < -700 ? -700 : x > 700 ? 700 : x; /* keeps inf·0 away; NaN passes */
    switch (act) {
    case PL_ACT_GELU:
        return normal_cdf(c) + c * exp(-0.5 * c * c) * 0.39894228040143267794;
    case PL_ACT_SILU:
        return sigmoid(c) * (1 + c * sigmoid(-c));
    case PL_ACT_TANH:
        return 1 - tanh(x) * tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? 1 : x <= 0 ? 0 : x;
    case PL_ACT_LEAKY_RELU:
        return x > 0 ? 1 : x <= 0 ? PL_LEAKY_RELU_SLOPE : x;
    case PL_ACT_SIGMOID:
        return sigmoid(c) * sigmoid(-c);
    case PL_ACT_QUICK_GELU:
        c *= PL_QUICK_GELU_SCALE;
        return sigmoid(c) * (1 + c * sigmoid(-c));
    case PL_ACT_GELU_TANH: {
        const double s = sigmoid(gelu_tanh_argument(c)), rest = sigmoid(-gelu_tanh_argument(c));
        return s + 2 * PL_GELU_TANH_SCALE * c * (1 + 3 * PL_GELU_TANH_CUBE * c * c) * s * rest;
    }
    default:
        return 1;
    }
}

#endif
