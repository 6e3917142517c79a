/* The filters that are supported. What one says of undefined values is what jinja2's does. */
#include "chat/render.h"

#include <math.h>
#include <string.h>

#include "base/locale.h"
#include "chat/text.h"

static bool is_given(const pl_chat_value *v) { return v->kind != PL_CHAT_ABSENT; }

static pl_status length(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    size_t n = v->count;
    switch (v->kind) {
    case PL_CHAT_UNDEFINED:
        n = 0;
        break;
    case PL_CHAT_STRING:
        n = pl_chat_length(v->text, n);
        break;
    case PL_CHAT_LIST:
    case PL_CHAT_MAP:
        break;
    case PL_CHAT_LOOP:
        return pl_chat_loop_attribute(r, v->object, &(pl_chat_value){.text = "length", .count = 6}, out);
    default:
        return pl_chat_fail_kind(r, "the length", v);
    }
    *out = pl_chat_int((int64_t)n);
    return pl_chat_step(r, 1 + (v->kind == PL_CHAT_STRING ? v->count / 64 : 0));
}

static pl_status trim(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value text[2] = {{0}, v[1]};
    PL_TRY(pl_chat_text_of(r, v, text));
    return pl_chat_strip(r, text, out);
}

static pl_status or_default(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    (void)r;
    bool missing = v->kind == PL_CHAT_UNDEFINED || (pl_chat_truth(&v[2]) && !pl_chat_truth(v));
    *out = !missing ? *v : is_given(&v[1]) ? v[1] : pl_chat_string("", 0);
    return PL_OK;
}

static pl_status replace(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value text[4] = {[3] = v[3]};
    for (int i = 0; i < 3; i++) PL_TRY(pl_chat_text_of(r, &v[i], &text[i]));
    return pl_chat_replace(r, text, out);
}

static pl_status list(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    PL_TRY(pl_chat_items(r, v, out));
    out->form = PL_CHAT_PLAIN;
    return PL_OK;
}

static pl_status items(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value pairs = pl_chat_list(NULL, 0);
    if (v->kind == PL_CHAT_MAP)
        PL_TRY(pl_chat_pairs(r, v, &pairs));
    else if (v->kind != PL_CHAT_UNDEFINED)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the filter `items` of what is no map is not supported");
    return pl_chat_generator_of(r, &pairs, out);
}

static pl_status first(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value all;
    if (v->kind == PL_CHAT_GENERATOR) {
        pl_chat_generator *g = v->object;
        *out = g->at < g->list.count ? g->list.item[g->at++] : (pl_chat_value){0};
        return PL_OK;
    }
    PL_TRY(pl_chat_items(r, v, &all));
    *out = all.count > 0 ? all.item[0] : (pl_chat_value){0};
    return PL_OK;
}

static pl_status last(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value all;
    if (v->kind == PL_CHAT_GENERATOR) return pl_chat_fail_kind(r, "the last item", v);
    PL_TRY(pl_chat_items(r, v, &all));
    *out = all.count > 0 ? all.item[all.count - 1] : (pl_chat_value){0};
    return PL_OK;
}

/* --- attributes by name, "a.b.0" --- */

static pl_status part_of(pl_chat_run *r, const pl_chat_value *v, const char *part, size_t bytes, pl_chat_value *out)
{
    pl_chat_value key = pl_chat_string(part, bytes);
    size_t n = 0;
    int64_t number = 0;
    while (n < bytes && n < 9 && part[n] >= '0' && part[n] <= '9') number = number * 10 + part[n++] - '0';
    if (bytes > 0 && n == bytes) key = pl_chat_int(number);
    return pl_chat_subscript(r, v, &key, out);
}

static pl_status attribute_of(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *path, pl_chat_value *out)
{
    *out = *v;
    if (path->kind == PL_CHAT_INT) return pl_chat_subscript(r, v, path, out);
    if (path->kind != PL_CHAT_STRING) return pl_chat_fail_kind(r, "an attribute's name", path);
    for (size_t at = 0, n; at <= path->count; at += n + 1) {
        const char *dot = memchr(path->text + at, '.', path->count - at);
        n = dot ? (size_t)(dot - path->text) - at : path->count - at;
        pl_chat_value whole = *out;
        PL_TRY(part_of(r, &whole, path->text + at, n, out));
    }
    return PL_OK;
}

static pl_status join(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value all, item, between = pl_chat_string("", 0);
    if (is_given(&v[1])) PL_TRY(pl_chat_text_of(r, &v[1], &between));
    PL_TRY(pl_chat_items(r, v, &all));
    PL_TRY(pl_chat_step(r, all.count));
    *out = pl_chat_string("", 0);
    for (uint32_t i = 0; i < all.count; i++) {
        item = all.item[i];
        if (is_given(&v[2]) && v[2].kind != PL_CHAT_NONE) PL_TRY(attribute_of(r, &all.item[i], &v[2], &item));
        if (i > 0) PL_TRY(pl_chat_append(r, out, between.text, between.count));
        PL_TRY(pl_chat_append_value(r, out, &item));
    }
    return PL_OK;
}

/* What is gone through by filters that jinja2 starts only when their result is looked at. */
static pl_status items_later(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *all)
{
    *all = pl_chat_list(NULL, 0);
    if (!pl_chat_truth(v)) return PL_OK;
    if (pl_chat_is_number(v)) return pl_chat_fail(r, PL_E_UNSUPPORTED, "going through a number is not supported");
    PL_TRY(pl_chat_items(r, v, all));
    return pl_chat_step(r, all->count);
}

/* value: a list, `attribute`, `default` */
static pl_status map(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value all, *item;
    if (!is_given(&v[1]))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the filter `map` is supported with `attribute=` only");
    PL_TRY(items_later(r, v, &all));
    PL_TRY(pl_chat_take_values(r, all.count, &item));
    for (uint32_t i = 0; i < all.count; i++) {
        PL_TRY(attribute_of(r, &all.item[i], &v[1], &item[i]));
        if (item[i].kind == PL_CHAT_UNDEFINED && is_given(&v[2]) && v[2].kind != PL_CHAT_NONE) item[i] = v[2];
    }
    all = pl_chat_list(item, all.count);
    return pl_chat_generator_of(r, &all, out);
}

/* value: a list, an attribute, a test of it, the test's argument */
static pl_status select_by(pl_chat_run *r, const pl_chat_value *v, bool wanted, pl_chat_value *out)
{
    const pl_chat_row *test = is_given(&v[2]) ? pl_chat_test(&v[2]) : NULL;
    pl_chat_arguments argument = {
        .value = (pl_chat_value *)&v[3], .name = &(pl_chat_value){0}, .count = is_given(&v[3])};
    pl_chat_value all, *item, answer;
    uint32_t count = 0;
    PL_TRY(items_later(r, v, &all));
    if (is_given(&v[2]) && !test)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the test \"%.*s\" is not supported",
                            v[2].kind == PL_CHAT_STRING ? (int)v[2].count : 0, v[2].text);
    PL_TRY(pl_chat_take_values(r, all.count, &item));
    for (uint32_t i = 0; i < all.count; i++) {
        PL_TRY(attribute_of(r, &all.item[i], &v[1], &answer));
        pl_chat_value tested = answer;
        if (test) PL_TRY(pl_chat_call_row(r, test, "test", &tested, &argument, &answer));
        if (pl_chat_truth(&answer) == wanted) item[count++] = all.item[i];
    }
    all = pl_chat_list(item, count);
    return pl_chat_generator_of(r, &all, out);
}

static pl_status select_attribute(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return select_by(r, v, true, out);
}
static pl_status reject_attribute(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return select_by(r, v, false, out);
}

/* --- int --- */

/* As int("…"): digits with single underscores between, a sign, white space around. */
static bool read_whole(const pl_chat_value *s, int64_t *number)
{
    const char *p = s->text + pl_chat_space(s->text, s->count), *end = s->text + s->count;
    end -= pl_chat_space_before(p, (size_t)(end - p));
    bool minus = p < end && *p == '-', digit_before = false;
    if (p < end && (*p == '-' || *p == '+')) p++;
    *number = 0;
    for (; p < end; p++) {
        if (*p == '_' && digit_before) {
            digit_before = false;
            continue;
        }
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, minus ? '0' - *p : *p - '0', number))
            return false;
        digit_before = true;
    }
    return digit_before;
}

/* As int(float("…")), for what is written with digits, a point and an exponent. */
static bool read_real(const pl_chat_value *s, double *number)
{
    char text[64];
    size_t skip = pl_chat_space(s->text, s->count), n = s->count - skip;
    n -= pl_chat_space_before(s->text + skip, n);
    if (n == 0 || n >= sizeof text) return false;
    memcpy(text, s->text + skip, n);
    text[n] = 0;
    if (strspn(text, "0123456789.eE+-") != n) return false;
    char *end;
    *number = pl_read_double(text, &end);
    return *end == 0;
}

static pl_status to_int(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    int64_t whole;
    double real = v->kind == PL_CHAT_REAL ? v->real : NAN;
    *out = is_given(&v[1]) ? v[1] : pl_chat_int(0);
    if (is_given(&v[2]) && (v[2].kind != PL_CHAT_INT || v[2].integer != 10))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the filter `int` with another base than 10 is not supported");
    if (v->kind == PL_CHAT_UNDEFINED) return pl_chat_fail_kind(r, "the whole number", v);
    if (v->kind == PL_CHAT_STRING && !pl_chat_is_ascii(v->text, v->count))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the filter `int` of a text beyond ASCII is not supported");
    if (pl_chat_is_whole(v, &whole) || (v->kind == PL_CHAT_STRING && read_whole(v, &whole))) {
        *out = pl_chat_int(whole);
        return PL_OK;
    }
    if (v->kind == PL_CHAT_STRING && !read_real(v, &real)) return PL_OK;
    if (isnan(real)) return PL_OK;
    if (fabs(real) >= 0x1p63) return pl_chat_fail(r, PL_E_UNSUPPORTED, "a whole number is beyond 64 bits");
    *out = pl_chat_int((int64_t)real);
    return PL_OK;
}

/* --- dictsort --- */

static pl_status sort_key(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *pair, pl_chat_value *key)
{
    *key = pair->item[is_given(&v[2]) && pl_chat_says(&v[2], "value")];
    if (pl_chat_truth(&v[1]) || key->kind != PL_CHAT_STRING) return PL_OK;
    pl_chat_value written = *key;
    return pl_chat_lower(r, &written, key);
}

/* value: a map, case_sensitive, by, reverse. Stable; maps are small, so by insertion. */
static pl_status sort_map(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value pairs, *item, *key, next;
    bool reverse = pl_chat_truth(&v[3]);
    if (v->kind != PL_CHAT_MAP) return pl_chat_fail_kind(r, "the sorted items", v);
    if (is_given(&v[2]) && !pl_chat_says(&v[2], "key") && !pl_chat_says(&v[2], "value"))
        return pl_chat_fail(r, PL_E_DATA, "the filter `dictsort` sorts by \"key\" or \"value\"");
    PL_TRY(pl_chat_pairs(r, v, &pairs));
    PL_TRY(pl_chat_take_values(r, pairs.count, &item));
    PL_TRY(pl_chat_take_values(r, pairs.count, &key));
    for (uint32_t i = 0, at; i < pairs.count; i++) {
        PL_TRY(sort_key(r, v, &pairs.item[i], &next));
        int sign;
        for (at = i; at > 0; at--) {
            PL_TRY(pl_chat_order(r, &key[at - 1], &next, &sign));
            if (reverse ? sign >= 0 : sign <= 0) break;
            item[at] = item[at - 1];
            key[at] = key[at - 1];
        }
        item[at] = pairs.item[i];
        key[at] = next;
    }
    *out = pl_chat_list(item, pairs.count);
    return PL_OK;
}

static pl_status safe(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    PL_TRY(pl_chat_text_of(r, v, out));
    out->form = PL_CHAT_SAFE;
    return PL_OK;
}

static const pl_chat_row rows[] = {
    {"tojson", "ensure_ascii indent separators sort_keys", 0, pl_chat_to_json},
    {"length", "", 0, length},
    {"count", "", 0, length},
    {"trim", "chars", 0, trim},
    {"string", "", 0, pl_chat_text_of},
    {"default", "default_value boolean", 0, or_default},
    {"d", "default_value boolean", 0, or_default},
    {"join", "d attribute", 0, join},
    {"items", "", 0, items},
    {"list", "", 0, list},
    {"first", "", 0, first},
    {"last", "", 0, last},
    {"selectattr", "attribute test argument", 1, select_attribute},
    {"rejectattr", "attribute test argument", 1, reject_attribute},
    {"map", "=attribute default", 0, map},
    {"lower", "", 0, pl_chat_lower},
    {"upper", "", 0, pl_chat_upper},
    {"capitalize", "", 0, pl_chat_capitalize},
    {"replace", "old new count", 2, replace},
    {"int", "default base", 0, to_int},
    {"dictsort", "case_sensitive by reverse", 0, sort_map},
    {"safe", "", 0, safe},
};

const pl_chat_row *pl_chat_filter(const pl_chat_value *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pl_chat_says(name, rows[i].name)) return &rows[i];
    return NULL;
}
