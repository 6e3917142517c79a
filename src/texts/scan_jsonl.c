/* jsonl: jansson judges each line, and its tree says what the text is, but not where. So the line is walked once more,
 * as JSON known to be valid, and what lies at the place found must decode to what jansson read.
 *
 * jansson refuses two things that JSON's grammar allows: half of a surrogate pair, such as \ud800 (Python writes it),
 * and a string with bytes that are not UTF-8, which are not errors here. In jansson's copy of the line, bytes of the
 * same length stand for them. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_read.h"
#include "texts/scan.h"

static const char *key_of(const pl_scan *s) { return s->setup->key ? s->setup->key : "text"; }

static pl_status fail_line(const pl_scan *s, pl_error *err, const char *what)
{
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": %s", s->setup->path, s->line, what);
}

/* ---- what jansson sees ---- */

/* The code unit of \uXXXX; 0 if it is something else. */
static uint32_t unit_at(const char *at, const char *end)
{
    uint32_t unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return 0;
    for (int i = 2; i < 6; i++) {
        const char c = at[i], low = (char)(c | 32);
        const bool is_digit = c >= '0' && c <= '9', is_letter = low >= 'a' && low <= 'f';
        if (!is_digit && !is_letter) return 0;
        unit = unit << 4 | (uint32_t)(is_digit ? c - '0' : low - 'a' + 10);
    }
    return unit;
}

/* Mends the escape at a backslash within a string; returns its length. */
static size_t mend_escape(char *at, const char *end)
{
    const uint32_t unit = unit_at(at, end);
    if (unit < 0xd800 || unit > 0xdfff) return unit ? 6 : 2;
    const uint32_t next = unit_at(at + 6, end);
    if (unit <= 0xdbff && next >= 0xdc00 && next <= 0xdfff) return 12;
    memcpy(at + 2, "fffd", 4);
    return 6;
}

/* Mends the line and counts what may become values of its tree. */
static uint64_t mend(char *line, size_t bytes)
{
    char *const end = line + bytes;
    uint64_t values = 0;
    bool in_string = false;
    for (char *at = line; at < end;) {
        const size_t utf8 = *at & 0x80 ? pl_json_utf8_length((unsigned char *)at, (size_t)(end - at)) : 1;
        if (utf8 == 0) *at = '?';
        if (*at == '"') in_string = !in_string;
        values += !in_string && (*at == ',' || *at == '{' || *at == '[');
        at += in_string && *at == '\\' ? mend_escape(at, end) : utf8 ? utf8 : 1;
    }
    return values;
}

static pl_status refuse(const pl_scan *s, const json_error_t *why, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ":%d: is not valid JSON: %s; each line must be an object",
                   s->setup->path, s->line, why->column, why->text);
}

/* ---- where the text lies ---- */

static const char *string_end(const char *quote, const char *end)
{
    const char *at = quote + 1;
    while (at < end && *at != '"') at += *at == '\\' ? 2 : 1;
    return at < end ? at : end;
}

static bool is_key(const char *begin, const char *end, const char *key)
{
    char name[PL_TEXTS_NAME_BYTES];
    pl_unescape u = pl_unescape_begin(PL_TEXT_JSON, name, sizeof name);
    (void)pl_unescape_feed(&u, (const uint8_t *)begin, (size_t)(end - begin));
    pl_unescape_end(&u);
    return u.whole && u.bytes == strlen(key) && memcmp(name, key, u.bytes) == 0;
}

/* The string at the last such key of the line's object, within its quotes. The last of equal keys counts, as in
 * jansson. */
static bool find_string(const char *line, size_t bytes, const char *key, const char **from, const char **to)
{
    const char *const end = line + bytes;
    uint32_t depth = 0;
    bool key_next = false, value_next = false, found = false;
    for (const char *at = line; at < end; at++) {
        if (*at == '"') {
            const char *const close = string_end(at, end);
            if (value_next && !key_next && depth == 1) *from = at + 1, *to = close, found = true;
            if (key_next) value_next = is_key(at + 1, close, key);
            key_next = false;
            at = close;
        } else if (*at == '{' || *at == '[') {
            key_next = ++depth == 1;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (*at == ',' && depth == 1) {
            key_next = true, value_next = false;
        }
    }
    return found;
}

/* Decodes in place: the line is not needed afterwards. */
static pl_status check_same(const pl_scan *s, char *from, char *to, const json_t *value, pl_error *err)
{
    pl_unescape u = pl_unescape_begin(PL_TEXT_JSON, from, (size_t)(to - from));
    (void)pl_unescape_feed(&u, (const uint8_t *)from, (size_t)(to - from));
    pl_unescape_end(&u);
    if (u.whole && u.bytes == json_string_length(value) && memcmp(from, json_string_value(value), u.bytes) == 0)
        return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s:%" PRIu64 ": the string at \"%.100s\" is read in two ways; please report it",
                   s->setup->path, s->line, key_of(s));
}

static pl_status tell_place(const pl_scan *s, pl_scan_jsonl *j, const json_t *value, pl_error *err)
{
    const char *from, *to;
    if (!find_string(j->line, j->bytes, key_of(s), &from, &to))
        return pl_fail(err, PL_E_INTERNAL, "%s:%" PRIu64 ": the string at \"%.100s\" is not found again",
                       s->setup->path, s->line, key_of(s));
    const uint64_t bytes = (uint64_t)(to - from), at = (uint64_t)(from - j->line);
    const bool is_raw = !memchr(from, '\\', bytes);
    const pl_text_place place = {j->begin + at, bytes, is_raw ? PL_TEXT_RAW : PL_TEXT_JSON};
    PL_TRY(check_same(s, j->line + at, j->line + at + bytes, value, err));
    if (j->as_is) PL_TRY(pl_scan_pass(s, place.encoding, j->as_is + at, bytes, err));
    return pl_scan_found(s, &place, err);
}

static pl_status take_object(const pl_scan *s, pl_scan_jsonl *j, const json_t *root, pl_error *err)
{
    const json_t *value = json_object_get(root, key_of(s));
    if (!json_is_object(root)) return fail_line(s, err, "is no object; each line must be one");
    if (json_is_string(value)) return tell_place(s, j, value, err);
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": %s \"%.100s\"%s", s->setup->path, s->line,
                   value ? "what stands at the key" : "its object has no key", key_of(s),
                   value ? " is no string" : "; name the key that the texts stand at");
}

static bool is_blank(const pl_scan_jsonl *j)
{
    for (size_t i = 0; i < j->bytes; i++)
        if (!memchr(" \t\r", j->line[i], 3)) return false;
    return true;
}

static pl_status take_line(const pl_scan *s, pl_scan_jsonl *j, pl_error *err)
{
    json_t *root;
    json_error_t why;
    if (is_blank(j)) return PL_OK;
    if (j->as_is) memcpy(j->as_is, j->line, j->bytes);
    if (mend(j->line, j->bytes) > PL_TEXTS_LINE_VALUES)
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": has more than %d values; leave out of the lines what is not text",
                       s->setup->path, s->line, PL_TEXTS_LINE_VALUES);
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    pl_status status = pl_json_read(j->line, j->bytes, flags, &root, &why);
    if (status == PL_E_NOMEM)
        return pl_fail(err, status, "%s:%" PRIu64 ": no memory to read it", s->setup->path, s->line);
    if (status != PL_OK) return refuse(s, &why, err);
    status = take_object(s, j, root, err);
    json_decref(root);
    return status;
}

/* ---- lines ---- */

static pl_status grow(const pl_scan *s, pl_scan_jsonl *j, size_t capacity, pl_error *err)
{
    char *line = pl_realloc(j->line, capacity, 1);
    if (line) j->line = line;
    char *as_is = line && s->pieces ? pl_realloc(j->as_is, capacity, 1) : NULL;
    if (as_is) j->as_is = as_is;
    if (!line || (s->pieces && !as_is))
        return pl_fail(err, PL_E_NOMEM, "%s:%" PRIu64 ": no memory to read it", s->setup->path, s->line);
    j->capacity = capacity;
    return PL_OK;
}

static pl_status append(const pl_scan *s, pl_scan_jsonl *j, const uint8_t *data, size_t bytes, pl_error *err)
{
    if (bytes > PL_TEXTS_LINE_BYTES - j->bytes)
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": is longer than %d MiB; split the text, or give it as a file of its own",
                       s->setup->path, s->line, PL_TEXTS_LINE_BYTES >> 20);
    size_t capacity = j->capacity ? j->capacity : 4096;
    while (capacity < j->bytes + bytes) capacity *= 2;
    if (capacity > j->capacity) PL_TRY(grow(s, j, capacity, err));
    memcpy(j->line + j->bytes, data, bytes);
    j->bytes += bytes;
    return PL_OK;
}

pl_status pl_scan_jsonl_feed(pl_scan *s, pl_scan_jsonl *j, const uint8_t *data, size_t bytes, pl_error *err)
{
    const uint8_t *at = data, *const end = data + bytes;
    for (const uint8_t *stop; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1) {
        PL_TRY(append(s, j, at, (size_t)(stop - at), err));
        PL_TRY(take_line(s, j, err));
        j->bytes = 0;
        j->begin = s->at + (uint64_t)(stop - data) + 1;
        s->line++;
    }
    return append(s, j, at, (size_t)(end - at), err);
}

pl_status pl_scan_jsonl_finish(pl_scan *s, pl_scan_jsonl *j, pl_error *err) { return take_line(s, j, err); }
