#include "models/language.h"

/* Rows of logits alive at once: half a megabyte of them, at least 32 rows. */
static int64_t chunk_rows(int64_t vocab)
{
    int64_t rows = (512 << 10) / (4 * vocab) / 32 * 32;
    return rows < 32 ? 32 : rows;
}

/* train and evaluate: loss += Σ over the micro-batches */
static pl_status build_loss_program(pl_language *l, const char *name, bool training)
{
    pl_model *m = l->m;
    pl_graph *g = m->b.graph;
    pl_id program = pl_model_begin_program(m, name), weight = PL_NONE, out = PL_NONE;
    m->training = training;
    l->generating = false;
    pl_builder *b = &m->b;
    pl_id loss = pl_build_temporary(b, PL_ROLE_OUTPUT, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "%s.loss", name);
    pl_id zeroed = loss;
    pl_build_node(b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &zeroed);
    if (b->status != PL_OK) return b->status;
    b->region = pl_graph_add_region(g, "micro", program, 1);
    if (b->region == PL_NONE) return pl_fail(m->err, PL_E_NOMEM, "no memory for the graph");
    pl_builder_enter(b, "data");
    pl_shape shape = pl_shape_of(2, PL_B(1), m->config->model.sequence);
    pl_id load[2] = {pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_I32, shape, "%s.tokens", name),
                     pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_I32, shape, "%s.targets", name)};
    pl_build_node(b, PL_OP_LOAD, NULL, 0, NULL, 2, load);
    if (b->status == PL_OK) g->node[g->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
    pl_id h = l->hidden(l, load[0], &weight);
    pl_builder_enter(b, "loss");
    pl_build_node(b, PL_OP_LINEAR_CE, (pl_attr[]){pl_attr_i(chunk_rows(l->vocab))}, 5,
                  (pl_id[]){h, weight, load[1], m->input[PL_INPUT_ITEM_SCALE], loss}, 1, &out);
    return b->status;
}

static pl_status build_generate_program(pl_language *l)
{
    pl_model *m = l->m;
    pl_model_begin_program(m, "generate");
    m->training = false;
    l->generating = true;
    const int64_t n = l->read, width = m->config->model.width;
    pl_id weight = PL_NONE, out = PL_NONE;
    pl_builder *b = &m->b;
    pl_id tokens = pl_build_temporary(b, PL_ROLE_INPUT, PL_DTYPE_I32, pl_shape_of(2, (int64_t)1, n), "generate.tokens");
    pl_id h = l->hidden(l, tokens, &weight);
    if (b->status == PL_OK && n > 1)
        h = pl_build_view(b, h, pl_shape_of(3, (int64_t)1, (int64_t)1, width), (n - 1) * width, NULL);
    pl_builder_enter(b, "head");
    pl_id logits = pl_build_temporary(b, PL_ROLE_OUTPUT, PL_DTYPE_F32, pl_shape_of(3, (int64_t)1, (int64_t)1, l->vocab),
                                      "generate.logits");
    out = logits;
    pl_build_node(b, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 4, (pl_id[]){h, weight, PL_NONE, PL_NONE}, 1,
                  &out);
    return b->status;
}

/* A number in the config is checked against that of the tokenizer. */
static pl_status find_vocab(pl_language *l)
{
    const int64_t asked = l->m->config->model.vocab_size;
    l->vocab = (int64_t)pl_facts_value(l->m->extents, "vocab", 0);
    if (asked == PL_CONFIG_AUTO || asked == l->vocab) return PL_OK;
    return pl_fail(l->m->err, PL_E_CONFIG,
                   "model.vocab_size is %lld but the tokenizer has %lld tokens; set it to auto or to that number",
                   (long long)asked, (long long)l->vocab);
}

pl_status pl_language_build(pl_language *l)
{
    static const pl_input inputs[] = {PL_INPUT_LR, PL_INPUT_STEP, PL_INPUT_ITEM_SCALE, PL_INPUT_FIRST_SAMPLE,
                                      PL_INPUT_POSITION};
    PL_TRY(find_vocab(l));
    pl_model_inputs(l->m, inputs, sizeof inputs / sizeof *inputs);
    PL_TRY(l->m->b.status);
    PL_TRY(build_loss_program(l, "train", true));
    PL_TRY(build_loss_program(l, "evaluate", false));
    return build_generate_program(l);
}
