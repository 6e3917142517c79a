#include "data/text/pretoken.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "data/text/unicode.h"

typedef struct text {
    const uint8_t *p;
    size_t n, cap;
    int final;
    pl_precut precut;
    bool first_kind; /* of the first character: a precut ends the text where the kind changes */
} text;

enum { AT_END = 0, NEED_MORE = -1, LONG_S = 0x17f };

static bool kind_of(pl_precut precut, uint32_t c)
{
    if (precut != PL_PRECUT_PUNCTUATION) return pl_unicode_is_digit(c);
    return c < 0x80 ? c && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_{|}~", (int)c) != NULL : pl_unicode_is_punctuation(c);
}

static bool is_cut_before(const text *t, uint32_t c)
{
    return kind_of(t->precut, c) != t->first_kind || (t->precut == PL_PRECUT_EACH_DIGIT && t->first_kind);
}

/* The character at byte `at`: its length and class, AT_END or NEED_MORE. */
static int look(const text *t, size_t at, pl_char_class *class, uint32_t *c)
{
    if (at >= t->n) return t->final ? AT_END : NEED_MORE;
    size_t length = pl_utf8_read(t->p + at, t->n - at, c);
    if (length == 0 && !t->final) return NEED_MORE;
    if (length == 0) *c = PL_NOT_UTF8, length = 1;
    if (t->precut && at && is_cut_before(t, *c)) return AT_END;
    *class = *c == PL_NOT_UTF8 ? PL_CHAR_OTHER : pl_unicode_class(*c);
    return (int)length;
}

static int peek(const text *t, size_t at, pl_char_class *class)
{
    uint32_t c;
    return look(t, at, class, &c);
}

/* Length of 's 't 'm 'd 're 've 'll at the beginning; 0 for none, NEED_MORE. */
static int contraction(const text *t)
{
    if (t->p[0] != '\'' || t->precut == PL_PRECUT_PUNCTUATION) return 0;
    if (t->n < 2) return t->final ? 0 : NEED_MORE;
    uint8_t a = t->p[1];
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (a != 'r' && a != 'v' && a != 'l') return 0;
    if (t->n < 3) return t->final ? 0 : NEED_MORE;
    return t->p[2] == (a == 'l' ? 'l' : 'e') ? 3 : 0;
}

static uint32_t fold(uint32_t c) { return c == LONG_S ? 's' : c < 0x80 ? c | 0x20 : c; }

/* The same in any case. */
static int folded_contraction(const text *t)
{
    pl_char_class class;
    uint32_t a = 0, b = 0;
    if (t->p[0] != '\'') return 0;
    const int length = look(t, 1, &class, &a);
    if (length <= 0) return length;
    a = class == PL_CHAR_LETTER ? fold(a) : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 1 + length;
    if (a != 'r' && a != 'v' && a != 'l') return 0;
    const int second = look(t, 2, &class, &b);
    if (second <= 0) return second;
    return class == PL_CHAR_LETTER && fold(b) == (a == 'l' ? 'l' : 'e') ? 3 : 0;
}

/* \s+(?!\S)|\s+ : a run of white space leaves its last character to what follows, unless that is all it has. With
 * ends_lines, \s*[\r\n]+ goes before: it ends after the last end of a line in it. */
static size_t space_piece(const text *t, bool ends_lines)
{
    size_t at = 0, last = 0, line = 0;
    for (;;) {
        pl_char_class class;
        uint32_t c;
        int length = look(t, at, &class, &c);
        if (length == NEED_MORE) return 0;
        const bool is_space = length != AT_END && class == PL_CHAR_SPACE;
        if (line && (!is_space || at + (size_t)length > t->cap)) return line;
        if (length == AT_END) return at;
        if (!is_space) return last ? last : at;
        if (at + (size_t)length > t->cap) return at;
        last = at;
        at += (size_t)length;
        if (ends_lines && (c == '\r' || c == '\n')) line = at;
    }
}

/* A run of one class after what is at its beginning, of at most `most` characters. */
static size_t run_piece(const text *t, size_t at, pl_char_class wanted, size_t most)
{
    for (size_t i = 0; i < most; i++) {
        pl_char_class class;
        int length = peek(t, at, &class);
        if (length == NEED_MORE) return 0;
        if (length == AT_END || class != wanted || at + (size_t)length > t->cap) return at;
        at += (size_t)length;
    }
    return at;
}

static size_t gpt2_piece(const text *t)
{
    pl_char_class class;
    int short_form = contraction(t);
    if (short_form) return short_form == NEED_MORE ? 0 : (size_t)short_form;
    size_t lead = t->p[0] == ' ';
    int length = peek(t, lead, &class);
    if (length == NEED_MORE) return 0;
    if (length == AT_END) return lead;
    return class == PL_CHAR_SPACE ? space_piece(t, false) : run_piece(t, lead, class, SIZE_MAX);
}

/* ?[^\s\p{L}\p{N}]+[\r\n]* with `lead` bytes of a blank */
static size_t symbols_piece(const text *t, size_t lead)
{
    size_t at = run_piece(t, lead, PL_CHAR_OTHER, SIZE_MAX);
    for (; at; at++) {
        pl_char_class class;
        uint32_t c;
        int length = look(t, at, &class, &c);
        if (length == NEED_MORE) return 0;
        if (length == AT_END || (c != '\r' && c != '\n') || at == t->cap) break;
    }
    return at;
}

static size_t llama3_piece(const text *t, size_t numbers)
{
    pl_char_class class = PL_CHAR_OTHER, next;
    uint32_t c;
    int short_form = folded_contraction(t);
    if (short_form) return short_form == NEED_MORE ? 0 : (size_t)short_form;
    int length = look(t, 0, &class, &c);
    if (length == NEED_MORE) return 0;
    if (class == PL_CHAR_LETTER) return run_piece(t, 0, class, SIZE_MAX);
    if (class == PL_CHAR_NUMBER) return run_piece(t, 0, class, numbers);
    int after = peek(t, (size_t)length, &next);
    if (after == NEED_MORE) return 0;
    if (after != AT_END && next == PL_CHAR_LETTER && c != '\r' && c != '\n')
        return run_piece(t, (size_t)length, next, SIZE_MAX);
    if (class == PL_CHAR_OTHER) return symbols_piece(t, 0);
    return c == ' ' && after != AT_END && next == PL_CHAR_OTHER ? symbols_piece(t, 1) : space_piece(t, true);
}

static bool has_three_digits(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < 3; i++)
        if (i >= n || p[i] < '0' || p[i] > '9') return false;
    return true;
}

/* The pattern's piece, cut once more: numbers apart from the blank before them, then three digits from the left. */
static size_t default_piece(const text *t)
{
    const size_t whole = gpt2_piece(t), lead = t->p[0] == ' ';
    pl_char_class class;
    if (whole <= lead || peek(t, lead, &class) <= 0 || class != PL_CHAR_NUMBER) return whole;
    if (lead) return lead;
    if (has_three_digits(t->p, whole)) return 3;
    size_t at = 1;
    while (at < whole && !has_three_digits(t->p + at, whole - at)) at++;
    return at;
}

static size_t scan(pl_scanner scanner, const text *t)
{
    if (t->precut == PL_PRECUT_PUNCTUATION) return default_piece(t);
    if (scanner == PL_SCANNER_LLAMA3) return llama3_piece(t, 3);
    return scanner == PL_SCANNER_QWEN2 ? llama3_piece(t, 1) : gpt2_piece(t);
}

size_t pl_pretoken_length(pl_pretoken rule, const uint8_t *p, size_t n, int final, size_t cap)
{
    text t = {p, n, cap, final, rule.precut, false};
    assert(n > 0 && cap >= PL_PRETOKEN_CAP_MIN);
    if (rule.precut) {
        uint32_t c;
        const size_t length = pl_utf8_read(p, n, &c);
        if (length == 0 && !final) return 0;
        t.first_kind = kind_of(rule.precut, length ? c : PL_NOT_UTF8);
    }
    return scan(rule.scanner, &t);
}
