/* SQuAD's JSON (Rajpurkar et al. 2016, 2018), one document of any size: data[].paragraphs[].context and .qas[].question
 * and .answers[0].text, in the order of the file. It is read byte by byte, with what each open bracket encloses on a
 * stack; a wanted string passes as it comes. All the rest must be JSON: a file that was cut off or garbled is refused
 * where that is seen. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "texts/scan.h"

/* What may come next. */
enum { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COLON, AFTER, STRING, WORD, DONE };
/* What a value is. Up to ANSWER, each array is followed by the kind of its items. */
enum { OTHER, ROOT, DATA, ARTICLE, PARAGRAPHS, PARAGRAPH, QAS, QA, ANSWERS, ANSWER, CONTEXT, QUESTION, TEXT };
enum { ARRAY = 0x80 }; /* marks a level as an array */

static const struct {
    uint8_t within;
    const char *key;
    uint8_t is;
} keys[] = {{ROOT, "data", DATA},    {ARTICLE, "paragraphs", PARAGRAPHS}, {PARAGRAPH, "context", CONTEXT},
            {PARAGRAPH, "qas", QAS}, {QA, "question", QUESTION},          {QA, "answers", ANSWERS},
            {ANSWER, "text", TEXT}};
static const char *const parts[] = {"contexts", "questions", "answers"};
enum { PARTS = sizeof parts / sizeof *parts };

uint8_t pl_squad_parts(const char *names)
{
    uint8_t bits = 0;
    if (!names) return (1u << PARTS) - 1;
    for (size_t bytes; *names; names += bytes + (names[bytes] == ',')) {
        names += strspn(names, " ");
        bytes = strcspn(names, ",");
        size_t own = bytes, i = 0;
        while (own && names[own - 1] == ' ') own--;
        while (i < PARTS && (strlen(parts[i]) != own || memcmp(names, parts[i], own) != 0)) i++;
        if (i == PARTS) return 0;
        bits |= (uint8_t)(1u << i);
    }
    return bits;
}

pl_scan_squad pl_scan_squad_begin(const pl_scan *s)
{
    return (pl_scan_squad){.state = VALUE, .next = ROOT, .parts = pl_squad_parts(s->setup->key)};
}

static pl_status fail(const pl_scan *s, const pl_scan_squad *q, uint64_t at, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ":%" PRIu64 ": is not valid JSON: %s", s->setup->path, s->line,
                   at - q->line_begin + 1, what);
}

/* ---- levels ---- */

static uint8_t enclosing(const pl_scan_squad *q) { return q->depth ? q->level[q->depth - 1] : OTHER; }

static pl_status open_level(const pl_scan *s, pl_scan_squad *q, bool is_array, uint64_t at, pl_error *err)
{
    static const bool arrays[TEXT + 1] = {[DATA] = true, [PARAGRAPHS] = true, [QAS] = true, [ANSWERS] = true};
    const uint8_t is = q->next <= ANSWER && arrays[q->next] == is_array ? q->next : OTHER;
    if (q->depth == PL_SQUAD_DEPTH_MAX) return fail(s, q, at, "its brackets are nested too deep", err);
    q->level[q->depth++] = is | (is_array ? ARRAY : 0);
    q->next = is_array && is != OTHER ? is + 1 : OTHER;
    q->state = is_array ? VALUE_OR_END : KEY_OR_END;
    return PL_OK;
}

static void end_value(pl_scan_squad *q)
{
    q->state = q->depth ? AFTER : DONE;
    q->next = OTHER;
}

static void close_level(pl_scan_squad *q)
{
    q->depth--;
    end_value(q);
}

/* After a comma. Only the first of the answers counts. */
static void begin_next(pl_scan_squad *q)
{
    const uint8_t is = enclosing(q) & ~ARRAY;
    if (!(enclosing(q) & ARRAY)) {
        q->state = KEY;
        return;
    }
    q->state = VALUE;
    q->next = is == OTHER || is == ANSWERS ? OTHER : is + 1;
}

/* ---- strings ---- */

static void begin_string(pl_scan_squad *q, uint64_t at, bool is_key)
{
    const uint8_t part = q->next >= CONTEXT && !is_key ? (uint8_t)(1u << (q->next - CONTEXT)) : 0;
    q->after_string = is_key ? COLON : AFTER;
    q->wanted = part & q->parts;
    q->any |= part != 0;
    q->escaped = q->has_escape = false;
    q->digits = 0;
    q->word_bytes = 0;
    q->begin = q->passed = at + 1;
    q->state = STRING;
}

static pl_status pass(const pl_scan *s, pl_scan_squad *q, const uint8_t *data, uint64_t end, pl_error *err)
{
    const uint64_t from = q->passed;
    q->passed = end;
    return q->wanted ? pl_scan_pass(s, PL_TEXT_JSON, data + (from - s->at), (size_t)(end - from), err) : PL_OK;
}

static void take_key(pl_scan_squad *q)
{
    q->next = OTHER;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].within == enclosing(q) && strlen(keys[i].key) == q->word_bytes &&
            memcmp(keys[i].key, q->word, q->word_bytes) == 0)
            q->next = keys[i].is;
    q->state = COLON;
}

static pl_status end_string(const pl_scan *s, pl_scan_squad *q, const uint8_t *data, uint64_t at, pl_error *err)
{
    if (q->after_string == COLON) return take_key(q), PL_OK;
    PL_TRY(pass(s, q, data, at, err));
    const pl_text_place place = {q->begin, at - q->begin, q->has_escape ? PL_TEXT_JSON : PL_TEXT_RAW};
    const bool wanted = q->wanted;
    end_value(q);
    return wanted ? pl_scan_found(s, &place, err) : PL_OK;
}

static pl_status take_in_string(const pl_scan *s, pl_scan_squad *q, const uint8_t *data, uint64_t at, pl_error *err)
{
    const uint8_t c = data[at - s->at];
    if (c < 0x20) return fail(s, q, at, "a line end or another control character within a string", err);
    if (q->digits) {
        if (!isxdigit(c)) return fail(s, q, at, "\\u needs four hexadecimal digits", err);
        q->digits--;
    } else if (q->escaped) {
        if (!strchr("\"\\/bfnrtu", c)) return fail(s, q, at, "an escape that JSON does not have", err);
        q->digits = c == 'u' ? 4 : 0;
        q->escaped = false;
    } else if (c == '\\') {
        q->escaped = q->has_escape = true;
    } else if (c == '"') {
        return end_string(s, q, data, at, err);
    }
    if (q->word_bytes < sizeof q->word) q->word[q->word_bytes++] = (char)c;
    return PL_OK;
}

/* ---- the rest ---- */

static bool is_word(const pl_scan_squad *q)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == q->word_bytes && memcmp(words[i], q->word, q->word_bytes) == 0) return true;
    return q->word_bytes > 0 && (isdigit((unsigned char)q->word[0]) || q->word[0] == '-');
}

static bool continues_word(uint8_t c) { return isalnum(c) || c == '-' || c == '+' || c == '.'; }

static pl_status take_value(const pl_scan *s, pl_scan_squad *q, uint8_t c, uint64_t at, pl_error *err)
{
    if (c == '{' || c == '[') return open_level(s, q, c == '[', at, err);
    if (q->state == VALUE_OR_END && c == ']') return close_level(q), PL_OK;
    if (c == '"') return begin_string(q, at, false), PL_OK;
    if (!continues_word(c)) return fail(s, q, at, "a value was expected", err);
    q->state = WORD;
    q->word[0] = (char)c, q->word_bytes = 1;
    return PL_OK;
}

static pl_status take_mark(const pl_scan *s, pl_scan_squad *q, uint8_t c, uint64_t at, pl_error *err)
{
    const bool in_array = enclosing(q) & ARRAY;
    switch (q->state) {
    case KEY:
    case KEY_OR_END:
        if (c == '"') return begin_string(q, at, true), PL_OK;
        if (c == '}' && q->state == KEY_OR_END) return close_level(q), PL_OK;
        return fail(s, q, at, "a key in quotes was expected", err);
    case COLON:
        if (c == ':') return q->state = VALUE, PL_OK;
        return fail(s, q, at, "a colon was expected after the key", err);
    case AFTER:
        if (c == ',') return begin_next(q), PL_OK;
        if (c == (in_array ? ']' : '}')) return close_level(q), PL_OK;
        return fail(s, q, at, in_array ? "a comma or ] was expected" : "a comma or } was expected", err);
    case DONE:
        return fail(s, q, at, "something follows after its end", err);
    default:
        return take_value(s, q, c, at, err);
    }
}

static pl_status end_word(const pl_scan *s, pl_scan_squad *q, uint64_t at, pl_error *err)
{
    if (!is_word(q)) return fail(s, q, at, "a word that is no value", err);
    end_value(q);
    return PL_OK;
}

pl_status pl_scan_squad_feed(pl_scan *s, pl_scan_squad *q, const uint8_t *data, size_t bytes, pl_error *err)
{
    for (uint64_t at = s->at; at < s->at + bytes; at++) {
        const uint8_t c = data[at - s->at];
        if (q->state == STRING) {
            PL_TRY(take_in_string(s, q, data, at, err));
            continue;
        }
        if (q->state == WORD && continues_word(c)) {
            if (q->word_bytes < sizeof q->word) q->word[q->word_bytes++] = (char)c;
            continue;
        }
        if (q->state == WORD) PL_TRY(end_word(s, q, at, err));
        if (c == '\n') s->line++, q->line_begin = at + 1;
        if (!strchr(" \t\r\n", c) || !c) PL_TRY(take_mark(s, q, c, at, err));
    }
    return q->state == STRING && q->after_string == AFTER ? pass(s, q, data, s->at + bytes, err) : PL_OK;
}

pl_status pl_scan_squad_finish(pl_scan *s, pl_scan_squad *q, pl_error *err)
{
    if (q->state != DONE) return fail(s, q, s->at, "it ends in the middle; the file is cut off", err);
    if (q->any) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: is not SQuAD's JSON: no string stands at data[].paragraphs[].context, .qas[].question or "
                   ".qas[].answers[].text",
                   s->setup->path);
}
