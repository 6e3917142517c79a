/* The scalar reference of words.h: one element after the other. Built without fused multiply-adds, as the levels'
 * epilogues are. */
#include "kernels/words.h"

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/ref/activation.h"

static void tile_int8(int64_t words, const char *x, int64_t stride, const char *w, int64_t panel_bytes, int32_t *d)
{
    const uint8_t *u = (const uint8_t *)x;
    const int8_t *s = (const int8_t *)w;
    (void)stride, (void)panel_bytes;
    for (int64_t j = 0; j < PL_WORDS_PANEL; j++) {
        d[j] = 0;
        for (int64_t p = 0; p < 4 * words; p++) d[j] += u[p] * s[p / 4 * PL_WORDS_LINE_BYTES + 4 * j + p % 4];
    }
}

static void tile_binary(int64_t words, const char *x, int64_t stride, const char *w, int64_t panel_bytes, int32_t *d)
{
    (void)stride, (void)panel_bytes;
    for (int64_t j = 0; j < PL_WORDS_PANEL; j++) {
        d[j] = 0;
        for (int64_t p = 0; p < words; p++) {
            uint32_t a, b;
            memcpy(&a, x + 4 * p, 4);
            memcpy(&b, w + p * PL_WORDS_LINE_BYTES + 4 * j, 4);
            for (uint32_t differ = a ^ b; differ; differ &= differ - 1) d[j]++;
        }
    }
}

static pl_words_tile_row int8_tiles[] = {{tile_int8}}, binary_tiles[] = {{tile_binary}};
extern const pl_words_kernels pl_int8_kernels_ref, pl_binary_kernels_ref;
const pl_words_kernels pl_int8_kernels_ref = {
    .name = "ref", .mr = 1, .panels = 1, .x_bytes = 4, .prepare = pl_words_copy, .tiles = int8_tiles};
const pl_words_kernels pl_binary_kernels_ref = {
    .name = "ref", .mr = 1, .panels = 1, .x_bytes = 4, .prepare = pl_words_copy, .tiles = binary_tiles};

void PL_KERNEL(quantize_u8)(int64_t count, const float *x, float scale, int32_t zero, uint8_t *q)
{
    for (int64_t i = 0; i < count; i++) {
        float rounded = nearbyintf(x[i] / scale) + (float)zero;
        q[i] = rounded >= 255 ? 255 : rounded > 0 ? (uint8_t)rounded : 0;
    }
}

float PL_KERNEL(signs)(int64_t count, const float *x, uint32_t *words)
{
    float sums[16] = {0};
    memset(words, 0, (size_t)((count + 31) / 32) * sizeof *words);
    for (int64_t i = 0; i < count; i++) {
        sums[i % 16] += fabsf(x[i]);
        if (x[i] < 0) words[i / 32] |= UINT32_C(1) << i % 32;
    }
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) sums[i] += sums[i + half];
    return sums[0] / (float)count;
}

static float linear(const pl_words_epilogue *e, int32_t sum, int64_t i, int64_t j)
{
    int32_t whole = e->factor * sum + e->constant;
    if (e->column_sums) whole -= e->zero * e->column_sums[j];
    float v = (float)whole * (e->column_scale[j] * (e->row_scale ? e->row_scale[i] : e->scale));
    if (e->bias) v += e->bias[j];
    return v;
}

static float gate(const pl_words_epilogue *e, const int32_t *sum, int64_t i, int64_t j)
{
    const float open = linear(e, sum[0], i, j), passed = linear(e, sum[PL_WORDS_PANEL], i, e->gated + j);
    float y;
    PL_KERNEL(gated)(e->act, 1, &open, &passed, &y);
    return y;
}

static float act(const pl_words_epilogue *e, const int32_t *sum, int64_t i, int64_t j)
{
    float v = linear(e, *sum, i, j);
    if (e->residual) v += e->residual[i * e->ld_residual + j];
    if (e->c) e->c[i * e->ldc + j] = v;
    return (float)ref_activation(e->act, v);
}

static void finish_element(const pl_words_epilogue *e, const int32_t *sum, int64_t i, int64_t j)
{
    const float y = e->gated ? gate(e, sum, i, j) : act(e, sum, i, j);
    if (e->act_out) e->act_out[i * e->ld_act_out + j] = y;
    if (e->q_out) PL_KERNEL(quantize_u8)(1, &y, e->q_scale, e->q_zero, e->q_out + i * e->ld_q_out + j);
}

void PL_KERNEL(words_finish)(const pl_words_epilogue *e, const int32_t *s, int64_t lds, int64_t i, int64_t j,
                             int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < columns; q++) finish_element(e, s + r * lds + q, i + r, j + q);
}
