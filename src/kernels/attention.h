/* What an attention kernel needs to know about one (batch, head): the backend has resolved batch, head and position.
 * Element (t, d) of a matrix is p[t·ld + d]; T queries tq, keys tk, dh = head_width. causal: query i sees keys
 * 0 … offset + i, with a window only the last `window` of these; a query that sees none gives o = 0 and lse = −inf.
 * ring: k and v are a cache of so many places, and key j is at place (turn + j) mod ring; 0: at j. What a block of
 * queries sees is all there.
 * cap: scores s = scale·q·k become cap·tanh(s/cap). `type` is that of q and o, key_type that of k and v, unless they
 * are stored in blocks (key_encoding): then a row of k is ldk numbers of whole blocks, and so is a head's part of it;
 * lse is f32.
 * pairs: the matrices are bf16 and the processor multiplies pairs of them (AVX512-BF16). Then P, and going backward dS,
 * are rounded to bf16 before they are multiplied. Forward there are tiles of pairs (AMX) as well. */
#ifndef PL_KERNELS_ATTENTION_H
#define PL_KERNELS_ATTENTION_H

#include <stdint.h>

#include "base/encoding.h"
#include "base/narrow.h"
#include "base/philox.h"

typedef enum pl_attention_products {
    PL_ATTENTION_SINGLES,
    PL_ATTENTION_PAIRS,
    PL_ATTENTION_TILES
} pl_attention_products;

/* Rows that will be read or written soon and come from far, ld_bytes apart: asked for a few at a time between the
 * tiles, since who asks for all at once waits for them. */
typedef struct pl_attention_ahead {
    const char *at;
    int64_t ld_bytes, rows, row_bytes;
} pl_attention_ahead;

enum { PL_ATTENTION_AHEAD = 4 };

/* Dropout on P: query i keeps its weight of key j when uniform(bits[j mod 4] of a Philox block) ≥ probability, with the
 * counter (step, sample, block + i·row_blocks + j/4): the mask of the operator dropout (dropout.h) on P as
 * [samples, heads, tq, 4·row_blocks]. What is kept is scaled by 1/(1 − probability); lse does not depend on it. */
typedef struct pl_attention_dropout {
    pl_philox philox;
    uint32_t step;
    uint64_t sample;            /* global sample index */
    uint32_t block, row_blocks; /* of the head's first query; of a query, ⌈tk/4⌉ */
    float probability;          /* [0, 1); 0: nothing is dropped, and the rest is not read */
} pl_attention_dropout;

static inline float pl_attention_kept_scale(const pl_attention_dropout *d) { return 1 / (1 - d->probability); }

typedef struct pl_attention_head {
    int64_t tq, tk, offset, head_width;
    int causal;
    int64_t window;   /* 0: none; else causal */
    float scale, cap; /* cap 0: none */
    pl_real type, key_type;
    pl_encoding key_encoding; /* PL_ENCODING_F32: as key_type says */
    int64_t ring, turn;
    pl_attention_products products;
    int64_t group;         /* attention_few: so many heads, one after the other in q, o and lse, read the same keys */
    const void *q, *k, *v; /* [tq,dh], [tk,dh], [tk,dh] */
    int64_t ldq, ldk, ldv, ldo;
    void *o;                                      /* [tq,dh] */
    float *lse;                                   /* [tq] or NULL */
    pl_attention_ahead ahead[PL_ATTENTION_AHEAD]; /* in this order; rows 0: none */
    pl_attention_dropout dropout;
} pl_attention_head;

/* Where `numbers` numbers of k or v further on begin. */
static inline const void *pl_attention_key_at(pl_real type, pl_encoding encoding, const void *x, int64_t numbers)
{
    if (encoding == PL_ENCODING_F32) return pl_real_at(type, x, numbers);
    return (const char *)x + pl_encoding_row_bytes(encoding, numbers);
}

static inline int64_t pl_attention_place(const pl_attention_head *h, int64_t key)
{
    return h->ring ? (h->turn + key) % h->ring : key;
}

typedef struct pl_attention_bwd_head {
    int64_t tq, tk, head_width;
    int causal;
    float scale;
    pl_real type;
    int pairs;
    const void *q, *k, *v, *o, *d_o;
    const float *lse;
    int64_t ldq, ldk, ldv, ldo, lddo;
    void *dq, *dk, *dv;
    int64_t lddq, lddk, lddv;
    pl_attention_dropout dropout; /* as it was forward */
} pl_attention_bwd_head;

/* The share of a backward task: a whole head with both gradients; or a stretch of queries, all keys, dq alone; or all
 * queries, a stretch of keys, dk and dv alone. The sums, and so the bits, are the same. */
enum { PL_ATTENTION_PART_QUERIES = 96, PL_ATTENTION_PART_KEYS = 64 }; /* begins are multiples of these */

typedef struct pl_attention_part {
    int64_t query_begin, query_end, key_begin, key_end;
    int want_dq, want_dkv;
} pl_attention_part;

#endif
