#include "data/text/pretoken.h"

#include <assert.h>

#include "data/text/unicode.h"

typedef struct text {
    const uint8_t *p;
    size_t n, cap;
    int final;
} text;

enum { AT_END = 0, NEED_MORE = -1 };

/* The character at byte `at`: its length and class, AT_END or NEED_MORE. */
static int peek(const text *t, size_t at, pl_char_class *class)
{
    uint32_t c;
    if (at >= t->n) return t->final ? AT_END : NEED_MORE;
    size_t length = pl_utf8_read(t->p + at, t->n - at, &c);
    if (length == 0 && !t->final) return NEED_MORE;
    if (length == 0) c = PL_NOT_UTF8, length = 1;
    *class = c == PL_NOT_UTF8 ? PL_CHAR_OTHER : pl_unicode_class(c);
    return (int)length;
}

/* Length of 's 't 'm 'd 're 've 'll at the beginning; 0 for none, NEED_MORE. */
static int contraction(const text *t)
{
    if (t->p[0] != '\'') return 0;
    if (t->n < 2) return t->final ? 0 : NEED_MORE;
    uint8_t a = t->p[1];
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (a != 'r' && a != 'v' && a != 'l') return 0;
    if (t->n < 3) return t->final ? 0 : NEED_MORE;
    return t->p[2] == (a == 'l' ? 'l' : 'e') ? 3 : 0;
}

/* \s+(?!\S)|\s+ : a run of white space leaves its last character to what follows, unless that is all it has. */
static size_t space_piece(const text *t)
{
    size_t at = 0, last = 0;
    for (;;) {
        pl_char_class class;
        int length = peek(t, at, &class);
        if (length == NEED_MORE) return 0;
        if (length == AT_END) return at;
        if (class != PL_CHAR_SPACE) return last ? last : at;
        if (at + (size_t)length > t->cap) return at;
        last = at;
        at += (size_t)length;
    }
}

/* A run of one class behind an optional space (`at` is 0 or 1). */
static size_t run_piece(const text *t, size_t at, pl_char_class wanted)
{
    for (;;) {
        pl_char_class class;
        int length = peek(t, at, &class);
        if (length == NEED_MORE) return 0;
        if (length == AT_END || class != wanted || at + (size_t)length > t->cap) return at;
        at += (size_t)length;
    }
}

size_t pl_pretoken_length(const uint8_t *p, size_t n, int final, size_t cap)
{
    text t = {p, n, cap, final};
    pl_char_class class;
    assert(n > 0 && cap >= PL_PRETOKEN_CAP_MIN);
    int short_form = contraction(&t);
    if (short_form) return short_form == NEED_MORE ? 0 : (size_t)short_form;
    size_t lead = p[0] == ' ';
    int length = peek(&t, lead, &class);
    if (length == NEED_MORE) return 0;
    if (length == AT_END) return lead;
    return class == PL_CHAR_SPACE ? space_piece(&t) : run_piece(&t, lead, class);
}
