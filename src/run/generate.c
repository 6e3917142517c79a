/* Text, token by token. With a key-value cache (the program takes one token and its place) the prompt goes through it
 * first; when all places are used, the second half of the context is fed again from place 0. Without one (the
 * perceptron) the program takes the last n tokens. */
#include <string.h>

#include "data/encoder.h"
#include "run/history.h"
#include "run/session_impl.h"

typedef struct generator {
    pl_session *s;
    const pl_sampling *sampling;
    int32_t *input;
    uint64_t width;    /* tokens the program takes */
    uint64_t room;     /* places of the cache */
    uint64_t position; /* next place */
    pl_history history;
    pl_decoder decoder;
} generator;

/* Tokens that the program takes; 0: the plan has none that generates. */
static uint64_t program_width(const pl_graph *graph)
{
    pl_id tokens = pl_graph_find_value(graph, "generate.tokens");
    return tokens == PL_NONE ? 0 : pl_shape_elems(&graph->value[tokens].shape);
}

/* The sampler's workspace, and behind it the last tokens. */
uint64_t pl_session_sampling_bytes(const pl_graph *graph, const pl_run_settings *r)
{
    uint64_t width = program_width(graph), history = width ? pl_history_room(width, r->sequence) : 0;
    return pl_sample_workspace_bytes(r->vocab) + history * sizeof(int32_t);
}

static pl_status feed_cached(generator *g, int32_t token, pl_error *err)
{
    *g->s->position = (int64_t)g->position++;
    g->input[0] = token;
    return pl_session_run_program(g->s, g->s->generate, false, err);
}

static pl_status feed(generator *g, int32_t token, pl_error *err)
{
    pl_history_add(&g->history, token);
    uint64_t count = g->history.count, again = g->history.room;
    if (g->width > 1) {
        for (uint64_t i = 0; i < g->width; i++) g->input[i] = pl_history_at(&g->history, count + i - g->width);
        return pl_session_run_program(g->s, g->s->generate, false, err);
    }
    if (g->position < g->room) return feed_cached(g, token, err);
    g->position = 0;
    for (uint64_t i = count - again; i < count; i++) PL_TRY(feed_cached(g, pl_history_at(&g->history, i), err));
    return PL_OK;
}

static void tell_bytes(generator *g, const uint8_t *text, size_t bytes)
{
    if (bytes)
        pl_session_tell(g->s, (pl_event){.kind = PL_EVENT_TEXT, .text = (const char *)text, .text_bytes = bytes});
}

static void tell_token(generator *g, uint32_t id)
{
    uint8_t text[PL_TOKEN_BYTES_MAX + 8];
    tell_bytes(g, text, pl_decoder_push(&g->decoder, g->s->tokenizer, id, text));
}

static pl_status generate(generator *g, pl_error *err)
{
    pl_session *s = g->s;
    const float *logits = pl_session_value(s, "generate.logits");
    void *workspace = pl_session_value(s, PL_STAGING_SAMPLING);
    if (!logits || !workspace || !g->input) return pl_fail(err, PL_E_USAGE, "this plan cannot generate");
    for (uint64_t i = 0; i < g->sampling->tokens && !pl_session_should_stop(s); i++) {
        uint32_t id = pl_sample_token(logits, s->settings->vocab, g->sampling, g->history.count, workspace);
        tell_token(g, id);
        if (i + 1 < g->sampling->tokens) PL_TRY(feed(g, (int32_t)id, err));
    }
    uint8_t rest[4];
    tell_bytes(g, rest, pl_decoder_finish(&g->decoder, rest));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_TEXT_END});
    /* A sample between training steps is cut short too, but there the run itself reports the stop. */
    if (s->train != PL_NONE || !pl_session_should_stop(s)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped before all tokens were written");
}

/* An encoder needs memory, so the prompt becomes ids before commit. An empty one is a line's beginning. */
pl_status pl_session_encode_prompt(pl_session *s, pl_error *err)
{
    const char *prompt = s->settings->prompt && s->settings->prompt[0] ? s->settings->prompt : "\n";
    if (s->generate == PL_NONE || !s->tokenizer) return PL_OK;
    PL_TRY(pl_encode(s->tokenizer, prompt, strlen(prompt), &s->prompt_id, &s->prompt_count, err));
    for (size_t i = 0; i < s->prompt_count; i++)
        if (s->prompt_id[i] >= s->settings->vocab)
            return pl_fail(err, PL_E_DATA, "the prompt has the id %u, the model a vocabulary of %u", s->prompt_id[i],
                           s->settings->vocab);
    return s->prompt_count
               ? PL_OK
               : pl_fail(err, PL_E_USAGE, "the prompt has no token that this tokenizer knows; give another prompt");
}

pl_status pl_session_generate(pl_session *s, const pl_sampling *sampling, pl_error *err)
{
    if (s->generate == PL_NONE || !s->tokenizer) return pl_fail(err, PL_E_USAGE, "this plan cannot generate");
    char *staging = pl_session_value(s, PL_STAGING_SAMPLING);
    generator g = {.s = s,
                   .sampling = sampling,
                   .input = pl_session_value(s, "generate.tokens"),
                   .width = program_width(s->o.plan->graph),
                   .room = s->settings->sequence};
    if (!staging || !g.input) return pl_fail(err, PL_E_USAGE, "this plan cannot generate");
    g.history.ring = (int32_t *)(staging + pl_sample_workspace_bytes(s->settings->vocab));
    g.history.room = pl_history_room(g.width, g.room);
    for (size_t i = 0; i < s->prompt_count && !pl_session_should_stop(s); i++)
        PL_TRY(feed(&g, (int32_t)s->prompt_id[i], err));
    return generate(&g, err);
}
