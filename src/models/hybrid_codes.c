/* The codebook of the output head (docs/hybrid.md): a code for each word, which is no weight but the average of the
 * capsules to which it is the nearest. All codes begin with the size 1, so one that is never the nearest stays. */
#include "models/hybrid.h"

#define RATE      0.99
#define SMOOTHING 1e-5

void pl_hybrid_begin_codes(pl_hybrid *k)
{
    pl_net *n = k->n;
    pl_builder *b = &n->b;
    k->codes = (pl_hybrid_codes){PL_NONE, PL_NONE};
    if (k->m->config->output_head.vq_codebook == PL_CONFIG_CODEBOOK_NONE) return;
    pl_builder_enter(b, "codebook");
    const int64_t controls = PL_HYBRID_CONTROLS;
    pl_id book = pl_net_state(n, pl_init_within(1 / (double)k->words), pl_shape_of(2, k->words, k->width),
                              "output_head.vq_codebook");
    const bool before = pl_net_freeze(n, true);
    pl_net_weight(n, pl_init_normal(1), PL_DTYPE_F32, pl_shape_of(2, controls, k->width),
                  "output_head.control_embeddings");
    pl_net_thaw(n, before);
    k->codes.book = book;
    if (n->training) {
        pl_code_update_args u = pl_code_update_none;
        u.sums = pl_net_carried(n, pl_init_all(0), PL_DTYPE_F32, pl_shape_of(2, k->words, k->width + 1), "codes.sums");
        u.codebook = book;
        u.sizes = pl_net_carried(n, pl_init_all(1), PL_DTYPE_F32, pl_shape_of(1, k->words), "codes.sizes");
        u.averages = pl_net_carried_copy(n, book, "codes.averages");
        u.rate = RATE, u.eps = SMOOTHING;
        pl_build_code_update(b, &u);
        k->codes = (pl_hybrid_codes){.book = u.codebook_new, .sums = u.sums_new};
    }
    pl_builder_leave(b);
}

pl_id pl_hybrid_find_code(const pl_hybrid *k, pl_id planned, pl_hybrid_code *found)
{
    const bool straight = k->m->config->output_head.vq_codebook == PL_CONFIG_CODEBOOK_STRAIGHT_THROUGH;
    pl_nearest_code_args nearest = pl_nearest_code_none;
    pl_straight_through_args through = pl_straight_through_none;
    *found = (pl_hybrid_code){PL_NONE, PL_NONE};
    if (k->codes.book == PL_NONE || (!k->n->training && !straight)) return planned;
    nearest.z = planned, nearest.codebook = k->codes.book;
    pl_build_nearest_code(&k->n->b, &nearest);
    *found = (pl_hybrid_code){.index = nearest.index, .code = nearest.code};
    if (!straight) return planned;
    through.z = planned, through.code = nearest.code;
    return pl_build_straight_through(&k->n->b, &through);
}

void pl_hybrid_learn_code(pl_hybrid *k, pl_id planned, const pl_hybrid_code *found, pl_id scale, pl_id *loss)
{
    pl_builder *b = &k->n->b;
    pl_code_sum_args sum = pl_code_sum_none;
    pl_builder_enter(b, "codebook");
    const pl_loss_term term = pl_hybrid_term(k, scale, *loss);
    *loss = pl_net_squared_error(k->n, planned, found->code, &term);
    sum.index = found->index, sum.z = planned, sum.sums = k->codes.sums, sum.counted = k->counted;
    k->codes.sums = pl_build_code_sum(b, &sum);
    pl_builder_leave(b);
}
