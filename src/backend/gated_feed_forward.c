/* Gated feed-forward layers in chunks of rows, as feed_forward.c does those without a gate: every sum goes on where the
 * chunk before left it, and a row's bits do not depend on its neighbours, so the chunk's size is not to be seen in the
 * results. With 16 bits g, u, their product h and the gradients of all three are rounded as where they are stored.
 *
 *   forward    h = act(x Wgᵀ)·(x Wuᵀ)                        y = h Wdᵀ (+ residual)
 *   backward   g, u = x Wguᵀ;  dh = dy Wd;  then in place    h = act(g)·u;  dg = dh·u·act'(g);  du = dh·act(g)
 *              dWd += dyᵀ h;  dWgu += [dg, du]ᵀ x            dx = [dg, du] Wgu (+ partial)
 *
 * Workspace, each part aligned to 64: [h: chunk × F][backward, g and u: chunk × 2F][workspace of the products] */
#include "backend/calls.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/kernels.h"

enum { LINE_BYTES = 64, CROWDED_BYTES = 2048, FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5 };

typedef pl_gated_layer layer;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* From row to row of what has so many columns: rows a multiple of 2 KiB apart would share a few sets of the caches, and
 * fewer of them could be read at a time (gemm_plan.c). */
static int64_t stride_of(const layer *l, int64_t columns)
{
    int64_t bytes = columns * pl_real_bytes(l->type);
    return bytes % CROWDED_BYTES == 0 ? columns + LINE_BYTES / pl_real_bytes(l->type) : columns;
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
static void forward_products(const pl_gated_call *c, int64_t first, int64_t rows, void *hidden,
                             pl_gemm_call product[FORWARD_PRODUCTS])
{
    const layer *l = &c->layer;
    product[0] = pl_gemm_linear(l->type, rows, l->hidden, l->in, in_row(l, l->x, first), l->wgu, hidden);
    product[0].ldc = stride_of(l, l->hidden);
    product[0].gated = 1;
    product[0].act = l->act;
    product[1] = pl_gemm_linear(l->type, rows, l->out, l->hidden, hidden, l->wd, out_row(l, c->y, first));
    product[1].a_row = stride_of(l, l->hidden);
    product[1].residual = out_row(l, c->residual, first), product[1].ld_residual = l->out;
    product[0].dots = product[1].dots = l->dots;
}

/* Of the first chunk and the last, which may be smaller. */
uint64_t pl_gated_workspace_bytes(const pl_gated_call *c, pl_team team)
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

void pl_gated_exec(const pl_gated_call *c, void *workspace, pl_team team)
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

typedef struct gate_work {
    const layer *layer;
    const pl_kernels *kernels;
    int64_t rows;
    void *hidden, *both;
} gate_work;

static void gate_part(const void *context, int part, int parts)
{
    const gate_work *w = context;
    const layer *l = w->layer;
    const int64_t hidden = stride_of(l, l->hidden), both = stride_of(l, 2 * l->hidden);
    pl_range own = pl_range_of_part(w->rows, 1, part, parts);
    for (int64_t r = own.begin; r < own.end; r++)
        w->kernels->gated_bwd(l->act, l->hidden, l->type, pl_real_at(l->type, w->both, r * both),
                              pl_real_at(l->type, w->both, r * both + l->hidden),
                              pl_real_at(l->type, w->hidden, r * hidden));
}

/* The first two make what the others read; whose sum is not wanted is left out. */
static int is_wanted(const pl_gated_bwd_call *c, int product)
{
    const void *const to[BACKWARD_PRODUCTS] = {c, c, c->dwd, c->dwgu, c->dx};
    return to[product] != NULL;
}

static void backward_products(const pl_gated_bwd_call *c, int64_t first, int64_t rows, void *hidden, void *both,
                              pl_gemm_call product[BACKWARD_PRODUCTS])
{
    const layer *l = &c->layer;
    const void *x = in_row(l, l->x, first), *dy = out_row(l, c->dy, first);
    int64_t wide = 2 * l->hidden;
    product[0] = pl_gemm_linear(l->type, rows, wide, l->in, x, l->wgu, both);
    product[0].dots = l->dots;
    product[1] = pl_gemm_linear_dx(l->type, rows, l->hidden, l->out, dy, l->wd, hidden);
    product[2] = pl_gemm_linear_dw(l->type, l->out, l->hidden, rows, dy, hidden, c->dwd);
    product[3] = pl_gemm_linear_dw(l->type, wide, l->in, rows, both, x, c->dwgu);
    product[4] = pl_gemm_linear_dx(l->type, rows, l->in, wide, both, l->wgu, in_row(l, c->dx, first));
    product[0].ldc = product[3].a_col = product[4].a_row = stride_of(l, wide);
    product[1].ldc = product[2].b_row = stride_of(l, l->hidden);
    product[4].residual = in_row(l, c->partial, first), product[4].ld_residual = l->in;
}

uint64_t pl_gated_bwd_workspace_bytes(const pl_gated_bwd_call *c, pl_team team)
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
    return chunk_bytes(l, l->hidden) + chunk_bytes(l, 2 * l->hidden) + bytes;
}

void pl_gated_bwd_exec(const pl_gated_bwd_call *c, void *workspace, pl_team team)
{
    const layer *l = &c->layer;
    pl_gemm_call product[BACKWARD_PRODUCTS];
    char *hidden = workspace, *both = hidden + chunk_bytes(l, l->hidden),
         *behind = both + chunk_bytes(l, 2 * l->hidden);
    for (int64_t first = 0; first < l->rows; first += l->chunk_rows) {
        gate_work gate = {l, pl_kernels_get(team.isa), smaller(l->rows - first, l->chunk_rows), hidden, both};
        backward_products(c, first, gate.rows, hidden, both, product);
        for (int k = 0; k < BACKWARD_PRODUCTS; k++) {
            if (is_wanted(c, k)) pl_gemm_exec(&product[k], behind, team);
            if (k == 1) pl_parallel(team, gate.rows * l->hidden, gate_part, &gate);
        }
    }
}
