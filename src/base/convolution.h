/* A two-dimensional convolution as a plain value: its shape, the ways to compute it, and the rule that chooses one.
 * Images are N,H,W,C; weights are [out, kernel, kernel, in]; what lies outside of the image counts as zero. */
#ifndef PL_BASE_CONVOLUTION_H
#define PL_BASE_CONVOLUTION_H

#include <stdint.h>

/* direct: the sum as it is written. winograd2, winograd4: F(2×2, 3×3) and F(4×4, 3×3) (Lavin & Gray 2016), for kernel 3
 * and stride 1: fewer products, more rounding. */
typedef enum pl_convolution_algorithm {
    PL_CONVOLUTION_DIRECT,
    PL_CONVOLUTION_WINOGRAD2,
    PL_CONVOLUTION_WINOGRAD4,
    PL_CONVOLUTION_ALGORITHM_COUNT
} pl_convolution_algorithm;

const char *pl_convolution_algorithm_name(pl_convolution_algorithm);              /* "direct", … */
int pl_convolution_algorithm_parse(const char *text, pl_convolution_algorithm *); /* 0 on success */

typedef struct pl_convolution_shape {
    int64_t batch, height, width, in;   /* x */
    int64_t out_height, out_width, out; /* y */
    int64_t kernel, stride, pad;        /* pad < kernel on each side */
} pl_convolution_shape;

/* Where the whole window of an output must lie: ⌊(n + 2·pad − kernel)/stride⌋ + 1 outputs, at least 1 where the kernel
 * fits into the padded image. */
static inline int64_t pl_convolution_outputs(int64_t n, int64_t kernel, int64_t stride, int64_t pad)
{
    return n + 2 * pad < kernel ? 0 : (n + 2 * pad - kernel) / stride + 1;
}

/* Multiply-adds of one image with what lies in it, none for padding. */
double pl_convolution_macs(const pl_convolution_shape *);
/* Of one image, forward, of its gradient or of the weights': those that the algorithm does, in Winograd's domain where
 * it is Winograd's, without the transforms. */
double pl_convolution_products(const pl_convolution_shape *, pl_convolution_algorithm);

/* Can it be computed so? direct always can. */
int pl_convolution_allows(const pl_convolution_shape *, pl_convolution_algorithm);

/* What "auto" is for a shape: a fixed rule, which looks neither at the batch nor at the machine, since it decides bits.
 * pl_convolution_rule says it in words. */
pl_convolution_algorithm pl_convolution_choose(const pl_convolution_shape *);
/* What the gradient of the weights takes where the convolution takes `forward`: the same, or direct where there
 * are few channels, or so few windows in an image that transforming their sums back costs more than it saves. */
pl_convolution_algorithm pl_convolution_choose_dw(const pl_convolution_shape *, pl_convolution_algorithm forward);
const char *pl_convolution_rule(void);

#endif
