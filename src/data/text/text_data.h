/* Text as the data of a command: the token file, which is its source, or the tokenizer, or both. */
#ifndef PL_DATA_TEXT_DATA_H
#define PL_DATA_TEXT_DATA_H

#include "data/text/text_source.h"
#include "data/text/tokenizer.h"
#include "stream/data.h"

enum { PL_TEXT_ENDS_MAX = 40 };

/* A chat template (chat/template.h). */
typedef struct pl_text_template {
    const char *name; /* where it comes from, for sentences */
    char *text;       /* NULL: there is none */
    size_t bytes;
} pl_text_template;

typedef struct pl_text_data {
    pl_data data; /* first: this is one. Identity: "text", "tokenizer"; extents: "vocab" */
    pl_tokens tokens;
    bool tokens_open;
    pl_text_source source;
    pl_tokenizer *tokenizer; /* NULL: not wanted */
    char tokenizer_path[PL_FILE_PATH_MAX];
    bool has_special;               /* a text begins as its tokenizer's template says, special tokens are not shown */
    uint32_t end[PL_TEXT_ENDS_MAX]; /* tokens that end a text; PL_TOKEN_NONE after the last */
    pl_text_template chat;          /* where the command chats with the model */
} pl_text_data;

typedef struct pl_text_data_options {
    const char *tokens_path;    /* NULL: no samples are read */
    const char *tokenizer_path; /* of the run */
    bool tokenizer;             /* it is read */
    uint64_t own;               /* hash of the run's own text: of another one all is validated; 0: it does not matter */
    pl_sampler_options sampler;
} pl_text_data_options;

/* PL_E_DATA, PL_E_CONFIG as pl_tokens_open, pl_tokenizer_load, pl_text_source_init. */
pl_status pl_text_data_open(const pl_text_data_options *, pl_text_data **, pl_error *);
static inline const pl_text_data *pl_text_data_of(const pl_data *d) { return (const pl_text_data *)d; }

#endif
