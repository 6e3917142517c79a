/* Writing JSON. Commas and indentation are the writer's business; numbers are written exactly (integers as such,
 * doubles as the shortest text that reads back; nan and inf, which JSON lacks, as null). Strings are escaped; bytes
 * that are not UTF-8 become U+FFFD. Reading JSON is jansson's job. */
#ifndef PL_BASE_JSON_H
#define PL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct pl_json {
    pl_str *out;
    int depth;
    bool compact; /* one line, no spaces */
    bool need_comma, after_key;
} pl_json;

pl_json pl_json_begin(pl_str *out, bool compact);
/* An object of its own, begun: what it is stands first, and behind its end a line ends. */
pl_json pl_json_document(pl_str *out, bool compact, const char *schema);
void pl_json_document_end(pl_json *);
void pl_json_object(pl_json *); /* { */
void pl_json_object_end(pl_json *);
void pl_json_array(pl_json *); /* [ */
void pl_json_array_end(pl_json *);
void pl_json_key(pl_json *, const char *key);
void pl_json_string(pl_json *, const char *text); /* NULL writes null */
void pl_json_string_bytes(pl_json *, const char *text, size_t bytes);
void pl_json_int(pl_json *, int64_t);
void pl_json_uint(pl_json *, uint64_t);
void pl_json_double(pl_json *, double);
void pl_json_bool(pl_json *, bool);
void pl_json_null(pl_json *);

/* Text as it stands between the quotes of a string. */
void pl_json_escape(pl_str *out, const char *text, size_t bytes);
/* Length of the UTF-8 sequence at p (1 to 4), or 0 when it is none (overlong forms and surrogates included). */
size_t pl_json_utf8_length(const unsigned char *p, size_t left);

/* key and value in one call */
void pl_json_kv_string(pl_json *, const char *key, const char *text);
void pl_json_kv_int(pl_json *, const char *key, int64_t);
void pl_json_kv_uint(pl_json *, const char *key, uint64_t);
void pl_json_kv_double(pl_json *, const char *key, double);
void pl_json_kv_bool(pl_json *, const char *key, bool);
/* What is not known, or does not exist, is null. */
void pl_json_kv_uint_if(pl_json *, bool known, const char *key, uint64_t);
void pl_json_kv_double_if(pl_json *, bool known, const char *key, double);

#endif
