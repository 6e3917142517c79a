#include "chat/special.h"

#include <stdlib.h>
#include <string.h>

static const char marks[2][PL_CHAT_MARK_BYTES] = {"\xf3\xb0\x80\x80", "\xf3\xb0\x80\x81"};

static int by_text(const void *a, const void *b)
{
    const pl_chat_special *x = a, *y = b;
    size_t n = x->bytes < y->bytes ? x->bytes : y->bytes;
    int sign = memcmp(x->text, y->text, n);
    return sign ? sign : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

pl_chat_specials pl_chat_specials_sort(pl_chat_special *texts, size_t count)
{
    if (count) qsort(texts, count, sizeof *texts, by_text);
    return (pl_chat_specials){texts, count};
}

/* Which mark begins here: 0, 1, or −1: none. */
static int mark_at(const char *p, size_t left)
{
    for (int i = 0; i < 2 && left >= PL_CHAT_MARK_BYTES; i++)
        if (memcmp(p, marks[i], PL_CHAT_MARK_BYTES) == 0) return i;
    return -1;
}

/* The first of texts[from, to), which agree in their first `at` bytes, whose next byte is c or more. */
static size_t first_from(const pl_chat_special *texts, size_t from, size_t to, size_t at, unsigned c)
{
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const pl_chat_special *s = &texts[middle];
        if (s->bytes <= at || (unsigned char)s->text[at] < c)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

typedef struct writer {
    char *to;
    size_t room, bytes;
} writer;

static void put(writer *w, const char *text, size_t bytes)
{
    if (w->bytes < w->room) {
        size_t fits = w->room - w->bytes;
        memcpy(w->to + w->bytes, text, bytes < fits ? bytes : fits);
    }
    w->bytes += bytes;
}

/* The text without marks from *at on, as far as it is at hand: a special text may be parted by a mark, which is removed
 * before texts are looked for. */
static size_t next_plain(const char *text, size_t bytes, size_t at)
{
    while (at < bytes && mark_at(text + at, bytes - at) >= 0) at += PL_CHAT_MARK_BYTES;
    return at;
}

/* Bytes of the longest special text at `at`; 0: none. Marks are passed over if the text has them still. *end is where
 * it ends. */
static size_t longest_at(const pl_chat_specials *s, const char *text, size_t bytes, size_t at, bool has_marks,
                         size_t *end)
{
    size_t from = 0, to = s->count, longest = 0;
    for (size_t n = 0; from < to; n++) {
        if (s->sorted[from].bytes == n) longest = n, *end = at;
        if (has_marks) at = next_plain(text, bytes, at);
        if (at >= bytes) break;
        unsigned c = (unsigned char)text[at++];
        from = first_from(s->sorted, from, to, n, c);
        to = first_from(s->sorted, from, to, n, c + 1);
    }
    return longest;
}

size_t pl_chat_mark(const pl_chat_specials *s, const char *text, size_t bytes, char *to, size_t room)
{
    writer w = {to, room, 0};
    for (size_t at = next_plain(text, bytes, 0), end; at < bytes; at = next_plain(text, bytes, end)) {
        size_t n = longest_at(s, text, bytes, at, true, &end);
        if (n == 0) {
            put(&w, text + at, 1);
            end = at + 1;
            continue;
        }
        put(&w, marks[0], PL_CHAT_MARK_BYTES);
        for (; n > 0; n--, at++) {
            at = next_plain(text, bytes, at);
            put(&w, text + at, 1);
        }
        put(&w, marks[1], PL_CHAT_MARK_BYTES);
    }
    return w.bytes;
}

/* Bytes of a special text with both of its marks; 0: none begins here. */
static size_t literal_at(const pl_chat_specials *s, const char *p, size_t left)
{
    if (mark_at(p, left) != 0) return 0;
    size_t end, n = longest_at(s, p, left, PL_CHAT_MARK_BYTES, false, &end);
    return n > 0 && mark_at(p + end, left - end) == 1 ? end + PL_CHAT_MARK_BYTES : 0;
}

bool pl_chat_next_piece(const pl_chat_specials *s, const char *rendered, size_t bytes, size_t *at, pl_chat_piece *piece)
{
    bool is_first = *at == 0;
    while (*at < bytes) {
        const char *p = rendered + *at;
        size_t n = literal_at(s, p, bytes - *at);
        if (n > 0) {
            *piece = (pl_chat_piece){p + PL_CHAT_MARK_BYTES, n - 2 * PL_CHAT_MARK_BYTES, true, is_first};
            *at += n;
            return true;
        }
        if (mark_at(p, bytes - *at) >= 0) {
            *at += PL_CHAT_MARK_BYTES;
            continue;
        }
        for (n = 0; *at + n < bytes && mark_at(p + n, bytes - *at - n) < 0;) n++;
        *piece = (pl_chat_piece){p, n, false, is_first};
        *at += n;
        return true;
    }
    return false;
}
