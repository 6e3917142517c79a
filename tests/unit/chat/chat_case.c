#include "unit/chat/chat_case.h"

#include <string.h>

pl_chat_value chat_value_of(pl_pool *pool, const json_t *j)
{
    size_t n = json_is_array(j) ? json_array_size(j) : json_object_size(j), i = 0;
    pl_chat_value *item = pl_pool_alloc(pool, 2 * n + 1, sizeof *item);
    const char *key;
    json_t *value;
    switch (json_typeof(j)) {
    case JSON_STRING:
        return pl_chat_string(json_string_value(j), json_string_length(j));
    case JSON_INTEGER:
        return pl_chat_int(json_integer_value(j));
    case JSON_REAL:
        return (pl_chat_value){.kind = PL_CHAT_REAL, .real = json_real_value(j)};
    case JSON_TRUE:
    case JSON_FALSE:
        return pl_chat_bool(json_is_true(j));
    case JSON_NULL:
        return (pl_chat_value){.kind = PL_CHAT_NONE};
    case JSON_ARRAY:
        for (; i < n; i++) item[i] = chat_value_of(pool, json_array_get(j, i));
        return pl_chat_list(item, n);
    case JSON_OBJECT:
        break;
    }
    json_object_foreach((json_t *)j, key, value)
    {
        item[i++] = pl_chat_string(key, strlen(key));
        item[i++] = chat_value_of(pool, value);
    }
    return pl_chat_map(item, n);
}

static size_t add_variables(pl_pool *pool, json_t *from, bool are_tokens, pl_chat_variable *to)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach(from, key, value) to[n++] = (pl_chat_variable){key, chat_value_of(pool, value), are_tokens};
    return n;
}

static pl_chat_specials specials_of(pl_pool *pool, const json_t *list)
{
    size_t n = json_array_size(list);
    pl_chat_special *s = pl_pool_alloc(pool, n + 1, sizeof *s);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(list, i);
        s[i] = (pl_chat_special){json_string_value(text), json_string_length(text)};
    }
    return pl_chat_specials_sort(s, n);
}

static pl_status parse(pl_pool *pool, const json_t *c, pl_chat_template **t, pl_error *err)
{
    const json_t *written = json_object_get(c, "template"), *built_in = json_object_get(c, "built_in");
    const char *text = built_in ? pl_chat_built_in(json_string_value(built_in)) : json_string_value(written);
    size_t bytes = built_in ? strlen(text) : json_string_length(written);
    uint64_t most = pl_chat_template_bytes(bytes);
    return pl_chat_template_parse(text, bytes, pl_pool_alloc(pool, 1, most), most, t, err);
}

chat_rendered chat_render_case(pl_pool *pool, const json_t *c, uint64_t scratch_bytes, uint64_t text_bytes)
{
    chat_rendered got = {0};
    json_t *variables = json_object_get(c, "variables"), *tokens = json_object_get(c, "tokens");
    const json_t *special = json_object_get(c, "specials"), *now = json_object_get(c, "now");
    pl_chat_template *t;
    got.status = parse(pool, c, &t, &got.err);
    if (got.status != PL_OK) return got;
    pl_chat_variable *v = pl_pool_alloc(pool, json_object_size(variables) + json_object_size(tokens) + 1, sizeof *v);
    size_t count = add_variables(pool, variables, false, v);
    pl_chat_specials specials = specials_of(pool, special);
    time_t seconds = (time_t)json_integer_value(now);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    pl_chat_input in = {.messages = chat_value_of(pool, json_object_get(c, "messages")),
                        .add_generation_prompt = json_is_true(json_object_get(c, "add_generation_prompt")),
                        .variable = v,
                        .variables = count + add_variables(pool, tokens, true, v + count),
                        .specials = special ? &specials : NULL,
                        .now = now ? &tm : NULL};
    pl_chat_output out = {.scratch = pl_pool_alloc(pool, 1, scratch_bytes),
                          .scratch_bytes = scratch_bytes,
                          .text = pl_pool_alloc(pool, 1, text_bytes),
                          .text_bytes = text_bytes,
                          .span = got.span,
                          .spans_max = sizeof got.span / sizeof *got.span};
    got.status = pl_chat_render(t, &in, &out, &got.err);
    got.text = out.text;
    got.bytes = out.rendered_bytes;
    got.spans = out.spans;
    got.scratch_used_bytes = out.scratch_used_bytes;
    return got;
}
