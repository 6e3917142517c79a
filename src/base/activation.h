/* The activations that operators and kernels know: x → x (none), x·Φ(x) (GELU, exact), x·σ(x) (SiLU), tanh, max(0, x),
 * leaky ReLU (x or 0.01·x, whichever is larger; its slope at 0 is 0.01), σ(x), x·σ(1.702·x) (QuickGELU),
 * ½x(1 + tanh(√(2/π)(x + 0.044715x³))) (GELU by its approximation). */
#ifndef PL_BASE_ACTIVATION_H
#define PL_BASE_ACTIVATION_H

#define PL_LEAKY_RELU_SLOPE 0.01f
#define PL_QUICK_GELU_SCALE 1.702f
#define PL_GELU_TANH_CUBE   0.044715
#define PL_GELU_TANH_SCALE  0.79788456080286536 /* √(2/π) */

typedef enum pl_activation {
    PL_ACT_NONE,
    PL_ACT_GELU,
    PL_ACT_SILU,
    PL_ACT_TANH,
    PL_ACT_RELU,
    PL_ACT_LEAKY_RELU,
    PL_ACT_SIGMOID,
    PL_ACT_QUICK_GELU,
    PL_ACT_GELU_TANH,
    PL_ACT_COUNT
} pl_activation;

/* "none", "gelu", "silu", "tanh", "relu", "leaky_relu", "sigmoid", "quick_gelu", "gelu_tanh" */
const char *pl_activation_name(pl_activation);
int pl_activation_parse(const char *text, pl_activation *); /* 0 on success */

#endif
