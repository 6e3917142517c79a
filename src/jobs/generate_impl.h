/* Text, within jobs: what one text after the other (generate.c) and several at once (generate_batch.c) share. */
#ifndef PL_JOBS_GENERATE_IMPL_H
#define PL_JOBS_GENERATE_IMPL_H

#include "data/text/encoder.h"
#include "data/text/prompts.h"
#include "jobs/chat.h"
#include "jobs/history.h"
#include "jobs/jobs.h"
#include "jobs/prompt_cache.h"
#include "jobs/stops.h"
#include "run/session_impl.h"

/* Of the job: found before commit. */
typedef struct generation {
    pl_id program, prefill; /* prefill PL_NONE: there is none */
    const pl_generate_settings *settings;
    const pl_tokenizer *tokenizer;
    bool has_special;
    const uint32_t *end; /* tokens that end a text; PL_TOKEN_NONE after the last */
    uint32_t *prompt_id, vocab;
    uint64_t context; /* places of the cache */
    size_t prompt_count;
    pl_stops stops;
    uint32_t told;  /* texts so far: the next one draws other numbers */
    bool has_rings; /* some caches hold only what a window sees */
    uint64_t reach; /* since place 0 was written last, all places before this one were */
    pl_prompt_cache kept;
    pl_prompts prompts; /* of a file of several */
    /* Of prompts that come later. */
    pl_encoder *encoder;
    uint32_t *answer_id;
    size_t answer_count;
    pl_conversation *chat; /* NULL: prompts stand alone */
    char *message;         /* the first; NULL: all come later */
    size_t message_bytes;
} generation;

typedef struct generator {
    pl_session *s;
    generation *of;
    const pl_sampling *sampling;
    const uint32_t *prompt;
    size_t prompt_count, cached; /* cached: so many of the prompt's tokens, at its beginning, the cache has */
    uint32_t sample;
    int32_t *input;
    uint64_t width; /* tokens the program takes */
    int32_t *chunk; /* input of "prefill", which takes `chunks` tokens; NULL: there is none */
    uint64_t chunks;
    uint64_t room;              /* places of the cache */
    uint64_t position;          /* next place */
    pl_history history, recent; /* recent: the tokens that penalties look at; without a room: all since the beginning */
    uint32_t *count;            /* of each token among those; NULL: there are no penalties */
    pl_decoder decoder;
    pl_stops_window window;
    bool is_silent; /* another one tells its text */
    uint32_t last;  /* token that was told */
    pl_text_told told;
} generator;

/* What is kept next to the graph's values: the sampler's workspace, then what else is there: a chat, the last tokens,
 * how often each was there and which were the last of these, ids of a prompt that comes later, text that waits, and
 * what several texts at once need. */
typedef struct generate_layout {
    uint64_t chat, history, count, recent, answer, held, batch, bytes; /* where they begin, and the end of all */
    uint64_t history_room, recent_room;
    uint64_t sequences; /* that the program goes on with */
    bool is_batch;
} generate_layout;
generate_layout pl_generate_lay_out(const pl_graph *, const pl_generate_settings *, const pl_data *);

/* ---- generate.c ---- */
/* The text of sequence `row`; row = sequences: of none, for what tells the others'. */
generator pl_generator_begin(pl_session *, generation *, uint64_t row);
/* Before the prompt of another text. */
void pl_generator_forget(generator *);
void pl_generator_begin_text(generator *);
/* As many of the prompt's tokens as go through "prefill", from its beginning; *fed: how many. */
pl_status pl_generator_feed_chunks(generator *, size_t *fed, pl_error *);
void pl_generator_remember(generator *, uint32_t token);
/* The text's next token, by these logits; it is told. began: when the text did. PL_E_DIVERGED: they are not finite. */
pl_status pl_generator_take(generator *, const float *logits, double began, pl_error *);
bool pl_generator_is_over(const generator *);
/* The same for a token that another generator took: its number in the text is told.tokens. */
void pl_generator_tell(generator *, uint32_t token);
void pl_generator_tell_end(generator *);

/* ---- generate_batch.c ---- */
uint64_t pl_generate_batch_bytes(const generate_layout *, const pl_generate_settings *, uint64_t context);
/* Texts of all prompts, in their order. */
pl_status pl_generate_batch(pl_session *, generation *, const pl_prompts *, pl_error *);

#endif
