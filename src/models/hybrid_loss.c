/* Terms of the losses of arch hybrid. */
#include "base/rollout.h"
#include "models/hybrid.h"

pl_id pl_hybrid_fill(const pl_hybrid *k, pl_dtype dtype, double value, pl_shape shape)
{
    pl_builder *b = &k->m->b;
    pl_id out = pl_build_temporary(b, PL_ROLE_TEMPORARY, dtype, shape, "filled.%zu",
                                   b->status == PL_OK ? b->graph->value_count : 0);
    return pl_build_node(b, PL_OP_FILL, (pl_attr[]){pl_attr_f(value)}, 0, NULL, 1, &out);
}

pl_id pl_hybrid_number(const pl_hybrid *k, double value)
{
    return pl_hybrid_fill(k, PL_DTYPE_F32, value, pl_shape_of(1, (int64_t)1));
}

pl_id pl_hybrid_scale(const pl_hybrid *k, double weight, int64_t rows)
{
    return pl_hybrid_number(k, weight / ((double)pl_config_batch(k->m->config) * (double)rows));
}

void pl_hybrid_add_loss(const pl_hybrid *k, pl_op op, pl_id a, pl_id b, pl_id scale, pl_id *loss)
{
    pl_id in[6] = {a}, out = PL_NONE;
    int n = 1;
    if (b != PL_NONE) in[n++] = b;
    in[n++] = scale, in[n++] = *loss, in[n++] = PL_NONE, in[n++] = k->counted;
    *loss = pl_build_node(&k->m->b, op, NULL, n, in, 1, &out);
}

pl_id pl_hybrid_column(const pl_hybrid *k, pl_id counts, pl_hybrid_right which)
{
    const int64_t stride[] = {PL_RIGHT_COUNTS, 1};
    return k->m->b.status == PL_OK ? pl_build_view(&k->m->b, counts, pl_shape_of(2, PL_B(1), (int64_t)1), which, stride)
                                   : PL_NONE;
}

pl_id pl_hybrid_count_words(const pl_hybrid *k)
{
    pl_id counts = PL_NONE, logits = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->capsules, k->words));
    pl_build_node(&k->m->b, PL_OP_COUNT_RIGHT, NULL, 2, (pl_id[]){logits, k->labels}, 1, &counts);
    return pl_hybrid_column(k, counts, PL_RIGHT_WORDS);
}

pl_id pl_hybrid_apart(const pl_hybrid *k, pl_id a, pl_id b, pl_shape image)
{
    pl_id all = PL_NONE, energy = PL_NONE, difference = pl_model_view(k->m, pl_hybrid_minus(k, a, b), image);
    pl_build_node(&k->m->b, PL_OP_FIELD_METRICS, NULL, 1, &difference, 1, &all);
    return pl_build_node(&k->m->b, PL_OP_SLICE, (pl_attr[]){pl_attr_i(PL_FIELD_ENERGY), pl_attr_i(1)}, 1, &all, 1,
                         &energy);
}
