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
    pl_id in[4] = {state, fresh, k->carried->done, k->m->input[PL_INPUT_FIRST_SAMPLE]}, out = PL_NONE;
    return pl_build_node(&k->m->b, PL_OP_CARRY_READ, (pl_attr[]){pl_attr_i(below)}, 4, in, 1, &out);
}

pl_id pl_hybrid_take_state(const pl_hybrid *k, pl_id state, pl_id vector)
{
    pl_id fresh = PL_NONE, zeros = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->capsules, k->width));
    pl_build_node(&k->m->b, PL_OP_ADD_POSITIONS, NULL, 2, (pl_id[]){zeros, vector}, 1, &fresh);
    return pl_hybrid_cast(k, pl_hybrid_take(k, state, fresh, 0));
}

void pl_hybrid_keep(const pl_hybrid *k, pl_id *state, pl_id rows)
{
    pl_id in[3] = {*state, rows, k->m->input[PL_INPUT_FIRST_SAMPLE]}, out = PL_NONE;
    *state = pl_build_node(&k->m->b, PL_OP_CARRY_WRITE, NULL, 3, in, 1, &out);
}

void pl_hybrid_end_carry(const pl_hybrid *k, pl_id halt)
{
    pl_model *m = k->m;
    const pl_config *c = m->config;
    const pl_attr attr[] = {pl_attr_i(c->reasoning.halt_max_steps), pl_attr_f(c->reasoning.halt_exploration),
                            pl_attr_i(c->train.seed), pl_attr_i(pl_model_stream(m, "exploration"))};
    pl_id in[4] = {k->carried->done, halt, m->input[PL_INPUT_STEP], m->input[PL_INPUT_FIRST_SAMPLE]}, out = PL_NONE;
    k->carried->done = pl_build_node(&m->b, PL_OP_HALT, attr, 4, in, 1, &out);
}
