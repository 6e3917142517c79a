/* Latent thoughts (arch chain; docs/chain.md, Hao et al. 2024, arXiv 2412.06769): gpt's blocks and weights, under its
 * names, over chains of thought (data/text/chains.h).
 *
 * Between bot and eot nothing is decoded: what goes in at a latent's place t is h(t − 1) + P[t], where h is what came
 * out of the last norm one place before. So latent i is known when the sequence up to it has been through all blocks,
 * and n latents take n passes over what is before them, each a token longer than the one before, and one over the
 * whole sequence. Every pass computes its prefix anew; gradients go back through all of them.
 *
 *     x₀ = tokens of question and bot;   xᵢ₊₁ = xᵢ, last(blocks(xᵢ)) + P;   loss(blocks(xₙ, eot and what follows))
 *
 * One graph holds three programs: init, train, evaluate. "train.loss", "evaluate.loss" f64 [1]: sums of cross-entropy
 * of what follows eot. "evaluate" stores of each chain what base/chain.h lists. */
#include <inttypes.h>

#include "base/chain.h"
#include "base/row_loss.h"
#include "models/gpt.h"

enum { LATENTS_MAX = 256, SEQUENCE_MAX = 65535 };

typedef struct chain {
    pl_language l;
    pl_net *n;
    int64_t width, sequence;
    int64_t prefix;  /* question and bot */
    int64_t latents; /* n */
    int64_t rest;    /* eot, and what follows but the last */
} chain;

/* ---- rows of a sample lie one after the other, so a run of them is a slice of all its numbers ---- */

static pl_id flat(const chain *c, pl_id x, int64_t rows)
{
    return pl_net_view(c->n, x, pl_shape_of(2, PL_B(1), rows * c->width));
}

static pl_id unfold(const chain *c, pl_id x, int64_t rows)
{
    return pl_net_view(c->n, x, pl_shape_of(3, PL_B(1), rows, c->width));
}

static pl_id take_rows(const chain *c, pl_id x, int64_t first, int64_t rows)
{
    return pl_net_slice(c->n, x, first * c->width, rows * c->width);
}

/* ---- forward ---- */

/* At a latent's place, whose token is −1, its position alone. */
static pl_id embed(const chain *c, pl_id tokens)
{
    pl_builder *b = &c->n->b;
    pl_embedding_args e = pl_embedding_none;
    pl_builder_enter(b, "embedding");
    e.tokens = tokens, e.table = pl_gpt_token_table(&c->l), e.window = 1;
    pl_build_embedding(b, &e);
    pl_id x = pl_net_add_positions(c->n, e.x, pl_gpt_place_table(&c->l));
    pl_builder_leave(b);
    return flat(c, x, c->sequence);
}

/* x, which has so many rows, and the latent after it. */
static pl_id think(const chain *c, pl_id embedded, pl_id x, int64_t rows)
{
    pl_id h = flat(c, pl_gpt_through(&c->l, unfold(c, x, rows)), rows);
    pl_id place = take_rows(c, embedded, rows, 1), last = take_rows(c, h, rows - 1, 1);
    return pl_net_join(c->n, x, pl_net_add(c->n, place, last));
}

/* [B,rest,width]: what the tokens after the latents are read from. */
static pl_id go_through(const chain *c, pl_id tokens)
{
    pl_builder *b = &c->n->b;
    pl_id embedded = embed(c, tokens), x = embedded;
    if (c->latents) x = take_rows(c, embedded, 0, c->prefix);
    for (int64_t i = 0; i < c->latents; i++) {
        pl_builder_enter(b, "latent.%d", (int)i);
        x = think(c, embedded, x, c->prefix + i);
        pl_builder_leave(b);
    }
    const int64_t before = c->prefix + c->latents;
    if (c->latents) x = pl_net_join(c->n, x, take_rows(c, embedded, before, c->rest));
    pl_id h = pl_gpt_through(&c->l, unfold(c, x, c->sequence));
    return unfold(c, take_rows(c, flat(c, h, c->sequence), before, c->rest), c->rest);
}

/* ---- programs ---- */

static pl_id count_right(const chain *c, pl_id logits, pl_id targets)
{
    pl_count_right_args a = pl_count_right_none;
    a.logits = logits, a.target = targets;
    return pl_build_count_right(&c->n->b, &a);
}

static void tell(const chain *c, pl_id logits, pl_id targets, pl_id answers)
{
    pl_builder *b = &c->n->b;
    pl_store_args told = pl_store_none;
    pl_builder_enter(b, "told");
    const pl_id right = count_right(c, logits, targets), answered = count_right(c, logits, answers);
    told.port[0] = pl_net_join(c->n, right, answered);
    pl_build_store(b, &told);
    pl_builder_leave(b);
}

/* Tokens are counted in logits, so the loss is read off them, too. */
static void evaluate(const chain *c, pl_id h, pl_id weight, const pl_id load[3], pl_id loss)
{
    const pl_id logits = pl_net_linear(c->n, h, (pl_affine){weight, PL_NONE}, PL_NONE);
    const pl_id one = pl_net_fill(c->n, PL_DTYPE_F32, 1, pl_shape_of(1, (int64_t)1), "evaluate.one");
    const pl_loss_term term = pl_loss_term_of(one, loss);
    pl_net_cross_entropy(c->n, logits, load[1], &term);
    tell(c, logits, load[1], load[2]);
}

static pl_status build_program(chain *c, const char *name, bool training)
{
    pl_model *m = c->l.m;
    const pl_shape tokens = pl_shape_of(2, PL_B(1), c->sequence), rest = pl_shape_of(2, PL_B(1), c->rest);
    const pl_model_port ports[] = {
        {"tokens", PL_DTYPE_I32, tokens}, {"targets", PL_DTYPE_I32, rest}, {"answers", PL_DTYPE_I32, rest}};
    pl_id program = pl_model_begin_program(m, name), load[3];
    m->net.training = training;
    pl_id loss = pl_model_loss(m, name);
    PL_TRY(pl_model_begin_micro(m, program, ports, 3, load));
    pl_id h = go_through(c, load[0]), weight = pl_gpt_output_weight(&c->l);
    pl_builder_enter(&m->net.b, "loss");
    if (training)
        pl_net_linear_cross_entropy(&m->net, h, weight, load[1], m->net.input[PL_INPUT_ITEM_SCALE], loss);
    else
        evaluate(c, h, weight, load, loss);
    pl_builder_leave(&m->net.b);
    return m->net.b.status;
}

static int64_t latents_of(const pl_config *c) { return c->chain.latents * c->chain.replaced; }
static int64_t rest_of(const pl_config *c) { return c->model.sequence - c->chain.question - 1 - latents_of(c); }

static pl_status build(pl_model *m)
{
    static const pl_input inputs[] = {PL_INPUT_LR, PL_INPUT_STEP, PL_INPUT_ITEM_SCALE, PL_INPUT_FIRST_SAMPLE};
    const pl_config *cfg = m->config;
    chain c = {.l = {.m = m, .vocab = PL_CHAIN_VOCAB, .read = 1},
               .n = &m->net,
               .width = cfg->model.width,
               .sequence = cfg->model.sequence,
               .prefix = cfg->chain.question + 1,
               .latents = latents_of(cfg),
               .rest = rest_of(cfg)};
    pl_model_inputs(m, inputs, sizeof inputs / sizeof *inputs);
    PL_TRY(m->net.b.status);
    PL_TRY(build_program(&c, "train", true));
    return build_program(&c, "evaluate", false);
}

/* ---- its part of a config ---- */

/* After eot the shortest has the mark, one byte of an answer and the end. */
static pl_status check(const pl_config *c, pl_error *err)
{
    enum { SHORTEST = 3 };
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t latents = latents_of(c), least = c->chain.question + 1 + latents + SHORTEST;
    if (latents > LATENTS_MAX)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: chain.latents %" PRId64 " for each of %" PRId64 " steps (chain.replaced) are more than the "
                       "%d latents that a sequence may have, each a pass of its own; take fewer",
                       pl_config_blame(c, "chain.latents", "chain.replaced", where), c->chain.latents,
                       c->chain.replaced, LATENTS_MAX);
    if (c->model.sequence > SEQUENCE_MAX)
        return pl_fail(err, PL_E_CONFIG, "%s: model.sequence %" PRId64 " is more than the %d tokens of a chain",
                       pl_config_where(c, "model.sequence", where, sizeof where), c->model.sequence, SEQUENCE_MAX);
    if (c->model.sequence < least)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.sequence %" PRId64 " has no room for a question of %" PRId64
                       " tokens (chain.question), %" PRId64 " latents and an answer; make it %" PRId64 " at least",
                       pl_config_blame(c, "model.sequence", "chain.question", where), c->model.sequence,
                       c->chain.question, latents, least);
    return pl_gpt_check(c, err);
}

const pl_arch pl_arch_chain = {.build = build, .check = check, .plan_bytes_per_layer = 16 << 10};
