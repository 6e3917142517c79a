/* What an operator needs to run, as a plain value: sizes, strides, pointers. The backend turns a graph node and the
 * addresses of its values into one of these (bind), the program keeps it in a flat array, and the exec function runs it
 * with a team. No call allocates, locks or keeps state; each gives the same bits for any number of threads.
 *
 * Letters: B sequences of a micro-batch, T tokens of a sequence, D width, H heads, dh = D/H, V vocabulary, R rows =
 * B·T. All matrices are row-major f32 unless said otherwise. `ld` is the distance between rows in elements. Pointers
 * marked (run) are read when the call runs, not when it is bound: they point at graph inputs that change from step to
 * step. Unless a comment says otherwise, outputs may not overlap inputs. What is declared void is of the call's `type`,
 * f32, bf16 or f16; arithmetic within is f32 all the same. */
#ifndef PL_BACKEND_CALLS_H
#define PL_BACKEND_CALLS_H

#include <stdint.h>

#include "base/activation.h"
#include "base/convolution.h"
#include "base/encoding.h"
#include "base/narrow.h"
#include "base/quantize.h"
#include "base/binary.h"
#include "kernels/adamw.h"
#include "kernels/spectrum.h"
#include "kernels/team.h"

/* ---- gemm.c: C[m,n] = (beta·C +) A[m,k]·B[k,n] with an epilogue ----
 * Each of A, B and C is f32, bf16 or f16; sums and epilogue are f32, and what is written is rounded to nearest.
 * One stride of A and one of B is 1, both only with one row or column. act_again needs grad_of. An element is one chain
 * of multiply-adds in ascending k, from zero; with accumulate, C f32 and no other epilogue, from C. So a row of C has
 * the same bits however many rows the call has, and the gradient of a weight has the same bits however its tokens are
 * dealt to calls. So whoever sets dots must not look at the number of rows. Where the instruction set multiplies pairs
 * of bf16 (avx512_bf16), subnormal operands count as zero, and if A has k alone contiguous the second of each pair is
 * added before the first. Where it multiplies tiles of them (amx) and A has k alone contiguous, each 32 elements of k
 * are summed by themselves and then added: such a product may be cut along k only at multiples of 32. So is the
 * gradient of a weight whose samples have a known number of tokens, k_sample, that fills most of a multiple of 32: each
 * sample is then summed by itself in such groups, the last one filled up with zeros, and calls may be cut between
 * samples and between groups. k_first says where in its sample the first token is (pl_gemm_end_of_tokens).
 * The epilogue runs on each element once the sum over k is complete, in this order:
 *   s = Σ;  if bias: s += bias[j];  if residual: s += residual[i,j];  if beta: s += C[i,j];
 *   if grad_of: s = (s rounded to C's type)·act'(grad_of[i,j]);  C[i,j] = s;  if act_out: act_out[i,j] = act(C[i,j])
 *   if act_again: act_again[i,j] = act(grad_of[i,j])  (the activation computed once more, with its derivative)
 * So an activation fused with its product has the bits of the two operators in sequence, in 16 bits too; both sums of a
 * gated product are rounded as if they had been stored. With B in blocks (b_encoding) A is f32, and the bits are those
 * of the product with the widened weight. With A in blocks, too, of Q8_0 (a_encoding; a_row is k), whole numbers are
 * multiplied (kernels/gemm_rounded.h), or with dots the numbers that the blocks stand for. */
typedef struct pl_gemm_call {
    int64_t m, n, k;
    pl_real a_type, b_type, type; /* of A, of B, of C and whatever else is declared void */
    const void *a;
    int64_t a_row, a_col;   /* A[i,p] = a[i·a_row + p·a_col] */
    pl_encoding a_encoding; /* of blocks only where B is of blocks along k; neither gated nor accumulate */
    const void *b;
    int64_t b_row, b_col;   /* B[p,j] = b[p·b_row + j·b_col] */
    pl_encoding b_encoding; /* of blocks: b_row is 1 and b_col k, or b_row is n and b_col 1; b_type is f32 */
    void *c;
    int64_t ldc;
    int accumulate;       /* beta = 1 */
    int dots;             /* few rows, k contiguous in A and B: sums along vectors, other last bits, B read just once */
    const float *bias;    /* [n] or NULL */
    const void *residual; /* [m,n] or NULL; may be C itself */
    int64_t ld_residual;
    pl_activation act;
    void *act_out; /* [m,n] or NULL; where it is C, C's content is the activation alone */
    int64_t ld_act_out;
    const void *grad_of; /* [m,n] pre-activation, or NULL; may be C itself */
    int64_t ld_grad_of;
    void *act_again; /* [m,n] or NULL */
    int64_t ld_act_again;
    int64_t k_sample, k_first; /* k_sample 0: k may be cut anywhere */
    int gated; /* B has 2n columns: C[i,j] = act(s[i,j])·s[i,n+j] and nothing else; k is contiguous in B */
} pl_gemm_call;
uint64_t pl_gemm_workspace_bytes(const pl_gemm_call *, pl_team);   /* pointers are not looked at */
void pl_gemm_exec(const pl_gemm_call *, void *workspace, pl_team); /* workspace aligned to 64 */

/* ---- gemm_linear.c: the products of a linear layer, without epilogue ---- */
/* y[m,n] = x[m,k] Wᵀ */
pl_gemm_call pl_gemm_linear(pl_real, int64_t m, int64_t n, int64_t k, const void *x, const void *w, void *y);
/* dx[m,n] = dy[m,k] W */
pl_gemm_call pl_gemm_linear_dx(pl_real, int64_t m, int64_t n, int64_t k, const void *dy, const void *w, void *dx);
/* dW[m,n] += dy[rows,m]ᵀ x[rows,n], in f32 */
pl_gemm_call pl_gemm_linear_dw(pl_real, int64_t m, int64_t n, int64_t rows, const void *dy, const void *x, float *dw);

/* The same product in f32 with W as it is encoded. PL_ENCODING_F32: as it is. */
void pl_gemm_encode(pl_gemm_call *, pl_encoding);

/* Where a stretch of at most `limit` of `rows` tokens, beginning at `first`, may end: at the end of the rows or of a
 * group (above). With k_sample > 0 the limit is at least PL_GEMM_TOKEN_GROUP. */
enum { PL_GEMM_TOKEN_GROUP = 32 };
int64_t pl_gemm_end_of_tokens(int64_t first, int64_t limit, int64_t rows, int64_t k_sample);

/* ---- gemm_int8.c: products for a finished model, y[m,n] = x[m,k] Wᵀ with W [n,k] of 8 bits ----
 *   v = (Σ_p q_x[i,p]·q_w[j,p] − x_zero·Σ_p q_w[j,p]) · (x_scale·scale[j]), then the epilogue of kernels/words.h
 * Sums are exact and every step of the epilogue is rounded by itself: the bits are the same at every level, with any
 * team, up to the activation (none, ReLU and leaky ReLU too). k ≤ PL_INT8_K_MAX.
 * Weights are constants: they are packed once, into a layout that is the same at every level; what they were packed
 * from is no longer needed. */
typedef struct pl_int8_call {
    int64_t m, n, k;
    int gated; /* W has 2n rows, n whole panels of them: act(v of row j)·(v of row n + j) takes the place of act(v);
                * neither residual nor c */
    const uint8_t *x;    /* q_x, or NULL: */
    const float *x_real; /* it is saturate(round_half_even(x_real/x_scale) + x_zero), made in the workspace */
    int64_t ld_x;        /* of the one that is given */
    float x_scale;
    int32_t x_zero;        /* 0 to 255 */
    const void *packed;    /* weights; aligned to 64 */
    const float *bias;     /* [n], gated [2n], or NULL */
    const float *residual; /* [m,n] or NULL; may be C itself */
    int64_t ld_residual;
    float *c; /* v, or NULL */
    int64_t ldc;
    pl_activation act;
    float *act_out; /* act(v), or NULL; may be C: then its content is the activation alone */
    int64_t ld_act_out;
    uint8_t *q_out; /* act(v) as u8 with q_scale and q_zero, or NULL */
    int64_t ld_q_out;
    float q_scale;
    int32_t q_zero;
} pl_int8_call;
uint64_t pl_int8_workspace_bytes(const pl_int8_call *, pl_team);
void pl_int8_exec(const pl_int8_call *, void *workspace, pl_team); /* workspace aligned to 64 */

/* packed: pl_int8_packed_bytes of base/quantize.h */
void pl_int8_pack(int64_t n, int64_t k, const int8_t *w, int64_t ld, const float *scale, void *packed);
/* The reverse, in the layout in which other programs multiply: w [k,n]. The packed bytes begin with the n scales. */
void pl_int8_unpack(int64_t n, int64_t k, const void *packed, int8_t *w);
/* The first row whose scale is not a number above 0, or whose sum is not that of its numbers; -1: no such row. */
int64_t pl_int8_check(int64_t n, int64_t k, const void *packed);
/* A row of weights, symmetric: q = round_half_even(w/scale) from −127 to 127; returns max|w|/127, or 1 for zeros */
float pl_int8_quantize_channel(int64_t k, const float *w, int8_t *q);

typedef struct pl_quantize_call { /* q = saturate(round_half_even(x/scale) + zero); NaN becomes 0 */
    int64_t rows, k, ld_x, ld_q;
    const float *x;
    float scale;
    int32_t zero;
    uint8_t *q;
} pl_quantize_call;
void pl_quantize_exec(const pl_quantize_call *, pl_team);

/* ---- gemm_binary.c: the same with signs (Rastegari et al., "XNOR-Net", 2016) ----
 *   v = (k − 2·#{p: x and w have other signs}) · (alpha[j]·beta[i]), then the epilogue; the sign of 0 is +
 * beta[i] is the mean of |x| over row i and alpha[j] usually that of |w|, both in the order of kernels.def. */
typedef struct pl_binary_call {
    int64_t m, n, k;
    const uint32_t *x;   /* signs, rows of ld_x words, with beta [m]; or NULL: */
    const float *x_real; /* both are made of it, in the workspace */
    int64_t ld_x;        /* of the one that is given */
    const float *beta;
    const void *packed; /* weights; aligned to 64 */
    const float *bias, *residual;
    int64_t ld_residual;
    float *c;
    int64_t ldc;
    pl_activation act;
    float *act_out;
    int64_t ld_act_out;
} pl_binary_call;
uint64_t pl_binary_workspace_bytes(const pl_binary_call *, pl_team);
void pl_binary_exec(const pl_binary_call *, void *workspace, pl_team); /* workspace aligned to 64 */

/* packed: pl_binary_packed_bytes of base/binary.h */
/* The first row whose alpha is not a number of at least 0, or that is not padded with zeros; −1: no such row. */
int64_t pl_binary_check(int64_t n, int64_t k, const void *packed);
void pl_binary_pack(int64_t n, int64_t k, const uint32_t *signs, const float *alpha, void *packed);

typedef struct pl_signs_call { /* of the rows of x or w: signs, in rows of pl_binary_words(k), and the means of |x| */
    int64_t rows, k, ld_x;
    const float *x;
    uint32_t *signs;
    float *mean;
} pl_signs_call;
void pl_signs_exec(const pl_signs_call *, pl_team);

/* out[j] (+)= Σ_i x[i,j] over rows, one after the other: bias gradients. */
typedef struct pl_column_sum_call {
    int64_t rows, columns, ld;
    const void *x;
    float *out;
    int accumulate;
    pl_real type;
} pl_column_sum_call;
void pl_column_sum_exec(const pl_column_sum_call *, pl_team);

/* ---- convolution.c: images N,H,W,C, weights [out, kernel, kernel, in], all dense ----
 * y = conv(x, W) (+ bias) (+ residual); act_out = act(y). An element is one chain of multiply-adds over the rows of the
 * kernel, their taps and the channels, in ascending order, so its bits depend on neither batch nor team; a Winograd
 * algorithm has chains over the channels instead. For chains of pairs of bf16 see gemm.c. */
typedef struct pl_convolution_call {
    pl_convolution_shape shape;
    pl_convolution_algorithm algorithm;
    pl_real type;
    const void *x, *weight;
    const float *bias;    /* [out] or NULL */
    const void *residual; /* shape of y, or NULL; may be y itself */
    void *y;
    pl_activation act;
    void *act_out;  /* shape of y, or NULL; not y itself when moments are given */
    float *moments; /* [batch, out_height, 2, out] or NULL: moments of y as stored, as channel_norm.h makes them */
} pl_convolution_call;
uint64_t pl_convolution_workspace_bytes(const pl_convolution_call *, pl_team);
void pl_convolution_exec(const pl_convolution_call *, void *workspace, pl_team);

/* dx = gradient (+ bias) (+ residual) (· act'(grad_of)); act_again = act(grad_of). With a bias it is the transposed
 * convolution of dy. Chains ascend over the pixels of dy that were made from a pixel of x, then their channels; where a
 * window has few numbers (convolution_few.h) each of these pixels has a chain of its own. */
typedef struct pl_convolution_dx_call {
    pl_convolution_shape shape; /* the convolution's shape: x is its input */
    pl_convolution_algorithm algorithm;
    pl_real type;
    const void *dy, *weight;
    const float *bias;    /* [in] or NULL */
    const void *residual; /* shape of x, or NULL; may be dx itself */
    pl_activation act;
    const void *grad_of;  /* likewise */
    void *dx, *act_again; /* act_again NULL: not wanted */
} pl_convolution_dx_call;
uint64_t pl_convolution_dx_workspace_bytes(const pl_convolution_dx_call *, pl_team);
void pl_convolution_dx_exec(const pl_convolution_dx_call *, void *workspace, pl_team);

/* dW += gradient, in f32: a chain over the pixels of dy, image by image, from what is there; where a window has few
 * numbers (convolution_few.h) a chain over blocks of rows, each a chain over its pixels; with a Winograd algorithm one
 * over stretches of an image of at most 512 windows, each a chain over its windows for every point. So the bits depend
 * neither on the team nor on how the images are dealt to calls. */
typedef struct pl_convolution_dw_call {
    pl_convolution_shape shape;
    pl_convolution_algorithm algorithm;
    pl_real type;
    const void *dy, *x;
    float *dw;
} pl_convolution_dw_call;
uint64_t pl_convolution_dw_workspace_bytes(const pl_convolution_dw_call *, pl_team);
void pl_convolution_dw_exec(const pl_convolution_dw_call *, void *workspace, pl_team);

/* ---- feed_forward.c: y = h W2ᵀ + b2 (+ residual), h = act(x W1ᵀ + b1) or, gated, act(g)·u with g and u the halves of
 * x W1ᵀ, chunk_rows rows at a time: a chunk's hidden values lie in the workspace, of the layer's type; forward g and u
 * never exist. The backward pass makes them again. The bits are those of the single products, with the activation and
 * its derivative in their epilogues. In bf16 a chunk of the backward pass may end up to 31 rows earlier, with a group
 * of tokens, and has at least one group. ---- */
typedef struct pl_feed_forward_layer { /* what both passes know */
    int64_t rows, in, hidden, out, chunk_rows;
    int64_t tokens; /* rows of a sample, or 0: k_sample of the gradients of weights in bf16; chunks end accordingly */
    int gated;
    int dots; /* as in pl_gemm_call */
    pl_activation act;
    const void *x, *w1, *w2; /* [R,in], [hidden,in], gated [2·hidden,in], [out,hidden] */
    const float *b1;         /* [hidden] or NULL; gated NULL */
    pl_real type;
    pl_encoding encoding[2]; /* of w1 and w2, where the type is f32; PL_ENCODING_F32: as it says */
} pl_feed_forward_layer;

typedef struct pl_feed_forward_call {
    pl_feed_forward_layer layer;
    const float *b2;      /* [out] or NULL */
    const void *residual; /* [R,out] or NULL */
    void *y;              /* may be residual, or x */
} pl_feed_forward_call;
uint64_t pl_feed_forward_workspace_bytes(const pl_feed_forward_call *, pl_team);
void pl_feed_forward_exec(const pl_feed_forward_call *, void *workspace, pl_team);

/* dx = gradient (+ partial); dW1, dW2 and db1 accumulate. (db2 is a column sum of dy.) */
typedef struct pl_feed_forward_bwd_call {
    pl_feed_forward_layer layer;
    const void *dy, *partial; /* [R,out]; [R,in] or NULL */
    void *dx;                 /* may be partial, dy or x; each of these may be NULL: not wanted */
    float *dw1, *dw2, *db1;
} pl_feed_forward_bwd_call;
uint64_t pl_feed_forward_bwd_workspace_bytes(const pl_feed_forward_bwd_call *, pl_team);
void pl_feed_forward_bwd_exec(const pl_feed_forward_bwd_call *, void *workspace, pl_team);

/* ---- norm.c: y = (x − μ)·r·gamma + beta over the last dimension (layer norm, r = 1/√(var+eps), biased var);
 *      y = x·r·gamma (RMS norm, r = 1/√(mean x² + eps)) when rms is set: then mean and beta are NULL, and gamma may
 *      be, too: y = x·r ---- */
typedef struct pl_norm_call {
    int64_t rows, width;
    int rms;
    float eps;
    const void *x;
    const float *gamma, *beta; /* beta may be NULL in layer norm too (no bias) */
    void *y;                   /* may be x */
    float *mean, *rstd;        /* [rows] outputs, kept for backward; both may be NULL in evaluation */
    pl_real type;
} pl_norm_call;
void pl_norm_exec(const pl_norm_call *, pl_team);

/* dx = (add +) gradient;  dgamma += Σ dy·x̂;  dbeta += Σ dy. dx may be dy, x or add. The sums over a sequence depend on
 * it alone and are added in the order of the sequences, so the bits do not depend on how many a call has. */
typedef struct pl_norm_bwd_call {
    int64_t rows, tokens, width; /* tokens: rows of a sequence; divides rows */
    int rms;
    const void *dy, *x;
    const float *gamma, *mean, *rstd;
    const void *add;       /* [rows,width] or NULL: a gradient that has reached x by another path */
    void *dx;              /* NULL: not wanted */
    float *dgamma, *dbeta; /* NULL: not wanted, or no bias; both always accumulate */
    pl_real type;
} pl_norm_bwd_call;
uint64_t pl_norm_bwd_workspace_bytes(const pl_norm_bwd_call *, pl_team);
void pl_norm_bwd_exec(const pl_norm_bwd_call *, void *workspace, pl_team);

/* ---- attention.c: o = softmax(scale·q kᵀ) v per head, online softmax; T×T is never stored ----
 * Element (b, t, h, d) of a tensor is p[b·batch + t·token + h·dh + d] with that tensor's two strides. causal: query i
 * of tq sees keys 0 … (tk − tq) + i. Where pairs of bf16 are multiplied (gemm.c), the probabilities and the gradients
 * of the scores are rounded to bf16 before they are multiplied. */
typedef struct pl_attention_strides {
    int64_t batch, token;
} pl_attention_strides;

/* Dropout on the probabilities: o = (mask∘softmax(scale·q kᵀ)/(1−p)) v, the mask from Philox(seed, stream; step,
 * sample, head, query, key), made again backward (kernels/attention.h). Sequence b of the call is global sequence
 * *first_sample·sequences + b, with `sequences` in a sample (0: one). p = 0: none; the pointers may then be NULL. */
typedef struct pl_attention_drops {
    float probability;
    int64_t sequences;
    uint64_t seed, stream;
    const int64_t *step, *first_sample; /* (run) */
} pl_attention_drops;

/* The position of sequence b, where there is one for all or one for each. */
static inline int64_t pl_position_of(const int64_t *position, int64_t positions, int64_t b)
{
    return position[positions > 1 ? b : 0];
}

typedef struct pl_attention_call {
    int64_t batch, tq, tk, heads, head_width;
    int causal;
    float scale;
    const void *q, *k, *v;
    pl_attention_strides sq, sk, sv, so;
    void *o;
    float *lse;               /* [batch, heads, tq]: log Σ exp(scale·q·k), kept for backward; NULL in evaluation */
    const int64_t *position;  /* (run) or NULL; when set, query i is at *position + i of the tk places of a cache,
                                 with a window key j at place j mod tk */
    int64_t positions;        /* of so many sequences; 0 or 1: one for all */
    const int64_t *sequence;  /* (run) or NULL: q is one sequence, and this the one of k and v that it reads */
    pl_real type;             /* of q and o */
    pl_attention_drops drops; /* not with a position */
    pl_real key_type;         /* of k and v; another than `type` only with a position */
    int64_t key_heads; /* of k and v, which divide heads: head h reads key head h·key_heads/heads; 0: as heads */
    int64_t window;    /* with causal: a query sees so many keys, the last its own; 0: all up to its own */
    float cap;         /* scores s become cap·tanh(s/cap); 0: none */
    pl_encoding key_encoding; /* of k and v, where the type is f32; PL_ENCODING_F32: as key_type says */
} pl_attention_call;
uint64_t pl_attention_workspace_bytes(const pl_attention_call *, pl_team);
void pl_attention_exec(const pl_attention_call *, void *workspace, pl_team);

typedef struct pl_attention_bwd_call {
    int64_t batch, tq, tk, heads, head_width;
    int causal;
    float scale;
    const void *q, *k, *v, *o;
    const float *lse;
    const void *d_o;
    pl_attention_strides sq, sk, sv, so, sdo;
    void *dq, *dk, *dv; /* written, not accumulated */
    pl_attention_strides sdq, sdk, sdv;
    pl_real type;
    pl_attention_drops drops; /* as it was forward */
} pl_attention_bwd_call;
uint64_t pl_attention_bwd_workspace_bytes(const pl_attention_bwd_call *, pl_team);
void pl_attention_bwd_exec(const pl_attention_bwd_call *, void *workspace, pl_team);

/* ---- embedding.c: y[r, j·D … ] = E[token[r − j]] for j in 0 … window−1, + P[r mod T] when P is given ----
 * window 1 is the usual embedding. With a larger window, slot j holds the token j places back in the same sequence and
 * zeros before its beginning (Bengio et al. 2003). P only with window 1. */
typedef struct pl_embedding_call {
    int64_t batch, tokens_per_sequence, vocab, width, window;
    const int32_t *token;       /* [B,T]; ids in [0, V), or −1: no token, a row of zeros */
    const void *table;          /* [V,D] */
    const void *position_table; /* [≥T, D] or NULL */
    const int64_t *position;    /* (run) or NULL: the place of the first token (key-value cache) */
    void *y;                    /* [B,T,window·D] */
    pl_real type, tables;       /* of y; of both tables: f32, or y's */
    pl_encoding encoding;       /* of the table, where y is f32; PL_ENCODING_F32: as `tables` says */
    int64_t positions;          /* position is of so many sequences; 0 or 1: one for all */
} pl_embedding_call;
void pl_embedding_exec(const pl_embedding_call *, pl_team);

/* dE[token] += dy (not for the token −1), dP[t] += dy, both accumulate, sums in a fixed order. */
typedef struct pl_embedding_bwd_call {
    int64_t batch, tokens_per_sequence, vocab, width, window;
    const int32_t *token;
    const void *dy;
    float *dtable, *dposition; /* dposition may be NULL; dtable may be NULL */
    pl_real type;
} pl_embedding_bwd_call;
void pl_embedding_bwd_exec(const pl_embedding_bwd_call *, pl_team);

/* ---- loss.c: logits = h Wᵀ, cross-entropy against target, in chunks of rows so that R×V never exists ----
 * loss[0] (f64) += Σ over rows with target ≥ 0 of (logsumexp − logit[target]);
 * with gradients: dlogits = (softmax − onehot)·(*scale), dh = dlogits W (written), dW += dlogitsᵀ h.
 * A row with target −1 counts nothing and its dh is 0. With a cap (loss only) a logit z is cap·tanh(z/cap). Logits are
 * f32 for any type; where pairs of bf16 are multiplied (gemm.c), dlogits are rounded to bf16. */
typedef struct pl_linear_ce_call {
    int64_t rows, width, vocab, chunk_rows; /* chunk_rows only changes memory and time: sums continue across chunks */
    const void *h, *weight;                 /* [R,D], [V,D] */
    const int32_t *target;                  /* [R], −1 = ignore */
    const float *scale;                     /* (run) [1]: 1 / number of counted tokens of the whole step */
    double *loss;                           /* [1] accumulates */
    void *dh;                               /* dh and dweight NULL: loss only */
    float *dweight;
    pl_real type;
    const float *loss_scale; /* (run) [1] or NULL: multiplies both gradients */
    int64_t tokens;          /* as in pl_feed_forward_layer */
    /* How h (as A of pl_gemm_call, loss only) and the weight are stored where the type is f32; F32: plain. */
    pl_encoding h_encoding, encoding;
    float *row_loss; /* [R], each row's part of the loss; NULL: not wanted */
    float cap;       /* 0: none */
} pl_linear_ce_call;
uint64_t pl_linear_ce_workspace_bytes(const pl_linear_ce_call *, pl_team);
void pl_linear_ce_exec(const pl_linear_ce_call *, void *workspace, pl_team);

/* ---- elementwise.c ---- */
typedef struct pl_activation_call { /* y = act(x); y may be x */
    int64_t count;
    pl_activation act;
    const void *x;
    void *y;
    pl_real type;
} pl_activation_call;
void pl_activation_exec(const pl_activation_call *, pl_team);

typedef struct pl_gated_activation_call { /* per row y = act(first half of x)·second half, or act(x)·up */
    int64_t rows, width;                  /* of y */
    pl_activation act;
    const void *x;
    void *y;
    const void *up; /* or NULL */
    pl_real type;   /* f32 without `up` */
} pl_gated_activation_call;
void pl_gated_activation_exec(const pl_gated_activation_call *, pl_team);

typedef struct pl_gated_activation_bwd_call { /* rows of 2·width: dx may be x */
    int64_t rows, width;
    pl_activation act;
    const float *x, *dy;
    float *dx;
} pl_gated_activation_bwd_call;
uint64_t pl_gated_activation_bwd_workspace_bytes(const pl_gated_activation_bwd_call *, pl_team);
void pl_gated_activation_bwd_exec(const pl_gated_activation_bwd_call *, void *workspace, pl_team);

typedef struct pl_activation_bwd_call { /* dx = dy·act'(x); dx may be dy or x */
    int64_t count;
    pl_activation act;
    const void *x, *dy;
    void *dx;
    pl_real type;
} pl_activation_bwd_call;
void pl_activation_bwd_exec(const pl_activation_bwd_call *, pl_team);

typedef struct pl_add_call { /* y = a + b; y may be either */
    int64_t count;
    const void *a, *b;
    void *y;
    pl_real type;
} pl_add_call;
void pl_add_exec(const pl_add_call *, pl_team);

typedef struct pl_scale_call { /* y = factor·x; y may be x */
    int64_t count;
    float factor;
    const void *x;
    void *y;
    pl_real type;
} pl_scale_call;
void pl_scale_exec(const pl_scale_call *, pl_team);

typedef struct pl_cast_call { /* y = x, rounded to nearest (base/narrow.h) */
    int64_t count;
    pl_real from, to;
    const void *x;
    void *y;
    int64_t sample, distance; /* x is pieces of `sample` numbers at this distance; 0: one piece */
    uint64_t bytes;           /* above 0: x is raw, and this many bytes are copied as they are */
    pl_encoding encoding;     /* of y; Q8_0: x is f32, in one piece, of whole blocks (base/encoding.h) */
} pl_cast_call;
void pl_cast_exec(const pl_cast_call *, pl_team);

typedef struct pl_fill_call { /* zero bytes */
    uint64_t bytes;
    void *y;
} pl_fill_call;
void pl_fill_exec(const pl_fill_call *, pl_team);

/* y = (residual +) x·mask/(1−p), mask from Philox(seed, stream; step, sample, element): the backward pass is the same
 * call on dy without residual. y may be x or residual. Sample s of the call is global sample *first_sample + s. */
typedef struct pl_dropout_call {
    int64_t samples, elems_per_sample;
    float probability;
    uint64_t seed, stream;
    const int64_t *step, *first_sample; /* (run) */
    const void *x, *residual;           /* residual may be NULL */
    void *y;
    pl_real type;
} pl_dropout_call;
void pl_dropout_exec(const pl_dropout_call *, pl_team);

/* ---- optimizer.c ---- */
/* AdamW (Loshchilov & Hutter 2019): m = b1 m + (1−b1) g;  v = b2 v + (1−b2) g²;
 * w −= lr·wd·w;  w −= lr·(m/(1−b1ᵗ)) / (√(v/(1−b2ᵗ)) + eps), with g scaled by *grad_scale first when that is given.
 * `angle`, Adam-atan2 (Everett et al. 2024): the last is w −= lr·atan2(m/(1−b1ᵗ), √(v/(1−b2ᵗ))), without eps.
 * m and v are f32, bf16, or codes and scales of 8 bits, as `state` says (kernels/adamw.h). The two smaller kinds are
 * rounded at random, by Philox(seed, stream; step, element). */
typedef struct pl_adamw_call {
    int64_t count;
    float *w;
    void *m, *v;
    const float *g;
    float beta1, beta2, eps, weight_decay;
    const float *lr;         /* (run) [1] */
    const int64_t *step;     /* (run) [1]: from 1; t is this less *skipped_steps */
    const float *grad_scale; /* (run) [1] or NULL */
    pl_adamw_state state;
    uint64_t seed, stream;
    const int32_t *skipped_steps; /* (run) [1] or NULL */
    bool angle;
    float limit; /* w stays within ±limit; 0: it may go anywhere */
} pl_adamw_call;
void pl_adamw_exec(const pl_adamw_call *, pl_team);

/* An exponential moving average of weights: average += (1 − rate)·(w − average). */
typedef struct pl_ema_call {
    int64_t count;
    float rate;
    float *average;
    const float *w;
} pl_ema_call;
void pl_ema_exec(const pl_ema_call *, pl_team);

/* sum[0] (f64) += Σ x², fixed blocks. */
typedef struct pl_sum_squares_call {
    int64_t count;
    const float *x;
    double *sum;
} pl_sum_squares_call;
uint64_t pl_sum_squares_workspace_bytes(const pl_sum_squares_call *, pl_team);
void pl_sum_squares_exec(const pl_sum_squares_call *, void *workspace, pl_team);

/* scale = min(1, max_norm / (√sum/S + 1e-6))/S, without max_norm 1/S; finite = 1 when sum is finite, else 0 (the update
 * is then skipped, and counted as such). S is the factor in the summed gradients: the loss scale, or 1. */
typedef struct pl_clip_scale_call {
    const double *sum;
    float max_norm; /* 0: none */
    float *scale;
    int32_t *finite;
    const float *loss_scale; /* (run) [1] or NULL */
    int32_t *skipped_steps;  /* (run) [1] or NULL; in place */
} pl_clip_scale_call;
void pl_clip_scale_exec(const pl_clip_scale_call *, pl_team);

/* A step that was not finite halves the scale (not below 1); growth_steps finite ones in a row double it. Both change
 * in place. */
typedef struct pl_loss_scale_call {
    int64_t growth_steps;
    const int32_t *finite;
    float *scale;
    int32_t *good_steps;
} pl_loss_scale_call;
void pl_loss_scale_exec(const pl_loss_scale_call *, pl_team);

/* ---- rollout.c: rows of parameters and ids as base/rollout.h has them, formulas in kernels/rollout.h ---- */
typedef struct pl_noise_call { /* y = x with noise; y may be x */
    int64_t samples, height, width, channels;
    int correlated; /* rows may ask for correlated noise; 0: theirs is not */
    uint64_t seed, stream;
    const float *parameters; /* (run) */
    const int64_t *ids;      /* (run) */
    const int64_t *step;     /* (run) [1] */
    const void *x;
    void *y;
    pl_real type;
    int dropout; /* drops channels at the row's rate, instead of adding its noise */
} pl_noise_call;
uint64_t pl_noise_workspace_bytes(const pl_noise_call *, pl_team);
void pl_noise_exec(const pl_noise_call *, void *workspace, pl_team);

typedef struct pl_evolve_call { /* in place */
    int64_t samples, elems_per_sample;
    const float *parameters; /* (run) */
    float *x, *previous;     /* may be NULL; receives the previous x */
    const void *y;
    pl_real type; /* of y */
} pl_evolve_call;
void pl_evolve_exec(const pl_evolve_call *, pl_team);

typedef struct pl_field_metrics_call {
    int64_t samples, elems_per_sample;
    const float *x, *previous; /* previous may be NULL */
    float *metrics;            /* [samples, PL_FIELD_METRICS] */
} pl_field_metrics_call;
void pl_field_metrics_exec(const pl_field_metrics_call *, pl_team);

/* ---- spectrum.c: low modes of images, formulas in kernels/spectrum.h ---- */
typedef struct pl_spectrum_call {
    int64_t samples, height, width, channels, modes; /* 2·modes ≤ height, 2·(modes − 1) ≤ width */
    int inverse_factors;                             /* 1/(HW); columns that stand for two count twice */
    void *image;                                     /* [samples, H, W, C] */
    const void *add;                                 /* back: likewise, or NULL; may be image */
    float *spectrum;                                 /* [samples, 2·modes, modes, 2, C] */
    pl_real type;
} pl_spectrum_call;
uint64_t pl_spectrum_workspace_bytes(const pl_spectrum_call *, pl_team);
void pl_spectrum_exec(const pl_spectrum_call *, void *workspace, pl_team);      /* image → spectrum */
void pl_spectrum_back_exec(const pl_spectrum_call *, void *workspace, pl_team); /* spectrum → image */

typedef enum pl_spectral_pass { PL_SPECTRAL_FORWARD, PL_SPECTRAL_DX, PL_SPECTRAL_DW } pl_spectral_pass;
/* Writes y; the adjoint x; or adds to the weights, sample by sample. */
void pl_spectral_linear_exec(const pl_spectral_linear *, pl_spectral_pass, pl_team);

#endif
