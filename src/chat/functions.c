/* The functions that transformers gives to templates. */
#include "chat/render.h"

#include <string.h>

#include "base/locale.h"

static pl_status raise_exception(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    PL_TRY(pl_chat_text_of(r, &v[1], out));
    return pl_chat_fail(r, PL_E_DATA, "the template refuses this chat: %.*s",
                        (int)(out->count < 300 ? out->count : 300), out->text);
}

/* Python's strftime is the C library's, but for what a time without zone has not. */
static pl_status strftime_now(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    char format[128], text[512];
    const pl_chat_value *f = &v[1];
    if (!r->in->now) return pl_chat_fail(r, PL_E_UNSUPPORTED, "the template asks for the time, which was not given");
    if (f->kind != PL_CHAT_STRING || f->count >= sizeof format || memchr(f->text, 0, f->count))
        return pl_chat_fail_kind(r, "a format of the time (at most 127 bytes)", f);
    memcpy(format, f->text, f->count);
    format[f->count] = 0;
    for (const char *p = format; (p = strchr(p, '%')); p += 2) {
        p += p[1] == '-';
        if (!p[1] || !strchr("aAbBcCdDeFgGhHIjklmMnprRStTuUVwWxXyY%", p[1]))
            return pl_chat_fail(r, PL_E_UNSUPPORTED, "\"%.3s\" in a format of the time is not supported", p);
    }
    locale_t before = pl_locale_enter();
    size_t n = strftime(text, sizeof text, format, r->in->now);
    pl_locale_leave(before);
    *out = pl_chat_string("", 0);
    return pl_chat_append(r, out, text, n);
}

static pl_status range(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    int64_t from = 0, to, step = 1, bound = INT64_C(1) << 62;
    bool one = v[2].kind == PL_CHAT_ABSENT;
    pl_chat_value *item;
    bool whole = pl_chat_is_whole(&v[1], one ? &to : &from) && (one || pl_chat_is_whole(&v[2], &to)) &&
                 (v[3].kind == PL_CHAT_ABSENT || pl_chat_is_whole(&v[3], &step));
    if (!whole || step == 0 || from < -bound || from > bound || to < -bound || to > bound)
        return pl_chat_fail(r, PL_E_DATA, "a range needs whole numbers, and a step that is not 0");
    int64_t distance = step > 0 ? to - from : from - to;
    uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    uint64_t count = distance > 0 ? (uint64_t)(distance - 1) / stride + 1 : 0;
    if (count > PL_CHAT_RANGE_MAX)
        return pl_chat_fail(r, PL_E_DATA, "a range has more than %d numbers", PL_CHAT_RANGE_MAX);
    PL_TRY(pl_chat_take_values(r, count, &item));
    for (uint64_t i = 0; i < count; i++) item[i] = pl_chat_int(from + (int64_t)i * step);
    *out = pl_chat_list(item, count);
    out->form = PL_CHAT_RANGE;
    return pl_chat_step(r, count);
}

/* The map of dict(…) and namespace(…): at most one map, then names. */
static pl_status merged(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    const pl_chat_value *maps[] = {v[1].count > 0 ? v[1].item : &v[2], &v[2]};
    pl_chat_value *item;
    uint32_t count = 0;
    if (v[1].count > 1 || maps[0]->kind != PL_CHAT_MAP)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "a map is made of one map and of names only");
    PL_TRY(pl_chat_take_values(r, 2 * ((uint64_t)maps[0]->count + v[2].count), &item));
    for (size_t m = v[1].count > 0 ? 0 : 1; m < 2; m++)
        for (uint32_t i = 0; i < maps[m]->count; i++) {
            const pl_chat_value *pair = &maps[m]->item[2 * i], so_far = pl_chat_map(item, count), *found;
            PL_TRY(pl_chat_find(r, &so_far, pair, &found));
            size_t at = found ? (size_t)(found - item) - 1 : 2 * (size_t)count++;
            if (!found) item[at] = pair[0];
            item[at + 1] = pair[1];
        }
    *out = pl_chat_map(item, count);
    return PL_OK;
}

static pl_status namespace(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    pl_chat_value map;
    pl_chat_scope *scope;
    PL_TRY(merged(r, v, &map));
    PL_TRY(pl_chat_make_scope(r, NULL, &scope));
    for (uint32_t i = 0; i < map.count; i++) {
        const pl_chat_value *name = &map.item[2 * i];
        if (name->kind != PL_CHAT_STRING || (name->count > 0 && name->text[0] == '_'))
            return pl_chat_fail(r, PL_E_DATA, "names in a namespace are strings that do not begin with `_`");
        PL_TRY(pl_chat_set_cell(r, scope, name, name + 1));
    }
    *out = (pl_chat_value){.kind = PL_CHAT_NAMESPACE, .object = scope};
    return PL_OK;
}

const pl_chat_row *pl_chat_function(const pl_chat_value *name)
{
    static const pl_chat_row rows[] = {{"raise_exception", "message", 1, raise_exception},
                                       {"strftime_now", "format", 1, strftime_now},
                                       {"range", "a b c", 1, range},
                                       {"namespace", "**", 0, namespace},
                                       {"dict", "**", 0, merged}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pl_chat_says(name, rows[i].name)) return &rows[i];
    return NULL;
}
