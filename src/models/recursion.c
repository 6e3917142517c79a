#include "models/recursion.h"

#include <math.h>
#include <stdio.h>

enum { INNER_STEP = 256, GATED_ROWS = 784 };
#define ROPE_THETA 1e4

int64_t pl_recursion_inner(double expansion, int64_t width)
{
    const double wide = round(expansion * (double)width * 2 / 3);
    return INNER_STEP * (int64_t)ceil(wide / INNER_STEP);
}

/* ---- a block; taped: gradients will come back ---- */

/* LeCun's, cut at two deviations. */
static pl_id matrix(const pl_recursion *r, int64_t out, int64_t in, int block, const char *part)
{
    return pl_model_truncated(r->m, r->type, 1 / sqrt((double)in), pl_shape_of(2, out, in), "%s.%d.%s.weight", r->names,
                              block, part);
}

static pl_id norm(const pl_recursion *r, pl_id x, bool taped)
{
    pl_rms_norm_args a = pl_rms_norm_none;
    a.x = x, a.eps = r->eps;
    if (taped) a.rstd = PL_NONE;
    return pl_build_rms_norm(&r->m->b, &a);
}

static pl_id turn(const pl_recursion *r, pl_id qkv)
{
    pl_rope_args a = pl_rope_none;
    a.x = qkv, a.heads = 3 * r->heads, a.rotated = 2 * r->heads, a.theta = ROPE_THETA;
    return r->turned ? pl_build_rope(&r->m->b, &a) : qkv;
}

static pl_id attention(const pl_recursion *r, pl_id x, int block, bool taped)
{
    pl_model *m = r->m;
    const int64_t d = r->width;
    pl_attention_args a = pl_attention_none;
    pl_builder_enter(&m->b, "attention");
    pl_id w = matrix(r, 3 * d, d, block, "self_attn.qkv_proj");
    pl_id qkv = turn(r, pl_model_block_linear(m, x, w, PL_NONE, PL_NONE));
    a.q = pl_model_columns(m, qkv, 0, d);
    a.k = pl_model_columns(m, qkv, d, d);
    a.v = pl_model_columns(m, qkv, 2 * d, d);
    a.heads = r->heads, a.scale = 1 / sqrt((double)d / (double)r->heads);
    if (taped) a.lse = PL_NONE;
    pl_build_attention(&m->b, &a);
    x = norm(r, pl_model_block_linear(m, a.o, matrix(r, d, d, block, "self_attn.o_proj"), PL_NONE, x), taped);
    pl_builder_leave(&m->b);
    return x;
}

/* What flows between two products of signs is whole: its signs and its scale are all that the second sees. */
static pl_id through_signs(const pl_recursion *r, pl_id x, pl_id first, pl_id second)
{
    pl_gated_activation_args hidden = pl_gated_activation_none;
    hidden.x = pl_model_block_linear(r->m, x, first, PL_NONE, PL_NONE), hidden.act = PL_ACT_SILU;
    pl_build_gated_activation(&r->m->b, &hidden);
    return pl_model_block_linear(r->m, hidden.y, second, PL_NONE, x);
}

static pl_id gated(const pl_recursion *r, pl_id x, pl_id first, pl_id second)
{
    pl_gated_feed_forward_args a = pl_gated_feed_forward_none;
    if (pl_model_is_binary(r->m->config)) return through_signs(r, x, first, second);
    a.x = a.residual = x, a.gate_up = first, a.down = second, a.act = PL_ACT_SILU, a.rows = GATED_ROWS;
    return pl_build_gated_feed_forward(&r->m->b, &a);
}

static pl_id feed_forward(const pl_recursion *r, pl_id x, int block, bool taped)
{
    pl_builder *b = &r->m->b;
    pl_builder_enter(b, "feed_forward");
    const pl_id first = matrix(r, 2 * r->inner, r->width, block, "mlp.gate_up_proj");
    const pl_id second = matrix(r, r->width, r->inner, block, "mlp.down_proj");
    const pl_id out = norm(r, gated(r, x, first, second), taped);
    pl_builder_leave(b);
    return out;
}

static pl_id blocks(const pl_recursion *r, pl_id x, bool taped)
{
    for (int i = 0; i < r->count; i++) {
        if (r->is_all)
            pl_builder_enter_block(&r->m->b, "block", (uint32_t)i);
        else
            pl_builder_enter(&r->m->b, "block.%d", i);
        x = feed_forward(r, attention(r, x, i, taped), i, taped);
        pl_builder_leave(&r->m->b);
    }
    return x;
}

/* ---- over and over ---- */

pl_id pl_recursion_flat(const pl_recursion *r, pl_id x, int64_t cycles)
{
    for (int64_t i = 0; i < cycles; i++) {
        pl_builder_enter(&r->m->b, "cycle.%d", (int)i);
        x = blocks(r, x, r->m->training);
        pl_builder_leave(&r->m->b);
    }
    return x;
}

/* A state is the same vector for all tokens at first. */
static pl_id plus(const pl_recursion *r, pl_id state, pl_id x)
{
    pl_builder *b = &r->m->b;
    pl_add_positions_args vector = pl_add_positions_none;
    pl_add_args sum = pl_add_none;
    if (b->status != PL_OK) return PL_NONE;
    vector.x = sum.a = x, vector.positions = sum.b = state;
    const bool is_vector = b->graph->value[state].shape.rank == 1;
    return is_vector ? pl_build_add_positions(b, &vector) : pl_build_add(b, &sum);
}

static pl_id first_state(const pl_recursion *r, const char *name)
{
    pl_id state = pl_model_truncated(r->m, PL_DTYPE_F32, 1, pl_shape_of(1, r->width), "%s.%s", r->states, name);
    return pl_model_freeze(r->m, r->keeps_states, state);
}

static pl_id detached(const pl_recursion *r, pl_id x)
{
    pl_detach_args a = pl_detach_none;
    a.x = x;
    return pl_build_detach(&r->m->b, &a);
}

void pl_recursion_begin(const pl_recursion *r, pl_id state[PL_RECURSION_STATES])
{
    state[PL_RECURSION_HIGH] = first_state(r, "H_init");
    state[PL_RECURSION_LOW] = first_state(r, "L_init");
}

void pl_recursion_go_on(const pl_recursion *r, pl_id x, int64_t high_cycles, int64_t low_cycles,
                        pl_id state[PL_RECURSION_STATES])
{
    pl_builder *b = &r->m->b;
    pl_id high = state[PL_RECURSION_HIGH], low = state[PL_RECURSION_LOW];
    for (int64_t h = 0; h < high_cycles; h++) {
        const bool is_last = h + 1 == high_cycles, taped = r->m->training && is_last;
        pl_builder_enter(b, "cycle.%d", (int)h);
        for (int64_t l = 0; l < low_cycles; l++) {
            pl_builder_enter(b, "low.%d", (int)l);
            low = blocks(r, plus(r, low, plus(r, high, x)), taped);
            pl_builder_leave(b);
        }
        pl_builder_enter(b, "high");
        high = blocks(r, plus(r, high, low), taped);
        pl_builder_leave(b);
        if (r->m->training && !is_last) high = detached(r, high), low = detached(r, low);
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
