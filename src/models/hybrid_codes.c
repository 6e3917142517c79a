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
        pl_id in[4] = {PL_NONE, book, PL_NONE, PL_NONE}, out[4] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE};
        in[0] = pl_model_carried(m, PL_DTYPE_F32, 0, pl_shape_of(2, k->words, k->width + 1), "codes.sums");
        in[2] = pl_model_carried(m, PL_DTYPE_F32, 1, pl_shape_of(1, k->words), "codes.sizes");
        in[3] = pl_model_carried_copy(m, book, "codes.averages");
        pl_build_node(b, PL_OP_CODE_UPDATE, (pl_attr[]){pl_attr_f(RATE), pl_attr_f(SMOOTHING)}, 4, in, 4, out);
        k->codes = (pl_hybrid_codes){out[1], out[0]};
    }
    pl_builder_leave(b);
}

pl_id pl_hybrid_find_code(const pl_hybrid *k, pl_id planned, pl_hybrid_code *found)
{
    const bool straight = k->m->config->output_head.vq_codebook == PL_CONFIG_CODEBOOK_STRAIGHT_THROUGH;
    pl_id out[2] = {PL_NONE, PL_NONE}, y = PL_NONE;
    *found = (pl_hybrid_code){PL_NONE, PL_NONE};
    if (k->codes.book == PL_NONE || (!k->m->training && !straight)) return planned;
    pl_build_node(&k->m->b, PL_OP_NEAREST_CODE, NULL, 2, (pl_id[]){planned, k->codes.book}, 2, out);
    *found = (pl_hybrid_code){out[0], out[1]};
    if (!straight) return planned;
    return pl_build_node(&k->m->b, PL_OP_STRAIGHT_THROUGH, NULL, 2, (pl_id[]){planned, out[1]}, 1, &y);
}

void pl_hybrid_learn_code(pl_hybrid *k, pl_id planned, const pl_hybrid_code *found, pl_id scale, pl_id *loss)
{
    pl_builder *b = &k->m->b;
    pl_id in[6] = {planned, found->code, scale, *loss, PL_NONE, k->counted}, out = PL_NONE, sums = PL_NONE;
    pl_builder_enter(b, "codebook");
    *loss = pl_build_node(b, PL_OP_SQUARED_ERROR, NULL, 6, in, 1, &out);
    k->codes.sums = pl_build_node(b, PL_OP_CODE_SUM, NULL, 4,
                                  (pl_id[]){found->index, planned, k->codes.sums, k->counted}, 1, &sums);
    pl_builder_leave(b);
}
