#include "base/lex.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/utf8.h"

pl_lex pl_lex_begin(const char *name, const char *text, size_t bytes)
{
    const char *begin = text + pl_utf8_mark(text, bytes);
    return (pl_lex){.name = name, .at = begin, .end = text + bytes, .line_start = begin};
}

static int blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

int pl_lex_line(pl_lex *l)
{
    while (l->at < l->end) {
        if (l->line > 0) {
            while (l->at < l->end && *l->at != '\n') l->at++;
            if (l->at < l->end) l->at++;
        }
        l->line++;
        l->line_start = l->at;
        const char *p = l->at;
        while (p < l->end && blank(*p)) p++;
        if (p < l->end && *p != '\n' && *p != '#') {
            l->at = p;
            return 1;
        }
    }
    return 0;
}

pl_status pl_lex_fail(const pl_lex *l, pl_error *err, const char *fmt, ...)
{
    char text[PL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, fmt);
    pl_vprint(text, sizeof text, fmt, args);
    va_end(args);
    return pl_fail(err, PL_E_DATA, "%s:%d:%d: %s", l->name, l->line, l->column, text);
}

/* One character of a quoted value; -1 malformed. */
static int quoted_char(pl_lex *l)
{
    int c = (unsigned char)*l->at++;
    if (c == '\n' || c == 0) return -1;
    if (c != '\\') return c;
    if (l->at >= l->end) return -1;
    c = (unsigned char)*l->at++;
    if (c == 'n') return '\n';
    if (c == '"' || c == '\\') return c;
    if (c != 'x' || l->end - l->at < 2 || !isxdigit((unsigned char)l->at[0]) || !isxdigit((unsigned char)l->at[1]))
        return -1;
    char hex[3] = {l->at[0], l->at[1], 0};
    l->at += 2;
    c = (int)strtol(hex, NULL, 16);
    return c ? c : -1;
}

static int read_value(pl_lex *l, size_t used, pl_error *err)
{
    int quoted = l->at < l->end && *l->at == '"';
    if (quoted) l->at++;
    for (;; used++) {
        if (used + 1 >= sizeof l->value)
            return pl_lex_fail(l, err, "this field is longer than %zu bytes", sizeof l->value - 1), -1;
        if (l->at >= l->end || (!quoted && (blank(*l->at) || *l->at == '\n'))) break;
        if (quoted && *l->at == '"') break;
        int c = quoted ? quoted_char(l) : (unsigned char)*l->at++;
        if (c <= 0) return pl_lex_fail(l, err, "malformed quoted text"), -1;
        l->value[used] = (char)c;
    }
    if (quoted && (l->at >= l->end || *l->at++ != '"')) return pl_lex_fail(l, err, "a quoted text is not closed"), -1;
    l->value[used] = 0;
    return 1;
}

int pl_lex_field(pl_lex *l, pl_error *err)
{
    while (l->at < l->end && blank(*l->at)) l->at++;
    l->column = (int)(l->at - l->line_start) + 1;
    if (l->at >= l->end || *l->at == '\n') return 0;
    l->key[0] = 0;
    size_t n = 0;
    while (l->at + n < l->end && n + 1 < sizeof l->key && (isalnum((unsigned char)l->at[n]) || l->at[n] == '_')) n++;
    if (n && l->at + n < l->end && l->at[n] == '=') {
        memcpy(l->key, l->at, n);
        l->key[n] = 0;
        l->at += n + 1;
    }
    return read_value(l, 0, err);
}

pl_status pl_lex_expect(pl_lex *l, const char *key, pl_error *err)
{
    int got = pl_lex_field(l, err);
    if (got < 0) return PL_E_DATA;
    if (got == 0) return pl_lex_fail(l, err, "the line ends where %s was expected", key ? key : "a value");
    if (strcmp(l->key, key ? key : "") != 0)
        return pl_lex_fail(l, err, "expected %s, found \"%s%s%.40s\"", key ? key : "a value", l->key,
                           l->key[0] ? "=" : "", l->value);
    return PL_OK;
}

pl_status pl_lex_end(pl_lex *l, pl_error *err)
{
    int got = pl_lex_field(l, err);
    if (got < 0) return PL_E_DATA;
    return got ? pl_lex_fail(l, err, "expected the end of the line, found \"%s%s%.40s\"", l->key, l->key[0] ? "=" : "",
                             l->value)
               : PL_OK;
}

pl_status pl_lex_int(const pl_lex *l, int64_t min, int64_t max, int64_t *number, pl_error *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(l->value, &end, 10);
    if (!l->value[0] || isspace((unsigned char)l->value[0]) || *end || errno || v < min || v > max)
        return pl_lex_fail(l, err, "\"%.40s\" is not a whole number from %" PRId64 " to %" PRId64, l->value, min, max);
    *number = v;
    return PL_OK;
}

pl_status pl_lex_uint(const pl_lex *l, uint64_t max, uint64_t *number, pl_error *err)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(l->value, &end, 10);
    if (!isdigit((unsigned char)l->value[0]) || *end || errno || v > max)
        return pl_lex_fail(l, err, "\"%.40s\" is not a whole number from 0 to %" PRIu64, l->value, max);
    *number = v;
    return PL_OK;
}

pl_status pl_lex_double(const pl_lex *l, double *number, pl_error *err)
{
    char *end;
    double v = pl_read_double(l->value, &end);
    if (!l->value[0] || isspace((unsigned char)l->value[0]) || *end)
        return pl_lex_fail(l, err, "\"%.40s\" is not a number", l->value);
    *number = v;
    return PL_OK;
}

void pl_lex_quote(pl_str *out, const char *text)
{
    pl_str_append(out, "\"");
    while (*text) {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' && text[plain] != '\\') plain++;
        pl_str_append_bytes(out, text, plain);
        text += plain;
        unsigned char c = (unsigned char)*text;
        if (!c) break;
        text++;
        if (c == '"' || c == '\\')
            pl_str_printf(out, "\\%c", c);
        else if (c == '\n')
            pl_str_append(out, "\\n");
        else
            pl_str_printf(out, "\\x%02x", c);
    }
    pl_str_append(out, "\"");
}
