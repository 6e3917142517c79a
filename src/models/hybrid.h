/* The pieces of arch hybrid (hybrid.c). Each enters a scope of its own; what a piece needs of the others is a value. */
#ifndef PL_MODELS_HYBRID_H
#define PL_MODELS_HYBRID_H

#include "models/model.h"

/* What a config's training is of. */
typedef enum pl_hybrid_aim {
    PL_HYBRID_READS,    /* the whole */
    PL_HYBRID_ADAPTS,   /* the adapter alone: n2n_pretrain.only */
    PL_HYBRID_DENOISES, /* the denoiser alone: denoiser.only */
    PL_HYBRID_CHOOSES,  /* the policy alone: page_policy.only */
} pl_hybrid_aim;
pl_hybrid_aim pl_hybrid_aim_of(const pl_config *);
/* "page_policy.only", or whichever key it is that makes it another training; NULL: it reads. */
const char *pl_hybrid_aim_key(const pl_config *);
/* Does a trained policy say how each page is drawn, moved and denoised? */
bool pl_hybrid_has_policy(const pl_config *);
/* Is noise added to its pages? */
bool pl_hybrid_has_noise(const pl_config *);

/* What an evaluation tells of each sample next to its words: f32 [B,…], PL_NONE where the model has no such part. */
typedef struct pl_hybrid_told {
    pl_id halt;                        /* [B,1] the logit of "reasoning may end" */
    pl_id fusion_gates, adapter_gates; /* [B,N,1] */
    pl_id planner_gate;                /* [B,1] */
    pl_id scores;                      /* [B,P,1] of the planner's ways */
} pl_hybrid_told;

/* Deep supervision: what the batch carries from step to step. */
typedef struct pl_hybrid_carried {
    pl_id done, pages, labels, high, low; /* a row for each place of the batch */
} pl_hybrid_carried;

/* The codebook of the output head; PL_NONE: there is none. */
typedef struct pl_hybrid_codes {
    pl_id book, sums;
} pl_hybrid_codes;

typedef struct pl_hybrid {
    pl_model *m;
    pl_net *n;            /* its network */
    bool coloured;        /* pages have three colours: they are made noisy, or come through the denoiser */
    int64_t side, tokens; /* of a page: pixels either way, and patches */
    int64_t width, capsules, words;
    pl_id labels, feature;      /* PL_NONE: the data bring no such port */
    pl_id features, denoised;   /* PL_NONE: what the frozen tower makes, or the denoiser, is not kept */
    pl_id missing;              /* whether the one that is kept is not known; PL_NONE: neither is kept */
    pl_id noise, numbers;       /* rows of base/rollout.h, of each page; PL_NONE: the data bring none */
    pl_id counted;              /* f32 [B,1]: 0 for what is no page */
    pl_hybrid_told *told;       /* NULL while training */
    pl_hybrid_carried *carried; /* NULL: each step has pages of its own */
    pl_hybrid_codes codes;
    pl_id fusion_bias; /* [1] added to the logits of the fusion's gates; PL_NONE: nothing is */
} pl_hybrid;

typedef struct pl_hybrid_capsules {
    bool is_asked; /* for children and checksums, outside of training, too */
    /* [B,K,D], [B,K,m,D], [B,K,D] of training alone, [B,K,R] */
    pl_id sketches, children, child_means, checksums;
} pl_hybrid_capsules;

/* A layer of the adapter or the planner. */
typedef struct pl_hybrid_layer {
    int64_t heads, sequences; /* in a sample, one after the other; attention stays within each */
    double eps, dropout;
} pl_hybrid_layer;

/* Logits after those of the words: EXPAND, STOP, MERGE, PAD. */
enum { PL_HYBRID_CONTROLS = 4 };

/* Columns of what count_right counts: how many words, how many of them right, and whether all. */
typedef enum pl_hybrid_right { PL_RIGHT_WORDS, PL_RIGHT_RIGHT, PL_RIGHT_ALL, PL_RIGHT_COUNTS } pl_hybrid_right;

/* ---- hybrid_loss.c ---- */
pl_id pl_hybrid_fill(const pl_hybrid *, pl_dtype, double value, pl_shape);
pl_id pl_hybrid_number(const pl_hybrid *, double value);
/* The mean over the rows of the whole batch, times what the term counts. */
pl_id pl_hybrid_scale(const pl_hybrid *, double weight, int64_t rows);
/* A term of the loss: the sum so far, and what the samples count. Pages without a word count nothing, nor do those
 * that have no labels: where micro-batches do not divide the batch there are such rows. */
pl_loss_term pl_hybrid_term(const pl_hybrid *, pl_id scale, pl_id sum);
pl_id pl_hybrid_column(const pl_hybrid *, pl_id counts, pl_hybrid_right);
/* How many words each page has, where nothing is read: what is no page has none. */
pl_id pl_hybrid_count_words(const pl_hybrid *);
/* [B,1]: the sum of squares of a sample's a - b, f32, numbers of such an image; of several images a sample of each. */
pl_id pl_hybrid_apart(const pl_hybrid *, pl_id a, pl_id b, pl_shape image);

/* ---- hybrid_layers.c ---- */
/* NAME.weight [out, width of x] and NAME.bias, as PyTorch begins them. */
pl_id pl_hybrid_linear(const pl_hybrid *, pl_id x, int64_t out, const char *name);
/* linear(gelu(linear(x))) of NAME.0 and NAME.2 */
pl_id pl_hybrid_two_linears(const pl_hybrid *, pl_id x, int64_t inner, int64_t out, const char *name);
/* σ(logit)·a + (1 − σ(logit))·b; the gates go to *gates, where that is not NULL. */
pl_id pl_hybrid_blend(const pl_hybrid *, pl_id a, pl_id b, pl_id logit, pl_id *gates);
pl_id pl_hybrid_minus(const pl_hybrid *, pl_id a, pl_id b);
/* In f32; where activations are narrow what is f32 comes out narrow (rewrite/precision.c), and the other way about. */
pl_id pl_hybrid_cast(const pl_hybrid *, pl_id x);
/* So many of PyTorch's TransformerEncoderLayer with the norm first, under its names: NAMES.0.norm1 … */
pl_id pl_hybrid_encoder_layers(const pl_hybrid *, const pl_hybrid_layer *, int64_t count, pl_id x, const char *names);

/* ---- hybrid_towers.c ---- */
bool pl_hybrid_has_towers(const pl_config *);
/* Where a program begins: what is added to the fusion's gates at this step. */
void pl_hybrid_begin_fusion(pl_hybrid *);
/* pages u8 [B,H,W] → tokens [B,N,D], through both towers, fusion and adapter; through the frozen tower alone; and
 * tokens through the adapter. */
pl_id pl_hybrid_see(const pl_hybrid *, pl_id pages);
pl_id pl_hybrid_see_frozen(const pl_hybrid *, pl_id pages);
pl_id pl_hybrid_adapt(const pl_hybrid *, pl_id tokens);

/* What nodes from number `first` on have made runs only where it is missing, then takes the place of the port `kept`
 * of the data, and is given back to them: that port. What was made, where nothing is kept (PL_NONE). */
pl_id pl_hybrid_make_once(const pl_hybrid *, size_t first, pl_id made, pl_id kept);
size_t pl_hybrid_node_count(const pl_hybrid *);

/* ---- hybrid_n2n.c ---- */
/* The training of the adapter alone: its loss, and outside training what is told of each page. */
void pl_hybrid_learn_from_noise(pl_hybrid *, pl_id pages, pl_id *loss);

/* ---- hybrid_denoiser.c ---- */
/* Does a denoiser stand in front of the towers? */
bool pl_hybrid_is_denoised(const pl_config *);
/* Is what it makes of pages kept? */
bool pl_hybrid_keeps_pages(const pl_config *);
/* The key by which what is frozen is stored in 16 bits, or may be; NULL: it is f32. */
const char *pl_hybrid_narrows(const pl_config *);
/* Are pages other than the data bring them? */
bool pl_hybrid_makes_pages(const pl_config *);
/* As the towers see them: with noise, and through the denoiser, where the config says so, u8 [B,H,W,3]. */
pl_id pl_hybrid_make_pages(const pl_hybrid *, pl_id pages);
/* Likewise of the denoiser alone. */
void pl_hybrid_learn_to_denoise(pl_hybrid *, pl_id pages, pl_id *loss);
/* For `copies` pages of each sample: their shape in colours [B·copies,H,W,3]; they themselves, numbers from 0 to 1,
 * from u8 [B·copies,H,W]; with the noise that the data say of each (base/rollout.h); and through the U-Net. */
pl_shape pl_hybrid_image(const pl_hybrid *, int64_t copies);
pl_id pl_hybrid_colour(const pl_hybrid *, pl_id pages, int64_t copies);
pl_id pl_hybrid_noisy(const pl_hybrid *, pl_id x, const char *which);
pl_id pl_hybrid_denoise(const pl_hybrid *, pl_id x);

/* ---- hybrid_policy.c ---- */
/* The training of the policy alone: pages u8 [B, PL_POLICY_SIZES, H, W], feature f32 [B, PL_POLICY_FEATURES + 1]. */
void pl_hybrid_learn_policy(pl_hybrid *, pl_id pages, pl_id *loss);

/* Each page as a trained policy says that it is drawn best, u8 [B,H,W]; in *strength [B,1] the logit of how much the
 * denoiser counts. */
pl_id pl_hybrid_draw_best(const pl_hybrid *, pl_id pages, pl_id *strength);

/* ---- hybrid_encode.c ---- */
#define PL_HYBRID_ENCODES "encode" /* the extent that asks for that program */
/* Can the model be run on pages of others? Not what is trained to make them, nor with noise on them. */
bool pl_hybrid_can_be_used(const pl_config *);
pl_status pl_hybrid_check_used(const pl_config *, pl_error *); /* PL_E_CONFIG: why not */
/* The program "encode": as models/capsules.c has it, on the towers. */
pl_status pl_hybrid_build_encode(pl_hybrid *);
/* hybrid.c: none of what a training's data bring is there. */
void pl_hybrid_forget_ports(pl_hybrid *);

/* ---- hybrid_recursion.c ---- */
void pl_hybrid_encode(const pl_hybrid *, pl_id tokens, pl_hybrid_capsules *);
pl_id pl_hybrid_reason(const pl_hybrid *, pl_id capsules); /* z_H [B,K,D] */

/* ---- hybrid_carry.c ---- */
bool pl_hybrid_carries(const pl_config *);
/* Makes the state of a program that trains. */
void pl_hybrid_begin_carry(const pl_hybrid *, pl_hybrid_carried *);
/* The rows of the places that are taken, else the fresh ones; ids are below a number. */
pl_id pl_hybrid_take(const pl_hybrid *, pl_id state, pl_id fresh, int64_t below);
/* Likewise of a state of the reasoner, which begins as a vector for all capsules. */
pl_id pl_hybrid_take_state(const pl_hybrid *, pl_id state, pl_id vector);
void pl_hybrid_keep(const pl_hybrid *, pl_id *state, pl_id rows);
/* Which samples are finished, by the logit that says that all are right. */
void pl_hybrid_end_carry(const pl_hybrid *, pl_id halt);

/* ---- hybrid_codes.c ---- */
/* Where a program begins, before its micro-batches: the codes are what the steps so far have made them. */
void pl_hybrid_begin_codes(pl_hybrid *);
typedef struct pl_hybrid_code {
    pl_id index, code; /* of each capsule the nearest code */
} pl_hybrid_code;
/* What words are read from. */
pl_id pl_hybrid_find_code(const pl_hybrid *, pl_id planned, pl_hybrid_code *);
/* Adds to the sums of the codes, and to the loss with this scale. */
void pl_hybrid_learn_code(pl_hybrid *, pl_id planned, const pl_hybrid_code *, pl_id scale, pl_id *loss);

/* ---- hybrid_told.c ---- */
/* Variance and mean of a page's gates [B,N,1]: [B,2]. PL_NONE: PL_TOLD_ABSENT. */
pl_id pl_hybrid_spread(const pl_hybrid *, pl_id gates);
/* [B, PL_TOLD_COLUMNS], columns of base/told.h; `right` as count_right gives it. */
pl_id pl_hybrid_tell(const pl_hybrid *, pl_id right);

/* ---- hybrid_planner.c ---- */
pl_id pl_hybrid_plan(const pl_hybrid *, pl_id high); /* as `high` */
pl_id pl_hybrid_halt(const pl_hybrid *, pl_id high); /* [B,1] */

#endif
