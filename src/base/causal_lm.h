/* What a pretrained language model is: a decoder of transformer blocks, in one parametrised form that the families of
 * people's models are cases of. Read from the headers of its files (pretrained/), built by models/decoder.c.
 *
 *   x = embedding_scale·E[token] (+ P[position] where positions are a table)
 *   block: a = N1(x), or x; q, k, v = Wq·a, Wk·a, Wv·a (+ biases); q, k = Nq(q), Nk(k) where has_qk_norm; then rotary
 *          positions; y = Wo·attention; y = P1(y) where has_post_norms; x += y;
 *          m = N2(x), or x; y = Wd(act(Wg·m)·(Wu·m)) where is_gated, else Wd·act(Wu·m); y = P2(y); x += y
 *   logits = cap(Wh·Nf(x)), Wh = E where is_tied; cap(z) = c·tanh(z/c) where c is not 0
 *
 * Attention: head j reads key head floor(j·key_heads/heads); scores are capped before the mask; position t sees u ≤ t,
 * and with a window w only t − u < w. */
#ifndef PL_BASE_CAUSAL_LM_H
#define PL_BASE_CAUSAL_LM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/activation.h"

enum {
    PL_CAUSAL_LM_FAMILY_BYTES = 24,
    PL_CAUSAL_LM_BLOCKS_MAX = 256,
    PL_ROPE_PAIRS_MAX = 256, /* half the width of a head */
    PL_CAUSAL_LM_ROPES = 2,
};

/* In the extents of data: the tokens that a text can have, its prompt among them. */
#define PL_FACT_CONTEXT "context"
/* Likewise: the most that a pretrained model was made for. */
#define PL_FACT_CONTEXT_MOST "context_most"
/* Sequences that the caches have places for; without the fact: one. */
#define PL_FACT_SEQUENCES "sequences"

typedef enum pl_rope_kind {
    PL_ROPE_DEFAULT,
    PL_ROPE_LINEAR,
    PL_ROPE_LLAMA3,
    PL_ROPE_YARN,
} pl_rope_kind;

/* The weight that holds a rotation's divisors, before its number among `rope`. */
#define PL_ROPE_DIVISORS "rope_freqs."

/* Rotary positions: pair j of a head (halves: j and j + half) turns by position·f_j, cosine and sine times m. */
typedef struct pl_rope_scaling {
    pl_rope_kind kind;
    double theta, factor;
    double original_context;          /* llama3, yarn */
    double low_factor, high_factor;   /* llama3 */
    double beta_fast, beta_slow;      /* yarn */
    double attention_factor;          /* yarn's m; 0: by its rule */
    double mscale, mscale_all;        /* yarn; 0: absent */
    bool keeps_fractions;             /* yarn with truncate false */
    int64_t divisors;                 /* so many below; 0: none */
    float divisor[PL_ROPE_PAIRS_MAX]; /* f_j is divided by these (GGUF's rope_freqs) */
} pl_rope_scaling;

typedef struct pl_causal_lm_block {
    bool has_rope;
    uint8_t rope;   /* which of ropes */
    int64_t window; /* tokens that a token sees, itself among them; 0: all before it */
} pl_causal_lm_block;

/* What a family is, whatever its models say. */
typedef struct pl_causal_lm_form {
    bool is_layer_norm;     /* norms are layer norms, with biases; else root mean square norms (a gain of 1 + w is added
                               up when weights are read) */
    bool has_post_norms;    /* P1, P2 */
    bool lacks_pre_norms;   /* N1, N2: there are only those after a sublayer */
    bool has_qk_norm;       /* of each head, one gain for all of them */
    bool has_joint_qk_norm; /* ... of all heads together */
    bool is_gated;
    bool has_position_table; /* [context, width] */
} pl_causal_lm_form;

typedef struct pl_causal_lm {
    char family[PL_CAUSAL_LM_FAMILY_BYTES]; /* "llama", "qwen2", … */
    int64_t width, layers, heads, key_heads, head_width, inner, vocab;
    int64_t context; /* tokens that it was made for */
    pl_causal_lm_form form;
    double norm_eps;
    bool has_query_bias; /* of q, k, v */
    bool has_output_bias, has_inner_bias;
    bool is_tied;
    pl_activation activation;
    double embedding_scale, attention_scale; /* 1: none; multiplies q·k */
    double attention_cap, output_cap;        /* 0: none */
    pl_rope_scaling rope[PL_CAUSAL_LM_ROPES];
    pl_causal_lm_block block[PL_CAUSAL_LM_BLOCKS_MAX];
} pl_causal_lm;

/* Pair j's frequency f_j, and the factor m of cosine and sine. */
double pl_rope_frequency(const pl_rope_scaling *, int64_t half, int64_t pair);
double pl_rope_magnitude(const pl_rope_scaling *);

#endif
