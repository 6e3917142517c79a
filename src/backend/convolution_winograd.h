/* Convolutions of 3 × 3 with stride 1 by F(2×2, 3×3) or F(4×4, 3×3) (kernels/winograd.h), forward and for dx, which is
 * such a convolution of dy with the kernel turned around.
 *
 *   window   t × t pixels of the source (t = m + 2) that give m × m outputs; those of all images are counted as one row
 *   unit     a stretch of windows: what a thread takes at a time
 *
 * The team transforms the weights once a call, into panels as tiles read B, one for each point of the transformed
 * domain, and meets. For its unit a thread transforms the windows; then, a panel of output channels after the other,
 * makes the products of all points, whose sums stay in the second-level cache, and transforms them back. Where windows
 * and a panel of weights would not stay there together, it does so for the left half of the points, keeping what that
 * adds to the outputs, then for the right half. Weights come from beyond that cache and are asked for a point ahead.
 * Windows at the border are copied with zeros around what lies in the image first.
 *
 * The weights could be kept transformed from call to call, for as long as they do not change: they are laid out by
 * shape and level alone, not by team or batch (weights_offset, weights_bytes), so a value of the plan could hold them,
 * made by a node of its own. Within a call it is one part in the number of windows.
 *
 * Everything is f32 from the first transform to the last, for numbers of 16 bits too. An element depends on its window
 * alone, so its bits depend on neither batch nor team.
 *
 * Workspace: counter | transformed weights | per thread: windows, sums, what the left half leaves, outputs, a window at
 * the border. */
#ifndef PL_BACKEND_CONVOLUTION_WINOGRAD_H
#define PL_BACKEND_CONVOLUTION_WINOGRAD_H

#include <string.h>

#include "backend/calls.h"
#include "backend/tickets.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"

typedef struct pl_convolution_winograd {
    int is_dx; /* source: dy, destination: dx; else x and y */
    pl_real type;
    const void *source, *weight;
    pl_gemm_epilogue epilogue;
    int64_t batch, height, width, channels; /* of the source */
    int64_t rows, columns, n;               /* of the destination, and its channels */
    int64_t pad;                            /* of the source */

    const pl_gemm_kernels *kernels;
    const pl_winograd_kernels *transforms;
    int threads, workers; /* threads that have a unit or weights to transform, with memory of their own */
    int64_t m, t, points;
    int64_t windows_y, windows_x, windows; /* of an image; of all */
    int64_t parts, part_points;            /* 2: the halves of pl_winograd_part, one after the other */
    int64_t unit_windows, units;
    int64_t panels, window_words; /* of output channels; of a part of a transformed window, point by point */
    uint64_t weights_offset, weights_bytes, threads_offset, sums_offset, kept_offset, outputs_offset, border_offset,
        thread_bytes, bytes;
    char *workspace;
} pl_convolution_winograd;

pl_convolution_winograd pl_convolution_winograd_of(const pl_convolution_call *, pl_team);
pl_convolution_winograd pl_convolution_winograd_of_dx(const pl_convolution_dx_call *, pl_team);
void pl_convolution_winograd_exec(pl_convolution_winograd *, void *workspace, pl_team);

/* size × size pixels of so many bytes, from (top, left) of an image on; zeros where there is no image. */
static inline void pl_convolution_copy_square(const char *image, int64_t height, int64_t width, int64_t pixel,
                                              int64_t top, int64_t left, int64_t size, char *to)
{
    int64_t begin = left > 0 ? left : 0, end = left + size < width ? left + size : width;
    memset(to, 0, (size_t)(size * size * pixel));
    for (int64_t y = top > 0 ? top : 0; y < top + size && y < height && begin < end; y++)
        memcpy(to + ((y - top) * size + begin - left) * pixel, image + (y * width + begin) * pixel,
               (size_t)((end - begin) * pixel));
}

/* The gradient of the weights: convolution_winograd_dw.c. */
uint64_t pl_convolution_winograd_dw_workspace_bytes(const pl_convolution_dw_call *, pl_team);
void pl_convolution_winograd_dw_exec(const pl_convolution_dw_call *, void *workspace, pl_team);

#endif
