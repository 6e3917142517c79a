/* Products of words: C[m,n] from integer sums Σ_p dot(x word (i, p), w word (p, j)), exact at every level.
 *
 *   int8     a word is four numbers, neighbours in k: u8 of x, s8 of w; dot is the sum of their products
 *   binary   a word is 32 signs (1 = negative); dot counts those that differ
 *
 * Weights are packed once, into one layout that every level reads, so what a model keeps in memory is no matter of the
 * processor: panels of 16 columns, and in a panel one line of 64 bytes for each word of k.
 *
 *      panel 0: w(0,0) … w(0,15) | w(1,0) … w(1,15) | …      one 512-bit vector a line, two of 256, four of 128 bits
 *      panel 1: w(0,16) …                                    columns past n and numbers past k are zero
 *
 * x is read by rows of words, as the caller has it or prepared (below). Sums are int32: with int8 k is at most
 * PL_INT8_K_MAX, so that 255·128·k fits. No instruction in use saturates: VNNI's vpdpbusd adds to 32 bits at once, and
 * without it both operands are widened to 16 bits for vpmaddwd, which is exact for all weights of 8 bits. vpmaddubsw is
 * not used (its pairs saturate unless weights have 7 bits, reduce_range): it has two instructions a vector on the
 * multiplier's ports, as the two vpmaddwd have. AMX reads a panel as the tiles that it is. */
#ifndef PL_KERNELS_WORDS_H
#define PL_KERNELS_WORDS_H

#include <stdint.h>

#include "base/activation.h"
#include "base/binary.h"
#include "base/isa.h"
#include "base/quantize.h"

enum {
    PL_WORDS_PANEL = 16,      /* columns */
    PL_WORDS_LINE_BYTES = 64, /* of a panel, for each word of k */
    PL_WORDS_PANELS_MAX = 3,  /* of a tile */
    PL_WORDS_MR_MAX = 32,
    PL_WORDS_TILE_COLUMNS = PL_WORDS_PANELS_MAX * PL_WORDS_PANEL,
};

_Static_assert((int)PL_WORDS_PANEL == (int)PL_INT8_PANEL && (int)PL_WORDS_PANEL == (int)PL_BINARY_PANEL,
               "packed weights are read as they lie");

/* From a sum to what is written, in f32 with each step rounded by itself, so that all but the last line has the same
 * bits at every level (and that, too, where the activation is none, ReLU or leaky ReLU):
 *   v = (float)(factor·sum + constant − zero·column_sums[j]) · (column_scale[j]·row_scale[i] or column_scale[j]·scale)
 *   if bias: v += bias[j];  if residual: v += residual[i,j];  if c: c[i,j] = v
 *   y = act(v);  if act_out: act_out[i,j] = y;  if q_out: q_out[i,j] = saturate(round_half_even(y/q_scale) + q_zero)
 * With `gated` columns there are v of column j and of column gated + j, and y = act(the first)·the second; there is
 * neither residual nor c. Pointers are of element (0, 0); NULL = absent. */
typedef struct pl_words_epilogue {
    int64_t gated; /* a multiple of PL_WORDS_PANEL; 0: columns stand for themselves */
    int32_t factor, constant, zero;
    const int32_t *column_sums; /* NULL: zero is not looked at */
    const float *column_scale, *row_scale;
    float scale;
    const float *bias, *residual;
    int64_t ld_residual;
    float *c;
    int64_t ldc;
    pl_activation act;
    float *act_out;
    int64_t ld_act_out;
    uint8_t *q_out;
    int64_t ld_q_out;
    float q_scale;
    int32_t q_zero; /* 0 to 255 */
} pl_words_epilogue;

/* d[r·PL_WORDS_TILE_COLUMNS + j] = Σ over `words` of k; x word (r, p) at x + r·stride + p·x_bytes, panel v of w at
 * w + v·panel_bytes. Strides in bytes. */
typedef void pl_words_tile_fn(int64_t words, const char *x, int64_t stride, const char *w, int64_t panel_bytes,
                              int32_t *d);
typedef pl_words_tile_fn *const pl_words_tile_row[PL_WORDS_PANELS_MAX];

typedef struct pl_words_kernels {
    const char *name;
    int mr, panels; /* of the largest tile that is not wide */
    /* The most rows with three panels; 0: there are no such tiles. They read less for each dot: 9 × 48 takes 12 numbers
     * for 27 vectors, 12 × 32 takes 14 for 24. */
    int wide_rows;
    int x_bytes; /* of a prepared word of x; 4: x may be read where it is if its rows are whole words */
    /* Prepares a row of `bytes` of x, filled up with zeros to whole words. */
    void (*prepare)(int64_t bytes, const void *x, char *to);
    pl_words_tile_row *tiles; /* [rows − 1][panels − 1]; NULL where there is none */
    /* A thread's, around all of its tiles of a product; NULL: nothing. */
    void (*enter)(void);
    void (*leave)(void);
} pl_words_kernels;

/* The table of a level and of the extras that may be used (pl_isa_extras, or fewer). */
const pl_words_kernels *pl_int8_kernels(pl_isa, int extras);
const pl_words_kernels *pl_binary_kernels(pl_isa, int extras);

/* Words of a row as they are, the last one filled up: the usual `prepare`. */
void pl_words_copy(int64_t bytes, const void *x, char *to);

#endif
