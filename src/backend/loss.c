/* Linear + softmax + cross-entropy over chunks of rows: the logits of one chunk lie in the workspace, become their own
 * gradient in place, and are used up before the next chunk. Chunks run in order and every sum over rows goes on where
 * the chunk before left it, so the bits depend neither on the team nor on where chunks and calls end.
 * Workspace: [logits: chunk × ld][loss of each row: chunk × f64][workspace of the products], each aligned to 64. */
#include <assert.h>
#include <stddef.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"

enum { LINE_FLOATS = 16, LINE_BYTES = 64 };

typedef struct ce_layout {
    int64_t tokens;         /* that the gradient of the weight is told; then chunks end with groups of them (calls.h) */
    int64_t chunk_rows, ld; /* rows of logits start on a cache line */
    pl_real dlogits_type;
    int64_t dlogits_ld; /* in the place of the logits */
    uint64_t row_loss_offset, gemm_offset;
} ce_layout;

/* Gradients of logits are kept as exact as the products can read them. */
static pl_real dlogits_type_of(const pl_linear_ce_call *c, pl_team team)
{
    return pl_gemm_kernels_by_rows(team.isa, c->type, c->type)->step > 1 ? c->type : PL_REAL_F32;
}

static ce_layout layout_of(const pl_linear_ce_call *c, pl_team team)
{
    const int64_t tokens = c->type == PL_REAL_BF16 ? c->tokens : 0;
    int64_t chunk_rows = tokens && c->chunk_rows < PL_GEMM_TOKEN_GROUP ? PL_GEMM_TOKEN_GROUP : c->chunk_rows;
    if (chunk_rows > c->rows) chunk_rows = c->rows;
    int64_t ld = (c->vocab + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    uint64_t row_loss = (uint64_t)(chunk_rows * ld) * sizeof(float);
    uint64_t end = row_loss + (uint64_t)chunk_rows * sizeof(double);
    pl_real type = dlogits_type_of(c, team);
    return (ce_layout){.tokens = tokens,
                       .chunk_rows = chunk_rows,
                       .ld = ld,
                       .dlogits_type = type,
                       .dlogits_ld = ld * (int64_t)sizeof(float) / pl_real_bytes(type),
                       .row_loss_offset = row_loss,
                       .gemm_offset = pl_align_up(end, LINE_BYTES)};
}

/* logits[rows,V] = h[rows,D]·Wᵀ, in f32 */
static pl_gemm_call logits_product(const pl_linear_ce_call *c, const ce_layout *l, int64_t rows, const void *h,
                                   float *logits)
{
    pl_gemm_call product = pl_gemm_linear(c->type, rows, c->vocab, c->width, h, c->weight, logits);
    product.type = PL_REAL_F32, product.ldc = l->ld;
    pl_gemm_encode(&product, c->encoding);
    product.a_encoding = c->h_encoding;
    return product;
}

/* dh[rows,D] = dlogits[rows,V]·W */
static pl_gemm_call dh_product(const pl_linear_ce_call *c, const ce_layout *l, int64_t rows, const void *dlogits,
                               void *dh)
{
    pl_gemm_call product = pl_gemm_linear_dx(c->type, rows, c->width, c->vocab, dlogits, c->weight, dh);
    product.a_type = l->dlogits_type, product.a_row = l->dlogits_ld;
    pl_gemm_encode(&product, c->encoding);
    return product;
}

/* dW[V,D] += dlogitsᵀ[V,rows]·h[rows,D] of the rows from `first` on */
static pl_gemm_call dweight_product(const pl_linear_ce_call *c, const ce_layout *l, int64_t first, int64_t rows,
                                    const void *dlogits, const void *h)
{
    pl_gemm_call product = pl_gemm_linear_dw(c->type, c->vocab, c->width, rows, dlogits, h, c->dweight);
    product.a_type = l->dlogits_type, product.a_col = l->dlogits_ld;
    product.k_sample = l->tokens, product.k_first = l->tokens ? first % l->tokens : 0;
    return product;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t products_workspace_bytes(const pl_linear_ce_call *c, const ce_layout *l, int64_t first, int64_t rows,
                                         pl_team team)
{
    pl_gemm_call logits = logits_product(c, l, rows, NULL, NULL), dh = dh_product(c, l, rows, NULL, NULL);
    pl_gemm_call dweight = dweight_product(c, l, first, rows, NULL, NULL);
    uint64_t bytes = larger(pl_gemm_workspace_bytes(&logits, team), pl_gemm_workspace_bytes(&dh, team));
    return larger(bytes, pl_gemm_workspace_bytes(&dweight, team));
}

uint64_t pl_linear_ce_workspace_bytes(const pl_linear_ce_call *c, pl_team team)
{
    if (c->rows == 0) return 0;
    ce_layout l = layout_of(c, team);
    uint64_t bytes = 0;
    /* Chunks repeat from the first end of a chunk that is the end of a sample, too: one period is looked at, and the
     * last one, which may be shorter. */
    int64_t period = 0;
    for (int64_t first = 0, end; first < c->rows; first = end) {
        end = pl_gemm_end_of_tokens(first, l.chunk_rows, c->rows, l.tokens);
        bytes = larger(bytes, products_workspace_bytes(c, &l, first, end - first, team));
        if (period || end == c->rows || (l.tokens && end % l.tokens)) continue;
        period = end;
        end = (c->rows - 1) / period * period;
    }
    return l.gemm_offset + bytes;
}

/* ---- softmax and cross-entropy of one chunk ---- */

typedef struct rows_work {
    const pl_kernels *kernels;
    int64_t rows, vocab, ld;
    pl_real dlogits_type;
    float *logits;
    float cap;
    const int32_t *target;
    const float *scale; /* NULL: loss only */
    double *row_loss;
} rows_work;

static void cap_row(const rows_work *w, float *z)
{
    for (int64_t j = 0; j < w->vocab; j++) z[j] *= 1 / w->cap;
    w->kernels->activation(PL_ACT_TANH, w->vocab, PL_REAL_F32, z, z);
    for (int64_t j = 0; j < w->vocab; j++) z[j] *= w->cap;
}

static void rows_part(const void *work, int part, int parts)
{
    const rows_work *w = work;
    pl_range rows = pl_range_of_part(w->rows, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end && w->cap > 0; r++)
        if (w->target[r] >= 0) cap_row(w, w->logits + r * w->ld);
    w->kernels->softmax_ce_rows(rows.begin, rows.end, w->vocab, w->ld, w->logits, w->target, w->scale, w->dlogits_type,
                                w->row_loss);
}

static void run_chunk(const pl_linear_ce_call *c, const ce_layout *l, int64_t first, int64_t rows, char *workspace,
                      pl_team team)
{
    float *logits = (float *)workspace;
    double *row_loss = (double *)(workspace + l->row_loss_offset);
    void *gemm_workspace = workspace + l->gemm_offset;
    const void *h = c->h_encoding ? (const char *)c->h + first * pl_encoding_row_bytes(c->h_encoding, c->width)
                                  : pl_real_at(c->type, c->h, first * c->width);
    pl_gemm_call forward = logits_product(c, l, rows, h, logits);
    pl_gemm_exec(&forward, gemm_workspace, team);
    float scale = *c->scale * (c->loss_scale ? *c->loss_scale : 1);
    rows_work work = {pl_kernels_get(team.isa),
                      rows,
                      c->vocab,
                      l->ld,
                      l->dlogits_type,
                      logits,
                      c->cap,
                      c->target + first,
                      c->dh || c->dweight ? &scale : NULL,
                      row_loss};
    pl_parallel(team, rows * c->vocab, rows_part, &work);
    for (int64_t i = 0; i < rows; i++) *c->loss += row_loss[i];
    for (int64_t i = 0; i < rows && c->row_loss; i++) c->row_loss[first + i] = (float)row_loss[i];
    if (c->dh) {
        pl_gemm_call dh = dh_product(c, l, rows, logits, pl_real_at(c->type, c->dh, first * c->width));
        pl_gemm_exec(&dh, gemm_workspace, team);
    }
    if (c->dweight) {
        pl_gemm_call dweight = dweight_product(c, l, first, rows, logits, h);
        pl_gemm_exec(&dweight, gemm_workspace, team);
    }
}

void pl_linear_ce_exec(const pl_linear_ce_call *c, void *workspace, pl_team team)
{
    assert(c->rows >= 0 && c->vocab > 0 && (c->rows == 0 || c->chunk_rows > 0));
    ce_layout l = layout_of(c, team);
    for (int64_t first = 0, end; first < c->rows; first = end) {
        end = pl_gemm_end_of_tokens(first, l.chunk_rows, c->rows, l.tokens);
        run_chunk(c, &l, first, end - first, workspace, team);
    }
}
