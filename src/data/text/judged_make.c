/* From texts, or lines of prompts with choices, to the file of ids. A block of the text is in memory at a time, or one
 * line with a prompt. */
#include "data/text/judged.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "data/infer/staging.h"
#include "data/text/encoder.h"

#define FORM "{\"prompt\": \"...\", \"choices\": [\"...\", \"...\"], \"answer\": 0}"

enum { BLOCK = 4096, CHARACTER_MAX = 4 };

typedef struct id_list {
    uint32_t *id;
    size_t count, capacity;
} id_list;

typedef struct making {
    const pl_judged_wish *w;
    pl_judged_head head;
    char said[PL_CORPUS_SAID_BYTES];
    pl_encoder *encoder;
    uint64_t begun; /* bytes of the text so far */
    uint8_t part[CHARACTER_MAX];
    size_t part_bytes; /* of a character whose end is still to come */
    uint64_t ids;      /* all, with the template's */
    char *line;
    size_t line_bytes, line_capacity;
    uint64_t number; /* of the line */
    id_list prompt, whole, *into;
    int fd;
    uint64_t at;
    uint32_t block[BLOCK], count;
} making;

/* ---- the file ---- */

static pl_status flush(making *m, pl_error *err)
{
    const size_t bytes = m->count * sizeof *m->block;
    PL_TRY(pl_file_put(m->fd, m->w->folder, m->at, m->block, bytes, err));
    m->at += bytes;
    m->count = 0;
    return PL_OK;
}

static pl_status put(making *m, uint32_t number, pl_error *err)
{
    m->block[m->count++] = number;
    return m->count == BLOCK ? flush(m, err) : PL_OK;
}

/* ---- ids ---- */

static pl_status take_ids(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    making *m = context;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= m->w->vocab)
            return pl_fail(err, PL_E_DATA, "the text has the id %u, but the model a vocabulary of %u", ids[i],
                           m->w->vocab);
        if (!m->into)
            PL_TRY(put(m, ids[i], err));
        else if (pl_grow(&m->into->id, &m->into->capacity, m->into->count, sizeof *ids))
            return pl_fail(err, PL_E_NOMEM, "no memory for its tokens");
        else
            m->into->id[m->into->count++] = ids[i];
    }
    m->ids += count;
    return PL_OK;
}

static pl_status refuse_utf8(uint64_t at, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "byte %" PRIu64 " of the text is not UTF-8; convert it", at);
}

/* Character by character, whatever portions they come in. */
static pl_status check_utf8(making *m, const uint8_t *p, size_t bytes, pl_error *err)
{
    uint32_t c;
    for (size_t i = 0, length; i < bytes; i += length) {
        const bool is_begun = m->part_bytes > 0;
        if (is_begun) m->part[m->part_bytes++] = p[i];
        length = is_begun ? pl_utf8_read(m->part, m->part_bytes, &c) : pl_utf8_read(p + i, bytes - i, &c);
        if (length && c == PL_NOT_UTF8) return refuse_utf8(m->begun + i - (is_begun ? m->part_bytes - 1 : 0), err);
        if (length == 0 && !is_begun) memcpy(m->part, p + i, m->part_bytes = bytes - i), length = bytes - i;
        if (!is_begun) continue;
        if (length) m->part_bytes = 0;
        length = 1;
    }
    return PL_OK;
}

/* ---- texts ---- */

static pl_status take_text(void *context, const void *data, size_t bytes, pl_error *err)
{
    making *m = context;
    PL_TRY(check_utf8(m, data, bytes, err));
    m->begun += bytes;
    return pl_encoder_feed(m->encoder, data, bytes, err);
}

/* An empty text is passed over. */
static pl_status end_text(void *context, pl_error *err)
{
    making *m = context;
    if (m->begun == 0) return PL_OK;
    if (m->part_bytes) return refuse_utf8(m->begun - m->part_bytes, err);
    PL_TRY(pl_encoder_finish(m->encoder, err));
    m->head.items++;
    m->head.bytes += m->begun;
    m->begun = 0;
    return put(m, PL_TOKEN_NONE, err);
}

static pl_status check_texts(making *m, pl_error *err)
{
    uint32_t before, after;
    (void)pl_tokenizer_template(m->w->tokenizer, 0, &before);
    (void)pl_tokenizer_template(m->w->tokenizer, 1, &after);
    m->head.tokens = m->ids - m->head.items * (before + after);
    if (m->w->stride == 0 && m->ids < 2 * m->w->window)
        return pl_fail(err, PL_E_DATA,
                       "%s: has %" PRIu64 " tokens, and chunks of %" PRIu64 " need %" PRIu64
                       " at least; give a longer text, a smaller `model.context`, or `eval.protocol` windows",
                       m->said, m->ids, m->w->window, 2 * m->w->window);
    if (m->ids > m->head.items) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: has no text of two tokens or more, so there is none to foretell", m->said);
}

/* ---- prompts with choices ---- */

static pl_status refuse(const making *m, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": %s; each line must be an object " FORM, m->said, m->number, what);
}

static pl_status read_tree(const making *m, json_t **tree, pl_error *err)
{
    json_error_t why;
    const pl_status status = pl_json_read(m->line, m->line_bytes, JSON_REJECT_DUPLICATES, tree, &why);
    if (status == PL_OK) return PL_OK;
    if (status == PL_E_NOMEM)
        return pl_fail(err, status, "%s:%" PRIu64 ": no memory to read the line", m->said, m->number);
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ":%d: is not valid JSON: %s; each line must be an object " FORM,
                   m->said, m->number, why.column, why.text);
}

static pl_status check_tree(const making *m, const json_t *tree, pl_error *err)
{
    const json_t *choices = json_object_get(tree, "choices"), *answer = json_object_get(tree, "answer");
    const size_t count = json_array_size(choices);
    if (!json_is_object(tree)) return refuse(m, "is no object", err);
    if (!json_is_string(json_object_get(tree, "prompt"))) return refuse(m, "\"prompt\" is no text", err);
    if (!json_is_array(choices) || count == 0 || count > PL_JUDGED_CHOICES_MAX)
        return refuse(m, "\"choices\" is no list of 1 to 256 texts", err);
    for (size_t i = 0; i < count; i++)
        if (json_string_length(json_array_get(choices, i)) == 0)
            return refuse(m, "a choice is no text, or an empty one", err);
    if (answer &&
        (!json_is_integer(answer) || json_integer_value(answer) < 0 || (uint64_t)json_integer_value(answer) >= count))
        return refuse(m, "\"answer\" is not the number of a choice, counted from 0", err);
    return PL_OK;
}

/* Without what the template puts after a text. */
static pl_status encode(making *m, id_list *into, const json_t *prompt, const json_t *choice, pl_error *err)
{
    uint32_t after;
    m->into = into;
    into->count = 0;
    PL_TRY(pl_encoder_feed(m->encoder, json_string_value(prompt), json_string_length(prompt), err));
    if (choice) PL_TRY(pl_encoder_feed(m->encoder, json_string_value(choice), json_string_length(choice), err));
    PL_TRY(pl_encoder_finish(m->encoder, err));
    (void)pl_tokenizer_template(m->w->tokenizer, 1, &after);
    into->count -= after < into->count ? after : into->count;
    return PL_OK;
}

/* As lm-evaluation-harness counts them: the blanks that part a choice from its prompt are left out. */
static uint32_t count_characters(const json_t *choice)
{
    const char *p = json_string_value(choice);
    uint32_t count = 0;
    while (*p == ' ') p++;
    for (; *p; p++) count += ((unsigned char)*p & 0xc0) != 0x80;
    return count;
}

static pl_status put_choice(making *m, const json_t *prompt, const json_t *choice, pl_error *err)
{
    size_t same = 0;
    PL_TRY(encode(m, &m->whole, prompt, choice, err));
    while (same < m->prompt.count && same < m->whole.count && m->prompt.id[same] == m->whole.id[same]) same++;
    if (same == 0)
        return refuse(m, "nothing comes before the first token of the choice; begin the prompt with a text", err);
    if (same == m->whole.count) return refuse(m, "a choice adds no token to the prompt", err);
    if (m->whole.count > m->w->window)
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": prompt and choice have %zu tokens, and the context %" PRIu64
                       "; make them shorter, or `model.context` larger",
                       m->said, m->number, m->whole.count, m->w->window);
    PL_TRY(put(m, (uint32_t)same, err));
    PL_TRY(put(m, (uint32_t)m->whole.count, err));
    PL_TRY(put(m, count_characters(choice), err));
    for (size_t i = 0; i < m->whole.count; i++) PL_TRY(put(m, m->whole.id[i], err));
    return PL_OK;
}

static pl_status put_item(making *m, const json_t *tree, pl_error *err)
{
    const json_t *prompt = json_object_get(tree, "prompt"), *choices = json_object_get(tree, "choices"),
                 *answer = json_object_get(tree, "answer");
    PL_TRY(check_tree(m, tree, err));
    PL_TRY(put(m, (uint32_t)json_array_size(choices), err));
    PL_TRY(put(m, answer ? (uint32_t)json_integer_value(answer) : PL_TOKEN_NONE, err));
    PL_TRY(encode(m, &m->prompt, prompt, NULL, err));
    for (size_t i = 0; i < json_array_size(choices); i++)
        PL_TRY(put_choice(m, prompt, json_array_get(choices, i), err));
    m->head.items++;
    return PL_OK;
}

static pl_status take_line(void *context, const void *data, size_t bytes, pl_error *err)
{
    making *m = context;
    if (bytes > PL_TEXTS_LINE_BYTES - m->line_bytes)
        return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": the line has more than %d bytes", m->said, m->number + 1,
                       PL_TEXTS_LINE_BYTES);
    for (size_t i = 0; i < bytes; i++) {
        if (pl_grow(&m->line, &m->line_capacity, m->line_bytes, 1))
            return pl_fail(err, PL_E_NOMEM, "%s:%" PRIu64 ": no memory to read the line", m->said, m->number + 1);
        m->line[m->line_bytes++] = ((const char *)data)[i];
    }
    return PL_OK;
}

static bool is_blank(const making *m)
{
    for (size_t i = 0; i < m->line_bytes; i++)
        if (!strchr(" \t\r", m->line[i])) return false;
    return true;
}

static pl_status end_line(void *context, pl_error *err)
{
    making *m = context;
    json_t *tree;
    m->number++;
    if (is_blank(m)) return m->line_bytes = 0, PL_OK;
    PL_TRY(read_tree(m, &tree, err));
    const pl_status status = put_item(m, tree, err);
    json_decref(tree);
    m->line_bytes = 0;
    return status;
}

/* ---- all ---- */

static pl_status read_all(making *m, pl_error *err)
{
    pl_corpus corpus;
    const pl_corpus_taker text = {take_text, end_text, m}, line = {take_line, end_line, m};
    PL_TRY(pl_corpus_open(&corpus, &m->w->texts, err));
    const pl_status status = pl_corpus_read(&corpus, "reading the text", m->w->has_choices ? &line : &text, err);
    if (status != PL_OK) return status;
    m->head.key = corpus.origin.content;
    if (m->w->has_choices) return PL_OK;
    PL_TRY(end_text(m, err)); /* a plain text has no end of its own */
    return check_texts(m, err);
}

/* What the encoder refuses names no file. */
static pl_status name_text(const making *m, pl_status status, pl_error *err)
{
    const pl_error why = *err;
    if (status == PL_OK || strncmp(why.text, m->said, strlen(m->said)) == 0) return status;
    if (m->w->has_choices) return pl_fail(err, status, "%s:%" PRIu64 ": %.600s", m->said, m->number, why.text);
    if (m->head.items)
        return pl_fail(err, status, "%s: text %" PRIu64 ": %.600s", m->said, m->head.items + 1, why.text);
    return pl_fail(err, status, "%s: %.600s", m->said, why.text);
}

static void find_bos(making *m)
{
    uint32_t before;
    const uint32_t *id = pl_tokenizer_template(m->w->tokenizer, 0, &before);
    m->head.bos = before ? *id : PL_TOKEN_NONE;
}

static pl_status fill(making *m, pl_error *err)
{
    PL_TRY(pl_encoder_create(m->w->tokenizer, take_ids, m, &m->encoder, err));
    pl_encoder_set_options(m->encoder, (pl_encode_options){.adds_special = true});
    PL_TRY(name_text(m, read_all(m, err), err));
    PL_TRY(flush(m, err));
    return pl_file_put(m->fd, m->w->folder, 0, &m->head, sizeof m->head, err);
}

static pl_status make(making *m, int *fd, uint64_t *fact, pl_error *err)
{
    const pl_judged_wish *w = m->w;
    (void)pl_corpus_said(w->texts.names, m->said);
    memcpy(m->head.magic, PL_JUDGED_MAGIC, sizeof m->head.magic);
    m->head.stride = w->stride, m->head.has_choices = w->has_choices;
    find_bos(m);
    PL_TRY(pl_staging_create(w->folder, w->is_memory, "the tokens to judge", &m->fd, err));
    m->at = sizeof m->head;
    const pl_status status = fill(m, err);
    if (status != PL_OK) return close(m->fd), status;
    *fd = m->fd;
    *fact = pl_judged_fact(&m->head, m->fd);
    return PL_OK;
}

pl_status pl_judged_make(const pl_judged_wish *w, int *fd, uint64_t *fact, pl_error *err)
{
    making *m = pl_alloc(1, sizeof *m); /* large */
    if (!m) return pl_fail(err, PL_E_NOMEM, "no memory to read the text");
    m->w = w;
    const pl_status status = make(m, fd, fact, err);
    pl_encoder_destroy(m->encoder);
    pl_free(m->line);
    pl_free(m->prompt.id);
    pl_free(m->whole.id);
    pl_free(m);
    return status;
}
