/* Text, token by token. With a key-value cache (the program takes one token and its place) the prompt goes through it
 * first; when all places are used, the second half of the context is fed again from place 0. Without one (the
 * perceptron) the program takes the last n tokens. */
#include <string.h>

#include "data/text/encoder.h"
#include "data/text/text_data.h"
#include "ir/op.h"
#include "jobs/history.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"

#define STAGING "staging.sampling"

/* Of the job: found before commit. */
typedef struct generation {
    pl_id program;
    const pl_generate_settings *settings;
    const pl_tokenizer *tokenizer;
    uint32_t *prompt_id, vocab;
    size_t prompt_count;
} generation;

typedef struct generator {
    pl_session *s;
    const generation *of;
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

static uint32_t vocab_of(const pl_graph *graph)
{
    pl_id logits = pl_graph_find_value(graph, "generate.logits");
    return logits == PL_NONE ? 0 : (uint32_t)pl_shape_last(&graph->value[logits].shape);
}

/* The sampler's workspace, and behind it the last tokens. */
static uint64_t staging_bytes(const pl_graph *graph, const pl_run_settings *r, const pl_data *data)
{
    (void)data;
    const pl_generate_settings *own = r->own;
    uint64_t width = program_width(graph), history = width ? pl_history_room(width, own->context) : 0;
    return width ? pl_sample_workspace_bytes(vocab_of(graph)) + history * sizeof(int32_t) : 0;
}

static pl_status feed_cached(generator *g, int32_t token, pl_error *err)
{
    pl_session_set_integer(g->s, PL_INPUT_POSITION, (int64_t)g->position++);
    g->input[0] = token;
    return pl_session_run_program(g->s, g->of->program, false, err);
}

static pl_status feed(generator *g, int32_t token, pl_error *err)
{
    pl_history_add(&g->history, token);
    uint64_t count = g->history.count, again = g->history.room;
    if (g->width > 1) {
        for (uint64_t i = 0; i < g->width; i++) g->input[i] = pl_history_at(&g->history, count + i - g->width);
        return pl_session_run_program(g->s, g->of->program, false, err);
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
    tell_bytes(g, text, pl_decoder_push(&g->decoder, g->of->tokenizer, id, text));
}

static pl_status generate(generator *g, pl_error *err)
{
    pl_session *s = g->s;
    const float *logits = pl_session_value(s, "generate.logits");
    void *workspace = pl_session_value(s, STAGING);
    for (uint64_t i = 0; i < g->sampling->tokens && !pl_session_should_stop(s); i++) {
        uint32_t id = pl_sample_token(logits, g->of->vocab, g->sampling, g->history.count, workspace);
        tell_token(g, id);
        if (i + 1 < g->sampling->tokens) PL_TRY(feed(g, (int32_t)id, err));
    }
    uint8_t rest[4];
    tell_bytes(g, rest, pl_decoder_finish(&g->decoder, rest));
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_TEXT_END});
    /* A sample between training steps is cut short too, but there the run itself reports the stop. */
    if (s->jobs.job[0] != &pl_job_generate || !pl_session_should_stop(s)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped before all tokens were written");
}

/* An encoder needs memory, so the prompt becomes ids before commit. */
static pl_status encode_prompt(generation *g, pl_error *err)
{
    const char *prompt = g->settings->prompt && g->settings->prompt[0] ? g->settings->prompt : "\n";
    PL_TRY(pl_encode(g->tokenizer, prompt, strlen(prompt), &g->prompt_id, &g->prompt_count, err));
    for (size_t i = 0; i < g->prompt_count; i++)
        if (g->prompt_id[i] >= g->vocab)
            return pl_fail(err, PL_E_DATA, "the prompt has the id %u, but the model a vocabulary of %u",
                           g->prompt_id[i], g->vocab);
    return g->prompt_count
               ? PL_OK
               : pl_fail(err, PL_E_USAGE, "the prompt has no token that this tokenizer knows; give another prompt");
}

static pl_status open_generate(pl_session *s, void *state, pl_error *err)
{
    generation *g = state;
    const pl_graph *graph = s->o.plan->graph;
    PL_TRY(pl_session_find_program(s, "generate", &g->program, err));
    g->settings = s->settings->own;
    g->tokenizer = pl_text_data_of(s->o.data)->tokenizer;
    g->vocab = vocab_of(graph);
    pl_id tokens = pl_graph_find_value(graph, "generate.tokens"), staging = pl_graph_find_value(graph, STAGING);
    if (tokens == PL_NONE || !g->vocab)
        return pl_fail(err, PL_E_DATA, "this program did not make the plan: an input or output is missing");
    if (staging == PL_NONE || pl_value_bytes(graph, staging) < staging_bytes(graph, s->settings, s->o.data))
        return pl_fail(err, PL_E_DATA, "the plan has too little staging for choosing tokens; plan again");
    return encode_prompt(g, err);
}

static void close_generate(pl_session *s, void *state)
{
    (void)s;
    pl_free(((generation *)state)->prompt_id);
}

static pl_status run_generate(pl_session *s, void *state, pl_error *err)
{
    const generation *of = state;
    char *staging = pl_session_value(s, STAGING);
    generator g = {.s = s,
                   .of = of,
                   .sampling = &of->settings->sampling,
                   .input = pl_session_value(s, "generate.tokens"),
                   .width = program_width(s->o.plan->graph),
                   .room = of->settings->context};
    g.history.ring = (int32_t *)(staging + pl_sample_workspace_bytes(of->vocab));
    g.history.room = pl_history_room(g.width, g.room);
    for (size_t i = 0; i < of->prompt_count && !pl_session_should_stop(s); i++)
        PL_TRY(feed(&g, (int32_t)of->prompt_id[i], err));
    return generate(&g, err);
}

const pl_job pl_job_generate = {.program = {"generate"},
                                .staging = STAGING,
                                .staging_bytes = staging_bytes,
                                .state_bytes = sizeof(generation),
                                .open = open_generate,
                                .close = close_generate,
                                .run = run_generate};
