#include "models/language.h"

static void add_loss(const pl_language *l, pl_id h, pl_id weight, pl_id targets, pl_id loss)
{
    pl_net *n = &l->m->net;
    pl_linear_args logits = pl_linear_none;
    const pl_id scale = n->input[PL_INPUT_ITEM_SCALE];
    pl_builder_enter(&n->b, "loss");
    if (l->cap == 0) return (void)pl_net_linear_cross_entropy(n, h, weight, targets, scale, loss);
    const pl_loss_term term = pl_loss_term_of(scale, loss);
    logits.x = pl_net_flow(n, h, weight), logits.weight = weight, logits.act = PL_ACT_NONE;
    pl_net_cross_entropy(n, pl_net_cap(n, pl_build_linear(&n->b, &logits), l->cap), targets, &term);
}

/* train and evaluate: loss += Σ over the micro-batches */
static pl_status build_loss_program(pl_language *l, const char *name, bool training)
{
    pl_model *m = l->m;
    const pl_shape shape = pl_shape_of(2, PL_B(1), l->sequence);
    const pl_model_port ports[] = {{"tokens", PL_DTYPE_I32, shape}, {"targets", PL_DTYPE_I32, shape}};
    pl_id program = pl_model_begin_program(m, name), weight = PL_NONE, load[2];
    m->net.training = training;
    l->generating = false;
    pl_id loss = pl_model_loss(m, name);
    PL_TRY(pl_model_begin_micro(m, program, ports, 2, load));
    pl_id h = l->hidden(l, load[0], &weight);
    add_loss(l, h, weight, load[1], loss);
    return m->net.b.status;
}

static int64_t sequences_of(const pl_language *l) { return l->sequences ? l->sequences : 1; }

static void build_logits(pl_language *l, pl_id h, pl_id weight)
{
    pl_net *n = &l->m->net;
    pl_linear_args logits = pl_linear_none;
    pl_scale_args capped = pl_scale_none;
    const pl_shape shape = pl_shape_of(3, sequences_of(l), (int64_t)1, l->vocab);
    pl_builder_enter(&n->b, "head");
    const pl_id output = pl_build_temporary(&n->b, PL_ROLE_OUTPUT, PL_DTYPE_F32, shape, "generate.logits");
    logits.x = pl_net_flow(n, h, weight), logits.weight = weight, logits.act = PL_ACT_NONE;
    logits.y = l->cap > 0 ? PL_NONE : output;
    const pl_id y = pl_build_linear(&n->b, &logits);
    if (l->cap == 0) return;
    capped.x = pl_net_activate(n, PL_ACT_TANH, pl_net_scale(n, y, 1 / l->cap));
    capped.factor = l->cap, capped.y = output;
    pl_build_scale(&n->b, &capped);
}

static pl_status build_generate_program(pl_language *l)
{
    pl_net *n = &l->m->net;
    pl_model_begin_program(l->m, "generate");
    n->training = false;
    l->generating = true;
    pl_id weight = PL_NONE;
    const pl_shape shape = pl_shape_of(2, sequences_of(l), l->read), each = pl_shape_of(1, sequences_of(l));
    pl_id tokens = pl_build_temporary(&n->b, PL_ROLE_INPUT, PL_DTYPE_I32, shape, "generate.tokens");
    const pl_id position = n->input[PL_INPUT_POSITION];
    if (sequences_of(l) > 1)
        n->input[PL_INPUT_POSITION] =
            pl_build_temporary(&n->b, PL_ROLE_INPUT, PL_DTYPE_I64, each, "generate.positions");
    pl_id h = l->hidden(l, tokens, &weight);
    n->input[PL_INPUT_POSITION] = position;
    const int64_t width = pl_net_last_extent(n, h);
    if (n->b.status == PL_OK && l->read > 1)
        h = pl_build_view(&n->b, h, pl_shape_of(3, (int64_t)1, (int64_t)1, width), (l->read - 1) * width, NULL);
    build_logits(l, h, weight);
    return n->b.status;
}

/* A number in the config is checked against that of the tokenizer. */
static pl_status find_vocab(pl_language *l)
{
    const int64_t asked = l->m->config->model.vocab_size;
    l->vocab = (int64_t)pl_facts_value(l->m->extents, "vocab", 0);
    if (asked == PL_CONFIG_AUTO || asked == l->vocab) return PL_OK;
    return pl_fail(l->m->net.err, PL_E_CONFIG,
                   "model.vocab_size is %lld but the tokenizer has %lld tokens; set it to auto or to that number",
                   (long long)asked, (long long)l->vocab);
}

pl_status pl_language_build(pl_language *l)
{
    static const pl_input inputs[] = {PL_INPUT_LR, PL_INPUT_STEP, PL_INPUT_ITEM_SCALE, PL_INPUT_FIRST_SAMPLE,
                                      PL_INPUT_POSITION};
    PL_TRY(find_vocab(l));
    pl_model_inputs(l->m, inputs, sizeof inputs / sizeof *inputs);
    PL_TRY(l->m->net.b.status);
    if (!l->only_used) PL_TRY(build_loss_program(l, "train", true));
    PL_TRY(build_loss_program(l, "evaluate", false));
    return build_generate_program(l);
}
