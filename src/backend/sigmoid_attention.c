/* Attention with sigmoids: products of one sample after the other, each by the whole team, so that one sample's weights
 * are all that lies in the workspace and no bit depends on the number of samples.
 *
 * Workspace, each part aligned to 64:
 *   forward    [A: T × T][Σ u: D][workspace of the products]
 *   backward   [A: T × T][dS: T × T][Σ do: D][workspace of the products] */
#include "backend/sigmoid_attention.h"

#include <string.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/kernels.h"

enum { FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5, LINE_BYTES = 64, GRAIN = 4 };

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t floats_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), LINE_BYTES); }

static uint64_t products_bytes(const pl_gemm_call *product, int count, pl_team team)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes = larger(bytes, pl_gemm_workspace_bytes(&product[i], team));
    return bytes;
}

/* ---- what happens to the weights between the products, row by row ---- */

typedef struct rows {
    const pl_kernels *kernels;
    int64_t tokens;
    float scale;
    float *a;  /* scores become weights */
    float *ds; /* holds dA and becomes the gradient of the scores; NULL: it is not wanted */
} rows;

static void weigh_part(const void *context, int part, int parts)
{
    const rows *r = context;
    pl_range own = pl_range_of_part(r->tokens, GRAIN, part, parts);
    const int64_t begin = own.begin * r->tokens, end = own.end * r->tokens;
    for (int64_t i = begin; i < end; i++) r->a[i] *= r->scale;
    if (r->ds) { /* of the scores: of a weight near 1 its distance from 1 would be lost */
        float *ds = r->ds + begin;
        r->kernels->activation_bwd(PL_ACT_SIGMOID, end - begin, PL_REAL_F32, r->a + begin, ds, ds);
        for (int64_t i = begin; i < end; i++) r->ds[i] *= r->scale;
    }
    r->kernels->activation(PL_ACT_SIGMOID, end - begin, PL_REAL_F32, r->a + begin, r->a + begin);
}

static void weigh(int64_t tokens, float scale, float *a, float *ds, pl_team team)
{
    rows r = {pl_kernels_get(team.isa), tokens, scale, a, ds};
    pl_parallel(team, tokens * tokens, weigh_part, &r);
}

/* S = x yᵀ in f32 */
static pl_gemm_call scores(pl_real type, int64_t tokens, int64_t width, const void *x, const void *y, float *to)
{
    pl_gemm_call c = pl_gemm_linear(type, tokens, tokens, width, x, y, to);
    c.type = PL_REAL_F32;
    return c;
}

/* W x, of f32 weights */
static pl_gemm_call weighted(pl_real type, int64_t tokens, int64_t width, const float *w, const void *x, void *to)
{
    pl_gemm_call c = pl_gemm_linear_dx(type, tokens, width, tokens, w, x, to);
    c.a_type = PL_REAL_F32;
    return c;
}

/* Wᵀ x */
static pl_gemm_call turned(pl_real type, int64_t tokens, int64_t width, const float *w, const void *x, void *to)
{
    pl_gemm_call c = weighted(type, tokens, width, w, x, to);
    c.a_row = 1, c.a_col = tokens;
    return c;
}

/* ---- forward ---- */

static void forward_products(const pl_sigmoid_attention_call *c, int64_t sample, float *a, const float *sum,
                             pl_gemm_call product[FORWARD_PRODUCTS])
{
    const int64_t at = sample * c->tokens * c->width;
    product[0] = scores(c->type, c->tokens, c->width, pl_real_at(c->type, c->q, at), pl_real_at(c->type, c->k, at), a);
    product[1] =
        weighted(c->type, c->tokens, c->width, a, pl_real_at(c->type, c->v, at), pl_real_at(c->type, c->o, at));
    product[1].bias = sum;
}

uint64_t pl_sigmoid_attention_workspace_bytes(const pl_sigmoid_attention_call *c, pl_team team)
{
    static float somewhere;
    pl_gemm_call product[FORWARD_PRODUCTS];
    forward_products(c, 0, &somewhere, &somewhere, product);
    return floats_bytes(c->tokens * c->tokens) + floats_bytes(c->width) +
           products_bytes(product, FORWARD_PRODUCTS, team);
}

void pl_sigmoid_attention_exec(const pl_sigmoid_attention_call *c, void *workspace, pl_team team)
{
    float *a = workspace, *sum = a + floats_bytes(c->tokens * c->tokens) / sizeof(float);
    void *behind = sum + floats_bytes(c->width) / sizeof(float);
    pl_gemm_call product[FORWARD_PRODUCTS];
    for (int64_t b = 0; b < c->samples; b++) {
        const void *u = pl_real_at(c->type, c->u, b * c->tokens * c->width);
        forward_products(c, b, a, sum, product);
        pl_column_sum_exec(&(pl_column_sum_call){c->tokens, c->width, c->width, u, sum, 0, c->type}, team);
        pl_gemm_exec(&product[0], behind, team);
        weigh(c->tokens, c->scale, a, NULL, team);
        pl_gemm_exec(&product[1], behind, team);
    }
}

/* ---- backward ---- */

enum { A, DA, DQ, DK, DV };

/* Which of them are needed. */
static int is_wanted(const pl_sigmoid_attention_bwd_call *c, int product)
{
    const int scores_too = c->dq || c->dk;
    const int wanted[BACKWARD_PRODUCTS] = {
        [A] = scores_too || c->dv, [DA] = scores_too, [DQ] = c->dq != NULL, [DK] = c->dk != NULL, [DV] = c->dv != NULL};
    return wanted[product];
}

static void *at_or_null(pl_real type, void *p, int64_t i) { return p ? pl_real_at(type, p, i) : NULL; }

static void backward_products(const pl_sigmoid_attention_bwd_call *c, int64_t sample, float *a, float *ds,
                              pl_gemm_call product[BACKWARD_PRODUCTS])
{
    const pl_real type = c->type;
    const int64_t t = c->tokens, width = c->width, at = sample * t * width;
    const void *q = pl_real_at(type, c->q, at), *k = pl_real_at(type, c->k, at), *d_o = pl_real_at(type, c->d_o, at);
    product[A] = scores(type, t, width, q, k, a);
    product[DA] = scores(type, t, width, d_o, pl_real_at(type, c->v, at), ds);
    product[DQ] = weighted(type, t, width, ds, k, at_or_null(type, c->dq, at));
    product[DK] = turned(type, t, width, ds, q, at_or_null(type, c->dk, at));
    product[DV] = turned(type, t, width, a, d_o, at_or_null(type, c->dv, at));
}

uint64_t pl_sigmoid_attention_bwd_workspace_bytes(const pl_sigmoid_attention_bwd_call *c, pl_team team)
{
    static float somewhere;
    pl_gemm_call product[BACKWARD_PRODUCTS];
    backward_products(c, 0, &somewhere, &somewhere, product);
    return 2 * floats_bytes(c->tokens * c->tokens) + floats_bytes(c->width) +
           products_bytes(product, BACKWARD_PRODUCTS, team);
}

/* Every row of du is Σ do. */
static void spread_sum(const pl_sigmoid_attention_bwd_call *c, int64_t sample, float *sum, pl_team team)
{
    const int64_t at = sample * c->tokens * c->width;
    const uint64_t row_bytes = (uint64_t)(c->width * pl_real_bytes(c->type));
    char *first = pl_real_at(c->type, c->du, at);
    pl_column_sum_exec(
        &(pl_column_sum_call){c->tokens, c->width, c->width, pl_real_at(c->type, c->d_o, at), sum, 0, c->type}, team);
    pl_kernels_get(team.isa)->cast(c->width, PL_REAL_F32, sum, c->type, first);
    for (int64_t i = 1; i < c->tokens; i++) memcpy(first + (uint64_t)i * row_bytes, first, row_bytes);
}

void pl_sigmoid_attention_bwd_exec(const pl_sigmoid_attention_bwd_call *c, void *workspace, pl_team team)
{
    const uint64_t square = floats_bytes(c->tokens * c->tokens) / sizeof(float);
    float *a = workspace, *ds = a + square, *sum = ds + square;
    void *behind = sum + floats_bytes(c->width) / sizeof(float);
    pl_gemm_call product[BACKWARD_PRODUCTS];
    for (int64_t b = 0; b < c->samples; b++) {
        backward_products(c, b, a, ds, product);
        for (int i = 0; i < BACKWARD_PRODUCTS; i++) {
            if (is_wanted(c, i)) pl_gemm_exec(&product[i], behind, team);
            if (i == DA && is_wanted(c, A)) weigh(c->tokens, c->scale, a, is_wanted(c, DA) ? ds : NULL, team);
        }
        if (c->du) spread_sum(c, b, sum, team);
    }
}
