/* Chat templates: the text of a chat, as the template of a model's folder or GGUF file writes it. Templates are
 * Jinja, as transformers sets it up; a subset is understood, and what is beyond it is refused by name when a
 * rendering comes to it (so a template may hold branches for tools that are never taken). What is rendered is what
 * transformers renders, or nothing: https://jinja.palletsprojects.com/en/stable/templates.
 *
 * All memory is the caller's: a block for the parsed template, and for each rendering scratch memory and a buffer for
 * the text. Templates come with files from the network: depth and steps are bounded. */
#ifndef PL_CHAT_TEMPLATE_H
#define PL_CHAT_TEMPLATE_H

#include <time.h>

#include "base/error.h"
#include "chat/special.h"
#include "chat/value.h"

typedef struct pl_chat_template pl_chat_template;

/* The template of a name (chatml, llama2, llama3, gemma, phi3, zephyr, mistral); NULL: there is no such name. */
const char *pl_chat_built_in(const char *name);
const char *pl_chat_built_in_name(size_t i); /* NULL: there are no more */

/* The most that parsing a template of so many bytes takes; UINT64_MAX: it is too large (the limit is 16 MiB). */
uint64_t pl_chat_template_bytes(uint64_t text_bytes);

/* Parses into the block (aligned to 16), which the template then lives in; the text is copied. */
pl_status pl_chat_template_parse(const char *text, size_t bytes, void *block, uint64_t block_bytes, pl_chat_template **,
                                 pl_error *);
/* What the template holds of its block: enough for parsing the same text again. */
uint64_t pl_chat_template_used_bytes(const pl_chat_template *);
/* Whether it marks what an assistant generates, by {% generation %}. */
bool pl_chat_template_marks_generation(const pl_chat_template *);

typedef struct pl_chat_variable {
    const char *name;
    pl_chat_value value;
    bool is_token; /* a token of the tokenizer (bos_token), so never marked; else a person's */
} pl_chat_variable;

/* Bytes [begin, end) of the rendered text. */
typedef struct pl_chat_span {
    uint64_t begin, end;
} pl_chat_span;

/* `tools` and `documents` are none where no variable has these names. */
typedef struct pl_chat_input {
    pl_chat_value messages; /* a list of maps */
    bool add_generation_prompt;
    const pl_chat_variable *variable;
    size_t variables;
    const pl_chat_specials *specials; /* marked in what a person wrote (special.h); NULL: none */
    const struct tm *now;             /* for strftime_now; NULL: a template that asks is refused */
} pl_chat_input;

typedef struct pl_chat_output {
    void *scratch; /* aligned to 16 */
    uint64_t scratch_bytes;
    char *text; /* also holds, in turn, each text that a macro or a set block makes */
    uint64_t text_bytes;
    pl_chat_span *span; /* of {% generation %} */
    size_t spans_max;
    /* written by the rendering; the text is not terminated */
    uint64_t rendered_bytes, scratch_used_bytes;
    size_t spans;
} pl_chat_output;

/* PL_E_BUDGET: a buffer is too small; PL_E_UNSUPPORTED: beyond the subset; PL_E_DATA: a mistake in the template, or the
 * template's own refusal of this chat. */
pl_status pl_chat_render(const pl_chat_template *, const pl_chat_input *, pl_chat_output *, pl_error *);

#endif
