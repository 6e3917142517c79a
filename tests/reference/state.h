/* Within tests/reference: the blocks, and how an operator's function sees its operands. */
#ifndef PL_TESTS_REFERENCE_STATE_H
#define PL_TESTS_REFERENCE_STATE_H

#include "ir/op.h"
#include "reference/interpret.h"

enum { SCRATCH_MAX = PL_NODE_IN_MAX + PL_NODE_OUT_MAX + 4 };

struct reference {
    const pl_graph *graph;
    double **block; /* [values], of roots */
    uint64_t trip;  /* of the region of the node that runs: which tile of a stack it sees */
    double *scratch[SCRATCH_MAX];
    int scratch_count;
};

typedef struct operands {
    reference *r;
    const pl_node *node;
    double *in[PL_NODE_IN_MAX]; /* dense copies, row-major; NULL when absent */
} operands;

void *reference_allocate(uint64_t count, uint64_t size); /* ends the program when refused */
const pl_value *operand(const operands *, int in);
double *scratch(operands *, uint64_t elems);        /* zeroed; freed behind the node */
void put(operands *, int out, const double *dense); /* nothing when the output is absent */
bool wanted(const operands *, int out);

typedef void (*reference_op)(operands *);
extern const reference_op reference_ops[PL_OP_COUNT];

/* One file each. */
void reference_linear(operands *);
void reference_linear_dx(operands *);
void reference_linear_dw(operands *);
void reference_column_sum(operands *);
void reference_conv2d(operands *);
void reference_conv2d_dx(operands *);
void reference_conv2d_dw(operands *);
void reference_conv2d_pool(operands *);
void reference_conv2d_pool_bwd(operands *);
void reference_batch_norm_spread(operands *);
void reference_conv_transpose2d(operands *);
void reference_feed_forward(operands *);
void reference_feed_forward_bwd(operands *);
void reference_gated_activation(operands *);
void reference_gated_activation_bwd(operands *);
void reference_pack_signs(operands *);
void reference_linear_binary(operands *);
void reference_linear_binary_dx(operands *);
void reference_linear_binary_dw(operands *);
void reference_latent_gradient(operands *);
void reference_gated_feed_forward(operands *);
void reference_gated_feed_forward_bwd(operands *);
void reference_layer_norm(operands *);
void reference_layer_norm_bwd(operands *);
void reference_rms_norm(operands *);
void reference_rms_norm_bwd(operands *);
void reference_channel_moments(operands *);
void reference_group_norm(operands *);
void reference_group_norm_bwd(operands *);
void reference_batch_norm(operands *);
void reference_batch_norm_bwd(operands *);
void reference_pooled_batch_norm(operands *);
void reference_pooled_batch_norm_bwd(operands *);
void reference_batch_norm_update(operands *);
void reference_batch_norm_eval(operands *);
void reference_batch_norm_eval_bwd(operands *);
void reference_max_pool(operands *);
void reference_max_pool_bwd(operands *);
void reference_avg_pool(operands *);
void reference_avg_pool_bwd(operands *);
void reference_adaptive_avg_pool(operands *);
void reference_adaptive_avg_pool_bwd(operands *);
void reference_upsample_bilinear(operands *);
void reference_upsample_bilinear_bwd(operands *);
void reference_concat(operands *);
void reference_slice(operands *);
void reference_slice_bwd(operands *);
void reference_append_coordinates(operands *);
void reference_channel_dropout(operands *);
void reference_path_dropout(operands *);
void reference_carry_read(operands *);
void reference_carry_write(operands *);
void reference_halt(operands *);
void reference_ramp(operands *);
void reference_nearest_code(operands *);
void reference_code_sum(operands *);
void reference_code_update(operands *);
void reference_straight_through(operands *);
void reference_gate(operands *);
void reference_gate_bwd(operands *);
void reference_blend(operands *);
void reference_blend_bwd(operands *);
void reference_film(operands *);
void reference_film_bwd(operands *);
void reference_softmax_pool(operands *);
void reference_softmax_pool_bwd(operands *);
void reference_sigmoid_attention(operands *);
void reference_sigmoid_attention_bwd(operands *);
void reference_patches(operands *);
void reference_pixels(operands *);
void reference_perturb(operands *);
void reference_linear_int8(operands *);
void reference_hidden_int8(operands *);
void reference_observe_difference(operands *);
void reference_observe_extremes(operands *);
void reference_observe_spread(operands *);
void reference_overwrite(operands *);
void reference_shift(operands *);
void reference_add_positions(operands *);
void reference_prepend_row(operands *);
void reference_drop_row(operands *);
void reference_rope(operands *);
void reference_rope_table(operands *);
void reference_capsule_pool(operands *);
void reference_capsule_pool_bwd(operands *);
void reference_top_k(operands *);
void reference_gather_rows(operands *);
void reference_gather_rows_bwd(operands *);
void reference_repeat(operands *);
void reference_repeat_bwd(operands *);
void reference_attention(operands *);
void reference_attention_bwd(operands *);
void reference_cache_write(operands *);
void reference_linear_ce(operands *);
void reference_linear_ce_bwd(operands *);
void reference_regression_loss(operands *);
void reference_regression_loss_bwd(operands *);
void reference_row_loss(operands *);
void reference_count_right(operands *);
void reference_activation(operands *);
void reference_activation_bwd(operands *);
void reference_noise(operands *);
void reference_evolve(operands *);
void reference_field_metrics(operands *);
void reference_rfft2(operands *);
void reference_irfft2(operands *);
void reference_spectral_linear(operands *);
void reference_spectral_linear_dx(operands *);
void reference_spectral_linear_dw(operands *);

double reference_act(pl_activation, double x);
double reference_act_slope(pl_activation, double x);

#endif
