/* Text, token by token. With a key-value cache (the program takes one token and its place) the prompt goes through it
 * first, many tokens at a time where there is a program "prefill"; when all places are used, the text ends, or the
 * second half of the context is fed again from place 0. Without a cache (the perceptron) the program takes the last n
 * tokens. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/causal_lm.h"
#include "base/file.h"
#include "base/size.h"
#include "data/text/text_data.h"
#include "ir/properties.h"
#include "jobs/generate_impl.h"

#define STAGING "staging.sampling"

enum { PIECE_MAX = 4 * (PL_TOKEN_BYTES_MAX + PL_DECODER_HELD_MAX) + 4 }; /* pl_decoder_room() at most */
enum { HELD_BYTES = PL_STOPS_BYTES + PIECE_MAX };

/* Tokens that a program takes; 0: the plan has none with such an input. */
static uint64_t tokens_of(const pl_graph *graph, const char *input)
{
    pl_id tokens = pl_graph_find_value(graph, input);
    return tokens == PL_NONE ? 0 : pl_shape_elems(&graph->value[tokens].shape);
}

/* Sequences that "generate" goes on with, and tokens that it takes of each. */
static uint64_t sequences_of(const pl_graph *graph)
{
    const pl_id tokens = pl_graph_find_value(graph, "generate.tokens");
    return tokens == PL_NONE ? 1 : (uint64_t)graph->value[tokens].shape.dim[0];
}

static uint64_t program_width(const pl_graph *graph)
{
    return tokens_of(graph, "generate.tokens") / sequences_of(graph);
}

static uint32_t vocab_of(const pl_graph *graph)
{
    pl_id logits = pl_graph_find_value(graph, "generate.logits");
    return logits == PL_NONE ? 0 : (uint32_t)pl_shape_last(&graph->value[logits].shape);
}

/* ---- what is kept beside the graph's values ---- */

static uint64_t take(uint64_t *end, uint64_t bytes)
{
    const uint64_t at = *end;
    *end += bytes;
    return at;
}

static uint64_t context_of(const pl_data *data, const pl_generate_settings *own)
{
    return pl_facts_value(&data->extents, PL_FACT_CONTEXT, own->context);
}

generate_layout pl_generate_lay_out(const pl_graph *graph, const pl_generate_settings *own, const pl_data *data)
{
    const uint32_t vocab = vocab_of(graph);
    const bool penalizes = pl_sampling_penalizes(&own->sampling);
    generate_layout l = {.bytes = pl_sample_workspace_bytes(vocab), .sequences = sequences_of(graph)};
    l.is_batch = l.sequences > 1 || own->prompts;
    l.history_room = l.is_batch ? 1 /* there a full context ends a text */
                                : pl_history_room(program_width(graph), context_of(data, own));
    l.recent_room = penalizes && own->sampling.repeat_last_n > 0 ? (uint64_t)own->sampling.repeat_last_n : 0;
    if (own->chats) l.bytes = pl_align_up(l.bytes, 16);
    l.chat = take(&l.bytes, own->chats ? pl_conversation_bytes(pl_text_data_of(data), context_of(data, own)) : 0);
    l.history = take(&l.bytes, l.history_room * sizeof(int32_t));
    l.count = take(&l.bytes, penalizes ? l.sequences * vocab * sizeof(uint32_t) : 0);
    l.recent = take(&l.bytes, l.sequences * l.recent_room * sizeof(int32_t));
    l.answer = take(&l.bytes, own->answers && !own->chats ? PL_GENERATE_ANSWER_MAX * sizeof(uint32_t) : 0);
    l.held = take(&l.bytes, own->stop && own->stop[0] ? (l.sequences + l.is_batch) * HELD_BYTES : 0);
    if (!l.is_batch) return l;
    l.batch = l.bytes = pl_align_up(l.bytes, 64);
    (void)take(&l.bytes, pl_generate_batch_bytes(&l, own, context_of(data, own)));
    return l;
}

static uint64_t staging_bytes(const pl_graph *graph, const pl_run_settings *r, const pl_data *data)
{
    return program_width(graph) ? pl_generate_lay_out(graph, r->own, data).bytes : 0;
}

/* ---- what the model has seen ---- */

static void count_token(generator *g, uint32_t token)
{
    if (!g->count) return;
    g->count[token]++;
    if (g->recent.room == 0) return;
    if (g->recent.count >= g->recent.room) g->count[pl_history_at(&g->recent, g->recent.count - g->recent.room)]--;
    pl_history_add(&g->recent, (int32_t)token);
}

void pl_generator_remember(generator *g, uint32_t token)
{
    pl_history_add(&g->history, (int32_t)token);
    if (g->of->chat) pl_conversation_feed(g->of->chat, token);
    count_token(g, token);
}

static void reach(generator *g, uint64_t end)
{
    if (end > g->of->reach) g->of->reach = end;
}

static pl_status feed_cached(generator *g, int32_t token, pl_error *err)
{
    reach(g, g->position + 1);
    pl_session_set_integer(g->s, PL_INPUT_POSITION, (int64_t)g->position++);
    g->input[0] = token;
    return pl_session_run_program(g->s, g->of->program, false, err);
}

static pl_status feed(generator *g, uint32_t token, pl_error *err)
{
    pl_generator_remember(g, token);
    uint64_t count = g->history.count, again = g->history.room;
    if (g->width > 1) {
        for (uint64_t i = 0; i < g->width; i++) g->input[i] = pl_history_at(&g->history, count + i - g->width);
        return pl_session_run_program(g->s, g->of->program, false, err);
    }
    if (g->position < g->room) return feed_cached(g, (int32_t)token, err);
    g->position = 0;
    g->cached = 0;
    for (uint64_t i = count - again; i < count; i++) PL_TRY(feed_cached(g, pl_history_at(&g->history, i), err));
    return PL_OK;
}

/* In a ring the window before place `at` is lost when so much has been written after it. */
static bool is_lost(const generator *g, uint64_t at)
{
    const uint64_t spare = g->chunks > 1 ? g->chunks : 1; /* places of a ring, without a window but its last token */
    return g->of->has_rings && g->of->reach > at + spare;
}

/* Tokens of the prompt that the model need not see: what they leave in the cache is there already, or is gone when the
 * last of the prompt is fed. After `room` tokens the cache is made anew, and then after each of its other half. */
static size_t count_skipped(const generator *g)
{
    const uint64_t count = g->prompt_count, period = g->room - g->history.room + 1;
    if (g->width > 1) return g->prompt_count - 1;
    const size_t kept = g->cached < count ? g->cached : count - 1;
    if (g->cached) return is_lost(g, kept) ? 0 : kept;
    return count <= g->room ? 0 : (size_t)(g->room + (count - 1 - g->room) / period * period);
}

/* The next tokens of the prompt but the last, whose logits are wanted. What is missing from a chunk is filled up: those
 * places are written again before anything sees them. A chunk costs as much as some of its tokens one at a time. */
static size_t count_ahead(const generator *g, size_t at)
{
    enum { CHUNK_WORTH = 4 };
    const size_t left = g->prompt_count - 1 - at, most = left < g->chunks ? left : g->chunks;
    return g->chunk && g->position + g->chunks <= g->room && most * CHUNK_WORTH >= g->chunks ? most : 0;
}

static pl_status feed_ahead(generator *g, const uint32_t *token, size_t count, pl_error *err)
{
    for (size_t i = 0; i < g->chunks; i++) g->chunk[i] = i < count ? (int32_t)token[i] : 0;
    for (size_t i = 0; i < count; i++) pl_generator_remember(g, token[i]);
    pl_session_set_integer(g->s, PL_INPUT_POSITION, (int64_t)g->position);
    reach(g, g->position + g->chunks);
    g->position += count;
    return pl_session_run_program(g->s, g->of->prefill, false, err);
}

void pl_generator_forget(generator *g)
{
    if (g->count) memset(g->count, 0, g->of->vocab * sizeof *g->count);
    g->history.count = g->recent.count = 0;
}

/* After one token by itself no chunk follows, because fewer and fewer are left. */
pl_status pl_generator_feed_chunks(generator *g, size_t *fed, pl_error *err)
{
    for (size_t ahead; !pl_session_should_stop(g->s) && (ahead = count_ahead(g, *fed)) > 0; *fed += ahead)
        PL_TRY(feed_ahead(g, g->prompt + *fed, ahead, err));
    return PL_OK;
}

static pl_status feed_prompt(generator *g, pl_error *err)
{
    const size_t skipped = count_skipped(g);
    size_t fed = skipped;
    pl_generator_forget(g);
    g->position = skipped < g->room ? skipped : g->room;
    if (skipped == 0) g->of->reach = 0;
    if (g->of->chat) pl_conversation_begin_feed(g->of->chat);
    for (size_t i = 0; i < skipped; i++) pl_generator_remember(g, g->prompt[i]);
    g->cached = g->prompt_count <= g->room ? g->prompt_count : 0;
    PL_TRY(pl_generator_feed_chunks(g, &fed, err));
    for (; fed < g->prompt_count && !pl_session_should_stop(g->s); fed++) PL_TRY(feed(g, g->prompt[fed], err));
    return PL_OK;
}

/* A text begins: who listens shows its prompt. What can be refused has been by then. */
static void tell_begin(const generator *g)
{
    if (g->s->jobs.job[0] == &pl_job_generate) pl_session_tell(g->s, (pl_event){.kind = PL_EVENT_TEXT, .text = ""});
}

static void warn_short(const generator *g)
{
    char text[PL_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text,
             "the prompt has %zu token%s, of which nothing is kept in %.300s: that takes whole chunks of %" PRIu64
             " tokens (prefill_tokens) before the last token",
             g->prompt_count, g->prompt_count == 1 ? "" : "s", g->of->kept.path, g->chunks);
    pl_session_warn(g->s, text);
}

/* Before the first text, what the file has of its prompt; after it, what the file has not. */
static pl_status feed_kept_prompt(generator *g, pl_error *err)
{
    pl_prompt_cache *kept = &g->of->kept;
    const size_t whole = (g->prompt_count - 1) / g->chunks * g->chunks;
    PL_TRY(pl_prompt_cache_read(kept, g->s, g->prompt, whole, &g->cached, err));
    const bool is_kept = g->cached < whole;
    if (is_kept) PL_TRY(pl_prompt_cache_begin(kept, err));
    if (whole == 0) warn_short(g);
    tell_begin(g);
    if (g->cached) g->of->reach = kept->tokens + g->chunks;
    const pl_status status = feed_prompt(g, err);
    if (!is_kept) return status;
    if (status == PL_OK && !pl_session_should_stop(g->s))
        return pl_prompt_cache_write(kept, g->s, g->prompt, whole, err);
    pl_file_abandon(&kept->file);
    return status;
}

static pl_status begin_text(generator *g, pl_error *err)
{
    if (g->of->kept.path && g->chunks && g->of->told == 0 && g->sample == 0) return feed_kept_prompt(g, err);
    tell_begin(g);
    return feed_prompt(g, err);
}

/* ---- what is told ---- */

/* Who listens shows no more of an event. Characters stay whole. */
static size_t cut(const char *text, size_t bytes)
{
    enum { TOLD_BYTES = 512 };
    size_t n = bytes;
    if (bytes > TOLD_BYTES)
        for (n = TOLD_BYTES; n > TOLD_BYTES - 3 && (text[n] & 0xc0) == 0x80;) n--;
    return n;
}

static void tell_bytes(generator *g, const char *text, size_t bytes)
{
    if (g->is_silent) return;
    if (g->of->chat) pl_conversation_hear(g->of->chat, text, bytes);
    for (size_t n; bytes > 0; text += n, bytes -= n) {
        n = cut(text, bytes);
        pl_session_tell(g->s, (pl_event){.kind = PL_EVENT_TEXT, .text = text, .text_bytes = n});
    }
}

static void tell_text(generator *g, const void *text, size_t bytes)
{
    if (!g->window.held) return tell_bytes(g, text, bytes);
    const size_t out = pl_stops_put(&g->window, text, bytes);
    tell_bytes(g, g->window.held, out);
    pl_stops_drop(&g->window, out);
}

static void tell_token(generator *g, uint32_t id)
{
    uint8_t text[PIECE_MAX];
    if (g->is_silent && !g->window.held) return;
    tell_text(g, text, pl_decoder_push(&g->decoder, g->of->tokenizer, id, text));
}

static bool is_end(const generator *g)
{
    const uint32_t *end = g->of->end;
    while (*end != PL_TOKEN_NONE && *end != g->last) end++;
    return g->told.tokens > 0 && *end != PL_TOKEN_NONE;
}

static bool is_full(const generator *g)
{
    return g->of->settings->ends_at_context && g->told.tokens > 0 && g->position >= g->room;
}

void pl_generator_tell_end(generator *g)
{
    uint8_t rest[PIECE_MAX];
    const size_t bytes = pl_decoder_finish(&g->decoder, rest);
    if (!g->window.stopped) tell_text(g, rest, bytes);
    if (g->window.held) tell_bytes(g, g->window.held, g->window.bytes);
    g->told.ended = g->window.stopped                       ? PL_TEXT_AT_STOP
                    : is_end(g)                             ? PL_TEXT_AT_END
                    : g->told.tokens == g->sampling->tokens ? PL_TEXT_AT_LENGTH
                    : is_full(g)                            ? PL_TEXT_AT_CONTEXT
                                                            : PL_TEXT_INTERRUPTED;
    pl_session_tell(g->s, (pl_event){.kind = PL_EVENT_TEXT_END, .told = &g->told});
}

/* ---- a text ---- */

static pl_status check_logits(const generator *g, const float *logits, uint32_t vocab, pl_error *err)
{
    char what[96];
    uint32_t i = 0;
    while (i < vocab && isfinite(logits[i])) i++;
    if (i == vocab) return PL_OK;
    snprintf(what, sizeof what, "a logit for token %" PRIu64 " of the text (after %zu of the prompt)",
             (uint64_t)g->told.tokens + 1, g->prompt_count);
    return pl_fail_not_finite(g->s, what, err);
}

void pl_generator_tell(generator *g, uint32_t token)
{
    g->last = token;
    g->told.tokens++;
    if (!is_end(g)) tell_token(g, token);
}

pl_status pl_generator_take(generator *g, const float *logits, double began, pl_error *err)
{
    const uint32_t known = pl_tokenizer_vocab_size(g->of->tokenizer);
    const uint32_t vocab = known < g->of->vocab ? known : g->of->vocab;
    PL_TRY(check_logits(g, logits, vocab, err));
    pl_generator_tell(g, pl_sample_token(logits, vocab, g->sampling, g->count, g->history.count, g->sample,
                                         pl_session_value(g->s, STAGING)));
    g->told.seconds = pl_run_now() - began;
    if (g->told.tokens == 1) g->told.first_seconds = g->told.seconds;
    return PL_OK;
}

bool pl_generator_is_over(const generator *g)
{
    return g->told.tokens >= g->sampling->tokens || g->window.stopped || is_end(g) || is_full(g);
}

static pl_status write_tokens(generator *g, double began, pl_error *err)
{
    const float *logits = pl_session_value(g->s, "generate.logits");
    while (!pl_generator_is_over(g) && !pl_session_should_stop(g->s)) {
        if (g->told.tokens > 0) PL_TRY(feed(g, g->last, err));
        PL_TRY(pl_generator_take(g, logits, began, err));
    }
    return PL_OK;
}

void pl_generator_begin_text(generator *g)
{
    g->told = (pl_text_told){.prompt_tokens = g->prompt_count};
    g->decoder = (pl_decoder){.is_text = g->of->has_special, .skips_special = g->of->has_special};
    g->window.bytes = 0, g->window.stopped = false;
}

static pl_status write_text(generator *g, pl_error *err)
{
    const double began = pl_run_now();
    pl_generator_begin_text(g);
    PL_TRY(begin_text(g, err));
    PL_TRY(write_tokens(g, began, err));
    pl_generator_tell_end(g);
    /* A sample between training steps is cut short too, but there the run itself reports the stop. */
    if (g->s->jobs.job[0] != &pl_job_generate || g->told.ended != PL_TEXT_INTERRUPTED) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped before all tokens were written");
}

generator pl_generator_begin(pl_session *s, generation *of, uint64_t row)
{
    char *staging = pl_session_value(s, STAGING);
    const pl_generate_settings *own = of->settings;
    const generate_layout l = pl_generate_lay_out(s->o.plan->graph, own, s->o.data);
    const bool is_row = row < l.sequences, holds = own->stop && own->stop[0];
    const uint64_t counts = row * of->vocab * sizeof(uint32_t), recents = row * l.recent_room * sizeof(int32_t);
    return (generator){.s = s,
                       .of = of,
                       .sampling = &own->sampling,
                       .sample = of->told,
                       .input = is_row ? (int32_t *)pl_session_value(s, "generate.tokens") + row : NULL,
                       .width = program_width(s->o.plan->graph),
                       .chunk = pl_session_value(s, "prefill.tokens"),
                       .chunks = tokens_of(s->o.plan->graph, "prefill.tokens"),
                       .room = of->context,
                       .history = {(int32_t *)(void *)(staging + l.history), l.history_room, 0},
                       .recent = {(int32_t *)(void *)(staging + l.recent + recents), l.recent_room, 0},
                       .count = is_row && l.recent > l.count ? (uint32_t *)(void *)(staging + l.count + counts) : NULL,
                       .window = {.stops = &of->stops, .held = holds ? staging + l.held + row * HELD_BYTES : NULL}};
}

static pl_status write_texts(pl_session *s, generation *of, const pl_conversation_prompt *prompt, pl_error *err)
{
    generator g = pl_generator_begin(s, of, 0);
    g.prompt = prompt->id, g.prompt_count = prompt->count, g.cached = prompt->cached;
    for (uint32_t k = 0; k < of->settings->samples; k++, g.sample++) PL_TRY(write_text(&g, err));
    return PL_OK;
}

/* ---- the prompt ---- */

static pl_status check_ids(const void *job, const uint32_t *id, size_t count, pl_error *err)
{
    const generation *g = job;
    if (g->settings->ends_at_context && count >= g->context)
        return pl_fail(err, PL_E_USAGE,
                       "the prompt has %zu token%s, and the context of `model.context` %" PRIu64
                       "; give a shorter prompt, or a longer context",
                       count, count == 1 ? "" : "s", g->context);
    for (size_t i = 0; i < count; i++)
        if (id[i] >= g->vocab)
            return pl_fail(err, PL_E_DATA, "the prompt has the id %u, but the model a vocabulary of %u", id[i],
                           g->vocab);
    return count ? PL_OK
                 : pl_fail(err, PL_E_USAGE, "the prompt has no token that this tokenizer knows; give another prompt");
}

static pl_status encode(generation *g, const char *prompt, size_t bytes, pl_error *err)
{
    const pl_encode_options o = {.adds_special = g->has_special};
    if (bytes == 0) prompt = "\n", bytes = 1;
    PL_TRY(pl_encode_with(g->tokenizer, o, prompt, bytes, &g->prompt_id, &g->prompt_count, err));
    return check_ids(g, g->prompt_id, g->prompt_count, err);
}

/* An editor ends a file with a line break, which is no part of what is to be continued. */
static size_t without_end(const char *text, size_t bytes)
{
    if (bytes > 0 && text[bytes - 1] == '\n') bytes--;
    return bytes > 0 && text[bytes] == '\n' && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
}

/* An encoder needs memory, so the prompt becomes ids before commit. */
static pl_status encode_prompt(generation *g, pl_error *err)
{
    const char *prompt = g->settings->prompt ? g->settings->prompt : "";
    char *text;
    size_t bytes;
    if (!g->settings->prompt_file) return encode(g, prompt, strlen(prompt), err);
    PL_TRY(pl_file_read_all(g->settings->prompt_file, PL_GENERATE_PROMPT_MAX, &text, &bytes, err));
    const pl_status status = encode(g, text, without_end(text, bytes), err);
    pl_free(text);
    return status;
}

static pl_status read_prompts(generation *g, pl_error *err)
{
    const pl_encode_options o = {.adds_special = g->has_special};
    return pl_prompts_read(g->settings->prompts, g->tokenizer, o, check_ids, g, &g->prompts, err);
}

/* What there is for one text at a time alone. */
static pl_status check_batch(const pl_generate_settings *own, pl_error *err)
{
    if (own->answers || own->chats)
        return pl_fail(err, PL_E_CONFIG,
                       "a chat, or lines that are typed, are answered one at a time; leave out `generate.batch` and "
                       "`generate.prompts`");
    if (!own->prompt_cache) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "`generate.prompt_cache` keeps what one prompt leaves; leave out `generate.batch` and "
                   "`generate.prompts`, or it");
}

/* ---- messages ---- */

static pl_status open_chat(generation *g, const pl_text_data *data, pl_error *err)
{
    const pl_generate_settings *own = g->settings;
    if (own->samples > 1)
        return pl_fail(err, PL_E_CONFIG, "a chat has one answer to a message; leave out `generate.num_samples`");
    PL_TRY(pl_conversation_create(data, g->context, own->system, &g->chat, err));
    if (own->answers || !own->prompt_file) return PL_OK;
    PL_TRY(pl_file_read_all(own->prompt_file, PL_GENERATE_PROMPT_MAX, &g->message, &g->message_bytes, err));
    g->message_bytes = without_end(g->message, g->message_bytes);
    return PL_OK;
}

static pl_status answer_message(pl_session *s, generation *g, const char *message, size_t bytes, pl_error *err)
{
    pl_conversation_prompt prompt;
    if (g->told == 0)
        pl_conversation_place(g->chat, (char *)pl_session_value(s, STAGING) +
                                           pl_generate_lay_out(s->o.plan->graph, g->settings, s->o.data).chat);
    PL_TRY(pl_conversation_ask(g->chat, message, bytes, &prompt, err));
    PL_TRY(check_ids(g, prompt.id, prompt.count, err));
    const pl_status status = write_texts(s, g, &prompt, err);
    g->told++;
    return status;
}

static pl_status take_answer(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    generation *g = context;
    if (count > PL_GENERATE_ANSWER_MAX - g->answer_count)
        return pl_fail(err, PL_E_USAGE, "the prompt has more than %d tokens; give a shorter one",
                       PL_GENERATE_ANSWER_MAX);
    memcpy(g->answer_id + g->answer_count, ids, count * sizeof *ids);
    g->answer_count += count;
    return PL_OK;
}

static pl_status encode_answer(generation *g, const char *prompt, size_t bytes, pl_error *err)
{
    pl_error ignored;
    g->answer_count = 0;
    pl_status status = pl_encoder_feed(g->encoder, prompt, bytes, err);
    if (status == PL_OK) return pl_encoder_finish(g->encoder, err);
    g->answer_count = 0; /* what the encoder holds back goes nowhere */
    (void)pl_encoder_finish(g->encoder, &ignored);
    return status;
}

pl_status pl_generate_answer(pl_session *s, const char *prompt, size_t bytes, pl_error *err)
{
    generation *g = pl_session_job_state(s, &pl_job_generate);
    if (g && g->settings->answers && g->chat) return answer_message(s, g, prompt, bytes, err);
    if (!g || !g->encoder) return pl_fail(err, PL_E_USAGE, "this run was not planned for further prompts");
    if (bytes == 0) prompt = "\n", bytes = 1;
    g->answer_id = (uint32_t *)(void *)((char *)pl_session_value(s, STAGING) +
                                        pl_generate_lay_out(s->o.plan->graph, g->settings, s->o.data).answer);
    PL_TRY(encode_answer(g, prompt, bytes, err));
    PL_TRY(check_ids(g, g->answer_id, g->answer_count, err));
    const pl_conversation_prompt whole = {g->answer_id, g->answer_count, 0};
    const pl_status status = write_texts(s, g, &whole, err);
    g->told += g->settings->samples;
    return status;
}

/* ---- the job ---- */

static pl_status open_generate(pl_session *s, void *state, pl_error *err)
{
    generation *g = state;
    const pl_graph *graph = s->o.plan->graph;
    PL_TRY(pl_session_find_program(s, "generate", &g->program, err));
    g->settings = s->settings->own;
    g->prefill = pl_graph_find_program(graph, "prefill");
    g->tokenizer = pl_text_data_of(s->o.data)->tokenizer;
    g->end = pl_text_data_of(s->o.data)->end;
    g->has_special = pl_text_data_of(s->o.data)->has_special;
    g->context = context_of(s->o.data, g->settings);
    g->vocab = vocab_of(graph);
    g->has_rings = pl_graph_has_rings(graph);
    g->kept = (pl_prompt_cache){g->settings->prompt_cache, g->context, tokens_of(graph, "prefill.tokens")};
    pl_id tokens = pl_graph_find_value(graph, "generate.tokens"), staging = pl_graph_find_value(graph, STAGING);
    if (tokens == PL_NONE || !g->vocab)
        return pl_fail(err, PL_E_DATA, "this program did not make the plan: an input or output is missing");
    if (staging == PL_NONE || pl_value_bytes(graph, staging) < staging_bytes(graph, s->settings, s->o.data))
        return pl_fail(err, PL_E_DATA, "the plan has too little staging for choosing tokens; plan again");
    pl_stops_read(&g->stops, g->settings->stop ? g->settings->stop : "");
    if (pl_generate_lay_out(graph, g->settings, s->o.data).is_batch) PL_TRY(check_batch(g->settings, err));
    if (g->settings->chats) return open_chat(g, pl_text_data_of(s->o.data), err);
    PL_TRY(g->settings->prompts ? read_prompts(g, err) : encode_prompt(g, err));
    if (!g->settings->answers) return PL_OK;
    PL_TRY(pl_encoder_create(g->tokenizer, take_answer, g, &g->encoder, err));
    pl_encoder_set_options(g->encoder, (pl_encode_options){.adds_special = g->has_special});
    return PL_OK;
}

static void close_generate(pl_session *s, void *state)
{
    generation *g = state;
    (void)s;
    pl_free(g->prompt_id);
    pl_prompts_deinit(&g->prompts);
    pl_encoder_destroy(g->encoder);
    if (g->chat) pl_conversation_destroy(g->chat); /* its code may not be held (base/parts.h) */
    pl_free(g->message);
}

static pl_status run_generate(pl_session *s, void *state, pl_error *err)
{
    generation *g = state;
    const char *message = g->settings->prompt ? g->settings->prompt : "";
    const pl_conversation_prompt whole = {g->prompt_id, g->prompt_count, 0};
    const pl_prompts one = {.id = g->prompt_id, .end = &g->prompt_count, .count = 1};
    if (pl_generate_lay_out(s->o.plan->graph, g->settings, s->o.data).is_batch)
        return pl_generate_batch(s, g, g->settings->prompts ? &g->prompts : &one, err);
    if (!g->chat) return write_texts(s, g, &whole, err);
    return g->message ? answer_message(s, g, g->message, g->message_bytes, err)
                      : answer_message(s, g, message, strlen(message), err);
}

const pl_job pl_job_generate = {.program = {"generate", "prefill"},
                                .staging = STAGING,
                                .staging_bytes = staging_bytes,
                                .state_bytes = sizeof(generation),
                                .open = open_generate,
                                .close = close_generate,
                                .run = run_generate};
