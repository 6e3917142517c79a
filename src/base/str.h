/* A growable string. Out-of-memory is sticky: appends after a refusal do nothing and `failed` stays set, so that a
 * printer checks once, at its end. Always terminated; data may be NULL while nothing was appended (use pl_str_text). */
#ifndef PL_BASE_STR_H
#define PL_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

typedef struct pl_str {
    char *data;
    size_t bytes, capacity;
    int failed;
    int fixed; /* the memory is the caller's: never grown, never freed */
} pl_str;

/* A string in `bytes` (at least 1) bytes of the caller's memory: what does not fit sets `failed`. Asks for no
 * memory. */
pl_str pl_str_fixed(char *memory, size_t bytes);

void pl_str_append(pl_str *, const char *text);
void pl_str_append_bytes(pl_str *, const void *data, size_t bytes);
void pl_str_printf(pl_str *, const char *fmt, ...) PL_PRINTF(2, 3);
void pl_str_vprintf(pl_str *, const char *fmt, va_list args);
/* As "%PRId64" and "%PRIu64" would, in a tenth of the time: graphs, plans and keys are mostly numbers. */
void pl_str_int(pl_str *, int64_t);
void pl_str_uint(pl_str *, uint64_t);
void pl_str_pad(pl_str *, char c, size_t count);
/* The words of a text for lines of so many columns (a character is one): the first begins where the cursor is, at
 * column `indent`, the others behind so many spaces. A word that is longer than a line is left whole. */
void pl_str_wrap(pl_str *, const char *text, size_t bytes, size_t indent, size_t columns);
/* The same for what stands behind the first `from` bytes: spaces become ends of lines. */
void pl_str_fold(pl_str *, size_t from, size_t columns);
const char *pl_str_text(const pl_str *); /* "" when empty */
void pl_str_clear(pl_str *);             /* keeps the memory */
void pl_str_deinit(pl_str *);

/* The shortest text that reads back as exactly this double ("%.17g" at most); inf, -inf, nan as such. */
void pl_str_double(pl_str *, double value);

/* Does a name end so, with something before it? */
bool pl_ends_with(const char *name, const char *ending);
bool pl_ends_in_any_case(const char *name, const char *ending);

/* The best match for `word` among `count` candidates by edit distance, or NULL when nothing is near (distance above a
 * third of the word's length): for did-you-mean. What all candidates begin with ("--") is better left away: it would
 * make everything look alike. */
const char *pl_nearest(const char *word, const char *const *candidates, size_t count);
/* The same for candidates that come one by one: whether this one is nearer than all before it. *best is the state, at
 * first SIZE_MAX. */
bool pl_nearer(const char *word, const char *candidate, size_t *best);

#endif
