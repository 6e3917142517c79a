/* Each message is rendered with all before it, as templates want it; what the model has seen already is a common prefix
 * of the ids. */
#include "jobs/chat.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/utf8.h"
#include "chat/template.h"
#include "data/text/encoder.h"

/* Of the context and the template follow the texts: a token has so many bytes of them at most, on average. A chat whose
 * tokens have more is refused with a sentence. */
enum {
    TOKEN_BYTES = 12,
    TEXT_BYTES_LEAST = 8 << 10, /* a line that somebody types has at most half of it */
    MESSAGE_TOKENS = 4,         /* and a message has so many tokens at least */
    MESSAGES_LEAST = 16,
    MESSAGE_SCRATCH = 512, /* what a rendering needs for one, without its text */
    SCRATCH_LEAST = 256 << 10,
    PAIRS = 4, /* values that a message is made of: two names and what they name */
};

typedef struct rooms {
    uint64_t messages, text, rendered, scratch, bytes; /* bytes: of all */
    uint64_t message_at, pair_at, id_at, cached_at, text_at, rendered_at, scratch_at;
} rooms;

struct pl_conversation {
    const pl_text_data *data;
    const char *system;
    uint64_t context;
    rooms room;
    void *block;
    pl_chat_template *template;
    pl_chat_special *special;
    pl_chat_specials specials;
    pl_chat_variable variable[PL_SPECIALS];
    size_t variables;
    struct tm now;
    pl_encoder *encoder;
    /* in the caller's memory */
    pl_chat_value *message, *pair; /* pair: PAIRS for each message */
    char *text;                    /* of the messages, one after the other */
    uint32_t *id, *cached;
    pl_chat_output out;
    size_t messages, text_bytes, ids, cached_ids;
    bool is_cut;  /* the answer did not fit into the text */
    bool is_lost; /* the ids that come are of a text that failed */
};

/* ---- memory ---- */

static uint64_t take(uint64_t *end, uint64_t bytes)
{
    const uint64_t at = *end;
    *end += pl_align_up(bytes, 16);
    return at;
}

/* A context has at most 2^24 tokens and a template 2^24 bytes: no sum here is too large. */
static rooms find_rooms(const pl_text_data *data, uint64_t context)
{
    rooms r = {.messages = context / MESSAGE_TOKENS + MESSAGES_LEAST};
    r.text = context * TOKEN_BYTES + TEXT_BYTES_LEAST;
    r.rendered = 2 * r.text + data->chat.bytes;
    r.scratch = SCRATCH_LEAST + r.messages * MESSAGE_SCRATCH + 4 * r.text + 4 * data->chat.bytes;
    r.message_at = take(&r.bytes, r.messages * sizeof(pl_chat_value));
    r.pair_at = take(&r.bytes, r.messages * PAIRS * sizeof(pl_chat_value));
    r.id_at = take(&r.bytes, context * sizeof(uint32_t));
    r.cached_at = take(&r.bytes, context * sizeof(uint32_t));
    r.text_at = take(&r.bytes, r.text);
    r.rendered_at = take(&r.bytes, r.rendered);
    r.scratch_at = take(&r.bytes, r.scratch);
    return r;
}

uint64_t pl_conversation_bytes(const pl_text_data *data, uint64_t context) { return find_rooms(data, context).bytes; }

/* ---- messages ---- */

/* The text is in place already. */
static void add_message(pl_conversation *c, const char *role, const char *text, size_t bytes)
{
    pl_chat_value *pair = c->pair + c->messages * PAIRS;
    pair[0] = pl_chat_string("role", 4), pair[1] = pl_chat_string(role, strlen(role));
    pair[2] = pl_chat_string("content", 7), pair[3] = pl_chat_string(text, bytes);
    c->message[c->messages++] = pl_chat_map(pair, 2);
}

static pl_status refuse_full(const pl_conversation *c, pl_error *err)
{
    return pl_fail(err, PL_E_USAGE,
                   "the chat fills its context of `model.context` %llu tokens; begin a new one, or plan for a longer "
                   "context",
                   (unsigned long long)c->context);
}

static bool is_utf8(const char *text, size_t bytes)
{
    uint32_t point = 0;
    for (size_t i = 0, n; i < bytes; i += n) {
        n = pl_utf8_read((const uint8_t *)text + i, bytes - i, &point);
        if (n == 0 || point == PL_NOT_UTF8) return false;
    }
    return true;
}

static pl_status add_user(pl_conversation *c, const char *message, size_t bytes, pl_error *err)
{
    if (c->is_cut || bytes > c->room.text - c->text_bytes || c->messages + 2 > c->room.messages)
        return refuse_full(c, err);
    if (!is_utf8(message, bytes)) return pl_fail(err, PL_E_DATA, "the message is not UTF-8; give it in UTF-8");
    memcpy(c->text + c->text_bytes, message, bytes);
    add_message(c, "user", c->text + c->text_bytes, bytes);
    c->text_bytes += bytes;
    return PL_OK;
}

void pl_conversation_hear(pl_conversation *c, const char *text, size_t bytes)
{
    pl_chat_value *answer = &c->pair[(c->messages - 1) * PAIRS + 3];
    if (bytes > c->room.text - c->text_bytes) c->is_cut = true;
    if (c->is_cut) return;
    memcpy(c->text + c->text_bytes, text, bytes);
    c->text_bytes += bytes;
    answer->count += (uint32_t)bytes;
}

/* ---- ids ---- */

static pl_status take_ids(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    pl_conversation *c = context;
    if (c->is_lost) return PL_OK;
    if (count >= c->context - c->ids) return refuse_full(c, err); /* an answer has a token at least */
    memcpy(c->id + c->ids, ids, count * sizeof *ids);
    c->ids += count;
    return PL_OK;
}

static pl_status encode_piece(pl_conversation *c, const pl_chat_piece *piece, pl_error *err)
{
    pl_error ignored;
    pl_encoder_set_options(c->encoder,
                           (pl_encode_options){.ignores_added = piece->is_literal, .continues = !piece->is_first});
    pl_status status = pl_encoder_feed(c->encoder, piece->text, piece->bytes, err);
    if (status == PL_OK) status = pl_encoder_finish(c->encoder, err);
    if (status == PL_OK) return PL_OK;
    c->is_lost = true;
    (void)pl_encoder_finish(c->encoder, &ignored);
    c->is_lost = false;
    return status;
}

static pl_status encode(pl_conversation *c, pl_error *err)
{
    pl_chat_piece piece;
    size_t at = 0;
    c->ids = 0;
    while (pl_chat_next_piece(&c->specials, c->out.text, c->out.rendered_bytes, &at, &piece))
        PL_TRY(encode_piece(c, &piece, err));
    if (c->ids == 0) return pl_fail(err, PL_E_DATA, "%s: the chat template writes nothing", c->data->chat.name);
    return PL_OK;
}

static pl_status render(pl_conversation *c, pl_error *err)
{
    pl_error why;
    const pl_chat_input in = {.messages = pl_chat_list(c->message, c->messages),
                              .add_generation_prompt = true,
                              .variable = c->variable,
                              .variables = c->variables,
                              .specials = &c->specials,
                              .now = &c->now};
    const pl_status status = pl_chat_render(c->template, &in, &c->out, &why);
    if (status == PL_E_BUDGET) return refuse_full(c, err);
    return status == PL_OK ? PL_OK : pl_fail(err, status, "%s: %.800s", c->data->chat.name, why.text);
}

static size_t count_cached(const pl_conversation *c)
{
    size_t n = 0;
    while (n < c->ids && n < c->cached_ids && c->id[n] == c->cached[n]) n++;
    return n;
}

pl_status pl_conversation_ask(pl_conversation *c, const char *message, size_t bytes, pl_conversation_prompt *to,
                              pl_error *err)
{
    const size_t messages = c->messages, text_bytes = c->text_bytes;
    if (messages == 0 && c->system && c->system[0]) add_message(c, "system", c->system, strlen(c->system));
    pl_status status = add_user(c, message, bytes, err);
    if (status == PL_OK) status = render(c, err);
    if (status == PL_OK) status = encode(c, err);
    if (status != PL_OK) {
        c->messages = messages, c->text_bytes = text_bytes;
        return status;
    }
    add_message(c, "assistant", c->text + c->text_bytes, 0);
    *to = (pl_conversation_prompt){c->id, c->ids, count_cached(c)};
    return PL_OK;
}

void pl_conversation_begin_feed(pl_conversation *c) { c->cached_ids = 0; }

void pl_conversation_feed(pl_conversation *c, uint32_t id)
{
    if (c->cached_ids < c->context) c->cached[c->cached_ids++] = id;
}

/* ---- before commit ---- */

/* In a block that holds no more than it needs: how much that is, a first parsing tells. */
static pl_status parse(pl_conversation *c, pl_error *err)
{
    const pl_text_template *t = &c->data->chat;
    pl_error why;
    uint64_t bytes = pl_chat_template_bytes(t->bytes);
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && status == PL_OK; i++) {
        if (c->template) bytes = pl_chat_template_used_bytes(c->template);
        pl_free(c->block);
        c->block = bytes < UINT64_MAX ? pl_alloc(1, bytes) : NULL;
        if (!c->block) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the chat template", t->name);
        status = pl_chat_template_parse(t->text, t->bytes, c->block, bytes, &c->template, &why);
    }
    return status == PL_OK ? PL_OK : pl_fail(err, status, "%s: %.800s", t->name, why.text);
}

static pl_status find_specials(pl_conversation *c, pl_error *err)
{
    const pl_tokenizer *t = c->data->tokenizer;
    const uint32_t added = pl_tokenizer_added_count(t);
    size_t count = 0;
    c->special = pl_alloc((size_t)added + 1, sizeof *c->special);
    if (!c->special) return pl_fail(err, PL_E_NOMEM, "no memory for the special tokens");
    for (uint32_t i = 0; i < added; i++) {
        int is_special;
        size_t bytes;
        const uint8_t *text = pl_tokenizer_token(t, pl_tokenizer_added_at(t, i, &is_special), &bytes);
        if (is_special && bytes) c->special[count++] = (pl_chat_special){(const char *)text, bytes};
    }
    c->specials = pl_chat_specials_sort(c->special, count);
    return PL_OK;
}

static void find_variables(pl_conversation *c)
{
    static const struct {
        const char *name;
        pl_special special;
    } names[] = {{"bos_token", PL_SPECIAL_BOS},
                 {"eos_token", PL_SPECIAL_EOS},
                 {"unk_token", PL_SPECIAL_UNKNOWN},
                 {"pad_token", PL_SPECIAL_PADDING}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const uint32_t id = pl_tokenizer_special_id(c->data->tokenizer, names[i].special);
        size_t bytes = 0;
        if (id == PL_TOKEN_NONE) continue;
        const char *text = (const char *)pl_tokenizer_token(c->data->tokenizer, id, &bytes);
        c->variable[c->variables++] = (pl_chat_variable){names[i].name, pl_chat_string(text, bytes), true};
    }
}

pl_status pl_conversation_create(const pl_text_data *data, uint64_t context, const char *system, pl_conversation **to,
                                 pl_error *err)
{
    const time_t now = time(NULL);
    pl_conversation *c = *to = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the chat");
    c->data = data, c->context = context, c->system = system;
    c->room = find_rooms(data, context);
    if (strstr(data->chat.text, "strftime_now")) localtime_r(&now, &c->now);
    PL_TRY(parse(c, err));
    PL_TRY(find_specials(c, err));
    find_variables(c);
    return pl_encoder_create_for(data->tokenizer, c->room.rendered, take_ids, c, &c->encoder, err);
}

void pl_conversation_destroy(pl_conversation *c)
{
    if (!c) return;
    pl_encoder_destroy(c->encoder);
    pl_free(c->special);
    pl_free(c->block);
    pl_free(c);
}

void pl_conversation_place(pl_conversation *c, void *memory)
{
    char *at = memory;
    c->message = (pl_chat_value *)(void *)(at + c->room.message_at);
    c->pair = (pl_chat_value *)(void *)(at + c->room.pair_at);
    c->id = (uint32_t *)(void *)(at + c->room.id_at);
    c->cached = (uint32_t *)(void *)(at + c->room.cached_at);
    c->text = at + c->room.text_at;
    c->out = (pl_chat_output){.scratch = at + c->room.scratch_at,
                              .scratch_bytes = c->room.scratch,
                              .text = at + c->room.rendered_at,
                              .text_bytes = c->room.rendered};
}
