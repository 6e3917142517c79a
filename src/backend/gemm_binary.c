/* Binary products: weights packed ahead, x given as signs or reduced to them first, in the workspace.
 *
 * Packed weights: alpha | panels of signs (kernels/words.h); each part of whole panels of columns.
 * Workspace: that of the product | beta | signs of x. */
#include <math.h>
#include <string.h>

#include "backend/parallel.h"
#include "backend/words.h"
#include "base/size.h"
#include "kernels/kernels.h"

static char *panels_of(const void *packed, int64_t n)
{
    return (char *)(uintptr_t)packed + (uint64_t)pl_words_columns(n) * sizeof(float);
}

void pl_binary_pack(int64_t n, int64_t k, const uint32_t *signs, const float *alpha, void *packed)
{
    const int64_t words = pl_binary_words(k);
    memset(packed, 0, pl_binary_packed_bytes(n, k));
    memcpy(packed, alpha, (size_t)n * sizeof *alpha);
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < words; p++)
            memcpy(panels_of(packed, n) + pl_words_at(words, p, j), signs + j * words + p, sizeof *signs);
}

int64_t pl_binary_check(int64_t n, int64_t k, const void *packed)
{
    const int64_t words = pl_binary_words(k), end = k % PL_BINARY_WORD;
    for (int64_t j = 0; j < pl_binary_rows(n); j++) {
        const float alpha = ((const float *)packed)[j];
        uint32_t all = 0, last = 0;
        for (int64_t p = 0; p < words; p++) {
            memcpy(&last, (const char *)packed + pl_binary_word_at(n, k, j, p), sizeof last);
            all |= last;
        }
        if (!(alpha >= 0) || !isfinite(alpha) || (end && last >> end)) return j;
        if (j >= n && (all || alpha != 0)) return j;
    }
    return -1;
}

typedef struct signs_job {
    const pl_signs_call *call;
    const pl_kernels *kernels;
} signs_job;

static void signs_of_part(const void *work, int part, int parts)
{
    const signs_job *j = work;
    const pl_signs_call *c = j->call;
    const pl_range rows = pl_range_of_part(c->rows, 1, part, parts);
    for (int64_t i = rows.begin; i < rows.end; i++)
        c->mean[i] = j->kernels->signs(c->k, c->x + i * c->ld_x, c->signs + i * pl_binary_words(c->k));
}

void pl_signs_exec(const pl_signs_call *call, pl_team team)
{
    const signs_job job = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->rows * call->k, signs_of_part, &job);
}

static uint32_t *rows_of_signs(const pl_words_product *w, int64_t i)
{
    return (uint32_t *)(void *)(uintptr_t)(w->x + i * w->stride);
}

static void signs_of_rows(const pl_words_product *w, int64_t begin, int64_t end)
{
    const pl_binary_call *c = w->call;
    float *beta = (float *)(uintptr_t)w->epilogue.row_scale;
    for (int64_t i = begin; i < end; i++)
        beta[i] = pl_kernels_get(w->isa)->signs(c->k, c->x_real + i * c->ld_x, rows_of_signs(w, i));
}

static pl_words_epilogue epilogue_of(const pl_binary_call *c)
{
    return (pl_words_epilogue){.factor = -2,
                               .constant = (int32_t)c->k,
                               .column_scale = c->packed,
                               .row_scale = c->beta,
                               .bias = c->bias,
                               .residual = c->residual,
                               .ld_residual = c->ld_residual,
                               .c = c->c,
                               .ldc = c->ldc,
                               .act = c->act,
                               .act_out = c->act_out,
                               .ld_act_out = c->ld_act_out};
}

static pl_words_product product_of(const pl_words_kernels *kernels, const pl_binary_call *c, pl_isa isa)
{
    const int64_t words = pl_binary_words(c->k);
    return (pl_words_product){.kernels = kernels,
                              .m = c->m,
                              .n = c->n,
                              .words = words,
                              .row_bytes = 4 * words,
                              .x = (const char *)c->x,
                              .stride = 4 * (c->x_real ? words : c->ld_x),
                              .make_rows = c->x_real ? signs_of_rows : NULL,
                              .isa = isa,
                              .call = c};
}

static uint64_t own_bytes(const pl_words_product *w, pl_team team)
{
    return pl_align_up(pl_words_workspace_bytes(w, team.threads), 64);
}

static uint64_t beta_bytes(const pl_binary_call *c) { return pl_align_up((uint64_t)c->m * sizeof(float), 64); }

uint64_t pl_binary_workspace_bytes_with(const pl_words_kernels *kernels, const pl_binary_call *c, pl_team team)
{
    const pl_words_product w = product_of(kernels, c, team.isa);
    return own_bytes(&w, team) + (c->x_real ? beta_bytes(c) + (uint64_t)(w.stride * c->m) : 0);
}

uint64_t pl_binary_workspace_bytes(const pl_binary_call *c, pl_team team)
{
    return pl_binary_workspace_bytes_with(pl_binary_kernels(team.isa, pl_isa_extras(team.isa)), c, team);
}

void pl_binary_exec_with(const pl_words_kernels *kernels, const pl_binary_call *c, void *workspace, pl_team team)
{
    pl_words_product w = product_of(kernels, c, team.isa);
    w.panels = panels_of(c->packed, c->n);
    w.epilogue = epilogue_of(c);
    if (c->x_real) {
        char *beta = (char *)workspace + own_bytes(&w, team);
        w.epilogue.row_scale = (const float *)(const void *)beta;
        w.x = beta + beta_bytes(c);
    }
    pl_words_exec(&w, workspace, team.threads);
}

void pl_binary_exec(const pl_binary_call *c, void *workspace, pl_team team)
{
    pl_binary_exec_with(pl_binary_kernels(team.isa, pl_isa_extras(team.isa)), c, workspace, team);
}
