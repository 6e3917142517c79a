/* The grammar is that of RFC 8259. */
#include "base/json_scan.h"

#include <string.h>

#include "base/utf8.h"

enum { DEPTH_MAX = 256 };

static pl_status fail_at(const pl_json_scan *s, size_t at, const char *what, pl_error *err)
{
    size_t line = 1, begin = 0;
    if (at > s->bytes) at = s->bytes;
    for (size_t i = 0; i < at; i++)
        if (s->text[i] == '\n') line++, begin = i + 1;
    return pl_fail(err, PL_E_DATA, "%s:%zu:%zu: is not valid JSON: %s", s->name, line, at - begin + 1, what);
}

char pl_json_scan_peek(pl_json_scan *s)
{
    while (s->at < s->bytes && s->text[s->at] && strchr(" \t\n\r", s->text[s->at])) s->at++;
    return s->at < s->bytes ? s->text[s->at] : 0;
}

static pl_status expect(pl_json_scan *s, char c, pl_error *err)
{
    const char what[] = {'\'', c, '\'', ' ', 'w', 'a', 's', ' ', 'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', 0};
    if (pl_json_scan_peek(s) != c) return fail_at(s, s->at, what, err);
    s->at++;
    return PL_OK;
}

pl_status pl_json_scan_enter(pl_json_scan *s, char bracket, pl_error *err) { return expect(s, bracket, err); }

pl_status pl_json_scan_next(pl_json_scan *s, char bracket, bool first, bool *more, pl_error *err)
{
    const char close = bracket == '{' ? '}' : ']';
    *more = pl_json_scan_peek(s) != close;
    if (*more) return first ? PL_OK : expect(s, ',', err);
    s->at++;
    return PL_OK;
}

pl_status pl_json_scan_end(pl_json_scan *s, pl_error *err)
{
    pl_json_scan_peek(s);
    return s->at == s->bytes ? PL_OK : fail_at(s, s->at, "the end of the text was expected", err);
}

/* ---- strings ---- */

/* Four hexadecimal digits, or −1. */
static int32_t read_hex(const pl_json_scan *s, size_t at)
{
    int32_t value = 0;
    for (size_t i = at; i < at + 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char c = i < s->bytes ? s->text[i] : 0;
        const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;
        if (!found) return -1;
        value = value * 16 + (int32_t)(found - digits);
    }
    return value;
}

/* After a backslash; *c: the character. */
static pl_status read_escape(pl_json_scan *s, uint32_t *c, pl_error *err)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char name = s->at < s->bytes ? s->text[s->at] : 0, *known = name ? strchr(names, name) : NULL;
    s->at++;
    if (known) {
        *c = (uint8_t)values[known - names];
        return PL_OK;
    }
    int32_t unit = name == 'u' ? read_hex(s, s->at) : -1;
    if (unit < 0) return fail_at(s, s->at - 1, "an unknown escape", err);
    s->at += 4;
    if (unit >= 0xd800 && unit < 0xdc00 && s->at + 1 < s->bytes && memcmp(s->text + s->at, "\\u", 2) == 0) {
        const int32_t low = read_hex(s, s->at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            s->at += 6;
        }
    }
    if (unit >= 0xd800 && unit < 0xe000) return fail_at(s, s->at, "half of a surrogate pair", err);
    *c = (uint32_t)unit;
    return PL_OK;
}

/* The next character of a string; its bytes go to utf8. *bytes 0: the closing quote. */
static pl_status read_char(pl_json_scan *s, uint8_t utf8[4], size_t *bytes, pl_error *err)
{
    uint32_t c;
    const uint8_t *p = (const uint8_t *)s->text + s->at;
    if (s->at == s->bytes) return fail_at(s, s->at, "a string does not end", err);
    *bytes = 0;
    if (*p == '"') {
        s->at++;
        return PL_OK;
    }
    if (*p < 0x20) return fail_at(s, s->at, "a control character in a string", err);
    if (*p == '\\') {
        s->at++;
        PL_TRY(read_escape(s, &c, err));
        *bytes = pl_utf8_write(c, utf8);
        return PL_OK;
    }
    *bytes = pl_utf8_read(p, s->bytes - s->at, &c);
    if (*bytes == 0 || c == PL_NOT_UTF8) return fail_at(s, s->at, "a string is not UTF-8", err);
    memcpy(utf8, p, *bytes);
    s->at += *bytes;
    return PL_OK;
}

/* out NULL: passes over it. */
static pl_status read_string(pl_json_scan *s, char *out, size_t room, size_t *bytes, pl_error *err)
{
    const size_t begin = s->at;
    uint8_t utf8[4];
    size_t n = 0;
    PL_TRY(expect(s, '"', err));
    for (*bytes = 0;; *bytes += n) {
        PL_TRY(read_char(s, utf8, &n, err));
        if (n == 0) return PL_OK;
        if (out && *bytes + n > room)
            return pl_fail(err, PL_E_DATA, "%s: the string at byte %zu is longer than %zu bytes", s->name, begin, room);
        if (out) memcpy(out + *bytes, utf8, n);
    }
}

pl_status pl_json_scan_string(pl_json_scan *s, char *out, size_t room, size_t *bytes, pl_error *err)
{
    return read_string(s, out, room, bytes, err);
}

pl_status pl_json_scan_key(pl_json_scan *s, char *out, size_t room, size_t *bytes, pl_error *err)
{
    PL_TRY(read_string(s, out, room, bytes, err));
    return expect(s, ':', err);
}

/* ---- other values ---- */

static size_t skip_digits(pl_json_scan *s)
{
    const size_t begin = s->at;
    while (s->at < s->bytes && s->text[s->at] >= '0' && s->text[s->at] <= '9') s->at++;
    return s->at - begin;
}

static bool take(pl_json_scan *s, const char *any)
{
    if (s->at == s->bytes || !s->text[s->at] || !strchr(any, s->text[s->at])) return false;
    s->at++;
    return true;
}

static pl_status skip_number(pl_json_scan *s, pl_error *err)
{
    const size_t begin = s->at;
    take(s, "-");
    const bool zero = s->at < s->bytes && s->text[s->at] == '0';
    const size_t digits = skip_digits(s);
    bool good = digits && !(zero && digits > 1);
    if (good && take(s, ".")) good = skip_digits(s);
    if (good && take(s, "eE")) {
        take(s, "+-");
        good = skip_digits(s);
    }
    return good ? PL_OK : fail_at(s, begin, "a value was expected", err);
}

static pl_status skip_scalar(pl_json_scan *s, char c, pl_error *err)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t bytes;
    if (c == '"') return read_string(s, NULL, 0, &bytes, err);
    for (size_t i = 0; i < 3; i++) {
        bytes = strlen(words[i]);
        if (s->bytes - s->at < bytes || memcmp(s->text + s->at, words[i], bytes) != 0) continue;
        s->at += bytes;
        return PL_OK;
    }
    return skip_number(s, err);
}

pl_status pl_json_scan_skip(pl_json_scan *s, pl_error *err)
{
    char open[DEPTH_MAX];
    size_t depth = 0, bytes;
    bool first = false;
    do {
        const char c = pl_json_scan_peek(s);
        bool more = false;
        if (c == '{' || c == '[') {
            if (depth == DEPTH_MAX) return fail_at(s, s->at, "nested too deeply", err);
            open[depth++] = c;
            s->at++;
            first = true;
        } else {
            PL_TRY(skip_scalar(s, c, err));
            first = false;
        }
        while (depth && !more) { /* out of all that end here */
            PL_TRY(pl_json_scan_next(s, open[depth - 1], first, &more, err));
            depth -= !more;
            first = false;
        }
        if (depth && open[depth - 1] == '{') {
            PL_TRY(read_string(s, NULL, 0, &bytes, err));
            PL_TRY(expect(s, ':', err));
        }
    } while (depth);
    return PL_OK;
}

pl_status pl_json_scan_count(pl_json_scan *s, int64_t *count, pl_error *err)
{
    pl_json_scan_peek(s);
    const size_t begin = s->at;
    PL_TRY(pl_json_scan_skip(s, err));
    *count = 0;
    for (size_t i = begin; i < s->at; i++) {
        const char c = s->text[i];
        *count = c < '0' || c > '9' || s->at - begin > 18 ? -1 : *count * 10 + (c - '0');
        if (*count < 0) break;
    }
    return PL_OK;
}
