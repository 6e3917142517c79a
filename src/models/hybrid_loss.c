/* Terms of the losses of arch hybrid. */
#include "base/rollout.h"
#include "models/hybrid.h"

pl_id pl_hybrid_fill(const pl_hybrid *k, pl_dtype dtype, double value, pl_shape shape)
{
    pl_builder *b = &k->m->b;
    pl_fill_args fill = pl_fill_none;
    fill.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, dtype, shape, "filled.%zu",
                                b->status == PL_OK ? b->graph->value_count : 0);
    fill.value = value;
    return pl_build_fill(b, &fill);
}

pl_id pl_hybrid_number(const pl_hybrid *k, double value)
{
    return pl_hybrid_fill(k, PL_DTYPE_F32, value, pl_shape_of(1, (int64_t)1));
}

pl_id pl_hybrid_scale(const pl_hybrid *k, double weight, int64_t rows)
{
    return pl_hybrid_number(k, weight / ((double)pl_config_batch(k->m->config) * (double)rows));
}

static pl_id add_error(const pl_hybrid *k, pl_id a, pl_id b, pl_id scale, pl_id loss)
{
    pl_squared_error_args error = pl_squared_error_none;
    error.a = a, error.b = b, error.scale = scale, error.loss = loss, error.counted = k->counted;
    return pl_build_squared_error(&k->m->b, &error);
}

static pl_id add_cosine(const pl_hybrid *k, pl_id a, pl_id b, pl_id scale, pl_id loss)
{
    pl_cosine_loss_args cosine = pl_cosine_loss_none;
    cosine.a = a, cosine.b = b, cosine.scale = scale, cosine.loss = loss, cosine.counted = k->counted;
    return pl_build_cosine_loss(&k->m->b, &cosine);
}

static pl_id add_bce(const pl_hybrid *k, pl_id q, pl_id y, pl_id scale, pl_id loss)
{
    pl_bce_with_logits_args bce = pl_bce_with_logits_none;
    bce.q = q, bce.y = y, bce.scale = scale, bce.loss = loss, bce.counted = k->counted;
    return pl_build_bce_with_logits(&k->m->b, &bce);
}

static pl_id add_penalty(const pl_hybrid *k, pl_id x, pl_id scale, pl_id loss)
{
    pl_norm_penalty_args penalty = pl_norm_penalty_none;
    penalty.x = x, penalty.scale = scale, penalty.loss = loss, penalty.counted = k->counted;
    return pl_build_norm_penalty(&k->m->b, &penalty);
}

void pl_hybrid_add_loss(const pl_hybrid *k, pl_op op, pl_id a, pl_id b, pl_id scale, pl_id *loss)
{
    *loss = op == PL_OP_COSINE_LOSS       ? add_cosine(k, a, b, scale, *loss)
            : op == PL_OP_BCE_WITH_LOGITS ? add_bce(k, a, b, scale, *loss)
            : op == PL_OP_NORM_PENALTY    ? add_penalty(k, a, scale, *loss)
                                          : add_error(k, a, b, scale, *loss);
}

pl_id pl_hybrid_column(const pl_hybrid *k, pl_id counts, pl_hybrid_right which)
{
    const int64_t stride[] = {PL_RIGHT_COUNTS, 1};
    return k->m->b.status == PL_OK ? pl_build_view(&k->m->b, counts, pl_shape_of(2, PL_B(1), (int64_t)1), which, stride)
                                   : PL_NONE;
}

pl_id pl_hybrid_count_words(const pl_hybrid *k)
{
    pl_count_right_args right = pl_count_right_none;
    right.logits = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->capsules, k->words));
    right.target = k->labels;
    return pl_hybrid_column(k, pl_build_count_right(&k->m->b, &right), PL_RIGHT_WORDS);
}

pl_id pl_hybrid_apart(const pl_hybrid *k, pl_id a, pl_id b, pl_shape image)
{
    pl_field_metrics_args all = pl_field_metrics_none;
    pl_slice_args energy = pl_slice_none;
    all.x = pl_model_view(k->m, pl_hybrid_minus(k, a, b), image);
    energy.x = pl_build_field_metrics(&k->m->b, &all);
    energy.first = PL_FIELD_ENERGY, energy.channels = 1;
    return pl_build_slice(&k->m->b, &energy);
}
