/* Deep supervision (docs/hybrid.md): a page stays in its place of the batch for several steps, each with a loss and an
 * update of its own, and the reasoner goes on from the states in which it left it. */
#include "base/colours.h"
#include "models/hybrid.h"

bool pl_hybrid_carries(const pl_config *c) { return c->reasoning.halt_max_steps > 1; }

void pl_hybrid_begin_carry(const pl_hybrid *k, pl_hybrid_carried *c)
{
    const int64_t places = pl_config_batch(k->m->config);
    const pl_shape states = pl_shape_of(3, places, k->capsules, k->width);
    const pl_init none = pl_init_all(0);
    c->done = pl_net_carried(k->n, none, PL_DTYPE_I32, pl_shape_of(1, places), "carry.done");
    const pl_shape grey = pl_shape_of(3, places, k->side, k->side),
                   coloured = pl_shape_of(4, places, k->side, k->side, (int64_t)PL_COLOURS);
    c->pages = pl_net_carried(k->n, none, PL_DTYPE_U8, k->coloured ? coloured : grey, "carry.pages");
    c->labels = pl_net_carried(k->n, none, PL_DTYPE_I32, pl_shape_of(2, places, k->capsules), "carry.labels");
    c->high = pl_net_carried(k->n, none, PL_DTYPE_F32, states, "carry.z_H");
    c->low = pl_net_carried(k->n, none, PL_DTYPE_F32, states, "carry.z_L");
}

pl_id pl_hybrid_take(const pl_hybrid *k, pl_id state, pl_id fresh, int64_t below)
{
    pl_carry_read_args read = pl_carry_read_none;
    read.state = state, read.fresh = fresh, read.done = k->carried->done;
    read.first_sample = k->n->input[PL_INPUT_FIRST_SAMPLE];
    read.below = below;
    return pl_build_carry_read(&k->n->b, &read);
}

pl_id pl_hybrid_take_state(const pl_hybrid *k, pl_id state, pl_id vector)
{
    pl_id zeros = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->capsules, k->width));
    return pl_hybrid_cast(k, pl_hybrid_take(k, state, pl_net_add_positions(k->n, zeros, vector), 0));
}

void pl_hybrid_keep(const pl_hybrid *k, pl_id *state, pl_id rows)
{
    pl_carry_write_args write = pl_carry_write_none;
    write.state = *state, write.x = rows, write.first_sample = k->n->input[PL_INPUT_FIRST_SAMPLE];
    *state = pl_build_carry_write(&k->n->b, &write);
}

void pl_hybrid_end_carry(const pl_hybrid *k, pl_id halt)
{
    const pl_config *c = k->m->config;
    pl_halt_args a = pl_halt_none;
    a.done = k->carried->done, a.q = halt;
    a.step = k->n->input[PL_INPUT_STEP], a.first_sample = k->n->input[PL_INPUT_FIRST_SAMPLE];
    a.limit = c->reasoning.halt_max_steps, a.exploration = c->reasoning.halt_exploration;
    a.seed = k->n->dropout_seed, a.stream = pl_net_stream(k->n, "exploration");
    k->carried->done = pl_build_halt(&k->n->b, &a);
}
