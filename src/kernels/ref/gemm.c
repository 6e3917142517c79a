/* The scalar reference: every product is "thin" to it, one element after the other. Sums are in double, but for those
 * that go on from C, which must not know where the last call ended: each of their steps is rounded. */
#include <stddef.h>

#include "kernels/gemm.h"
#include "kernels/ref/activation.h"

static double as_stored(pl_real type, float s)
{
    if (type == PL_REAL_F32) return s;
    return type == PL_REAL_BF16 ? pl_f32_of_bf16(pl_bf16_of_f32(s)) : pl_f32_of_f16(pl_f16_of_f32(s));
}

static void finish_element(const pl_gemm_epilogue *e, int64_t i, int64_t j, double s)
{
    pl_real type = e->type;
    int64_t at = i * e->ldc + j;
    double x = e->grad_of ? pl_real_get(type, e->grad_of, i * e->ld_grad_of + j) : 0;
    if (e->bias) s += e->bias[j];
    if (e->residual) s += pl_real_get(type, e->residual, i * e->ld_residual + j);
    if (e->accumulate) s += pl_real_get(type, e->c, at);
    if (e->grad_of) s = as_stored(type, (float)s) * ref_activation_slope(e->act, x); /* as where they are not fused */
    pl_real_put(type, e->c, at, (float)s);
    double c = pl_real_get(type, e->c, at);
    if (e->act_out) pl_real_put(type, e->act_out, i * e->ld_act_out + j, (float)ref_activation(e->act, c));
    if (e->grad_of && e->act_again)
        pl_real_put(type, e->act_again, i * e->ld_act_again + j, (float)ref_activation(e->act, x));
}

static void finish(const pl_gemm_epilogue *e, const float *s, int64_t lds, int64_t i, int64_t j, int64_t rows,
                   int64_t column_count)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < column_count; q++) finish_element(e, i + r, j + q, s[r * lds + q]);
}

static double product(const pl_gemm_thin_product *t, int64_t i, int64_t j, int64_t p)
{
    return (double)pl_real_get(t->a_type, t->a, i * t->a_row + p * t->a_col) *
           pl_real_get(t->b_type, t->b, p * t->b_row + j * t->b_col);
}

typedef struct wide_block { /* the one that was read last */
    const char *at;
    float number[PL_ENCODING_BLOCK_MAX];
} wide_block;

static double number_of_block(pl_encoding e, const void *rows, int64_t row, int64_t width, int64_t place,
                              wide_block *last)
{
    const int64_t count = pl_encoding_block(e), bytes = pl_encoding_block_bytes(e);
    const char *at = (const char *)rows + (row * (width / count) + place / count) * bytes;
    if (at != last->at) pl_encoding_widen(e, at, count, last->number);
    last->at = at;
    return (double)last->number[place % count];
}

static double sum_of_blocks(const pl_gemm_thin_product *t, int64_t i, int64_t j)
{
    wide_block last_a = {.at = NULL}, last_b = {.at = NULL};
    const int along_k = t->b_row == 1; /* else along n */
    double s = 0;
    for (int64_t p = 0; p < t->k; p++) {
        const double a = t->a_encoding ? number_of_block(t->a_encoding, t->a, i, t->a_row, p, &last_a)
                                       : (double)pl_real_get(t->a_type, t->a, i * t->a_row + p * t->a_col);
        s += a * number_of_block(t->b_encoding, t->b, along_k ? j : p, along_k ? t->b_col : t->b_row, along_k ? p : j,
                                 &last_b);
    }
    return s;
}

static double sum_of(const pl_gemm_thin_product *t, int64_t i, int64_t j)
{
    double s = 0;
    if (t->b_encoding) return sum_of_blocks(t, i, j);
    for (int64_t p = 0; p < t->k; p++) s += product(t, i, j, p);
    return s;
}

static void gate_element(const pl_gemm_thin_product *t, int64_t i, int64_t j)
{
    const pl_gemm_epilogue *e = &t->epilogue;
    double gate = as_stored(e->type, (float)sum_of(t, i, j)), up = as_stored(e->type, (float)sum_of(t, i, t->n + j));
    pl_real_put(e->type, e->c, i * e->ldc + j, (float)(ref_activation(e->act, gate) * up));
}

static float sum_from(float s, const pl_gemm_thin_product *t, int64_t i, int64_t j)
{
    for (int64_t p = 0; p < t->k; p++) s = (float)(s + product(t, i, j, p));
    return s;
}

static void columns(const pl_gemm_thin_product *t, int64_t begin, int64_t end)
{
    const pl_gemm_epilogue *e = &t->epilogue;
    int goes_on = e->accumulate && e->type == PL_REAL_F32 && !e->bias && !e->residual && !e->act_out && !e->grad_of;
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = begin; j < end; j++) {
            float *c = (float *)e->c + i * e->ldc + j;
            if (e->gated)
                gate_element(t, i, j);
            else if (goes_on)
                *c = sum_from(*c, t, i, j);
            else
                finish_element(e, i, j, sum_of(t, i, j));
        }
}

static void column_sum(pl_real type, const void *x, int64_t ld, int64_t rows, int64_t column_count, float *out, int add)
{
    for (int64_t j = 0; j < column_count; j++) {
        float s = add ? out[j] : 0;
        for (int64_t i = 0; i < rows; i++) s += pl_real_get(type, x, i * ld + j);
        out[j] = s;
    }
}

const pl_gemm_kernels pl_gemm_kernels_ref = {
    .mr = 1,
    .nr = 1,
    .vector = 1,
    .step = 1,
    .multiple = 1,
    .k_block = INT64_MAX,
    .k_block_packed = INT64_MAX,
    .finish = finish,
    .thin = columns,
    .column_sum = column_sum,
};
