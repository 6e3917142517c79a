/* jansson (2.14) does not survive a refused request for memory: a token that outgrows its buffer loses the letters
 * that did not fit (lex_save looks at no result). A number or a name is then another one; and where it was the closing
 * quote, the search for it runs off the end of the buffer. So a refusal must never return to it.
 *
 * While it reads, it asks through functions that note each block; a refusal jumps straight out of the parser, and what
 * it held is given back from the notes. (The parser holds nothing but memory.) The notes are a hash table, open
 * addressing, at most half full: a damaged tree of a million values gives its blocks back one by one.
 *
 * The functions that jansson asks are those of the whole process. In other threads, where a host program may be using
 * jansson, what stands there meanwhile hands every request on to what stood there before. */
#include "base/json_read.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/locale.h"

static pthread_mutex_t one_reader = PTHREAD_MUTEX_INITIALIZER;
static json_malloc_t usual_malloc;
static json_free_t usual_free;

static _Thread_local struct {
    bool active;
    jmp_buf refused;
    void **note; /* [capacity], a power of two; NULL: free */
    size_t count, capacity;
} reading;

static size_t home_of(const void *block)
{
    return (size_t)((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (reading.capacity - 1);
}

static void note(void *block)
{
    size_t at = home_of(block);
    while (reading.note[at]) at = (at + 1) & (reading.capacity - 1);
    reading.note[at] = block;
    reading.count++;
}

/* Those behind the gap that would not be found over it move up. */
static void drop(const void *block)
{
    size_t mask = reading.capacity - 1, gap = home_of(block);
    while (reading.note[gap] != block) gap = (gap + 1) & mask;
    reading.count--;
    for (size_t at = (gap + 1) & mask; reading.note[at]; at = (at + 1) & mask) {
        if (((at - home_of(reading.note[at])) & mask) < ((at - gap) & mask)) continue;
        reading.note[gap] = reading.note[at];
        gap = at;
    }
    reading.note[gap] = NULL;
}

static int make_room(void)
{
    size_t before = reading.capacity;
    void **old = reading.note;
    if (2 * (reading.count + 1) <= before) return 0;
    void **bigger = pl_alloc(before ? 2 * before : 256, sizeof *bigger);
    if (!bigger) return -1;
    reading.note = bigger;
    reading.capacity = before ? 2 * before : 256;
    reading.count = 0;
    for (size_t i = 0; i < before; i++)
        if (old[i]) note(old[i]);
    pl_free(old);
    return 0;
}

static void *noting_malloc(size_t bytes)
{
    if (!reading.active) return usual_malloc(bytes);
    void *block = make_room() ? NULL : usual_malloc(bytes);
    if (!block) longjmp(reading.refused, 1);
    note(block);
    return block;
}

static void noting_free(void *block)
{
    if (!block) return;
    if (reading.active) drop(block);
    usual_free(block);
}

/* ---- counting ---- */

/* Before each block that is counted. */
typedef struct counted {
    _Alignas(max_align_t) size_t bytes;
    bool is_counted;
} counted;

static json_malloc_t uncounted_malloc;
static json_free_t uncounted_free;
static int counting_threads; /* under one_reader */
static _Thread_local bool counting;

static void *counting_malloc(size_t bytes)
{
    if (!counting) return uncounted_malloc(bytes);
    counted *c = bytes > SIZE_MAX - sizeof *c ? NULL : uncounted_malloc(bytes + sizeof *c);
    if (!c) return NULL;
    *c = (counted){bytes, pl_alloc_count_taken(bytes)};
    return c + 1;
}

static void counting_free(void *block)
{
    if (!block) return;
    if (!counting) return uncounted_free(block);
    counted *c = (counted *)block - 1;
    pl_alloc_count_given(c->bytes, c->is_counted);
    uncounted_free(c);
}

void pl_json_count(bool on)
{
    (void)pthread_mutex_lock(&one_reader);
    if (on && counting_threads++ == 0) {
        json_get_alloc_funcs(&uncounted_malloc, &uncounted_free);
        json_set_alloc_funcs(counting_malloc, counting_free);
    }
    counting = on;
    if (!on && --counting_threads == 0) json_set_alloc_funcs(uncounted_malloc, uncounted_free);
    (void)pthread_mutex_unlock(&one_reader);
}

/* ---- reading ---- */

static void begin(void)
{
    (void)pthread_mutex_lock(&one_reader); /* fails for no mutex like this one */
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(noting_malloc, noting_free);
    reading.active = true;
}

/* keep: the blocks are those of the tree. */
static void end(bool keep)
{
    reading.active = false;
    json_set_alloc_funcs(usual_malloc, usual_free);
    for (size_t i = 0; i < reading.capacity && !keep; i++)
        if (reading.note[i]) usual_free(reading.note[i]);
    pl_free(reading.note);
    reading.note = NULL;
    reading.count = reading.capacity = 0;
    (void)pthread_mutex_unlock(&one_reader);
}

/* ---- numbers that jansson has no room for ---- */

enum { INT64_DIGITS = 19, KEPT_DIGITS = 17 }; /* of a whole number; more than a double has */

static bool is_of_number(char c) { return (c >= '0' && c <= '9') || strchr("+-.eE", c); }

/* In as many bytes: 17 digits and an exponent in place of 19 or more. */
static void shorten(char *digits, size_t count)
{
    char exponent[24];
    const int n = snprintf(exponent, sizeof exponent, "e%zu", count - KEPT_DIGITS);
    memcpy(digits + KEPT_DIGITS, exponent, (size_t)n);
    memset(digits + KEPT_DIGITS + n, ' ', count - KEPT_DIGITS - (size_t)n);
}

/* The number, which is followed by what is of none, if only the zero at the end of the text. */
static void fit_number(char *at, size_t bytes)
{
    char *digits = at + (*at == '-'), *end;
    const size_t count = (size_t)(at + bytes - digits);
    const bool is_whole = strspn(digits, "0123456789") >= count;
    if (!isfinite(pl_read_double(at, &end)) && end == at + bytes) {
        memset(at, ' ', bytes);
        memcpy(at, "{}", 2);
    } else if (is_whole && count >= INT64_DIGITS) {
        shorten(digits, count);
    }
}

/* Those outside of strings. */
static void fit_numbers(char *text, size_t bytes)
{
    for (size_t at = 0, end; at < bytes; at = end) {
        end = at + 1;
        if (text[at] == '"') {
            while (end < bytes && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
            end++;
        } else if (text[at] && is_of_number(text[at])) {
            while (end < bytes && text[end] && is_of_number(text[end])) end++;
            if (end - at > 4) fit_number(text + at, end - at); /* 1e999 has five */
        }
    }
}

static pl_status read_once(const char *text, size_t bytes, size_t flags, json_t **root, json_error_t *why)
{
    *root = NULL;
    begin();
    if (setjmp(reading.refused)) {
        end(false);
        return PL_E_NOMEM;
    }
    *root = json_loadb(text, bytes, flags, why);
    end(true);
    return *root ? PL_OK : PL_E_DATA;
}

pl_status pl_json_read(const char *text, size_t bytes, size_t flags, json_t **root, json_error_t *why)
{
    pl_status status = read_once(text, bytes, flags, root, why);
    if (status != PL_E_DATA || json_error_code(why) != json_error_numeric_overflow) return status;
    char *fit = pl_strndup(text, bytes);
    if (!fit) return PL_E_NOMEM;
    fit_numbers(fit, bytes);
    status = read_once(fit, bytes, flags, root, why);
    pl_free(fit);
    return status;
}

pl_status pl_json_read_file(const char *path, uint64_t limit, json_t **root, pl_error *err)
{
    char *text;
    size_t bytes;
    json_error_t why;
    *root = NULL;
    PL_TRY(pl_file_read_text(path, limit, &text, &bytes, err));
    pl_status status = pl_json_read(text, bytes, JSON_REJECT_DUPLICATES, root, &why);
    pl_free(text);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s: no memory to read it", path);
    if (status != PL_OK)
        return pl_fail(err, status, "%s:%d:%d: is not valid JSON: %s", path, why.line, why.column, why.text);
    if (json_is_object(*root)) return PL_OK;
    json_decref(*root);
    *root = NULL;
    return pl_fail(err, PL_E_DATA, "%s: is not a JSON object", path);
}
