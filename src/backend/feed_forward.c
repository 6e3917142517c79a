/* Feed-forward layers in chunks of rows. A chunk's hidden values lie in the workspace between the two products; the
 * backward pass makes them again, turns them into their gradient in place and adds its share to every sum before the
 * next chunk. Every sum goes on where the chunk before left it, and a row's bits do not depend on its neighbours: the
 * chunk's size is not to be seen in the results. With 16 bits u, a, da, du are rounded as where they are stored whole.
 *
 *   forward    a = act(x W1ᵀ + b1)                                 y = a W2ᵀ + b2 (+ residual)
 *   backward   u = x W1ᵀ + b1;  du = (dy W2)·act'(u), a = act(u)   dW2 += dyᵀ a;  db1 += Σ du;  dW1 += duᵀ x
 *              dx = du W1 (+ partial)
 *
 * Workspace: [hidden: chunk × F][backward, activated: chunk × F][workspace of the products], each aligned to 64. */
#include <stdbool.h>

#include "backend/calls.h"
#include "base/size.h"

enum { LINE_BYTES = 64 };

typedef pl_feed_forward_layer layer;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t hidden_bytes(const layer *l)
{
    return pl_align_up((uint64_t)(smaller(l->rows, l->chunk_rows) * l->hidden * pl_real_bytes(l->type)), LINE_BYTES);
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

enum { FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5 };

/* The products of rows [first, first + rows), in their order. */
static void forward_products(const pl_feed_forward_call *c, int64_t first, int64_t rows, void *hidden,
                             pl_gemm_call product[FORWARD_PRODUCTS])
{
    const layer *l = &c->layer;
    product[0] = pl_gemm_linear(l->type, rows, l->hidden, l->in, in_row(l, l->x, first), l->w1, hidden);
    product[0].bias = l->b1;
    product[0].act = l->act;
    product[0].act_out = hidden, product[0].ld_act_out = l->hidden;
    product[1] = pl_gemm_linear(l->type, rows, l->out, l->hidden, hidden, l->w2, out_row(l, c->y, first));
    product[1].bias = c->b2;
    product[1].residual = out_row(l, c->residual, first), product[1].ld_residual = l->out;
    product[0].dots = product[1].dots = l->dots;
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
    return hidden_bytes(l) + bytes;
}

void pl_feed_forward_exec(const pl_feed_forward_call *c, void *workspace, pl_team team)
{
    const layer *l = &c->layer;
    pl_gemm_call product[FORWARD_PRODUCTS];
    char *behind = (char *)workspace + hidden_bytes(l);
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

static void backward_products(const pl_feed_forward_bwd_call *c, int64_t first, int64_t rows, void *hidden,
                              void *activated, pl_gemm_call product[BACKWARD_PRODUCTS])
{
    const layer *l = &c->layer;
    const void *x = in_row(l, l->x, first), *dy = out_row(l, c->dy, first);
    product[0] = pl_gemm_linear(l->type, rows, l->hidden, l->in, x, l->w1, hidden);
    product[0].bias = l->b1;
    product[0].dots = l->dots;
    product[1] = pl_gemm_linear_dx(l->type, rows, l->hidden, l->out, dy, l->w2, hidden);
    product[1].act = l->act;
    product[1].grad_of = hidden, product[1].ld_grad_of = l->hidden;
    product[1].act_again = activated, product[1].ld_act_again = l->hidden;
    product[2] = pl_gemm_linear_dw(l->type, l->out, l->hidden, rows, dy, activated, c->dw2);
    product[3] = pl_gemm_linear_dw(l->type, l->hidden, l->in, rows, hidden, x, c->dw1);
    product[4] = pl_gemm_linear_dx(l->type, rows, l->in, l->hidden, hidden, l->w1, in_row(l, c->dx, first));
    product[4].residual = in_row(l, c->partial, first), product[4].ld_residual = l->in;
}

uint64_t pl_feed_forward_bwd_workspace_bytes(const pl_feed_forward_bwd_call *c, pl_team team)
{
    static float somewhere;
    const layer *l = &c->layer;
    pl_gemm_call product[BACKWARD_PRODUCTS];
    uint64_t bytes = 0;
    if (l->rows == 0) return 0;
    const int64_t rows[2] = {smaller(l->rows, l->chunk_rows), (l->rows - 1) % l->chunk_rows + 1};
    for (int i = 0; i < 2; i++) {
        backward_products(c, 0, rows[i], &somewhere, &somewhere, product);
        for (int k = 0; k < BACKWARD_PRODUCTS; k++)
            if (is_wanted(c, k)) bytes = larger(bytes, pl_gemm_workspace_bytes(&product[k], team));
    }
    return 2 * hidden_bytes(l) + bytes;
}

void pl_feed_forward_bwd_exec(const pl_feed_forward_bwd_call *c, void *workspace, pl_team team)
{
    const layer *l = &c->layer;
    pl_gemm_call product[BACKWARD_PRODUCTS];
    uint64_t bytes = hidden_bytes(l);
    char *hidden = workspace, *activated = hidden + bytes, *behind = activated + bytes;
    for (int64_t first = 0; first < l->rows; first += l->chunk_rows) {
        int64_t rows = smaller(l->rows - first, l->chunk_rows);
        backward_products(c, first, rows, hidden, activated, product);
        for (int k = 0; k < BACKWARD_PRODUCTS; k++) {
            if (is_wanted(c, k)) pl_gemm_exec(&product[k], behind, team);
            if (k != 1 || !c->db1) continue;
            pl_column_sum_call sum = {.rows = rows, .columns = l->hidden, .ld = l->hidden, .x = hidden};
            sum.out = c->db1, sum.accumulate = 1, sum.type = l->type;
            pl_column_sum_exec(&sum, team);
        }
    }
}
