#include "models/recursion.h"

#include <math.h>

enum { INNER_STEP = 256 };
#define ROPE_THETA 1e4

int64_t pl_recursion_inner(double expansion, int64_t width)
{
    const double wide = round(expansion * (double)width * 2 / 3);
    return INNER_STEP * (int64_t)ceil(wide / INNER_STEP);
}

/* A block; taped: gradients will come back. Matrices begin as LeCun's, cut at two deviations. */
static pl_transformer block_of(const pl_recursion *r, bool taped)
{
    const pl_init wide = pl_init_truncated(1 / sqrt((double)r->width)), none = {PL_INIT_ABSENT},
                  inner = pl_init_truncated(1 / sqrt((double)r->inner));
    return (pl_transformer){.width = r->width,
                            .heads = r->heads,
                            .inner = r->inner,
                            .type = r->type,
                            .norm = {.is_rms = true, .eps = r->eps},
                            .is_post_norm = true,
                            .query = PL_PROJECTION("self_attn.qkv_proj", wide, none),
                            .output = PL_PROJECTION("self_attn.o_proj", wide, none),
                            .theta = r->turned ? ROPE_THETA : 0,
                            .up = PL_PROJECTION("mlp.gate_up_proj", wide, none),
                            .down = PL_PROJECTION("mlp.down_proj", inner, none),
                            .is_gated = true,
                            .activation = PL_ACT_SILU,
                            .is_binary = r->is_binary,
                            .is_detached = !taped};
}

static pl_id blocks(const pl_recursion *r, pl_id x, bool taped)
{
    const pl_transformer block = block_of(r, taped);
    return pl_net_stack(r->n, &(pl_stack){"block", r->names, r->is_all, 0, r->count}, &block, x);
}

/* ---- over and over ---- */

pl_id pl_recursion_flat(const pl_recursion *r, pl_id x, int64_t cycles)
{
    for (int64_t i = 0; i < cycles; i++) {
        pl_builder_enter(&r->n->b, "cycle.%d", (int)i);
        x = blocks(r, x, r->n->training);
        pl_builder_leave(&r->n->b);
    }
    return x;
}

/* A state is the same vector for all tokens at first. */
static pl_id plus(const pl_recursion *r, pl_id state, pl_id x)
{
    if (r->n->b.status != PL_OK) return PL_NONE;
    const bool is_vector = r->n->b.graph->value[state].shape.rank == 1;
    return is_vector ? pl_net_add_positions(r->n, x, state) : pl_net_add(r->n, x, state);
}

static pl_id first_state(const pl_recursion *r, const char *name)
{
    const bool before = pl_net_freeze(r->n, r->keeps_states);
    const pl_id state =
        pl_net_weight(r->n, pl_init_truncated(1), PL_DTYPE_F32, pl_shape_of(1, r->width), "%s.%s", r->states, name);
    pl_net_thaw(r->n, before);
    return state;
}

static pl_id detached(const pl_recursion *r, pl_id x)
{
    pl_detach_args a = pl_detach_none;
    a.x = x;
    return pl_build_detach(&r->n->b, &a);
}

void pl_recursion_begin(const pl_recursion *r, pl_id state[PL_RECURSION_STATES])
{
    state[PL_RECURSION_HIGH] = first_state(r, "H_init");
    state[PL_RECURSION_LOW] = first_state(r, "L_init");
}

void pl_recursion_go_on(const pl_recursion *r, pl_id x, int64_t high_cycles, int64_t low_cycles,
                        pl_id state[PL_RECURSION_STATES])
{
    pl_builder *b = &r->n->b;
    pl_id high = state[PL_RECURSION_HIGH], low = state[PL_RECURSION_LOW];
    for (int64_t h = 0; h < high_cycles; h++) {
        const bool is_last = h + 1 == high_cycles, taped = r->n->training && is_last;
        pl_builder_enter(b, "cycle.%d", (int)h);
        for (int64_t l = 0; l < low_cycles; l++) {
            pl_builder_enter(b, "low.%d", (int)l);
            low = blocks(r, plus(r, low, plus(r, high, x)), taped);
            pl_builder_leave(b);
        }
        pl_builder_enter(b, "high");
        high = blocks(r, plus(r, high, low), taped);
        pl_builder_leave(b);
        if (r->n->training && !is_last) high = detached(r, high), low = detached(r, low);
        pl_builder_leave(b);
    }
    state[PL_RECURSION_HIGH] = high, state[PL_RECURSION_LOW] = low;
}

pl_id pl_recursion_two_states(const pl_recursion *r, pl_id x, int64_t high_cycles, int64_t low_cycles)
{
    pl_id state[PL_RECURSION_STATES];
    pl_recursion_begin(r, state);
    pl_recursion_go_on(r, x, high_cycles, low_cycles, state);
    return state[PL_RECURSION_HIGH];
}
