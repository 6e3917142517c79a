/* What strings can do, as Python's strings do it. Cases are changed of ASCII only: of other letters it is refused. */
#include "chat/render.h"

#include <string.h>

#include "chat/text.h"

static pl_status need_string(pl_chat_run *r, const pl_chat_value *v, const char *what)
{
    return v->kind == PL_CHAT_STRING ? PL_OK : pl_chat_fail_kind(r, what, v);
}

static bool is_missing(const pl_chat_value *v) { return v->kind == PL_CHAT_ABSENT || v->kind == PL_CHAT_NONE; }

/* Bytes of characters of `set` (NULL: of white space) at the beginning, or at the end. */
static size_t strip_start(const pl_chat_value *s, const pl_chat_value *set)
{
    size_t at = 0, n;
    if (!set) return pl_chat_space(s->text, s->count);
    for (; at < s->count; at += n) {
        n = pl_chat_char(s->text + at, s->count - at);
        if (!memmem(set->text, set->count, s->text + at, n)) break;
    }
    return at;
}

static size_t strip_end(const pl_chat_value *s, const pl_chat_value *set)
{
    size_t end = s->count, n;
    if (!set) return pl_chat_space_before(s->text, s->count);
    for (; end > 0; end -= n) {
        n = pl_chat_char_before(s->text, end);
        if (!memmem(set->text, set->count, s->text + end - n, n)) break;
    }
    return s->count - end;
}

static pl_status strip(pl_chat_run *r, const pl_chat_value *v, bool start, bool end, pl_chat_value *out)
{
    const pl_chat_value *set = is_missing(&v[1]) ? NULL : &v[1];
    if (set) PL_TRY(need_string(r, set, "stripping characters"));
    *out = v[0];
    if (start) {
        size_t n = strip_start(out, set);
        out->text += n;
        out->count -= (uint32_t)n;
    }
    if (end) out->count -= (uint32_t)strip_end(out, set);
    uint64_t stripped = v->count - out->count;
    return pl_chat_step(r, 1 + v->count / 64 + (set ? stripped * (1 + set->count / 256) : 0));
}

pl_status pl_chat_strip(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return strip(r, v, true, true, out);
}
static pl_status lstrip(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return strip(r, v, true, false, out);
}
static pl_status rstrip(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return strip(r, v, false, true, out);
}

/* --- split --- */

/* Where the next separator is, and its bytes; without one, *at is the end. */
static size_t next_separator(const pl_chat_value *s, size_t from, const pl_chat_value *separator, size_t *at)
{
    if (separator) {
        const char *found = memmem(s->text + from, s->count - from, separator->text, separator->count);
        *at = found ? (size_t)(found - s->text) : s->count;
        return found ? separator->count : 0;
    }
    size_t n = 0;
    for (*at = from; *at < s->count && !(n = pl_chat_space(s->text + *at, s->count - *at));)
        *at += pl_chat_char(s->text + *at, s->count - *at);
    return n;
}

/* The parts into `item`, or only their number. Separated by white space, none is empty. */
static uint64_t split_into(const pl_chat_value *s, const pl_chat_value *separator, int64_t most, pl_chat_value *item)
{
    uint64_t count = 0;
    size_t from = separator ? 0 : pl_chat_space(s->text, s->count), at, n;
    while (separator || from < s->count) {
        n = next_separator(s, from, separator, &at);
        bool last = n == 0 || (most >= 0 && count == (uint64_t)most);
        if (last) at = s->count;
        if (item) item[count] = pl_chat_string(s->text + from, at - from);
        count++;
        if (last) break;
        from = at + n;
    }
    return count;
}

static pl_status split(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    const pl_chat_value *separator = is_missing(&v[1]) ? NULL : &v[1];
    pl_chat_value *item;
    if (separator) PL_TRY(need_string(r, separator, "splitting"));
    if (separator && separator->count == 0) return pl_chat_fail(r, PL_E_DATA, "splitting at an empty string");
    if (v[2].kind != PL_CHAT_ABSENT && v[2].kind != PL_CHAT_INT) return pl_chat_fail_kind(r, "`maxsplit`", &v[2]);
    int64_t most = v[2].kind == PL_CHAT_INT ? v[2].integer : -1;
    uint64_t count = split_into(v, separator, most, NULL);
    PL_TRY(pl_chat_take_values(r, count, &item));
    split_into(v, separator, most, item);
    *out = pl_chat_list(item, count);
    return pl_chat_step(r, count + v->count / 64);
}

/* --- the others --- */

static bool at_edge(const pl_chat_value *s, const pl_chat_value *part, bool start)
{
    return part->count <= s->count &&
           memcmp(start ? s->text : s->text + s->count - part->count, part->text, part->count) == 0;
}

static pl_status has_edge(pl_chat_run *r, const pl_chat_value *v, bool start, pl_chat_value *out)
{
    bool several = v[1].kind == PL_CHAT_LIST && v[1].form == PL_CHAT_TUPLE, found = false;
    const pl_chat_value *part = several ? v[1].item : &v[1];
    for (uint32_t i = 0; i < (several ? v[1].count : 1) && !found; i++) {
        PL_TRY(need_string(r, &part[i], "a beginning or end"));
        found = at_edge(v, &part[i], start);
    }
    *out = pl_chat_bool(found);
    return pl_chat_step(r, several ? 1 + v[1].count / 16 : 1);
}

static pl_status starts(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return has_edge(r, v, true, out);
}
static pl_status ends(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out) { return has_edge(r, v, false, out); }

/* Where `old` is next; an empty one is before each character and at the end. */
static size_t find_old(const pl_chat_value *s, size_t from, const pl_chat_value *old, bool is_first)
{
    if (old->count == 0)
        return is_first ? 0 : from < s->count ? from + pl_chat_char(s->text + from, s->count - from) : SIZE_MAX;
    const char *found = memmem(s->text + from, s->count - from, old->text, old->count);
    return found ? (size_t)(found - s->text) : SIZE_MAX;
}

/* value: the string, what is replaced, by what, how often at most */
pl_status pl_chat_replace(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    const pl_chat_value *old = &v[1], *new = &v[2];
    size_t from = 0, at;
    PL_TRY(need_string(r, old, "replacing"));
    PL_TRY(need_string(r, new, "replacing"));
    if (!is_missing(&v[3]) && v[3].kind != PL_CHAT_INT) return pl_chat_fail_kind(r, "`count`", &v[3]);
    int64_t most = v[3].kind == PL_CHAT_INT ? v[3].integer : -1;
    *out = pl_chat_string("", 0);
    for (int64_t i = 0; i != most && (at = find_old(v, from, old, i == 0)) != SIZE_MAX; i++) {
        PL_TRY(pl_chat_append(r, out, v->text + from, at - from));
        PL_TRY(pl_chat_append(r, out, new->text, new->count));
        PL_TRY(pl_chat_step(r, 1));
        from = at + old->count;
    }
    PL_TRY(pl_chat_append(r, out, v->text + from, v->count - from));
    return pl_chat_step(r, v->count / 64);
}

static char changed(char c, bool up)
{
    if (up) return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static pl_status change_case(pl_chat_run *r, const pl_chat_value *v, const char *how, pl_chat_value *out)
{
    pl_chat_value s;
    PL_TRY(pl_chat_text_of(r, v, &s));
    if (!pl_chat_is_ascii(s.text, s.count))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "\"%s\" of letters beyond ASCII is not supported", how);
    *out = pl_chat_string("", 0);
    PL_TRY(pl_chat_append(r, out, s.text, s.count));
    char *text = r->scratch + r->used - s.count;
    bool in_word = false;
    for (uint32_t i = 0; i < s.count; i++) {
        char c = text[i], low = (char)(c | 32);
        text[i] = changed(c, *how == 'u' || (*how == 't' && !in_word) || (*how == 'c' && i == 0));
        in_word = low >= 'a' && low <= 'z';
    }
    return PL_OK;
}

pl_status pl_chat_upper(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return change_case(r, v, "upper", out);
}
pl_status pl_chat_lower(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return change_case(r, v, "lower", out);
}
pl_status pl_chat_capitalize(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return change_case(r, v, "capitalize", out);
}
static pl_status title(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return change_case(r, v, "title", out);
}

const pl_chat_row *pl_chat_string_method(const pl_chat_value *name)
{
    static const pl_chat_row rows[] = {{"strip", "chars", 0, pl_chat_strip},
                                       {"lstrip", "chars", 0, lstrip},
                                       {"rstrip", "chars", 0, rstrip},
                                       {"split", "sep maxsplit", 0, split},
                                       {"startswith", "prefix", 1, starts},
                                       {"endswith", "suffix", 1, ends},
                                       {"replace", "old new count", 2, pl_chat_replace},
                                       {"upper", "", 0, pl_chat_upper},
                                       {"lower", "", 0, pl_chat_lower},
                                       {"title", "", 0, title},
                                       {"capitalize", "", 0, pl_chat_capitalize}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pl_chat_says(name, rows[i].name)) return &rows[i];
    return NULL;
}
