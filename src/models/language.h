/* Language models: what the archs of the system text have in common. One graph holds four programs:
 *
 *   init      every weight gets its first value
 *   train     loss of the step: region "micro" is repeated once per micro-batch and adds to the output "train.loss"
 *   evaluate  the same sum of losses without dropout
 *   generate  logits of the next token; with a key-value cache where the model has attention
 *
 * Tokens: "train.tokens", "train.targets" i32 [B,T] (written by the load node), likewise "evaluate.…";
 *   "generate.tokens" i32 [S,n]: n = 1 with a cache (input.position says the token's place, or with S > 1 sequences
 *   "generate.positions" i64 [S]); else the last n tokens, −1 where there is none yet. Outputs: "train.loss",
 *   "evaluate.loss" f64 [1] (sums), "generate.logits" f32 [S,1,V].
 * It takes from the data the extent "vocab": the tokens that the tokenizer knows. */
#ifndef PL_MODELS_LANGUAGE_H
#define PL_MODELS_LANGUAGE_H

#include "models/model.h"

typedef struct pl_language pl_language;
struct pl_language {
    pl_model *m;
    int64_t vocab;
    int64_t sequence;  /* tokens of a sample */
    double cap;        /* logits become cap·tanh(logit/cap); 0: none */
    bool only_used;    /* there is no program "train" */
    int64_t read;      /* tokens that "generate" takes at once; 1: the model has a cache */
    int64_t sequences; /* that "generate" goes on with; 0: one. Several need a cache */
    bool generating;   /* the program that is built */
    /* tokens i32 [B,T] → hidden f32 [B,T,width] after the last norm, and the matrix [V,width] of the output. */
    pl_id (*hidden)(const pl_language *, pl_id tokens, pl_id *output_weight);
};

pl_status pl_language_build(pl_language *);

#endif
