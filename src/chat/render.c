/* What a template is given: the chat as transformers would give it, with what people wrote marked. */
#include "chat/render.h"

#include <string.h>

#include "base/utf8.h"

/* --- marks in what people wrote --- */

static pl_status mark_value(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out);

static bool is_utf8(const pl_chat_value *v)
{
    uint32_t point = 0;
    for (size_t i = 0, n; i < v->count; i += n) {
        n = pl_utf8_read((const uint8_t *)v->text + i, v->count - i, &point);
        if (n == 0 || point == PL_NOT_UTF8) return false;
    }
    return true;
}

static pl_status mark_string(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    const pl_chat_specials *s = r->in->specials;
    if (!is_utf8(v)) return pl_chat_fail(r, PL_E_DATA, "a string of the chat is no UTF-8");
    if (!s) return PL_OK;
    size_t bytes = pl_chat_mark(s, v->text, v->count, NULL, 0);
    char *text;
    PL_TRY(pl_chat_take(r, bytes, 1, &text));
    pl_chat_mark(s, v->text, v->count, text, bytes);
    *out = pl_chat_string(text, bytes);
    return bytes > UINT32_MAX ? pl_chat_fail(r, PL_E_BUDGET, "a string has more than 4 GB") : PL_OK;
}

/* Keys stay as they are. */
static pl_status mark_items(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    bool is_map = v->kind == PL_CHAT_MAP;
    uint64_t count = (uint64_t)v->count * (is_map ? 2 : 1);
    pl_chat_value *item;
    PL_TRY(pl_chat_enter(r));
    PL_TRY(pl_chat_take_values(r, count, &item));
    for (uint64_t i = 0; i < count; i++) {
        item[i] = v->item[i];
        if (!is_map || i % 2) PL_TRY(mark_value(r, &v->item[i], &item[i]));
    }
    *out = *v;
    out->item = item;
    r->depth--;
    return PL_OK;
}

static pl_status mark_value(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    PL_TRY(pl_chat_step(r, 1));
    *out = *v;
    if (v->kind == PL_CHAT_STRING) return mark_string(r, v, out);
    return v->kind == PL_CHAT_LIST || v->kind == PL_CHAT_MAP ? mark_items(r, v, out) : PL_OK;
}

/* --- messages --- */

static const pl_chat_value *key_of(const pl_chat_value *map, const char *key)
{
    for (uint32_t i = 0; i < map->count; i++)
        if (pl_chat_says(&map->item[2 * i], key)) return &map->item[2 * i + 1];
    return NULL;
}

static pl_chat_value word(const char *text) { return pl_chat_string(text, strlen(text)); }

/* Without keys whose value is null. What a model thought is known by several names: templates find it under two. */
static pl_status arrange_message(pl_chat_run *r, pl_chat_value *message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    pl_chat_value *item, *at, given = *message, reasoning = {.kind = PL_CHAT_ABSENT};
    for (size_t i = 0; i < 3 && reasoning.kind == PL_CHAT_ABSENT; i++) {
        const pl_chat_value *found = key_of(&given, names[i]);
        if (found && found->kind != PL_CHAT_NONE) reasoning = *found;
    }
    bool reasons = reasoning.kind != PL_CHAT_ABSENT, has_content = false;
    PL_TRY(pl_chat_take_values(r, 2 * ((uint64_t)given.count + 2), &item));
    at = item;
    if (reasons) {
        const pl_chat_value *thinking = key_of(&given, names[1]);
        *at++ = word(names[1]);
        *at++ = thinking && thinking->kind != PL_CHAT_NONE ? *thinking : reasoning;
    }
    for (uint32_t i = 0; i < given.count; i++) {
        const pl_chat_value *pair = &given.item[2 * i];
        bool is_content = reasons && pl_chat_says(pair, names[0]);
        if (pair[1].kind == PL_CHAT_NONE || (reasons && pl_chat_says(pair, names[1]))) continue;
        has_content |= is_content;
        *at++ = pair[0];
        *at++ = is_content ? reasoning : pair[1];
    }
    if (reasons && !has_content) {
        *at++ = word(names[0]);
        *at++ = reasoning;
    }
    *message = pl_chat_map(item, (size_t)(at - item) / 2);
    return PL_OK;
}

static pl_status arrange_messages(pl_chat_run *r, pl_chat_value *out)
{
    const pl_chat_value *given = &r->in->messages;
    pl_chat_value *message;
    if (given->kind != PL_CHAT_LIST) return pl_chat_fail(r, PL_E_DATA, "the messages of a chat are no list");
    PL_TRY(pl_chat_take_values(r, given->count, &message));
    for (uint32_t i = 0; i < given->count; i++) {
        if (given->item[i].kind != PL_CHAT_MAP)
            return pl_chat_fail(r, PL_E_DATA, "message %u of a chat is no map", i + 1);
        PL_TRY(mark_value(r, &given->item[i], &message[i]));
        PL_TRY(arrange_message(r, &message[i]));
    }
    *out = pl_chat_list(message, given->count);
    return PL_OK;
}

/* --- names that a template sees --- */

static pl_status set(pl_chat_run *r, pl_chat_scope *scope, const char *name, pl_chat_value v)
{
    pl_chat_value n = word(name);
    return pl_chat_set_cell(r, scope, &n, &v);
}

static pl_status set_names(pl_chat_run *r, pl_chat_scope *scope)
{
    pl_chat_value v;
    PL_TRY(arrange_messages(r, &v));
    PL_TRY(set(r, scope, "messages", v));
    PL_TRY(set(r, scope, "add_generation_prompt", pl_chat_bool(r->in->add_generation_prompt)));
    PL_TRY(set(r, scope, "tools", (pl_chat_value){.kind = PL_CHAT_NONE}));
    PL_TRY(set(r, scope, "documents", (pl_chat_value){.kind = PL_CHAT_NONE}));
    for (size_t i = 0; i < r->in->variables; i++) {
        const pl_chat_variable *given = &r->in->variable[i];
        v = given->value;
        if (!given->is_token) PL_TRY(mark_value(r, &given->value, &v));
        PL_TRY(set(r, scope, given->name, v));
    }
    return PL_OK;
}

pl_status pl_chat_render(const pl_chat_template *t, const pl_chat_input *in, pl_chat_output *out, pl_error *err)
{
    pl_chat_run r = {.in = in, .out = out, .scratch = out->scratch, .line = 1, .err = err};
    pl_chat_scope *names, *scope;
    out->rendered_bytes = out->scratch_used_bytes = 0;
    out->spans = 0;
    PL_TRY(pl_chat_make_scope(&r, NULL, &names));
    PL_TRY(set_names(&r, names));
    r.names = names;
    PL_TRY(pl_chat_make_scope(&r, names, &scope));
    return pl_chat_execute_body(&r, scope, t->body);
}
