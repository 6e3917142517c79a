/* What archs are made of. A layer adds its nodes to the program that is being built, and makes its weights the first
 * time that it is built: NAME.weight and NAME.bias, where it does not say otherwise. After a failure layers do nothing
 * and give PL_NONE. */
#ifndef PL_LAYERS_LAYERS_H
#define PL_LAYERS_LAYERS_H

#include "base/causal_lm.h"
#include "base/convolution.h"
#include "base/encoding.h"
#include "layers/net.h"

/* ---- shapes ---- */

/* The same numbers in the same order, in another shape; x must be whole. */
pl_id pl_net_view(pl_net *, pl_id x, pl_shape);
/* A weight [out, …] as the matrix [out, rest]; a weight with more axes than two is not trained through it. */
pl_id pl_net_as_matrix(pl_net *, pl_id weight);
/* Columns of [B,T,width], in place; and a copy of columns of [B, …, width]. */
pl_id pl_net_columns(pl_net *, pl_id x, int64_t first, int64_t count);
pl_id pl_net_slice(pl_net *, pl_id x, int64_t first, int64_t count);
/* Along the last axis: a, then b. */
pl_id pl_net_join(pl_net *, pl_id a, pl_id b);
/* Also of f32 to f32: it marks where the precision pass may narrow (rewrite/precision.c). */
pl_id pl_net_cast(pl_net *, pl_id x, pl_dtype, const char *fmt, ...) PL_PRINTF(4, 5);
pl_id pl_net_fill(pl_net *, pl_dtype, double value, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);

/* ---- one number at a time ---- */

pl_id pl_net_add(pl_net *, pl_id a, pl_id b);
pl_id pl_net_activate(pl_net *, pl_activation, pl_id x);
pl_id pl_net_scale(pl_net *, pl_id x, double factor);
/* cap·tanh(x/cap); cap 0: x */
pl_id pl_net_cap(pl_net *, pl_id x, double cap);
/* x [B,T,width] + positions [T,width], or [width] for all alike. */
pl_id pl_net_add_positions(pl_net *, pl_id x, pl_id positions);
/* dropout(x) while training with probability above 0, else x; plus the residual, if there is one. */
pl_id pl_net_dropout(pl_net *, double probability, pl_id x, pl_id residual);
bool pl_net_drops(const pl_net *, double probability);

/* ---- linear layers: y = x·Wᵀ + bias [+ residual] ---- */

typedef struct pl_affine { /* of a convolution, too */
    pl_id weight, bias;    /* bias PL_NONE: none */
} pl_affine;

typedef struct pl_affine_init {
    pl_init weight, bias; /* bias absent: none */
    pl_dtype type;        /* of the weight; a bias is f32 */
} pl_affine_init;

/* As PyTorch begins them: both uniform within 1/√fan_in. */
pl_affine_init pl_affine_torch(pl_dtype, int64_t fan_in);
/* The weight has this shape, the bias an element for each of its first axis. */
pl_affine pl_net_affine(pl_net *, const pl_affine_init *, pl_shape weight, const char *name);
/* x as a product with that weight takes it: rounded where the net rounds (pl_net.flow) and the weight is in blocks. */
pl_id pl_net_flow(pl_net *, pl_id x, pl_id weight);
pl_id pl_net_linear(pl_net *, pl_id x, pl_affine, pl_id residual);
/* The same of the signs of W (layers_binary.c). */
pl_id pl_net_binary_linear(pl_net *, pl_id x, pl_affine, pl_id residual);
/* With weights as PyTorch begins them; the weight may have more axes than the matrix that it is (pl_net_as_matrix). */
pl_id pl_net_torch_linear(pl_net *, pl_id x, pl_dtype, pl_shape weight, const char *name);
/* NAME.2 of act(NAME.0 of x), likewise. */
pl_id pl_net_two_linears(pl_net *, pl_id x, pl_dtype, int64_t inner, pl_activation, int64_t out, const char *name);

/* ---- norms of the last axis ---- */

typedef struct pl_norm {
    bool is_rms; /* a root mean square norm, which has no bias; else layer norm */
    double eps;
    bool is_detached; /* no gradient comes back to it */
} pl_norm;

/* name NULL: an RMS norm without a gain. */
pl_id pl_net_norm(pl_net *, pl_id x, const pl_norm *, const char *name);

/* ---- transformer blocks: layers_transformer.c ---- */

/* A matrix of a block, by its names within the block. */
typedef struct pl_projection {
    const char *weight, *bias;
    pl_init weight_init, bias_init; /* bias absent: none */
} pl_projection;
#define PL_PROJECTION(name, weight_init, bias_init)                                                                    \
    {                                                                                                                  \
        name ".weight", name ".bias", weight_init, bias_init                                                           \
    }

/* Cosines and sines [positions, head_width/2] by which queries and keys are turned, the first row at `position`
 * (i64 [1]; PL_NONE: at 0). Made once, for all blocks of a program that turn alike. Where the scaling has divisors,
 * they are a frozen weight of that name, f32 [head_width/2]. */
typedef struct pl_rotation {
    pl_id cosine, sine;
} pl_rotation;
pl_rotation pl_net_rotation(pl_net *, const pl_rope_scaling *, pl_id position, int64_t positions, int64_t head_width,
                            const char *divisors);

/* What may differ from block to block. */
typedef struct pl_block_attention {
    int64_t window;              /* tokens that a token sees, itself among them; 0: all before it */
    const pl_rotation *rotation; /* of queries and keys; NULL: none */
} pl_block_attention;

/* x + attention(norm(x)), then x + feed_forward(norm(x)); what flows is [B,T,width]. What a block cannot be is refused
 * with a sentence. */
typedef struct pl_transformer {
    int64_t width, heads, inner;
    int64_t head_width; /* 0: width/heads */
    int64_t key_heads;  /* head h reads key head floor(h·key_heads/heads); 0: as many as heads */
    pl_dtype type;      /* of matrices */

    pl_norm norm;
    const char *norm1, *norm2; /* NULL: without a gain */
    bool is_post_norm;         /* norm(x + attention(x)), norm(x + feed_forward(x)) */
    /* Norms of what attention and the feed-forward layer add, and of each head of queries and keys before they are
     * turned, one gain for all heads; NULL: none. */
    const char *attention_norm, *feed_forward_norm, *query_norm, *key_norm;
    bool lacks_input_norms; /* what comes to each is not normed */
    bool norms_all_heads;   /* one norm over all heads of queries, and one over those of keys */

    pl_projection query, key, value; /* query alone: one matrix makes all three, rows: query, key, value */
    pl_projection output;            /* weight NULL: none, heads are added as they are */
    bool is_causal;
    double scale;      /* of q·k; 0: 1/√head_width */
    double cap;        /* scores become cap·tanh(score/cap); 0: none */
    double theta;      /* of rotary positions of query and key; 0: none */
    int64_t sequences; /* in a sample, one after the other: attention stays within each; 0: one */
    int64_t cached;    /* length of a cache of keys and values: the program reads the next tokens of a sequence, the
                          first at the input POSITION; 0: no cache. Not with theta */
    int64_t cached_sequences; /* that the cache has places for; 0: one. The program goes on with all, each at its own
                                 POSITION, or with the one that the input SEQUENCE says */
    int64_t
        cached_rows; /* tokens that a program reads at once, at most: blocks with a window hold as many places as that
                            takes, in a ring; 0: they hold all */
    pl_dtype cache_type;
    pl_encoding cache_encoding; /* of a cache that is shared and f32; a row of a head is whole blocks */
    bool shares_cache; /* with the other programs of the network, one for a prompt and one for what follows it */

    pl_projection up, down; /* is_gated: up makes the gate, then what it lets through, unless the gate has its own */
    pl_projection gate;
    bool is_gated; /* down(act(gate)·up) in place of down(act(up)) */
    pl_activation activation;

    double dropout;                        /* of what is added to x */
    double weight_dropout, hidden_dropout; /* of the weights of attention, and within the feed-forward layer */
    bool is_binary;                        /* its matrices are used by their signs */
    bool is_detached;                      /* no gradient comes back to it */
} pl_transformer;

/* Blocks first … first + count − 1, one after the other. */
typedef struct pl_stack {
    const char *scope; /* "block" makes the scopes "block.0", … */
    const char *names; /* "blocks" makes the names "blocks.0.norm1.weight", … */
    bool is_all;       /* they are the blocks that the model consists of (pl_value.block), not those of a part */
    int64_t first, count;
    const pl_block_attention *attention; /* [count]; NULL: no windows, no rotations */
} pl_stack;
pl_id pl_net_stack(pl_net *, const pl_stack *, const pl_transformer *, pl_id x);

/* ---- pictures [B,H,W,C]: layers_picture.c ---- */

typedef struct pl_patch_embedding {
    int64_t patch, channels, width, tokens;
    bool standardizes;     /* the three colours, as CLIP does */
    pl_shape weight_shape; /* [width, channels, patch, patch], which is not trained, or that matrix */
    pl_affine_init init;
    pl_init position_init;
    const char *cast;                              /* patches are f32; NULL: they stay so, else the name of a cast */
    pl_dtype type;                                 /* to this */
    const char *patches, *class_token, *positions; /* class_token NULL: none, and one position fewer */
    uint32_t position_rank;                        /* 3: [1,tokens,width], which is not trained */
} pl_patch_embedding;

/* Images u8 [B,H,W], or of three colours, to tokens [B,N,width], with a class token [B,N + 1,width]. */
pl_id pl_net_embed_patches(pl_net *, const pl_patch_embedding *, pl_id images);

/* Padded by zeros: stride 1 leaves a grid as large as it is, 2 halves an even one. algorithm: a
 * pl_convolution_algorithm where the shape allows it. moments: NULL, or where the sums of a group norm go. */
enum { PL_CONVOLUTION_BY_RULE = -1 };
pl_id pl_net_convolve(pl_net *, pl_id x, pl_affine, int64_t stride, int64_t algorithm, pl_id *moments);

typedef struct pl_batch_norm {
    pl_id gamma, beta;
    pl_id mean, variance; /* the running ones, as the nodes so far have left them */
} pl_batch_norm;

/* NAME.weight, .bias, .running_mean and .running_var. */
pl_batch_norm pl_net_make_batch_norm(pl_net *, int64_t channels, const char *name);
/* act(norm(x)): by the statistics of the batch where it learns, and the running ones move toward them; else by the
 * running ones. */
pl_id pl_net_batch_norm(pl_net *, pl_id x, pl_batch_norm *, pl_activation, bool learns);
/* pool(film(act(norm(convolution of x)))), stride 1, computed with the pool first: norm, activation and film are
 * monotonic in each channel. film [B,2·channels]: scales, then shifts; PL_NONE: none. It learns while training. */
pl_id pl_net_convolve_and_pool(pl_net *, pl_id x, pl_affine, pl_batch_norm *, pl_activation, pl_id film);
/* Means of the cells of a grid of height × width. */
pl_id pl_net_mean_of_grid(pl_net *, pl_id x, int64_t height, int64_t width);

/* ---- heads and losses: layers_loss.c ---- */

/* The `count` rows of [B,N,width] that have the largest scores, [B,K,N]: [B,K·count,width]. */
pl_id pl_net_top_rows(pl_net *, pl_id rows, pl_id scores, int64_t count);

/* A term of a loss: sum + scale·Σ over the samples, in which each counts as often as `counted` [B,1] says; PL_NONE:
 * once. Each gives the new sum. */
typedef struct pl_loss_term {
    pl_id scale, counted, sum;
} pl_loss_term;
static inline pl_loss_term pl_loss_term_of(pl_id scale, pl_id sum) { return (pl_loss_term){scale, PL_NONE, sum}; }

/* logits [rows, classes]; a target −1 counts nothing. */
pl_id pl_net_cross_entropy(pl_net *, pl_id logits, pl_id targets, const pl_loss_term *);
/* The same of softmax(weight·h), a chunk of rows at a time. */
pl_id pl_net_linear_cross_entropy(pl_net *, pl_id h, pl_id weight, pl_id targets, pl_id scale, pl_id sum);
/* The same with all that the operator offers; sets only chunk_rows. */
pl_id pl_net_linear_losses(pl_net *, pl_linear_ce_args *);
pl_id pl_net_squared_error(pl_net *, pl_id a, pl_id b, const pl_loss_term *);
pl_id pl_net_cosine_loss(pl_net *, pl_id a, pl_id b, const pl_loss_term *);
/* Binary cross-entropy of a logit and a target from 0 to 1. */
pl_id pl_net_logit_loss(pl_net *, pl_id logit, pl_id target, const pl_loss_term *);
/* (|x| − 1)² of each row. */
pl_id pl_net_norm_penalty(pl_net *, pl_id x, const pl_loss_term *);

#endif
