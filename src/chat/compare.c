/* Which values are true, equal, in order, or in another, as in Python. */
#include "chat/render.h"

#include <string.h>

bool pl_chat_truth(const pl_chat_value *v)
{
    switch ((pl_chat_kind)v->kind) {
    case PL_CHAT_UNDEFINED:
    case PL_CHAT_NONE:
    case PL_CHAT_ABSENT:
        return false;
    case PL_CHAT_BOOL:
        return v->truth;
    case PL_CHAT_INT:
        return v->integer != 0;
    case PL_CHAT_REAL:
        return v->real != 0;
    case PL_CHAT_STRING:
    case PL_CHAT_LIST:
    case PL_CHAT_MAP:
        return v->count > 0;
    case PL_CHAT_NAMESPACE:
    case PL_CHAT_GENERATOR:
    case PL_CHAT_LOOP:
    case PL_CHAT_MACRO:
    case PL_CHAT_CALLABLE:
        break;
    }
    return true;
}

bool pl_chat_is_number(const pl_chat_value *v)
{
    return v->kind == PL_CHAT_BOOL || v->kind == PL_CHAT_INT || v->kind == PL_CHAT_REAL;
}

bool pl_chat_is_whole(const pl_chat_value *v, int64_t *number)
{
    *number = v->kind == PL_CHAT_INT ? v->integer : v->kind == PL_CHAT_BOOL && v->truth;
    return v->kind == PL_CHAT_INT || v->kind == PL_CHAT_BOOL;
}

bool pl_chat_says(const pl_chat_value *v, const char *word)
{
    return v->kind == PL_CHAT_STRING && v->count == strlen(word) && memcmp(v->text, word, v->count) == 0;
}

bool pl_chat_is_listed(const char *words, const pl_chat_value *word)
{
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (n == word->count && memcmp(words, word->text, n) == 0) return true;
    }
    return false;
}

/* Exact for whole numbers, too: it has 64 bits of mantissa. */
static long double number_of(const pl_chat_value *v)
{
    return v->kind == PL_CHAT_REAL ? (long double)v->real : v->kind == PL_CHAT_INT ? v->integer : v->truth;
}

static pl_status equal_lists(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, bool *equal)
{
    if (a->form == PL_CHAT_VIEW || b->form == PL_CHAT_VIEW)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "comparing the keys, values or items of maps is not supported");
    *equal = a->form == b->form && a->count == b->count;
    for (uint32_t i = 0; *equal && i < a->count; i++) PL_TRY(pl_chat_equal(r, &a->item[i], &b->item[i], equal));
    return PL_OK;
}

static pl_status equal_maps(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, bool *equal)
{
    const pl_chat_value *other;
    *equal = a->count == b->count;
    for (uint32_t i = 0; *equal && i < a->count; i++) {
        PL_TRY(pl_chat_find(r, b, &a->item[2 * i], &other));
        *equal = other != NULL;
        if (other) PL_TRY(pl_chat_equal(r, &a->item[2 * i + 1], other, equal));
    }
    return PL_OK;
}

static bool equal_strings(const pl_chat_value *a, const pl_chat_value *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->text, b->text, a->count) == 0);
}

pl_status pl_chat_equal(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, bool *equal)
{
    pl_status status = PL_OK;
    *equal = false;
    if (pl_chat_is_number(a) && pl_chat_is_number(b)) {
        *equal = number_of(a) == number_of(b);
        return PL_OK;
    }
    if (a->kind != b->kind) return PL_OK;
    PL_TRY(pl_chat_enter(r));
    PL_TRY(pl_chat_step(r, 1 + a->count / 256));
    if (a->kind == PL_CHAT_STRING)
        *equal = equal_strings(a, b);
    else if (a->kind == PL_CHAT_LIST)
        status = equal_lists(r, a, b, equal);
    else if (a->kind == PL_CHAT_MAP)
        status = equal_maps(r, a, b, equal);
    else
        *equal = a->kind == PL_CHAT_NONE || a->kind == PL_CHAT_UNDEFINED || a->object == b->object;
    r->depth--;
    return status;
}

static int order_strings(const pl_chat_value *a, const pl_chat_value *b)
{
    uint32_t n = a->count < b->count ? a->count : b->count;
    int sign = n ? memcmp(a->text, b->text, n) : 0;
    return sign ? sign : (a->count > b->count) - (a->count < b->count);
}

static pl_status order_lists(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, int *sign)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        PL_TRY(pl_chat_equal(r, &a->item[i], &b->item[i], &equal));
        if (!equal) return pl_chat_order(r, &a->item[i], &b->item[i], sign);
    }
    *sign = (a->count > b->count) - (a->count < b->count);
    return PL_OK;
}

pl_status pl_chat_order(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, int *sign)
{
    if (pl_chat_is_number(a) && pl_chat_is_number(b)) {
        long double x = number_of(a), y = number_of(b);
        if (x != x || y != y)
            return pl_chat_fail(r, PL_E_UNSUPPORTED, "ordering what is not a number is not supported");
        *sign = (x > y) - (x < y);
        return PL_OK;
    }
    if (a->kind == PL_CHAT_STRING && b->kind == PL_CHAT_STRING) {
        *sign = order_strings(a, b);
        return pl_chat_step(r, 1 + a->count / 256);
    }
    if (a->kind != PL_CHAT_LIST || b->kind != PL_CHAT_LIST || a->form != b->form || a->form > PL_CHAT_TUPLE)
        return pl_chat_fail_kind(r, "a comparison", a->kind == PL_CHAT_STRING || pl_chat_is_number(a) ? b : a);
    PL_TRY(pl_chat_enter(r));
    PL_TRY(order_lists(r, a, b, sign));
    r->depth--;
    return PL_OK;
}

pl_status pl_chat_find(pl_chat_run *r, const pl_chat_value *map, const pl_chat_value *key, const pl_chat_value **found)
{
    bool equal;
    *found = NULL;
    if (key->kind == PL_CHAT_MAP || (key->kind == PL_CHAT_LIST && key->form == PL_CHAT_PLAIN))
        return pl_chat_fail_kind(r, "a lookup in a map", key);
    for (uint32_t i = 0; i < map->count; i++) {
        const pl_chat_value *k = &map->item[2 * i];
        if (key->kind == PL_CHAT_STRING && k->kind == PL_CHAT_STRING)
            equal = equal_strings(k, key);
        else
            PL_TRY(pl_chat_equal(r, k, key, &equal));
        if (equal) {
            *found = &map->item[2 * i + 1];
            return pl_chat_step(r, 1 + i / 16);
        }
    }
    return pl_chat_step(r, 1 + map->count / 16);
}

static pl_status contains_item(pl_chat_run *r, const pl_chat_value *list, uint32_t *at, const pl_chat_value *item,
                               bool *found)
{
    for (*found = false; !*found && *at < list->count; ++*at) PL_TRY(pl_chat_equal(r, &list->item[*at], item, found));
    return pl_chat_step(r, 1 + list->count / 16);
}

pl_status pl_chat_contains(pl_chat_run *r, const pl_chat_value *whole, const pl_chat_value *part, bool *found)
{
    const pl_chat_value *value;
    uint32_t at = 0;
    *found = false;
    switch (whole->kind) {
    case PL_CHAT_UNDEFINED:
        return PL_OK;
    case PL_CHAT_STRING:
        if (part->kind != PL_CHAT_STRING) return pl_chat_fail_kind(r, "a search in a string", part);
        *found = part->count == 0 || memmem(whole->text, whole->count, part->text, part->count);
        return pl_chat_step(r, 1 + whole->count / 256);
    case PL_CHAT_LIST:
        return contains_item(r, whole, &at, part, found);
    case PL_CHAT_GENERATOR: {
        pl_chat_generator *g = whole->object;
        return contains_item(r, &g->list, &g->at, part, found);
    }
    case PL_CHAT_MAP:
        PL_TRY(pl_chat_find(r, whole, part, &value));
        *found = value != NULL;
        return PL_OK;
    default:
        return pl_chat_fail_kind(r, "a search in a value", whole);
    }
}
