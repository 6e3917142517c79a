/* Feed-forward layers in chunks of rows, with a gate or without. A chunk's hidden values lie in the workspace between
 * the products; the backward pass makes them again, turns them into their gradients in place and adds its share to
 * every sum before the next chunk. Every sum goes on where the chunk before left it, and a row's bits do not depend on
 * its neighbours: the chunk's size is not to be seen in the results. With 16 bits all that is hidden, and its
 * gradients, are rounded as where they are stored whole.
 *
 *   forward    h = act(x W1ᵀ + b1); gated: act(g)·u, g and u = x W1ᵀ        y = h W2ᵀ + b2 (+ residual)
 *   backward   i = x W1ᵀ + b1, gated both g and u; then h again and, in place of i, its gradient di:
 *                without a gate  di = (dy W2)·act'(i), in the epilogue of that product
 *                gated           dh = dy W2;  dg = dh·u·act'(g), du = dh·act(g)
 *              dW2 += dyᵀ h;  db1 += Σ di;  dW1 += diᵀ x                   dx = di W1 (+ partial)
 *
 * Workspace, each part aligned to 64:
 *   [h: chunk × F][backward, i: chunk × F, gated 2F][workspace of the products] */
#include <stdbool.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/kernels.h"

enum { LINE_BYTES = 64, CROWDED_BYTES = 2048, FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5 };

typedef pl_feed_forward_layer layer;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Columns of what comes before the hidden values. */
static int64_t inner_of(const layer *l) { return l->gated ? 2 * l->hidden : l->hidden; }

/* From row to row of what has so many columns: gated rows a multiple of 2 KiB apart would share a few sets of the
 * caches, and fewer of them could be read at a time (gemm_plan.c). */
static int64_t stride_of(const layer *l, int64_t columns)
{
    int64_t bytes = columns * pl_real_bytes(l->type);
    return l->gated && bytes % CROWDED_BYTES == 0 ? columns + LINE_BYTES / pl_real_bytes(l->type) : columns;
}

/* Of so many columns for each row of a chunk. */
static uint64_t chunk_bytes(const layer *l, int64_t columns)
{
    int64_t elems = smaller(l->rows, l->chunk_rows) * stride_of(l, columns);
    return pl_align_up((uint64_t)(elems * pl_real_bytes(l->type)), LINE_BYTES);
}

/* Row `row` of x or of what has its shape, of y or of what has its shape; NULL stays NULL. */
static void *in_row(const layer *l, const void *x, int64_t row)
{
    return x ? pl_real_at(l->type, x, row * l->in) : NULL;
}
static void *out_row(const layer *l, const void *y, int64_t row)
{
    return y ? pl_real_at(l->type, y, row * l->out) : NULL;
}

/* ---- forward ---- */

/* The products of rows [first, first + rows), in their order. */
static void forward_products(const pl_feed_forward_call *c, int64_t first, int64_t rows, void *hidden,
                             pl_gemm_call product[FORWARD_PRODUCTS])
{
    const layer *l = &c->layer;
    const int64_t stride = stride_of(l, l->hidden);
    product[0] = pl_gemm_linear(l->type, rows, l->hidden, l->in, in_row(l, l->x, first), l->w1, hidden);
    product[0].ldc = stride;
    product[0].bias = l->b1;
    product[0].act = l->act;
    product[0].gated = l->gated;
    if (!l->gated) product[0].act_out = hidden, product[0].ld_act_out = stride;
    product[1] = pl_gemm_linear(l->type, rows, l->out, l->hidden, hidden, l->w2, out_row(l, c->y, first));
    product[1].a_row = stride;
    product[1].bias = c->b2;
    product[1].residual = out_row(l, c->residual, first), product[1].ld_residual = l->out;
    product[0].dots = product[1].dots = l->dots;
    pl_gemm_encode(&product[0], l->encoding[0]);
    pl_gemm_encode(&product[1], l->encoding[1]);
}

/* Of the first chunk and the last, which may be smaller. */
uint64_t pl_feed_forward_workspace_bytes(const pl_feed_forward_call *c, pl_team team)
{
    static float somewhere;
    const layer *l = &c->layer;
    pl_gemm_call product[FORWARD_PRODUCTS];
    uint64_t bytes = 0;
    if (l->rows == 0) return 0;
    const int64_t rows[2] = {smaller(l->rows, l->chunk_rows), (l->rows - 1) % l->chunk_rows + 1};
    for (int i = 0; i < 2; i++) {
        forward_products(c, 0, rows[i], &somewhere, product);
        for (int k = 0; k < FORWARD_PRODUCTS; k++) bytes = larger(bytes, pl_gemm_workspace_bytes(&product[k], team));
    }
    return chunk_bytes(l, l->hidden) + bytes;
}

void pl_feed_forward_exec(const pl_feed_forward_call *c, void *workspace, pl_team team)
{
    const layer *l = &c->layer;
    pl_gemm_call product[FORWARD_PRODUCTS];
    char *behind = (char *)workspace + chunk_bytes(l, l->hidden);
    for (int64_t first = 0; first < l->rows; first += l->chunk_rows) {
        forward_products(c, first, smaller(l->rows - first, l->chunk_rows), workspace, product);
        for (int k = 0; k < FORWARD_PRODUCTS; k++) pl_gemm_exec(&product[k], behind, team);
    }
}

/* ---- backward ---- */

/* The first two make what the others read; whose sum is not wanted is left out. */
static bool is_wanted(const pl_feed_forward_bwd_call *c, int product)
{
    const void *const to[BACKWARD_PRODUCTS] = {c, c, c->dw2, c->dw1, c->dx};
    return to[product] != NULL;
}

/* What of the layer's tokens the gradients of its weights are told: chunks end with a group of them, so that their size
 * is not to be seen (calls.h). */
static int64_t tokens_of(const layer *l) { return l->type == PL_REAL_BF16 ? l->tokens : 0; }

/* The layer as the backward pass cuts it: a chunk has a group of tokens at least. */
static layer cut_of(const pl_feed_forward_bwd_call *c)
{
    layer l = c->layer;
    if (tokens_of(&l) > 0 && l.chunk_rows < PL_GEMM_TOKEN_GROUP) l.chunk_rows = PL_GEMM_TOKEN_GROUP;
    return l;
}

static int64_t end_of_chunk(const layer *l, int64_t first)
{
    return pl_gemm_end_of_tokens(first, l->chunk_rows, l->rows, tokens_of(l));
}

static void backward_products(const pl_feed_forward_bwd_call *c, int64_t first, int64_t rows, void *hidden, void *inner,
                              pl_gemm_call product[BACKWARD_PRODUCTS])
{
    const layer *l = &c->layer;
    const void *x = in_row(l, l->x, first), *dy = out_row(l, c->dy, first);
    const int64_t width = inner_of(l), stride = stride_of(l, l->hidden), inner_stride = stride_of(l, width);
    product[0] = pl_gemm_linear(l->type, rows, width, l->in, x, l->w1, inner);
    product[0].bias = l->b1;
    product[0].dots = l->dots;
    product[1] = pl_gemm_linear_dx(l->type, rows, l->hidden, l->out, dy, l->w2, l->gated ? hidden : inner);
    if (!l->gated) {
        product[1].act = l->act;
        product[1].grad_of = inner, product[1].ld_grad_of = inner_stride;
        product[1].act_again = hidden, product[1].ld_act_again = stride;
    }
    product[2] = pl_gemm_linear_dw(l->type, l->out, l->hidden, rows, dy, hidden, c->dw2);
    product[3] = pl_gemm_linear_dw(l->type, width, l->in, rows, inner, x, c->dw1);
    product[2].k_sample = product[3].k_sample = tokens_of(l);
    product[2].k_first = product[3].k_first = tokens_of(l) ? first % tokens_of(l) : 0;
    product[4] = pl_gemm_linear_dx(l->type, rows, l->in, width, inner, l->w1, in_row(l, c->dx, first));
    product[4].residual = in_row(l, c->partial, first), product[4].ld_residual = l->in;
    product[0].ldc = product[3].a_col = product[4].a_row = inner_stride;
    product[1].ldc = product[2].b_row = stride;
    pl_gemm_encode(&product[0], l->encoding[0]);
    pl_gemm_encode(&product[1], l->encoding[1]);
    pl_gemm_encode(&product[4], l->encoding[0]);
}

uint64_t pl_feed_forward_bwd_workspace_bytes(const pl_feed_forward_bwd_call *c, pl_team team)
{
    static float somewhere;
    const layer l = cut_of(c);
    pl_gemm_call product[BACKWARD_PRODUCTS];
    uint64_t bytes = 0;
    for (int64_t first = 0, end; first < l.rows; first = end) {
        end = end_of_chunk(&l, first);
        backward_products(c, 0, end - first, &somewhere, &somewhere, product);
        product[2].k_first = product[3].k_first = tokens_of(&l) ? first % tokens_of(&l) : 0;
        for (int k = 0; k < BACKWARD_PRODUCTS; k++)
            if (is_wanted(c, k)) bytes = larger(bytes, pl_gemm_workspace_bytes(&product[k], team));
    }
    return l.rows == 0 ? 0 : chunk_bytes(&l, l.hidden) + chunk_bytes(&l, inner_of(&l)) + bytes;
}

typedef struct gate_work {
    const layer *layer;
    const pl_kernels *kernels;
    int64_t rows;
    void *hidden, *inner;
} gate_work;

static void gate_part(const void *context, int part, int parts)
{
    const gate_work *w = context;
    const layer *l = w->layer;
    const int64_t hidden = stride_of(l, l->hidden), inner = stride_of(l, inner_of(l));
    pl_range own = pl_range_of_part(w->rows, 1, part, parts);
    for (int64_t r = own.begin; r < own.end; r++)
        w->kernels->gated_bwd(l->act, l->hidden, l->type, pl_real_at(l->type, w->inner, r * inner),
                              pl_real_at(l->type, w->inner, r * inner + l->hidden),
                              pl_real_at(l->type, w->hidden, r * hidden));
}

/* When h and di are there, between the products: the gate's own arithmetic, and what they add to db1. */
static void between(const pl_feed_forward_bwd_call *c, int64_t rows, void *hidden, void *inner, pl_team team)
{
    const layer *l = &c->layer;
    gate_work gate = {l, pl_kernels_get(team.isa), rows, hidden, inner};
    if (l->gated) pl_parallel(team, rows * l->hidden, gate_part, &gate);
    if (!c->db1) return;
    pl_column_sum_call sum = {.rows = rows, .columns = l->hidden, .ld = l->hidden, .x = inner};
    sum.out = c->db1, sum.accumulate = 1, sum.type = l->type;
    pl_column_sum_exec(&sum, team);
}

void pl_feed_forward_bwd_exec(const pl_feed_forward_bwd_call *c, void *workspace, pl_team team)
{
    const layer l = cut_of(c);
    pl_gemm_call product[BACKWARD_PRODUCTS];
    char *hidden = workspace, *inner = hidden + chunk_bytes(&l, l.hidden),
         *behind = inner + chunk_bytes(&l, inner_of(&l));
    for (int64_t first = 0, rows; first < l.rows; first += rows) {
        rows = end_of_chunk(&l, first) - first;
        backward_products(c, first, rows, hidden, inner, product);
        for (int k = 0; k < BACKWARD_PRODUCTS; k++) {
            if (is_wanted(c, k)) pl_gemm_exec(&product[k], behind, team);
            if (k == 1) between(c, rows, hidden, inner, team);
        }
    }
}
