/* From a config to the forward graph of a command. One graph holds four programs:
 *
 *   init      every weight gets its first value
 *   train     loss of the step: region "micro" is repeated once per micro-batch and adds to the output "loss"
 *   evaluate  the same sum of losses without dropout
 *   generate  logits of the next token; with a key-value cache where the model has attention
 *
 * Inputs that whoever runs the programs writes (persistent, role input):
 *   input.lr f32, input.step i64 (from 1), input.token_scale f32 (1 / counted tokens of the step),
 *   input.first_sample i64 (global number of the micro-batch's first sequence), input.position i64 (generate).
 * Tokens: "train.tokens", "train.targets" i32 [B,T] (written by the load node), likewise "evaluate.…";
 *   "generate.tokens" i32 [1,n]: n = 1 with a cache (input.position says the token's place); else the last n tokens,
 *   −1 where there is none yet. Outputs: "train.loss", "evaluate.loss" f64 [1] (sums), "generate.logits"
 *   f32 [1,1,V]. */
#ifndef PL_MODELS_MODEL_H
#define PL_MODELS_MODEL_H

#include "config/config.h"
#include "ir/index.h"
#include "ir/op.h"

/* vocab: the tokenizer's, checked against model.vocab_size. The graph is the caller's to destroy. */
pl_status pl_model_build(const pl_config *, int64_t vocab, pl_graph **, pl_error *);

/* weights.c: bytes of all weights of that model, without building it: a deep one costs no more than a flat one. */
pl_status pl_model_count_weights(const pl_config *, int64_t vocab, uint64_t *bytes, pl_error *);

/* ---- within this folder ---- */

typedef struct pl_model {
    const pl_config *config;
    int64_t vocab;
    pl_builder b;    /* of the program being built */
    pl_builder init; /* of the init program: weights announce their first value there */
    pl_names weights;
    bool training;
    bool generating;
    pl_id lr, step, token_scale, first_sample, position;
} pl_model;

typedef enum pl_model_init { PL_INIT_NORMAL, PL_INIT_PROJECTION, PL_INIT_ZERO, PL_INIT_ONE } pl_model_init;

/* A weight by name: made, with its init node, the first time it is asked for; the same one afterwards. PROJECTION is a
 * normal whose deviation shrinks with depth (1/√(2·layers)): for the matrices that write into the residual stream. */
pl_id pl_model_weight(pl_model *, pl_model_init, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
pl_id pl_model_linear(pl_model *, pl_id x, pl_id weight, pl_id bias, pl_id residual);
pl_id pl_model_activation(pl_model *, pl_id x);
/* Norm over the last dimension, of the kind the config says; weights NAME.weight (and NAME.bias). */
pl_id pl_model_norm(pl_model *, pl_id x, const char *name);
/* residual + dropout(x); without dropout (or outside training) residual + x, by an add node. */
pl_id pl_model_dropout(pl_model *, pl_id x, pl_id residual);
bool pl_model_drops(const pl_model *);

/* tokens i32 [B,T] → hidden f32 [B,T,width] after the last norm, and the matrix [V,width] of the output. */
pl_id pl_gpt_hidden(pl_model *, pl_id tokens, pl_id *output_weight);
pl_id pl_mlp_hidden(pl_model *, pl_id tokens, pl_id *output_weight);

#endif
