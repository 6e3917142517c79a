/* Attention forward of bf16 by AMX, with the tiles and packers of its matrix products (gemm_amx.c, gemm_pairs.c). The
 * online softmax is that of attention_forward.h, but lanes are keys: K·Qᵀ would leave P to be turned before it meets V.
 *
 *   a task: up to QUERIES queries, 32 of them a panel      for each block of BLOCK_KEYS keys, packed once, per panel
 *   ┌─────────────────────┐                                  S = Q·Kᵀ   [32, keys]
 *   │ Q  queries × dh bf16│ packed once                      m' = max(m, max S), P = 2^(S − m'), l = l·2^(m−m') + ΣP
 *   │ O  queries × dh f32 │ running                          O = O·2^(m−m') + P·V
 *   └─────────────────────┘                                  at the end o = O/l, lse = m·ln 2 + ln l
 *
 * P is rounded to bf16, in place; l is the sum of what was not. A key that a query does not see has P = 0 and its V is
 * multiplied all the same, up to 31 keys past the last one that some query of the panel sees: a NaN there spreads.
 * Dropout as in attention_forward.h: what is dropped becomes 0 in P, the scale is left to the end. */
#if defined(PL_LEVEL_avx512)
#define ATTENTION_PAIRS
#include <float.h>
#include <math.h>

#include "kernels/cpu/attention_ahead.h"
#include "kernels/cpu/attention_dropout.h"
#include "kernels/cpu/attention_words.h"
#include "kernels/cpu/gemm_amx.h"

enum {
    PANEL = PL_GEMM_MR_MAX,
    QUERIES = 256,    /* a multiple of PANEL */
    BLOCK_KEYS = 256, /* a multiple of PL_GEMM_NR_MAX */
    LD_S = BLOCK_KEYS + PL_VW,
    NR = PL_GEMM_NR_MAX
};

typedef struct task {
    const pl_attention_head *h;
    const pl_gemm_packers *pack;
    int64_t begin, end; /* queries */
    int64_t first_key, keys;
    int64_t ldq, ldo, k_panel, v_panel; /* in words */
    float scale;
    float *s;         /* [PANEL][LD_S]; P takes the first half of each row */
    float *o;         /* [QUERIES][ldo] */
    float *top, *sum; /* [QUERIES] m and l */
    word *q;          /* [QUERIES][ldq] */
    word *k, *v;      /* a panel has NR columns; [BLOCK_KEYS / NR][ldq][NR], [ldo / NR][BLOCK_KEYS / 2][NR] */
    fetch ahead;
} task;

static int64_t words_of_q(int64_t head_width) { return round_up(words_of(head_width), PL_GEMM_AMX_WORDS); }

uint64_t pl_attention_amx_workspace_bytes(int64_t head_width)
{
    int64_t ldq = words_of_q(head_width), ldo = round_up(head_width, NR);
    int64_t count = PANEL * LD_S + QUERIES * (ldo + 2 + ldq) + BLOCK_KEYS * ldq + BLOCK_KEYS / 2 * ldo;
    return (uint64_t)count * sizeof(word);
}

int64_t pl_attention_amx_queries(void) { return QUERIES; }

static task task_of(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    const pl_gemm_kernels *gemm = pl_gemm_kernels_by_rows(PL_ISA_AMX, PL_REAL_BF16, PL_REAL_BF16);
    task t = {.h = h,
              .begin = begin,
              .end = end,
              .pack = &gemm->pack[0][PL_REAL_BF16],
              .ldq = words_of_q(h->head_width),
              .ldo = round_up(h->head_width, NR),
              .scale = h->scale * ATTENTION_LOG2_E,
              .s = workspace,
              .ahead = {.ahead = h->ahead}};
    t.k_panel = t.ldq * NR, t.v_panel = BLOCK_KEYS / 2 * NR;
    t.o = t.s + PANEL * LD_S;
    t.top = t.o + QUERIES * t.ldo;
    t.sum = t.top + QUERIES;
    t.q = (word *)(t.sum + QUERIES);
    t.k = t.q + QUERIES * t.ldq;
    t.v = t.k + BLOCK_KEYS * t.ldq;
    return t;
}

/* d[rows, columns] = (d +) a·b, b in panels of NR columns. */
static void multiply_panels(task *t, int64_t rows, int64_t columns, int64_t steps, const void *a, int64_t lda,
                            const word *b, int64_t panel_words, float *d, int64_t ldd, int add)
{
    for (int64_t j = 0; j < columns; j += NR, b += panel_words) {
        fetch_some(&t->ahead);
        pl_gemm_amx_tiles[rows - 1][columns - j > PL_VW](steps, a, lda, b, NR, d + j, ldd, add, NULL);
    }
}

/* The first n scores times scale, in place (as a factor of a fused subtraction it would leave more than 0 of a large
 * score that is the top itself); returns the largest. */
PL_V_INLINE float scale_row(float *s, int64_t n, float scale)
{
    pl_vf high = pl_v_set(-FLT_MAX);
    int64_t j = 0;
    for (; j + PL_VW <= n; j += PL_VW) {
        pl_vf x = scale * pl_v_load(s + j);
        pl_v_store(s + j, x);
        high = pl_v_max(high, x);
    }
    if (j < n) {
        __m512 x = (__m512)(scale * pl_v_load_part(s + j, n - j));
        pl_v_store_part(s + j, (pl_vf)x, n - j);
        high = (pl_vf)_mm512_mask_max_ps((__m512)high, words_mask(n - j), (__m512)high, x);
    }
    return _mm512_reduce_max_ps((__m512)high);
}

PL_V_INLINE pl_vf some_weights(const float *s, int64_t count, pl_vf top)
{
    pl_vf p = pl_v_exp2_flush(pl_v_load_part(s, count) - top);
    return (pl_vf)_mm512_maskz_mov_ps(words_mask(count), (__m512)p);
}

TILE_TARGET PL_V_INLINE void put_weights(float *s, int64_t j, pl_vf first, pl_vf second)
{
    _mm512_storeu_si512((uint16_t *)s + j, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

/* P of n scores in place, zeros up to `padded`, a multiple of two vectors; returns the sum. */
TILE_TARGET PL_V_INLINE float weigh_row(float *s, int64_t n, int64_t padded, float high)
{
    pl_vf top = pl_v_set(high), total[2] = {pl_v_zero(), pl_v_zero()};
    int64_t j = 0;
    for (; j + 2 * PL_VW <= n; j += 2 * PL_VW) {
        pl_vf first = pl_v_exp2_flush(pl_v_load(s + j) - top);
        pl_vf second = pl_v_exp2_flush(pl_v_load(s + j + PL_VW) - top);
        total[0] += first, total[1] += second;
        put_weights(s, j, first, second);
    }
    for (; j < padded; j += 2 * PL_VW) {
        pl_vf first = some_weights(s + j, clamp_to(n - j, PL_VW), top);
        pl_vf second = some_weights(s + j + PL_VW, clamp_to(n - j - PL_VW, PL_VW), top);
        total[0] += first, total[1] += second;
        put_weights(s, j, first, second);
    }
    return pl_v_sum(total[0] + total[1]);
}

/* The softmax step of a panel: P from S, and what the rows of O are to be multiplied with. */
TILE_TARGET static void weigh_panel(task *t, int64_t first, int64_t rows, int64_t keys, float correction[PANEL])
{
    const int64_t padded = round_up(keys, NR);
    float high[PANEL];
    int64_t seen[PANEL];
    for (int64_t i = 0; i < PANEL; i++) {
        seen[i] = i < rows ? clamp_to(keys_seen(t->h, first + i) - t->first_key, keys) : 0;
        high[i] = scale_row(t->s + i * LD_S, seen[i], t->scale);
    }
    float *tops = t->top + first - t->begin, *sums = t->sum + first - t->begin;
    for (int i = 0; i < PANEL; i += PL_VW) {
        pl_vf old = pl_v_load(tops + i), top = pl_v_max(old, pl_v_load(high + i));
        pl_vf factor = pl_v_exp2_flush(old - top);
        pl_v_store(tops + i, top);
        pl_v_store(sums + i, pl_v_load(sums + i) * factor);
        pl_v_store(correction + i, factor);
    }
    for (int64_t i = 0; i < rows; i++) {
        fetch_some(&t->ahead);
        sums[i] += weigh_row(t->s + i * LD_S, seen[i], padded, tops[i]);
    }
}

/* 0 in row i of P for the weights of query `query` that are dropped, of the first n keys of the block. */
PL_V_INLINE void drop_row(const task *t, int64_t i, int64_t query, int64_t n)
{
    const pl_attention_dropout *d = &t->h->dropout;
    const uint32_t block = d->block + (uint32_t)query * d->row_blocks + (uint32_t)(t->first_key / 4);
    uint16_t *p = (uint16_t *)(t->s + i * LD_S);
    for (int64_t j = 0; j < n; j += PL_V_PHILOX_ELEMS) {
        pl_vu rows[PL_V_PHILOX_ROWS];
        pl_v_philox(&d->philox, d->step, d->sample, block + (uint32_t)(j / 4), rows);
        PL_V_UNROLL for (int r = 0; r < PL_V_PHILOX_ROWS; r++)
        {
            void *at = p + j + r * PL_VW;
            __mmask16 mask = _mm512_movepi32_mask((__m512i)kept_of_bits(rows[r], d->probability));
            _mm256_storeu_si256(at, _mm256_maskz_mov_epi16(mask, _mm256_loadu_si256(at)));
        }
    }
}

PL_V_CALL void drop_weights(const task *t, int64_t first, int64_t rows, int64_t keys)
{
    for (int64_t i = 0; i < rows; i++)
        drop_row(t, i, first + i, clamp_to(keys_seen(t->h, first + i) - t->first_key, keys));
}

/* One panel, its first query being `first`, meets the block of keys in hand. */
static void visit(task *t, int64_t first)
{
    int64_t rows = smaller(t->end - first, PANEL);
    int64_t keys = clamp_to(keys_seen(t->h, first + rows - 1) - t->first_key, t->keys);
    if (keys == 0) return;
    float correction[PANEL], *o = t->o + (first - t->begin) * t->ldo;
    const word *q = t->q + (first - t->begin) * t->ldq;
    multiply_panels(t, rows, keys, t->ldq, q, t->ldq, t->k, t->k_panel, t->s, LD_S, 0);
    weigh_panel(t, first, rows, keys, correction);
    if (t->h->dropout.probability > 0) drop_weights(t, first, rows, keys);
    if (t->first_key > 0)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t d = i * t->ldo; d < (i + 1) * t->ldo; d += PL_VW)
                pl_v_store(o + d, correction[i] * pl_v_load(o + d));
    multiply_panels(t, rows, t->h->head_width, round_up(keys, NR) / STEP, t->s, LD_S, t->v, t->v_panel, o, t->ldo,
                    t->first_key > 0);
}

/* A query that saw no key has sum 0: o = 0 (nothing was written yet), lse = −inf. A NaN in the sum stays one. */
TILE_TARGET static void finish_row(const task *t, int64_t i)
{
    const pl_attention_head *h = t->h;
    const float *from = t->o + i * t->ldo, sum = t->sum[i];
    uint16_t *o = pl_real_at(h->type, h->o, (t->begin + i) * h->ldo);
    const float factor = pl_attention_kept_scale(&h->dropout) / sum;
    const __mmask16 any = sum == 0 ? 0 : (__mmask16)0xffff;
    for (int64_t d = 0; d < h->head_width; d += PL_VW) {
        __m512 value = _mm512_maskz_mul_ps(any, (__m512)pl_v_load(from + d), (__m512)pl_v_set(factor));
        _mm256_mask_storeu_epi16(o + d, words_mask(smaller(h->head_width - d, PL_VW)),
                                 (__m256i)_mm512_cvtneps_pbh(value));
    }
}

static void finish(const task *t)
{
    int64_t queries = t->end - t->begin;
    for (int64_t i = 0; i < queries; i++) finish_row(t, i);
    for (int64_t i = 0; i < queries && t->h->lse; i += PL_VW) {
        pl_vf sum = pl_v_load(t->sum + i);
        pl_vf lse = pl_v_fma(pl_v_load(t->top + i), pl_v_set(ATTENTION_LN_2), pl_v_log(sum));
        lse = pl_v_select_gt(sum, pl_v_zero(), lse, sum - INFINITY);
        pl_v_store_part(t->h->lse + t->begin + i, lse, smaller(queries - i, PL_VW));
    }
}

void pl_attention_amx(const pl_attention_head *h, int64_t begin, int64_t end, void *workspace)
{
    task t = task_of(h, begin, end, workspace);
    const int64_t width = h->head_width, last = keys_seen(h, end - 1);
    t.pack->a_rows(pl_real_at(h->type, h->q, begin * h->ldq), h->ldq, end - begin, width, t.q, t.ldq);
    for (int i = 0; i < QUERIES; i++) t.top[i] = -FLT_MAX, t.sum[i] = 0;
    pl_gemm_amx_enter();
    for (; t.first_key < last; t.first_key += BLOCK_KEYS) {
        t.keys = smaller(last - t.first_key, BLOCK_KEYS);
        t.pack->b_transposed(pl_real_at(h->type, h->k, t.first_key * h->ldk), h->ldk, width, t.keys, t.k, t.k_panel);
        t.pack->b(pl_real_at(h->type, h->v, t.first_key * h->ldv), h->ldv, t.keys, width, t.v, t.v_panel);
        for (int64_t i = begin; i < end; i += PANEL) visit(&t, i);
    }
    pl_gemm_amx_leave();
    finish(&t);
}
#endif
