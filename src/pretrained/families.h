/* The families of models, as data: what a config.json means where it says nothing (the defaults of transformers 5), and
 * what a family is whatever its files say. */
#ifndef PL_PRETRAINED_FAMILIES_H
#define PL_PRETRAINED_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/causal_lm.h"
#include "pretrained/problems.h"

typedef enum pl_bias {
    PL_BIAS_NEVER,
    PL_BIAS_OPTION, /* config.json says so; in a GGUF file it is there or not */
    PL_BIAS_ALWAYS,
} pl_bias;

/* Which blocks see a window only, where no layer_types says so. */
typedef enum pl_window_rule {
    PL_WINDOW_NEVER,
    PL_WINDOW_ALL,
    PL_WINDOW_FROM_LAYER,  /* from max_window_layers on, if use_sliding_window */
    PL_WINDOW_PATTERN,     /* all but the last of each `pattern` */
    PL_WINDOW_WITHOUT_ROPE /* those without rotary positions, if use_sliding_window */
} pl_window_rule;

typedef struct pl_lm_family {
    const char *name;       /* model_type, and the family of pl_causal_lm */
    const char *class_name; /* in transformers */
    const char *arch;       /* general.architecture; NULL: such models are llama there */
    /* defaults of config.json; key heads 0: heads; head width 0: width / heads; inner 0: 4·width */
    int64_t vocab, width, inner, layers, heads, key_heads, head_width, context, window;
    double theta, eps;
    bool is_tied;
    /* of all its models */
    pl_causal_lm_form form;
    bool adds_one, scales_embedding;
    bool is_fused;         /* in folders */
    bool is_fused_in_gguf; /* or not: both are met */
    bool is_permuted;      /* rows of Wq, Wk in GGUF: a pair's two rows are neighbours */
    pl_bias query_bias, output_bias, inner_bias;
    const char *activation_key, *activation;
    double attention_cap, output_cap; /* 0: none, whatever the files say; < 0: none, if they do not say so */
    pl_window_rule window_rule;
    int64_t pattern;         /* of PL_WINDOW_PATTERN */
    int64_t unscaled_layers; /* GGUF: with so many blocks scores are scaled by width / heads, not by the head's width */
    bool has_scalar;         /* query_pre_attn_scalar, else the head's width */
    bool has_local_rope;     /* blocks with a window have rotary positions of their own */
    bool may_lack_rope;      /* every 4th block, or as no_rope_layers says */
    bool has_plain_rope;     /* no scaling is supported */
} pl_lm_family;

const pl_lm_family *pl_lm_family_of(const char *model_type); /* NULL: not one of them */
const pl_lm_family *pl_lm_family_of_arch(const char *arch);
const char *pl_lm_family_names(char *text, size_t room); /* "llama, mistral, …"; returns text */

enum { /* above these a file is damaged, and no size overflows */
       PL_LM_WIDTH_MAX = 1 << 24,
       PL_LM_VOCAB_MAX = 1 << 28,
       PL_LM_CONTEXT_MAX = 1 << 30,
       PL_LM_HEADS_MAX = 1 << 16
};

/* What the family alone says; then, when the file has said the rest, what follows from it. */
void pl_lm_begin(pl_causal_lm *, const pl_lm_family *);
void pl_lm_finish(pl_causal_lm *, const pl_lm_family *);
bool pl_lm_set_activation(pl_causal_lm *, const pl_lm_family *, const char *name); /* false: not a known one */
void pl_lm_check(const pl_causal_lm *, pl_problems *);

#endif
