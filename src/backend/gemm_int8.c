/* int8 products: weights packed ahead, x given as u8 or rounded to it first, in the workspace.
 *
 * Packed weights: column scales | column sums | panels (kernels/words.h); each part of whole panels of columns.
 * Workspace: that of the product | x as u8, rows of whole words. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "backend/parallel.h"
#include "backend/words.h"
#include "base/size.h"
#include "kernels/kernels.h"

static int64_t words_of(int64_t k) { return (k + 3) / 4; }

static char *panels_of(const void *packed, int64_t n)
{
    return (char *)(uintptr_t)packed + (uint64_t)pl_words_columns(n) * (sizeof(float) + sizeof(int32_t));
}

static int32_t *column_sums_of(const void *packed, int64_t n)
{
    return (int32_t *)(void *)((char *)(uintptr_t)packed + (uint64_t)pl_words_columns(n) * sizeof(float));
}

void pl_int8_pack(int64_t n, int64_t k, const int8_t *w, int64_t ld, const float *scale, void *packed)
{
    assert(k <= PL_INT8_K_MAX);
    memset(packed, 0, pl_int8_packed_bytes(n, k));
    memcpy(packed, scale, (size_t)n * sizeof *scale);
    for (int64_t j = 0; j < n; j++) {
        const int8_t *row = w + j * ld;
        int32_t sum = 0;
        for (int64_t p = 0; p < k; p++) sum += row[p];
        for (int64_t p = 0; p < k; p += 4)
            memcpy(panels_of(packed, n) + pl_words_at(words_of(k), p / 4, j), row + p, (size_t)(k - p < 4 ? k - p : 4));
        column_sums_of(packed, n)[j] = sum;
    }
}

void pl_int8_unpack(int64_t n, int64_t k, const void *packed, int8_t *w)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++)
            w[p * n + j] = *(const int8_t *)(panels_of(packed, n) + pl_words_at(words_of(k), p / 4, j) + p % 4);
}

int64_t pl_int8_check(int64_t n, int64_t k, const void *packed)
{
    const float *scale = packed;
    const int32_t *sums = column_sums_of(packed, n);
    for (int64_t j = 0; j < n; j++) {
        int32_t sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += *(const int8_t *)(panels_of(packed, n) + pl_words_at(words_of(k), p / 4, j) + p % 4);
        /* As pl_int8_quantize_channel makes it of the largest number that there is. */
        if (!(scale[j] > 0) || scale[j] > FLT_MAX / 127 || sum != sums[j]) return j;
    }
    return -1;
}

float pl_int8_quantize_channel(int64_t k, const float *w, int8_t *q)
{
    float largest = 0;
    for (int64_t p = 0; p < k; p++) largest = fmaxf(largest, fabsf(w[p]));
    const float scale = largest / 127 > 0 ? largest / 127 : 1; /* what is smaller is 0 */
    for (int64_t p = 0; p < k; p++) q[p] = (int8_t)fmaxf(-127, fminf(127, nearbyintf(w[p] / scale)));
    return scale;
}

typedef struct quantize_job {
    const pl_quantize_call *call;
    const pl_kernels *kernels;
} quantize_job;

static void quantize_part(const void *work, int part, int parts)
{
    const quantize_job *j = work;
    const pl_quantize_call *c = j->call;
    const pl_range rows = pl_range_of_part(c->rows, 1, part, parts);
    for (int64_t i = rows.begin; i < rows.end; i++)
        j->kernels->quantize_u8(c->k, c->x + i * c->ld_x, c->scale, c->zero, c->q + i * c->ld_q);
}

void pl_quantize_exec(const pl_quantize_call *call, pl_team team)
{
    const quantize_job job = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->rows * call->k, quantize_part, &job);
}

static void quantize_rows(const pl_words_product *w, int64_t begin, int64_t end)
{
    const pl_int8_call *c = w->call;
    for (int64_t i = begin; i < end; i++) {
        uint8_t *row = (uint8_t *)(uintptr_t)(w->x + i * w->stride);
        pl_kernels_get(w->isa)->quantize_u8(c->k, c->x_real + i * c->ld_x, c->x_scale, c->x_zero, row);
        memset(row + c->k, 0, (size_t)(w->stride - c->k)); /* meets zeros of w */
    }
}

static int64_t rows_of_w(const pl_int8_call *c) { return c->gated ? 2 * c->n : c->n; }

static pl_words_epilogue epilogue_of(const pl_int8_call *c)
{
    return (pl_words_epilogue){.gated = c->gated ? c->n : 0,
                               .factor = 1,
                               .zero = c->x_zero,
                               .column_sums = column_sums_of(c->packed, rows_of_w(c)),
                               .column_scale = c->packed,
                               .scale = c->x_scale,
                               .bias = c->bias,
                               .residual = c->residual,
                               .ld_residual = c->ld_residual,
                               .c = c->c,
                               .ldc = c->ldc,
                               .act = c->act,
                               .act_out = c->act_out,
                               .ld_act_out = c->ld_act_out,
                               .q_out = c->q_out,
                               .ld_q_out = c->ld_q_out,
                               .q_scale = c->q_scale,
                               .q_zero = c->q_zero};
}

/* x as u8 behind the product's own workspace of so many bytes. */
static pl_words_product product_of(const pl_words_kernels *kernels, const pl_int8_call *c, pl_isa isa)
{
    pl_words_product w = {.kernels = kernels,
                          .m = c->m,
                          .n = c->n,
                          .words = words_of(c->k),
                          .row_bytes = c->k,
                          .x = (const char *)c->x,
                          .stride = c->ld_x,
                          .epilogue = {.gated = c->gated ? c->n : 0},
                          .isa = isa,
                          .call = c};
    if (c->x_real) w.row_bytes = w.stride = 4 * w.words, w.make_rows = quantize_rows;
    return w;
}

static uint64_t own_bytes(const pl_words_product *w, pl_team team)
{
    return pl_align_up(pl_words_workspace_bytes(w, team.threads), 64);
}

uint64_t pl_int8_workspace_bytes_with(const pl_words_kernels *kernels, const pl_int8_call *c, pl_team team)
{
    const pl_words_product w = product_of(kernels, c, team.isa);
    return own_bytes(&w, team) + (c->x_real ? (uint64_t)(w.stride * c->m) : 0);
}

uint64_t pl_int8_workspace_bytes(const pl_int8_call *c, pl_team team)
{
    return pl_int8_workspace_bytes_with(pl_int8_kernels(team.isa, pl_isa_extras(team.isa)), c, team);
}

void pl_int8_exec_with(const pl_words_kernels *kernels, const pl_int8_call *c, void *workspace, pl_team team)
{
    assert(c->k <= PL_INT8_K_MAX && c->x_zero >= 0 && c->x_zero <= 255);
    assert(!c->gated || (c->n % PL_WORDS_PANEL == 0 && !c->residual && !c->c));
    pl_words_product w = product_of(kernels, c, team.isa);
    if (c->x_real) w.x = (char *)workspace + own_bytes(&w, team);
    w.panels = panels_of(c->packed, rows_of_w(c));
    w.epilogue = epilogue_of(c);
    pl_words_exec(&w, workspace, team.threads);
}

void pl_int8_exec(const pl_int8_call *c, void *workspace, pl_team team)
{
    pl_int8_exec_with(pl_int8_kernels(team.isa, pl_isa_extras(team.isa)), c, workspace, team);
}
