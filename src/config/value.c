/* One value from text. Plain YAML scalars are typed by the YAML 1.2 core schema (spec 1.2.2, section 10.3.2): an
 * integer is [-+]?[0-9]+, 0o[0-7]+ or 0x[0-9a-fA-F]+, a real [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?; "yes"
 * is text.
 * Quoted scalars are text and nothing else. What comes from an option or a variable is read as whatever the key wants.
 *
 * Invariant: a value changes only when its whole text is right. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "base/locale.h"
#include "config/schema.h"

static bool is_word(pl_config_scalar s, const char *word)
{
    return s.bytes == strlen(word) && memcmp(s.text, word, s.bytes) == 0;
}

/* ---- the core schema ---- */

bool pl_config_is_null(pl_config_scalar s)
{
    if (s.style == PL_CONFIG_QUOTED) return false;
    if (s.bytes == 0) return true;
    if (s.style == PL_CONFIG_RAW) return false;
    return is_word(s, "~") || is_word(s, "null") || is_word(s, "Null") || is_word(s, "NULL");
}

/* 1 and the number when the text is an integer that fits; -1 when it is one that does not fit; else 0. */
static int parse_integer(pl_config_scalar s, int64_t *number)
{
    const char *at = s.text, *end = s.text + s.bytes;
    bool negative = false;
    unsigned base = 10;
    if (s.bytes > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'o')) {
        base = at[1] == 'x' ? 16 : 8;
        at += 2;
    } else if (at < end && (*at == '-' || *at == '+')) {
        negative = *at++ == '-';
    }
    if (at == end) return 0;
    uint64_t value = 0;
    bool fits = true;
    for (; at < end; at++) {
        int c = tolower((unsigned char)*at);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 99;
        if (digit >= base) return 0;
        if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) fits = false;
    }
    if (!fits || value > INT64_MAX) return -1;
    *number = negative ? -(int64_t)value : (int64_t)value;
    return 1;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

static bool has_real_form(pl_config_scalar s)
{
    const char *at = s.text, *end = s.text + s.bytes;
    if (at < end && (*at == '-' || *at == '+')) at++;
    const char *whole = at;
    at = skip_digits(at, end);
    size_t digits = (size_t)(at - whole);
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = skip_digits(at, end);
        digits += (size_t)(at - fraction);
    }
    if (digits == 0) return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '-' || *at == '+')) at++;
        const char *exponent = at;
        at = skip_digits(at, end);
        if (at == exponent) return false;
    }
    return at == end;
}

static bool parse_real(pl_config_scalar s, double *number)
{
    int64_t integer;
    if (parse_integer(s, &integer) == 1) {
        *number = (double)integer;
        return true;
    }
    if (!has_real_form(s)) return false;
    *number = strtod(s.text, NULL);
    return true;
}

static bool parse_bool(pl_config_scalar s, bool *value)
{
    static const char *const words[] = {"false", "False", "FALSE", "true", "True", "TRUE"};
    for (int i = 0; i < 6; i++)
        if (is_word(s, words[i])) return *value = i >= 3, true;
    return false;
}

/* ---- text ---- */

/* Bytes of the code point at p (1 to 4) when it is one that YAML allows (spec 5.1), else 0. */
static size_t printable_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80) return p[0] == '\t' || p[0] == '\n' || p[0] == '\r' || (p[0] >= 0x20 && p[0] < 0x7f);
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left) return 0;
    uint32_t code = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    bool shortest = code >= (n == 2 ? 0x80u : n == 3 ? 0x800u : 0x10000u);
    bool allowed = code == 0x85 || (code >= 0xa0 && code < 0xd800) || (code >= 0xe000 && code < 0xfffe) ||
                   (code >= 0x10000 && code < 0x110000);
    return shortest && allowed ? n : 0;
}

bool pl_config_is_text(const char *text, size_t bytes, size_t *bad)
{
    for (size_t i = 0; i < bytes;) {
        size_t n = printable_length((const unsigned char *)text + i, bytes - i);
        if (n == 0) {
            if (bad) *bad = i;
            return false;
        }
        i += n;
    }
    return true;
}

const char *pl_config_shown(const char *text, size_t bytes, char *buf)
{
    size_t in = 0, out = 0;
    while (in < bytes && out < 40) {
        size_t n = printable_length((const unsigned char *)text + in, bytes - in);
        if (n == 0 || (n == 1 && (unsigned char)text[in] < 0x20)) {
            buf[out++] = '?';
            in++;
            continue;
        }
        memcpy(buf + out, text + in, n);
        in += n;
        out += n;
    }
    strcpy(buf + out, in < bytes ? "…" : "");
    return buf;
}

/* ---- what a key wants, in words ---- */

typedef struct words {
    char *buf;
    size_t room, used;
} words;

PL_PRINTF(2, 3) static void say(words *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->buf + w->used, w->room - w->used, fmt, args);
    va_end(args);
    if (n > 0) w->used = (size_t)n < w->room - w->used ? w->used + (size_t)n : w->room - 1;
}

static void say_names(words *w, const pl_config_key *key, const char *last)
{
    for (size_t i = 0; i < key->name_count; i++)
        say(w, "%s%s", i == 0 ? "" : i + 1 == key->name_count ? last : ", ", key->names[i]);
}

/* The largest binary unit that divides: the text reads back as the same number. */
const char *pl_config_format_size(uint64_t bytes, char *buf, size_t room)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (unit < 4 && bytes && bytes % 1024 == 0) bytes /= 1024, unit++;
    snprintf(buf, room, "%" PRIu64 "%s", bytes, units[unit]);
    return buf;
}

static void say_int_range(words *w, const pl_config_key *key)
{
    say(w, "an integer from %" PRId64 " to %" PRId64, key->min_int, key->max_int);
}

/* "a list of 2 integers from 1 to 16", "a list of 1 to 16 numbers of at least 0 and at most 1" */
static void say_list(words *w, const pl_config_key *key)
{
    say(w, "a list of ");
    if (key->names) {
        say_names(w, key, " or ");
        return;
    }
    say(w, key->min_items == key->max_items ? "%u" : "%u to %u", key->min_items, key->max_items);
    const bool odd = key->flags & PL_CONFIG_FLAG_ODD;
    if (key->flags & PL_CONFIG_FLAG_WHOLE)
        say(w, " %sintegers from %.0f to %.0f", odd ? "odd " : "", key->min_real, key->max_real);
    else
        say(w, " numbers %s %g and %s %g", key->flags & PL_CONFIG_FLAG_OVER_MIN ? "above" : "of at least",
            key->min_real, key->flags & PL_CONFIG_FLAG_UNDER_MAX ? "below" : "at most", key->max_real);
}

/* "a list of 1 to 32 mappings with name, iFileName and nFileName" */
static void say_records(words *w, const pl_config_key *key)
{
    say(w, "a list of %u to %u mappings with ", key->min_items, key->max_items);
    for (size_t i = 0; i < key->field_count; i++)
        say(w, "%s%s", i == 0 ? "" : i + 1 == key->field_count ? " and " : ", ", key->fields[i].name);
}

static void say_real_range(words *w, const pl_config_key *key)
{
    say(w, "a number %s %g and %s %g", key->flags & PL_CONFIG_FLAG_OVER_MIN ? "above" : "of at least", key->min_real,
        key->flags & PL_CONFIG_FLAG_UNDER_MAX ? "below" : "at most", key->max_real);
}

const char *pl_config_expected(const pl_config_key *key, char *buf, size_t room)
{
    words w = {buf, room, 0};
    char low[32], high[32];
    locale_t before = pl_locale_enter();
    buf[0] = 0;
    switch (key->type) {
    case PL_CONFIG_INT:
        say_int_range(&w, key);
        break;
    case PL_CONFIG_REAL:
        say_real_range(&w, key);
        break;
    case PL_CONFIG_BYTES:
        say(&w, "a size from %s to %s, such as 500MB or 2GiB",
            pl_config_format_size((uint64_t)key->min_int, low, sizeof low),
            pl_config_format_size((uint64_t)key->max_int, high, sizeof high));
        break;
    case PL_CONFIG_BOOL:
        say(&w, "true or false");
        break;
    case PL_CONFIG_ENUM:
        say_names(&w, key, " or ");
        break;
    case PL_CONFIG_SET:
        say(&w, "a list of ");
        say_names(&w, key, " and ");
        break;
    case PL_CONFIG_LIST:
        say_list(&w, key);
        break;
    case PL_CONFIG_RECORDS:
        say_records(&w, key);
        break;
    case PL_CONFIG_TEXT:
        say(&w, "text");
        break;
    case PL_CONFIG_PATH:
        say(&w, "a path, or %s", key->empty_word);
        break;
    case PL_CONFIG_NAME_OR_PATH:
        say_names(&w, key, ", ");
        say(&w, " or a path with a / or a dot in it");
        break;
    }
    if (key->flags & PL_CONFIG_FLAG_AUTO) say(&w, ", or auto");
    if (key->flags & PL_CONFIG_FLAG_ZERO_IS_AUTO) say(&w, " (or 0, the same)");
    if (key->flags & PL_CONFIG_FLAG_NONE) say(&w, ", or none");
    pl_locale_leave(before);
    return buf;
}

/* ---- errors ---- */

/* "<where>: <key> must be <expected>, not <found><hint>" */
static pl_status refuse(const pl_config_key *key, pl_config_scalar s, const char *where, const char *hint,
                        pl_error *err)
{
    char expected[320], shown[64];
    double number;
    const bool many = pl_config_is_shared(key, where); /* then the option is named, not the row found first */
    pl_config_expected(key, expected, sizeof expected);
    if (s.style != PL_CONFIG_QUOTED && s.bytes == 0)
        return pl_fail(err, PL_E_CONFIG, many ? "%s%.0s has no value; give %s" : "%s: %s has no value; give %s", where,
                       key->path, expected);
    if (pl_config_is_null(s))
        return pl_fail(err, PL_E_CONFIG, "%s: %s has no value; give %s, or take the line out for the default", where,
                       key->path, expected);
    const char *quote = s.style != PL_CONFIG_QUOTED && parse_real(s, &number) ? "" : "\"";
    return pl_fail(err, PL_E_CONFIG, "%s%s%s must be %s, not %s%s%s%s", where, many ? "" : ": ", many ? "" : key->path,
                   expected, quote, pl_config_shown(s.text, s.bytes, shown), quote, hint);
}

/* For the kinds that are not text: a quoted scalar that would be right without its quotes deserves the hint. */
static pl_status refuse_quoted(const pl_config_key *key, pl_config_scalar s, const char *where, pl_error *err)
{
    return refuse(key, s, where, "; take the quotes away", err);
}

static pl_status refuse_name(const pl_config_key *key, pl_config_scalar s, const char *where, pl_error *err)
{
    char hint[64] = "";
    const char *near = s.bytes < 40 && !pl_config_is_null(s) ? pl_nearest(s.text, key->names, key->name_count) : NULL;
    if (near) snprintf(hint, sizeof hint, "; did you mean \"%s\"?", near);
    return refuse(key, s, where, hint, err);
}

/* ---- one function per kind ---- */

static pl_status set_int(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    int64_t number;
    bool is_number = parse_integer(s, &number) == 1;
    if (key->flags & PL_CONFIG_FLAG_AUTO && is_word(s, "auto")) {
        number = PL_CONFIG_AUTO;
    } else if (is_number && s.style == PL_CONFIG_QUOTED) {
        return refuse_quoted(key, s, where, err);
    } else if (is_number && number == 0 && key->flags & PL_CONFIG_FLAG_ZERO_IS_AUTO) {
        number = PL_CONFIG_AUTO;
    } else if (!is_number || number < key->min_int || number > key->max_int) {
        return refuse(key, s, where, "", err);
    }
    memcpy(to, &number, sizeof number);
    return PL_OK;
}

/* A bare number may have any form of a whole number, and must be one. */
static bool parse_size(pl_config_scalar s, uint64_t *bytes)
{
    int64_t number;
    if (strlen(s.text) != s.bytes || s.bytes == 0 || isspace((unsigned char)s.text[0])) return false;
    if (parse_integer(s, &number) == 1) return number < 0 ? false : (*bytes = (uint64_t)number, true);
    return !has_real_form(s) && pl_parse_bytes(s.text, bytes) == 0;
}

static pl_status set_bytes(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    uint64_t bytes;
    int64_t number;
    if (key->flags & PL_CONFIG_FLAG_AUTO && is_word(s, "auto"))
        bytes = PL_CONFIG_BYTES_AUTO;
    else if (key->flags & PL_CONFIG_FLAG_NONE && is_word(s, "none"))
        bytes = PL_CONFIG_BYTES_NONE;
    else if (s.style == PL_CONFIG_QUOTED && parse_integer(s, &number))
        return refuse_quoted(key, s, where, err);
    else if (!parse_size(s, &bytes) || bytes < (uint64_t)key->min_int || bytes > (uint64_t)key->max_int)
        return refuse(key, s, where, "", err);
    memcpy(to, &bytes, sizeof bytes);
    return PL_OK;
}

static bool in_real_range(const pl_config_key *key, double x)
{
    bool above = key->flags & PL_CONFIG_FLAG_OVER_MIN ? x > key->min_real : x >= key->min_real;
    bool below = key->flags & PL_CONFIG_FLAG_UNDER_MAX ? x < key->max_real : x <= key->max_real;
    return above && below; /* false for NaN */
}

static pl_status set_real(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    double number;
    bool is_number = parse_real(s, &number);
    if (is_number && s.style == PL_CONFIG_QUOTED) return refuse_quoted(key, s, where, err);
    if (!is_number || !in_real_range(key, number)) return refuse(key, s, where, "", err);
    number += 0.0; /* no negative zero: it would print as another value */
    memcpy(to, &number, sizeof number);
    return PL_OK;
}

static void set_switch(const pl_config_key *key, pl_config_switch value, void *to)
{
    if (key->bytes == sizeof(bool))
        *(bool *)to = value != PL_SWITCH_OFF;
    else
        memcpy(to, &value, sizeof value);
}

static pl_status set_bool(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    bool value = false, is_bool = parse_bool(s, &value),
         is_auto = key->flags & PL_CONFIG_FLAG_AUTO && is_word(s, "auto");
    if (is_bool && s.style == PL_CONFIG_QUOTED) return refuse_quoted(key, s, where, err);
    if (!is_bool && !is_auto) return refuse(key, s, where, "", err);
    set_switch(key, is_auto ? PL_SWITCH_AUTO : value ? PL_SWITCH_ON : PL_SWITCH_OFF, to);
    return PL_OK;
}

static bool find_name(const pl_config_key *key, pl_config_scalar s, int *index)
{
    for (size_t i = 0; i < key->name_count; i++)
        if (is_word(s, key->names[i])) return *index = (int)i, true;
    return false;
}

/* Another program's word for one of its values, or NULL. */
static const pl_config_word *find_word(const pl_config_key *key, pl_config_scalar s)
{
    for (const pl_config_word *w = pl_config_other_words; w < PL_CONFIG_OTHER_WORDS_END; w++)
        if (w->key == key && strlen(w->word) == s.bytes && strncasecmp(w->word, s.text, s.bytes) == 0) return w;
    return NULL;
}

static pl_status set_enum(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    int value;
    const pl_config_word *other = find_word(key, s);
    if (other && !other->means)
        return pl_fail(err, PL_E_CONFIG, "%s: %s cannot be %s: %s", where, key->path, other->word, other->help);
    if (other) s = (pl_config_scalar){other->means, strlen(other->means), PL_CONFIG_PLAIN};
    if (!find_name(key, s, &value)) return refuse_name(key, s, where, err);
    memcpy(to, &value, sizeof value);
    return PL_OK;
}

/* ---- lists ---- */

static pl_status number_of_item(const pl_config_key *key, pl_config_scalar s, double *number, const char *where,
                                pl_error *err)
{
    const bool is_number = parse_real(s, number);
    if (is_number && s.style == PL_CONFIG_QUOTED) return refuse_quoted(key, s, where, err);
    if (!is_number || !in_real_range(key, *number)) return refuse(key, s, where, "", err);
    if (key->flags & PL_CONFIG_FLAG_WHOLE && *number != floor(*number)) return refuse(key, s, where, "", err);
    if (key->flags & PL_CONFIG_FLAG_ODD && fmod(*number, 2) == 0) return refuse(key, s, where, "", err);
    *number += 0.0; /* no negative zero */
    return PL_OK;
}

static pl_status append_item(const pl_config_key *key, pl_config_list *list, double item, pl_config_scalar s,
                             const char *where, pl_error *err)
{
    char shown[64], expected[320];
    for (int64_t i = 0; key->flags & PL_CONFIG_FLAG_DISTINCT && i < list->count; i++)
        if (list->item[i] == item)
            return pl_fail(err, PL_E_CONFIG, "%s: %s has %s twice; take one out", where, key->path,
                           pl_config_shown(s.text, s.bytes, shown));
    if (list->count == key->max_items)
        return pl_fail(err, PL_E_CONFIG, "%s: %s must be %s, and this is one too many", where, key->path,
                       pl_config_expected(key, expected, sizeof expected));
    list->item[list->count++] = item;
    return PL_OK;
}

pl_status pl_config_parse_item(const pl_config_key *key, pl_config_scalar s, void *value, const char *where,
                               pl_error *err)
{
    int index = 0;
    double number = 0;
    locale_t before = pl_locale_enter();
    pl_status status = PL_OK;
    if (!key->names)
        status = number_of_item(key, s, &number, where, err);
    else if (!find_name(key, s, &index))
        status = refuse_name(key, s, where, err);
    pl_locale_leave(before);
    PL_TRY(status);
    if (key->type == PL_CONFIG_LIST) return append_item(key, value, key->names ? index : number, s, where, err);
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    bits |= UINT32_C(1) << index;
    memcpy(value, &bits, sizeof bits);
    return PL_OK;
}

pl_status pl_config_check_items(const pl_config_key *key, const void *value, const char *where, pl_error *err)
{
    const pl_config_list *list = value;
    char expected[320];
    if (key->type != PL_CONFIG_LIST || list->count >= key->min_items) return PL_OK;
    if (list->count == 0 && !key->default_list) return PL_OK; /* that is its default, too */
    return pl_fail(err, PL_E_CONFIG, "%s: %s must be %s, not a list of %" PRId64, where, key->path,
                   pl_config_expected(key, expected, sizeof expected), list->count);
}

static bool is_in_brackets(pl_config_scalar s)
{
    return s.bytes >= 2 && s.text[0] == '[' && s.text[s.bytes - 1] == ']';
}

/* An item of a list in one scalar, without blanks around it; in a list of words also without quotes. */
static pl_config_scalar trimmed(const pl_config_key *key, const char *at, const char *end)
{
    while (at < end && *at == ' ') at++;
    while (at < end && end[-1] == ' ') end--;
    const bool quoted = end - at >= 2 && (*at == '"' || *at == '\'') && *at == end[-1];
    if (key->names && quoted) at++, end--;
    return (pl_config_scalar){at, (size_t)(end - at), key->names ? PL_CONFIG_QUOTED : PL_CONFIG_RAW};
}

/* "model,plan" or "[2, 5]" in one scalar; nothing between quotes or brackets, or "none", is the empty list. */
static pl_status set_items(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    pl_config_value value = {0};
    const bool in_brackets = is_in_brackets(s);
    const char *at = s.text + in_brackets, *end = s.text + s.bytes - in_brackets;
    bool empty = is_word(s, "none") || (s.bytes == 0 && s.style == PL_CONFIG_QUOTED) ||
                 (in_brackets && trimmed(key, at, end).bytes == 0);
    if (!empty && pl_config_is_null(s)) return refuse(key, s, where, "", err);
    while (!empty && at <= end) {
        char text[48];
        const char *comma = memchr(at, ',', (size_t)(end - at));
        pl_config_scalar item = trimmed(key, at, comma ? comma : end);
        if (item.bytes >= sizeof text) return refuse(key, s, where, "", err);
        memcpy(text, item.text, item.bytes);
        text[item.bytes] = 0;
        item.text = text;
        PL_TRY(pl_config_parse_item(key, item, &value, where, err));
        at = comma ? comma + 1 : end + 1;
    }
    PL_TRY(pl_config_check_items(key, &value, where, err));
    memcpy(to, &value, key->bytes);
    return PL_OK;
}

/* Rules for all text: what may stand in it, how long, and no number or truth value by accident. */
static pl_status check_text(const pl_config_key *key, pl_config_scalar s, const char *where, pl_error *err)
{
    double number;
    bool truth;
    size_t bad;
    if (pl_config_is_null(s) && (s.style == PL_CONFIG_PLAIN || key->type != PL_CONFIG_TEXT))
        return refuse(key, s, where, "", err);
    if (s.style == PL_CONFIG_PLAIN && (parse_real(s, &number) || parse_bool(s, &truth)))
        return refuse(key, s, where, "; put it in quotes", err);
    const size_t room = key->type == PL_CONFIG_TEXT ? key->bytes : PL_CONFIG_TEXT_BYTES;
    if (s.bytes >= room)
        return pl_fail(err, PL_E_CONFIG, "%s: %s has %zu bytes; at most %zu fit", where, key->path, s.bytes, room - 1);
    if (!pl_config_is_text(s.text, s.bytes, &bad))
        return pl_fail(err, PL_E_CONFIG, "%s: %s is not printable UTF-8 at byte %zu (0x%02x); write it as UTF-8", where,
                       key->path, bad, (unsigned char)s.text[bad]);
    return PL_OK;
}

/* The whole room is written, so that equal values have equal bytes. */
static void store_text(char *to, size_t room, const char *text, size_t bytes)
{
    memset(to, 0, room);
    memcpy(to, text, bytes);
}

/* "[a, 'b, c']" outside of a file (in one YAML reads it): paths, a line each. */
static pl_status set_paths(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    char text[PL_CONFIG_TEXT_BYTES];
    pl_str lines = pl_str_fixed(text, sizeof text);
    const char *at = s.text + 1, *end = s.text + s.bytes - 1;
    while (end > at && end[-1] == ' ') end--;
    for (const char *next; at < end; at = next + 1) {
        while (*at == ' ') at++;
        const char quote = *at == '"' || *at == '\'' ? *at : 0;
        const char *close = quote ? memchr(at + 1, quote, (size_t)(end - at - 1)) : NULL;
        next = memchr(close ? close : at, ',', (size_t)(end - (close ? close : at)));
        if (!next) next = end;
        const char *last = next;
        while (last > at && last[-1] == ' ') last--;
        if (close && last == close + 1) at++, last--;
        if (last == at)
            return pl_fail(err, PL_E_CONFIG, "%s: an item of %s must be one path, and one in \"%.100s\" is empty",
                           where, key->path, s.text);
        pl_str_printf(&lines, "%s%.*s", lines.bytes ? "\n" : "", (int)(last - at), at);
    }
    if (lines.failed)
        return pl_fail(err, PL_E_CONFIG, "%s: the paths of %s are too long together; put them into a file (@FILE)",
                       where, key->path);
    s = (pl_config_scalar){pl_str_text(&lines), lines.bytes, PL_CONFIG_QUOTED};
    PL_TRY(check_text(key, s, where, err));
    store_text(to, key->bytes, s.text, s.bytes);
    return PL_OK;
}

static pl_status set_text(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    const bool is_list = key->type == PL_CONFIG_PATH && key->flags & PL_CONFIG_FLAG_LINES && is_in_brackets(s);
    if (is_list && s.style == PL_CONFIG_RAW) return set_paths(key, s, to, where, err);
    if (key->type == PL_CONFIG_PATH && is_word(s, key->empty_word))
        s = (pl_config_scalar){"", 0, PL_CONFIG_QUOTED};
    else
        PL_TRY(check_text(key, s, where, err));
    store_text(to, key->bytes, s.text, s.bytes);
    return PL_OK;
}

static void store_kind(void *to, int kind, const char *path, size_t bytes)
{
    memcpy((char *)to + offsetof(pl_config_name_or_path, kind), &kind, sizeof kind);
    store_text((char *)to + offsetof(pl_config_name_or_path, path), PL_CONFIG_TEXT_BYTES, path, bytes);
}

static pl_status set_name_or_path(const pl_config_key *key, pl_config_scalar s, void *to, const char *where,
                                  pl_error *err)
{
    int kind;
    if (find_name(key, s, &kind)) return store_kind(to, kind, "", 0), PL_OK;
    PL_TRY(check_text(key, s, where, err));
    if (!memchr(s.text, '/', s.bytes) && !memchr(s.text, '.', s.bytes)) return refuse_name(key, s, where, err);
    store_kind(to, (int)key->name_count, s.text, s.bytes);
    return PL_OK;
}

/* From an option or a variable, or one word in the file. */
static pl_status set_records(const pl_config_key *key, pl_config_scalar s, void *to, const char *where, pl_error *err)
{
    (void)to;
    if (s.style != PL_CONFIG_RAW) return refuse(key, s, where, "", err);
    return pl_fail(err, PL_E_CONFIG, "%s: %s is a list of mappings, which only a config file can give", where,
                   key->path);
}

pl_status pl_config_parse_value(const pl_config_key *key, pl_config_scalar s, void *value, const char *where,
                                pl_error *err)
{
    typedef pl_status setter(const pl_config_key *, pl_config_scalar, void *, const char *, pl_error *);
    static setter *const setters[] = {
        [PL_CONFIG_INT] = set_int,         [PL_CONFIG_BYTES] = set_bytes,
        [PL_CONFIG_REAL] = set_real,       [PL_CONFIG_BOOL] = set_bool,
        [PL_CONFIG_ENUM] = set_enum,       [PL_CONFIG_SET] = set_items,
        [PL_CONFIG_LIST] = set_items,      [PL_CONFIG_TEXT] = set_text,
        [PL_CONFIG_PATH] = set_text,       [PL_CONFIG_NAME_OR_PATH] = set_name_or_path,
        [PL_CONFIG_RECORDS] = set_records,
    };
    locale_t before = pl_locale_enter();
    pl_status status = setters[key->type](key, s, value, where, err);
    pl_locale_leave(before);
    return status;
}

void pl_config_default_value(const pl_config_key *row, pl_config_system system, void *value)
{
    const pl_config_system_default *of_system = pl_config_find_default(row, system);
    pl_config_key changed = *row;
    if (of_system) changed.default_int = of_system->number, changed.default_real = of_system->real;
    const pl_config_key *key = &changed;
    const int as_enum = (int)key->default_int;
    memset(value, 0, key->bytes);
    switch (key->type) {
    case PL_CONFIG_INT:
    case PL_CONFIG_BYTES:
        memcpy(value, &key->default_int, sizeof key->default_int);
        break;
    case PL_CONFIG_REAL:
        memcpy(value, &key->default_real, sizeof key->default_real);
        break;
    case PL_CONFIG_BOOL:
        set_switch(key, (pl_config_switch)key->default_int, value);
        break;
    case PL_CONFIG_ENUM:
    case PL_CONFIG_NAME_OR_PATH:
        memcpy(value, &as_enum, sizeof as_enum);
        break;
    case PL_CONFIG_LIST:
        if (key->default_list) memcpy(value, key->default_list, sizeof *key->default_list);
        break;
    case PL_CONFIG_SET:
    case PL_CONFIG_TEXT:
    case PL_CONFIG_PATH:
    case PL_CONFIG_RECORDS:
        break;
    }
}
