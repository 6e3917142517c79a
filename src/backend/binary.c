/* Layers of signs: packing of weights, and the backward pass. That is in f32: what is a sign times a scale is made as
 * numbers, some columns at a time, for the products that all layers have.
 *
 * Workspace:  pack_signs       for each thread: signs of a row
 *             dx               W~ of some columns | workspace of the product | beta | for each thread: signs of a row
 *             dw               X~ of some rows and columns | workspace of the product | beta | signs of all rows
 *             latent_gradient  as pack_signs */
#include "backend/binary.h"

#include <math.h>
#include <string.h>

#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/kernels.h"

enum { COLUMNS_BYTES = 4 << 20, DW_COLUMNS = 256, LANES = 16 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static uint64_t row_bytes(int64_t k) { return pl_align_up(sizeof(uint32_t) * (uint64_t)pl_binary_words(k), 64); }

static uint32_t *row_of_part(void *workspace, int64_t k, int part)
{
    return (uint32_t *)(void *)((char *)workspace + row_bytes(k) * (uint64_t)part);
}

/* ---- numbers from signs ---- */

/* x[i] = scale with the sign of bit i; words lie so many bytes apart. */
static void expand(int64_t count, const char *words, int64_t stride, float scale, float *x)
{
    for (int64_t i = 0; i < count; i += PL_BINARY_WORD, words += stride) {
        uint32_t word, bits;
        memcpy(&word, words, sizeof word);
        memcpy(&bits, &scale, sizeof bits);
        const int64_t here = least(PL_BINARY_WORD, count - i);
        for (int64_t b = 0; b < here; b++) {
            const uint32_t number = bits ^ (word >> b & 1) << 31;
            memcpy(&x[i + b], &number, sizeof number);
        }
    }
}

/* ---- pack_signs ---- */

typedef struct pack_work {
    const pl_pack_signs_call *call;
    const pl_kernels *kernels;
    void *workspace;
} pack_work;

static void pack_row(const pack_work *w, int64_t j, uint32_t *signs)
{
    const pl_pack_signs_call *c = w->call;
    const int64_t words = pl_binary_words(c->k);
    float alpha = 0;
    if (j < c->n)
        alpha = w->kernels->signs(c->k, c->w + j * c->k, signs);
    else
        memset(signs, 0, sizeof *signs * (size_t)words);
    ((float *)c->packed)[j] = alpha;
    for (int64_t p = 0; p < words; p++)
        memcpy((char *)c->packed + pl_binary_word_at(c->n, c->k, j, p), &signs[p], sizeof *signs);
}

static void pack_part(const void *context, int part, int parts)
{
    const pack_work *w = context;
    const pl_range rows = pl_range_of_part(pl_binary_rows(w->call->n), PL_BINARY_PANEL, part, parts);
    for (int64_t j = rows.begin; j < rows.end; j++) pack_row(w, j, row_of_part(w->workspace, w->call->k, part));
}

uint64_t pl_pack_signs_workspace_bytes(const pl_pack_signs_call *c, pl_team team)
{
    return row_bytes(c->k) * (uint64_t)team.threads;
}

void pl_pack_signs_exec(const pl_pack_signs_call *c, void *workspace, pl_team team)
{
    const pack_work work = {c, pl_kernels_get(team.isa), workspace};
    pl_parallel(team, c->n * c->k, pack_part, &work);
}

/* ---- dx ---- */

typedef struct dx_work {
    const pl_linear_binary_dx_call *call;
    const pl_kernels *kernels;
    int64_t first, columns; /* of W~ that are there */
    float *w;
    void *signs; /* a row for each part */
} dx_work;

/* Whole words of a row, all of it where that is small; it hangs on the layer alone. */
static int64_t dx_columns(const pl_linear_binary_dx_call *c)
{
    const int64_t fit = COLUMNS_BYTES / (4 * c->n) / PL_BINARY_WORD * PL_BINARY_WORD;
    return least(c->k, fit > 2 * PL_BINARY_WORD ? fit : 2 * PL_BINARY_WORD);
}

static pl_gemm_call dx_product(const pl_linear_binary_dx_call *c, int64_t first, int64_t columns, const float *w)
{
    pl_gemm_call product = pl_gemm_linear_dx(PL_REAL_F32, c->m, columns, c->n, c->dy, w, c->dx + first);
    product.ldc = c->k;
    return product;
}

static uint64_t dx_product_bytes(const pl_linear_binary_dx_call *c, pl_team team)
{
    const int64_t columns = dx_columns(c), last = c->k % columns;
    const pl_gemm_call whole = dx_product(c, 0, columns, NULL), rest = dx_product(c, 0, last, NULL);
    const uint64_t a = pl_gemm_workspace_bytes(&whole, team), b = last ? pl_gemm_workspace_bytes(&rest, team) : 0;
    return pl_align_up(a > b ? a : b, 64);
}

static uint64_t dx_weight_bytes(const pl_linear_binary_dx_call *c)
{
    return pl_align_up(sizeof(float) * (uint64_t)(c->n * dx_columns(c)), 64);
}

uint64_t pl_linear_binary_dx_workspace_bytes(const pl_linear_binary_dx_call *c, pl_team team)
{
    return dx_weight_bytes(c) + dx_product_bytes(c, team) + row_bytes(c->k) * (uint64_t)team.threads;
}

static void dx_expand_part(const void *context, int part, int parts)
{
    const dx_work *w = context;
    const pl_linear_binary_dx_call *c = w->call;
    const pl_range rows = pl_range_of_part(c->n, 1, part, parts);
    for (int64_t j = rows.begin; j < rows.end; j++)
        expand(w->columns, (const char *)c->packed + pl_binary_word_at(c->n, c->k, j, w->first / PL_BINARY_WORD),
               sizeof(uint32_t) * PL_BINARY_PANEL, ((const float *)c->packed)[j], w->w + j * w->columns);
}

static float signed_by(float x, float sign) { return sign < 0 ? -x : x; }

/* d holds a row of dX~, and then of dx. The sum has lanes of its own, in one order everywhere. */
static void finish_dx_row(int64_t k, float beta, const float *x, float *d)
{
    float sums[LANES] = {0};
    for (int64_t i = 0; i < k; i += LANES)
        for (int64_t l = 0; l < least(LANES, k - i); l++) sums[l] += signed_by(d[i + l], x[i + l]);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sums[l] += sums[l + half];
    const float of_beta = sums[0] / (float)k;
    for (int64_t i = 0; i < k; i++)
        d[i] = (fabsf(x[i]) <= 1 ? beta * d[i] : 0) + (x[i] == 0 ? 0 : signed_by(of_beta, x[i]));
}

static void dx_finish_part(const void *context, int part, int parts)
{
    const dx_work *w = context;
    const pl_linear_binary_dx_call *c = w->call;
    const pl_range rows = pl_range_of_part(c->m, 1, part, parts);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        const float beta = w->kernels->signs(c->k, c->x + i * c->k, row_of_part(w->signs, c->k, part));
        finish_dx_row(c->k, beta, c->x + i * c->k, c->dx + i * c->k);
    }
}

void pl_linear_binary_dx_exec(const pl_linear_binary_dx_call *c, void *workspace, pl_team team)
{
    char *product_space = (char *)workspace + dx_weight_bytes(c);
    dx_work work = {.call = c,
                    .kernels = pl_kernels_get(team.isa),
                    .w = workspace,
                    .signs = product_space + dx_product_bytes(c, team)};
    for (work.first = 0; work.first < c->k; work.first += work.columns) {
        work.columns = least(dx_columns(c), c->k - work.first);
        pl_parallel(team, c->n * work.columns, dx_expand_part, &work);
        const pl_gemm_call product = dx_product(c, work.first, work.columns, work.w);
        pl_gemm_exec(&product, product_space, team);
    }
    pl_parallel(team, c->m * c->k, dx_finish_part, &work);
}

/* ---- dw ---- */

typedef struct dw_work {
    const pl_linear_binary_dw_call *call;
    const pl_kernels *kernels;
    int64_t row, rows, first, columns; /* of X~ that are there */
    float *x, *beta;
    uint32_t *signs; /* of all rows */
} dw_work;

/* Whole samples. The columns of a product hang on the layer alone, so that its sums do. */
static int64_t dw_rows(const pl_linear_binary_dw_call *c)
{
    const int64_t tokens = c->tokens > 0 ? c->tokens : 1;
    const int64_t fit = COLUMNS_BYTES / (4 * DW_COLUMNS) / tokens * tokens;
    return least(c->m, fit > tokens ? fit : tokens);
}

static pl_gemm_call dw_product(const pl_linear_binary_dw_call *c, const dw_work *w)
{
    pl_gemm_call product =
        pl_gemm_linear_dw(PL_REAL_F32, c->n, w->columns, w->rows, c->dy + w->row * c->n, w->x, c->dw + w->first);
    product.ldc = c->k;
    product.k_sample = c->tokens;
    return product;
}

static uint64_t dw_product_bytes(const pl_linear_binary_dw_call *c, pl_team team)
{
    const int64_t columns = least(c->k, DW_COLUMNS), rows = dw_rows(c);
    uint64_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        const dw_work w = {.rows = i & 1 ? c->m % rows : rows, .columns = i & 2 ? c->k % columns : columns};
        if (w.rows == 0 || w.columns == 0) continue; /* nothing is left over */
        const pl_gemm_call product = dw_product(c, &w);
        const uint64_t needed = pl_gemm_workspace_bytes(&product, team);
        bytes = needed > bytes ? needed : bytes;
    }
    return pl_align_up(bytes, 64);
}

static uint64_t dw_numbers_bytes(const pl_linear_binary_dw_call *c)
{
    return pl_align_up(sizeof(float) * (uint64_t)(dw_rows(c) * least(c->k, DW_COLUMNS)), 64);
}

static uint64_t dw_beta_bytes(const pl_linear_binary_dw_call *c)
{
    return pl_align_up(sizeof(float) * (uint64_t)dw_rows(c), 64);
}

uint64_t pl_linear_binary_dw_workspace_bytes(const pl_linear_binary_dw_call *c, pl_team team)
{
    return dw_numbers_bytes(c) + dw_product_bytes(c, team) + dw_beta_bytes(c) +
           sizeof(uint32_t) * (uint64_t)(dw_rows(c) * pl_binary_words(c->k));
}

static void dw_signs_part(const void *context, int part, int parts)
{
    const dw_work *w = context;
    const int64_t k = w->call->k;
    const pl_range rows = pl_range_of_part(w->rows, 1, part, parts);
    for (int64_t i = rows.begin; i < rows.end; i++)
        w->beta[i] = w->kernels->signs(k, w->call->x + (w->row + i) * k, w->signs + i * pl_binary_words(k));
}

static void dw_expand_part(const void *context, int part, int parts)
{
    const dw_work *w = context;
    const int64_t words = pl_binary_words(w->call->k);
    const pl_range rows = pl_range_of_part(w->rows, 1, part, parts);
    for (int64_t i = rows.begin; i < rows.end; i++)
        expand(w->columns, (const char *)(w->signs + i * words + w->first / PL_BINARY_WORD), sizeof(uint32_t),
               w->beta[i], w->x + i * w->columns);
}

void pl_linear_binary_dw_exec(const pl_linear_binary_dw_call *c, void *workspace, pl_team team)
{
    char *product_space = (char *)workspace + dw_numbers_bytes(c), *beta = product_space + dw_product_bytes(c, team);
    dw_work w = {.call = c,
                 .kernels = pl_kernels_get(team.isa),
                 .x = workspace,
                 .beta = (float *)(void *)beta,
                 .signs = (uint32_t *)(void *)(beta + dw_beta_bytes(c))};
    for (w.row = 0; w.row < c->m; w.row += w.rows) {
        w.rows = least(dw_rows(c), c->m - w.row);
        pl_parallel(team, w.rows * c->k, dw_signs_part, &w);
        for (w.first = 0; w.first < c->k; w.first += w.columns) {
            w.columns = least(DW_COLUMNS, c->k - w.first);
            pl_parallel(team, w.rows * w.columns, dw_expand_part, &w);
            const pl_gemm_call product = dw_product(c, &w);
            pl_gemm_exec(&product, product_space, team);
        }
    }
}

/* ---- latent_gradient ---- */

typedef struct latent_work {
    const pl_latent_gradient_call *call;
    const pl_kernels *kernels;
    void *workspace;
} latent_work;

static void latent_part(const void *context, int part, int parts)
{
    const latent_work *work = context;
    const pl_latent_gradient_call *c = work->call;
    const pl_range rows = pl_range_of_part(c->n, 1, part, parts);
    const float share = 1 / (float)c->k;
    for (int64_t j = rows.begin; j < rows.end; j++) {
        const float *w = c->w + j * c->k;
        float *g = c->g + j * c->k;
        const float inside = work->kernels->signs(c->k, w, row_of_part(work->workspace, c->k, part)) + share;
        for (int64_t i = 0; i < c->k; i++) g[i] *= fabsf(w[i]) <= 1 ? inside : share;
    }
}

uint64_t pl_latent_gradient_workspace_bytes(const pl_latent_gradient_call *c, pl_team team)
{
    return row_bytes(c->k) * (uint64_t)team.threads;
}

void pl_latent_gradient_exec(const pl_latent_gradient_call *c, void *workspace, pl_team team)
{
    const latent_work work = {c, pl_kernels_get(team.isa), workspace};
    pl_parallel(team, c->n * c->k, latent_part, &work);
}
