/* Several texts at once, each a sequence of the caches, so that a pass reads the weights once for all. The chunks of a
 * prompt go ahead into its sequence alone, as they would if there were no other; what is left of it, and then the text,
 * goes on with the others, a token of each at a time. A sequence whose text is over takes the next prompt.
 *
 * Texts are told in the order of their prompts: each keeps its ids until its turn, and no text begins that is further
 * than so many after the one that is being told. */
#include "jobs/generate_impl.h"

#include "base/size.h"

enum { TEXTS_A_SEQUENCE = 4 };

/* A text, until it is told. */
typedef struct text {
    pl_text_told told;
    uint64_t position; /* of its sequence, at the end */
    bool is_over;
} text;

/* A sequence of the caches. */
typedef struct row {
    generator g;
    uint64_t number; /* of its text */
    size_t fed;      /* tokens of the prompt */
    double began;
    bool is_used;
} row;

typedef struct batch {
    pl_session *s;
    const pl_prompts *prompts;
    generation *of;
    generator teller;
    uint64_t rows, most, room, texts; /* room: of ids for each of `most` texts that wait; texts: all there are */
    uint64_t next, telling;           /* the text that begins next, and the one that is told */
    row *row;                         /* [rows] */
    text *text;                       /* [most], that of number n at n mod most */
    uint32_t *id;                     /* [most, room] */
    int64_t *position;                /* [rows], input of the program; NULL: there is one row */
} batch;

static uint64_t room_of(const pl_generate_settings *own, uint64_t context)
{
    return own->sampling.tokens < context ? own->sampling.tokens : context;
}

uint64_t pl_generate_batch_bytes(const generate_layout *l, const pl_generate_settings *own, uint64_t context)
{
    const uint64_t most = TEXTS_A_SEQUENCE * l->sequences;
    return l->sequences * sizeof(row) + most * (sizeof(text) + room_of(own, context) * sizeof(uint32_t));
}

static batch begin(pl_session *s, generation *of, const pl_prompts *prompts)
{
    const generate_layout l = pl_generate_lay_out(s->o.plan->graph, of->settings, s->o.data);
    batch b = {.s = s, .of = of, .prompts = prompts, .rows = l.sequences, .most = TEXTS_A_SEQUENCE * l.sequences};
    b.texts = (uint64_t)prompts->count * of->settings->samples, b.room = room_of(of->settings, of->context);
    b.row = (row *)(void *)((char *)pl_session_value(s, pl_job_generate.staging) + l.batch);
    b.text = (text *)(void *)(b.row + b.rows);
    b.id = (uint32_t *)(void *)(b.text + b.most);
    b.position = pl_session_value(s, "generate.positions");
    b.teller = pl_generator_begin(s, of, b.rows);
    for (uint64_t r = 0; r < b.rows; r++) {
        b.row[r] = (row){.g = pl_generator_begin(s, of, r)};
        b.row[r].g.is_silent = true;
    }
    return b;
}

static text *text_at(const batch *b, uint64_t number) { return &b->text[number % b->most]; }
static uint32_t *ids_at(const batch *b, uint64_t number) { return b->id + number % b->most * b->room; }

/* ---- telling ---- */

static void begin_telling(batch *b)
{
    b->teller.prompt_count = text_at(b, b->telling)->told.prompt_tokens;
    pl_generator_begin_text(&b->teller);
}

static void end_telling(batch *b, const text *t)
{
    const uint64_t tokens = b->teller.told.tokens;
    b->teller.told = t->told, b->teller.told.tokens = tokens;
    b->teller.position = t->position;
    pl_generator_tell_end(&b->teller);
    b->telling++;
}

/* What is there of the text whose turn it is, and of those after it while they are whole. */
static void tell(batch *b)
{
    while (b->telling < b->next) {
        const text *t = text_at(b, b->telling);
        if (b->teller.told.tokens == 0) begin_telling(b);
        while (b->teller.told.tokens < t->told.tokens)
            pl_generator_tell(&b->teller, ids_at(b, b->telling)[b->teller.told.tokens]);
        if (!t->is_over) return;
        end_telling(b, t);
        b->teller.told.tokens = 0;
    }
}

/* ---- writing ---- */

static pl_status begin_text(batch *b, row *r, pl_error *err)
{
    generator *g = &r->g;
    r->number = b->next++, r->fed = 0, r->began = pl_run_now(), r->is_used = true;
    g->prompt = pl_prompts_at(b->prompts, r->number / b->of->settings->samples, &g->prompt_count);
    g->sample = (uint32_t)(r->number % b->of->settings->samples), g->position = 0;
    pl_generator_forget(g);
    pl_generator_begin_text(g);
    *text_at(b, r->number) = (text){.told = g->told};
    pl_session_set_integer(b->s, PL_INPUT_SEQUENCE, r - b->row);
    return pl_generator_feed_chunks(g, &r->fed, err);
}

/* Of one that is not used nobody reads the result. */
static void set_input(const batch *b, row *r)
{
    generator *g = &r->g;
    const bool is_prompt = r->is_used && r->fed < g->prompt_count;
    const uint32_t token = !r->is_used ? 0 : is_prompt ? g->prompt[r->fed] : g->last;
    const uint64_t position = r->is_used ? g->position++ : 0;
    if (r->is_used) pl_generator_remember(g, token);
    r->fed += is_prompt;
    *g->input = (int32_t)token;
    if (b->position)
        b->position[r - b->row] = (int64_t)position;
    else
        pl_session_set_integer(b->s, PL_INPUT_POSITION, (int64_t)position);
}

static pl_status take_token(const batch *b, row *r, const float *logits, pl_error *err)
{
    generator *g = &r->g;
    text *t = text_at(b, r->number);
    if (!r->is_used || r->fed < g->prompt_count) return PL_OK;
    PL_TRY(pl_generator_take(g, logits, r->began, err));
    ids_at(b, r->number)[g->told.tokens - 1] = g->last;
    *t = (text){g->told, g->position, pl_generator_is_over(g)};
    r->is_used = !t->is_over;
    return PL_OK;
}

static pl_status step(batch *b, pl_error *err)
{
    const float *logits = pl_session_value(b->s, "generate.logits");
    for (uint64_t r = 0; r < b->rows; r++) set_input(b, &b->row[r]);
    PL_TRY(pl_session_run_program(b->s, b->of->program, false, err));
    for (uint64_t r = 0; r < b->rows; r++) PL_TRY(take_token(b, &b->row[r], logits + r * b->of->vocab, err));
    return PL_OK;
}

static pl_status begin_texts(batch *b, pl_error *err)
{
    for (uint64_t r = 0; r < b->rows && b->next < b->texts && b->next < b->telling + b->most; r++)
        if (!b->row[r].is_used && !pl_session_should_stop(b->s)) PL_TRY(begin_text(b, &b->row[r], err));
    return PL_OK;
}

pl_status pl_generate_batch(pl_session *s, generation *of, const pl_prompts *prompts, pl_error *err)
{
    batch b = begin(s, of, prompts);
    while (b.telling < b.texts && !pl_session_should_stop(s)) {
        PL_TRY(begin_texts(&b, err));
        PL_TRY(step(&b, err));
        tell(&b);
    }
    if (b.telling == b.texts) return PL_OK;
    for (uint64_t n = b.telling; n < b.next; n++) text_at(&b, n)->is_over = true;
    tell(&b);
    return pl_fail(err, PL_E_STOPPED, "stopped before all texts were written");
}
