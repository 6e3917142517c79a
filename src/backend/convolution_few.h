/* A convolution whose window is small, and its gradients: one channel under a kernel of 3 × 3 has nine numbers. A tile
 * of the matrix product with a row of the kernel as its columns (convolution_direct.h, convolution_dw.c) would use
 * three at a time; here the whole window is one side of the product:
 *
 *   y    windows·Wᵀ, the windows of a row of pixels side by side
 *   dW   windowsᵀ·dy, the windows of a row of pixels packed by columns, dy read where it is
 *   dx   z = dy·W, for each pixel of dy what it gives to every place of its window; then a pixel of x adds up what the
 *        windows that see it hold for it
 *
 * An element of y is one chain. dW is a sum over blocks of rows of an image, which are shared out; an image's blocks
 * are then added in their order to what is there. A pixel of dx adds its terms by rows of the kernel and then its taps,
 * each a chain over the channels of dy. So the bits depend neither on the team nor on how the images are dealt to
 * calls. What a window has outside of the image is zero.
 *
 * Workspace: y:  the weights in f32, a row a number of the window | per thread: windows, a tile, a row of x in f32
 *                where it is not so, and for a pool two rows of y
 *            dW: the blocks' sums | per thread: windows, a row of dy and rows of x in f32 where they are not so
 *            dx: the weights in f32, rows filled up to whole vectors | per thread: a ring of rows of z, a row of dx,
 *                a row of dy in f32 where it is not so */
#ifndef PL_BACKEND_CONVOLUTION_FEW_H
#define PL_BACKEND_CONVOLUTION_FEW_H

#include "backend/convolution_pool.h"
#include "kernels/kernels.h"

/* Says the shape alone, since this decides bits. */
static inline int pl_convolution_window_is_small(const pl_convolution_shape *s)
{
    return s->kernel * s->kernel * s->in <= 32;
}

/* A product of all pixels with a matrix (gemm.c). */
static inline int pl_convolution_is_product(const pl_convolution_shape *s)
{
    return s->kernel == 1 && s->stride == 1 && s->pad == 0;
}

static inline int pl_convolution_is_few(const pl_convolution_shape *s, pl_convolution_algorithm algorithm)
{
    return algorithm == PL_CONVOLUTION_DIRECT && !pl_convolution_is_product(s) && pl_convolution_window_is_small(s);
}

/* What the windows of a row of pixels have at tap v, channel c of a row of the kernel: number q at to[q·ld]. x is the
 * row of the image, NULL outside. */
static inline void pl_convolution_pack_place(const pl_convolution_shape *s, const float *x, int64_t v, int64_t c,
                                             float *to, int64_t ld)
{
    const int64_t before = s->pad - v, room = s->width - 1 + before;
    const int64_t first = before > 0 ? (before + s->stride - 1) / s->stride : 0;
    int64_t end = x && room >= 0 ? room / s->stride + 1 : 0, q = 0;
    if (end > s->out_width) end = s->out_width;
    for (; q < first && q < end; q++) to[q * ld] = 0;
    for (; q < end; q++) to[q * ld] = x[(q * s->stride - before) * s->in + c];
    for (; q < s->out_width; q++) to[q * ld] = 0;
}

/* Row y of an image of x in f32: x's own, or `widened`; NULL: outside. */
const float *pl_convolution_few_row(const pl_kernels *, const pl_convolution_shape *, pl_real, const void *x,
                                    int64_t image, int64_t y, float *widened);

uint64_t pl_convolution_few_workspace_bytes(const pl_convolution_call *, pl_team);
void pl_convolution_few_exec(const pl_convolution_call *, void *workspace, pl_team);
/* Of a y that is not kept: two rows of it at a time, in the thread's own memory. sign: [batch, out] */
uint64_t pl_convolution_few_pool_workspace_bytes(const pl_convolution_pool_call *, pl_team);
void pl_convolution_few_pool_exec(const pl_convolution_pool_call *, const float *sign, void *workspace, pl_team);
uint64_t pl_convolution_few_dw_workspace_bytes(const pl_convolution_dw_call *, pl_team);
void pl_convolution_few_dw_exec(const pl_convolution_dw_call *, void *workspace, pl_team);
uint64_t pl_convolution_few_dx_workspace_bytes(const pl_convolution_dx_call *, pl_team);
void pl_convolution_few_dx_exec(const pl_convolution_dx_call *, void *workspace, pl_team);

#endif
