#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

pl_json pl_json_begin(pl_str *out, bool compact) { return (pl_json){.out = out, .compact = compact}; }

static void newline(pl_json *j)
{
    if (j->compact) return;
    pl_str_append(j->out, "\n");
    pl_str_pad(j->out, ' ', (size_t)j->depth * 2);
}

static void before_value(pl_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->need_comma) pl_str_append(j->out, ",");
    if (j->depth) newline(j);
}

static void open_group(pl_json *j, const char *bracket)
{
    before_value(j);
    pl_str_append(j->out, bracket);
    j->depth++;
    j->need_comma = false;
}

static void close_group(pl_json *j, const char *bracket)
{
    j->depth--;
    if (j->need_comma) newline(j);
    pl_str_append(j->out, bracket);
    j->need_comma = true;
}

void pl_json_object(pl_json *j) { open_group(j, "{"); }
void pl_json_object_end(pl_json *j) { close_group(j, "}"); }
void pl_json_array(pl_json *j) { open_group(j, "["); }
void pl_json_array_end(pl_json *j) { close_group(j, "]"); }

size_t pl_json_utf8_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80) return 1;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
    return n;
}

/* The code points beyond ASCII that readers of YAML 1.1 take for the end of a line or drop (JSON is read as YAML in
 * places, and JavaScript shares two of them): 0 for every other. */
static unsigned awkward(const unsigned char *p, size_t n)
{
    if (n == 2 && p[0] == 0xc2 && p[1] == 0x85) return 0x85;
    if (n == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] | 1) == 0xa9) return 0x2000u | (p[2] & 0x3f);
    return n == 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 0xfeff : 0;
}

/* How many bytes stand for themselves. */
static size_t plain(const unsigned char *p, size_t bytes)
{
    size_t n = 0;
    while (n < bytes && p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\') n++;
    return n;
}

void pl_json_escape(pl_str *out, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < bytes;) {
        size_t run = plain(p + i, bytes - i);
        pl_str_append_bytes(out, p + i, run);
        i += run;
        if (i == bytes) break;
        size_t n = pl_json_utf8_length(p + i, bytes - i);
        if (n == 0) {
            pl_str_append(out, "\\ufffd");
            n = 1;
        } else if (p[i] == '"' || p[i] == '\\') {
            pl_str_printf(out, "\\%c", p[i]);
        } else if (p[i] == '\n') {
            pl_str_append(out, "\\n");
        } else if (p[i] == '\t') {
            pl_str_append(out, "\\t");
        } else if (p[i] < 0x20 || p[i] == 0x7f) {
            pl_str_printf(out, "\\u%04x", p[i]);
        } else if (awkward(p + i, n)) {
            pl_str_printf(out, "\\u%04x", awkward(p + i, n));
        } else {
            pl_str_append_bytes(out, p + i, n);
        }
        i += n;
    }
}

static void quoted(pl_str *out, const char *text, size_t bytes)
{
    pl_str_append(out, "\"");
    pl_json_escape(out, text, bytes);
    pl_str_append(out, "\"");
}

void pl_json_key(pl_json *j, const char *key)
{
    before_value(j);
    quoted(j->out, key, strlen(key));
    pl_str_append(j->out, j->compact ? ":" : ": ");
    j->after_key = true;
    j->need_comma = true;
}

void pl_json_string_bytes(pl_json *j, const char *text, size_t bytes)
{
    before_value(j);
    quoted(j->out, text, bytes);
    j->need_comma = true;
}

void pl_json_string(pl_json *j, const char *text)
{
    if (text)
        pl_json_string_bytes(j, text, strlen(text));
    else
        pl_json_null(j);
}

void pl_json_int(pl_json *j, int64_t v)
{
    before_value(j);
    pl_str_int(j->out, v);
    j->need_comma = true;
}

void pl_json_uint(pl_json *j, uint64_t v)
{
    before_value(j);
    pl_str_uint(j->out, v);
    j->need_comma = true;
}

void pl_json_double(pl_json *j, double v)
{
    before_value(j);
    if (isfinite(v))
        pl_str_double(j->out, v);
    else
        pl_str_append(j->out, "null");
    j->need_comma = true;
}

void pl_json_bool(pl_json *j, bool v)
{
    before_value(j);
    pl_str_append(j->out, v ? "true" : "false");
    j->need_comma = true;
}

void pl_json_null(pl_json *j)
{
    before_value(j);
    pl_str_append(j->out, "null");
    j->need_comma = true;
}

void pl_json_kv_string(pl_json *j, const char *key, const char *text) { pl_json_key(j, key), pl_json_string(j, text); }
void pl_json_kv_int(pl_json *j, const char *key, int64_t v) { pl_json_key(j, key), pl_json_int(j, v); }
void pl_json_kv_uint(pl_json *j, const char *key, uint64_t v) { pl_json_key(j, key), pl_json_uint(j, v); }
void pl_json_kv_double(pl_json *j, const char *key, double v) { pl_json_key(j, key), pl_json_double(j, v); }
void pl_json_kv_bool(pl_json *j, const char *key, bool v) { pl_json_key(j, key), pl_json_bool(j, v); }

/* The key, and null where there is no value to follow. */
static bool begin_if(pl_json *j, bool known, const char *key)
{
    pl_json_key(j, key);
    if (!known) pl_json_null(j);
    return known;
}

void pl_json_kv_uint_if(pl_json *j, bool known, const char *key, uint64_t v)
{
    if (begin_if(j, known, key)) pl_json_uint(j, v);
}

void pl_json_kv_double_if(pl_json *j, bool known, const char *key, double v)
{
    if (begin_if(j, known, key)) pl_json_double(j, v);
}

pl_json pl_json_document(pl_str *out, bool compact, const char *schema)
{
    pl_json j = pl_json_begin(out, compact);
    pl_json_object(&j);
    pl_json_kv_string(&j, "schema", schema);
    return j;
}

void pl_json_document_end(pl_json *j)
{
    pl_json_object_end(j);
    pl_str_append(j->out, "\n");
}
