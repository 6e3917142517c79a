/* Convolutions on the tiles of the matrix product, forward and for dx.
 *
 * With N,H,W,C a row of pixels is a row of A, and the taps of a kernel row with their channels are contiguous in k:
 * outputs q, q + 1, … of an image row read stretches of taps_x·channels elements that begin step·channels apart. So a
 * tile reads the image where it is, one call for each row of the kernel, each going on where the last one ended. Where
 * a window hangs over the side of the image, the taps are taken one by one, for those outputs alone that have them; a
 * row of the kernel above or below the image is left out. Nothing is unrolled or padded.
 *
 * dx is such a convolution of dy with the kernel turned around, and with a stride as many of them as there are places
 * relative to it (phases): each has its own taps and makes every stride-th pixel of every stride-th row.
 *
 *   unit    a band of rows of one image × some panels of columns of B: what a thread takes at a time. A panel of the
 *           packed weights meets all rows of the band, whose pixels stay in the second-level cache.
 *
 * The team packs the weights once (as tiles read B), meets, and takes units. Pixels of 16 bits that are not multiplied
 * as pairs are widened first, the rows of a band in the thread's own memory.
 *
 * Workspace: counter | packed weights | per thread: a tile, widened rows. */
#ifndef PL_BACKEND_CONVOLUTION_DIRECT_H
#define PL_BACKEND_CONVOLUTION_DIRECT_H

#include "backend/calls.h"
#include "backend/tickets.h"
#include "kernels/gemm.h"

typedef struct pl_convolution_direct {
    pl_convolution_shape shape; /* of the convolution, forward */
    int is_dx;                  /* source: dy, destination: dx; else x and y */
    pl_real type;
    const void *source, *weight;
    pl_gemm_epilogue epilogue; /* of the destination's first pixel; every ld is the number of its channels */

    float *moments; /* of y, or NULL */

    const pl_gemm_kernels *kernels;
    pl_isa isa;
    int threads, workers, widen;     /* workers: threads that can get a unit, with memory of their own */
    int64_t height, width, channels; /* of the source */
    int64_t step;                    /* pixels of the source from output to output */
    int64_t phases, apart;           /* apart² phases; pixels of the destination from output to output of one */
    int64_t rows, n;                 /* of the largest phase; channels of the destination */
    int64_t tap_words;               /* of a tap's channels */
    int64_t panels;                  /* of B */
    int64_t band_rows, bands, unit_panels, panel_units;
    int64_t widened_rows; /* of the source, that a unit may need */
    uint64_t packed_offset, threads_offset, rows_offset, thread_bytes, bytes;
    char *workspace;
} pl_convolution_direct;

/* All but the workspace and what is at the pointers decides how it is cut. */
pl_convolution_direct pl_convolution_direct_of(const pl_convolution_call *, pl_team);
pl_convolution_direct pl_convolution_direct_of_dx(const pl_convolution_dx_call *, pl_team);
void pl_convolution_direct_exec(pl_convolution_direct *, void *workspace, pl_team);

#endif
