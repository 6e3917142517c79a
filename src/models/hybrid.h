/* The pieces of arch hybrid (hybrid.c). Each enters a scope of its own; what a piece needs of the others is a value. */
#ifndef PL_MODELS_HYBRID_H
#define PL_MODELS_HYBRID_H

#include "models/model.h"

typedef struct pl_hybrid {
    pl_model *m;
    int64_t side, tokens; /* of a page: pixels either way, and patches */
    int64_t width, capsules, words;
    pl_id labels;
    pl_id features, missing; /* PL_NONE: what the frozen tower makes is not kept */
    pl_id counted;           /* f32 [B,1]: 0 for what is no page */
} pl_hybrid;

typedef struct pl_hybrid_capsules {
    pl_id sketches, child_means, checksums; /* [B,K,D], [B,K,D], [B,K,R] */
} pl_hybrid_capsules;

/* A layer of the adapter or the planner. */
typedef struct pl_hybrid_layer {
    int64_t heads, sequences; /* what stands in a sample one behind the other; attention stays within each */
    double eps, dropout;
} pl_hybrid_layer;

/* ---- hybrid_layers.c ---- */
/* NAME.weight [out, width of x] and NAME.bias, as PyTorch begins them. */
pl_id pl_hybrid_linear(const pl_hybrid *, pl_id x, int64_t out, const char *name);
/* linear(gelu(linear(x))) of NAME.0 and NAME.2 */
pl_id pl_hybrid_two_linears(const pl_hybrid *, pl_id x, int64_t inner, int64_t out, const char *name);
pl_id pl_hybrid_gelu(const pl_hybrid *, pl_id x);
/* NAME.weight, NAME.bias */
pl_id pl_hybrid_norm(const pl_hybrid *, pl_id x, double eps, bool frozen, const char *name);
/* Attention between three values, in each of the sequences of a sample. */
pl_id pl_hybrid_attend(const pl_hybrid *, int64_t heads, const pl_id qkv[3], double dropout, int64_t sequences,
                       bool taped);
/* PyTorch's TransformerEncoderLayer with the norm first, under its names. */
pl_id pl_hybrid_encoder_layer(const pl_hybrid *, const pl_hybrid_layer *, pl_id x, const char *name);

/* ---- hybrid_towers.c: pages u8 [B,H,W] → tokens [B,N,D], through both towers, fusion and adapter ---- */
pl_id pl_hybrid_see(const pl_hybrid *, pl_id pages);

/* ---- hybrid_recursion.c ---- */
void pl_hybrid_encode(const pl_hybrid *, pl_id tokens, pl_hybrid_capsules *);
pl_id pl_hybrid_reason(const pl_hybrid *, pl_id capsules); /* z_H [B,K,D] */

/* ---- hybrid_planner.c ---- */
pl_id pl_hybrid_plan(const pl_hybrid *, pl_id high); /* as `high` */
pl_id pl_hybrid_halt(const pl_hybrid *, pl_id high); /* [B,1] */

#endif
