/* A tokenizer of a GGUF file whose keys lie in a JSON object, for tests: {"model", "pre", "tokens", "token_type",
 * "scores", "merges", "bos_token_id", …, "add_bos_token", "add_eos_token", "add_space_prefix"}; each may be absent. */
#ifndef PL_TESTS_SUPPORT_GGUF_JSON_H
#define PL_TESTS_SUPPORT_GGUF_JSON_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/tokenizer_gguf.h"

static inline pl_status gguf_json_string(const json_t *list, uint32_t i, const char **text, size_t *bytes)
{
    const json_t *item = json_array_get(list, i);
    *text = json_string_value(item);
    *bytes = json_string_length(item);
    return PL_OK;
}

static inline pl_status gguf_json_token(void *context, uint32_t i, const char **text, size_t *bytes, pl_error *err)
{
    (void)err;
    return gguf_json_string(json_object_get(context, "tokens"), i, text, bytes);
}

static inline pl_status gguf_json_merge(void *context, uint32_t i, const char **text, size_t *bytes, pl_error *err)
{
    (void)err;
    return gguf_json_string(json_object_get(context, "merges"), i, text, bytes);
}

static inline int gguf_json_flag(const json_t *keys, const char *key)
{
    const json_t *value = json_object_get(keys, key);
    return value ? json_is_true(value) : PL_GGUF_ABSENT;
}

/* Arrays one byte off, as they may lie in a file; the caller frees them. */
typedef struct gguf_json {
    pl_gguf_tokenizer keys;
    char *types, *scores;
} gguf_json;

static inline gguf_json gguf_json_of(json_t *keys)
{
    static const char *const names[PL_SPECIALS] = {"bos_token_id",     "eos_token_id", "unknown_token_id",
                                                   "padding_token_id", "eot_token_id", "eom_token_id"};
    const json_t *types = json_object_get(keys, "token_type"), *scores = json_object_get(keys, "scores");
    const size_t tokens = json_array_size(json_object_get(keys, "tokens"));
    gguf_json g = {.types = malloc(4 * tokens + 1), .scores = malloc(4 * tokens + 1)};
    g.keys = (pl_gguf_tokenizer){
        .name = "file.gguf",
        .model = json_string_value(json_object_get(keys, "model")),
        .pre = json_string_value(json_object_get(keys, "pre")),
        .tokens = (uint32_t)tokens,
        .merges = (uint32_t)json_array_size(json_object_get(keys, "merges")),
        .token = gguf_json_token,
        .merge = gguf_json_merge,
        .context = keys,
        .types = types ? g.types + 1 : NULL,
        .scores = scores ? g.scores + 1 : NULL,
        .add_bos = gguf_json_flag(keys, "add_bos_token"),
        .add_eos = gguf_json_flag(keys, "add_eos_token"),
        .add_space_prefix = gguf_json_flag(keys, "add_space_prefix"),
    };
    for (size_t i = 0; i < tokens; i++) {
        const int32_t type = (int32_t)json_integer_value(json_array_get(types, i));
        const float score = (float)json_number_value(json_array_get(scores, i));
        memcpy(g.types + 1 + 4 * i, &type, 4);
        memcpy(g.scores + 1 + 4 * i, &score, 4);
    }
    for (int i = 0; i < PL_SPECIALS; i++) {
        const json_t *id = json_object_get(keys, names[i]);
        g.keys.special_id[i] = id ? json_integer_value(id) : PL_GGUF_ABSENT;
    }
    return g;
}

static inline void gguf_json_free(gguf_json *g)
{
    free(g->types);
    free(g->scores);
}

#endif
