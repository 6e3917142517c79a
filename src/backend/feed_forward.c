/* Feed-forward layers in chunks of rows. A chunk's hidden values lie in the workspace between the two products; the
 * backward pass makes them again, turns them into their gradient in place and adds its share to every sum before the next
 * chunk. Every sum goes on where the chunk before left it, and a row's bits do not depend on its neighbours: so the
 * chunk's size is not to be seen in the results.
 *
 *   forward    a = act(x W1ᵀ + b1)                                 y = a W2ᵀ + b2 (+ residual)
 *   backward   u = x W1ᵀ + b1;  du = (dy W2)·act'(u), a = act(u)   dW2 += dyᵀ a;  db1 += Σ du;  dW1 += duᵀ x
 *              dx = du W1 (+ partial)
 *
 * Workspace: [hidden: chunk × F][backward, activated: chunk × F][workspace of the products], each aligned to 64. */
#include "backend/calls.h"
#include "base/size.h"

enum { LINE_BYTES = 64 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t hidden_bytes(int64_t rows, int64_t chunk_rows, int64_t hidden)
{
    return pl_align_up((uint64_t)(smaller(rows, chunk_rows) * hidden) * sizeof(float), LINE_BYTES);
}

/* y[m,n] = x[m,k] Wᵀ + bias */
static pl_gemm_call linear(int64_t m, int64_t n, int64_t k, const float *x, const float *w, const float *bias, float *y)
{
    return (pl_gemm_call){.m = m,
                          .n = n,
                          .k = k,
                          .a = x,
                          .a_row = k,
                          .a_col = 1,
                          .b = w,
                          .b_row = 1,
                          .b_col = k,
                          .c = y,
                          .ldc = n,
                          .bias = bias};
}

/* dx[m,n] = dy[m,k] W */
static pl_gemm_call linear_dx(int64_t m, int64_t n, int64_t k, const float *dy, const float *w, float *dx)
{
    return (pl_gemm_call){
        .m = m, .n = n, .k = k, .a = dy, .a_row = k, .a_col = 1, .b = w, .b_row = n, .b_col = 1, .c = dx, .ldc = n};
}

/* dW[m,n] += dy[rows,m]ᵀ x[rows,n] */
static pl_gemm_call linear_dw(int64_t m, int64_t n, int64_t rows, const float *dy, const float *x, float *dw)
{
    return (pl_gemm_call){.m = m,
                          .n = n,
                          .k = rows,
                          .a = dy,
                          .a_row = 1,
                          .a_col = m,
                          .b = x,
                          .b_row = n,
                          .b_col = 1,
                          .c = dw,
                          .ldc = n,
                          .accumulate = 1};
}

/* ---- forward ---- */

enum { FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5 };

/* The products of rows [first, first + rows), in their order. */
static void forward_products(const pl_feed_forward_call *c, int64_t first, int64_t rows, float *hidden,
                             pl_gemm_call product[FORWARD_PRODUCTS])
{
    product[0] = linear(rows, c->hidden, c->in, c->x + first * c->in, c->w1, c->b1, hidden);
    product[0].act = c->act;
    product[0].act_out = hidden, product[0].ld_act_out = c->hidden;
    product[1] = linear(rows, c->out, c->hidden, hidden, c->w2, c->b2, c->y + first * c->out);
    if (c->residual) product[1].residual = c->residual + first * c->out, product[1].ld_residual = c->out;
    product[0].dots = product[1].dots = c->dots;
}

/* Of the first chunk and the last, which may be smaller. */
uint64_t pl_feed_forward_workspace_bytes(const pl_feed_forward_call *c, pl_team team)
{
    static float somewhere;
    pl_gemm_call product[FORWARD_PRODUCTS];
    uint64_t bytes = 0;
    if (c->rows == 0) return 0;
    const int64_t rows[2] = {smaller(c->rows, c->chunk_rows), (c->rows - 1) % c->chunk_rows + 1};
    for (int i = 0; i < 2; i++) {
        forward_products(c, 0, rows[i], &somewhere, product);
        for (int k = 0; k < FORWARD_PRODUCTS; k++) bytes = larger(bytes, pl_gemm_workspace_bytes(&product[k], team));
    }
    return hidden_bytes(c->rows, c->chunk_rows, c->hidden) + bytes;
}

void pl_feed_forward_exec(const pl_feed_forward_call *c, void *workspace, pl_team team)
{
    pl_gemm_call product[FORWARD_PRODUCTS];
    char *behind = (char *)workspace + hidden_bytes(c->rows, c->chunk_rows, c->hidden);
    for (int64_t first = 0; first < c->rows; first += c->chunk_rows) {
        forward_products(c, first, smaller(c->rows - first, c->chunk_rows), workspace, product);
        for (int k = 0; k < FORWARD_PRODUCTS; k++) pl_gemm_exec(&product[k], behind, team);
    }
}

/* ---- backward ---- */

static void backward_products(const pl_feed_forward_bwd_call *c, int64_t first, int64_t rows, float *hidden,
                              float *activated, pl_gemm_call product[BACKWARD_PRODUCTS])
{
    const float *x = c->x + first * c->in, *dy = c->dy + first * c->out;
    product[0] = linear(rows, c->hidden, c->in, x, c->w1, c->b1, hidden);
    product[0].dots = c->dots;
    product[1] = linear_dx(rows, c->hidden, c->out, dy, c->w2, hidden);
    product[1].act = c->act;
    product[1].grad_of = hidden, product[1].ld_grad_of = c->hidden;
    product[1].act_again = activated, product[1].ld_act_again = c->hidden;
    product[2] = linear_dw(c->out, c->hidden, rows, dy, activated, c->dw2);
    product[3] = linear_dw(c->hidden, c->in, rows, hidden, x, c->dw1);
    product[4] = linear_dx(rows, c->in, c->hidden, hidden, c->w1, c->dx + first * c->in);
    if (c->partial) product[4].residual = c->partial + first * c->in, product[4].ld_residual = c->in;
}

uint64_t pl_feed_forward_bwd_workspace_bytes(const pl_feed_forward_bwd_call *c, pl_team team)
{
    static float somewhere;
    pl_gemm_call product[BACKWARD_PRODUCTS];
    uint64_t bytes = 0;
    if (c->rows == 0) return 0;
    const int64_t rows[2] = {smaller(c->rows, c->chunk_rows), (c->rows - 1) % c->chunk_rows + 1};
    for (int i = 0; i < 2; i++) {
        backward_products(c, 0, rows[i], &somewhere, &somewhere, product);
        for (int k = 0; k < BACKWARD_PRODUCTS; k++) bytes = larger(bytes, pl_gemm_workspace_bytes(&product[k], team));
    }
    return 2 * hidden_bytes(c->rows, c->chunk_rows, c->hidden) + bytes;
}

void pl_feed_forward_bwd_exec(const pl_feed_forward_bwd_call *c, void *workspace, pl_team team)
{
    pl_gemm_call product[BACKWARD_PRODUCTS];
    uint64_t bytes = hidden_bytes(c->rows, c->chunk_rows, c->hidden);
    float *hidden = workspace, *activated = (float *)(void *)((char *)workspace + bytes);
    char *behind = (char *)workspace + 2 * bytes;
    for (int64_t first = 0; first < c->rows; first += c->chunk_rows) {
        int64_t rows = smaller(c->rows - first, c->chunk_rows);
        backward_products(c, first, rows, hidden, activated, product);
        for (int k = 0; k < BACKWARD_PRODUCTS; k++) {
            pl_gemm_exec(&product[k], behind, team);
            if (k != 1 || !c->db1) continue;
            pl_column_sum_call sum = {
                .rows = rows, .columns = c->hidden, .ld = c->hidden, .x = hidden, .out = c->db1, .accumulate = 1};
            pl_column_sum_exec(&sum, team);
        }
    }
}
