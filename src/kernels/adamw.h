/* What AdamW's kernel needs besides the arrays: the same for every element, computed once a call in double. */
#ifndef PL_KERNELS_ADAMW_H
#define PL_KERNELS_ADAMW_H

typedef struct pl_adamw_rates {
    float beta1, rest1, beta2, rest2; /* rest = 1 − beta */
    float rate;                       /* lr/(1 − beta1ᵗ) */
    float root_scale;                 /* 1/√(1 − beta2ᵗ) */
    float eps;
    float decay;      /* lr·weight_decay */
    float grad_scale; /* 1 without clipping */
} pl_adamw_rates;

#endif
