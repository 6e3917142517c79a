/* Cases for the renderer as lines of JSON: a template and what it is given, and what jinja2 made of it (by
 * chat_cases.py). */
#ifndef TESTS_UNIT_CHAT_CHAT_CASE_H
#define TESTS_UNIT_CHAT_CHAT_CASE_H

#include <jansson.h>

#include "base/alloc.h"
#include "chat/template.h"

typedef struct chat_rendered {
    pl_status status;
    pl_error err;
    char *text; /* of the pool */
    size_t bytes, spans;
    pl_chat_span span[64];
    uint64_t scratch_used_bytes;
} chat_rendered;

/* Values of JSON; what is made lies in the pool. */
pl_chat_value chat_value_of(pl_pool *, const json_t *);

/* Renders `template` (or `built_in`, a name) with `messages`, `add_generation_prompt`, `variables`, `tokens`, and
 * `specials`, if it has any; `now` is seconds since 1970. */
chat_rendered chat_render_case(pl_pool *, const json_t *, uint64_t scratch_bytes, uint64_t text_bytes);

#endif
