/* The training of the adapter alone (docs/hybrid.md), by Noise2Noise (Lehtinen 2018): a page's features, as the frozen
 * tower makes them, are made noisy twice, and the adapter is to make of each what the other is,
 * (mse(A(f1), f2) + mse(A(f2), f1)) / 2. The noise leaves features out, each with the same probability, and makes the
 * others larger: its mean is zero and the two are independent, so what comes nearest to the noisy target comes nearest
 * to the clean features. Evaluation knows those, and asks how far from them the adapter's output is. */
#include "models/hybrid.h"

static pl_id noisy(const pl_hybrid *k, pl_id f, const char *which)
{
    const pl_config *c = k->m->config;
    pl_net *n = k->n;
    pl_dropout_args drop = pl_dropout_none;
    drop.x = f, drop.first_sample = n->input[PL_INPUT_FIRST_SAMPLE];
    /* An evaluation has the same noise at every step of a training. */
    drop.step = n->training ? n->input[PL_INPUT_STEP] : pl_hybrid_fill(k, PL_DTYPE_I64, 0, pl_shape_of(1, (int64_t)1));
    drop.probability = c->n2n_pretrain.noise;
    drop.seed = n->dropout_seed, drop.stream = pl_net_stream(k->n, which);
    return pl_build_dropout(&n->b, &drop);
}

static pl_id adapt(const pl_hybrid *k, pl_id f, const char *which)
{
    pl_builder_enter(&k->n->b, "%s", which);
    pl_id y = pl_hybrid_adapt(k, f);
    pl_builder_leave(&k->n->b);
    return y;
}

/* Columns of base/told.h, and the gates themselves. */
static void tell(const pl_hybrid *k, pl_id clean, pl_id noisy, pl_id cleaned)
{
    const pl_shape features = pl_shape_of(4, PL_B(1), (int64_t)1, k->tokens, k->width);
    pl_concat_args row = pl_concat_none;
    pl_store_args store = pl_store_none;
    pl_builder_enter(&k->n->b, "told");
    pl_id wide = pl_hybrid_cast(k, clean);
    row.part[0] = pl_hybrid_apart(k, pl_hybrid_cast(k, noisy), wide, features);
    row.part[1] = pl_hybrid_apart(k, pl_hybrid_cast(k, cleaned), wide, features);
    row.part[2] = pl_hybrid_spread(k, k->told->adapter_gates);
    store.port[0] = pl_build_concat(&k->n->b, &row), store.port[1] = k->told->adapter_gates;
    pl_build_store(&k->n->b, &store);
    pl_builder_leave(&k->n->b);
}

static void learn(const pl_hybrid *k, pl_id clean, pl_id *loss)
{
    pl_id first = noisy(k, clean, "first"), second = noisy(k, clean, "second");
    pl_id of_first = adapt(k, first, "first"), of_second = adapt(k, second, "second");
    pl_id scale = pl_hybrid_scale(k, 0.5, k->tokens * k->width);
    pl_loss_term term = pl_hybrid_term(k, scale, *loss);
    term.sum = pl_net_squared_error(k->n, of_first, second, &term);
    *loss = pl_net_squared_error(k->n, of_second, first, &term);
}

static void evaluate(const pl_hybrid *k, pl_id clean, pl_id *loss)
{
    pl_id made_noisy = noisy(k, clean, "held_out"), cleaned = pl_hybrid_adapt(k, made_noisy);
    pl_id scale = pl_hybrid_number(k, 1 / (double)(k->tokens * k->width));
    const pl_loss_term term = pl_hybrid_term(k, scale, *loss);
    *loss = pl_net_squared_error(k->n, cleaned, clean, &term);
    tell(k, clean, made_noisy, cleaned);
}

void pl_hybrid_learn_from_noise(pl_hybrid *k, pl_id pages, pl_id *loss)
{
    pl_id clean = pl_hybrid_see_frozen(k, pages);
    pl_builder_enter(&k->n->b, "n2n");
    k->counted = pl_hybrid_count_words(k);
    if (k->n->training)
        learn(k, clean, loss);
    else
        evaluate(k, clean, loss);
    pl_builder_leave(&k->n->b);
}
