/* Deep supervision (docs/hybrid.md): a page stays in its place of the batch for several steps, each with a loss and an
 * update of its own, and the reasoner goes on from the states in which it left it. */
#include "base/colours.h"
#include "models/hybrid.h"

bool pl_hybrid_carries(const pl_config *c) { return c->reasoning.halt_max_steps > 1; }

void pl_hybrid_begin_carry(const pl_hybrid *k, pl_hybrid_carried *c)
{
    const int64_t places = pl_config_batch(k->m->config);
    const pl_shape states = pl_shape_of(3, places, k->capsules, k->width);
    c->done = pl_model_carried(k->m, PL_DTYPE_I32, 0, pl_shape_of(1, places), "carry.done");
    const pl_shape grey = pl_shape_of(3, places, k->side, k->side),
                   coloured = pl_shape_of(4, places, k->side, k->side, (int64_t)PL_COLOURS);
    c->pages = pl_model_carried(k->m, PL_DTYPE_U8, 0, k->coloured ? coloured : grey, "carry.pages");
    c->labels = pl_model_carried(k->m, PL_DTYPE_I32, 0, pl_shape_of(2, places, k->capsules), "carry.labels");
    c->high = pl_model_carried(k->m, PL_DTYPE_F32, 0, states, "carry.z_H");
    c->low = pl_model_carried(k->m, PL_DTYPE_F32, 0, states, "carry.z_L");
}

pl_id pl_hybrid_take(const pl_hybrid *k, pl_id state, pl_id fresh, int64_t below)
{
    pl_carry_read_args read = pl_carry_read_none;
    read.state = state, read.fresh = fresh, read.done = k->carried->done;
    read.first_sample = k->m->input[PL_INPUT_FIRST_SAMPLE];
    read.below = below;
    return pl_build_carry_read(&k->m->b, &read);
}

pl_id pl_hybrid_take_state(const pl_hybrid *k, pl_id state, pl_id vector)
{
    pl_add_positions_args fresh = pl_add_positions_none;
    fresh.x = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->capsules, k->width));
    fresh.positions = vector;
    pl_build_add_positions(&k->m->b, &fresh);
    return pl_hybrid_cast(k, pl_hybrid_take(k, state, fresh.y, 0));
}

void pl_hybrid_keep(const pl_hybrid *k, pl_id *state, pl_id rows)
{
    pl_carry_write_args write = pl_carry_write_none;
    write.state = *state, write.x = rows, write.first_sample = k->m->input[PL_INPUT_FIRST_SAMPLE];
    *state = pl_build_carry_write(&k->m->b, &write);
}

void pl_hybrid_end_carry(const pl_hybrid *k, pl_id halt)
{
    pl_model *m = k->m;
    const pl_config *c = m->config;
    pl_halt_args a = pl_halt_none;
    a.done = k->carried->done, a.q = halt;
    a.step = m->input[PL_INPUT_STEP], a.first_sample = m->input[PL_INPUT_FIRST_SAMPLE];
    a.limit = c->reasoning.halt_max_steps, a.exploration = c->reasoning.halt_exploration;
    a.seed = c->train.seed, a.stream = pl_model_stream(m, "exploration");
    k->carried->done = pl_build_halt(&m->b, &a);
}
