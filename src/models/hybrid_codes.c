/* The codebook of the output head (docs/hybrid.md): a code for each word, which is no weight but the average of the
 * capsules to which it is the nearest. All codes begin with the size 1, so one that is never the nearest stays. */
#include "models/hybrid.h"

#define RATE      0.99
#define SMOOTHING 1e-5

void pl_hybrid_begin_codes(pl_hybrid *k)
{
    pl_model *m = k->m;
    pl_builder *b = &m->b;
    k->codes = (pl_hybrid_codes){PL_NONE, PL_NONE};
    if (m->config->output_head.vq_codebook == PL_CONFIG_CODEBOOK_NONE) return;
    pl_builder_enter(b, "codebook");
    const double bound = 1 / (double)k->words;
    pl_id book =
        pl_model_uniform_state(m, -bound, bound, pl_shape_of(2, k->words, k->width), "output_head.vq_codebook");
    pl_model_freeze(
        m, true,
        pl_model_normal(m, 1, pl_shape_of(2, (int64_t)PL_HYBRID_CONTROLS, k->width), "output_head.control_embeddings"));
    k->codes.book = book;
    if (m->training) {
        pl_code_update_args u = pl_code_update_none;
        u.sums = pl_model_carried(m, PL_DTYPE_F32, 0, pl_shape_of(2, k->words, k->width + 1), "codes.sums");
        u.codebook = book;
        u.sizes = pl_model_carried(m, PL_DTYPE_F32, 1, pl_shape_of(1, k->words), "codes.sizes");
        u.averages = pl_model_carried_copy(m, book, "codes.averages");
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
    if (k->codes.book == PL_NONE || (!k->m->training && !straight)) return planned;
    nearest.z = planned, nearest.codebook = k->codes.book;
    pl_build_nearest_code(&k->m->b, &nearest);
    *found = (pl_hybrid_code){.index = nearest.index, .code = nearest.code};
    if (!straight) return planned;
    through.z = planned, through.code = nearest.code;
    return pl_build_straight_through(&k->m->b, &through);
}

void pl_hybrid_learn_code(pl_hybrid *k, pl_id planned, const pl_hybrid_code *found, pl_id scale, pl_id *loss)
{
    pl_builder *b = &k->m->b;
    pl_code_sum_args sum = pl_code_sum_none;
    pl_builder_enter(b, "codebook");
    pl_hybrid_add_loss(k, PL_OP_SQUARED_ERROR, planned, found->code, scale, loss);
    sum.index = found->index, sum.z = planned, sum.sums = k->codes.sums, sum.counted = k->counted;
    k->codes.sums = pl_build_code_sum(b, &sum);
    pl_builder_leave(b);
}
