/* Blocks that are applied over and over, those of the Tiny Recursive Model (Jolicoeur-Martineau 2025): h = norm(h +
 * attention(h)), h = norm(h + swiglu(h)), without biases, norms without a gain. */
#ifndef PL_MODELS_RECURSION_H
#define PL_MODELS_RECURSION_H

#include "layers/layers.h"

typedef struct pl_recursion {
    pl_net *n;
    const char *names; /* "encoder.L_blocks": NAMES.I.self_attn.qkv_proj.weight, .o_proj, NAMES.I.mlp.gate_up_proj, … */
    const char *states; /* "encoder": STATES.H_init, .L_init, of two states */
    int64_t count, heads, width, inner;
    double eps;
    pl_dtype type;     /* of matrices, and of what flows */
    bool turned;       /* with rotary positions */
    bool keeps_states; /* what the two states begin with is not trained */
    bool is_binary;    /* of matrices the signs count */
    bool is_all;       /* its blocks are the model's (pl_value.block), not those of a part */
} pl_recursion;

/* The inner width of the feed-forward layers: round(2/3 · expansion · width), rounded up to a multiple of 256. 0: the
 * expansion is too small. */
int64_t pl_recursion_inner(double expansion, int64_t width);

/* The blocks, `cycles` times. */
pl_id pl_recursion_flat(const pl_recursion *, pl_id x, int64_t cycles);
/* H times: L times low = blocks(low + high + x), then high = blocks(high + low), which comes out. While training,
 * gradients pass through the last of the H cycles alone, and nothing of the others is kept. */
pl_id pl_recursion_two_states(const pl_recursion *, pl_id x, int64_t high_cycles, int64_t low_cycles);
/* The same in two: what the states, high and low, are at first, a vector for all tokens; and from any states on. */
enum { PL_RECURSION_HIGH, PL_RECURSION_LOW, PL_RECURSION_STATES };
void pl_recursion_begin(const pl_recursion *, pl_id state[PL_RECURSION_STATES]);
void pl_recursion_go_on(const pl_recursion *, pl_id x, int64_t high_cycles, int64_t low_cycles,
                        pl_id state[PL_RECURSION_STATES]);

#endif
