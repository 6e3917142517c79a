#include "chat/lex.h"

#include <string.h>

#include "base/locale.h"
#include "base/utf8.h"
#include "chat/text.h"

#define FAIL(l, ...) pl_chat_lex_fail((l)->err, (l)->line, __VA_ARGS__)

static pl_status pl_chat_lex_fail(pl_error *err, uint32_t line, const char *what)
{
    return pl_fail(err, PL_E_DATA, "chat template, line %u: %s", line, what);
}

size_t pl_chat_normalize(const char *text, size_t bytes, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\r' && i + 1 < bytes && text[i + 1] == '\n') continue;
        to[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    return n > 0 && to[n - 1] == '\n' ? n - 1 : n;
}

static void advance(pl_chat_lexer *l, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) l->line += l->at[i] == '\n';
    l->at += bytes;
}

static size_t left(const pl_chat_lexer *l) { return (size_t)(l->end - l->at); }

/* --- text and the beginnings of tags --- */

static char *find_tag(const pl_chat_lexer *l)
{
    for (char *p = l->at; p + 1 < l->end; p++)
        if (p[0] == '{' && (p[1] == '{' || p[1] == '%' || p[1] == '#')) return p;
    return l->end;
}

static bool starts_with(const pl_chat_lexer *l, const char *word)
{
    size_t n = strlen(word);
    return left(l) >= n && memcmp(l->at, word, n) == 0;
}

/* Behind the end of a tag: "-" takes all white space away, a block or comment without "+" one line end. */
static void after_tag(pl_chat_lexer *l, char sign, bool trims)
{
    if (sign == '-')
        advance(l, pl_chat_space(l->at, left(l)));
    else if (trims && sign != '+' && l->at < l->end && *l->at == '\n')
        advance(l, 1);
}

/* The bytes of the text before a tag, without what the tag takes away. */
static size_t text_before(const pl_chat_lexer *l, const char *tag)
{
    size_t n = (size_t)(tag - l->at);
    char sign = tag + 2 < l->end ? tag[2] : 0;
    if (sign == '-') return n - pl_chat_space_before(l->at, n);
    if (sign == '+' || tag[1] == '{') return n;
    size_t line = n;
    while (line > 0 && l->at[line - 1] != '\n') line--;
    bool begins_line = line > 0 || l->at == l->start || l->at[-1] == '\n';
    return begins_line && pl_chat_space(l->at + line, n - line) == n - line ? line : n;
}

static pl_status skip_comment(pl_chat_lexer *l)
{
    advance(l, 2);
    if (l->at < l->end && (*l->at == '-' || *l->at == '+')) advance(l, 1);
    char *from = l->at;
    while (!starts_with(l, "#}")) {
        if (l->at == l->end) return FAIL(l, "a comment has no end, #}");
        advance(l, 1);
    }
    char sign = l->at > from ? l->at[-1] : 0;
    advance(l, 2);
    after_tag(l, sign, true);
    return PL_OK;
}

static pl_status lex_text(pl_chat_lexer *l, pl_chat_token *t)
{
    for (;;) {
        if (!l->has_open) {
            char *tag = find_tag(l);
            *t = (pl_chat_token){.kind = PL_CHAT_TOKEN_DATA, .line = l->line, .text = l->at};
            t->bytes = tag < l->end ? text_before(l, tag) : left(l);
            advance(l, (size_t)(tag - l->at));
            l->has_open = tag < l->end;
            if (t->bytes > 0) return PL_OK;
        }
        if (!l->has_open) break;
        l->has_open = false;
        if (l->at[1] != '#') {
            l->tag = l->at[1];
            advance(l, 2);
            if (l->at < l->end && (*l->at == '-' || *l->at == '+')) advance(l, 1);
            *t = (pl_chat_token){.kind = PL_CHAT_TOKEN_OPEN, .op = (unsigned char)l->tag, .line = l->line};
            return PL_OK;
        }
        PL_TRY(skip_comment(l));
    }
    *t = (pl_chat_token){.kind = PL_CHAT_TOKEN_END, .line = l->line};
    return PL_OK;
}

/* --- inside of tags --- */

static bool ends_tag(pl_chat_lexer *l)
{
    const char *end = l->tag == '{' ? "}}" : "%}";
    if (l->brackets > 0) return false;
    char sign = l->at < l->end && (*l->at == '-' || (*l->at == '+' && l->tag == '%')) ? *l->at : 0;
    l->at += sign != 0;
    bool ends = starts_with(l, end);
    if (!ends) {
        l->at -= sign != 0;
        return false;
    }
    advance(l, 2);
    after_tag(l, sign, l->tag == '%');
    l->tag = 0;
    return true;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || c >= 0x80;
}

static int digit_value(int c)
{
    if (is_digit(c)) return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Bytes of the digits at p, which single underscores may part. */
static size_t digits(const pl_chat_lexer *l, const char *p, int base)
{
    const char *from = p;
    while (p < l->end && (digit_value((unsigned char)*p) < base ||
                          (*p == '_' && p > from && p + 1 < l->end && digit_value((unsigned char)p[1]) < base)))
        p++;
    return (size_t)(p - from);
}

/* What a number has behind its whole part when it is no integer: ".5", "e3", ".5e-3". */
static size_t fraction(const pl_chat_lexer *l, const char *p)
{
    const char *from = p;
    size_t n;
    if (p < l->end && *p == '.' && (n = digits(l, p + 1, 10)) > 0) p += 1 + n;
    if (p < l->end && (*p | 32) == 'e') {
        size_t sign = p + 1 < l->end && (p[1] == '+' || p[1] == '-');
        if ((n = digits(l, p + 1 + sign, 10)) > 0) p += 1 + sign + n;
    }
    return (size_t)(p - from);
}

static pl_status real_of(pl_chat_lexer *l, size_t bytes, pl_chat_value *v)
{
    char text[400];
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (l->at[i] == '_') continue;
        if (n + 1 == sizeof text) return FAIL(l, "a number has too many digits");
        text[n++] = l->at[i];
    }
    text[n] = 0;
    *v = (pl_chat_value){.kind = PL_CHAT_REAL, .real = pl_read_double(text, NULL)};
    return PL_OK;
}

static pl_status integer_of(pl_chat_lexer *l, const char *p, size_t n, int base, pl_chat_value *v)
{
    int64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '_') continue;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit_value((unsigned char)p[i]), &value))
            return FAIL(l, "a whole number is beyond 64 bits");
    }
    *v = pl_chat_int(value);
    return PL_OK;
}

static pl_status lex_number(pl_chat_lexer *l, pl_chat_token *t)
{
    static const struct {
        char letter;
        int base;
    } prefixes[] = {{'b', 2}, {'o', 8}, {'x', 16}};
    char *p = l->at;
    t->kind = PL_CHAT_TOKEN_NUMBER;
    size_t n = digits(l, p, 10), more = p > l->start && p[-1] == '.' ? 0 : fraction(l, p + n), prefix = 0;
    int base = 10;
    if (more > 0) {
        n += more;
        PL_TRY(real_of(l, n, &t->value));
    } else {
        for (size_t i = 0; i < 3 && *p == '0' && p + 2 < l->end; i++) {
            if ((p[1] | 32) != prefixes[i].letter) continue;
            size_t skip = 2 + (p[2] == '_'), found = p + skip < l->end ? digits(l, p + skip, prefixes[i].base) : 0;
            if (found > 0) base = prefixes[i].base, prefix = skip, n = found;
        }
        PL_TRY(integer_of(l, p + prefix, n, base, &t->value));
    }
    t->bytes = prefix + n;
    l->at += t->bytes;
    return PL_OK;
}

/* A code point of so many digits behind \x, \u or \U. */
static pl_status code_point(pl_chat_lexer *l, size_t count, uint32_t *point)
{
    *point = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = i < left(l) ? digit_value((unsigned char)l->at[i]) : 99;
        if (digit > 15) return FAIL(l, "an escape in a string has too few digits");
        *point = *point << 4 | (uint32_t)digit;
    }
    if (*point > 0x10ffff || (*point >= 0xd800 && *point < 0xe000))
        return FAIL(l, "an escape in a string is no character");
    l->at += count;
    return PL_OK;
}

static uint32_t octal(pl_chat_lexer *l)
{
    uint32_t point = 0;
    for (int i = 0; i < 3 && l->at < l->end && *l->at >= '0' && *l->at <= '7'; i++)
        point = point * 8 + (uint32_t)(*l->at++ - '0');
    return point;
}

/* `at` is behind a backslash; what is written is never longer than what was read. */
static pl_status unescape(pl_chat_lexer *l, char **to)
{
    static const char letters[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    char c = *l->at;
    uint32_t point;
    if (c >= '0' && c <= '7') {
        point = octal(l);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        l->at++;
        PL_TRY(code_point(l, c == 'x' ? 2 : c == 'u' ? 4 : 8, &point));
    } else if (c == 'N') {
        return FAIL(l, "characters by name (\\N) are not supported");
    } else {
        l->at++;
        if (c == '\n') {
            l->line++;
            return PL_OK;
        }
        for (size_t i = 0; letters[i]; i += 2)
            if (letters[i] == c) {
                *(*to)++ = letters[i + 1];
                return PL_OK;
            }
        *(*to)++ = '\\';
        *(*to)++ = c;
        return PL_OK;
    }
    *to += pl_utf8_write(point, (uint8_t *)*to);
    return PL_OK;
}

static pl_status lex_string(pl_chat_lexer *l, pl_chat_token *t)
{
    char quote = *l->at++, *to = l->at;
    t->kind = PL_CHAT_TOKEN_STRING;
    t->text = to;
    while (l->at < l->end && *l->at != quote) {
        if (*l->at == '\\' && l->at + 1 < l->end) {
            l->at++;
            PL_TRY(unescape(l, &to));
            continue;
        }
        l->line += *l->at == '\n';
        *to++ = *l->at++;
    }
    if (l->at == l->end) return FAIL(l, "a string has no end");
    l->at++;
    t->bytes = (size_t)(to - t->text);
    return PL_OK;
}

static pl_status lex_sign(pl_chat_lexer *l, pl_chat_token *t)
{
    static const char pairs[][3] = {"**", "//", "==", "!=", "<=", ">="};
    t->kind = PL_CHAT_TOKEN_SIGN;
    t->bytes = 1;
    t->op = (unsigned char)*l->at;
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (starts_with(l, pairs[i])) t->op = PL_CHAT_POW_SIGN + i, t->bytes = 2;
    if (t->bytes == 1 && !strchr("+-*/%~<>=()[]{}.,:|;", (int)t->op))
        return FAIL(l, "a character has no meaning in a tag");
    if (strchr("([{", (int)t->op)) l->brackets++;
    if (strchr(")]}", (int)t->op) && l->brackets-- == 0) return FAIL(l, "a bracket closes that was not open");
    l->at += t->bytes;
    return PL_OK;
}

pl_status pl_chat_lex(pl_chat_lexer *l, pl_chat_token *t)
{
    if (l->tag == 0) return lex_text(l, t);
    advance(l, pl_chat_space(l->at, left(l)));
    *t = (pl_chat_token){.line = l->line, .text = l->at};
    if (ends_tag(l)) {
        t->kind = PL_CHAT_TOKEN_CLOSE;
        return PL_OK;
    }
    if (l->at == l->end) return FAIL(l, "a tag has no end");
    if (is_digit(*l->at)) return lex_number(l, t);
    if (*l->at == '\'' || *l->at == '"') return lex_string(l, t);
    if (!is_name((unsigned char)*l->at)) return lex_sign(l, t);
    t->kind = PL_CHAT_TOKEN_NAME;
    while (t->bytes < left(l) && is_name((unsigned char)l->at[t->bytes])) t->bytes++;
    l->at += t->bytes;
    return PL_OK;
}
