/* Terms of the losses of arch hybrid. */
#include "base/rollout.h"
#include "models/hybrid.h"

pl_id pl_hybrid_fill(const pl_hybrid *k, pl_dtype dtype, double value, pl_shape shape)
{
    const size_t number = k->n->b.status == PL_OK ? k->n->b.graph->value_count : 0;
    return pl_net_fill(k->n, dtype, value, shape, "filled.%zu", number);
}

pl_id pl_hybrid_number(const pl_hybrid *k, double value)
{
    return pl_hybrid_fill(k, PL_DTYPE_F32, value, pl_shape_of(1, (int64_t)1));
}

pl_id pl_hybrid_scale(const pl_hybrid *k, double weight, int64_t rows)
{
    return pl_hybrid_number(k, weight / ((double)pl_config_batch(k->m->config) * (double)rows));
}

pl_loss_term pl_hybrid_term(const pl_hybrid *k, pl_id scale, pl_id sum)
{
    return (pl_loss_term){.scale = scale, .counted = k->counted, .sum = sum};
}

pl_id pl_hybrid_column(const pl_hybrid *k, pl_id counts, pl_hybrid_right which)
{
    const int64_t stride[] = {PL_RIGHT_COUNTS, 1};
    return k->n->b.status == PL_OK ? pl_build_view(&k->n->b, counts, pl_shape_of(2, PL_B(1), (int64_t)1), which, stride)
                                   : PL_NONE;
}

pl_id pl_hybrid_count_words(const pl_hybrid *k)
{
    pl_count_right_args right = pl_count_right_none;
    right.logits = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->capsules, k->words));
    right.target = k->labels;
    return pl_hybrid_column(k, pl_build_count_right(&k->n->b, &right), PL_RIGHT_WORDS);
}

pl_id pl_hybrid_apart(const pl_hybrid *k, pl_id a, pl_id b, pl_shape image)
{
    pl_field_metrics_args all = pl_field_metrics_none;
    all.x = pl_net_view(k->n, pl_hybrid_minus(k, a, b), image);
    return pl_net_slice(k->n, pl_build_field_metrics(&k->n->b, &all), PL_FIELD_ENERGY, 1);
}
