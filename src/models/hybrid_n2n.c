/* The training of the adapter alone (docs/hybrid.md), by Noise2Noise (Lehtinen 2018): a page's features, as the frozen
 * tower makes them, are made noisy twice, and the adapter is to make of each what the other is,
 * (mse(A(f1), f2) + mse(A(f2), f1)) / 2. The noise leaves features out, each with the same probability, and makes the
 * others larger: its mean is zero and the two are independent, so what comes nearest to the noisy target comes nearest
 * to the clean features. Evaluation knows those, and asks how far from them the adapter's output is. */
#include "models/hybrid.h"

static pl_id noisy(const pl_hybrid *k, pl_id f, const char *which)
{
    pl_model *m = k->m;
    pl_dropout_args drop = pl_dropout_none;
    drop.x = f, drop.first_sample = m->input[PL_INPUT_FIRST_SAMPLE];
    /* An evaluation has the same noise at every step of a training. */
    drop.step = m->training ? m->input[PL_INPUT_STEP] : pl_hybrid_fill(k, PL_DTYPE_I64, 0, pl_shape_of(1, (int64_t)1));
    drop.probability = m->config->n2n_pretrain.noise;
    drop.seed = m->config->train.seed, drop.stream = pl_model_stream(m, which);
    return pl_build_dropout(&m->b, &drop);
}

static pl_id adapt(const pl_hybrid *k, pl_id f, const char *which)
{
    pl_builder_enter(&k->m->b, "%s", which);
    pl_id y = pl_hybrid_adapt(k, f);
    pl_builder_leave(&k->m->b);
    return y;
}

/* Columns of base/told.h, and the gates themselves. */
static void tell(const pl_hybrid *k, pl_id clean, pl_id noisy, pl_id cleaned)
{
    const pl_shape features = pl_shape_of(4, PL_B(1), (int64_t)1, k->tokens, k->width);
    pl_concat_args row = pl_concat_none;
    pl_store_args store = pl_store_none;
    pl_builder_enter(&k->m->b, "told");
    pl_id wide = pl_hybrid_cast(k, clean);
    row.part[0] = pl_hybrid_apart(k, pl_hybrid_cast(k, noisy), wide, features);
    row.part[1] = pl_hybrid_apart(k, pl_hybrid_cast(k, cleaned), wide, features);
    row.part[2] = pl_hybrid_spread(k, k->told->adapter_gates);
    store.port[0] = pl_build_concat(&k->m->b, &row), store.port[1] = k->told->adapter_gates;
    pl_build_store(&k->m->b, &store);
    pl_builder_leave(&k->m->b);
}

static void learn(const pl_hybrid *k, pl_id clean, pl_id *loss)
{
    pl_id first = noisy(k, clean, "first"), second = noisy(k, clean, "second");
    pl_id of_first = adapt(k, first, "first"), of_second = adapt(k, second, "second");
    pl_id scale = pl_hybrid_scale(k, 0.5, k->tokens * k->width);
    pl_hybrid_add_loss(k, PL_OP_SQUARED_ERROR, of_first, second, scale, loss);
    pl_hybrid_add_loss(k, PL_OP_SQUARED_ERROR, of_second, first, scale, loss);
}

static void evaluate(const pl_hybrid *k, pl_id clean, pl_id *loss)
{
    pl_id made_noisy = noisy(k, clean, "held_out"), cleaned = pl_hybrid_adapt(k, made_noisy);
    pl_hybrid_add_loss(k, PL_OP_SQUARED_ERROR, cleaned, clean, pl_hybrid_number(k, 1 / (double)(k->tokens * k->width)),
                       loss);
    tell(k, clean, made_noisy, cleaned);
}

void pl_hybrid_learn_from_noise(pl_hybrid *k, pl_id pages, pl_id *loss)
{
    pl_id clean = pl_hybrid_see_frozen(k, pages);
    pl_builder_enter(&k->m->b, "n2n");
    k->counted = pl_hybrid_count_words(k);
    if (k->m->training)
        learn(k, clean, loss);
    else
        evaluate(k, clean, loss);
    pl_builder_leave(&k->m->b);
}
