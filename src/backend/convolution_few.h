/* Gradients of a convolution whose window is small: one channel under a kernel of 3 × 3 has nine numbers, of which a
 * tile of the matrix product, with a row of the kernel as its columns (convolution_direct.h, convolution_dw.c), would
 * use three lanes at a time. Here the whole window is one side of the product:
 *
 *   dW   windowsᵀ·dy, the windows of a row of pixels packed by columns, dy read where it is
 *   dx   z = dy·W, for each pixel of dy what it gives to every place of its window; then a pixel of x adds up what the
 *        windows that see it hold for it
 *
 * dW is a sum over blocks of rows of an image, which are shared out; an image's blocks are then added in their order to
 * what is there. A pixel of dx adds its terms by rows of the kernel and then its taps, each a chain over the channels
 * of dy. So the bits depend neither on the team nor on how the images are dealt to calls. What a window has outside of
 * the image is zero.
 *
 * Workspace: dW: the blocks' sums | per thread: windows, a row of dy and rows of x in f32 where they are not so
 *            dx: the weights in f32, rows filled up to whole vectors | per thread: a ring of rows of z, a row of dx,
 *            a row of dy in f32 where it is not so */
#ifndef PL_BACKEND_CONVOLUTION_FEW_H
#define PL_BACKEND_CONVOLUTION_FEW_H

#include "backend/calls.h"

/* Says the shape alone, since this decides bits. */
static inline int pl_convolution_window_is_small(const pl_convolution_shape *s)
{
    return s->kernel * s->kernel * s->in <= 32;
}

uint64_t pl_convolution_few_dw_workspace_bytes(const pl_convolution_dw_call *, pl_team);
void pl_convolution_few_dw_exec(const pl_convolution_dw_call *, void *workspace, pl_team);
uint64_t pl_convolution_few_dx_workspace_bytes(const pl_convolution_dx_call *, pl_team);
void pl_convolution_few_dx_exec(const pl_convolution_dx_call *, void *workspace, pl_team);

#endif
