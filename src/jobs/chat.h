/* A chat with a model: its messages, and the ids that the model is to see of them. It asks for heap before commit only;
 * texts and ids lie in memory that the caller has planned. Private to the jobs. */
#ifndef PL_JOBS_CHAT_H
#define PL_JOBS_CHAT_H

#include "data/text/text_data.h"

typedef struct pl_conversation pl_conversation;

/* Memory that it works in, for a model that looks back so many tokens; aligned to 16. */
uint64_t pl_conversation_bytes(const pl_text_data *, uint64_t context);

/* system: the message that it begins with; "" or NULL: none. PL_E_DATA: the template is none. */
pl_status pl_conversation_create(const pl_text_data *, uint64_t context, const char *system, pl_conversation **,
                                 pl_error *);
void pl_conversation_destroy(pl_conversation *); /* NULL is fine */
/* Before the first message, with that memory. */
void pl_conversation_place(pl_conversation *, void *memory);

typedef struct pl_conversation_prompt {
    const uint32_t *id;
    size_t count;
    size_t cached; /* of these ids, at the beginning, the model has seen */
} pl_conversation_prompt;

/* The whole chat, with this message of the user at its end and the beginning of an answer. Where it fails, the chat is
 * what it was. PL_E_USAGE: there is no room for more; PL_E_DATA: the message is not UTF-8, or the template refuses it;
 * PL_E_UNSUPPORTED: the template needs what is not understood. */
pl_status pl_conversation_ask(pl_conversation *, const char *message, size_t bytes, pl_conversation_prompt *,
                              pl_error *);
/* A piece of the answer. */
void pl_conversation_hear(pl_conversation *, const char *text, size_t bytes);
/* The model has seen so many ids: what follows is the next. Each is told, in order, also those it had in its cache. */
void pl_conversation_begin_feed(pl_conversation *);
void pl_conversation_feed(pl_conversation *, uint32_t id);

#endif
