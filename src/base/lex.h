/* Reading the line-based texts of Plimsoll (graph, plan): a line is fields parted by blanks; a field is `value` or
 * `key=value`; a value may be quoted, with \" \\ \n and \xNN inside the quotes. Every error names file:line:column. */
#ifndef PL_BASE_LEX_H
#define PL_BASE_LEX_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

typedef struct pl_lex {
    const char *name, *at, *end, *line_start;
    int line;
    /* the field read last */
    char key[32];     /* "" when the field is a bare value */
    char value[1024]; /* unescaped */
    int column;
} pl_lex;

pl_lex pl_lex_begin(const char *name, const char *text, size_t bytes);
/* Goes to the next line that is not blank and no # comment; false at the end of the text. */
int pl_lex_line(pl_lex *);
/* Reads the next field of the line: 1 one was read, 0 end of line, -1 malformed (err is filled). */
int pl_lex_field(pl_lex *, pl_error *);
/* The next field must exist and be bare (key NULL) or have this key. */
pl_status pl_lex_expect(pl_lex *, const char *key, pl_error *);
/* The line must end here. */
pl_status pl_lex_end(pl_lex *, pl_error *);
pl_status pl_lex_fail(const pl_lex *, pl_error *, const char *fmt, ...) PL_PRINTF(3, 4);
/* The value of the field read last as a number. */
pl_status pl_lex_int(const pl_lex *, int64_t min, int64_t max, int64_t *, pl_error *);
pl_status pl_lex_uint(const pl_lex *, uint64_t max, uint64_t *, pl_error *);
pl_status pl_lex_double(const pl_lex *, double *, pl_error *);

/* Appends text quoted so that the reader gives it back. */
void pl_lex_quote(pl_str *out, const char *text);

#endif
