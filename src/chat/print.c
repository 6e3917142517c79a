/* Values as text: as Python's str() has them, and as JSON. */
#include "chat/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/utf8.h"

/* The shortest digits that read back, as repr() chooses them: d.ddd and the exponent. */
static int shortest(double value, char digits[32])
{
    char text[40];
    for (int precision = 0; precision <= 16; precision++) {
        pl_print(text, sizeof text, "%.*e", precision, value);
        if (pl_read_double(text, NULL) == value) break;
    }
    size_t n = 0;
    char *p = text;
    for (; *p != 'e'; p++)
        if (*p != '.') digits[n++] = *p;
    digits[n] = 0;
    return atoi(p + 1);
}

size_t pl_chat_real_text(double value, char text[40])
{
    char digits[32], *to = text;
    if (isnan(value)) return (size_t)pl_print(text, 40, "nan");
    if (signbit(value)) *to++ = '-';
    if (isinf(value)) return (size_t)(to - text) + (size_t)pl_print(to, 30, "inf");
    int exponent = shortest(fabs(value), digits), n = (int)strlen(digits);
    if (exponent < -4 || exponent >= 16) {
        *to++ = digits[0];
        to += pl_print(to, 36, "%s%se%c%02d", n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
        return (size_t)(to - text);
    }
    for (int i = exponent < 0 ? exponent : 0; i < n || i <= exponent + 1; i++) {
        if (i == exponent + 1) *to++ = '.';
        *to++ = i >= 0 && i < n ? digits[i] : '0';
    }
    *to = 0;
    return (size_t)(to - text);
}

pl_status pl_chat_append_value(pl_chat_run *r, pl_chat_value *s, const pl_chat_value *v)
{
    char text[40];
    size_t n = 0;
    switch (v->kind) {
    case PL_CHAT_STRING:
        return pl_chat_append(r, s, v->text, v->count);
    case PL_CHAT_UNDEFINED:
        break;
    case PL_CHAT_NONE:
        n = (size_t)pl_print(text, sizeof text, "None");
        break;
    case PL_CHAT_BOOL:
        n = (size_t)pl_print(text, sizeof text, v->truth ? "True" : "False");
        break;
    case PL_CHAT_INT:
        n = (size_t)pl_print(text, sizeof text, "%lld", (long long)v->integer);
        break;
    case PL_CHAT_REAL:
        n = pl_chat_real_text(v->real, text);
        break;
    default:
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "printing a list, a map or a function is not supported");
    }
    return pl_chat_append(r, s, text, n);
}

pl_status pl_chat_text_of(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value empty = pl_chat_string("", 0);
    *out = v->kind == PL_CHAT_STRING ? *v : empty;
    return v->kind == PL_CHAT_STRING ? PL_OK : pl_chat_append_value(r, out, v);
}

/* --- JSON --- */

typedef struct json_style {
    bool ascii, sorted, indented;
    pl_chat_value indent, between, after_key;
    int depth;
} json_style;

static pl_status put_text(pl_chat_run *r, pl_chat_value *out, const char *text)
{
    return pl_chat_append(r, out, text, strlen(text));
}

static size_t escape_of(uint32_t c, bool ascii, char text[16])
{
    static const char letters[] = "\"\"\\\\\nn\rr\tt\ff\bb";
    for (size_t i = 0; letters[i]; i += 2)
        if (c == (unsigned char)letters[i]) return (size_t)pl_print(text, 16, "\\%c", letters[i + 1]);
    if (c == PL_NOT_UTF8 || (c >= 0x20 && (c < 0x7f || !ascii))) return 0;
    if (c < 0x10000) return (size_t)pl_print(text, 16, "\\u%04x", c);
    c -= 0x10000;
    return (size_t)pl_print(text, 16, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

static pl_status put_string(pl_chat_run *r, const json_style *s, const pl_chat_value *v, pl_chat_value *out)
{
    char escaped[16];
    uint32_t plain = 0, point;
    PL_TRY(put_text(r, out, "\""));
    for (uint32_t i = 0, n; i < v->count; i += n) {
        n = (uint32_t)pl_utf8_read((const uint8_t *)v->text + i, v->count - i, &point);
        if (n == 0) n = 1, point = PL_NOT_UTF8;
        size_t escape = escape_of(point, s->ascii, escaped);
        if (escape == 0) continue;
        PL_TRY(pl_chat_append(r, out, v->text + plain, i - plain));
        PL_TRY(pl_chat_append(r, out, escaped, escape));
        plain = i + n;
    }
    PL_TRY(pl_chat_append(r, out, v->text + plain, v->count - plain));
    return put_text(r, out, "\"");
}

static pl_status put_line(pl_chat_run *r, const json_style *s, pl_chat_value *out)
{
    if (!s->indented) return PL_OK;
    PL_TRY(put_text(r, out, "\n"));
    for (int i = 0; i < s->depth; i++) PL_TRY(pl_chat_append(r, out, s->indent.text, s->indent.count));
    return PL_OK;
}

static pl_status put_value(pl_chat_run *r, json_style *s, const pl_chat_value *v, pl_chat_value *out);

static pl_status put_key(pl_chat_run *r, json_style *s, const pl_chat_value *key, pl_chat_value *out)
{
    bool quoted = key->kind != PL_CHAT_STRING;
    if (key->kind == PL_CHAT_LIST) return pl_chat_fail_kind(r, "a key of JSON", key);
    if (quoted) PL_TRY(put_text(r, out, "\""));
    PL_TRY(put_value(r, s, key, out));
    if (quoted) PL_TRY(put_text(r, out, "\""));
    return pl_chat_append(r, out, s->after_key.text, s->after_key.count);
}

/* The pairs in the order of their keys; few, so by insertion. */
static pl_status sort_pairs(pl_chat_run *r, const pl_chat_value *map, const pl_chat_value **pairs)
{
    pl_chat_value *sorted;
    PL_TRY(pl_chat_take_values(r, 2 * (uint64_t)map->count, &sorted));
    for (uint32_t i = 0; i < map->count; i++) {
        uint32_t at = i;
        for (int sign; at > 0; at--) {
            PL_TRY(pl_chat_order(r, &sorted[2 * (at - 1)], &map->item[2 * i], &sign));
            if (sign <= 0) break;
            memcpy(&sorted[2 * at], &sorted[2 * (at - 1)], 2 * sizeof *sorted);
        }
        memcpy(&sorted[2 * at], &map->item[2 * i], 2 * sizeof *sorted);
    }
    *pairs = sorted;
    return PL_OK;
}

static pl_status put_items(pl_chat_run *r, json_style *s, const pl_chat_value *v, pl_chat_value *out)
{
    bool is_map = v->kind == PL_CHAT_MAP;
    const pl_chat_value *item = v->item;
    if (is_map && s->sorted) PL_TRY(sort_pairs(r, v, &item));
    PL_TRY(put_text(r, out, is_map ? "{" : "["));
    s->depth++;
    for (uint32_t i = 0; i < v->count; i++) {
        if (i > 0) PL_TRY(pl_chat_append(r, out, s->between.text, s->between.count));
        PL_TRY(put_line(r, s, out));
        if (is_map) PL_TRY(put_key(r, s, item++, out));
        PL_TRY(put_value(r, s, item++, out));
    }
    s->depth--;
    if (v->count > 0) PL_TRY(put_line(r, s, out));
    return put_text(r, out, is_map ? "}" : "]");
}

static pl_status put_real(pl_chat_run *r, double value, pl_chat_value *out)
{
    char text[40];
    if (isnan(value)) return put_text(r, out, "NaN");
    if (isinf(value)) return put_text(r, out, value < 0 ? "-Infinity" : "Infinity");
    return pl_chat_append(r, out, text, pl_chat_real_text(value, text));
}

static pl_status put_value(pl_chat_run *r, json_style *s, const pl_chat_value *v, pl_chat_value *out)
{
    char text[40];
    PL_TRY(pl_chat_enter(r));
    PL_TRY(pl_chat_step(r, 1));
    switch (v->kind) {
    case PL_CHAT_NONE:
        PL_TRY(put_text(r, out, "null"));
        break;
    case PL_CHAT_BOOL:
        PL_TRY(put_text(r, out, v->truth ? "true" : "false"));
        break;
    case PL_CHAT_REAL:
        PL_TRY(put_real(r, v->real, out));
        break;
    case PL_CHAT_STRING:
        PL_TRY(put_string(r, s, v, out));
        break;
    case PL_CHAT_MAP:
        PL_TRY(put_items(r, s, v, out));
        break;
    case PL_CHAT_INT:
        pl_print(text, sizeof text, "%lld", (long long)v->integer);
        PL_TRY(put_text(r, out, text));
        break;
    case PL_CHAT_LIST:
        if (v->form <= PL_CHAT_TUPLE) {
            PL_TRY(put_items(r, s, v, out));
            break;
        }
        return pl_chat_fail(r, PL_E_DATA, "a range or a view of a map is written as JSON");
    default:
        return pl_chat_fail_kind(r, "writing as JSON", v);
    }
    r->depth--;
    return PL_OK;
}

static pl_status read_indent(pl_chat_run *r, const pl_chat_value *v, json_style *s)
{
    static const char blanks[] = "                                ";
    s->indented = v->kind != PL_CHAT_ABSENT && v->kind != PL_CHAT_NONE;
    if (!s->indented) return PL_OK;
    s->between = pl_chat_string(",", 1);
    s->indent = *v;
    if (v->kind == PL_CHAT_STRING) return PL_OK;
    int64_t n;
    if (!pl_chat_is_whole(v, &n) || n >= (int64_t)sizeof blanks)
        return pl_chat_fail_kind(r, "an indentation (a string, or at most 32)", v);
    s->indent = pl_chat_string(blanks, n > 0 ? (size_t)n : 0);
    return PL_OK;
}

/* value: what is written, ensure_ascii, indent, separators, sort_keys */
pl_status pl_chat_to_json(pl_chat_run *r, const pl_chat_value *value, pl_chat_value *out)
{
    const pl_chat_value *separators = &value[3];
    json_style s = {.ascii = pl_chat_truth(&value[1]),
                    .sorted = pl_chat_truth(&value[4]),
                    .between = pl_chat_string(", ", 2),
                    .after_key = pl_chat_string(": ", 2)};
    PL_TRY(read_indent(r, &value[2], &s));
    if (separators->kind != PL_CHAT_ABSENT && separators->kind != PL_CHAT_NONE) {
        if (separators->kind != PL_CHAT_LIST || separators->count != 2 || separators->item[0].kind != PL_CHAT_STRING ||
            separators->item[1].kind != PL_CHAT_STRING)
            return pl_chat_fail_kind(r, "`separators` (two strings)", separators);
        s.between = separators->item[0];
        s.after_key = separators->item[1];
    }
    *out = pl_chat_string("", 0);
    return put_value(r, &s, value, out);
}
