/* The only folder that knows kernels. For a graph node, a team and addresses it says: how much workspace, and which
 * call. A bound call is a plain value; running it asks for no memory. */
#ifndef PL_BACKEND_BACKEND_H
#define PL_BACKEND_BACKEND_H

#include "backend/binary.h"
#include "backend/calls.h"
#include "backend/carry.h"
#include "backend/channel_norm.h"
#include "backend/channels.h"
#include "backend/convolution_pool.h"
#include "backend/modulation.h"
#include "backend/policy.h"
#include "backend/quantize.h"
#include "backend/pool.h"
#include "backend/regression.h"
#include "backend/row_loss.h"
#include "backend/sigmoid_attention.h"
#include "backend/tokens.h"
#include "ir/graph.h"

/* Where values live: base of the arena of each space, and the offset of every storage root (indexed by value id;
 * NULL: all at the base). */
typedef struct pl_addresses {
    unsigned char *base[PL_SPACES_MAX];
    const uint64_t *offset;
    uint64_t trip; /* which tile is meant of those that move on with each trip of a region */
} pl_addresses;

void *pl_address_of(const pl_graph *, const pl_addresses *, pl_id value); /* NULL for PL_NONE */
uint64_t pl_elems_of(const pl_graph *, pl_id value);                      /* 0 for PL_NONE */
pl_real pl_real_of(const pl_graph *, pl_id value); /* how its numbers are stored; the value is f32, bf16 or f16 */
int64_t pl_tokens_of(const pl_shape *);            /* rows of one entry of the first dimension, which is the batch */
/* Sequences are so short that packing W is not worth it. (Not: the rows of all are so few. The bits of a row must not
 * depend on the micro-batch.) */
int pl_has_few_tokens(const pl_shape *);

/* ---- nodes whose calls calls.h does not know (source.c, cache.c) ---- */
typedef struct pl_fill_value_call {
    uint64_t count;
    double value;
    void *y;  /* f32, */
    bool ids; /* or i32 */
} pl_fill_value_call;

typedef struct pl_normal_call {
    uint64_t count;
    float std;
    uint64_t seed, stream;
    void *y;
    pl_real type;
} pl_normal_call;

typedef struct pl_uniform_call {
    uint64_t count;
    float middle, bound; /* middle ± bound */
    uint64_t seed, stream;
    const int64_t *item; /* (run) NULL: 0 */
    void *y;
    pl_real type;
} pl_uniform_call;

typedef struct pl_cache_write_call {
    int64_t sequences, rows, width, ld, room; /* rows: of a sequence */
    int64_t stride;                           /* between sequences of x */
    const void *x;
    void *cache;
    const int64_t *position; /* (run) of the first row */
    int64_t positions;       /* of so many sequences; 0 or 1: one for all */
    const int64_t *sequence; /* (run) or NULL: x is one sequence, and this the one of the cache */
    pl_real type, cache_type;
    pl_encoding encoding; /* of the cache, where the type is f32; PL_ENCODING_F32: as cache_type says */
    int ring;             /* rows beyond the room begin again at its first; else they are left out */
} pl_cache_write_call;

/* A value that goes in or out. */
typedef struct pl_call_port {
    void *at;
    uint64_t bytes;
    pl_dtype dtype;
} pl_call_port;

typedef struct pl_load_call { /* run/ copies a slot of data there */
    pl_call_port port[PL_NODE_OUT_MAX];
    uint32_t ports;
    int64_t *first_sample; /* NULL: not wanted */
} pl_load_call;

typedef struct pl_store_call { /* run/ hands them to who keeps them */
    pl_call_port port[PL_NODE_IN_MAX];
    uint32_t ports;
    pl_id returned; /* which port of the data it gives back; PL_NONE: it is a result */
} pl_store_call;

typedef struct pl_call {
    pl_op op;
    const int32_t *predicate; /* (run) the call is skipped when it points at 0; NULL: always */
    void *workspace;
    bool fill_is_value; /* of the two fill calls of the union, fill_value */
    union {
        pl_gemm_call gemm;
        pl_column_sum_call column_sum;
        pl_convolution_call convolution;
        pl_convolution_dx_call convolution_dx;
        pl_convolution_dw_call convolution_dw;
        pl_feed_forward_call feed_forward;
        pl_feed_forward_bwd_call feed_forward_bwd;
        pl_norm_call norm;
        pl_norm_bwd_call norm_bwd;
        pl_channel_moments_call channel_moments;
        pl_channel_norm_call channel_norm;
        pl_channel_norm_bwd_call channel_norm_bwd;
        pl_batch_norm_update_call batch_norm_update;
        pl_max_pool_call max_pool;
        pl_max_pool_bwd_call max_pool_bwd;
        pl_spread_call spread;
        pl_convolution_pool_call convolution_pool;
        pl_convolution_pool_bwd_call convolution_pool_bwd;
        pl_resample_call resample;
        pl_concat_call concat;
        pl_append_coordinates_call append_coordinates;
        pl_slice_call slice;
        pl_slice_bwd_call slice_bwd;
        pl_channel_dropout_call channel_dropout;
        pl_path_dropout_call path_dropout;
        pl_carry_call carry;
        pl_halt_call halt;
        pl_ramp_call ramp;
        pl_nearest_code_call nearest_code;
        pl_code_sum_call code_sum;
        pl_code_update_call code_update;
        pl_gate_call gate;
        pl_gate_bwd_call gate_bwd;
        pl_blend_call blend;
        pl_blend_bwd_call blend_bwd;
        pl_film_call film;
        pl_film_bwd_call film_bwd;
        pl_softmax_pool_call softmax_pool;
        pl_softmax_pool_bwd_call softmax_pool_bwd;
        pl_patches_call patches;
        pl_pixels_call pixels;
        pl_perturb_call perturb;
        pl_shift_call shift;
        pl_observe_call observe;
        pl_difference_call difference;
        pl_overwrite_call overwrite;
        pl_linear_int8_call linear_int8;
        pl_add_positions_call add_positions;
        pl_prepend_row_call prepend_row;
        pl_drop_row_call drop_row;
        pl_rope_call rope;
        pl_rope_table_call rope_table;
        pl_capsule_pool_call capsule_pool;
        pl_capsule_pool_bwd_call capsule_pool_bwd;
        pl_top_k_call top_k;
        pl_gather_rows_call gather_rows;
        pl_gather_rows_bwd_call gather_rows_bwd;
        pl_repeat_call repeat;
        pl_repeat_bwd_call repeat_bwd;
        pl_attention_call attention;
        pl_attention_bwd_call attention_bwd;
        pl_sigmoid_attention_call sigmoid_attention;
        pl_sigmoid_attention_bwd_call sigmoid_attention_bwd;
        pl_embedding_call embedding;
        pl_embedding_bwd_call embedding_bwd;
        pl_linear_ce_call linear_ce;
        pl_regression_loss_call regression_loss;
        pl_row_loss_call row_loss;
        pl_count_right_call count_right;
        pl_activation_call activation;
        pl_gated_activation_call gated_activation;
        pl_gated_activation_bwd_call gated_activation_bwd;
        pl_pack_signs_call pack_signs;
        pl_binary_call linear_binary;
        pl_linear_binary_dx_call linear_binary_dx;
        pl_linear_binary_dw_call linear_binary_dw;
        pl_latent_gradient_call latent_gradient;
        pl_activation_bwd_call activation_bwd;
        pl_add_call add;
        pl_scale_call scale;
        pl_cast_call cast;
        pl_fill_call fill;
        pl_fill_value_call fill_value;
        pl_normal_call normal;
        pl_uniform_call uniform;
        pl_dropout_call dropout;
        pl_adamw_call adamw;
        pl_ema_call ema;
        pl_sum_squares_call sum_squares;
        pl_clip_scale_call clip_scale;
        pl_loss_scale_call loss_scale;
        pl_spectrum_call spectrum;
        pl_spectral_linear spectral_linear;
        pl_noise_call noise;
        pl_evolve_call evolve;
        pl_field_metrics_call field_metrics;
        pl_cache_write_call cache_write;
        pl_load_call load;
        pl_store_call store;
    } u;
} pl_call;

/* Scratch memory the node needs while it runs, in bytes; the batch must be bound. */
pl_status pl_backend_workspace_bytes(const pl_graph *, const pl_node *, pl_team, uint64_t *bytes, pl_error *);
/* Fills the call. PL_E_UNSUPPORTED, naming operator, dtype and layout, when no kernel can do it. */
pl_status pl_backend_bind(const pl_graph *, const pl_node *, const pl_addresses *, void *workspace, pl_call *,
                          pl_error *);
void pl_backend_exec(const pl_call *, pl_team);

/* ---- within this folder: one row an operator ---- */
typedef struct pl_binding {
    void (*bind)(const pl_graph *, const pl_node *, const pl_addresses *, pl_call *);
    uint64_t (*workspace)(const pl_call *, pl_team); /* NULL: none */
    void (*exec)(const pl_call *, pl_team);          /* NULL: not the backend's (load, store) */
} pl_binding;
#define PL_OP(constant, name, ins, outs, attrs) extern const pl_binding pl_binding_##constant;
#include "ir/ops.def"

void pl_fill_value_exec(const pl_fill_value_call *, pl_team);
void pl_normal_exec(const pl_normal_call *, pl_team);
/* y: normal numbers cut at two deviations, widened until what is left has the deviation std (Hinton's and PyTorch's
 * truncated initialisers leave it at 0.88 of that). */
void pl_truncated_normal_exec(const pl_normal_call *, pl_team);
void pl_uniform_exec(const pl_uniform_call *, pl_team);
void pl_cache_write_exec(const pl_cache_write_call *, pl_team);

#endif
