/* Parts of values: attributes, items, slices, and what a loop goes through. */
#include "chat/render.h"

#include <string.h>

#include "chat/text.h"

static pl_chat_value undefined(const pl_chat_value *name)
{
    pl_chat_value v = {0};
    if (name->kind == PL_CHAT_STRING) v.text = name->text, v.count = name->count;
    return v;
}

pl_status pl_chat_generator_of(pl_chat_run *r, const pl_chat_value *list, pl_chat_value *out)
{
    pl_chat_generator *g;
    PL_TRY(pl_chat_take(r, 1, sizeof *g, &g));
    *g = (pl_chat_generator){.list = *list};
    *out = (pl_chat_value){.kind = PL_CHAT_GENERATOR, .object = g};
    return PL_OK;
}

pl_status pl_chat_characters(pl_chat_run *r, const pl_chat_value *s, pl_chat_value *list)
{
    pl_chat_value *item;
    size_t count = pl_chat_length(s->text, s->count), at = 0;
    PL_TRY(pl_chat_take_values(r, count, &item));
    for (size_t i = 0, n; i < count; i++, at += n) {
        n = pl_chat_char(s->text + at, s->count - at);
        item[i] = pl_chat_string(s->text + at, n);
    }
    *list = pl_chat_list(item, count);
    return pl_chat_step(r, count);
}

static pl_status every_other(pl_chat_run *r, const pl_chat_value *map, int from, pl_chat_value *list)
{
    pl_chat_value *item;
    PL_TRY(pl_chat_take_values(r, map->count, &item));
    for (uint32_t i = 0; i < map->count; i++) item[i] = map->item[2 * i + (uint32_t)from];
    *list = pl_chat_list(item, map->count);
    list->form = PL_CHAT_VIEW;
    return pl_chat_step(r, map->count);
}

pl_status pl_chat_pairs(pl_chat_run *r, const pl_chat_value *map, pl_chat_value *list)
{
    pl_chat_value *item;
    PL_TRY(pl_chat_take_values(r, map->count, &item));
    for (uint32_t i = 0; i < map->count; i++) {
        item[i] = pl_chat_list(&map->item[2 * i], 2);
        item[i].form = PL_CHAT_TUPLE;
    }
    *list = pl_chat_list(item, map->count);
    list->form = PL_CHAT_VIEW;
    return pl_chat_step(r, map->count);
}

pl_status pl_chat_items(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *list)
{
    pl_chat_generator *g = v->object;
    switch (v->kind) {
    case PL_CHAT_UNDEFINED:
        *list = pl_chat_list(NULL, 0);
        return PL_OK;
    case PL_CHAT_LIST:
        *list = *v;
        return PL_OK;
    case PL_CHAT_STRING:
        return pl_chat_characters(r, v, list);
    case PL_CHAT_MAP:
        return every_other(r, v, 0, list);
    case PL_CHAT_GENERATOR:
        *list = g->list;
        if (g->at > 0) list->item += g->at; /* of an empty list there is none */
        list->count -= g->at;
        g->at = g->list.count;
        return PL_OK;
    default:
        return pl_chat_fail_kind(r, "going through the items", v);
    }
}

/* --- attributes --- */

static pl_status map_items(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return pl_chat_pairs(r, v, out);
}
static pl_status map_keys(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return every_other(r, v, 0, out);
}
static pl_status map_values(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    return every_other(r, v, 1, out);
}

static pl_status map_get(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    const pl_chat_value *found;
    PL_TRY(pl_chat_find(r, v, &v[1], &found));
    *out = found ? *found : v[2];
    if (out->kind == PL_CHAT_ABSENT) out->kind = PL_CHAT_NONE;
    return PL_OK;
}

const pl_chat_row *pl_chat_map_method(const pl_chat_value *name)
{
    static const pl_chat_row rows[] = {{"items", "", 0, map_items},
                                       {"keys", "", 0, map_keys},
                                       {"values", "", 0, map_values},
                                       {"get", "key default", 1, map_get}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pl_chat_says(name, rows[i].name)) return &rows[i];
    return NULL;
}

/* What Python's values have and is not supported: such a name is neither undefined nor a key. */
static const char *unsupported(const pl_chat_value *v)
{
    switch (v->kind) {
    case PL_CHAT_STRING:
        return "casefold center count encode expandtabs find format format_map index isalnum isalpha isascii isdecimal "
               "isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust maketrans "
               "partition "
               "removeprefix removesuffix rfind rindex rjust rpartition rsplit splitlines swapcase translate zfill";
    case PL_CHAT_LIST:
        return v->form == PL_CHAT_VIEW    ? "isdisjoint mapping"
               : v->form == PL_CHAT_TUPLE ? "count index"
               : v->form == PL_CHAT_RANGE ? "count index start stop step"
                                          : "append clear copy count extend index insert pop remove reverse sort";
    case PL_CHAT_MAP:
        return "clear copy fromkeys pop popitem setdefault update";
    case PL_CHAT_BOOL:
    case PL_CHAT_INT:
        return "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes";
    case PL_CHAT_REAL:
        return "as_integer_ratio conjugate fromhex hex imag is_integer real";
    case PL_CHAT_GENERATOR:
        return "close send throw gi_code gi_frame gi_running gi_yieldfrom";
    case PL_CHAT_MACRO:
        return "name arguments catch_kwargs catch_varargs caller explicit_caller";
    case PL_CHAT_CALLABLE:
        return "fromkeys";
    default:
        return "";
    }
}

static pl_status method_of(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *name, pl_chat_value *out)
{
    const pl_chat_row *row = v->kind == PL_CHAT_MAP      ? pl_chat_map_method(name)
                             : v->kind == PL_CHAT_STRING ? pl_chat_string_method(name)
                                                         : NULL;
    *out = undefined(name);
    if (!row) {
        if (pl_chat_is_listed(unsupported(v), name) || (name->count > 2 && memcmp(name->text, "__", 2) == 0))
            return pl_chat_fail(r, PL_E_UNSUPPORTED, "the method or attribute \"%.*s\" is not supported",
                                (int)name->count, name->text);
        return PL_OK;
    }
    pl_chat_callable *c;
    PL_TRY(pl_chat_take(r, 1, sizeof *c, &c));
    *c = (pl_chat_callable){row, *v};
    *out = (pl_chat_value){.kind = PL_CHAT_CALLABLE, .object = c};
    return PL_OK;
}

static pl_status own_attribute(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *name, pl_chat_value *out)
{
    if (v->kind == PL_CHAT_LOOP) return pl_chat_loop_attribute(r, v->object, name, out);
    if (v->kind == PL_CHAT_NAMESPACE) {
        const pl_chat_value *found = pl_chat_cell_of(r, v->object, name);
        *out = found ? *found : undefined(name);
        return PL_OK;
    }
    return method_of(r, v, name, out);
}

pl_status pl_chat_attribute(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *name, pl_chat_value *out)
{
    const pl_chat_value *found;
    if (v->kind == PL_CHAT_UNDEFINED) return pl_chat_fail_kind(r, "an attribute", v);
    PL_TRY(own_attribute(r, v, name, out));
    if (out->kind != PL_CHAT_UNDEFINED || v->kind != PL_CHAT_MAP) return PL_OK;
    PL_TRY(pl_chat_find(r, v, name, &found));
    if (found) *out = *found;
    return PL_OK;
}

/* --- items --- */

static pl_status character_at(pl_chat_run *r, const pl_chat_value *s, int64_t index, pl_chat_value *out)
{
    int64_t count = (int64_t)pl_chat_length(s->text, s->count);
    if (index < 0) index += count;
    if (index >= 0 && index < count) {
        size_t at = pl_chat_offset(s->text, s->count, (size_t)index);
        *out = pl_chat_string(s->text + at, pl_chat_char(s->text + at, s->count - at));
        out->form = s->form;
    }
    return pl_chat_step(r, s->count / 64);
}

/* Python's v[key]; *found is NULL where that fails. */
static pl_status item_of(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *key, pl_chat_value *out,
                         const pl_chat_value **found)
{
    int64_t index;
    *found = NULL;
    if (v->kind == PL_CHAT_MAP) {
        if (key->kind == PL_CHAT_MAP || (key->kind == PL_CHAT_LIST && key->form == PL_CHAT_PLAIN)) return PL_OK;
        return pl_chat_find(r, v, key, found);
    }
    if (!pl_chat_is_whole(key, &index)) return PL_OK;
    if (v->kind == PL_CHAT_STRING) return character_at(r, v, index, out);
    if (v->kind != PL_CHAT_LIST || v->form == PL_CHAT_VIEW) return PL_OK;
    if (index < 0) index += v->count;
    if (index >= 0 && index < v->count) *found = &v->item[index];
    return PL_OK;
}

pl_status pl_chat_subscript(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value *key, pl_chat_value *out)
{
    const pl_chat_value *found;
    if (v->kind == PL_CHAT_UNDEFINED) return pl_chat_fail_kind(r, "an item", v);
    *out = undefined(key);
    PL_TRY(item_of(r, v, key, out, &found));
    if (found) *out = *found;
    return found || key->kind != PL_CHAT_STRING ? PL_OK : own_attribute(r, v, key, out);
}

/* One bound of a slice, as Python clips it; forwards it lies in 0 … count, backwards in −1 … count − 1. */
static pl_status clip(pl_chat_run *r, const pl_chat_value *bound, int64_t count, bool backwards, int64_t missing,
                      int64_t *out)
{
    if (bound->kind == PL_CHAT_ABSENT || bound->kind == PL_CHAT_NONE) {
        *out = missing;
        return PL_OK;
    }
    if (!pl_chat_is_whole(bound, out)) return pl_chat_fail_kind(r, "a bound of a slice", bound);
    if (*out < 0) *out += count;
    int64_t low = backwards ? -1 : 0, high = backwards ? count - 1 : count;
    *out = *out < low ? low : *out > high ? high : *out;
    return PL_OK;
}

static pl_status slice_list(pl_chat_run *r, const pl_chat_value *list, int64_t from, int64_t step, int64_t count,
                            pl_chat_value *out)
{
    pl_chat_value *item;
    *out = *list;
    out->count = (uint32_t)count;
    if (step == 1) {
        if (count > 0) out->item = list->item + from;
        return PL_OK;
    }
    PL_TRY(pl_chat_take_values(r, (uint64_t)count, &item));
    for (int64_t i = 0; i < count; i++) item[i] = list->item[from + i * step];
    out->item = item;
    return PL_OK;
}

static pl_status slice_string(pl_chat_run *r, const pl_chat_value *s, int64_t from, int64_t step, int64_t count,
                              pl_chat_value *out)
{
    pl_chat_value list;
    uint8_t form = s->form;
    if (step == 1) {
        size_t begin = pl_chat_offset(s->text, s->count, (size_t)from);
        size_t bytes = pl_chat_offset(s->text + begin, s->count - begin, (size_t)count);
        *out = pl_chat_string(s->text + begin, bytes);
        out->form = form;
        return PL_OK;
    }
    PL_TRY(pl_chat_characters(r, s, &list));
    *out = pl_chat_string("", 0);
    out->form = form;
    for (int64_t i = 0; i < count; i++) {
        const pl_chat_value *c = &list.item[from + i * step];
        PL_TRY(pl_chat_append(r, out, c->text, c->count));
    }
    return PL_OK;
}

/* Of a constant jinja2 makes an undefined value, of anything else an error. */
static pl_status not_sliced(pl_chat_run *r, const pl_chat_value *v)
{
    if (v->kind == PL_CHAT_UNDEFINED) return pl_chat_fail_kind(r, "a slice", v);
    return pl_chat_fail(r, PL_E_UNSUPPORTED, "only of strings and lists slices are supported");
}

pl_status pl_chat_slice(pl_chat_run *r, const pl_chat_value *v, const pl_chat_value bound[3], pl_chat_value *out)
{
    int64_t step = 1, from, to, count = v->count;
    bool is_string = v->kind == PL_CHAT_STRING;
    if (!is_string && (v->kind != PL_CHAT_LIST || v->form == PL_CHAT_VIEW)) return not_sliced(r, v);
    if (is_string) count = (int64_t)pl_chat_length(v->text, v->count);
    if (bound[2].kind != PL_CHAT_ABSENT && bound[2].kind != PL_CHAT_NONE &&
        (!pl_chat_is_whole(&bound[2], &step) || step == 0))
        return pl_chat_fail_kind(r, "the step of a slice", &bound[2]);
    if (step < -INT32_MAX || step > INT32_MAX) step = step < 0 ? -INT32_MAX : INT32_MAX; /* one item, then */
    bool backwards = step < 0;
    PL_TRY(clip(r, &bound[0], count, backwards, backwards ? count - 1 : 0, &from));
    PL_TRY(clip(r, &bound[1], count, backwards, backwards ? -1 : count, &to));
    int64_t distance = backwards ? from - to : to - from, stride = backwards ? -step : step;
    int64_t taken = distance > 0 ? (distance - 1) / stride + 1 : 0;
    if (taken == 0) from = 0;
    PL_TRY(pl_chat_step(r, 1 + (uint64_t)(is_string ? v->count / 64 : taken / 16)));
    return (is_string ? slice_string : slice_list)(r, v, from, step, taken, out);
}
